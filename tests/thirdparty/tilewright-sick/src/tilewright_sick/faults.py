"""Everything that is done wrong: place -> name -> what happens there."""

from __future__ import annotations

import atexit
import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from pydantic import BaseModel

from tilewright import Report, Workload
from tilewright.errors import InputError, NotConformableError, PluginError, Reason
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Approximation, CostModelSpec, Costs, FrontendSpec, InputSet, MapperSpec, Verdict

Fault = Callable[..., Any]


class Mute(Exception):
    """Cannot say what is wrong."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class AllIsWell(PluginError):
    """Ends the program with the code of success."""

    exit_code = 0


class Half(InputError):
    """Forgets to tell its base."""

    def __init__(self) -> None:
        pass


class _Whole(BaseModel):
    number: int


def _raising(make: Callable[[], BaseException]) -> Fault:
    def happens(*_: Any) -> NoReturn:
        raise make()

    return happens


def _validating(*_: Any) -> None:
    _Whole.model_validate({"number": "many"})


def _printing(value: Any = None, *_: Any) -> Any:
    print("hello from the sick")
    sys.stdout.write("and so on\n")
    return value


def _closing(value: Any = None, *_: Any) -> Any:
    sys.stdout.close()
    return value


def _losing(value: Any = None, *_: Any) -> Any:
    sys.stdout = sys.stderr = None
    return value


def _sleeping(value: Any = None, *_: Any) -> Any:
    if "TILEWRIGHT_SICK_ASLEEP" in os.environ:  # a file that says so
        Path(os.environ["TILEWRIGHT_SICK_ASLEEP"]).touch()
    time.sleep(600)
    return value


def _spinning(value: Any = None, *_: Any) -> Any:
    until = time.monotonic() + 600
    while time.monotonic() < until:
        time.sleep(0.01)
    return value


RAISED: dict[str, Fault] = {
    "error": _raising(lambda: ValueError("so many\nlines")),
    "exit 0": _raising(lambda: SystemExit(0)),
    "interrupt": _raising(KeyboardInterrupt),
    "generator exit": _raising(GeneratorExit),
    "base": _raising(lambda: BaseException("base")),
    "validation": _validating,
    "mute": _raising(Mute),
    "all is well": _raising(lambda: AllIsWell("fine")),
    "half an error": _raising(Half),
    "bad reasons": _raising(lambda: NotConformableError("sick", ["because"])),  # type: ignore[list-item]
}
LOUD: dict[str, Fault] = {"print": _printing, "close stdout": _closing, "lose stdout": _losing}
"""Faults of which nobody has to be told: nothing breaks."""


def _writing(value: Any = None, *_: Any) -> Any:
    """Past `sys.stdout`, and when the program ends."""
    os.write(1, b"hello from below\n")
    subprocess.run([sys.executable, "-c", "print('hello from a child')"], check=True)
    atexit.register(print, "good bye")
    return value


def _leaving(*_: Any) -> NoReturn:
    os._exit(0)


def _endless(*_: Any) -> None:
    """In C, and nothing else runs meanwhile."""
    ctypes.PyDLL(None).sleep(600)


_calls = 0


def _hanging_later(value: Any = None, *_: Any) -> Any:
    """Works three times, and then never returns."""
    global _calls
    _calls += 1
    while _calls > 3:
        pass
    return value


BRUTAL: dict[str, Fault] = {
    "leave": _leaving,
    "endless": _endless,
    "hang later": _hanging_later,
    "write": _writing,
    "close 1": lambda *_: os.close(1),
}
"""For processes of their own."""
FEW = {name: RAISED[name] for name in ("error", "exit 0", "interrupt", "mute")}
"""For places whose exceptions are translated by the same code as elsewhere."""
SLOW: dict[str, Fault] = {"sleep": _sleeping, "spin": _spinning}


def _returning(value: Any) -> Fault:
    return lambda *_: value


def _with(**columns: Callable[[Costs], Any]) -> Fault:
    """Costs with other columns."""
    return lambda costs, *_: replace(costs, **{name: change(costs) for name, change in columns.items()})


def _report(**changes: Any) -> Fault:
    """A report of a valid mapping with other figures."""

    def happens(report: Report, *_: Any) -> Report:
        if not report.valid:
            return report
        found = {name: change(report) if callable(change) else change for name, change in changes.items()}
        return report.model_copy(update=found)

    return happens


def _first(array: Any, value: float) -> Any:
    """One wrong figure among many."""
    changed = array.copy()
    changed[int(np.argmin(array))] = value
    return changed


def _without_rules(candidates: Any, task: Any, run: Any) -> Any:
    space = MapSpace.of(task.problem, task.architecture, None)
    return space.sample(run.rng, 16).batch()


def _of_another_problem(candidates: Any, task: Any, run: Any) -> Any:
    other = task.problem.model_copy(update={"name": "other", "dimensions": {"n": 2, "k": 2, "m": 2}})
    return MapSpace.of(other, task.architecture, None).sample(run.rng, 4)


def _rewriting(candidates: Any, task: Any, run: Any) -> Any:
    run.evaluated = -(10**9)
    run.started = run.clock() + 10**9
    run.budget = None
    return candidates


def _proving_nonsense(candidates: Any, task: Any, run: Any) -> Any:
    run.prove(float("nan"))
    return candidates


def _left_behind(name: str, value: Any) -> Fault:
    def happens(candidates: Any, task: Any, run: Any) -> Any:
        setattr(run, name, value)
        return candidates

    return happens


def _never_ending(proposals: Any, task: Any, run: Any) -> Iterator[Any]:
    try:
        yield from proposals
    except GeneratorExit:
        yield task.space.sample(run.rng, 1)


@dataclass(frozen=True)
class _Hostile(MapperSpec):
    """A spec whose summary cannot be read."""

    def __getattribute__(self, name: str) -> Any:
        if name == "summary":
            raise SystemExit(0)
        return super().__getattribute__(name)


def _spec(kind: Callable[..., Any] = MapperSpec, **values: Any) -> Fault:
    given = {"name": "sicker", "summary": "Is sicker.", "factory": print, "interface": 1} | values
    return lambda: kind(**given)


FAULTS: dict[str, dict[str, Fault]] = {
    "import": {
        **RAISED,
        **LOUD,
        **SLOW,
        **BRUTAL,
        "absent": lambda: __import__("a_module_nobody_has"),
        "syntax": lambda: exec("def ("),
        "slow": lambda: time.sleep(1.2),
        "change folder": lambda: os.chdir("/"),
    },
    "tilewright_plugins": {
        **FEW,
        "print": lambda: _printing([]),
        "sleep": _sleeping,
        "number": _returning(5),
        "nothing": _returning(None),
        "text": _returning("sick"),
        "junk": _returning([1, "two", None]),
        "interface 99 and its field": _spec(interface=99, curiosity=1),
    },
    "spec": {
        "name 5": _spec(name=5),
        "name a/b": _spec(name="a/b"),
        "summary None": _spec(summary=None),
        "summary lost": _spec(_Hostile),
        "factory None": _spec(factory=None),
        "options dict": _spec(options=dict),
        "options None": _spec(options=None),
        "capabilities None": _spec(capabilities=None),
        "needs 5": _spec(needs=5),
        "needs text": _spec(needs="numpy"),
        "needs dots": _spec(needs=("..",)),
        "hint 5": _spec(hint=5),
        "interface 99": _spec(interface=99),
        "interface 0": _spec(interface=0),
        "interface text": _spec(interface="1"),
        "programs None": _spec(programs=None),
        "programs list": _spec(programs=["ls"]),
        "ends text": _spec(ends="no"),
        "suffixes 5": _spec(FrontendSpec, suffixes=5),
        "suffixes empty": _spec(FrontendSpec, suffixes=("",)),
        "library None": _spec(FrontendSpec, library=None),
        "library numbers": _spec(FrontendSpec, library={"resnet50": 5}),
        "executes None": _spec(CostModelSpec, executes=None),
        "approximations text": _spec(CostModelSpec, approximations=("halo",)),
        "approximations half": _spec(CostModelSpec, approximations=(Approximation("a", "b", None),)),  # type: ignore[arg-type]
    },
    "mapper.factory": {**FEW, "nothing": _returning(None), "print": _printing},
    "mapper.search": {
        **FEW,
        "nothing": _returning(None),
        "list": _returning([]),
        "never ending": _never_ending,
        "print": _printing,
    },
    "mapper.step": {
        **RAISED,
        **LOUD,
        **SLOW,
        "leave": _leaving,
        "endless": _endless,
        "nothing": _returning(None),
        "dict": _returning({}),
        "junk": _returning([1, 2]),
        "empty for ever": lambda candidates, *_: candidates.take(slice(0, 0)),
        "other problem": _of_another_problem,
        "no rules": _without_rules,
        "rewrites the run": _rewriting,
        "proves nan": _proving_nonsense,
        "bound nan": _left_behind("lower_bound", float("nan")),
        "bound text": _left_behind("lower_bound", "low"),
        "bound too high": _left_behind("lower_bound", 1e300),
        "figures list": _left_behind("figures", []),
        "figures odd": _left_behind("figures", {"a": object()}),
    },
    "costmodel.factory": {**FEW, "nothing": _returning(None)},
    "costmodel.bind": {**FEW, "nothing": _returning(None), "list": _returning([]), "sleep": _sleeping},
    "costmodel.evaluate_batch": {
        **RAISED,
        **LOUD,
        **SLOW,
        "leave": _leaving,
        "endless": _endless,
        "hang later": _hanging_later,
        "nothing": _returning(None),
        "list": _returning([1.0]),
        "short": lambda costs, *_: Costs(costs.valid[1:], costs.energy_pj[1:], costs.cycles[1:]),
        "long": lambda costs, *_: Costs.join([costs, costs]),
        "counts for truth": _with(valid=lambda costs: costs.valid.astype(np.int64)),
        "whole numbers": _with(cycles=lambda costs: np.full(len(costs), 10**6)),
        "complex": _with(energy_pj=lambda costs: costs.energy_pj.astype(np.complex128)),
        "texts": _with(energy_pj=lambda costs: [""] * len(costs)),
        "nan": _with(energy_pj=lambda costs: np.full(len(costs), np.nan)),
        "one nan": _with(energy_pj=lambda costs: _first(costs.energy_pj, np.nan)),
        "negative energy": _with(energy_pj=lambda costs: -costs.energy_pj),
        "negative cycles": _with(cycles=lambda costs: -costs.cycles),
        "no cycles": _with(cycles=lambda costs: np.where(costs.valid, 0.0, np.inf)),
        "too few cycles": _with(cycles=lambda costs: np.where(costs.valid, 1e-3, np.inf)),
        "infinite": _with(energy_pj=lambda costs: np.full(len(costs), np.inf)),
        "finite where invalid": _with(valid=lambda costs: np.zeros(len(costs), dtype=np.bool_)),
    },
    "costmodel.explain": {
        **FEW,
        "print": _printing,
        "nothing": _returning(None),
        "dict": _returning({"valid": True}),
        "junk": lambda *_: Report.model_construct(valid=True, levels=5),
        "no figures": _report(energy_pj=None),
        "negative energy": _report(energy_pj=-3.0, edp=lambda report: -3.0 * report.cycles),
        "nan": _report(energy_pj=float("nan")),
        "edp": _report(edp=1.0),
        "texts": _report(cycles="many"),
        "utilization": _report(utilization=5.0),
        "too few cycles": _report(cycles=0, edp=0.0),
        "operations": _report(macs=1),
        "parts": _report(compute_energy_pj=lambda report: 2 * report.energy_pj),
        "another figure": _report(
            energy_pj=lambda report: 2 * report.energy_pj, edp=lambda report: 2 * report.energy_pj * report.cycles
        ),
        "not valid": _report(valid=False, reasons=(Reason(code="mood", where="", message="no"),)),
    },
    "frontend.factory": {**FEW, "nothing": _returning(None)},
    "frontend.recognises": {**FEW, "print": _printing, "sleep": _sleeping, "text": _returning("yes")},
    "frontend.load": {
        **RAISED,
        "print": _printing,
        "nothing": _returning(None),
        "dict": _returning({}),
        "list": lambda workload, *_: [workload],
        "junk": lambda *_: Workload.model_construct(name="sick", layers=(1, 2)),
        "no name": lambda workload, *_: Workload.model_construct(name="", layers=workload.layers),
    },
    "adapter.factory": {**FEW, "nothing": _returning(None)},
    "adapter.parse": {
        **FEW,
        "print": _printing,
        "nothing": _returning(None),
        "dict": _returning({}),
        "junk": lambda *_: InputSet(problem=5, warnings=5),  # type: ignore[arg-type]
    },
    "adapter.expressible": {**FEW, "truth": _returning(True), "junk": lambda *_: Verdict.model_construct(reasons=5)},
    "adapter.render": {
        **FEW,
        "print": _printing,
        "nothing": _returning(None),
        "no files": _returning({}),
        "bytes": _returning({"a.yaml": b""}),
        "outside": _returning({"../../outside.yaml": ""}),
        "absolute": lambda *_: {str(Path("/tmp/outside.yaml")): ""},
        "numbers": _returning({1: "a"}),
    },
    "tilewright_search_done": {**FEW, "print": _printing, "base": RAISED["base"], "sleep": _sleeping},
}

"""Contract checks for every plugin."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

from pydantic import ValidationError

from tilewright.plugin.adapter import Adapter
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.estimator import Estimator
from tilewright.plugin.frontend import Algorithm, Frontend
from tilewright.plugin.groupmapper import GroupMapper
from tilewright.plugin.mapper import Mapper
from tilewright.plugin.registry import check_options
from tilewright.plugin.specs import (
    AdapterSpec,
    AlgorithmSpec,
    CostModelSpec,
    EstimatorSpec,
    FrontendSpec,
    GroupMapperSpec,
    Lazy,
    MapperSpec,
    PluginSpec,
    StrategySpec,
)
from tilewright.plugin.strategy import Strategy
from tilewright.testing.exercises import exercise
from tilewright.testing.kit import Subject, check, require

HEAVY = frozenset(
    "numpy scipy pandas networkx matplotlib numba onnx torch tensorflow jax dask highspy ortools gurobipy sympy".split()
)
"""Libraries that must not be imported to read a plugin's name."""

PROTOCOLS: dict[type[PluginSpec[Any]], type] = {
    MapperSpec: Mapper,
    GroupMapperSpec: GroupMapper,
    CostModelSpec: CostModel,
    FrontendSpec: Frontend,
    AdapterSpec: Adapter,
    EstimatorSpec: Estimator,
    AlgorithmSpec: Algorithm,
    StrategySpec: Strategy,
}


@check()
def check_summary_is_one_line(subject: Subject) -> None:
    """`summary` is one line of text, for `tilewright plugins`."""
    summary = subject.spec.summary
    require(bool(summary.strip()) and "\n" not in summary, f"the summary is {summary!r}")


@check()
def check_options_refuse_the_unknown(subject: Subject) -> None:
    """An unknown option is an error: the options class derives from `Options`."""
    try:
        subject.spec.options.model_validate({**subject.options, "no_such_option": 1})
    except ValidationError as error:
        if any(fault["type"] == "extra_forbidden" for fault in error.errors()):
            return
    require(False, f"{subject.spec.options.__name__} accepts unknown options; derive it from tilewright.plugin.Options")


@check()
def check_options_round_trip(subject: Subject) -> None:
    """Options survive conversion to JSON and back, because provenance stores them to repeat a run."""
    options = check_options(subject.registration, subject.options)
    again = type(options).model_validate_json(options.model_dump_json())
    require(again == options, f"{options!r} comes back from JSON as {again!r}")


@check()
def check_interface(subject: Subject) -> None:
    """The factory's product has the methods of its kind, with the arguments that the host passes."""
    protocol = PROTOCOLS[type(subject.spec)]
    made = subject.make()
    for name in subject.spec.methods:
        wanted = [
            parameter for parameter in inspect.signature(getattr(protocol, name)).parameters if parameter != "self"
        ]
        try:
            inspect.signature(getattr(made, name)).bind(*wanted)
        except TypeError as error:
            require(False, f"{type(made).__name__}.{name} cannot be called as {name}({', '.join(wanted)}): {error}")


@check()
def check_import_is_light(subject: Subject) -> None:
    """Importing the package does not import heavy libraries or those in `needs`; the factory does."""
    heavy = sorted(HEAVY | {name.partition(".")[0] for name in subject.spec.needs})
    names = _homes(subject)
    done = _imported(tuple(names))
    require(done.returncode == 0, f"{', '.join(names)} cannot be imported in a new interpreter: {done.stderr}")
    imported = sorted(set(heavy) & set(json.loads(done.stdout.splitlines()[-1])))
    require(not imported, f"importing {', '.join(names)} imports {', '.join(imported)}; import them inside the factory")


@check()
def check_prints_nothing(subject: Subject) -> None:
    """Neither the import nor a call prints to stdout, which is for results; use `logging` or `warnings`."""
    names = _homes(subject)
    printed = "\n".join(_imported(tuple(names)).stdout.splitlines()[:-1])
    require(not printed, f"importing {', '.join(names)} prints {printed[:80]!r}")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(Exception):  # another check reports errors of the call
        exercise(subject)
    require(not out.getvalue(), f"it prints {out.getvalue()[:80]!r}")


def _homes(subject: Subject) -> list[str]:
    """Return the modules that define the factory and the options of the plugin."""
    factory: Any = subject.spec.factory
    if isinstance(factory, Lazy):
        of_factory = {factory.module.partition(".")[0]} if "." in factory.module else set()
    else:
        of_factory = {getattr(factory, "func", factory).__module__}
    return sorted({*of_factory, subject.spec.options.__module__})


@cache
def _imported(names: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Import modules in a new interpreter; the last line of its stdout lists all loaded modules."""
    code = (
        "import importlib, json, sys\n"
        "for name in json.loads(sys.argv[1]): importlib.import_module(name)\n"
        "print(); print(json.dumps(sorted(sys.modules)))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, json.dumps(names)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )

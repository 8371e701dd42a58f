"""While the cost model compiles, another process compiles what the mapper does; where that cannot be, all is as it was."""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import interrupts
from support.processes import runs, soon
from tilewright.application.run import compilation_warm_up
from tilewright.application.run.search import search
from tilewright.mapspace.batch import MappingBatch
from tilewright.plugin import Budget, Costs, Proposals, Run, Task
from tilewright.plugin.result import Result
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.reference import PlainEvaluator

pytestmark = pytest.mark.process

SAMPLE = SAMPLES[1]


@dataclass(frozen=True)
class Compiling:
    """A mapper that notes who compiles, and how long that took."""

    place: Path
    seconds: float = 0.0

    def search(self, task: Task, run: Run) -> Proposals:
        assert run.remaining_evaluations is None or run.remaining_evaluations > 0
        (self.place / str(os.getpid())).touch()
        time.sleep(self.seconds)
        return self.drawn(task, run)

    def drawn(self, task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 10)

    @property
    def others(self) -> list[int]:
        return [int(path.name) for path in self.place.iterdir() if path.name != str(os.getpid())]


class Slow(PlainEvaluator):
    """A model that does so much when it is first asked."""

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        super().__init__(SAMPLE.problem, SAMPLE.architecture)
        self.work = work

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        if not len(batch):
            self.work()
        return super().evaluate_batch(batch)


def compile_something() -> None:
    until = time.process_time() + 0.3
    while time.process_time() < until:
        pass


def run(mapper: Compiling, model: Slow) -> Result:
    return search(mapper, Task(SAMPLE.space), model, Budget(evaluations=10))


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation_warm_up, "SECONDS", 0.05)
    monkeypatch.setattr(compilation_warm_up, "_cores", lambda: 2)
    monkeypatch.setattr(compilation_warm_up, "kept", lambda: True)


def test_the_mapper_compiles_in_another_process_while_the_model_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mapper = Compiling(tmp_path)
    with caplog.at_level(logging.WARNING, "tilewright"):
        result = run(mapper, Slow(compile_something))
    (other,) = mapper.others
    assert result.evaluated == 10 and result.error is None
    assert soon(lambda: not runs(other), 5)
    assert [record.message[:10] for record in caplog.records] == ["compiling "]


def test_what_takes_no_time_is_done_here(tmp_path: Path) -> None:
    mapper = Compiling(tmp_path)
    assert run(mapper, Slow()).evaluated == 10
    assert mapper.others == []


@pytest.mark.parametrize(("name", "value"), [("_cores", 1), ("kept", False)])
def test_where_it_would_gain_nothing_it_is_done_here(
    name: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation_warm_up, name, lambda: value)
    mapper = Compiling(tmp_path)
    assert run(mapper, Slow(compile_something)).evaluated == 10
    assert mapper.others == []


def test_what_cannot_be_sent_or_fails_there_is_done_here(tmp_path: Path) -> None:
    class Unsendable(Compiling):
        def __reduce__(self) -> str:
            raise TypeError("it cannot travel")

    class Failing(Compiling):
        def search(self, task: Task, run: Run) -> Proposals:
            if os.getpid() != here:
                os._exit(3)
            return super().search(task, run)

    here = os.getpid()
    for mapper in (Unsendable(tmp_path), Failing(tmp_path)):
        assert run(mapper, Slow(compile_something)).evaluated == 10
        assert mapper.others == []


def test_ctrl_c_ends_both(tmp_path: Path) -> None:
    mapper = Compiling(tmp_path, seconds=60)

    def press() -> None:
        compile_something()
        assert soon(lambda: bool(mapper.others), 30)
        interrupts.press()

    with interrupts.heard():
        began = time.monotonic()
        result = run(mapper, Slow(press))
    assert (result.stop, result.best) == ("cancelled", None)
    assert time.monotonic() - began < 40
    assert soon(lambda: not any(map(runs, mapper.others)), 5)

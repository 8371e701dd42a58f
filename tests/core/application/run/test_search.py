"""The driver: whatever ends a search, the best mapping so far is returned with the reason."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from support import interrupts
from tilewright.application.run.search import search
from tilewright.errors import InputError, PluginError
from tilewright.mapspace.batch import MappingBatch
from tilewright.plugin.costmodel import Costs
from tilewright.plugin.mapper import Budget, Proposals, Run, Task
from tilewright.plugin.result import Progress, Result
from tilewright.schema.mapping import Mapping
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.reference import PlainEvaluator

SAMPLE = SAMPLES[1]
TASK = Task(SAMPLE.space)
EVALUATOR = PlainEvaluator(SAMPLE.problem, SAMPLE.architecture)

Body = Callable[[Task, Run], Proposals]


@dataclass(frozen=True)
class Scripted:
    """A mapper that is one function."""

    body: Body

    def search(self, task: Task, run: Run) -> Proposals:
        return self.body(task, run)


def drawing(task: Task, run: Run) -> Proposals:
    while True:
        yield task.space.sample(run.rng, 10)


def run(body: Body = drawing, budget: Budget = Budget(), evaluator: Any = EVALUATOR, **rest: Any) -> Result:  # noqa: B008
    return search(Scripted(body), TASK, evaluator, budget, **rest)


def thrice(ending: BaseException | Callable[[], object] | None) -> Body:
    """Three batches, then an end, an error, or what a function does."""

    def body(task: Task, run: Run) -> Proposals:
        for _ in range(3):
            yield task.space.sample(run.rng, 10)
        if isinstance(ending, BaseException):
            raise ending
        if ending is not None:
            ending()

    return body


def best_of_thirty() -> float:
    costs_seen: list[float] = []

    def listening(task: Task, run: Run) -> Proposals:
        for _ in range(3):
            costs = yield task.space.sample(run.rng, 10)
            costs_seen.extend(costs.edp.tolist())

    run(listening)
    return min(costs_seen)


@pytest.mark.parametrize(
    ("ending", "stop", "message"),
    [
        (None, "finished", None),
        (interrupts.press, "cancelled", None),
        (InputError("my word"), "failed", "my word"),
        (ZeroDivisionError("oh"), "failed", "mapper 'Scripted' failed: search raised ZeroDivisionError: oh"),
        (KeyboardInterrupt(), "failed", "mapper 'Scripted' failed: search raised KeyboardInterrupt"),
        (SystemExit(0), "failed", "mapper 'Scripted' failed: search ended the program, SystemExit: 0"),
    ],
    ids=["end", "Ctrl-C", "refusal", "crash", "no Ctrl-C", "exit"],
)
def test_an_ending_loses_nothing(
    ending: BaseException | Callable[[], object] | None, stop: str, message: str | None
) -> None:
    with interrupts.heard():
        result = run(thrice(ending))

    assert (result.stop, result.evaluated) == (stop, 30)
    assert result.best is not None and result.value == best_of_thirty()
    error = None if result.error is None else str(result.error)
    assert error == message or (error or "").startswith(f"{message} at {__file__}:")


def test_the_model_may_crash_or_be_interrupted_too() -> None:
    happenings: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: 1 // 0, "failed"),
        (interrupts.press, "cancelled"),
    )
    for what, stop in happenings:

        class Failing(PlainEvaluator):
            calls = 0
            happens = staticmethod(what)

            def evaluate_batch(self, batch: MappingBatch) -> Costs:
                self.calls += len(batch) > 0  # nothing is evaluated first, to warm up
                if self.calls > 2:
                    self.happens()
                return super().evaluate_batch(batch)

        with interrupts.heard():
            result = run(evaluator=Failing(SAMPLE.problem, SAMPLE.architecture))
        assert (result.stop, result.evaluated) == (stop, 20)
        assert result.best is not None


def test_a_mapper_that_goes_on_after_being_closed_loses_no_result() -> None:
    def stubborn(task: Task, run: Run) -> Proposals:
        try:
            yield from drawing(task, run)
        except GeneratorExit:
            yield task.space.sample(run.rng, 10)

    result = run(stubborn, Budget(evaluations=20))

    assert result.stop == "failed" and isinstance(result.error, PluginError)
    assert "closing the search raised RuntimeError: generator ignored GeneratorExit" in str(result.error)
    assert result.best is not None and result.evaluated == 20


def test_a_mapper_is_closed_when_the_search_is_over() -> None:
    closed = []

    def careful(task: Task, run: Run) -> Proposals:
        try:
            yield from drawing(task, run)
        finally:
            closed.append(True)

    run(careful, Budget(evaluations=20))
    assert closed == [True]


def test_evaluations_are_never_exceeded() -> None:
    result = run(budget=Budget(evaluations=25))

    assert (result.stop, result.evaluated) == ("evaluations", 25)


def test_a_mapper_that_is_done_with_its_last_evaluation_may_prove_it() -> None:
    def proving(task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 10)
        run.prove(1.0)

    result = run(proving, Budget(evaluations=10))

    assert (result.stop, result.evaluated, result.lower_bound) == ("finished", 10, 1.0)


def test_patience_counts_evaluations_without_a_better_mapping() -> None:
    def same(task: Task, run: Run) -> Proposals:
        mapping = next(each for each in task.space.enumerate(50) if EVALUATOR.evaluate_batch(each.batch()).valid.all())
        while True:
            yield mapping.take(slice(0, 5))

    result = run(same, Budget(patience=12))

    assert (result.stop, result.evaluated) == ("patience", 15)


def test_the_deadline_is_that_of_the_given_clock() -> None:
    now = iter(range(1000))
    result = run(budget=Budget(seconds=40), clock=lambda: float(next(now)))

    assert result.stop == "deadline" and 0 < result.evaluated < 1000


def test_a_large_batch_is_evaluated_in_pieces_and_left_at_the_deadline() -> None:
    """The mapper is told all costs in order; a slow model is not asked for more than the time allows."""
    sizes: list[int] = []

    class Noting(PlainEvaluator):
        def evaluate_batch(self, batch: MappingBatch) -> Costs:
            sizes.append(len(batch))
            return super().evaluate_batch(batch)

    def at_once(task: Task, run: Run) -> Proposals:
        batch = task.space.sample(run.rng, 3000)
        costs = yield batch
        assert np.array_equal(costs.edp, EVALUATOR.evaluate_batch(batch.batch()).edp)

    noting = Noting(SAMPLE.problem, SAMPLE.architecture)
    result = run(at_once, evaluator=noting)
    assert (result.stop, result.evaluated, sum(sizes)) == ("finished", 3000, 3000) and len(sizes) > 1

    now = iter(range(1000))
    result = run(at_once, Budget(seconds=1), evaluator=noting, clock=lambda: float(next(now)))
    assert result.stop == "deadline" and 0 < result.evaluated < 3000 and result.best is not None


def test_one_seed_gives_one_result() -> None:
    one, other, third = (run(budget=Budget(evaluations=30), seed=seed) for seed in (5, 5, 6))

    assert (one.best, one.value, one.seed) == (other.best, other.value, 5)
    assert third.best != one.best


def test_lists_of_mappings_are_as_good_as_batches() -> None:
    def one_by_one(task: Task, run: Run) -> Proposals:
        while True:
            yield list(task.space.sample(run.rng, 10))

    assert run(one_by_one, Budget(evaluations=30)).best == run(budget=Budget(evaluations=30)).best


def test_what_a_lax_model_accepts_but_no_hardware_does_is_not_the_best() -> None:
    class Lax(PlainEvaluator):
        def evaluate_batch(self, batch: MappingBatch) -> Costs:
            honest = super().evaluate_batch(batch)
            free = np.where(honest.valid, honest.energy_pj, 0.0), np.where(honest.valid, honest.cycles, least)
            return Costs(np.ones(len(batch), dtype=np.bool_), *free)

    tight = SAMPLES[3]
    least = tight.problem.macs / tight.architecture.compute_instances
    honest = PlainEvaluator(tight.problem, tight.architecture)
    lax = Lax(tight.problem, tight.architecture)
    results = [search(Scripted(drawing), Task(tight.space), each, Budget(300)) for each in (honest, lax)]

    assert results[0].best == results[1].best and results[1].best is not None
    assert results[1].rejected > 0


def test_a_proved_bound_gives_the_gap() -> None:
    def proving(task: Task, run: Run) -> Proposals:
        costs = yield task.space.sample(run.rng, 50)
        run.prove(float(costs.edp.min()) / 2)

    result = run(proving)

    assert result.gap == 0.5
    assert run(thrice(None)).gap is None


def test_a_watcher_is_told_after_every_batch() -> None:
    seen: list[Progress] = []
    result = run(thrice(None), on_progress=seen.append)

    assert [each.evaluated for each in seen] == [10, 20, 30]
    assert seen[-1].best == result.value and seen[0].best >= seen[-1].best


def test_a_mapper_that_ends_because_the_time_is_over_is_not_done() -> None:
    def polite(task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 10)
        while not run.exhausted:
            pass

    ticks = itertools.count()
    assert run(polite, Budget(seconds=100), clock=lambda: float(next(ticks))).stop == "deadline"
    assert run(thrice(None), Budget(seconds=100)).stop == "finished"


def test_a_search_that_ends_before_its_first_mapping_tries_the_plain_ones() -> None:
    def late(task: Task, run: Run) -> Proposals:
        while not run.exhausted:
            pass
        yield from ()

    ticks = itertools.count()
    result = run(late, Budget(seconds=100), clock=lambda: float(next(ticks)))
    plain = EVALUATOR.evaluate_batch(TASK.space.plain().batch()).of(TASK.objective)
    assert (result.stop, result.evaluated) == ("deadline", len(plain))
    assert result.best is not None and result.value == plain.min()


def test_a_mapper_may_stop_early_for_want_of_time_and_tell_figures() -> None:
    def hasty(task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 10)
        run.short_of_time = True
        run.figures["program_bound"] = 2.5

    result = run(hasty, Budget(seconds=1000))
    assert (result.stop, result.figures) == ("deadline", {"program_bound": 2.5})


def test_a_mapper_describes_the_best_mapping_wherever_the_search_ends() -> None:
    class Describing(Scripted):
        def figures(self, task: Task, best: Mapping) -> Any:
            described.append(best)
            return told

    def few(task: Task, run: Run) -> Proposals:
        run.figures["drawn"] = 10.0
        yield task.space.sample(run.rng, 10)

    described: list[Mapping] = []
    told: Any = {"levels": 2.0}
    for body, found in ((few, {"drawn": 10.0, "levels": 2.0}), (drawing, {"levels": 2.0})):
        result = search(Describing(body), TASK, EVALUATOR, Budget(evaluations=20))
        assert (result.figures, described.pop()) == (found, result.best)
    for wrong in ({"levels": math.inf}, [2.0]):
        told = wrong
        assert isinstance(search(Describing(few), TASK, EVALUATOR, Budget()).error, PluginError)


def test_a_mapper_that_asks_and_stops_was_stopped_by_the_limit() -> None:
    """Whether it looks before each batch or is ended; one that is done by then has finished."""

    def asking(task: Task, run: Run) -> Proposals:
        while not run.exhausted:
            yield task.space.sample(run.rng, 10)

    assert run(asking, Budget(evaluations=30)).stop == run(drawing, Budget(evaluations=30)).stop == "evaluations"
    assert run(thrice(None), Budget(evaluations=30)).stop == "finished"


def test_the_history_does_not_depend_on_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which the machine's speed decides."""

    def drawing(task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 400)

    histories = []
    for piece in (1, 7, 400):
        monkeypatch.setattr("tilewright.application.run.search.FIRST_PIECE", piece)
        histories.append(run(drawing, seed=3).history)
    assert len(histories[0]) > 2 and histories[0] == histories[1] == histories[2]

"""A search that finds nothing tells the commonest reasons of a sample of its proposals."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from support import interrupts
from tilewright.application.run import rejections
from tilewright.application.run.rejections import SAMPLED, RejectionSample
from tilewright.application.run.search import search
from tilewright.mapspace.batch import MappingBatch
from tilewright.plugin.costmodel import BatchEvaluator, Costs
from tilewright.plugin.mapper import Budget, Proposals, Run, Task
from tilewright.plugin.result import Result
from tilewright.reports import Report
from tilewright.schema.mapping import Mapping
from tilewright.testing.corpus import SAMPLES, cramped
from tilewright.testing.reference import PlainModel

GEMM = next(sample for sample in SAMPLES if str(sample) == "gemm on flat")
FULL = cramped(GEMM)


class Drawing:
    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield task.space.sample(run.rng, 64)


class Choosy(BatchEvaluator):
    """Rejects everything, for its first loop; breaks when it is asked why, if so told."""

    def __init__(self, asked: Callable[[], object] | None = None) -> None:
        self.asked = asked

    def evaluate_batch(self, batch: MappingBatch) -> Costs:
        nothing = np.full(len(batch), np.inf)
        return Costs(np.zeros(len(batch), dtype=np.bool_), nothing, nothing)

    def explain(self, mapping: Mapping) -> Report:
        if self.asked is not None:
            self.asked()
        first = next((loop.dimension for loop in mapping.loops()), "nothing")
        reason = {"code": "taste", "where": f"dimension {first}", "message": "is first"}
        return Report.model_validate(
            {"model": "m", "problem": "p", "valid": False, "macs": GEMM.problem.macs, "reasons": [reason] * 2}
        )


def found(evaluator: BatchEvaluator, evaluations: int = 1000) -> Result:
    return search(Drawing(), Task(GEMM.space), evaluator, Budget(evaluations=evaluations))


def test_what_breaks_the_rules_is_told_by_the_rules() -> None:
    evaluator = PlainModel().bind(FULL.problem, FULL.architecture)
    result = search(Drawing(), Task(FULL.space), evaluator, Budget(evaluations=1000))
    assert result.best is None and result.rejections is not None
    first = result.rejections.reasons[0]
    assert (result.rejections.sampled, first.code, first.where, first.count) == (SAMPLED, "capacity", "Buffer", SAMPLED)
    told = (
        f"1,000 tried, stopped by evaluations; of {SAMPLED} sampled, {SAMPLED} because of Buffer [capacity], such as: "
    )
    assert result.told.startswith(told)


def test_what_keeps_the_rules_is_told_by_the_model() -> None:
    """Reasons in the order of their counts; one that a mapping has twice counts once."""
    told = found(Choosy()).rejections
    assert told is not None and {reason.code for reason in told.reasons} == {"capacity", "taste"}
    assert [reason.count for reason in told.reasons] == sorted((reason.count for reason in told.reasons), reverse=True)
    by_taste = sum(reason.count for reason in told.reasons if reason.code == "taste")
    by_rule = max(reason.count for reason in told.reasons if reason.code == "capacity")
    assert by_taste + by_rule == told.sampled == SAMPLED


def test_nothing_is_told_where_something_was_found() -> None:
    assert found(PlainModel().bind(GEMM.problem, GEMM.architecture)).rejections is None


def test_the_sample_is_of_the_whole_search() -> None:
    """However long it was; never more than twice as many as are explained."""
    sample, batch = RejectionSample(), GEMM.batch(64)
    for piece in range(500):
        sample.add(batch.take(slice(0, 1 + piece % 64)))
        assert len(sample.kept) <= 2 * SAMPLED
    assert len(sample.kept) > SAMPLED
    told = sample.explained(Task(GEMM.space), Choosy())
    assert told is not None and told.sampled == SAMPLED


def test_the_sample_does_not_depend_on_the_pieces() -> None:
    """Which the machine's speed decides."""
    batch = GEMM.batch(64)
    whole = MappingBatch.join([batch] * 40)
    one, many = RejectionSample(), RejectionSample()
    one.add(whole)
    ends = [0, 1, 8, 64, 500, 503, 2000, len(whole)]
    for start, end in pairwise(ends):
        many.add(whole.take(slice(start, end)))
    assert len(one.kept) > SAMPLED
    assert [each[0] for each in one.kept] == [each[0] for each in many.kept]


def test_explaining_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejections, "SECONDS", -1.0)
    told = found(Choosy()).rejections
    assert told is not None and told.sampled == 1


def test_a_model_that_breaks_when_asked_why_loses_no_result() -> None:
    result = found(Choosy(lambda: 1 // 0))
    assert (result.stop, result.error, result.evaluated) == ("evaluations", None, 1000)
    assert (
        "because of the cost model [plugin_failed], such as: cost model 'Choosy' failed: explain raised" in result.told
    )


def test_an_interruption_meanwhile_ends_the_search() -> None:
    with interrupts.heard():
        result = found(Choosy(interrupts.press))
    assert (result.stop, result.error, result.rejections) == ("cancelled", None, None)

"""Ways to compute a layer: asked for under guard, mapped like layers, totalled, written, and verified."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from support.contractions import contractions
from tilewright.application.algorithms.expansion import BuiltAlgorithm, Expansion
from tilewright.application.algorithms.totals import Cost, movement_cost
from tilewright.errors import InputError, PluginError, UnknownPluginError
from tilewright.plugin import Alternative, FrozenDict, Movement, installed
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.kinds import guarded
from tilewright.plugin.registry import Registration
from tilewright.plugin.specs import AlgorithmSpec
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.problem import Rank
from tilewright.testing import cases

CONTRACTION = "abk,kn->nab; a=4 b=3 k=2 n=5"
TRANSPOSED = "akb,nk->bna; a=4 b=3 k=2 n=5"


def mapped(formula: str, **words: Any) -> tw.MappingReport:
    return tw.map(formula, "union_edge", mapper="random", evaluations=200, cache=False, **words)


# -- totals ------------------------------------------------------------------------------------------------------


def test_movements_are_paid_in_the_outermost_memory() -> None:
    problem, edge = tw.load(TRANSPOSED, kind="problem"), tw.load("union_edge", kind="architecture")
    dram = edge.memories[0]
    moved = movement_cost(Movement(tensor="A", words_read=24, words_written=48, reason="for example"), problem, edge)

    assert moved.energy_pj == 24 * dram.read_energy_pj + 48 * dram.write_energy_pj
    assert moved.cycles == 48 / (dram.write_bandwidth_words_per_cycle or 0)


def test_blocks_and_unlimited_memories() -> None:
    problem = tw.load(TRANSPOSED, kind="problem")
    wide = tw.load("union_edge", kind="architecture").replace(
        {
            "DRAM.block_words": 10,
            "DRAM.read_bandwidth_words_per_cycle": None,
            "DRAM.write_bandwidth_words_per_cycle": None,
        }
    )

    moved = movement_cost(Movement(tensor="A", words_read=24, words_written=0, reason="for example"), problem, wide)

    assert moved == Cost(3 * wide.memories[0].read_energy_pj, 0)


def test_each_way_is_its_steps_and_what_is_moved() -> None:
    report = mapped(TRANSPOSED, algorithms="native,ttgt")
    native, ttgt = report.choices

    assert [choice.offer.name for choice in report.choices] == ["native", "ttgt"]
    assert native.moved == Cost() and ttgt.moved.energy_pj > 0 and ttgt.moved.cycles > 0
    for each, layer in zip(report.choices, ("einsum", "einsum.ttgt"), strict=True):
        assert each.steps == Cost(report[layer].energy_pj or 0, report[layer].cycles or 0)
        assert each.total == Cost(each.steps.energy_pj + each.moved.energy_pj, each.steps.cycles + each.moved.cycles)
    best = min(report.choices, key=lambda each: each.total.edp if each.total else 0)
    assert best.is_best and best.total is not None
    assert (report.energy_pj, report.cycles, report.edp) == (best.total.energy_pj, best.total.cycles, best.total.edp)
    assert report.macs == report.workload.macs


def test_without_movements_totals_are_those_of_the_steps() -> None:
    report = mapped(TRANSPOSED, algorithms=["ttgt"], movement="none")

    assert [choice.total for choice in report.choices] == [choice.steps for choice in report.choices]


def test_every_search_has_the_same_budget() -> None:
    report = mapped(TRANSPOSED, algorithms="native,ttgt,loop_over_gemm")

    assert [layer.result.evaluated for layer in report.layers if layer.result] == [200, 200, 200]


def test_loops_around_a_step_count_it_as_often() -> None:
    report = mapped(TRANSPOSED, algorithms="loop_over_gemm")
    (choice,) = report.choices
    (layer,) = report.layers

    assert layer.count == 3 and choice.steps == Cost(layer.energy_pj or 0, layer.cycles or 0) * 3


def test_ways_that_share_a_step_are_searched_once() -> None:
    report = mapped("O[p] += I[p+r] * W[r]; p=6 r=3", algorithms="im2col")

    assert len(report.layers) == 1 and report.layers[0].count == 1
    assert [choice.offer.name for choice in report.choices] == ["im2col.explicit", "im2col.implicit"]


def test_an_algorithm_that_does_not_apply_says_why_and_the_others_count() -> None:
    report = mapped(CONTRACTION, algorithms="native,im2col")

    assert [choice.total is None for choice in report.choices] == [False, True]
    assert report.complete and "it is a gemm" in str(report)


def test_a_layer_without_any_way_is_told() -> None:
    report = mapped(CONTRACTION, algorithms="im2col")

    assert not report.complete and report.edp is None
    assert "no alternative for einsum has a mapping" in "\n".join(report.messages())


def test_an_interrupted_run_has_no_totals() -> None:
    report = mapped(TRANSPOSED, algorithms="native,ttgt")
    part = tw.MappingReport(report.workload, report.configuration, report.layers[:1], expansion=report.expansion)

    assert part.missing == 1
    assert [choice.total is None for choice in part.choices] == [False, True]


def test_words_are_checked() -> None:
    with pytest.raises(UnknownPluginError, match="did you mean 'ttgt'"):
        mapped(CONTRACTION, algorithms="ttgd")
    with pytest.raises(InputError, match="movement must be one of counted, none"):
        mapped(CONTRACTION, algorithms="ttgt", movement="some")
    with pytest.raises(InputError, match="unknown option"):
        mapped(CONTRACTION, algorithms="ttgt", algorithm_options={"x": 1})


# -- files -------------------------------------------------------------------------------------------------------


def test_the_mapping_file_keeps_what_became_of_the_dimensions(tmp_path: Path) -> None:
    report = mapped(TRANSPOSED, algorithms="native,ttgt", folder=tmp_path)
    native, ttgt = (tw.MappedProblem.from_yaml(path.read_text()) for path in sorted(tmp_path.glob("0*.yaml")))

    assert native.alternatives == ()
    (record,) = ttgt.alternatives
    assert record.algorithm.name == "ttgt" and record.problem == report.workload.layers[0].problem
    assert record.alternative == report.choices[1].offer.alternative
    assert dict(record.alternative.dimensions) == {"M": ("b", "a"), "N": ("n",), "K": ("k",)} or dict(
        record.alternative.dimensions
    ) == {"M": ("a", "b"), "N": ("n",), "K": ("k",)}
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [row["name"] for row in summary["algorithms"]] == ["native", "ttgt"]


@pytest.mark.exhaustive
@given(contractions(most=2000), st.sampled_from(["ttgt", "loop_over_gemm"]))
@settings(max_examples=10)
def test_verify_shows_that_the_alternative_computes_the_same_tensor(
    tmp_path_factory: pytest.TempPathFactory, problem: tw.Problem, algorithm: str
) -> None:
    folder = tmp_path_factory.mktemp("mapped")
    tw.map(problem, "union_edge", mapper="random", evaluations=20, cache=False, algorithms=algorithm, folder=folder)
    for path in folder.glob("0*.yaml"):
        report = tw.verify(path)
        assert report.right and all(way.equality and way.equality.right for way in report.alternatives)
        assert len(report.alternatives) == (
            problem.content_key != tw.MappedProblem.from_yaml(path.read_text()).problem.content_key
        )


def test_verify_tells_of_an_alternative_that_computes_something_else(tmp_path: Path) -> None:
    mapped("akb,nkb->ban; a=4 b=4 k=2 n=4", algorithms="ttgt", folder=tmp_path)
    (path,) = tmp_path.glob("0*.yaml")
    file = tw.MappedProblem.from_yaml(path.read_text())
    (record,) = file.alternatives
    swapped = FrozenDict({**record.alternative.dimensions, "M": ("k",), "K": ("a",)})
    wrong = record.model_copy(update={"alternative": record.alternative.model_copy(update={"dimensions": swapped})})
    path.write_text(file.model_copy(update={"alternatives": (wrong,)}).to_yaml())

    report = tw.verify(path)

    assert not report.right and report.legal
    assert "the steps do not suit the problem" in str(report)


# -- the guard and the conformance kit -----------------------------------------------------------------------------


def changed(**fields: Any) -> Callable[[Alternative], Any]:
    return lambda found: found.model_copy(update=fields)


def step(change: Callable[[Any], Any]) -> Callable[[Alternative], Any]:
    """The last step's layer changed."""

    def apply(found: Alternative) -> Any:
        *before, last = found.steps.layers
        return found.model_copy(update={"steps": found.steps.model_copy(update={"layers": (*before, change(last))})})

    return apply


def resized(layer: Any) -> Any:
    problem = layer.problem
    return layer.model_copy(
        update={"problem": problem.model_copy(update={"dimensions": FrozenDict({**problem.dimensions, "M": 13})})}
    )


def renamed(layer: Any) -> Any:
    first, *rest = layer.problem.tensors
    tensors = (first.model_copy(update={"name": "Q"}), *rest)
    return layer.model_copy(update={"problem": layer.problem.model_copy(update={"tensors": tensors})})


FAULTS: dict[str, tuple[Callable[[Alternative], Any], str]] = {
    "no list": (lambda found: None, "returned None, a list"),
    "no alternative": (lambda found: [3], "an Alternative is expected"),
    "empty": (lambda found: [], "at least one Alternative"),
    "two of one name": (lambda found: [found, found], "have one name"),
    "unknown dimension": (
        changed(dimensions=FrozenDict({"M": ("a", "z"), "N": ("n",), "K": ("k",)})),
        "z is not a dimension",
    ),
    "dimension twice": (
        changed(dimensions=FrozenDict({"M": ("a", "b"), "N": ("n",), "K": ("k", "a")})),
        "is repeated in `dimensions`",
    ),
    "no steps": (lambda found: changed(steps=found.steps.model_copy(update={"layers": ()}))(found), "it has no steps"),
    "size": (step(resized), "M of step product has size 13"),
    "count": (step(lambda layer: layer.model_copy(update={"count": 2})), "counts 2 times"),
    "stranger": (step(renamed), "Q of step product is not A or B"),
    "a loop nobody counts": (changed(dimensions=FrozenDict({"M": ("a",), "N": ("n",), "K": ("k",)})), "has size 12"),
    "moves a stranger": (
        changed(movements=(Movement(tensor="Q", words_read=1, words_written=1, reason="?"),)),
        "it moves Q, which is not a tensor",
    ),
}


class Changed:
    """TTGT, whose answer is changed."""

    def __init__(self, change: Callable[[Alternative], Any]) -> None:
        self.change = change

    def alternatives(self, problem: tw.Problem) -> Any:
        (way,) = installed().make(AlgorithmSpec, "ttgt").alternatives(problem)
        answer = self.change(way)
        return [answer] if isinstance(answer, Alternative) else answer


@pytest.mark.parametrize("fault", FAULTS)
def test_the_guard_names_what_is_wrong(fault: str) -> None:
    change, told = FAULTS[fault]
    algorithm = guarded(AlgorithmSpec, Changed(change), Owner("algorithm", "odd", "tilewright-odd", "1.0"))

    with pytest.raises(PluginError, match=r"algorithm 'odd' of tilewright-odd 1.0") as error:
        algorithm.alternatives(tw.load(TRANSPOSED, kind="problem"))
    assert told in str(error.value)


def test_one_that_crashes_is_a_row_with_the_reason() -> None:
    def crash(found: Alternative) -> Any:
        raise ZeroDivisionError("over")

    algorithm = guarded(AlgorithmSpec, Changed(crash), Owner("algorithm", "odd", "tilewright-odd", "1.0"))
    network = tw.load(TRANSPOSED, kind="workload")
    (offer,) = Expansion.of(network, [BuiltAlgorithm(PluginRecord(name="odd"), algorithm)]).offers

    assert offer.alternative is None and "ZeroDivisionError" in str(offer.reasons[0])


def outcomes(change: Callable[[Alternative], Any]) -> dict[str, str]:
    spec = AlgorithmSpec(name="odd", summary="Odd.", factory=lambda options: Changed(change))
    found = [case.outcome() for case in cases(Registration(spec, "tilewright-odd", "1.0"))]
    return {each.check: each.message for each in found if each.status == "failed"}


def by_chance(found: Alternative) -> Alternative:
    return found.model_copy(update={"remark": str(random.random())})


def talking(found: Alternative) -> Alternative:
    print("found")
    return found


def mixing(layer: Any) -> Any:
    """The first operand's words overlap: shapes are right, numbers are not."""
    first, *rest = layer.problem.tensors
    names = [name for rank in first.projection for name in rank.terms]
    one = first.model_copy(update={"projection": (Rank(terms=FrozenDict(dict.fromkeys(names, 1))),)})
    return layer.model_copy(update={"problem": layer.problem.model_copy(update={"tensors": (one, *rest)})})


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("change", "check"),
    [
        (changed(movements=()), "check_algorithm_moves_what_does_not_lie_right"),
        (by_chance, "check_algorithm_answers_the_same_twice"),
        (step(renamed), "check_algorithm_alternatives_are_whole"),
        (step(mixing), "check_algorithm_computes_the_same_tensor"),
        (step(lambda layer: layer.model_copy(update={"count": 3})), "check_algorithm_alternatives_are_whole"),
        (talking, "check_prints_nothing"),
    ],
)
def test_the_conformance_kit_catches_it(change: Callable[[Alternative], Any], check: str) -> None:
    assert check in outcomes(change)


def test_the_kit_passes_what_is_not_changed() -> None:
    assert set(outcomes(lambda found: found)) <= {"check_import_is_light"}  # this file cannot be imported by its name

"""Timeloop's figures on sparse hardware, reproduced: 296 recorded runs, read from Timeloop's files."""

import gzip
import itertools
import json
import math
import pickle
import re
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

from support import DATA
from support.profiles import first
from support.sparse_batches import compared
from support.sparse_triples import architecture_of, mapping_of, problem_of
from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet
from tilewright.reports import AccessCounts, Report, TensorCounts
from tilewright.schema.density import Density
from tilewright.schema.document import parse_document
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_costmodels import OracleOptions, TimeloopOptions
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_costmodels.timeloop.model import TimeloopEvaluator, TimeloopModel
from tilewright_costmodels.timeloop.sparse.densities import Actual, Banded, Structured, Uniform, hypergeometric

RECORDED = json.loads(gzip.decompress((DATA / "sparse_timeloop" / "cases.json.gz").read_bytes()))
CASES = {case["id"]: case for case in RECORDED["cases"]}
MODEL = TimeloopModel(TimeloopOptions())


def read(case: dict[str, Any], **changes: Any) -> InputSet:
    """Return the inputs of a case, with changed sections, as the adapter reads them."""
    hardware = RECORDED["parts"][case["hardware"]]
    sections = {
        "architecture": hardware["architecture"],
        "ERT": hardware["ERT"],
        "problem": {"shape": RECORDED["parts"][case["shape"]], "instance": case["instance"]},
        "sparse_optimizations": case["sparse_optimizations"],
        "mapping": case["mapping"],
    }
    return TimeloopAdapter().read([parse_document(json.dumps(sections | changes), source="case.yaml")])


@cache
def inputs(name: str) -> InputSet:
    return read(CASES[name])


def explained(found: InputSet) -> Report:
    assert found.problem and found.architecture and found.mapping
    return MODEL.bind(found.problem, found.architecture).explain(found.mapping)


def test_every_recorded_run_is_here() -> None:
    assert len(CASES) == 296
    assert sum(case["sensitive"] for case in CASES.values()) == 88
    assert {quirk for case in CASES.values() for quirk in case["quirks"]} >= {"no_instance", "metadata_not_scaled"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if case["quick"] else pytest.mark.exhaustive) for name, case in CASES.items()]
)
def test_a_report_reproduces_timeloop(name: str) -> None:
    """Counts may differ by one, and energies by its share, only where a count is a rounded sum of probabilities."""
    case, report = CASES[name], explained(inputs(name))
    assert report.valid, report.reasons
    off = 1 if case["sensitive"] else 0
    cycles, energy_pj, *operations = case["total"]
    assert report.cycles == pytest.approx(cycles, rel=0, abs=off)
    assert report.energy_pj == pytest.approx(energy_pj, rel=0.01 * off + 1e-6)
    if report.actual_operations is not None:
        found = [report.actual_operations, report.gated_operations, report.skipped_operations]
        assert found == pytest.approx(operations, rel=0, abs=off)
    levels = {level.name: level for level in report.levels}
    for place, expected in case["levels"].items():
        level, tensor = place.split()
        check_counts(levels[level].tensors[tensor], expected, off)
    told = {code for warning in report.warnings for code in re.findall(r"\[(\w+)\]$", warning)}
    assert told == set(case["quirks"]) - {"banded_offset"}


def check_counts(counts: TensorCounts, expected: dict[str, Any], off: int) -> None:
    """Compare the counts of one tensor at one level."""
    sparse = counts.sparse
    for action in ("reads", "fills", "updates"):
        found = [getattr(counts, action)]
        found += [getattr(kind, action) for kind in (sparse.gated, sparse.skipped)] if sparse else [0, 0]
        assert found == pytest.approx(expected[action], rel=0, abs=off), action
    assert counts.energy_pj == pytest.approx(expected["energy"], rel=0.1 * off + 1e-6)
    assert counts.instances == expected["instances"][0]
    if sparse is None:
        return
    assert sparse.average_instances == pytest.approx(expected["instances"][1], rel=1e-6, abs=1e-6)
    assert sparse.stored_words == (expected["words"] or sparse.stored_words)
    ranks = sparse.metadata[::-1]
    for number, pieces in enumerate(expected.get("stored", ())):
        check_pieces([ranks[number].metadata.stored, ranks[number].payload.stored], pieces, off)
    for action in ("reads", "fills", "updates"):
        for kind, recorded in zip(("actual", "gated", "skipped"), expected.get(f"metadata_{action}", ()), strict=False):
            for number, pieces in enumerate(recorded or ()):
                both = (ranks[number].metadata, ranks[number].payload)
                check_pieces([getattr(getattr(each, kind), action) for each in both], pieces, off)


def check_pieces(found: list[int], recorded: list[int], off: int) -> None:
    """Compare pieces of metadata and payloads; Timeloop prints 0 for those of 0 bits."""
    for ours, theirs in zip(found, recorded, strict=True):
        assert not theirs or abs(ours - theirs) <= off


def test_dense_hardware_is_evaluated_as_before() -> None:
    result = read(CASES["directed_gate_and_skip"], sparse_optimizations=None)
    assert result.problem and result.architecture and result.mapping
    evaluator = MODEL.bind(result.problem, result.architecture)
    assert isinstance(evaluator, TimeloopEvaluator)
    report = evaluator.explain(result.mapping)
    assert report.actual_operations is None
    assert all(counts.sparse is None for level in report.levels for counts in level.tensors.values())


def test_a_batch_costs_what_reports_say() -> None:
    found = inputs("A2_mixed_gemm_c_06")
    assert found.problem and found.architecture and found.mapping
    evaluator = MODEL.bind(found.problem, found.architecture)
    report = evaluator.explain(found.mapping)
    batch = MappingBatch.pack(found.problem, [found.mapping] * 2)
    for each in (evaluator, pickle.loads(pickle.dumps(evaluator))):
        costs = each.evaluate_batch(batch)
        assert costs.energy_pj == pytest.approx([report.energy_pj] * 2, rel=1e-12)
        assert costs.cycles.tolist() == [report.cycles] * 2


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if case["quick"] else pytest.mark.exhaustive) for name, case in CASES.items()]
)
def test_a_batch_of_one_costs_what_the_report_says(name: str) -> None:
    found = inputs(name)
    assert found.problem and found.architecture and found.mapping
    evaluator = MODEL.bind(found.problem, found.architecture)
    report, costs = evaluator.explain(found.mapping), evaluator.evaluate_batch(batch_of(found))
    assert costs.energy_pj == pytest.approx([report.energy_pj], rel=1e-12)
    assert costs.cycles.tolist() == [report.cycles]


def batch_of(found: InputSet) -> MappingBatch:
    assert found.problem and found.mapping
    return MappingBatch.pack(found.problem, [found.mapping])


@pytest.mark.parametrize("seed", first(7, *range(14)))
def test_a_batch_costs_what_single_mappings_do(seed: int) -> None:
    compared(seed)


def test_hardware_that_skips_units_is_evaluated_in_batches() -> None:
    case = next(name for name, each in CASES.items() if "skipping_spatial" in json.dumps(each["sparse_optimizations"]))
    found = inputs(case)
    assert found.problem and found.architecture and found.mapping
    evaluator = MODEL.bind(found.problem, found.architecture)
    report, batch = evaluator.explain(found.mapping), batch_of(found)
    costs = evaluator.evaluate_batch(MappingBatch.join([batch] * 3))
    assert costs.energy_pj == pytest.approx([report.energy_pj] * 3, rel=1e-12)
    assert costs.cycles.tolist() == [report.cycles] * 3


def test_blocks_may_reach_beyond_the_data() -> None:
    """A condition's tile is the whole tensor at most."""
    found = Actual(np.array([[True, False], [False, False]]))
    assert (found.empty((4, 1)), found.empty((1, 8)), found.empty((4, 4))) == (0.5, 0.5, 0.0)
    assert (found.most((4, 4)), found.mean((4, 1))) == (1, 0.5)


def test_printed_reports_show_what_zeros_save() -> None:
    report = explained(inputs("directed_stc_like_half"))
    assert "1,024 MACs: 512 executed, 0 gated, 0 skipped" in str(report)
    text = str(report.explained())
    assert re.search(r"GLB +A +reads +256 +128 +0 +0 +", text)
    assert re.search(r"GLB +A +UOP +", text)


def sparse(level: str, **parts: Any) -> dict[str, Any]:
    return {"targets": [{"name": level} | parts]}


def test_a_rank_for_every_loop_or_a_refusal() -> None:
    formats = {"data_spaces": [{"name": "A", "ranks": [{"format": "CP", "metadata_word_bits": 4}]}]}
    result = read(
        CASES["directed_gate_and_skip"],
        sparse_optimizations=sparse("DRAM", representation_format=formats),
    )
    (reason,) = explained(result).reasons
    assert (reason.code, reason.where) == ("format", "DRAM")


@pytest.mark.parametrize(
    ("code", "actions"),
    [
        ("self_condition", [{"type": "skipping", "target": "A", "condition_on": ["A"]}]),
        ("spatial_conditions", [{"type": "skipping_spatial", "target": "Z", "condition_on": ["A", "B"]}]),
    ],
)
def test_actions_that_are_not_covered_are_refused_by_name(code: str, actions: list[dict[str, Any]]) -> None:
    result = read(CASES["directed_gate_and_skip"], sparse_optimizations=sparse("Buffer", action_optimization=actions))
    with pytest.raises(NotConformableError) as refused:
        explained(result)
    assert [reason.code for reason in refused.value.reasons] == [code]


@pytest.mark.parametrize(("width", "message"), [(4, "band_width of 4"), (1, "no square matrix")])
def test_bands_that_fit_no_square_matrix_are_refused(width: int, message: str) -> None:
    found = inputs("directed_gate_and_skip")
    assert found.problem is not None and found.architecture is not None
    size = 4 if width == 4 else 2
    sizes = {f"dimensions.{name}": 4 if name == "K" else size for name in found.problem.dimensions}
    tensors = tuple(
        tensor.model_copy(
            update={"density": Density(distribution="banded", band_width=width) if tensor.name == "A" else None}
        )
        for tensor in found.problem.tensors
    )
    problem = found.problem.replace(sizes).model_copy(update={"tensors": tensors})
    with pytest.raises(NotConformableError, match=message):
        MODEL.bind(problem, found.architecture)


def test_an_inner_action_that_saves_less_than_an_outer_one_is_refused() -> None:
    """Nearly all operands A are zero, so the outer memory saves more than the inner one, which watches B."""
    case = CASES["directed_two_levels_same_target"]
    actions = [
        {"name": name, "action_optimization": [{"type": "skipping", "target": "Z", "condition_on": [condition]}]}
        for name, condition in (("DRAM", "A"), ("Buffer", "B"))
    ]
    rare = {"distribution": "hypergeometric", "density": 0.02}
    instance = case["instance"] | {"densities": {"A": rare, "B": 0.9}}
    problem = {"shape": RECORDED["parts"][case["shape"]], "instance": instance}
    (reason,) = explained(read(case, problem=problem, sparse_optimizations={"targets": actions})).reasons
    assert (reason.code, reason.where) == ("negative_saf", "Buffer")


def test_ragged_tiles_are_refused() -> None:
    found = inputs("directed_gate_and_skip")
    assert found.problem and found.architecture and found.mapping
    entries = [
        entry.model_copy(
            update={
                kind: FrozenDict({name: 3 if size == 4 else size for name, size in getattr(entry, kind).items()})
                for kind in ("temporal_tile_sizes", "spatial_tile_sizes")
            }
        )
        for entry in found.mapping.entries
    ]
    report = MODEL.bind(found.problem, found.architecture).explain(Mapping(entries=tuple(entries)))
    assert [reason.code for reason in report.reasons] == ["imperfect"]


def test_probabilities_add_up_and_agree_with_placing_every_value() -> None:
    matrix = Uniform(0.3, 12)
    assert matrix.nonzeros == 4
    assert math.fsum(matrix.occupancies((1, 5)).values()) == pytest.approx(1)
    assert matrix.mean((1, 5)) == pytest.approx(5 * 4 / 12)
    assert matrix.empty((1, 5)) == math.comb(7, 4) / math.comb(12, 4)
    assert matrix.empty((1, 2), within=(1, 5), held=2) == math.comb(3, 2) / math.comb(5, 2)
    assert Structured(0.3).occupancies((2, 5)) == {3: 1.0}
    assert Structured(0.25).empty((1, 3)) == 0.25


@pytest.mark.parametrize(("drawn", "marked", "total"), [(700, 400, 3000), (40, 2000, 5000), (2500, 1300, 5000)])
def test_large_tiles_have_the_probabilities_of_whole_binomials(drawn: int, marked: int, total: int) -> None:
    for found in (0, 1, drawn * marked // total, min(drawn, marked)):
        ways = math.comb(marked, found) * math.comb(total - marked, drawn - found)
        exact = ways / math.comb(total, drawn)
        assert hypergeometric(found, drawn, marked, total) == pytest.approx(exact, rel=1e-12, abs=1e-300)


def test_data_are_counted_tile_by_tile() -> None:
    values = np.random.default_rng(0).random((6, 4, 5)) < 0.3
    found = Actual(values)
    for tile in [(1, 1, 1), (3, 2, 5), (2, 4, 3), (6, 4, 5)]:  # 3 does not divide 5: tiles at every position
        steps = [side if extent % side == 0 else 1 for extent, side in zip(values.shape, tile, strict=True)]
        starts = itertools.product(
            *(range(0, n - side + 1, step) for n, side, step in zip(values.shape, tile, steps, strict=True))
        )
        held = [int(values[a : a + tile[0], b : b + tile[1], c : c + tile[2]].sum()) for a, b, c in starts]
        assert found.occupancies(tile) == {
            count: pytest.approx(held.count(count) / len(held)) for count in sorted(set(held))
        }
        assert (found.most(tile), found.may_be_empty(tile)) == (max(held), 0 in held)
        assert found.mean(tile) == pytest.approx(np.mean(held))
    shares = [found.empty((1, 2, 1), (3, 2, 5), held) * part for held, part in found.occupancies((3, 2, 5)).items()]
    assert sum(shares) == pytest.approx(found.empty((1, 2, 1)))  # these tiles lie side by side


def test_data_give_the_same_costs_in_batches_and_are_executed() -> None:
    generator, compared = np.random.default_rng(2), 0
    for seed in range(60):
        random = Random(seed)
        drawn = problem_of(random, 200)
        tensors = [
            tensor.model_copy(
                update={"density": Density.model_validate({"data": generator.random(shape_of(drawn, tensor)) < 0.4})}
            )
            for tensor in drawn.tensors
        ]
        problem = Problem.model_validate(drawn.model_dump() | {"tensors": [tensor.model_dump() for tensor in tensors]})
        architecture = architecture_of(random, problem)
        mapping = mapping_of(random, problem, architecture)
        if not architecture.sparse_parts or not legality(problem, architecture, mapping):
            continue
        evaluator = MODEL.bind(problem, architecture)
        report, costs = evaluator.explain(mapping), evaluator.evaluate(mapping)
        assert report.valid == costs.valid[0], report.reasons
        if report.valid:
            compared += 1
            assert report.cycles == costs.cycles[0]
            assert report.energy_pj == pytest.approx(costs.energy_pj[0], rel=1e-12)
            executed = OracleModel(OracleOptions()).bind(problem, architecture).explain(mapping)
            assert executed.valid and not any("draws" in warning for warning in executed.warnings)
    assert compared > 10


def shape_of(problem: Problem, tensor: Tensor) -> list[int]:
    return [
        problem.tile_words(Tensor(name="T", role="input", projection=(rank,)), problem.dimensions)
        for rank in tensor.projection
    ]


def test_a_band_is_counted_tile_by_tile() -> None:
    band, side, width = Banded(2, 12), 12, 2
    row, column = np.indices((side, side))
    full = (abs(row - column) <= width).astype(int)
    assert band.density == full.mean()
    counts = full.reshape(4, 3, 4, 3).sum(axis=(1, 3)).ravel()
    assert band.occupancies((3, 3)) == {
        int(value): float((counts == value).mean()) for value in sorted(set(counts.tolist()))
    }
    assert band.most((3, 3)) == counts.max()


def test_counts_of_a_dense_tensor_in_a_format_are_those_of_the_dense_run() -> None:
    report = explained(inputs("directed_density_1"))
    for level in report.levels:
        for counts in level.tensors.values():
            assert counts.sparse is not None
            assert counts.sparse.dense == AccessCounts(reads=counts.reads, fills=counts.fills, updates=counts.updates)

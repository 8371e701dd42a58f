"""Execution on sparse hardware, and what it says about the closed forms of `timeloop`."""

from random import Random
from typing import Any

import numpy as np
import pytest

from support.profiles import first
from support.sparse_executed import Tally
from support.sparse_triples import drawn
from tilewright.application.run.differences import differences
from tilewright.errors import NotConformableError
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import OracleOptions, TimeloopOptions
from tilewright_costmodels.approximations import OF_TIMELOOP
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_costmodels.timeloop.model import TimeloopModel


@pytest.mark.parametrize("count", first(1, 60, 500))
def test_closed_forms_agree_with_execution_or_a_trait_bounds_the_difference(count: int) -> None:
    tally = Tally(0, 0)
    while tally.number["triples"] < count:
        tally.next()
    assert not tally.faults
    assert tally.number["triples without a trait"] > 0.6 * count
    assert max(tally.most.values(), default=0.0) <= 1


def product(density: Any = None, other: Any = None) -> Problem:
    """A product of 4 x 4 matrices."""
    tensors = [
        {"name": "A", "role": "input", "projection": ["M", "K"], "density": density},
        {"name": "B", "role": "weight", "projection": ["K", "N"], "density": other},
        {"name": "Z", "role": "output", "projection": ["M", "N"]},
    ]
    return Problem.model_validate({"name": "product", "dimensions": {"M": 4, "K": 4, "N": 4}, "tensors": tensors})


def machine(compute: dict[str, Any] | None = None, **sparse: Any) -> Architecture:
    """One memory."""
    memory = {"name": "M0", "technology": "dram", "read_energy_pj": 2.0, "write_energy_pj": 1.0, "sparse": sparse}
    cluster = {"name": "C0", "memories": [memory], "fanout": {"size": 1}}
    whole = {"name": "one", "clusters": [cluster], "compute": {"energy_per_operation_pj": 1.0, "sparse": compute}}
    return Architecture.model_validate(whole)


def mapping_of(problem: Problem) -> Mapping:
    sizes, one, order = dict(problem.dimensions), dict.fromkeys(problem.dimensions, 1), tuple(problem.dimensions)
    whole = {"temporal_order": order, "temporal_tile_sizes": sizes, "spatial_tile_sizes": sizes}
    single = {"temporal_order": order, "temporal_tile_sizes": one, "spatial_tile_sizes": one}
    entries = [{"target": "C0", "keep": problem.tensor_names, **whole}, {"target": "C0", **single}]
    return Mapping.model_validate({"entries": entries})


def executed(problem: Problem, architecture: Architecture, **options: Any) -> Report:
    return OracleModel(OracleOptions(**options)).bind(problem, architecture).explain(mapping_of(problem))


BANDED = {"distribution": "banded", "band_width": 0}


def test_a_skipped_operand_saves_its_reads_and_their_operations() -> None:
    """A diagonal matrix has 4 nonzeros, each in 4 of the 64 operations."""
    found = executed(product(BANDED), machine(actions=[{"skip": "B", "when_empty": ["A"]}]))
    counts = found.levels[0].tensors
    assert (counts["A"].reads, counts["B"].reads, counts["Z"].updates) == (64, 16, 64)
    assert counts["B"].sparse is not None and counts["B"].sparse.skipped.reads == 48
    assert (found.actual_operations, found.gated_operations, found.skipped_operations) == (16, 0, 0)
    assert found.cycles == 16
    assert found.energy_pj == 16 + 2 * (64 + 16 + 48) + 64 and not any("draws" in text for text in found.warnings)


def test_gated_operations_take_their_cycle() -> None:
    found = executed(product(BANDED), machine(compute={"gate": True, "gated_pj": 0.5}))
    assert (found.actual_operations, found.gated_operations, found.skipped_operations) == (16, 48, 0)
    assert found.cycles == 64 and found.compute_energy_pj == 16 + 24


def test_a_format_omits_zeros_and_has_metadata() -> None:
    """Every value of a diagonal matrix is read 4 times, with a coordinate."""
    formats = {"A": [{"format": "UOP", "payload_bits": 4}, {"format": "CP", "metadata_bits": 2}]}
    found = executed(product(BANDED), machine(formats=formats, metadata={"width_bits": 8, "depth": 64}))
    counts = found.levels[0].tensors["A"]
    assert counts.reads == 16 and counts.sparse is not None
    outer, inner = counts.sparse.metadata
    assert (outer.payload.stored, outer.payload.actual.reads) == (5, 20)  # offsets of 4 rows
    assert (inner.metadata.stored, inner.metadata.actual.reads) == (4, 16)
    assert counts.sparse.stored_words == 4 and counts.sparse.metadata_bits == 5 * 4 + 4 * 2


def test_sums_that_no_update_wrote_are_not_read_first() -> None:
    """Each sum has one update that is not skipped, so that none is read."""
    found = executed(product(BANDED), machine(actions=[{"skip": "Z", "when_empty": ["A"]}]))
    assert (found.levels[0].tensors["Z"].reads, found.levels[0].tensors["Z"].updates) == (0, 16)


def test_tensors_without_zeros_have_their_dense_counts() -> None:
    problem = product()
    sparse = executed(
        problem,
        machine(actions=[{"skip": "B", "when_empty": ["A"]}], formats={"A": [{"format": "CP", "flatten": "all"}]}),
    )
    dense = executed(problem, machine())
    for level, other in zip(sparse.levels, dense.levels, strict=True):
        for name, counts in level.tensors.items():
            assert (counts.reads, counts.fills, counts.updates) == tuple(
                getattr(other.tensors[name], action) for action in ("reads", "fills", "updates")
            )
    assert sparse.cycles == dense.cycles and sparse.actual_operations == 64


def test_draws_have_a_seed() -> None:
    problem, architecture = (
        product({"distribution": "uniform", "density": 0.4}, 0.3),
        machine(compute={"skip": True}, actions=[{"gate": "B", "when_empty": ["A"]}]),
    )
    first = executed(problem, architecture, draws=3)
    assert first == executed(problem, architecture, draws=3)
    assert first != executed(problem, architecture, draws=3, seed=1)
    assert "means of 3 random draws of the nonzero values, seed 0" in first.warnings


@pytest.mark.parametrize(
    ("sparse", "code"),
    [
        ({"formats": {"A": [{"format": "CP"}]}}, "format"),
        ({"formats": {"A": [{"format": "B"}, {"format": "B"}]}, "metadata": {"width_bits": 8, "depth": 1}}, "metadata"),
    ],
)
def test_what_hardware_cannot_hold_is_refused(sparse: dict[str, Any], code: str) -> None:
    architecture = machine(**sparse).with_memories(lambda memory: memory.model_copy(update={"capacity_words": 64}))
    found = executed(product(BANDED), architecture)
    assert not found.valid and [reason.code for reason in found.reasons] == [code]


def test_skipping_in_space_is_refused_by_name() -> None:
    with pytest.raises(NotConformableError, match="sparse_units|skips units of B"):
        executed(product(BANDED), machine(actions=[{"skip_units": "B", "when_empty": ["A"]}]))


def test_a_structured_tensor_is_as_even_as_possible_in_every_tile() -> None:
    """Of 16 words of density 0.25, each run of 4 that the mapping visits holds one nonzero."""
    found = executed(product(0.25), machine(formats={"A": [{"format": "UOP"}, {"format": "CP"}]}), draws=7)
    counts = found.levels[0].tensors["A"]
    assert counts.reads == 16 and counts.sparse is not None
    assert [rank.metadata.actual.reads for rank in counts.sparse.metadata] == [0, 16]


@pytest.mark.parametrize(
    ("tensor", "condition", "block", "code"), [("Z", "A", 1, "sparse_sums"), ("A", "B", 4, "sparse_tiles")]
)
def test_verify_names_the_cause_of_differences(tensor: str, condition: str, block: int, code: str) -> None:
    """Sums whose first updates were skipped are not read. Blocks are read whole if one of their words is needed."""
    problem = product(BANDED, BANDED)
    architecture = machine(actions=[{"skip": tensor, "when_empty": [condition]}])
    architecture = architecture.with_memories(lambda memory: memory.model_copy(update={"block_words": block}))
    mapping = mapping_of(problem)
    both = (
        executed(problem, architecture),
        TimeloopModel(TimeloopOptions()).bind(problem, architecture).explain(mapping),
    )
    found = differences(problem, architecture, mapping, *both, OF_TIMELOOP)
    causes = {(each.tensor, each.action): {cause.code for cause in each.causes} for each in found}
    assert code in causes[tensor, "reads"]


def test_random_triples_cover_the_hardware() -> None:
    cases = [case for seed in range(60) if (case := drawn(Random(str(seed)))) is not None]
    kinds = {
        saving.kind
        for _, architecture, _ in cases
        for memory in architecture.memories
        if memory.sparse
        for saving in memory.sparse.actions
    }
    densities = {tensor.density.distribution for problem, _, _ in cases for tensor in problem.tensors if tensor.density}
    assert kinds == {"gate", "skip"} and densities == {"structured", "uniform"}
    assert max(len(architecture.clusters) for _, architecture, _ in cases) == 4
    assert np.mean([len(mapping.entries) for _, _, mapping in cases]) > 3

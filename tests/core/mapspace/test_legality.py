"""The array form of legality says what the scalar form says, and neither wraps."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support.profiles import scaled
from tilewright.errors import InputError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.legality import legal, legality, words_needed
from tilewright.mapspace.skeleton import Skeleton
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.testing.strategies import architectures, mappings, problems


@st.composite
def corrupted(draw: st.DrawFn) -> tuple[Problem, Architecture, MappingBatch]:
    """Draw a batch of mappings with random changes of some numbers, names and keeps."""
    problem, architecture = draw(problems(max_operands=2)), draw(architectures(roomy=False, widths=True))
    found = draw(st.lists(mappings(problem, architecture), min_size=1, max_size=3))
    batch = MappingBatch.pack(problem, [m for m in found if Skeleton.of(m) == Skeleton.of(found[0])])
    temporal, spatial, keep = batch.temporal.copy(), batch.spatial.copy(), batch.keep.copy()
    for array in (temporal, spatial):
        for _ in range(draw(st.integers(0, 2))):
            array.flat[draw(st.integers(0, array.size - 1))] = draw(st.integers(1, 13))
    holds = np.array([entry.holds for entry in batch.skeleton.entries])
    for _ in range(draw(st.integers(0, 2))):
        keep.flat[draw(st.integers(0, keep.size - 1))] ^= True
    skeleton = batch.skeleton
    if draw(st.integers(0, 9)) == 0:
        entries = list(skeleton.entries)
        index = draw(st.integers(0, len(entries) - 1))
        target = draw(st.sampled_from([cluster.name for cluster in architecture.clusters]))
        entries[index] = replace(entries[index], target=target)
        skeleton = Skeleton(tuple(entries))
    return (
        problem,
        architecture,
        replace(batch, skeleton=skeleton, temporal=temporal, spatial=spatial, keep=keep & holds[:, None]),
    )


@scaled(5)
@given(corrupted())
def test_legal_equals_legality(case: tuple[Problem, Architecture, MappingBatch]) -> None:
    problem, architecture, batch = case
    verdicts = [legality(problem, architecture, mapping) for mapping in batch]
    assert legal(problem, architecture, batch).tolist() == [bool(verdict) for verdict in verdicts], verdicts


def _touched(tensor: Tensor, extents: dict[str, int]) -> int:
    """Count the distinct words of a tile by enumeration, one coordinate at a time."""
    reached = [
        {sum(at) for at in itertools.product(*(range(0, c * extents[name], c) for name, c in rank.terms.items()))}
        for rank in tensor.projection
    ]
    return math.prod(map(len, reached))


@scaled(5)
@given(st.data())
def test_a_memory_counts_bounding_boxes_or_the_words_that_are_touched(data: st.DataObject) -> None:
    problem, architecture = data.draw(problems(max_operands=2)), data.draw(architectures(roomy=False, widths=True))
    mapping = data.draw(mappings(problem, architecture))
    reasons = legality(problem, architecture, mapping).reasons
    assume(not {reason.code for reason in reasons} - {"capacity", "fanout"})
    batch, crowded = MappingBatch.pack(problem, [mapping]), set()
    for memory in (each for each in architecture.memories if each.capacity_words is not None):
        need = 0.0
        for entry in mapping.entries:
            for tensor in map(problem.tensor, entry.keep or ()):
                if architecture.cluster(entry.target).memory_for(tensor) == memory:
                    tile = dict(entry.temporal_tile_sizes)
                    words = (
                        _touched(tensor, tile) if memory.footprint == "distinct" else problem.tile_words(tensor, tile)
                    )
                    need += words * memory.words_of(tensor)
        assert words_needed(architecture, batch, memory)[0] == pytest.approx(need, rel=1e-12)
        crowded |= {memory.name} if need > (memory.usable_words or 0) else set()
    if "fanout" not in {reason.code for reason in reasons}:
        assert {reason.where for reason in reasons} == crowded


HUGE = Problem.from_yaml(
    """
name: huge
dimensions: {M: 1099511627776, K: 1099511627776}
tensors:
- {name: A, role: input, projection: [2147483648*M, K]}
- {name: Z, role: output, projection: [M]}
"""
)


def architecture(capacity: int, fanout: int) -> Architecture:
    return Architecture.from_yaml(
        f"""
name: wide
clusters:
- {{name: D, memories: [{{name: D, read_energy_pj: 1, write_energy_pj: 1}}]}}
- name: G
  memories: [{{name: G, capacity_words: {capacity}, read_energy_pj: 1, write_energy_pj: 1}}]
  fanout: {{size: {fanout}}}
compute: {{energy_per_operation_pj: 1}}
"""
    )


SIZE = 2**40
NEED = (1 + 2**31 * (SIZE - 1)) * SIZE + SIZE


@pytest.mark.parametrize("number", [2**53 + 1, NEED])
def test_hardware_beyond_exact_numbers_is_refused(number: int) -> None:
    for capacity, fanout in ((number, 2), (2, number)):
        with pytest.raises(InputError, match="less than or equal to 9007199254740992"):
            architecture(capacity, fanout)


@pytest.mark.parametrize("capacity", [2**53, 2**52, 1000])
@pytest.mark.parametrize("fanout", [2**20, 2**19, 2])
def test_products_beyond_int64(capacity: int, fanout: int) -> None:
    """Words and trips of 2**80 and more are more than any hardware has, in both forms."""
    mapping = Mapping.from_yaml(
        f"""
entries:
- {{target: D, keep: [A, Z], temporal_tile_sizes: {{M: {SIZE}, K: {SIZE}}}}}
- {{target: G, keep: [A, Z]}}
- {{target: G, spatial_tile_sizes: {{M: 1, K: 1}}}}
"""
    )
    hardware = architecture(capacity, fanout)
    verdict = legality(HUGE, hardware, mapping)
    assert {reason.code for reason in verdict.reasons} == {
        *(["capacity"] if capacity < NEED else []),
        *(["fanout"] if fanout < SIZE**2 else []),
    }
    assert legal(HUGE, hardware, MappingBatch.pack(HUGE, [mapping])).tolist() == [bool(verdict)]


def test_the_first_thousand_faults_are_told() -> None:
    entries = "".join("- {target: D, keep: [A, Z], temporal_tile_sizes: {M: 1, K: 1}}\n" for _ in range(900))
    verdict = legality(HUGE, architecture(1, 1), Mapping.from_yaml(f"entries:\n{entries}"))
    assert len(verdict.reasons) == 1001 and verdict.reasons[-1].code == "more"


def test_arrays_that_are_no_mapping() -> None:
    """A tile below 1 and an order that repeats a dimension have no scalar form; they are illegal."""
    problem, hardware = small()
    batch = MappingBatch.pack(problem, [SMALL])
    assert legal(problem, hardware, batch).tolist() == [True]
    order = batch.order.copy()
    order[0, 0] = 0
    assert legal(problem, hardware, replace(batch, order=order)).tolist() == [False]
    assert legal(problem, hardware, replace(batch, temporal=batch.temporal - 4)).tolist() == [False]


@pytest.mark.parametrize(
    ("holds", "said"),
    [
        (["input"], "no memory there may hold Z (output)"),
        (["input", "output"], "G and H may hold Z (output); make their 'holds' disjoint"),
    ],
)
def test_a_tile_has_one_memory_in_its_cluster(holds: list[str], said: str) -> None:
    problem, hardware = small()
    data = hardware.to_data()
    (memory,) = data["clusters"][1]["memories"]
    data["clusters"][1]["memories"] = [
        memory | {"holds": holds},
        memory | {"name": "H", "holds": holds[1:] or ["weight"]},
    ]
    hardware = Architecture.model_validate(data)
    (reason,) = legality(problem, hardware, SMALL).reasons
    assert (reason.code, reason.message) == ("keep", said)
    assert legal(problem, hardware, MappingBatch.pack(problem, [SMALL])).tolist() == [False]


@pytest.mark.parametrize("kind", ["temporal", "spatial"])
def test_a_tile_is_not_larger_than_the_one_around_it(kind: str) -> None:
    problem, hardware = small()
    entry = SMALL.entries[2].model_copy(update={f"{kind}_tile_sizes": {"M": 8, "K": 4}})
    reasons = legality(problem, hardware, Mapping(entries=(*SMALL.entries[:2], entry))).reasons
    assert f"{kind} tile of 8 exceeds the enclosing tile of 4" in {reason.message for reason in reasons}


def test_tiles_cover_the_problem() -> None:
    """The outermost tile is the whole dimension, and the innermost one has one iteration."""
    problem, hardware = small()
    larger = Problem.model_validate(problem.to_data() | {"dimensions": {"M": 5, "K": 4}})
    last = SMALL.entries[2].model_copy(update={"spatial_tile_sizes": {"M": 2, "K": 1}})
    for size, mapping, said in (
        (larger, SMALL, "the tiles cover 4 iterations, the problem has 5"),
        (problem, Mapping(entries=(*SMALL.entries[:2], last)), "the innermost tile has 2 iterations; expected 1"),
    ):
        (reason,) = legality(size, hardware, mapping).reasons
        assert (reason.code, reason.message) == ("coverage", said)
        assert legal(size, hardware, MappingBatch.pack(size, [mapping])).tolist() == [False]


def test_parts_of_words_are_told() -> None:
    """Tiles of 12 and 3 values of 8 bits are 7.5 words of 16."""
    problem, hardware = small()
    narrow = hardware.memories[1].model_copy(update={"capacity_words": 7, "bits_per_value": {"input": 8, "output": 8}})
    hardware = hardware.with_memories(lambda memory: narrow if memory.name == "G" else memory)
    first, *rest = SMALL.entries
    sizes = {"M": 3, "K": 4}
    first = first.model_copy(update={"temporal_tile_sizes": sizes, "spatial_tile_sizes": sizes})
    rest[0] = rest[0].model_copy(update={"temporal_tile_sizes": sizes, "spatial_tile_sizes": sizes})
    rest[1] = rest[1].model_copy(update={"temporal_tile_sizes": sizes})
    reasons = legality(problem, hardware, Mapping(entries=(first, *rest))).reasons
    assert "the tiles need 7.5 words, 7 fit" in {reason.message for reason in reasons}


@pytest.mark.parametrize(("capacity", "fits"), [(19, False), (20, True)])
@pytest.mark.parametrize("tile", [4, 3])
def test_the_outermost_memory_holds_whole_tensors_in_the_forms_of_a_search(
    capacity: int, fits: bool, tile: int
) -> None:
    """A search checks trips instead of tiles: those that divide 4, and those that do not."""
    problem, hardware = small()
    outermost = hardware.clusters[0].memories[0].model_copy(update={"capacity_words": capacity})
    hardware = hardware.with_memories(lambda memory: outermost if memory.name == "D" else memory)
    entries = [entry.model_copy(update={"keep": ("A", "Z")}) for entry in SMALL.entries[:1]]
    sizes = {"M": tile, "K": 4}
    entries.append(SMALL.entries[1].model_copy(update={"temporal_tile_sizes": sizes, "spatial_tile_sizes": sizes}))
    entries.append(SMALL.entries[2].model_copy(update={"temporal_tile_sizes": sizes}))
    batch = MappingBatch.pack(problem, [Mapping(entries=tuple(entries))])
    model = installed().make(CostModelSpec, "timeloop").bind(problem, hardware)
    assert legal(problem, hardware, batch).tolist() == model.evaluate_batch(batch).valid.tolist() == [fits]


SMALL = Mapping.from_yaml(
    """
entries:
- {target: D, keep: [A, Z], temporal_tile_sizes: {M: 4, K: 4}}
- {target: G, keep: [A, Z]}
- {target: G, spatial_tile_sizes: {M: 1, K: 1}}
"""
)


def small() -> tuple[Problem, Architecture]:
    problem = Problem.from_yaml(
        """
name: small
dimensions: {M: 4, K: 4}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: Z, role: output, projection: [M]}
"""
    )
    return problem, architecture(100, 16)

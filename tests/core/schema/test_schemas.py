"""Problems, workloads, architectures and mappings: round trips, derived views, and what they refuse."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import InputError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Rank, parse_terms
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright.testing.strategies import architectures, mappings, problems


@st.composite
def triples(draw: st.DrawFn) -> tuple[Problem, Architecture, Mapping]:
    problem, architecture = draw(problems()), draw(architectures())
    return problem, architecture, draw(mappings(problem, architecture))


@given(triples())
def test_yaml_json_and_pickle_round_trip(triple: tuple[Problem, Architecture, Mapping]) -> None:
    for each in triple:
        assert type(each).from_yaml(each.to_yaml()) == each
        assert type(each).from_yaml(each.to_json()) == each
        assert pickle.loads(pickle.dumps(each)) == each
        assert hash(each) == hash(type(each).from_yaml(each.to_yaml()))


@given(triples())
def test_loops_and_factors_multiply_to_the_problem(triple: tuple[Problem, Architecture, Mapping]) -> None:
    problem, _, mapping = triple
    trips = dict.fromkeys(problem.dimensions, 1)
    for loop in mapping.loops():
        trips[loop.dimension] *= loop.trips
    assert trips == dict(problem.dimensions)
    assert mapping.is_perfect


@given(triples())
def test_a_batch_gives_back_what_was_packed(triple: tuple[Problem, Architecture, Mapping]) -> None:
    problem, _, mapping = triple
    batch = MappingBatch.pack(problem, [mapping, mapping])
    for found in batch:
        assert Skeleton.of(found) == batch.skeleton
        again = MappingBatch.pack(problem, [found])
        for name in ("temporal", "spatial", "order", "keep", "spatial_order", "unicast"):
            np.testing.assert_array_equal(getattr(again, name)[0], getattr(batch, name)[0])
    with pytest.raises(ValueError, match="read-only"):
        batch.temporal[0] = 0


@given(problems())
def test_equal_work_has_one_key_whatever_its_name(problem: Problem) -> None:
    other = problem.model_copy(update={"name": "other", "source": "elsewhere"})
    assert Problem.model_validate(other.model_dump()).content_key == problem.content_key
    layers = (Layer(problem=problem), Layer(problem=other, after=(problem.name,)))
    workload = Workload(name="w", layers=layers)
    (distinct,) = workload.distinct()
    assert distinct.count == 2 and workload.macs == 2 * problem.macs
    assert list(workload.graph.edges) == [(problem.name, "other")]
    assert workload.graph.nodes["other"]["macs"] == problem.macs


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9), min_size=1, max_size=3))
def test_ranks_are_written_as_sums(terms: dict[str, int]) -> None:
    rank = Rank.model_validate({"terms": terms})
    assert parse_terms(str(rank)) == terms
    assert Rank.model_validate(str(rank)) == rank


def test_a_tile_is_the_bounding_box_of_what_it_touches() -> None:
    problem = Problem.from_yaml(
        """
        name: c
        dimensions: {P: 5, R: 3}
        tensors:
        - {name: I, role: input, projection: [4*P + R]}
        - {name: W, role: weight, projection: [R]}
        - {name: O, role: output, projection: [P]}
        """
    )
    inputs = problem.tensor("I")
    assert problem.tensor_words(inputs) == 1 + 4 * 4 + 2
    assert problem.tile_words(inputs, {"P": 2, "R": 3}) == 7  # one word between the windows is never used
    assert problem.projection_matrix(inputs).tolist() == [[4, 1]]
    assert problem.is_affine and problem.macs == 15


PROBLEM = """
name: g
dimensions: {M: 4, K: 4}
tensors:
- {name: A, role: input, projection: [M, K]}
- {name: Z, role: output, projection: [M]}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("M: 4, ", "M: 4.5, ", "<text>:3:17: dimensions.M: Input should be a valid integer"),
        ("M: 4, ", "M: true, ", "<text>:3:17: dimensions.M"),
        ("M: 4, ", "1M: 4, ", "dimensions"),
        ("role: output", "role: input", "exactly one tensor must have role output"),
        ("name: Z", "name: A", "tensor names repeat: A, A"),
        ("projection: [M]", "projection: [M*]", "cannot read 'M*'"),
        ("projection: [M]", "projection: [0*M]", "projection[0]"),
        ("projection: [M]", "projection: [M, N]", "uses dimension N, which has no size"),
        ("role: input", "roll: input", "unknown key 'roll'; did you mean 'role'?"),
    ],
)
def test_problems_that_make_no_sense_are_refused(old: str, new: str, message: str) -> None:
    assert old in PROBLEM
    with pytest.raises(InputError) as caught:
        Problem.from_yaml(PROBLEM.replace(old, new))
    assert message in str(caught.value)


def test_every_fault_of_a_file_is_told() -> None:
    with pytest.raises(InputError) as caught:
        Architecture.from_yaml(
            """
            name: a
            clusters:
              - {name: D, memories: [{name: D, read_energy_pj: -1}], fanout: {size: 0, axis: x}}
            """
        )
    text = str(caught.value)
    for part in (
        "read_energy_pj",
        "'write_energy_pj' is missing",
        "fanout.size",
        "fanout.axis",
        "'compute' is missing",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        ("[{name: A}]", "the outermost cluster A has no memory"),
        ("[{name: A, memories: [M]}, {name: A}]", "cluster names repeat: A"),
        ("[{name: A, memories: [M, M]}]", "memory names repeat: M"),
        ("[]", "at least 1"),
    ],
)
def test_chains_that_cannot_be_are_refused(clusters: str, message: str) -> None:
    text = (
        clusters.replace("M", "{name: M, read_energy_pj: 1, write_energy_pj: 1}")
        if "memories" in clusters
        else clusters
    )
    with pytest.raises(InputError) as caught:
        Architecture.from_yaml(f"name: a\nclusters: {text}\ncompute: {{energy_per_operation_pj: 1}}")
    assert message in str(caught.value)


def test_siblings_must_not_both_hold_a_tensor() -> None:
    architecture = Architecture.from_yaml(
        """
        name: a
        clusters:
          - name: D
            memories:
              - {name: M, read_energy_pj: 1, write_energy_pj: 1}
              - {name: N, holds: [weight], read_energy_pj: 1, write_energy_pj: 1}
        compute: {energy_per_operation_pj: 1}
        """
    )
    problem = Problem.from_yaml(PROBLEM)
    assert architecture.clusters[0].memory_for(problem.tensor("A")) == architecture.memories[0]
    weight = problem.tensor("A").model_copy(update={"role": "weight"})
    with pytest.raises(ValueError, match="both M and N may hold A"):
        architecture.clusters[0].memory_for(weight)


def test_instances_and_meshes_follow_from_the_fanouts() -> None:
    architecture = Architecture.from_yaml(
        """
        name: a
        clusters:
          - {name: D, memories: [{name: M, read_energy_pj: 1, write_energy_pj: 1}], fanout: {size: 4, axis: Y}}
          - {name: E, fanout: {size: 3, axis: X}}
          - {name: F, fanout: {size: 2, axis: X}}
        compute: {energy_per_operation_pj: 1}
        """
    )
    assert architecture.instances == (1, 4, 12, 24)
    wider = architecture.model_copy(update={"clusters": architecture.clusters[:2]})
    assert wider.instances == (1, 4, 12)  # not those of the original
    assert architecture.mesh(3) == {"Y": 4, "X": 6} and architecture.compute_instances == 24


@given(architectures())
def test_clusters_are_found_by_their_name_and_by_what_lies_in_them(architecture: Architecture) -> None:
    for index, cluster in enumerate(architecture.clusters):
        assert architecture.cluster(cluster.name) is cluster is architecture.clusters[index]
        assert all(architecture.cluster_of(memory.name) is cluster for memory in cluster.memories)
    for search in (architecture.cluster, architecture.cluster_of):
        with pytest.raises(KeyError, match="nowhere"):
            search("nowhere")


def test_a_mapping_may_leave_out_what_it_inherits() -> None:
    mapping = Mapping.from_yaml(
        """
        entries:
          - {target: D, keep: [A], temporal_tile_sizes: {M: 8, K: 6}}
          - {target: B, keep: [], temporal_tile_sizes: {M: 3}, spatial_tile_sizes: {K: 4}}
          - {target: B, temporal_tile_sizes: {M: 1, K: 1}, temporal_order: [K, M]}
        """
    )
    assert [dict(entry.temporal_tile_sizes) for entry in mapping.entries] == [
        {"M": 8, "K": 6}, {"M": 3, "K": 6}, {"M": 1, "K": 1},
    ]  # fmt: skip
    assert mapping.entries[1].keep == () and mapping.entries[2].keep is None
    assert [(loop.dimension, loop.trips, loop.spatial) for loop in mapping.loops()] == [
        ("M", 3, False), ("K", 2, True), ("K", 4, False), ("M", 3, False),
    ]  # fmt: skip
    assert not mapping.is_perfect


def test_unmapped_operators_keep_their_reason() -> None:
    problem = Problem.from_yaml(PROBLEM)
    skipped = Unmapped(name="r", operator="Relu", reason="works element by element", operations=4)
    workload = Workload(name="w", layers=(Layer(problem=problem),), unmapped=(skipped,))
    assert Workload.from_yaml(workload.to_yaml()) == workload
    with pytest.raises(ValueError, match="not a layer"):
        Workload(name="w", layers=(Layer(problem=problem, after=("x",)),))
    with pytest.raises(ValueError, match="layer names repeat: g"):
        Workload(name="w", layers=(Layer(problem=problem), Layer(problem=problem)))


@pytest.mark.parametrize("model", [Problem, Workload, Architecture, Mapping])
def test_schemas_can_be_printed(model: type[Problem]) -> None:
    schema = model.model_json_schema()
    assert schema["additionalProperties"] is False and json.dumps(schema)

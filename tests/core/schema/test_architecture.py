"""Architectures: instances, meshes, who holds what, and chains that cannot be."""

import pytest
from hypothesis import given

from support.problems import problem_of
from tilewright.errors import InputError
from tilewright.schema.architecture import Architecture, Memory
from tilewright.testing.strategies import architectures


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
        "'write_energy_pj' is missing; give it, or 'component'",
        "fanout.size",
        "fanout.axis",
        "'compute' is missing",
    ):
        assert part in text
    assert "'compute' is missing;" not in text


def test_a_fault_of_a_cluster_is_told_without_its_consequences() -> None:
    with pytest.raises(InputError) as caught:
        Architecture.from_yaml(
            """
            name: a
            clusters:
              - {name: D, memories: [{name: D, read_energy_pj: .nan, write_energy_pj: 1}]}
            compute: {energy_per_operation_pj: 1}
            """
        )
    assert str(caught.value).endswith("read_energy_pj: expected a finite number (found nan)")


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
    operand = problem_of("M", "M K").tensor("T0")
    assert architecture.clusters[0].memory_for(operand) == architecture.memories[0]
    weight = operand.model_copy(update={"role": "weight"})
    with pytest.raises(ValueError, match="both M and N may hold T0"):
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


@given(architectures(widths=True))
def test_clusters_are_found_by_their_name_and_by_what_lies_in_them(architecture: Architecture) -> None:
    for index, cluster in enumerate(architecture.clusters):
        assert architecture.cluster(cluster.name) is cluster is architecture.clusters[index]
        assert all(architecture.cluster_of(memory.name) is cluster for memory in cluster.memories)
    for search in (architecture.cluster, architecture.cluster_of):
        with pytest.raises(KeyError, match="nowhere"):
            search("nowhere")


ABSURD = [
    ("read_energy_pj: 1", "read_energy_pj: 1e300", "memories[0].read_energy_pj: expected a value less than or equal to 1000000000000000"),
    ("read_energy_pj: 1", "read_energy_pj: .nan", "read_energy_pj"),
    ("read_energy_pj: 1", "read_energy_pj: 1, read_bandwidth_words_per_cycle: 5e-324", "cycle: must be at least 1e-09"),
    ("read_energy_pj: 1", f"read_energy_pj: 1, capacity_words: 1{'0' * 400}", "capacity_words: expected a value less"),
    ("read_energy_pj: 1", "read_energy_pj: 1, block_words: 2097152", "block_words: expected a value less"),
    ("size: 2", f"size: {2**31}", "fanout.size: must be at most 1,048,576"),
    ("size: 2", f"size: {2**20}", "the fanouts make 1,152,921,504,606,846,976 compute units; expected at most 1,099,511,627,776"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), ABSURD)
def test_hardware_that_gives_no_figures_is_refused_with_the_field_and_its_range(
    old: str, new: str, message: str
) -> None:
    memory = "memories: [{{name: {0}, read_energy_pj: 1, write_energy_pj: 1}}], fanout: {{size: 2}}"
    clusters = "".join(f"- {{name: {name}, {memory.format(name)}}}\n" for name in "ABC")
    text = f"name: a\nclusters:\n{clusters}compute: {{energy_per_operation_pj: 1}}\n"
    Architecture.from_yaml(text)
    with pytest.raises(InputError) as caught:
        Architecture.from_yaml(text.replace(old, new))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("capacity", "copies", "usable"), [(100, 1.0, 100), (100, 2.0, 50), (101, 2.0, 50), (7, 1.5, 4), (8, 3.0, 2)]
)
def test_copies_of_tiles_share_the_capacity_rounded_down(capacity: int, copies: float, usable: int) -> None:
    energies = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}
    memory = Memory.model_validate({"name": "B", "capacity_words": capacity, "multiple_buffering": copies, **energies})
    assert memory.usable_words == usable and memory.usable_slices == usable * memory.slices_per_word
    assert memory.model_copy(update={"capacity_words": None}).usable_words is None

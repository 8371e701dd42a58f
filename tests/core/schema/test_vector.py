import pytest

from tilewright.errors import InputError
from tilewright.schema.architecture import Architecture
from tilewright.schema.vector import OPERATORS
from tilewright.schema.workload import Workload

MACHINE = """
name: small
clusters: [{name: D, memories: [{name: DRAM, read_energy_pj: 1, write_energy_pj: 1}]}]
compute: {energy_per_operation_pj: 1}
"""
UNIT = "{name: VPU, lanes: 8, memory: DRAM, energy_pj: {add: 1, compare: 1}}"
WORK = """
name: two
layers: []
vectors:
- {name: relu, operator: Relu, rows: 4, row: 1, operands: [{name: X, words: 4}], result: 4, after: []}
- {name: sum, operator: Add, rows: 4, row: 1, operands: [{name: X, words: 4}, {name: Y, words: 4}], result: 4, after: [relu]}
"""


def test_files_without_units_and_vectors_stay_as_they_are() -> None:
    """Their digests are those of older versions."""
    plain = Architecture.from_yaml(MACHINE)
    assert "units" not in plain.model_dump(mode="json") and "units" not in plain.to_yaml()
    assert "vectors" not in Workload.from_yaml("{name: none, layers: []}").model_dump(mode="json")


def test_units_and_vectors_round_trip() -> None:
    machine, work = Architecture.from_yaml(f"{MACHINE}units: [{UNIT}]"), Workload.from_yaml(WORK)
    assert Architecture.from_yaml(machine.to_yaml()) == machine and Workload.from_yaml(work.to_yaml()) == work
    assert machine.units[0].work_of(work.vectors[0]) is OPERATORS["Relu"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("memory: DRAM, energy", "memory: Buffer, energy"), "Buffer is not a memory; expected one of DRAM"),
        (("name: VPU", "name: DRAM"), "a memory or unit is called DRAM, too"),
        (
            ("compare: 1}", "compare: 1}, cycles: {divide: 4}"),
            "VPU has no energy of divide; expected divide in energy_pj",
        ),
        (("compare: 1}", "compares: 1}"), "expected 'add', 'multiply', 'exponential'"),
        (
            ("compare: 1}", "compare: 1}, operators: {Softmx: {element: {add: 1}}}"),
            "no operator is called Softmx; did you mean 'Softmax'",
        ),
        (("compare: 1}", "compare: 1}, operators: {Softmax: {element: {}}}"), "an operator without operations"),
    ],
)
def test_faults_of_units_say_what_to_type(change: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Architecture.from_yaml(f"{MACHINE}units: [{UNIT.replace(*change)}]")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("after: [relu]", "after: [rely]"), "sum is after rely, which is not a layer; did you mean 'relu'"),
        (("name: sum", "name: relu"), "layer names repeat: relu"),
        (("operator: Relu", "operator: Rely"), "no operator is called Rely; did you mean 'Relu'"),
        (("name: Y", "name: X"), "operands need different names"),
        (("after: [relu]", "before: [relu]"), "sum is before relu, which is not a layer"),
        (("rows: 4", "rows: 0"), "greater than or equal to 1"),
    ],
)
def test_faults_of_vector_layers_say_what_to_type(change: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Workload.from_yaml(WORK.replace(*change, 1))


def test_several_networks_keep_their_vector_layers() -> None:
    work = Workload.from_yaml(WORK)
    both = Workload.together([work, work.model_copy(update={"name": "other"})], [1, 3])
    assert [(vector.name, vector.after, vector.count) for vector in both.vectors][3] == (
        "other/sum",
        ("other/relu",),
        3,
    )


def test_softmax_takes_five_operations_an_element() -> None:
    assert sum(OPERATORS["Softmax"].element.values()) == 5
    assert OPERATORS["Softmax"].operations(2, 3, None) == {
        "compare": 6,
        "add": 12,
        "exponential": 6,
        "multiply": 6,
        "divide": 2,
    }
    assert all(work.source for work in OPERATORS.values())


def test_notebooks_show_the_units() -> None:
    text = Architecture.from_yaml(f"{MACHINE}units: [{UNIT}]")._repr_html_()
    assert "VPU" in text and "vector unit of 8 lanes at DRAM" in text and "1 pJ per operation" in text

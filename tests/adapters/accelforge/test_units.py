"""Vector units: compute nodes of AccelForge that einsums of one operand take."""

from pathlib import Path

import pytest

import tilewright as tw
from tilewright.application.conversion.map_inputs import read_map_inputs
from tilewright.errors import NotConformableError
from tilewright.plugin import installed
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright_adapters.accelforge import AccelForgeAdapter

ARCH = """\
arch:
  nodes:
  - !Memory
    name: Main
    size: inf
    tensors: {keep: All}
    actions: [{name: read, energy: 8e-12, throughput: 4e9}, {name: write, energy: 8e-12, throughput: 4e9}]
  - !Memory
    name: Local
    size: 65536
    spatial: [{name: X, fanout: 4}]
    tensors: {keep: input | output}
    actions: [{name: read, energy: 1e-12, throughput: inf}, {name: write, energy: 1e-12, throughput: inf}]
  - !Container {name: Lane, spatial: [{name: Z, fanout: 2}]}
  - !Compute
    name: ScalarUnit
    enabled: WHEN
    actions: [{name: compute, energy: 3e-13, throughput: RATE}]
  - !Container {name: PE, spatial: [{name: Y, fanout: 8}]}
  - !Compute {name: MAC, enabled: len(All) == 3, actions: [{name: compute, energy: 1e-12, throughput: 2e9}]}
"""
WORK = """\
workload:
  bits_per_value: {All: 8}
  rank_sizes: {M: 8, K: 4, N: 6}
  einsums: ["Y[m, n] = X[m, k] * V[k, n]", "Z[m, n] = Y[m, n]"]
"""
ADAPTER = AccelForgeAdapter()


def read(folder: Path, when: str = "len(All) == 2", rate: str = "2e9 * 64", einsum: str = "") -> InputSet:
    paths = [folder / "arch.yaml"]
    paths[0].write_text(ARCH.replace("WHEN", when).replace("RATE", rate))
    if einsum:
        (folder / "work.yaml").write_text(WORK)
        paths.append(Path(f"{folder / 'work.yaml'}/{einsum}"))
    return ADAPTER.parse(paths)


def machine(inputs: InputSet) -> Architecture:
    assert inputs.architecture is not None
    return inputs.architecture


@pytest.mark.parametrize("einsum", ["", "Y"])
def test_a_node_for_einsums_of_two_tensors_is_a_vector_unit(einsum: str, tmp_path: Path) -> None:
    """Two nodes for each Local, of 64 operations in a cycle of the array."""
    (unit,) = machine(read(tmp_path, einsum=einsum)).units
    assert (unit.name, unit.lanes, unit.memory, dict(unit.cycles)) == ("ScalarUnit", 128, "Local", {})
    assert set(unit.energy_pj.values()) == {0.3} and len(unit.energy_pj) == 6


def test_rates_of_no_whole_number_of_lanes(tmp_path: Path) -> None:
    (unit,) = machine(read(tmp_path, rate="2.5e8")).units
    assert unit.lanes == 1 and set(unit.cycles.values()) == {4.0}


def test_other_nodes_are_no_units(tmp_path: Path) -> None:
    assert machine(read(tmp_path, when="False")).units == machine(read(tmp_path, when="len(All) == 4")).units == ()
    unlimited = read(tmp_path, rate="inf")
    assert machine(unlimited).units == () and any("ScalarUnit is ignored" in told for told in unlimited.warnings)
    with pytest.raises(NotConformableError, match="PE follows the compute node ScalarUnit"):
        read(tmp_path, einsum="Z")


def test_einsums_that_the_unit_executes_are_vector_layers(tmp_path: Path) -> None:
    """Z takes an operation for each of its 48 words, as AccelForge counts it."""
    read(tmp_path, einsum="Y")
    given = read_map_inputs([tmp_path / "work.yaml"], [tmp_path / "arch.yaml"], installed(), "accelforge")
    assert given.workload is not None and [layer.name for layer in given.workload.layers] == ["Y"]
    (vector,) = given.workload.vectors
    assert (vector.name, vector.rows, vector.row, vector.operands[0].words, vector.result) == ("Z", 48, 1, 48, 48)
    assert vector.operators == ("Z",) and dict(vector.plain_work.element) == {"add": 1}


def test_units_are_written_and_read_again(tmp_path: Path) -> None:
    given = machine(read(tmp_path))
    folder = tmp_path / "again"
    folder.mkdir()
    for name, text in ADAPTER.render(InputSet(architecture=given)).items():
        (folder / name).write_text(text)
    plain = ADAPTER.parse([folder / "arch.yaml"])
    assert machine(plain).units[0].model_copy(update={"memory": "Local"}) == given.units[0]
    assert machine(ADAPTER.parse([folder])) == given


def test_units_that_have_no_place_are_refused(tmp_path: Path) -> None:
    given = machine(read(tmp_path))
    unit = given.units[0]
    own = unit.model_copy(update={"energy_pj": FrozenDict({**unit.energy_pj, "add": 1.0})})
    for units in ((own,), (unit, unit.model_copy(update={"name": "Other"}))):
        with pytest.raises(NotConformableError, match="one operation|one compute node"):
            ADAPTER.render(InputSet(architecture=given.model_copy(update={"units": units})))
    problem = tw.load("ij->i; i=4 j=4", "problem")
    with pytest.raises(NotConformableError, match="which has two tensors"):
        ADAPTER.render(InputSet(problem=problem, architecture=given))

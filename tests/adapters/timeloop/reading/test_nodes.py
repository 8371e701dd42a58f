"""Reading Timeloop v4: nodes, variables, parallel branches, and rules at the nodes."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import InputError
from tilewright.expressions import ExpressionError, evaluate
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet
from tilewright.schema.document import parse_document
from tilewright.schema.frozen import FrozenDict
from tilewright_adapters import TimeloopFiles
from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

PROBLEM = """
problem:
  version: 0.4
  shape:
    name: Conv1D_OC
    dimensions: [C, K, R, P]
    data_spaces:
    - {name: Weights, projection: [[[C]], [[K]], [[R]]]}
    - {name: Inputs, projection: [[[C]], [[R], [P]]]}
    - {name: Outputs, projection: [[[K]], [[P]]], read_write: true}
  instance: {C: 32, K: 32, R: 3, P: 16}
"""
ARCHITECTURE = """
architecture:
  version: 0.4
  nodes:
  - !Container {name: System, attributes: {technology: "40nm", global_cycle_seconds: 1e-9}}
  - !Component {name: MainMemory, class: DRAM, attributes: {width: 256, datawidth: 8}}
  - !Container {name: PE, spatial: {meshX: 16}}
  - !Component {name: GlobalBuffer, class: SRAM, attributes: {depth: 32768, width: 64, datawidth: 8}}
  - !Component {name: RegisterFile, class: regfile, attributes: {depth: 64, width: 8, datawidth: 8}}
  - !Component {name: MACC, class: intmac, attributes: {datawidth: 8}}
"""
ENERGIES = """
ERT:
  version: 0.4
  tables:
  - name: System_top_level.MainMemory[1..1]
    actions: [{name: read, energy: 2048}, {name: write, energy: 2048}, {name: update, energy: 2048}]
  - name: System_top_level.GlobalBuffer[1..16]
    actions: [{name: read, energy: 43.353054}, {name: write, energy: 30.878292}, {name: update, energy: 30.878292}]
  - name: System_top_level.RegisterFile[1..16]
    actions: [{name: read, energy: 0.42564}, {name: write, energy: 0.42564}, {name: update, energy: 0.42564}]
  - {name: "System_top_level.MACC[1..16]", actions: [{name: compute, energy: 0.845}]}
"""
MAPPING = """
mapping:
- {target: MainMemory, type: temporal, factors: [R=1, P=1, K=1, C=1], permutation: [P, R, K, C]}
- {target: PE, type: spatial, factors: [R=1, P=1, K=16, C=1], permutation: [P, R, K, C]}
- {target: GlobalBuffer, type: temporal, factors: [R=3, P=1, K=2, C=32], permutation: [P, R, K, C]}
- {target: RegisterFile, type: temporal, factors: [R=1, P=16, K=1, C=1], permutation: [R, P, K, C]}
"""
MEASURED = {
    "MainMemory": {"Weights": (3072, 0, 0), "Inputs": (576, 0, 0), "Outputs": (0, 0, 512)},
    "GlobalBuffer": {"Weights": (192, 192, 0), "Inputs": (1152, 576, 0), "Outputs": (992, 0, 1024)},
    "RegisterFile": {"Weights": (3072, 192, 0), "Inputs": (3072, 1152, 0), "Outputs": (3040, 992, 3072)},
}
"""Reads, fills, updates that Timeloop v4 printed for this exercise of the Timeloop tutorial."""
MEASURED_PJ = {
    "MainMemory": 196608 + 36864 + 32768,
    "GlobalBuffer": 28504.84 + 135457.23 + 149251.20,
    "RegisterFile": 22228.62 + 28766.45 + 48379.94,
}

EYERISS = """
variables: {columns: 14, rows: columns - 2}
architecture:
  version: 0.4
  nodes:
  - !Container {name: system}
  - !Component {name: DRAM, class: DRAM, attributes: {type: LPDDR4, width: 64, datawidth: 8}}
  - !Component
    name: glb
    class: smartbuffer_SRAM
    attributes: {depth: 2 ** 14, width: datawidth * 8, n_banks: 32, datawidth: 8, read_bandwidth: 16}
    constraints: {dataspace: {keep: [Inputs, Outputs], bypass: [Weights]}}
  - !Container
    name: column
    spatial: {meshX: columns}
    constraints: {spatial: {permutation: [C, R, P, K], factors: [C=1, R=1], split: 4}}
  - !Container {name: PE, spatial: {meshY: rows}}
  - !Parallel
    nodes:
    - !Component {name: ifmap, class: regfile, attributes: {depth: 12, width: 8, datawidth: 8},
                  constraints: {dataspace: {keep: [Inputs]}, temporal: {factors_only: []}}}
    - !Component {name: filter, class: regfile, attributes: {depth: 192, width: 8, datawidth: 8},
                  constraints: {dataspace: {keep_only: [Weights]}, temporal: {factors: [K=1, P<=4], permutation: [R, C]}}}
    - !Nothing {constraints: {dataspace: {keep: [Outputs]}}}
  - !Component {name: mac, class: intmac, attributes: {multiplier_width: 8}}
"""


def read(*texts: str) -> InputSet:
    return TimeloopAdapter().read([parse_document(text, source=f"{n}.yaml") for n, text in enumerate(texts)])


def complaint(*texts: str) -> str:
    with pytest.raises(InputError) as caught:
        read(*texts)
    return str(caught.value)


def test_what_timeloop_v4_printed() -> None:
    inputs = read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING)
    assert inputs.warnings == ()
    assert inputs.problem and inputs.architecture and inputs.mapping
    report = TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    assert report.valid and report.cycles == 3072
    assert report.compute_energy_pj == pytest.approx(41533.44)
    counts = {
        level.name: {name: (c.reads, c.fills, c.updates) for name, c in level.tensors.items()}
        for level in report.levels
        if level.tensors
    }
    assert counts == MEASURED
    for level in report.levels:
        assert level.energy_pj == pytest.approx(MEASURED_PJ.get(level.name, 0.0), abs=0.02)


def test_a_fanout_is_a_level_of_its_own() -> None:
    inputs = read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING)
    assert inputs.architecture and inputs.mapping
    assert [(c.name, c.fanout.size) for c in inputs.architecture.clusters] == [
        ("MainMemory", 1),
        ("inter_PE_spatial", 16),
        ("GlobalBuffer", 1),
        ("RegisterFile", 1),
    ]
    keeps = [(entry.target, entry.keep) for entry in inputs.mapping.entries if entry.keep is not None]
    assert keeps[1] == ("inter_PE_spatial", ())
    dummy = inputs.architecture.memories[1]
    assert dummy.holds == () and dummy.read_energy_pj == 0


def test_its_own_files_are_written_as_they_were() -> None:
    adapter = TimeloopAdapter("v4")
    inputs = read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING)
    files = adapter.render(inputs)
    assert "architecture:" not in files.get("tilewright.yaml", "") and "inter_PE" not in files["arch.yaml"]
    assert adapter.read([parse_document(text, source=name) for name, text in files.items()]) == inputs
    seen = [parse_document(text, source=name) for name, text in files.items() if name != "tilewright.yaml"]
    assert adapter.read(seen).architecture == inputs.architecture
    rules = read(EYERISS.replace("permutation: [R, C]}", "permutation: [R, C, P]}"), PROBLEM)
    files = adapter.render(rules)
    assert (
        adapter.read([parse_document(text, source=name) for name, text in files.items()]).constraints
        == rules.constraints
    )


def test_variables_inheritance_and_parallel_branches() -> None:
    inputs = read(EYERISS, PROBLEM)
    assert inputs.architecture and inputs.constraints and inputs.problem
    sizes = {cluster.name: (cluster.fanout.axis, cluster.fanout.size) for cluster in inputs.architecture.clusters}
    assert sizes["inter_column_spatial"] == ("X", 14) and sizes["inter_PE_spatial"] == ("Y", 12)
    memories = {memory.name: memory for memory in inputs.architecture.memories}
    assert memories["glb"].capacity_words == 2**14 * 8 and memories["glb"].block_words == 8
    assert memories["filter"].capacity_words == 192
    (variant,) = inputs.constraints.variants
    keep = {rule.memory: (rule.keep, rule.bypass, rule.free) for rule in variant.keep}
    assert keep["glb"] == (("Inputs", "Outputs"), ("Weights",), ())
    assert keep["ifmap"] == (("Inputs",), ("Weights", "Outputs"), ())
    assert keep["filter"] == (("Weights",), ("Inputs", "Outputs"), ())
    temporal = {rule.memory: rule for rule in variant.temporal}
    assert temporal["ifmap"].only == ()
    assert temporal["filter"].only == ("C", "R", "P")
    assert temporal["filter"].factors["P"].max == 4
    spatial = {rule.cluster: rule for rule in variant.spatial}
    assert spatial["inter_column_spatial"].only == ("K", "P")
    assert temporal["filter"].innermost == ("C", "R") and not temporal["filter"].order  # P is outside of them


def test_rules_at_the_nodes_are_part_of_a_mapping() -> None:
    mapping = """
mapping:
- {target: DRAM, type: temporal, factors: [C=32, K=2, P=8, R=1], permutation: [R, C, K, P]}
- {target: column, type: spatial, factors: [K=8]}
- {target: PE, type: spatial, factors: [P=2], split: 0}
- {target: filter, type: temporal, factors: [R=3]}
- {target: glb, type: temporal, factors: [K=2], permutation: [K, C, R, P]}
"""
    inputs = read(EYERISS, PROBLEM, mapping)
    assert inputs.problem and inputs.architecture and inputs.mapping
    assert legality(inputs.problem, inputs.architecture, inputs.mapping)
    keeps = {entry.target: entry.keep for entry in inputs.mapping.entries if entry.keep is not None}
    assert keeps["glb"] == ("Inputs", "Outputs")
    assert keeps["ifmap"] == ("Inputs",) and keeps["filter"] == ("Weights",)
    assert keeps["inter_PE_spatial"] == ()
    assert "with another factor of C" in complaint(EYERISS, PROBLEM, mapping.replace("[K=8]", "[K=4, C=2]"))


def test_merge_keys_are_followed() -> None:
    text = ARCHITECTURE.replace(
        "architecture:\n", "shared_ignore: &wide {width: 64, datawidth: 8}\narchitecture:\n"
    ).replace("{depth: 32768, width: 64, datawidth: 8}", "{<<: *wide, depth: 32768}")
    assert read(text, ENERGIES, PROBLEM, MAPPING) == read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING)
    deep = text.replace("{<<: *wide, depth: 32768}", "{<<<: *wide, depth: 32768}")
    assert read(deep, ENERGIES, PROBLEM, MAPPING) == read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING)


def test_leakage_is_read() -> None:
    leaky = ENERGIES.replace("[{name: read, energy: 43", "[{name: leak, energy: 0.01}, {name: read, energy: 43")
    found, tight = read(ARCHITECTURE, leaky, PROBLEM, MAPPING), read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING)
    assert found.warnings == () and found.architecture is not None
    assert [memory.leakage_pj_per_cycle for memory in found.architecture.memories] == [0, 0, 0.01, 0]
    assert (found.problem, found.mapping) == (tight.problem, tight.mapping)


def test_a_memory_may_be_switched_elsewhere() -> None:
    gated = ARCHITECTURE.replace(
        "class: regfile, attributes: {", "class: regfile, attributes: {power_gated_at: GlobalBuffer, "
    )
    arch = read(gated, ENERGIES, PROBLEM, MAPPING).architecture
    assert arch is not None and arch.memories[-1].power_gated_at == "GlobalBuffer"
    assert "power-gated at Nowhere" in complaint(
        gated.replace("at: GlobalBuffer", "at: Nowhere"), ENERGIES, PROBLEM, MAPPING
    )


def test_without_energies_timeloop_estimates() -> None:
    inputs = read(ARCHITECTURE, PROBLEM, MAPPING)
    assert inputs.architecture
    assert "MainMemory, GlobalBuffer, RegisterFile, MACC" in inputs.warnings[0]
    dram, _, glb, rf = inputs.architecture.memories
    assert dram.read_energy_pj == 200 * 256 / 16
    assert glb.read_energy_pj == pytest.approx((1 + 5 / 99.5 * (256 - 0.5)) * 4)
    assert rf.read_energy_pj == pytest.approx((1 + 5 / 99.5 * (0.0625 - 0.5)) / 2)
    assert inputs.architecture.compute.energy_per_operation_pj == 0.25


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("!Component {name: GlobalBuffer", "{name: GlobalBuffer", ("has the tag nothing", "expected !Container")),
        ("!Component {name: GlobalBuffer", "!Compnent {name: GlobalBuffer", ("did you mean 'Component'",)),
        ("!Container {name: PE", "!Pipelined {name: PE", ("!Pipelined",)),
        ("meshX: 16", "meshX: lanes * 2", ("meshX of PE", "'lanes * 2'", "lanes: give each a number")),
        ("meshX: 16", "meshX: 0", ("meshX of PE", "at least 1")),
        ("meshX: 16", "meshZ: 16", ("meshZ",)),
        ("depth: 32768", "depth: exit()", ("depth of GlobalBuffer", "'exit()'")),
        ("depth: 32768", "depth: 32768, shared_bandwidth: 0", ("shared_bandwidth", "greater than 0")),
        ("class: SRAM,", "class: SRAM, sparse_optimizations: {x: 1},", ("sparse_optimizations",)),
        ("meshX: 16}", "meshX: 16}, sparse_optimizations: {x: 1}", ("a container has no sparse_optimizations",)),
        ("class: SRAM,", "class: SRAM, energy_scale: 2,", ("energy_scale",)),
        ("class: SRAM, ", "", ("no 'class'",)),
        ("name: PE, ", "", ("no 'name'",)),
        ("target: PE,", "target: PEs,", ("no storage level 'PEs'",)),
        ("target: PE, type: spatial", "target: PE, type: temporal", ("no storage level 'PE'",)),
        (
            "factors: [R=3, P=1, K=2, C=32]",
            "factors: [R=3, P=1, K=2, C=32], no_reuse: [Inputs]",
            ("no_reuse in a temporal directive",),
        ),
        ("mapping:\n", "mapping: {type: fused}\nunread_ignore:\n", ("type fused",)),
    ],
)
def test_faults_are_named_with_their_place(old: str, new: str, words: tuple[str, ...]) -> None:
    whole = ARCHITECTURE + ENERGIES + PROBLEM + MAPPING
    assert old in whole
    message = complaint(whole.replace(old, new, 1))
    assert message.startswith("0.yaml:")
    for word in words:
        assert word in message


def test_nothing_kept_in_a_parallel_branch() -> None:
    message = complaint(EYERISS.replace("dataspace: {keep: [Outputs]}", "dataspace: {}"), PROBLEM)
    assert "Outputs: no branch of a !Parallel keeps it" in message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 * kb + 1", 7),
        ("-kb", -2),
        ("ceil(log2(1000))", 10),
        ("max(kb, 5) // 2", 2),
        ("7 / 2", 3.5),
        ("2 ** 10", 1024),
    ],
)
def test_arithmetic(text: str, value: float) -> None:
    assert evaluate(text, {"kb": 2}) == value


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os')", "kb.bit_length()", "open('x')", "[1, 2]", "lambda: 1", "kb if kb else 1", "'a' * 9"),
        *("9 ** 9 ** 9", "10 ** 80", "1 / 0", "x", "kb(", "1e400", "True", "max()", "log2(0)", "(" * 200, "1 << 3"),
        *("sum(i for i in kb)", "kb := 3", "max(*kb)", "round(kb, ndigits=1)", "0x" + "f" * 400),
    ],
)
def test_anything_but_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {"kb": 2})


@given(st.text(max_size=40))
def test_whatever_stands_there_evaluates_to_a_number_or_is_refused(text: str) -> None:
    try:
        assert isinstance(evaluate(text, {"a": 3, "b": 0}), int | float)
    except ExpressionError:
        pass


def test_templates_and_includes(tmp_path: Path) -> None:
    """A top file includes a design by its name, and a problem merges a base, as in the authors' files."""
    (tmp_path / "designs").mkdir()
    (tmp_path / "designs/two.yaml").write_text(ARCHITECTURE.replace("depth: 32768", "depth: {{size}}"))
    (tmp_path / "base.yaml").write_text(PROBLEM.replace("problem:", "base_ignore: &base").replace("P: 16", "P: 4"))
    (tmp_path / "layer.yaml").write_text("{{include_text('base.yaml')}}\nproblem:\n  <<<: *base\n  instance: {P: 16}\n")
    (tmp_path / "map.yaml").write_text(MAPPING)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/1.yaml").write_text(ENERGIES)
    (tmp_path / "top.yaml.jinja2").write_text(
        "{{add_to_path(cwd())}}\n"
        "{% set mapping = cwd() ~ '/map.yaml' %}\n"
        "architecture: {{include('designs/' ~ design ~ '.yaml', 'architecture')}}\n"
        "problem: {{include('layer.yaml', 'problem')}}\n"
        "{% if path_exists(mapping) %}\nmapping: {{include(mapping, 'mapping')}}\n{% endif %}\n"
        "ERT: {{include_all('tables/*.yaml', 'ERT')}}\n"
    )
    options = TimeloopFiles(set=FrozenDict({"design": "two", "size": 32768}))
    inputs = TimeloopAdapter("v3", options).parse([tmp_path / "top.yaml.jinja2"])
    assert inputs == read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING)
    with pytest.raises(InputError, match="needs a value for design") as caught:
        TimeloopAdapter().parse([tmp_path / "top.yaml.jinja2"])
    assert "top.yaml.jinja2:3" in str(caught.value)


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    for name, text in (("a.yaml", ARCHITECTURE), ("b.yml", ENERGIES), ("c.yaml", PROBLEM), ("d.yaml", MAPPING)):
        (tmp_path / name).write_text(text)
    (tmp_path / "x.flattened_architecture.yaml").write_text(ARCHITECTURE.replace("16", "8"))
    (tmp_path / "x.stats.txt").write_text("Buffer and Arithmetic Levels\n")
    assert TimeloopAdapter().parse([tmp_path]) == read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING)
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="has no Timeloop files"):
        TimeloopAdapter().parse([tmp_path / "none"])
    (tmp_path / "none" / "arch").mkdir()
    (tmp_path / "none" / "arch" / "a.yaml").write_text(ARCHITECTURE)
    with pytest.raises(InputError) as caught:
        TimeloopAdapter().parse([tmp_path / "none"])
    assert caught.value.hint == "give files of one set from its folders: arch"


def test_an_array_container_is_a_container() -> None:
    text = ARCHITECTURE.replace("!Container {name: PE", "!ArrayContainer {name: PE")
    assert read(text, ENERGIES) == read(ARCHITECTURE, ENERGIES)


SPARSE = (
    PROBLEM.replace("P: 16}", "P: 16, densities: {Inputs: 0.5, Weights: {distribution: fixed, density: 0.1}}}"),
    ARCHITECTURE.replace(
        "name: GlobalBuffer,",
        "name: GlobalBuffer, sparse_optimizations: {action_optimization: "
        "[{type: gating, options: [{target: Weights, condition_on: [Inputs]}]}]},",
    ),
)


def test_sparse_files_are_read_as_dense_ones_when_that_is_said() -> None:
    problem, architecture = SPARSE
    sparse = read(architecture, ENERGIES, problem, MAPPING)
    assert sparse.architecture and sparse.architecture.sparse_parts == ("GlobalBuffer",)
    alone = read(ARCHITECTURE, ENERGIES, problem, MAPPING)  # without sparse hardware, densities change nothing
    assert alone.problem == sparse.problem and alone.problem and alone.problem.sparse_tensors == ("Weights", "Inputs")
    assert replace(alone, problem=None, warnings=()) == replace(
        read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING), problem=None
    )
    documents = [parse_document(text, source="x.yaml") for text in (architecture, ENERGIES, problem, MAPPING)]
    inputs = TimeloopAdapter("v4", TimeloopFiles(dense=True)).read(documents)
    assert replace(inputs, warnings=()) == read(ARCHITECTURE, ENERGIES, PROBLEM, MAPPING)
    assert len(inputs.warnings) == 2
    assert "densities of Inputs, Weights (sparse tensors) omitted" in inputs.warnings[0]
    assert "sparse_optimizations (sparse hardware) omitted" in inputs.warnings[1]

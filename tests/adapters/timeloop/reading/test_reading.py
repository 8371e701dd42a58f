"""Reading Timeloop's own files: their meaning in the schemas, and the messages for unreadable ones."""

from pathlib import Path

import pytest

from support.recorded.timeloop import INPUTS, Case, Rejected, cases, rejected
from tilewright.errors import InputError
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet
from tilewright.schema.frozen import FrozenDict
from tilewright_adapters import TimeloopFiles
from tilewright_adapters.timeloop import TimeloopAdapter

ARCHITECTURE = """
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {width: 64, block-size: 4, word-bits: 16}}
    subtree:
    - name: chip
      attributes: {technology: 40nm}
      local:
      - {name: Buffer, class: smartbuffer_SRAM, attributes: {memory_depth: 1024, memory_width: 64, n_banks: 2, block_size: 4}}
      - {name: "Column[0..2]", class: regfile, attributes: {entries: 32, meshX: 3}}
      subtree:
      - name: PE[0..5]
        local:
        - {name: Spad, class: smartbuffer_RF, attributes: {sizeKB: 1, meshX: 3, read_bandwidth: 2}}
        - {name: Mac, class: intmac, attributes: {datawidth: 8, meshX: 3}}
"""
ENERGIES = """
ERT:
  version: 0.3
  tables:
  - {name: system.DRAM, actions: [{name: read, arguments: {}, energy: 100}, {name: write, arguments: {}, energy: 110}]}
  - name: system.chip.Buffer
    actions:
    - {name: read, arguments: {stride: 0}, energy: 1}
    - {name: read, arguments: {stride: 1}, energy: 2.5}
    - {name: write, arguments: {}, energy: 3}
    - {name: update, arguments: {}, energy: 4}
  - {name: "system.chip.Column[0..2]", actions: [{name: read, energy: 0.5}, {name: write, energy: 0.5}]}
  - {name: "system.chip.PE[0..5].Spad", actions: [{name: read, energy: 0.25}, {name: write, energy: 0.25}]}
  - {name: "system.chip.PE[0..5].Mac", actions: [{name: mac_random, energy: 0.125}, {name: idle, energy: 0.1}]}
"""
PROBLEM = """
problem:
  shape:
    name: conv1d
    dimensions: [K, P, R]
    coefficients: [{name: Pstride, default: 1}]
    data-spaces:
    - {name: Weights, projection: [[[K]], [[R]]]}
    - {name: Inputs, projection: [[[P, Pstride], [R]]]}
    - {name: Outputs, projection: [[[K]], [[P]]], read-write: True}
  instance: {K: 12, P: 6, R: 3, Pstride: 2}
"""
MAPPING = """
mapping:
- {target: DRAM, type: temporal, factors: K=2, permutation: KPR}
- {target: Buffer, type: bypass, keep: [Inputs], bypass: [Weights]}
- {target: Buffer, type: temporal, factors: P=3 K=1, permutation: "R, P, K"}
- {target: Buffer, type: spatial, factors: K=3, permutation: [K, P, R], split: 1}
- {target: Column, type: spatial, factors: P=2, permutation: KRP, split: 2, no_reuse: [Inputs]}
- {target: 0, type: temporal, factors: K2 R3, permutation: RK P}
"""
ALL = ARCHITECTURE + ENERGIES + PROBLEM + MAPPING


def read(folder: Path, *texts: str) -> InputSet:
    files = []
    for number, text in enumerate(texts):
        files.append(folder / f"{number}.yaml")
        files[-1].write_text(text)
    return TimeloopAdapter().parse(files)


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    return str(caught.value)


MEASURED: dict[str, Case | Rejected] = {case.id: case for case in cases()} | {case.id: case for case in rejected()}


@pytest.mark.parametrize(
    "path", [path for path in sorted(INPUTS.iterdir()) if path.stem in MEASURED], ids=lambda p: p.stem
)
def test_reads_files_that_timeloop_ran(path: Path) -> None:
    case = MEASURED[path.stem]
    inputs = TimeloopAdapter().parse([path])
    assert inputs.architecture is not None
    assert inputs.problem == case.problem
    assert inputs.architecture.model_copy(update={"name": case.architecture.name}) == case.architecture
    assert inputs.mapping == case.mapping
    assert inputs.warnings == ()


def test_all_measured_mappings_are_legal_but_for_fanouts() -> None:
    for case in cases():
        assert legality(case.problem, case.architecture, case.mapping), case.id


def test_one_file_or_several_say_the_same(tmp_path: Path) -> None:
    together = read(tmp_path, ALL)
    assert read(tmp_path, MAPPING, ENERGIES, PROBLEM, ARCHITECTURE) == together
    assert together.warnings == ()


def test_levels_become_clusters(tmp_path: Path) -> None:
    arch = read(tmp_path, ALL).architecture
    assert arch is not None
    assert [(c.name, c.fanout.size, c.fanout.axis) for c in arch.clusters] == [
        ("DRAM", 1, "X"),
        ("Buffer", 3, "X"),
        ("Column", 2, "Y"),
        ("Spad", 1, "X"),
    ]
    dram, buffer, column, spad = arch.memories
    assert (dram.technology, dram.capacity_words, dram.block_words) == ("dram", None, 4)
    assert (buffer.technology, buffer.capacity_words, buffer.block_words) == ("sram", 4096, 4)
    assert (buffer.read_energy_pj, buffer.write_energy_pj, buffer.update_energy_pj) == (2.5, 3.0, 4.0)
    assert (column.technology, column.capacity_words) == ("register", 32)
    assert (spad.capacity_words, spad.read_bandwidth_words_per_cycle) == (512, 2.0)
    assert (arch.compute.name, arch.compute.word_bits, arch.compute.energy_per_operation_pj) == ("Mac", 8, 0.125)
    assert arch.compute_instances == 6


def test_directives_become_entries(tmp_path: Path) -> None:
    inputs = read(tmp_path, ALL)
    assert inputs.problem and inputs.architecture and inputs.mapping
    assert legality(inputs.problem, inputs.architecture, inputs.mapping)
    assert [(e.target, e.keep) for e in inputs.mapping.entries] == [
        ("DRAM", ("Weights", "Inputs", "Outputs")),
        ("DRAM", None),
        ("Buffer", ("Inputs", "Outputs")),
        ("Buffer", None),
        ("Column", ("Weights", "Inputs", "Outputs")),
        ("Column", None),
        ("Spad", ("Weights", "Inputs", "Outputs")),
        ("Spad", None),
    ]
    assert [(loop.entry, loop.dimension, loop.trips, loop.spatial) for loop in inputs.mapping.loops()] == [
        (1, "K", 2, False),
        (3, "P", 3, False),
        (3, "K", 3, True),
        (5, "P", 2, True),
        (7, "K", 2, False),
        (7, "R", 3, False),
    ]
    assert inputs.mapping.entries[3].temporal_order == ("K", "P", "R")
    assert inputs.mapping.entries[5].unicast == ("Inputs",)
    assert str(inputs.problem.tensor("Inputs").projection[0]) == "2*P + R"
    assert [tensor.role for tensor in inputs.problem.tensors] == ["weight", "input", "output"]


def test_a_level_that_fans_out_both_ways_gets_a_virtual_cluster() -> None:
    arch = TimeloopAdapter().parse([INPUTS / "A3_dwconv_00.yaml"]).architecture
    assert arch is not None
    names = [(c.name, c.fanout.axis, c.fanout.size, c.is_virtual) for c in arch.clusters]
    assert names[1:3] == [("GLB", "Y", 12, False), ("GLB_X", "X", 14, True)]


def test_an_unrolling_without_a_fanout_gets_a_place_and_is_judged(tmp_path: Path) -> None:
    text = ALL.replace("factors: K=2, permutation: KPR}", "permutation: KPR}") + (
        "- {target: DRAM, type: spatial, factors: K=2, permutation: KPR, split: 0}\n"
    )
    inputs = read(tmp_path, text)
    assert inputs.problem and inputs.architecture and inputs.mapping
    verdict = legality(inputs.problem, inputs.architecture, inputs.mapping)
    assert [(reason.code, reason.where) for reason in verdict.reasons] == [("fanout", "entry 1 on DRAM")]


def test_a_wrong_product_is_left_to_legality(tmp_path: Path) -> None:
    inputs = read(tmp_path, ALL.replace("factors: P=3 K=1", "factors: P=3 K=5"))
    assert inputs.problem and inputs.architecture and inputs.mapping
    (reason,) = legality(inputs.problem, inputs.architecture, inputs.mapping).reasons
    assert reason.code == "coverage" and "60 iterations, the problem has 12" in reason.message


def test_zero_is_the_whole_dimension(tmp_path: Path) -> None:
    whole = ALL.replace("P=3 K=1", "P=6 K=1").replace("factors: P=2", "factors: P=1")
    assert read(tmp_path, whole.replace("P=6 K=1", "P=0 K=1")) == read(tmp_path, whole)
    inputs = read(tmp_path, ALL.replace("P=3 K=1", "P=0 K=1"))
    assert inputs.problem and inputs.architecture and inputs.mapping
    (reason,) = legality(inputs.problem, inputs.architecture, inputs.mapping).reasons
    assert "12 iterations, the problem has 6" in reason.message


def test_remainders_become_tiles_that_do_not_divide(tmp_path: Path) -> None:
    inputs = read(
        tmp_path,
        ALL.replace("factors: K=2, permutation: KPR", 'factors: "K=2,2 P=2", permutation: KPR').replace(
            "P=3 K=1", '"P=2,1 K=1"'
        ),
    )
    assert inputs.problem and inputs.architecture and inputs.mapping
    assert legality(inputs.problem, inputs.architecture, inputs.mapping)
    assert not inputs.mapping.is_perfect
    assert [f[0]["P"] for f in inputs.mapping.factors()][:4] == [1, 2, 1, 2]
    assert "remainder" in complaint(tmp_path, ALL.replace("P=3 K=1", '"P=3,1 K=1"'))


def test_a_measured_remainder() -> None:
    inputs = TimeloopAdapter().parse([INPUTS / "A3_imperfect_v303_10.yaml"])
    assert inputs.mapping is not None and not inputs.mapping.is_perfect
    assert inputs.mapping.entries[1].temporal_tile_sizes["K"] == 5


def test_parts_may_be_absent(tmp_path: Path) -> None:
    alone = read(tmp_path, PROBLEM)
    assert alone.problem is not None and alone.architecture is None and alone.mapping is None
    hardware = read(tmp_path, ARCHITECTURE, ENERGIES)
    assert hardware.architecture == read(tmp_path, ALL).architecture


def test_a_coordinate_with_one_place_only_is_none(tmp_path: Path) -> None:
    """Exporters write a sum over all dimensions so."""
    shape = "shape: {name: sum, dimensions: [S], data-spaces: [{name: A, projection: [[[S]]]}, {name: B, projection: [[[S]]]}, "
    problem = read(
        tmp_path, f"problem:\n  {shape}{{name: Z, projection: [[]], read-write: true}}]}}\n  instance: {{S: 4}}\n"
    ).problem
    assert problem is not None and problem.tensor("Z").projection == ()


def test_problems_in_a_list_are_told(tmp_path: Path) -> None:
    assert "0.yaml:1:10: 2 problems in a list" in complaint(tmp_path, "problem: [{instance: a}, {instance: b}]\n")


def test_keys_that_timeloop_ignores_are_told(tmp_path: Path) -> None:
    text = ALL.replace("permutation: KPR}", "permutation: KPR, split: 1}").replace(
        "bypass: [Weights]", "bypass: [Weights], stream: [Inputs]"
    )
    inputs = read(tmp_path, text + "model: {verbose: true}\n")
    assert inputs.mapping == read(tmp_path, ALL).mapping
    assert [warning.partition(": ")[2] for warning in inputs.warnings] == [
        "model (settings of Timeloop's model) is ignored",
        "split in a temporal directive is ignored, as in Timeloop",
        "stream in a bypass directive is ignored, as in Timeloop",
    ]


def test_links_are_switched_off_by_tensor_and_level(tmp_path: Path) -> None:
    text = ALL.replace("no_reuse: [Inputs]", "no_reuse: [Inputs], no_link_transfer: [Weights, Outputs]")
    found, plain = read(tmp_path, text), read(tmp_path, ALL)
    assert found.mapping == plain.mapping and found.warnings == plain.warnings
    assert found.architecture is not None
    off = {cluster.name: cluster.fanout.unlinked for cluster in found.architecture.clusters}
    assert {name: each for name, each in off.items() if each} == {"Column": ("Outputs", "Weights")}
    text = ALL.replace("no_reuse: [Inputs]", "no_reuse: [Inputs], no_link_transfer: [Weight]")
    assert "did you mean 'Weights'" in complaint(tmp_path, text)


def test_a_stride_of_zero_moves_nothing(tmp_path: Path) -> None:
    problem = read(tmp_path, PROBLEM.replace("Pstride: 2", "Pstride: 0")).problem
    assert problem is not None and problem.tensor("Inputs").dimensions == {"R"}


def test_bit_widths_of_the_quantisation_fork_narrow_the_values(tmp_path: Path) -> None:
    """Two values of 3 bits fit a word of 8, so each takes 4; four fit a word of 16."""
    found = read(tmp_path, ALL.replace("Pstride: 2}", "Pstride: 2, bitwidths: {Weights: 3, Inputs: 8}}"))
    assert found.architecture is not None and any("bit widths (Weights 3, Inputs 8)" in each for each in found.warnings)
    assert {memory.word_bits: dict(memory.bits_per_value) for memory in found.architecture.memories} == {
        16: {"Weights": 4, "Inputs": 8}
    }
    common = read(tmp_path, ALL.replace("Pstride: 2}", "Pstride: 2, commonBitwidth: 4, bitwidths: {Inputs: 8}}"))
    assert common.architecture is not None
    assert {name: bits for memory in common.architecture.memories for name, bits in memory.bits_per_value.items()} == {
        "Weights": 4,
        "Inputs": 8,
        "Outputs": 4,
    }
    text = ALL.replace("Pstride: 2}", "Pstride: 2, bitwidths: {Weight: 3}}")
    assert "did you mean 'Weights'" in complaint(tmp_path, text)


def test_a_stray_file_in_a_folder_is_left_out_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "all.yaml").write_text(ALL)
    (folder / "compose.yaml").write_text("services: {tool: {image: x}}\n")
    inputs = TimeloopAdapter().parse([folder])
    assert inputs.mapping is not None and inputs.warnings[0].endswith(
        "compose.yaml is left out: it has no section of Timeloop"
    )
    with pytest.raises(InputError, match="no section 'services'"):
        TimeloopAdapter().parse([folder / "all.yaml", folder / "compose.yaml"])


def test_a_tileflow_problem_is_told_by_its_name(tmp_path: Path) -> None:
    text = "problem: {io: {ins: A, outs: C}, dimensions: [M], instance: {M: 4}, ops: []}\n"
    assert "TileFlow" in complaint(tmp_path, text)


def test_sizes_may_be_variables(tmp_path: Path) -> None:
    named = PROBLEM.replace("K: 12, P: 6", "K: 2 * HALF, P: ROWS")
    for variables in ("{HALF: 6, ROWS: HALF}", "[{HALF: 6}, {ROWS: HALF}]"):
        inputs = read(tmp_path, named, f"variables: {variables}\n")
        assert inputs.problem == read(tmp_path, PROBLEM).problem
    for position, text in enumerate((named, "variables: {HALF: 1, ROWS: HALF}\n")):
        (tmp_path / f"{position}.yaml").write_text(text)
    paths = [tmp_path / "0.yaml", tmp_path / "1.yaml"]
    adapter = TimeloopAdapter(options=TimeloopFiles(set=FrozenDict({"HALF": 6})))
    assert adapter.parse(paths).problem == read(tmp_path, PROBLEM).problem
    with pytest.raises(InputError, match="dimension P is 'ROWS', but there is no such variable") as caught:
        read(tmp_path, PROBLEM.replace("P: 6", "P: ROWS"))
    assert caught.value.hint is not None and "variables: {ROWS: 1}" in caught.value.hint


def test_old_spellings(tmp_path: Path) -> None:
    old_energies = """
    ERT:
      version: 0.2
      tables:
        system.DRAM: {read: [{arguments: {}, energy: 100}], write: {energy: 110}}
        system.chip.Buffer: {read: [{energy: 1}, {energy: 2.5}], write: {energy: 3}, update: {energy: 4}}
        system.chip.Column[0..2]: {read: {energy: 0.5}, write: {energy: 0.5}}
        system.chip.PE[0..5].Spad: {read: {energy: 0.25}, write: {energy: 0.25}}
        system.chip.PE[0..5].Mac: {mac_random: {energy: 0.125}}
    """
    assert (
        read(tmp_path, ARCHITECTURE, old_energies).architecture == read(tmp_path, ARCHITECTURE, ENERGIES).architecture
    )
    flat = """
    arch:
      arithmetic: {instances: 4, meshX: 2, word-bits: 8, energy: 0.5}
      storage:
      - {name: Registers, entries: 1, instances: 4, meshX: 2, vector-access-energy: 0.25}
      - {name: DRAM, technology: DRAM, instances: 1, bandwidth: 10.0, vector-access-energy: 64}
    """
    arch = read(tmp_path, flat).architecture
    assert arch is not None
    assert [(c.name, c.fanout.size, c.fanout.axis) for c in arch.clusters] == [
        ("DRAM", 2, "Y"),
        ("DRAM_X", 2, "X"),
        ("Registers", 1, "X"),
    ]
    assert arch.memories[0].technology == "dram"
    assert arch.memories[0].read_bandwidth_words_per_cycle == 5.0


def test_a_memory_without_entries_holds_nothing(tmp_path: Path) -> None:
    inputs = read(tmp_path, ALL.replace("entries: 32", "entries: 0"))
    assert inputs.problem and inputs.architecture and inputs.mapping
    assert inputs.architecture.memories[2].holds == ()
    reasons = legality(inputs.problem, inputs.architecture, inputs.mapping).reasons
    assert {(reason.code, reason.where) for reason in reasons} == {("keep", "entry 4 on Column")}


def test_what_is_ignored_is_said(tmp_path: Path) -> None:
    text = ALL.replace("n_banks: 2", "n_banks: 2, colour: red").replace(
        "      subtree:\n      - name: PE", "      - {name: Wires, class: XY_NoC}\n      subtree:\n      - name: PE"
    )
    text = text.replace("factors: K2 R3, permutation: RK P", "factors: K2 R3")
    inputs = read(tmp_path, text + "mapper: {timeout: 1000}\n")
    assert len(inputs.warnings) == 4
    assert "mapper" in inputs.warnings[0] and ":" in inputs.warnings[0]
    assert "colour" in inputs.warnings[1] and "Wires" in inputs.warnings[2] and "K, R" in inputs.warnings[3]


def test_entries_set_the_size_where_the_depth_gives_another(tmp_path: Path) -> None:
    inputs = read(tmp_path, ALL.replace("n_banks: 2", "n_banks: 2, entries: 512"))
    assert inputs.architecture is not None and inputs.architecture.memories[1].capacity_words == 512
    assert any("memory_depth of" in warning and "because entries is given" in warning for warning in inputs.warnings)


def test_what_people_note_beside_is_ignored_and_said(tmp_path: Path) -> None:
    noted = ALL.replace("- name: chip", "- name: chip\n      bank: 1").replace(
        "{name: Buffer,", "{owner: us, name: Buffer,"
    )
    found, plain = read(tmp_path, noted), read(tmp_path, ALL)
    assert (found.architecture, found.mapping) == (plain.architecture, plain.mapping)
    assert [word for word in ("'bank'", "'owner'") if any(word in warning for warning in found.warnings)] == [
        "'bank'",
        "'owner'",
    ]


def named_network(text: str, kind: str = "XY_NoC", inner: str = "Wires") -> str:
    """Return the files with a network between Buffer and Column, for reads and results."""
    text = text.replace("n_banks: 2", "network_read: Wires, network-update: Wires")
    text = text.replace("entries: 32", f"network_fill: {inner}, network_drain: {inner}, entries: 32")
    energies = "{router_energy: 0.5, energy-per-hop: 0.25, network_type: '1:N'}"
    network = f"{{name: Wires, class: {kind}, attributes: {energies}}}"
    return text.replace('      - {name: "Column', f'      - {network}\n      - {{name: "Column')


def test_a_named_network_counts_as_the_one_between_its_levels(tmp_path: Path) -> None:
    inputs = read(tmp_path, named_network(ALL))
    same = read(tmp_path, ALL.replace("n_banks: 2", "router_energy: 0.5, energy_per_hop: 0.25"))
    assert inputs.architecture == same.architecture and inputs.warnings == same.warnings
    assert inputs.architecture is not None
    assert inputs.architecture.cluster("Buffer").fanout.network.energy_per_hop_pj == 0.25


@pytest.mark.parametrize(("kind", "inner"), [("SimpleMulticast", "Wires"), ("XY_NoC", "Wire")])
def test_networks_that_mean_something_else_are_refused(tmp_path: Path, kind: str, inner: str) -> None:
    with pytest.raises(InputError, match="networks between Buffer and Column are not supported"):
        read(tmp_path, named_network(ALL, kind, inner))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("attributes: {technology: 40nm}", "atributes: {technology: 40nm}", ("did you mean 'attributes'",)),
        ("PE[0..5]", "PE[0..6]", ("7 instances", "meshX 3")),
        ('"Column[0..2]"', '"Column[0..1]"', ("Column", "meshX 3")),
        ("meshX: 3, read_bandwidth", "meshX: 2, read_bandwidth", ("2 Spad along X", "3 Column")),
        ("n_banks: 2", "min-utilization: 0.5", ("min_utilization", "Buffer")),
        ("n_banks: 2", "network_read: Wires", ("network_read",)),
        ("n_banks: 2", "word-bits: 16, word_bits: 16", ("is repeated in another spelling",)),
        ("read_bandwidth: 2", "read_bandwidth: 0", ("read_bandwidth", "greater than 0")),
        ("n_banks: 2", "multiple-buffering: 0.5", ("multiple_buffering of Buffer", "at least 1")),
        ("name: Buffer", "name: Column", ("names repeat: Column",)),
        ("name: Inputs", "name: 2nd input", ("expected a letter or _", "2nd input")),
        ("P: 6", "P: 0", ("dimension P", "at least 1")),
        ("[K, P, R]", "[K, P, K]", ("a dimension is repeated",)),
        ("name: Inputs", "name: Weights", ("names repeat",)),
        ("memory_width: 64", "memory_width: 48", ("width 48",)),
        (
            "entries: 32",
            "entries: 32, sizeKB: 8",
            ("entries 32 (32 words) and sizeKB 8 (4096 words)", "different sizes"),
        ),
        ("entries: 32", "entries: lots", ("entries of Column", "'lots'")),
        ("class: intmac", "class: wires", ("arithmetic level", "none")),
        ("subtree:\n  - name: system", "nodes:\n  - name: system", ("has the tag nothing", "expected !Container")),
        ("name: system.DRAM", "name: system.DRAN", ("lacks energies of DRAM", "did you mean 'DRAN'")),
        ("energy: 2.5", "energy: much", ("energy", "'much'")),
        ("[[K]], [[R]]", "[[K]], [[T]]", ("'T'", "dimension")),
        ("[P, Pstride]", "[P, K]", ("not affine",)),
        ("read-write: True", "read-write: False", ("0 data-spaces",)),
        ("K: 12, ", "", ("dimension K has no size",)),
        ("Pstride: 2", "Pstrid: 2", ("did you mean 'Pstride'",)),
        ("  shape:\n", "  shap:\n", ("no 'shape'",)),
        ("target: Column", "target: Colum", ("did you mean 'Column'",)),
        ("factors: P=2", "factors: Q=2", ("unknown dimension 'Q'",)),
        ("factors: P=2", "factors: P<=2", ("cannot read the factors",)),
        ("factors: P=2", "factors: P=2 P=2", ("two factors",)),
        ("permutation: KRP", "permutation: KRR", ("a dimension is repeated in 'KRR'",)),
        ("permutation: KRP", "permutation: KRX", ("unknown dimension 'X'",)),
        ("no_reuse: [Inputs]", "no_reuse: [Input]", ("did you mean 'Inputs'",)),
        ("bypass: [Weights]", "passthrough: [Weights]", ("pass-through",)),
        ("type: bypass", "type: bypas", ("directive type", "did you mean")),
        (
            "{target: Column, type: spatial",
            "{target: Buffer, type: spatial",
            ("the spatial directive for Buffer is repeated",),
        ),
        ("mapping:", "layout: [x]\nmapping:", ("layout", "could change results")),
        ("mapping:", "maping:", ("did you mean 'mapping'",)),
    ],
)
def test_faults_are_named_with_their_place(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    assert old in ALL
    message = complaint(tmp_path, ALL.replace(old, new, 1))
    assert str(tmp_path / "0.yaml") + ":" in message
    for word in words:
        assert word in message


def test_a_section_that_stands_twice_names_both_places(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1.yaml:3:3: problem is repeated; the first is at .*0.yaml:3:3"):
        read(tmp_path, PROBLEM, PROBLEM.replace("K: 12", "K: 6"))
    assert read(tmp_path, PROBLEM, PROBLEM) == read(tmp_path, PROBLEM)


def test_an_empty_section_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "mapping: []\nlayout: []\n", ALL) == read(tmp_path, ALL)
    assert read(tmp_path, ALL, "mapping: []\n") == read(tmp_path, ALL)


@pytest.mark.parametrize("key", ["<<", "<<<"])
def test_a_problem_may_be_merged(tmp_path: Path, key: str) -> None:
    base = PROBLEM.replace("problem:", "base_ignore: &base").replace("K: 12, ", "K: 5, ")
    merged = f"problem:\n  {key}: *base\n  instance: {{K: 12, P: 6, R: 3, Pstride: 2}}\n"
    assert read(tmp_path, base + merged).problem == read(tmp_path, PROBLEM).problem


def test_sizes_that_agree_may_both_stand(tmp_path: Path) -> None:
    twice = ALL.replace("memory_depth: 1024", "memory_depth: 1024, entries: 4096")
    assert read(tmp_path, twice) == read(tmp_path, ALL)


def test_of_two_names_for_one_thing_the_first_counts_as_in_timeloop(tmp_path: Path) -> None:
    """Files for sparse runs and dense ones have both."""
    both = ALL.replace("memory_depth: 1024", "depth: 1024, data_storage_depth: 640, data_storage_width: 32, width: 64")
    found, plain = read(tmp_path, both), read(tmp_path, ALL)
    assert found.architecture == plain.architecture
    told = [warning for warning in found.warnings if warning not in plain.warnings]
    assert [each.split(": ")[1].split()[0] for each in told] == ["data_storage_width", "data_storage_depth"]


def test_an_action_that_the_energy_table_lacks_has_timeloops_estimate(tmp_path: Path) -> None:
    table = "- {name: read, arguments: {stride: 0}, energy: 1}"
    actions = ALL[ALL.index(table) : ALL.index("    - {name: update, arguments: {}, energy: 4}\n")]
    inputs = read(tmp_path, ALL.replace(actions, "- {name: access, energy: 7}\n"))
    assert inputs.architecture is not None
    buffer = inputs.architecture.memories[1]
    assert buffer.read_energy_pj == buffer.write_energy_pj == pytest.approx(5.507538)
    assert buffer.update_energy_pj == 4
    assert f"lacks 'read' or 'write' of {buffer.name}" in " ".join(inputs.warnings)


def test_what_a_component_says_of_its_energy_counts_more_than_the_table(tmp_path: Path) -> None:
    arch = read(tmp_path, ALL.replace("n_banks: 2", "vector_access_energy: 9")).architecture
    assert arch is not None
    assert (arch.memories[1].read_energy_pj, arch.memories[1].write_energy_pj) == (9, 9)


def test_a_width_of_one_of_several_instances_is_read_as_a_block_of_one(tmp_path: Path) -> None:
    inputs = read(tmp_path, ALL.replace("entries: 32", "width: 16, cluster_size: 3, depth: 32"))
    assert inputs.architecture is not None
    column = inputs.architecture.memories[2]
    assert (column.block_words, column.instances_per_macro, column.capacity_words) == (1, 3, 32)
    (warning,) = inputs.warnings
    assert "width 16 of Column is not 16 bits x cluster 3" in warning and "0.yaml:13" in warning


def test_a_mapping_needs_the_rest(tmp_path: Path) -> None:
    assert "a mapping needs its architecture" in complaint(tmp_path, PROBLEM + MAPPING)
    assert "a mapping needs its problem" in complaint(tmp_path, ARCHITECTURE + ENERGIES + MAPPING)
    with pytest.raises(InputError, match="no architecture, problem or mapping"):
        TimeloopAdapter().parse([])


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (", split: 2", "", "0.yaml:50:44: Column unrolls P=2 along X, where it has 1; it has 2 along Y. Without `split`, Timeloop takes X: add `split: 0`"),
        (", split: 2", ", split: 3", "Column unrolls P=2 along X, where it has 1; it has 2 along Y."),
        ("K=3, permutation: [K, P, R], split: 1", "K=3", None),
        ("factors: P=2, permutation: KRP, split: 2", "factors: P=9", None),
    ],
)  # fmt: skip
def test_a_missing_split_is_named_where_only_another_axis_has_room(
    old: str, new: str, told: str | None, tmp_path: Path
) -> None:
    assert not any("split" in warning for warning in read(tmp_path, ALL).warnings)
    found = [warning for warning in read(tmp_path, ALL.replace(old, new)).warnings if "`split" in warning]
    assert len(found) == (told is not None) and all(told is not None and told in warning for warning in found)

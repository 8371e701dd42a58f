"""Files of ZigZag: they are read and written, and missing values are not guessed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from support.command import Command
from support.notations import (
    BOARD,
    costs_the_same_as_a_loop_nest,
    edit,
    evaluated,
    is_refused_as_stale,
    same,
    with_sidecar,
)
from support.zigzag_files import Files, files
from tilewright.application.conversion.conversion import write_files
from tilewright.errors import InputError, NotConformableError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import NO_CONSTRAINTS
from tilewright.schema.document import dump_yaml
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.zigzag import ZigZagAdapter

ADAPTER = ZigZagAdapter()
ACCELERATOR = """
name: small-array
memories:
  weight_register:
    size: 8
    r_cost: 0.01
    w_cost: 0.02
    area: 0
    latency: 1
    operands: [I2]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 8, bandwidth_max: 8, allocation: ["I2, tl"]}
      - {name: w_port_1, type: write, bandwidth_min: 8, bandwidth_max: 8, allocation: ["I2, fh"]}
    served_dimensions: []
  sum_register:
    size: 32
    r_cost: 0.02
    w_cost: 0.02
    area: 0
    latency: 1
    operands: [O]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 8, bandwidth_max: 8, allocation: ["O, tl", "O, th"]}
      - {name: w_port_1, type: write, bandwidth_min: 8, bandwidth_max: 8, allocation: ["O, fh", "O, fl"]}
    served_dimensions: [D1]
  buffer:
    size: 2048
    r_cost: 4
    w_cost: 6
    area: 0
    latency: 1
    operands: [I1, O]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 16, bandwidth_max: 64, allocation: ["I1, tl", "O, tl", "O, th"]}
      - {name: w_port_1, type: write, bandwidth_min: 16, bandwidth_max: 64, allocation: ["I1, fh", "O, fh", "O, fl"]}
    served_dimensions: [D1, D2]
  dram:
    size: 10000000000
    r_cost: 700
    w_cost: 750
    area: 0
    latency: 1
    operands: [I1, I2, O]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 64, bandwidth_max: 64, allocation: ["I1, tl", "I2, tl", "O, tl", "O, th"]}
      - {name: w_port_1, type: write, bandwidth_min: 64, bandwidth_max: 64, allocation: ["I1, fh", "I2, fh", "O, fh", "O, fl"]}
    served_dimensions: [D1, D2]
operational_array: {unit_energy: 0.04, unit_area: 1, dimensions: [D1, D2], sizes: [4, 8]}
"""
WORKLOAD = """
- id: 0
  name: conv
  operator_type: Conv
  equation: O[b][k][oy]+=W[k][c][fy]*I[b][c][iy]
  dimension_relations: [iy=2*oy+1*fy]
  loop_dims: [B, K, C, OY, FY]
  loop_sizes: [1, 16, 8, 4, 3]
  operand_precision: {W: 8, I: 8, O: 8, O_final: 8}
  operand_source: {W: 0, I: 0}
- id: 1
  operator_type: Gemm
  equation: O[d][k]+=I[d][c]*W[c][k]
  loop_dims: [D, K, C]
  loop_sizes: [4, 8, 16]
  operand_precision: {W: 8, I: 8, O: 8, O_final: 8}
"""
MAPPING = """
- name: default
  spatial_mapping: {D1: ["C, 4"], D2: ["K, 8"]}
  temporal_ordering: [[OY, 4], [FY, 3], [C, 2], [K, "*"]]
  memory_operand_links: {O: O, W: I2, I: I1}
- name: Gemm
  spatial_mapping: {D1: ["C, 4"], D2: ["K, 8"]}
"""
NAMES = ("accelerator.yaml", "workload.yaml", "mapping.yaml")


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    write_files(tmp_path, dict(zip(NAMES, (ACCELERATOR, WORKLOAD, MAPPING), strict=True)))
    return tmp_path


def parse(folder: Path, layer: str = "conv") -> InputSet:
    return ADAPTER.parse([folder / NAMES[0], folder / NAMES[1] / layer, folder / NAMES[2]])


def read(found: Files, folder: Path) -> InputSet:
    """Return the inputs of readable random files, without the reader's remarks."""
    paths = write_files(folder, {name: dump_yaml(data) for name, data in found.items()})
    try:
        return replace(ADAPTER.parse(paths), warnings=())
    except InputError as error:
        event(error.message.partition(":")[0])
        assert error.location is not None
        assume(False)
        raise


@given(found=files())
def test_what_is_read_is_written_and_comes_back(folder: Path, found: Files) -> None:
    inputs = read(found, folder)
    original = evaluated(inputs)
    assert {reason.code for reason in original.reasons} <= {"capacity"}  # ZigZag doubles tiles by a rule of its own
    verdict = ADAPTER.expressible(inputs)
    event("written" if verdict else verdict.reasons[0].code)
    if not verdict:
        assert {reason.code for reason in verdict.reasons} <= {"capacity", "allocation", "ports"}
        return
    texts = ADAPTER.render(inputs)
    assert same(ADAPTER.parse(write_files(folder / "written", texts)), inputs)
    # and what ZigZag reads, without our file beside it, costs the same
    plain = evaluated(ADAPTER.parse([folder / "written" / name for name in NAMES]))
    assert (plain.cycles, plain.valid, plain.macs) == (original.cycles, original.valid, original.macs)
    assert plain.energy_pj == pytest.approx(original.energy_pj)


@given(data=st.data())
def test_damaged_files_are_refused_and_nothing_else(folder: Path, data: st.DataObject) -> None:
    """Every change gives an input set or a message for the user."""
    found: Files = json.loads(json.dumps(data.draw(files())))
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = found
        while True:
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.integers(0, 5)) == 0:
                break
            place = place[key]
        odd: st.SearchStrategy[Any] = st.sampled_from(
            [None, 0, -1, 1.5, "", "K, 2", "D1", "x", [], {}, [["K", 2]], True, 10**30, ["O, tl"]]
        )
        if data.draw(st.booleans()):
            place[key] = data.draw(odd)
        else:
            del place[key]
        if not place:
            break
    paths = write_files(folder, {name: dump_yaml(each) for name, each in found.items()})
    try:
        inputs = ADAPTER.parse(paths)
    except InputError as error:
        assert "Traceback" not in str(error)
        return
    ADAPTER.expressible(inputs)


def test_a_layer_and_its_mapping_are_read(sample: Path) -> None:
    inputs = parse(sample)
    assert inputs.problem and inputs.architecture and inputs.mapping and inputs.constraints is None
    assert dict(inputs.problem.dimensions) == {"B": 1, "K": 16, "C": 8, "OY": 4, "FY": 3}
    assert [str(rank) for rank in inputs.problem.tensor("I").projection][2] == "2*OY + FY"
    clusters = [cluster.name for cluster in inputs.architecture.clusters]
    assert clusters == ["dram", "buffer", "sum_register", "weight_register"]
    assert inputs.architecture.compute_instances == 32
    memories = {memory.name: memory for memory in inputs.architecture.memories}
    assert memories["buffer"].capacity_words == 256 and memories["buffer"].block_words == 2
    assert memories["buffer"].read_energy_pj == pytest.approx(4 * 16 / 64)
    assert memories["buffer"].read_bandwidth_words_per_cycle == 8
    assert memories["sum_register"].holds == ("output",)
    # innermost first in the file: OY, FY, C, K; the register keeps four sums, so all of OY, FY and C
    steps = [(loop.dimension, loop.trips) for loop in inputs.mapping.loops() if not loop.spatial]
    assert steps == [("K", 2), ("C", 2), ("FY", 3), ("OY", 4)]
    assert any("does not fix the loops of K" in warning for warning in inputs.warnings)
    assert evaluated(inputs).valid


def test_a_mapping_without_an_order_gives_constraints(sample: Path) -> None:
    inputs = parse(sample, "Layer1")
    assert inputs.mapping is None and inputs.constraints is not None
    unrolled = [
        {name: (each.min, each.max) for rule in variant.spatial for name, each in rule.factors.items()}
        for variant in inputs.constraints.variants
    ]
    assert unrolled == [{"C": (4, 4), "K": (8, 8)}]
    assert any("read as constraints" in warning for warning in inputs.warnings)
    # and without a layer, what the mapping fixes all the same
    alone = ADAPTER.parse([sample / NAMES[0], sample / NAMES[2]])
    assert alone.problem is None and alone.constraints is not None
    (variant,) = alone.constraints.variants
    assert {name for rule in variant.spatial for name in rule.factors} == {"C", "K"}


def test_an_unrolling_that_does_not_divide_leaves_no_layer_unmapped(tilewright: Command, sample: Path) -> None:
    edit(sample / NAMES[1], "loop_sizes: [4, 8, 16]", "loop_sizes: [4, 12, 16]")
    edit(sample / NAMES[2], ', [K, "*"]]', "]")
    hardware = [word for name in (NAMES[0], NAMES[2]) for word in ("--arch", sample / name)]
    ran = tilewright("map", sample / NAMES[1], *hardware, "--mapper", "random", "--evaluations", "500", "--json")
    assert ran.code == 0 and [layer["best"]["valid"] for layer in ran.data["layers"]] == [True, True]
    busy = ran.data["layers"][1]["best"]["utilization"]
    assert busy == 0.75  # 12 of 16 lanes, over two steps of K


def test_layers_of_different_precisions_share_one_architecture(tilewright: Command, sample: Path) -> None:
    """Tensors have their bits in their names. Each layer costs what it costs alone, with words as narrow as possible."""
    edit(sample / NAMES[2], ', [K, "*"]]', "]")
    text = (sample / NAMES[1]).read_text()
    (sample / NAMES[1]).write_text(
        text[::-1].replace("}8 :lanif_O ,8 :O ,8 :I ,8 :W{", "}8 :lanif_O ,8 :O ,8 :I ,4 :W{", 1)[::-1]
    )
    found = parse(sample), parse(sample, "Layer1")
    assert found[0].architecture == found[1].architecture
    assert [each.problem.tensor_names for each in found if each.problem] == [
        ("W_8", "I_8", "O_8_8"),
        ("I_8", "W_4", "O_8_8"),
    ]
    assert found[0].architecture is not None
    dram = found[0].architecture.memories[0]
    assert dram.word_bits == 4 and dram.bits_per_value == {"W_8": 8, "I_8": 8, "O_8_8": 8}
    hardware = [word for name in (NAMES[0], NAMES[2]) for word in ("--arch", sample / name)]
    ran = tilewright("map", sample / NAMES[1], *hardware, "--mapper", "random", "--evaluations", "500", "--json")
    assert ran.code == 0 and all(layer["best"]["valid"] for layer in ran.data["layers"])


def test_an_operand_of_no_bits_is_no_other_precision(sample: Path) -> None:
    text = (sample / NAMES[1]).read_text()
    (sample / NAMES[1]).write_text("W: 0, I".join(text.rsplit("W: 8, I", 1)))
    inputs = parse(sample, "Layer1")
    assert inputs.problem is not None and inputs.problem.tensor_names == ("I", "W", "O")


def test_the_files_are_evaluated_and_converted_as_they_are(tilewright: Command, sample: Path) -> None:
    files = [sample / NAMES[0], sample / NAMES[1] / "conv", sample / NAMES[2]]
    costs_the_same_as_a_loop_nest(tilewright, "zigzag", files, sample)


def test_files_of_before_2025_are_read(sample: Path) -> None:
    new = parse(sample)
    text = (sample / NAMES[0]).read_text()
    text = text.replace(
        "operational_array: {unit_energy: 0.04, unit_area: 1,",
        "multipliers: {multiplier_energy: 0.04, multiplier_area: 1,",
    )
    for name, reads, writes, finest in (
        ("weight_register", 8, 8, 8), ("sum_register", 8, 8, 8), ("buffer", 64, 64, 16), ("dram", 64, 64, 64),
    ):  # fmt: skip
        head, _, rest = text.partition(f"  {name}:\n")
        body, _, tail = rest.partition("    ports:\n")
        ports, _, tail = tail.partition("    served_dimensions")
        count = ports.count("fh")
        old = "".join("      - {fh: w_port_1, tl: r_port_1, fl: w_port_1, th: r_port_1}\n" for _ in range(count))
        widths = (
            f"    r_bw: {reads}\n    w_bw: {writes}\n    min_r_granularity: {finest}\n    min_w_granularity: {finest}\n"
        )
        text = f"{head}  {name}:\n{body}{widths}    ports:\n{old}    served_dimensions{tail}"
    (sample / NAMES[0]).write_text(text)
    assert same(parse(sample), new)


def test_memories_that_do_not_nest_are_copied_with_a_warning(sample: Path) -> None:
    plain = parse(sample).architecture
    edit(sample / NAMES[0], "served_dimensions: []", "served_dimensions: [D2]")
    inputs = parse(sample)
    assert inputs.architecture is not None and plain is not None
    whole, copy = (
        next(memory for memory in architecture.memories if memory.name == "weight_register")
        for architecture in (plain, inputs.architecture)
    )
    assert copy.read_energy_pj == whole.read_energy_pj / 8 and copy.write_energy_pj == whole.write_energy_pj / 8
    assert any(
        "weight_register is shared along D2" in warning and "8 instances" in warning for warning in inputs.warnings
    )


def test_repeated_keys_count_as_in_zigzag(sample: Path) -> None:
    edit(sample / NAMES[0], "    size: 8\n", "    size: 8\n    size: 16\n")
    found = parse(sample)
    assert found.architecture is not None
    assert next(each for each in found.architecture.memories if each.name == "weight_register").capacity_words == 2
    assert any("'size' is repeated" in warning and "accelerator.yaml:6" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("accelerator.yaml", "size: 2048", "size: 32", "buffer has 32 bits"),
        ("accelerator.yaml", "served_dimensions: [D1, D2]\n  dram", "served_dimensions: [D7]\n  dram", "serves D7"),
        ("accelerator.yaml", "r_cost: 4\n    ", "", "r_cost and w_cost are missing"),
        ("accelerator.yaml", '"I2, tl"', "I2, tl", "'I2' is not an operand with a direction; expected one like 'I1, tl'"),
        ("accelerator.yaml", "unit_energy: 0.04", "unit_energy: 0.04, is_imc: true", "in-memory computing"),
        ("accelerator.yaml", "name: small-array", "name: m\ntype: zigzag.memory", "a core of type zigzag.memory computes nothing"),
        ("accelerator.yaml", "bandwidth_min: 16", "bandwidth_min: 99", "bandwidth_min 99 is above"),
        ("workload.yaml", "[k][c][fy]", "[k][c][fz]", "the equation's FZ is not in loop_dims"),
        ("workload.yaml", "loop_sizes: [1, 16, 8, 4, 3]", "loop_sizes: [1, 16, 8, 4]", "4 loop_sizes for 5 loop_dims"),
        ("workload.yaml", "iy=2*oy+1*fy", "iy=2*oy", "dimension_relations"),
        ("mapping.yaml", "[FY, 3]", "[FY, 2]", "has 2 iterations of FY; the spatial loops leave 3"),
        ("mapping.yaml", "D2: [", "D3: [", "names D3; the array has D1, D2"),
        ("mapping.yaml", "W: I2, I: I1", "W: I1, I: I1", "memory_operand_links"),
        ("mapping.yaml", "default", "other", "there is no mapping called default"),
    ],
)  # fmt: skip
def test_faults_are_told_with_their_place(sample: Path, name: str, old: str, new: str, message: str) -> None:
    edit(sample / name, old, new)
    with pytest.raises(InputError) as caught:
        parse(sample)
    assert message in str(caught.value)
    assert caught.value.location is not None and caught.value.location.line is not None
    assert Path(caught.value.location.source).name == name or "has 32 bits" in message


def test_files_of_streams_cores_are_read(sample: Path) -> None:
    plain = parse(sample)
    edit(sample / NAMES[0], "name: small-array", "name: small-array\ntype: zigzag.compute\noperator_types: [Conv]")
    edit(sample / NAMES[0], "size: 2048", "size: 2_048")
    edit(sample / NAMES[0], "name: small-array", "name: small-array\noperand_precision: {W: 8, I: 8, O: 16, A: bf16}")
    edit(sample / NAMES[1], "  loop_dims", "  constant_operands: [W]\n  loop_dims")
    assert same(parse(sample), plain)
    (sample / "chip.yaml").write_text("name: quad\ncores: {0: ./cores/a.yaml}\ncore_connectivity: []\n")
    with pytest.raises(InputError, match="chip.yaml:2:.*several cores") as caught:
        ADAPTER.parse([sample / "chip.yaml"])
    assert caught.value.hint == "give the file of one core"


def test_a_mapping_may_leave_all_to_a_search(sample: Path) -> None:
    (sample / NAMES[2]).write_text("- {name: default, core_allocation: [1]}\n")
    inputs = parse(sample)

    assert inputs.mapping is None and any("temporal_ordering is incomplete" in warning for warning in inputs.warnings)
    assert inputs.constraints is None or not any(rule.spatial for rule in inputs.constraints.variants)


def test_a_part_of_an_order_is_left_to_the_report(sample: Path) -> None:
    (sample / NAMES[2]).write_text("- {name: default, temporal_ordering: [[C, 2]]}\n")
    inputs = parse(sample)
    assert inputs.mapping is None and inputs.constraints is not None
    (rule,) = inputs.constraints.variants[0].unsearched
    assert rule.name == "temporal_ordering" and rule.why == "the order C 2, which leaves loops open"
    assert rule.where.endswith(f"{NAMES[2]}:1:1") and not rule.missing


def test_a_layer_is_chosen_by_name(sample: Path) -> None:
    with pytest.raises(InputError, match="the file has 2 layers; select one") as caught:
        ADAPTER.parse([sample / NAMES[1]])
    assert caught.value.hint is not None and "conv, Layer1" in caught.value.hint
    with pytest.raises(InputError, match="there is no layer cnv; did you mean 'conv'"):
        ADAPTER.parse([sample / NAMES[1] / "cnv"])
    with pytest.raises(InputError, match="a mapping needs its accelerator"):
        ADAPTER.parse([sample / NAMES[2]])
    with pytest.raises(InputError, match="problem file is repeated"):
        ADAPTER.parse([sample / NAMES[1] / "conv", sample / NAMES[1]])
    with pytest.raises(InputError, match="no files"):
        ADAPTER.parse([])


def test_a_dimension_is_unrolled_no_further_than_words_come_at_once(sample: Path) -> None:
    edit(sample / NAMES[2], 'D1: ["C, 4"], D2: ["K, 8"]', 'D1: ["K, 4"], D2: ["C, 8"]')
    edit(sample / NAMES[2], "[C, 2]", "[C, 1]")
    edit(sample / NAMES[2], 'D1: ["C, 4"]', 'D1: ["K, 4"]')
    with pytest.raises(InputError, match="K is unrolled over D1 4 times, but sum_register moves 1 at once"):
        parse(sample)
    limited = parse(sample, "Layer1")
    assert limited.constraints is not None
    assert any("K is unrolled over D1 4 times, but sum_register moves 1 at once" in each for each in limited.warnings)


def test_the_files_are_those_one_would_write(sample: Path) -> None:
    inputs = parse(sample)
    texts = ADAPTER.render(replace(inputs, warnings=()))
    assert set(texts) == set(NAMES)  # they say it all
    assert "temporal_ordering:\n    - [OY, 4]\n    - [FY, 3]\n    - [C, 2]\n    - [K, 2]\n" in texts["mapping.yaml"]
    assert "equation: O[B][K][OY]=W[K][C][FY]*I[B][C][X0]" in texts["workload.yaml"]
    assert same(ADAPTER.parse(write_files(sample, texts)), inputs)


def test_a_file_beside_other_files_is_refused(sample: Path) -> None:
    paths, noted = with_sidecar(ADAPTER, parse(sample), sample / "other")
    edit(sample / "other" / "mapping.yaml", "[C, 2]", "[C, 2] ")
    assert same(ADAPTER.parse(paths), noted)  # what it says counts, not how
    edit(sample / "other" / "accelerator.yaml", "r_cost: 700", "r_cost: 70")
    is_refused_as_stale(ADAPTER, paths, "ZigZag")


SMALL = Problem.model_validate(
    {
        "name": "small",
        "dimensions": {"M": 4, "N": 4},
        "tensors": [
            {"name": "A", "role": "input", "projection": ["M"]},
            {"name": "B", "role": "weight", "projection": ["N"]},
            {"name": "Z", "role": "output", "projection": ["M", "N"]},
        ],
    }
)
NEST = """
entries:
- {target: Far, keep: [A, B, Z], temporal_tile_sizes: {M: 4, N: 4}}
- {target: Far, temporal_tile_sizes: {M: 4, N: 4}, temporal_order: [M, N], spatial_tile_sizes: {M: 1}}
- {target: Near, keep: [A, B, Z]}
- {target: Near, temporal_tile_sizes: {M: 1, N: 1}, temporal_order: [M, N]}
"""
EARLY = """
entries:
- {target: Far, keep: [A, B, Z], temporal_tile_sizes: {M: 4, N: 4}}
- {target: Far, temporal_tile_sizes: {M: 4, N: 1}, temporal_order: [M, N], spatial_tile_sizes: {M: 1}}
- {target: Near, keep: [A, B, Z]}
"""


def board(text: str = BOARD) -> Architecture:
    return Architecture.from_yaml(text)


THREE = [{"name": name, "role": "input", "projection": ["M"]} for name in "ABC"]
WINDOW = [
    {"name": "A", "role": "input", "projection": ["M + 2*N"]},
    {"name": "B", "role": "weight", "projection": ["N + M"]},
    {"name": "Z", "role": "output", "projection": ["M", "N"]},
]


@pytest.mark.parametrize(
    ("problem", "architecture", "nest", "codes"),
    [
        (SMALL, BOARD, NEST, set()),
        (SMALL, BOARD, NEST.replace("{M: 1, N: 1}, temporal_order", "{M: 1, N: 1}, unicast: [A], temporal_order"), {"unicast"}),
        (SMALL, BOARD, EARLY, {"allocation"}),
        (SMALL, BOARD.replace("write_energy_pj: 3", "write_energy_pj: 3, update_energy_pj: 5"), NEST, {"update_energy"}),
        (SMALL, BOARD.replace("capacity_words: 9", "capacity_words: 9, read_bandwidth_words_per_cycle: 0.3"), NEST, {"bandwidth"}),
        (SMALL, BOARD.replace("capacity_words: 9", "capacity_words: 9, multiple_buffering: 3"), NEST, {"buffering"}),
        (SMALL, BOARD.replace("capacity_words: 9", "capacity_words: 9, holds: [A, B, Z]"), NEST, {"holds"}),
        (SMALL, BOARD.replace("size: 4", "size: 4, reduction: false"), NEST, {"no_sharing"}),
        (SMALL, BOARD.replace("pj: 1}\n", "pj: 1, cycles_per_operation: 2}\n"), NEST, {"cycles_per_operation"}),
        (SMALL.model_copy(update={"unit_operation": "max"}), BOARD, NEST, {"unit_operation"}),
        (Problem.model_validate(SMALL.to_data() | {"tensors": [*THREE, SMALL.to_data()["tensors"][2]]}), BOARD, None, {"operands"}),
        (Problem.model_validate(SMALL.to_data() | {"tensors": WINDOW}), BOARD, None, {"windows"}),
    ],
)  # fmt: skip
def test_what_the_files_cannot_say_is_named(
    problem: Problem, architecture: str, nest: str | None, codes: set[str]
) -> None:
    inputs = InputSet(problem, board(architecture), Mapping.from_yaml(nest) if nest else None)
    verdict = ADAPTER.expressible(inputs)
    assert {reason.code for reason in verdict.reasons} == codes
    if codes:
        with pytest.raises(NotConformableError):
            ADAPTER.render(inputs)


def test_constraints_and_a_mapping_alone_have_no_place() -> None:
    for inputs, code in (
        (InputSet(SMALL, board(), None, NO_CONSTRAINTS), "constraints"),
        (InputSet(mapping=Mapping.from_yaml(NEST)), "missing"),
        (InputSet(), "nothing"),
    ):
        assert [reason.code for reason in ADAPTER.expressible(inputs).reasons] == [code]

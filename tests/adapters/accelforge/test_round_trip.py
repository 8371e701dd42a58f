"""Files of AccelForge: they are read and written, and templates are rendered."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from support.accelforge_inputs import inputs as suitable
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
from tilewright.application.conversion.conversion import write_files
from tilewright.errors import InputError, NotConformableError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import NO_CONSTRAINTS
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright_adapters.accelforge import AccelForgeAdapter

ADAPTER = AccelForgeAdapter()
NAMES = ("arch.yaml", "workload.yaml", "mapping.yaml")
ARCH = """
{% set BufferBits = BufferBits | default(4096) %}
arch:
  variables: {kb: 1024 * 8}
  nodes:
  - !Memory
    name: MainMemory
    size: inf
    leak_power: 0
    tensors: {keep: ~Intermediates, may_keep: All}
    actions:
    - {name: read, energy: 8.0e-12, throughput: 8 * 4e9}
    - {name: write, energy: 9.0e-12, throughput: 8 * 2e9}
    total_latency: max(a.n_calls / a.throughput for a in actions)

  - !Memory
    name: Buffer
    size: {{BufferBits}} * 2
    tensors: {keep: input | output}
    bits_per_action: 16
    actions:
    - {name: read, energy: 2.0e-12, throughput: inf}
    - {name: write, energy: 3.0e-12, throughput: inf}

  - !Container
    name: ProcessingElement
    spatial:
    - {name: reuse_input, fanout: 4, reuse: input, min_usage: 1}
    - {name: reuse_output, fanout: 2, reuse: output}

  - !Memory
    name: Register
    size: weight.bits_per_value if weight else 0
    component_class: Dummy
    tensors: {keep: weight}

  - !Compute
    name: Vector
    enabled: len(All) == 2
    component_class: Dummy

  - !Compute
    name: MAC
    actions: [{name: compute, energy: 0.5e-12, throughput: 1e9}]
"""
WORKLOAD = """
workload:
  iteration_space_shape:
    m: 0 <= m < 16
  rank_sizes: {K: 8, N: 4}
  bits_per_value: {All: 8}
  einsums:
  - "Y[m, n] = X[m, k] * V[k, n]"
  - name: Window
    tensor_accesses:
    - {name: Y, projection: {M: p * 2 + r, N: n}}
    - {name: F, projection: [r, n]}
    - {name: Z, projection: [p, n], output: True}
    iteration_space_shape: [0 <= p < 7 and 0 <= r <= 2]
    renames: {input: Y, output: Z}
renames:
  einsums:
  - name: default
    tensor_accesses:
    - {name: input, source: Inputs & Intermediates if len(Inputs & Intermediates) else X, expected_count: 1}
    - {name: output, source: Outputs}
    - {name: weight, source: ~(input | output), expected_count: 1 if len(All) == 3 else 0}
"""
MAPPING = """
mapping:
  nodes:
  - !Storage {component: MainMemory, tensors: [X, V, Y]}
  - !Temporal {rank_variable: m, tile_shape: 4}
  - !Storage {component: Buffer, tensors: [X]}
  - !Storage {component: Buffer, tensors: [Y]}
  - !Nested
    nodes:
    - !Spatial {rank_variable: n, tile_shape: 1, component: ProcessingElement, name: reuse_input}
    - !Spatial {rank_variable: k, tile_shape: 4, component: ProcessingElement, name: reuse_output}
    - !Temporal {rank_variable: k, tile_shape: 1}
    - !Storage {component: Register, tensors: [V]}
    - !Temporal {rank_variable: m, tile_shape: 1}
    - !Compute {einsum: Y, component: MAC}
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    write_files(tmp_path, dict(zip(NAMES, (ARCH, WORKLOAD, MAPPING), strict=True)))
    return tmp_path


def parse(folder: Path, einsum: str = "Y") -> InputSet:
    return ADAPTER.parse([folder / NAMES[0], folder / NAMES[1] / einsum, folder / NAMES[2]])


@given(inputs=suitable())
def test_what_is_written_comes_back(folder: Path, inputs: InputSet) -> None:
    verdict = ADAPTER.expressible(inputs)
    event("written" if verdict else verdict.reasons[0].code)
    if not verdict:
        assert {reason.code for reason in verdict.reasons} <= {
            "capacity",
            "empty",
            "footprint",
            "buffering",
            "unicast",
            "leakage",
            "bandwidth",
        }
        with pytest.raises(NotConformableError) as caught:
            ADAPTER.render(inputs)
        assert caught.value.reasons == verdict.reasons
        return
    paths = write_files(folder, ADAPTER.render(inputs))
    assert same(ADAPTER.parse(paths), inputs)
    # and what AccelForge reads, without our file beside it, costs the same
    plain, original = evaluated(ADAPTER.parse([path for path in paths if path.name in NAMES])), evaluated(inputs)
    assert (plain.cycles, plain.valid, plain.macs) == (original.cycles, original.valid, original.macs)
    assert plain.energy_pj == pytest.approx(original.energy_pj)


def test_unrollings_keep_their_order(folder: Path) -> None:
    """Which matters where a window's tiles are sent to each unit by themselves."""
    problem = Problem.from_yaml(
        "{name: sum, dimensions: {C: 4, D: 4, A: 1}, tensors: [{name: T, role: input, projection: [A + D]}, "
        "{name: Z, role: output, projection: [C + A]}]}"
    )
    architecture = Architecture.from_yaml(
        "{name: flat, clusters: [{name: C0, memories: [{name: M0, technology: dram, read_energy_pj: 1, write_energy_pj: 1, "
        "read_bandwidth_words_per_cycle: 0.5}], fanout: {size: 4, multicast: false, reduction: false}}], "
        "compute: {energy_per_operation_pj: 1}}"
    )
    mapping = Mapping.from_yaml(
        "{entries: [{target: C0, keep: [T, Z], temporal_tile_sizes: {C: 4, D: 4, A: 1}, unicast: [T, Z]}, {target: C0, "
        "temporal_order: [C, D], temporal_tile_sizes: {C: 2, D: 2}, spatial_order: [D, C], spatial_tile_sizes: {C: 1, D: 1}, unicast: [T, Z]}]}"
    )
    paths = write_files(folder, ADAPTER.render(InputSet(problem, architecture, mapping)))
    plain = ADAPTER.parse([path for path in paths if path.name in NAMES])
    assert plain.mapping is not None
    assert [entry.spatial_order for entry in plain.mapping.entries] == [None, ("d", "c", "a")]


@given(inputs=suitable())
def test_parts_come_back_without_a_mapping(folder: Path, inputs: InputSet) -> None:
    for part in (
        InputSet(problem=inputs.problem),
        InputSet(architecture=inputs.architecture),
        InputSet(inputs.problem, inputs.architecture),
    ):
        if ADAPTER.expressible(part):
            assert same(ADAPTER.parse(write_files(folder, ADAPTER.render(part))), part)


@given(data=st.data())
def test_damaged_files_are_refused_and_nothing_else(tmp_path_factory: Any, data: st.DataObject) -> None:
    """Lines that are lost, doubled or changed: an input set, or a message for the user."""
    folder = tmp_path_factory.getbasetemp()
    texts = {}
    for name, text in zip(NAMES, (ARCH, WORKLOAD, MAPPING), strict=True):
        lines = text.splitlines()
        for _ in range(data.draw(st.integers(0, 2))):
            at = data.draw(st.integers(0, len(lines) - 1))
            what = data.draw(st.integers(0, 3))
            if what == 0:
                del lines[at]
            elif what == 1:
                lines.insert(at, lines[at])
            else:
                words = data.draw(st.sampled_from(["0", "-1", "inf", "[]", "~All", "x", "1e99", "{{", "null", "!Toll"]))
                start = data.draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:start] + words + lines[at][start + len(words) :]
        texts[name] = "\n".join(lines)
    paths = write_files(folder, texts)
    try:
        inputs = ADAPTER.parse([paths[0], paths[1] / "Y", paths[2]])
    except InputError as error:
        assert "Traceback" not in str(error)
        return
    ADAPTER.expressible(inputs)


def test_an_einsum_its_hardware_and_its_mapping_are_read(sample: Path) -> None:
    inputs = parse(sample)
    assert inputs.problem and inputs.architecture and inputs.mapping and inputs.constraints is None
    assert dict(inputs.problem.dimensions) == {"m": 16, "k": 8, "n": 4}
    assert {tensor.name: tensor.role for tensor in inputs.problem.tensors} == {
        "X": "input",
        "V": "weight",
        "Y": "output",
    }
    clusters = {cluster.name: cluster for cluster in inputs.architecture.clusters}
    assert list(clusters) == ["MainMemory", "Buffer", "ProcessingElement.reuse_input", "ProcessingElement"]
    assert clusters["Buffer"].fanout.size == 4 and clusters["Buffer"].fanout.multicast
    assert not clusters["Buffer"].fanout.reduction  # it reuses the input, and nothing else
    assert clusters["ProcessingElement.reuse_input"].fanout.reduction
    memories = {memory.name: memory for memory in inputs.architecture.memories}
    assert inputs.architecture.clock_ghz == 1.0
    assert memories["MainMemory"].read_energy_pj == 64.0  # 8 bits of 8 pJ each
    assert memories["MainMemory"].read_bandwidth_words_per_cycle == 4
    assert memories["Buffer"].capacity_words == 1024 and memories["Buffer"].block_words == 2
    assert memories["Buffer"].holds == ("input", "output")
    assert memories["Register"].read_energy_pj == 0 and memories["Register"].capacity_words == 1
    assert [entry.keep for entry in inputs.mapping.entries] == [("X", "V", "Y"), ("X", "Y"), None, ("V",), None]
    report = evaluated(inputs)
    assert report.valid, report.reasons


def test_ranges_have_an_older_name(sample: Path) -> None:
    plain = parse(sample, "Y")
    edit(sample / "workload.yaml", "  iteration_space_shape:", '  version: "0.5"\n  shape:')
    assert parse(sample, "Y") == plain


def test_a_window_is_read_with_its_roles(sample: Path) -> None:
    inputs = ADAPTER.parse([sample / NAMES[1] / "Window"])
    assert inputs.problem is not None
    assert dict(inputs.problem.dimensions) == {"p": 7, "r": 3, "n": 4}
    assert str(inputs.problem.tensor("Y").projection[0]) == "2*p + r"
    assert {tensor.name: tensor.role for tensor in inputs.problem.tensors} == {
        "Y": "input",
        "F": "weight",
        "Z": "output",
    }


def test_without_a_mapping_the_architecture_constrains(sample: Path) -> None:
    inputs = ADAPTER.parse([sample / NAMES[0], sample / NAMES[1] / "Y"])
    assert inputs.constraints is not None
    (variant,) = inputs.constraints.variants
    assert {rule.cluster: (rule.only, rule.min_utilization) for rule in variant.spatial} == {
        "Buffer": (("n",), 1.0),
        "ProcessingElement.reuse_input": (("k",), 0.0),
    }


def test_the_files_are_evaluated_and_converted_as_they_are(tilewright: Command, sample: Path) -> None:
    files = [sample / NAMES[0], sample / NAMES[1] / "Y", sample / NAMES[2]]
    costs_the_same_as_a_loop_nest(tilewright, "accelforge", files, sample)


def test_the_files_are_those_one_would_write(sample: Path) -> None:
    edit(sample / NAMES[1], "{All: 8}", "{All: 8} # a remark")
    texts = ADAPTER.render(replace(parse(sample), warnings=()))
    mapping = texts["mapping.yaml"]
    assert "  - !Temporal {rank_variable: m, tile_shape: 4}\n" in mapping
    assert (
        "  - !Spatial {rank_variable: n, tile_shape: 1, name: X, component: ProcessingElement_reuse_input}\n" in mapping
    )
    assert "renames: {input: X, weight: V, output: Y}" in texts["workload.yaml"]
    assert "- {name: X, fanout: 4, may_reuse: X}" in texts["arch.yaml"]


def test_a_file_beside_other_files_is_refused(sample: Path) -> None:
    paths, _ = with_sidecar(ADAPTER, parse(sample), sample / "other")
    edit(sample / "other" / "mapping.yaml", "{rank_variable: m, tile_shape: 4}", "{rank_variable: m, tile_shape: 8}")
    is_refused_as_stale(ADAPTER, paths, "AccelForge")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("arch.yaml", "{{BufferBits}} * 2", "{{Unset}}", "the template needs a value for Unset"),
        ("arch.yaml", "{{BufferBits}} * 2", "{{include_text('a')}}", "there is no file a"),
        ("arch.yaml", "{% set", "{% sett", "the template cannot be rendered"),
        ("arch.yaml", "{% set", "{% assert 1 > 2, 'too small' %}{% set", "an assertion of the template fails: too small"),
        ("arch.yaml", "{{BufferBits}} * 2", "{{1 / 0}}", "the template cannot be rendered: division by zero"),
        ("arch.yaml", "{{BufferBits}} * 2", "{{''.__class__.mro()}}", "the template cannot be rendered"),
        ("arch.yaml", "{{BufferBits}} * 2", "open('x')", "Buffer: 'open('x')': there is no function 'open'"),
        ("arch.yaml", "{{BufferBits}} * 2", "7", "Buffer: size is 7 bits; expected at least one value of 8 bits"),
        ("arch.yaml", "energy: 0.5e-12, ", "", "MAC: no energy for 'compute'"),
        ("arch.yaml", "throughput: 8 * 4e9", "throughput: 0", "throughput 0"),
        ("arch.yaml", "!Container", "!Fork", "node !Fork is not supported"),
        ("arch.yaml", "input | output", "input | outputt", "unknown name outputt; did you mean 'output'?"),
        ("arch.yaml", "fanout: 4", "fanout: four", "unknown name four"),
        ("arch.yaml", "fanout: 4", "fanout: 4.5", "4.5 is not a whole number above 0"),
        ("arch.yaml", "  - !Memory\n    name: Main", "  - !Container {name: One, spatial: [{name: X, fanout: 2}]}\n  - !Memory\n    name: Main", "the outermost node has several instances"),
        ("arch.yaml", "    size: inf\n", "", "'size' is missing"),
        ("workload.yaml", "X[m, k] * V[k, n]", "X[m, k * V", "cannot read the einsum"),
        ("workload.yaml", "0 <= m < 16", "1 <= m < 16", "cannot read the range '1 <= m < 16'"),
        ("workload.yaml", "K: 8, ", "", "k has no size"),
        ("workload.yaml", "{All: 8}", "{X: 8}", "V has no bits_per_value"),
        ("workload.yaml", "source: Outputs}", "source: Outputs, expected_count: 2}", "output is Outputs: Y, where 2"),
        ("mapping.yaml", "{component: Buffer, tensors: [X]}", "{component: Bufer, tensors: [X]}", "unknown memory Bufer; did"),
        ("mapping.yaml", "{component: Buffer, tensors: [X]}", "{component: Buffer, tensors: [Q]}", "no tensor Q"),
        ("mapping.yaml", "m, tile_shape: 4", "m, tile_shape: 99", "tile_shape 99 of m exceeds the outer tile, 16"),
        ("mapping.yaml", "name: reuse_input", "name: X", "ProcessingElement has no fanout X"),
        ("mapping.yaml", "component: Register", "component: MainMemory", "MainMemory is inside ProcessingElement; expected outer memories first"),
        ("mapping.yaml", "    - !Compute {einsum: Y, component: MAC}\n", "", "there is no !Compute"),
        ("mapping.yaml", "!Nested", "!Sequential", "loops around several einsums fuse them"),
    ],
)  # fmt: skip
def test_faults_are_told_with_their_place(sample: Path, name: str, old: str, new: str, message: str) -> None:
    edit(sample / name, old, new)
    with pytest.raises(InputError) as caught:
        parse(sample)
    assert message in str(caught.value)
    if "template" not in message:
        assert caught.value.location is not None and caught.value.location.line is not None
        assert Path(caught.value.location.source).name == name


def test_words_of_more_bits_than_hardware_has_are_refused(sample: Path) -> None:
    edit(sample / "workload.yaml", "{All: 8}", "{All: 16000000000}")
    with pytest.raises(InputError, match=r"arch.yaml:\d+:\d+: word_bits: expected a value less"):
        parse(sample)


def test_files_and_einsums_are_told_apart(sample: Path) -> None:
    with pytest.raises(InputError, match="the file has 2 einsums; select one") as caught:
        ADAPTER.parse([sample / NAMES[1]])
    assert caught.value.hint is not None and "known: Y, Window" in caught.value.hint
    with pytest.raises(InputError, match="no einsum Windw; did you mean 'Window'"):
        ADAPTER.parse([sample / NAMES[1] / "Windw"])
    with pytest.raises(InputError, match="a mapping needs its arch"):
        ADAPTER.parse([sample / NAMES[1] / "Y", sample / NAMES[2]])
    with pytest.raises(InputError, match="a mapping needs its workload"):
        ADAPTER.parse([sample / NAMES[0], sample / NAMES[2]])
    with pytest.raises(InputError, match="no arch and no workload"):
        ADAPTER.parse([])
    (sample / "odd.yaml").write_text("archh: {}")
    with pytest.raises(InputError, match="unknown section of AccelForge: archh; did you mean 'arch'"):
        ADAPTER.parse([sample / "odd.yaml"])


def test_spatial_unrollings_further_in_may_stand_first(sample: Path) -> None:
    lines = MAPPING.splitlines(keepends=True)
    one, two = (next(line for line in lines if name in line) for name in ("reuse_input", "reuse_output"))
    (sample / NAMES[2]).write_text(MAPPING.replace(one + two, two + one))
    swapped = parse(sample)
    (sample / NAMES[2]).write_text(MAPPING)
    assert same(swapped, parse(sample))


SMALL = Problem.model_validate(
    {
        "name": "small",
        "dimensions": {"M": 4, "N": 4},
        "tensors": [
            {"name": "A", "role": "input", "projection": ["M"]},
            {"name": "Z", "role": "output", "projection": ["M", "N"]},
        ],
    }
)
NEST = """
entries:
- {target: Far, keep: [A, Z], temporal_tile_sizes: {M: 4, N: 4}}
- {target: Far, temporal_tile_sizes: {M: 4, N: 4}, temporal_order: [M, N], spatial_tile_sizes: {M: 1}}
- {target: Near, keep: [A, Z]}
- {target: Near, temporal_tile_sizes: {M: 1, N: 1}, temporal_order: [M, N]}
"""
UNUSED = SMALL.to_data() | {"dimensions": {"M": 4, "N": 4, "K": 2}}


def cases() -> Iterator[tuple[Problem, str, str | None, set[str]]]:
    yield SMALL, BOARD, NEST, set()
    yield SMALL, BOARD, NEST.replace("Near, keep: [A, Z]", "Near, keep: []"), {"empty"}
    yield SMALL, BOARD.replace("write_energy_pj: 3", "write_energy_pj: 3, update_energy_pj: 5"), NEST, {"update_energy"}
    yield SMALL, BOARD.replace("capacity_words: 9", "capacity_words: 9, word_bits: 8"), NEST, set()
    yield SMALL, BOARD.replace("words: 9", "words: 1, multiple_buffering: 2"), None, {"buffering"}
    yield SMALL, BOARD.replace("size: 4", "size: 4, network: {energy_per_hop_pj: 1}"), NEST, {"network"}
    yield Problem.model_validate(UNUSED), BOARD, None, {"unused"}


@pytest.mark.parametrize(("problem", "board", "nest", "codes"), list(cases()))
def test_what_the_files_cannot_say_is_named(
    problem: Problem, board: str, nest: str | None, codes: set[str], tmp_path: Path
) -> None:
    inputs = InputSet(problem, Architecture.from_yaml(board), Mapping.from_yaml(nest) if nest else None)
    verdict = ADAPTER.expressible(inputs)
    assert {reason.code for reason in verdict.reasons} == codes
    if codes:
        with pytest.raises(NotConformableError):
            ADAPTER.render(inputs)
    else:
        paths = write_files(tmp_path, ADAPTER.render(inputs))
        plain = ADAPTER.parse([path for path in paths if path.name in NAMES])
        assert same(ADAPTER.parse(paths), inputs) and evaluated(plain).energy_pj == evaluated(inputs).energy_pj


def test_a_tile_is_held_as_far_out_as_it_stays(tmp_path: Path) -> None:
    """AccelForge fetches the tile again at each step of an outer loop."""
    nest = NEST.replace("{M: 4, N: 4}, temporal_order: [M, N], sp", "{M: 4, N: 1}, temporal_order: [M, N], sp").replace(
        "spatial_tile_sizes: {M: 1}}", "spatial_tile_sizes: {M: 4}}"
    )
    inputs = InputSet(SMALL, Architecture.from_yaml(BOARD), Mapping.from_yaml(nest))
    texts = ADAPTER.render(inputs)
    lines = [line.strip() for line in texts["mapping.yaml"].splitlines()]
    at = lines.index("- !Temporal {rank_variable: n, tile_shape: 1}")
    assert lines[at - 2 : at] == ["tensors: [A]", "component: Near"]  # n does not index A
    assert lines[at + 1 : at + 4] == ["- !Storage", "tensors: [Z]", "component: Near"]
    paths = write_files(tmp_path, texts)
    plain = ADAPTER.parse([path for path in paths if path.name in NAMES])
    assert same(ADAPTER.parse(paths), inputs) and evaluated(plain).energy_pj == evaluated(inputs).energy_pj


def test_constraints_and_a_mapping_alone_have_no_place() -> None:
    for inputs, code in (
        (InputSet(SMALL, Architecture.from_yaml(BOARD), None, NO_CONSTRAINTS), "constraints"),
        (InputSet(mapping=Mapping.from_yaml(NEST)), "missing"),
        (InputSet(), "nothing"),
    ):
        assert [reason.code for reason in ADAPTER.expressible(inputs).reasons] == [code]


def test_names_that_accelforge_cannot_read_come_back(tmp_path: Path) -> None:
    data = json.loads(json.dumps(SMALL.to_data()).replace('"M"', '"output"').replace('"A"', '"all"'))
    problem = Problem.model_validate(data | {"name": "a layer, renamed"})
    texts = ADAPTER.render(InputSet(problem))
    assert "d0: 0 <= d0 < 4" in texts["workload.yaml"] and "name: T0" in texts["workload.yaml"]
    assert ADAPTER.parse(write_files(tmp_path, texts)).problem == problem


def test_a_fanout_of_one_is_none(sample: Path) -> None:
    before = parse(sample)
    one = "  - !Container {name: One, spatial: [{name: X, fanout: 1}]}\n"
    edit(sample / NAMES[0], "  - !Memory\n    name: MainMemory", one + "  - !Memory\n    name: MainMemory")
    edit(
        sample / NAMES[2],
        "  nodes:\n",
        "  nodes:\n  - !Spatial {rank_variable: m, tile_shape: 16, component: One, name: X}\n",
    )
    assert same(parse(sample), before)
    edit(sample / NAMES[2], "tile_shape: 16", "tile_shape: 8")
    with pytest.raises(InputError, match="m is unrolled 2 times over X of One, whose fanout is 1"):
        parse(sample)


SEQUENCE = """
mapping:
  nodes:
  - !Storage {component: MainMemory, tensors: [X, V, Y, F, Z]}
  - !Sequential
    nodes:
    - !Nested
      nodes:
      - !Storage {component: Buffer, tensors: [X, Y]}
      - !Storage {component: Register, tensors: [V]}
      - !Temporal {rank_variable: m, tile_shape: 1}
      - !Temporal {rank_variable: k, tile_shape: 1}
      - !Temporal {rank_variable: n, tile_shape: 1}
      - !Compute {einsum: Y, component: MAC}
    - !Nested
      nodes:
      - !Storage {component: Buffer, tensors: [Y, Z]}
      - !Compute {einsum: Window, component: MAC}
"""


def test_einsums_in_sequence_are_read_one_at_a_time(sample: Path) -> None:
    (sample / "mapping.yaml").write_text(SEQUENCE)
    read = parse(sample)
    assert read.problem is not None and read.problem.name == "Y" and read.mapping is not None
    assert [entry.keep for entry in read.mapping.entries if entry.keep] == [("X", "V", "Y"), ("X", "Y"), ("V",)]
    assert any("einsums in sequence: Window ignored" in text for text in read.warnings)
    edit(sample / "mapping.yaml", "einsum: Y", "einsum: Yy")
    with pytest.raises(InputError, match="0 branches compute Y; expected one") as caught:
        parse(sample)
    assert caught.value.hint == "branches exist for Window, Yy"
    (sample / "mapping.yaml").write_text(SEQUENCE.partition("    nodes:")[0] + "    nodes: 3\n")
    with pytest.raises(InputError, match="a sequence has a list of nodes"):
        ADAPTER.parse([sample / name for name in NAMES])


def test_demands_that_no_constraint_has_are_left_to_the_report(sample: Path) -> None:
    edit(
        sample / "arch.yaml",
        "min_usage: 1}",
        'min_usage: 0.5, usage_scale: 2, loop_bounds: [{expression: n, operator: "<=", value: 2}]}',
    )
    edit(sample / "arch.yaml", "{keep: input | output}", "{keep: input | output, no_refetch_from_above: input}")
    edit(sample / "arch.yaml", "{keep: weight}", "{keep: weight, force_memory_hierarchy_order: false}")
    read = ADAPTER.parse([sample / NAMES[0], sample / NAMES[1] / "Y"])
    assert read.constraints is not None
    (variant,) = read.constraints.variants
    told = {rule.name: rule.missing for rule in variant.unsearched}
    assert told == {"loop_bounds": False, "no_refetch_from_above": False, "force_memory_hierarchy_order": True}
    assert all("arch.yaml:" in rule.where and rule.joint is None for rule in variant.unsearched)
    assert [rule.min_utilization for rule in variant.spatial if rule.min_utilization] == [0.25]  # usage counts twice


def test_the_least_usage_falls_back_to_what_can_be_had(sample: Path) -> None:
    """A fanout of 5 over dimensions of 4, 8 and 16 has at most 4 used instances."""
    edit(sample / "arch.yaml", "fanout: 4, reuse: input", "fanout: 5, reuse: input")
    read = ADAPTER.parse([sample / NAMES[0], sample / NAMES[1] / "Y"])
    assert read.constraints is not None
    (rule,) = [rule for rule in read.constraints.variants[0].spatial if rule.min_utilization]
    assert rule.min_utilization == 4 / 5 and rule.only == ("n",)
    assert any("min_usage 1 of" in text and "reduced to 0.8" in text for text in read.warnings)


def test_files_that_are_drawn_in_know_what_the_template_sets(sample: Path) -> None:
    text = (sample / "workload.yaml").read_text()
    einsums, rest = "workload:\n  einsums:\n  - {{TEXT}}\n", text.replace('  - "Y[m, n] = X[m, k] * V[k, n]"\n', "")
    (sample / "part.yaml").write_text(einsums)
    (sample / "empty.yaml").write_text("{% assert SIZE == 8, 'eight' %}\n")
    drawn = "{% set TEXT = 'Y[m, n] = X[m, k] * V[k, n]' %}{% set SIZE = 8 %}{{include_text('empty.yaml')}}\n"
    drawn += "{% set PART = include('part.yaml') %}\n" + rest.replace(
        "  einsums:\n", "  einsums:\n  - {{PART}}.workload.einsums\n", 1
    )
    plain = ADAPTER.parse([sample / NAMES[0], sample / NAMES[1] / "Y"])
    (sample / "workload.yaml").write_text(drawn)
    assert ADAPTER.parse([sample / NAMES[0], sample / NAMES[1] / "Y"]) == plain
    assert ADAPTER.layers(sample / NAMES[1]) == ("Y", "Window")


def test_sizes_may_use_those_of_other_ranks_and_widths_name_the_others(sample: Path) -> None:
    edit(sample / "workload.yaml", "rank_sizes: {K: 8, N: 4}", "rank_sizes: {K: ceil(30 / N), N: 4}")
    edit(sample / "workload.yaml", "bits_per_value: {All: 8}", "bits_per_value: {X: 4, Other: 8}")
    read = ADAPTER.parse([sample / NAMES[0], sample / NAMES[1] / "Y"])
    assert read.problem is not None and dict(read.problem.dimensions)["k"] == 8
    assert read.architecture is not None
    memories = read.architecture.memories
    assert [memory.word_bits for memory in memories] == [4, 4, 8]
    assert [
        {memory.bits_of(tensor) for tensor in read.problem.tensors if memory.may_hold(tensor)} for memory in memories
    ] == [
        {4, 8},
        {4, 8},
        {8},
    ]

"""Timeloop's files of sparse runs: published ones and drawn ones are read, written and compared with their statistics.

`tests/data/timeloop/sparse_runs.json.gz` has 13 runs of Sparseloop's authors: the exercises (2024), and the artifact of
MICRO 2022. It names repository, commit and path of each; texts are by their hash.
"""

import functools
import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import DATA
from support.recorded.exercises import Run
from tilewright.errors import InputError, UnsupportedError
from tilewright.plugin.adapter import InputSet, RecordedFigure
from tilewright.reports import Report
from tilewright.schema.density import Density
from tilewright.schema.document import parse_document
from tilewright.schema.sparse import MetadataStorage, RankFormat, Saving, SparseCompute, TensorFormat
from tilewright.testing.strategies import architectures, mappings, problems, sparse
from tilewright_adapters import TimeloopFiles
from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_adapters.timeloop.reading.sparse import ACTIONS, ignored_groups
from tilewright_adapters.timeloop.recorded import figures
from tilewright_adapters.timeloop.sparse_causes import of_count
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel
from tilewright_notations.timeloop.report import report_of
from tilewright_notations.timeloop.stats import read_stats

ADAPTERS = {version: TimeloopAdapter(version) for version in ("v3", "v4")}
REFUSED = "fig15_M512-K128-N1024-IAD0.56-WD0.3333_DSTC-RF2x-24-bandwidth"


@functools.cache
def runs() -> Mapping[str, Run]:
    data = json.loads(gzip.decompress((DATA / "timeloop" / "sparse_runs.json.gz").read_bytes()))
    found = {}
    for case in data["cases"]:
        files = {name: data["texts"][text] for name, text in case["files"].items()}
        found[case["id"]] = Run(case["id"], "", files, files.pop("stats.txt"))
    return found


READABLE = [name for name in runs() if name != REFUSED]


def read(*texts: str, dense: bool = False) -> InputSet:
    documents = [parse_document(text, source=f"{index}.yaml") for index, text in enumerate(texts)]
    return TimeloopAdapter(options=TimeloopFiles(dense=dense)).read(documents)


def back(adapter: TimeloopAdapter, inputs: InputSet) -> InputSet:
    files = adapter.render(inputs)
    return adapter.read([parse_document(text, source=name) for name, text in files.items()])


def recorded(name: str) -> tuple[InputSet, Report]:
    inputs = read(*runs()[name].files.values())
    assert inputs.problem and inputs.architecture and inputs.mapping
    return inputs, report_of(read_stats(runs()[name].report), inputs.problem, inputs.architecture, inputs.mapping, "")


@pytest.mark.parametrize("version", ADAPTERS)
@pytest.mark.parametrize("name", READABLE)
def test_published_files_come_back(name: str, version: str) -> None:
    inputs = replace(read(*runs()[name].files.values()), warnings=(), constraints=None)
    assert inputs.architecture and inputs.problem
    sparse = "TC" not in name.split("_") and "DUDU" not in name
    assert bool(inputs.architecture.sparse_parts) == sparse
    verdict = ADAPTERS[version].expressible(inputs)
    if not verdict:
        assert version == "v4" and {reason.code for reason in verdict.reasons} == {"sparse"}
        assert "skips in space" in str(verdict.reasons) or "format UB" in str(verdict.reasons)
        return
    assert replace(back(ADAPTERS[version], inputs), warnings=()) == inputs


def test_the_exercise_with_gating_is_read_in_all_its_parts() -> None:
    inputs, report = recorded("exercises_04.2.1-eyeriss-like-gating")
    assert inputs.problem and inputs.architecture
    densities = {tensor.name: tensor.density for tensor in inputs.problem.tensors}
    assert densities["Inputs"] == Density(distribution="structured", density=0.275)
    memories = {memory.name: memory.sparse for memory in inputs.architecture.memories}
    spad, dram = memories["weights_spad"], memories["DRAM"]
    assert spad and spad.actions == (Saving(gate="Weights", when_empty=("Inputs",)),) and not spad.formats
    assert dram and dram.formats["Inputs"].ranks[-1].format == "RLE" and dram.metadata.default_bits == 5
    assert (report.actual_operations, report.cycles) == (164_472_423, 1_916_929)
    counts = next(level for level in report.levels if level.name == "weights_spad").tensors["Weights"].sparse
    assert counts and (counts.dense.reads, counts.gated.reads) == (3_833_856, 2_779_545)


def test_metadata_of_statistics_are_by_rank_outermost_first() -> None:
    _, report = recorded("exercises_02.2.1-spMspM")
    counts = next(level for level in report.levels if level.name == "Buffer").tensors["B"].sparse
    assert counts and [rank.format for rank in counts.metadata] == ["UOP", "CP"] and counts.stored_words == 32
    outer, inner = counts.metadata
    assert (outer.payload.stored, outer.payload.actual.reads, outer.payload.skipped.reads) == (9, 18, 54)
    assert (inner.metadata.stored, inner.metadata.actual.reads, inner.metadata.actual.fills) == (32, 64, 32)


@pytest.mark.parametrize("name", READABLE)
def test_statistics_of_a_sparse_run_equal_themselves_and_a_changed_count_differs(name: str, tmp_path: Path) -> None:
    inputs, report = recorded(name)
    stats, _ = runs()[name].write(tmp_path)
    found = figures(stats, inputs, report)
    assert all(figure.equal for figure in found)
    if report.actual_operations is None:
        return
    told = {figure.figure for figure in found}
    assert {"reads", "dense_reads", "gated_reads", "skipped_updates", "stored_words", "actual_operations"} <= told
    level = report.levels[0]
    tensor, counts = next(iter(level.tensors.items()))
    changed = counts.model_copy(update={"reads": counts.reads + 3})  # 1 or 2 may be of rounding
    levels = (level.model_copy(update={"tensors": {**level.tensors, tensor: changed}}), *report.levels[1:])
    (wrong,) = (each for each in figures(stats, inputs, report.model_copy(update={"levels": levels})) if not each.equal)
    assert (wrong.level, wrong.tensor, wrong.figure, wrong.causes) == (level.name, tensor, "reads", ())


@pytest.mark.parametrize("name", [name for name in READABLE if name.startswith("exercises")])
def test_every_figure_of_an_exercise_is_the_models(name: str, tmp_path: Path) -> None:
    inputs = read(*runs()[name].files.values())
    assert inputs.problem and inputs.architecture and inputs.mapping
    ours = TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    found = figures(runs()[name].write(tmp_path)[0], inputs, ours)
    assert found and all(figure.equal for figure in found)


CAUSES = {
    "fig12_eyerissv2_L07": {"first_fills", "coordinates", "fallbacks", "rounding"},
    "fig15_M512-K128-N1024-IAD0.56-WD0.3333_STC_flexible_dualCompress-RF2x-24-bandwidth-RLE": {"first_fills"},
    "fig1_0.1_bitmask": {"first_fills", "coordinates", "rounding"},
    "fig1_0.1_coordinate_list": {"first_fills", "fallbacks", "rounding"},
    "table7_eyeriss_alexnet_conv3": {"first_fills", "rounding"},
}
"""Run of Sparseloop's artifact -> causes of its differences."""


def compared(name: str, folder: Path, *changes: tuple[str, str], first_fills: bool = False) -> list[RecordedFigure]:
    """Return the figures of a run that differ; `changes` are replacements in its files, each found once at least."""
    texts = list(runs()[name].files.values())
    for old, new in changes:
        assert any(old in text for text in texts), old
        texts = [text.replace(old, new) for text in texts]
    inputs = read(*texts)
    assert inputs.problem and inputs.architecture and inputs.mapping
    model = TimeloopModel(TimeloopOptions(first_fills=first_fills))
    ours = model.bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    return [figure for figure in figures(runs()[name].write(folder)[0], inputs, ours) if not figure.equal]


@pytest.mark.parametrize("first_fills", [False, True])
@pytest.mark.parametrize("name", CAUSES)
def test_every_difference_of_a_published_run_has_a_cause(name: str, first_fills: bool, tmp_path: Path) -> None:
    found = compared(name, tmp_path, first_fills=first_fills)
    assert all(figure.causes for figure in found)
    without = {"first_fills"} if first_fills else set[str]()
    assert {cause.code for figure in found for cause in figure.causes} == CAUSES[name] - without


def test_energies_that_older_versions_fall_back_to_remove_that_cause(tmp_path: Path) -> None:
    """Skipped sums then cost `idle`, and skipped metadata what those cost that are read."""
    idle = "- name: idle\n      arguments: null\n      energy: 0.00801"
    sums = "".join(idle.replace("idle", name) + "\n    " for name in ("gated_read", "gated_write"))
    metadata = "- name: metadata_read\n      arguments: null\n      energy: 0.88442\n    "
    found = compared(
        "fig12_eyerissv2_L07",
        tmp_path,
        (idle, sums + idle),
        (metadata, metadata + metadata.replace("metadata_read", "skipped_metadata_read")),
    )
    assert {cause.code for figure in found for cause in figure.causes} == {"first_fills", "coordinates", "rounding"}
    assert all(figure.causes for figure in found)


def test_older_versions_ignore_groups_with_an_underscore_beside_hyphens() -> None:
    groups = SPARSE.replace("flattened-rankIDs", "flattened_rankIDs")
    warnings = read(SHAPE, HARDWARE, groups).warnings
    assert ignored_groups(warnings, "A") and not ignored_groups(warnings, "B")
    assert not ignored_groups(read(SHAPE, HARDWARE, SPARSE).warnings, "A")
    counts = recorded("exercises_02.2.1-spMspM")[1].levels[0].tensors["A"]
    why = functools.partial(of_count, "rank_1_payload_stored", 9, 100, counts, emptied=False, averaged=True)
    assert [[cause.code for cause in why(groups=groups)] for groups in (True, False)] == [["flattened_ranks"], []]


def test_statistics_of_a_sparse_run_beside_a_dense_one_differ_by_what_is_skipped(tmp_path: Path) -> None:
    run = runs()["exercises_02.2.1-spMspM"]
    inputs = read(*run.files.values(), dense=True)
    assert inputs.problem and inputs.architecture and inputs.mapping
    ours = TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    found = [figure for figure in figures(run.write(tmp_path)[0], inputs, ours) if not figure.equal]
    assert found and {cause.code for figure in found for cause in figure.causes} == {"sparse"}
    assert {figure.figure for figure in found} <= {"energy_pj", "cycles", "leakage_pj"}


@pytest.mark.parametrize("version", ADAPTERS)
@given(st.data())
def test_drawn_sparse_inputs_come_back_or_are_refused(version: str, data: st.DataObject) -> None:
    problem = data.draw(problems(max_dimensions=4, max_macs=200, max_operands=2))
    problem, architecture = data.draw(sparse(problem, data.draw(architectures())))
    for inputs in (
        InputSet(problem, architecture, data.draw(mappings(problem, architecture))),
        InputSet(problem, architecture),
        InputSet(None, architecture),
        InputSet(problem),
    ):
        if ADAPTERS[version].expressible(inputs):
            assert replace(back(ADAPTERS[version], inputs), warnings=()) == inputs


SHAPE = """
problem:
  shape:
    name: gemm
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [M, K]}
    - {name: B, projection: [K, N]}
    - {name: Z, projection: [M, N], read-write: true}
  instance: {M: 4, N: 4, K: 4, densities: {A: 0.25, B: {distribution: hypergeometric, density: 0.5}}}
"""
HARDWARE = """
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {word-bits: 16, metadata_datawidth: 4, metadata_storage_width: 32}}
    - name: Buffer
      class: SRAM
      attributes: {word-bits: 16, entries: 64, metadata_storage_width: 8, metadata_storage_depth: 9, decompression_supported: true}
    - {name: MAC, class: intmac, attributes: {datawidth: 16}}
ERT:
  version: 0.3
  tables:
  - {name: system.DRAM, actions: [{name: read, energy: 64}, {name: write, energy: 60}]}
  - name: system.Buffer
    actions:
    - {name: read, energy: 4}
    - {name: write, energy: 5}
    - {name: gated_read, energy: 1}
    - {name: gated_write, energy: 2}
    - {name: skipped_write, energy: 3}
    - {name: metadata_read, energy: 6}
    - {name: random_metadata_write, energy: 7}
    - {name: decompression_count, energy: 8}
  - {name: system.MAC, actions: [{name: mac, energy: 9}, {name: mac_gated, energy: 10}]}
"""
SPARSE = """
sparse_optimizations:
  targets:
  - name: DRAM
    representation-format:
      data-spaces:
      - name: A
        rank-application-order: inner-to-outer
        ranks: [{format: UOP, payload-word-bits: 4}, {format: cp, metadata-word-bits: 2, flattened-rankIDs: [[M, K]]}]
      - {name: B, ranks: [{format: UB, payload-word-bits: 4}]}
  - name: Buffer
    action-optimization:
    - {type: skipping, target: B, condition-on: [A]}
    - {type: gating, options: [{target: A, condition-on: [B]}, {target: Z, condition-on: [A, B]}]}
    - {type: skipping-spatial, options: [{target: A, condition-on: [B]}]}
  - name: MAC
    compute-optimization: [{type: gate-on-zero-operand}]
"""


def test_options_of_a_compute_optimization_change_nothing() -> None:
    options = SPARSE.replace("type: gate-on-zero-operand", "type: gating, options: [{target: A, condition-on: [B]}]")
    found, plain = read(SHAPE, HARDWARE, options), read(SHAPE, HARDWARE, SPARSE)
    assert found.architecture == plain.architecture
    (told,) = set(found.warnings) - set(plain.warnings)
    assert "options of a compute optimization are ignored, as in Timeloop" in told


def test_every_key_of_the_older_spelling_is_read() -> None:
    inputs = read(SHAPE, HARDWARE, SPARSE)
    assert inputs.problem and inputs.architecture
    densities = [tensor.density for tensor in inputs.problem.tensors]
    assert densities == [Density(density=0.25), Density(distribution="uniform", density=0.5), None]
    dram, buffer = (memory.sparse for memory in inputs.architecture.memories)
    assert dram and buffer
    ranks = (RankFormat(format="UOP", payload_bits=4), RankFormat(format="CP", metadata_bits=2, flatten=(("M", "K"),)))
    assert dram.formats == {
        "A": TensorFormat(ranks=ranks, fill="inner"),
        "B": TensorFormat(ranks=(RankFormat(format="UB"),)),
    }
    assert buffer.actions == (
        Saving(skip="B", when_empty=("A",)),
        Saving(best_of=(Saving(gate="A", when_empty=("B",)), Saving(gate="Z", when_empty=("A", "B")))),
        Saving(skip_units="A", when_empty=("B",)),
    )
    assert buffer.metadata == MetadataStorage(width_bits=8, depth=9) and (buffer.decompresses, buffer.compresses) == (
        True,
        False,
    )
    told = " ".join(inputs.warnings)
    for part in (
        "'payload-word-bits'",
        "bits of UB are ignored",
        "DRAM: gated, skipped and metadata accesses take no energy",
    ):
        assert part in told


def test_energies_fall_back_as_in_timeloop() -> None:
    inputs = read(SHAPE, HARDWARE, SPARSE)
    assert inputs.architecture and inputs.architecture.memories[1].sparse
    energies = inputs.architecture.memories[1].sparse.energies_pj
    assert energies == {
        "gated_read": 1.0, "skipped_read": 1.0, "gated_fill": 2.0, "gated_update": 2.0, "skipped_fill": 3.0, "skipped_update": 3.0,
        "metadata_read": 6.0, "metadata_fill": 7.0, "metadata_update": 7.0, "decompression": 8.0,
    }  # fmt: skip
    assert inputs.architecture.compute.sparse == SparseCompute(gate=True, gated_pj=10.0, skipped_pj=10.0)
    plain = read(SHAPE, HARDWARE.replace(", {name: mac_gated, energy: 10}", ""), SPARSE)
    assert plain.architecture and plain.architecture.compute.sparse == SparseCompute(
        gate=True, gated_pj=9.0, skipped_pj=9.0
    )
    assert "lacks energies of gated operations of MAC" in " ".join(plain.warnings)


def test_energies_of_gated_operations_beyond_all_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="gated_pj"):
        read(SHAPE, HARDWARE.replace("{name: mac_gated, energy: 10}", "{name: mac_gated, energy: 1.0e+300}"), SPARSE)


def test_an_energy_table_without_reads_and_writes_leaves_timeloops_estimates() -> None:
    """As in the recorded runs of figure 1, where the action `access` has no effect."""
    given = "{name: read, energy: 4}\n    - {name: write, energy: 5}"
    assert given in HARDWARE
    inputs = read(SHAPE, HARDWARE.replace(given, "{name: access, energy: 0.009}"), SPARSE)
    assert inputs.architecture is not None
    memory = inputs.architecture.memories[1]
    assert memory.read_energy_pj == memory.write_energy_pj == pytest.approx(0.981156)  # 64 words of 16 bits
    assert "lacks 'read' or 'write' of Buffer" in " ".join(inputs.warnings)


def test_written_energies_name_every_action_and_payload_bits_have_both_spellings() -> None:
    files = ADAPTERS["v3"].render(read(SHAPE, HARDWARE, SPARSE))
    tables = parse_document(files["ERT.yaml"], source="ERT.yaml").data["ERT"]["tables"]
    assert {table["name"] for table in tables[1]["actions"]} >= {names[0] for names in ACTIONS.values()}
    assert [table["name"] for table in tables[2]["actions"]] == ["mac_random", "mac_gated", "mac_skipped"]
    assert "payload-word-bits: 4" in files["sparse.yaml"] and "payload_word_bits: 4" in files["sparse.yaml"]
    assert "condition-on" in files["sparse.yaml"] and "hypergeometric" in files["problem.yaml"]


def test_bits_that_do_not_divide_an_access_are_told() -> None:
    given = "payload-word-bits: 4"
    assert given in SPARSE and "become" not in " ".join(read(SHAPE, HARDWARE, SPARSE).warnings)
    told = read(SHAPE, HARDWARE, SPARSE.replace(given, "payload-word-bits: 3")).warnings
    assert any("3 bits of the format of A become" in each and "do not divide the width" in each for each in told)


def test_nodes_of_v4_have_their_own_and_one_density_may_serve_all() -> None:
    files = ADAPTERS["v4"].render(
        read(SHAPE, HARDWARE, SPARSE.replace("UB, payload-word-bits: 4", "B").replace("skipping-spatial", "skipping"))
    )
    assert "sparse.yaml" not in files and files["arch.yaml"].count("sparse_optimizations:") == 3
    text = files["problem.yaml"]
    problem = text.replace(text[text.index("densities:") :], "commonDensity: {distribution: fixed, density: 0.75}\n")
    inputs = read(files["arch.yaml"], files["ERT.yaml"], problem)
    assert inputs.problem and inputs.architecture and inputs.architecture.sparse_parts == ("DRAM", "Buffer", "MAC")
    assert {tensor.density for tensor in inputs.problem.tensors} == {Density(density=0.75)}


def test_without_an_optimisation_a_run_is_dense() -> None:
    empty = "sparse_optimizations: {targets: [{name: Buffer, action-optimization: []}]}"
    inputs = read(SHAPE, HARDWARE, empty)
    assert inputs.architecture == read(SHAPE, HARDWARE).architecture and not inputs.architecture.sparse_parts  # type: ignore[union-attr]
    assert any("sparse_optimizations of Buffer have no effect" in told for told in inputs.warnings)
    dense = read(SHAPE, HARDWARE, SPARSE, dense=True)
    assert dense.problem and not dense.problem.sparse_tensors and dense.architecture == inputs.architecture
    assert sum("omitted" in told for told in dense.warnings) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: MAC", "name: MAk", "no level 'MAk'; did you mean 'MAC'"),
        ("{name: B, ranks", "{name: C, ranks", "no data-space 'C'"),
        ("{name: B, ranks", "{name: A, ranks", "the format of A is given twice"),
        ("[[M, K]]", "[[M, k]]", "no dimension 'k'"),
        ("[[M, K]]", "[M, K]", "a group of flattened_rankIDs must be a list"),
        ("format: UOP", "format: U", "no format 'U'"),
        ("format: UOP", "from: UOP", "a rank has no 'from'"),
        ("format: UOP", "format: B", ""),
        ("{format: cp,", "{format: RLE}, {format: uop,", r"rank 2 \(UOP\) is not compressed, but rank 1 \(RLE\)"),
        ("metadata-word-bits: 2", "metadata-word-bits: 40", "40 bits of metadata or payload do not fit in accesses of 32"),
        ("inner-to-outer", "inside-out", "no rank_application_order 'inside_out'"),
        ("type: skipping,", "type: jumping,", "no type of sparse optimization 'jumping'"),
        ("type: skipping, target: B", "type: skipping", "the action has no 'target'"),
        ("target: B, condition-on: [A]", "target: B, condition-on: []", "condition_on is empty"),
        ("target: B, condition-on: [A]", "target: B, condition-on: A", "condition_on must be a list"),
        ("{type: gate-on-zero-operand}", "{kind: gating}", "has no 'kind'"),
        ("name: MAC", "name: Buffer", "Buffer is a memory, which has no compute_optimization"),
        ("name: Buffer", "name: MAC", "MAC is a compute unit, which has no action_optimization"),
        ("name: Buffer", "nme: Buffer", "a target of sparse_optimizations has no 'name'"),
        ("targets:", "levels:", "has no 'levels'"),
    ],
)  # fmt: skip
def test_sparse_content_that_cannot_be_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    text = SPARSE.replace(old, new, 1)
    assert text != SPARSE
    if not message:
        read(SHAPE, HARDWARE, text)
        return
    with pytest.raises(InputError, match=message) as raised:
        read(SHAPE, HARDWARE, text)
    assert raised.value.location is not None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("A: 0.25", "A: 1.25", "less than or equal to 1"),
        ("A: 0.25", "A: dense", "density of A must be a finite number"),
        ("A: 0.25", "other: 0.25", ""),
        ("A: 0.25", "a: 0.25", "no data-space 'a'; did you mean 'A'"),
        ("densities: {A: 0.25", "commonDensity: 1, densities: {A: 0.25", "both given"),
        ("A: 0.25", "Aa: {density: 1}", "no data-space 'Aa'; did you mean 'A'"),
        ("distribution: hypergeometric", "distribution: poisson", "no distribution 'poisson'"),
        ("distribution: hypergeometric, density: 0.5", "distribution: fixed", "has no 'density'"),
        ("distribution: hypergeometric, density: 0.5", "distribution: banded, band_width: -1", "at least 0"),
        ("distribution: hypergeometric, ", "", "has no 'distribution'"),
    ],
)
def test_a_density_that_cannot_be_is_refused_and_one_of_nothing_is_told(old: str, new: str, message: str) -> None:
    if message:
        with pytest.raises(InputError, match=message):
            read(SHAPE.replace(old, new), HARDWARE)
    else:
        assert any("its density is ignored" in told for told in read(SHAPE.replace(old, new), HARDWARE).warnings)


def test_what_no_public_timeloop_has_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="position-skipping is not supported") as raised:
        read(*runs()[REFUSED].files.values())
    assert raised.value.hint and raised.value.hint.startswith("--dense")
    assert read(*runs()[REFUSED].files.values(), dense=True).mapping is not None
    with pytest.raises(InputError, match="allow_overbooking"):
        read(SHAPE, HARDWARE.replace("entries: 64", "entries: 64, allow_overbooking: true"), SPARSE)
    with pytest.raises(InputError, match="metadata width 32 is not 4 bits x block 3"):
        read(SHAPE, HARDWARE.replace("metadata_datawidth: 4", "metadata_datawidth: 4, metadata_block_size: 3"), SPARSE)


def version_2(report: str) -> str:
    """Return statistics as version 2 printed them: totals of metadata instead of ranks, all instances instead of their average."""
    lines: list[str] = []
    for line in report.splitlines():
        rank = re.fullmatch(r" {12}Rank \d+ \(metadata, payload\): \((\d+),\s*(\d+)\)", line)
        if rank:
            name, _, total = lines.pop().partition(" : ")
            lines.append(f"{name} : {int(total or 0) + int(rank[1]) + int(rank[2])}")
        elif "Utilized instances (average)" not in line or line.startswith("    U"):
            name = line.replace("Representation format", "Metadata format").replace("Repr format", "metadata")
            lines.append(name.replace("scalar format", "scalar metadata"))
    old = {"Skipped scalar metadata fills": "Skipped metadata fills"}
    old |= {"Gated scalar metadata updates": "Gated scalar metadata gated updates"}
    return functools.reduce(lambda text, each: text.replace(*each), old.items(), "\n".join(lines))


def compared_with_version_2(
    name: str, folder: Path, *changes: tuple[str, str], inputs: tuple[tuple[str, str], ...] = ()
) -> tuple[RecordedFigure, ...]:
    """Return the figures of a run; `changes` and `inputs` are replacements in its report and in its files."""
    report, *texts = version_2(runs()[name].report), *runs()[name].files.values()
    for old, new in changes:
        assert report.count(old) >= 1
        report = report.replace(old, new, 1)
    for old, new in inputs:
        texts = [text.replace(old, new) for text in texts]
    given = read(*texts)
    assert given.problem and given.architecture and given.mapping
    ours = TimeloopModel(TimeloopOptions()).bind(given.problem, given.architecture).explain(given.mapping)
    path = folder / "old.stats.txt"
    path.write_text(report)
    return figures(path, given, ours)


PLAIN_2 = "exercises_02.2.1-spMspM"


def test_statistics_of_version_2_have_totals_of_metadata(tmp_path: Path) -> None:
    found = compared_with_version_2(PLAIN_2, tmp_path)
    assert all(figure.equal for figure in found)
    read_back = {(each.tensor, each.figure): each.ours for each in found if each.level == "Buffer"}
    assert read_back["B", "metadata_stored"] == 32 + 9 and read_back["B", "metadata_skipped_reads"] == 192 + 54
    assert ("B", "rank_0_metadata_stored") not in read_back
    total = "Actual scalar metadata reads (per-instance)                    : 82"
    (wrong,) = (
        each for each in compared_with_version_2(PLAIN_2, tmp_path, (total, total[:-2] + "99")) if not each.equal
    )
    assert (wrong.tensor, wrong.figure, wrong.recorded, wrong.ours) == ("B", "metadata_actual_reads", 99, 82)
    assert not wrong.causes


def test_metadata_of_version_2_take_no_bandwidth(tmp_path: Path) -> None:
    found = compared_with_version_2(PLAIN_2, tmp_path, inputs=(("read_bandwidth: 5", "read_bandwidth: 2"),))
    (wrong,) = (each for each in found if each.figure == "cycles" and each.level == "Buffer")
    assert wrong.recorded == 64 < wrong.ours and [cause.code for cause in wrong.causes] == ["metadata_bandwidth"]


def test_a_width_of_version_2_is_that_of_a_cluster(tmp_path: Path) -> None:
    at = version_2(runs()[PLAIN_2].report)
    inside = at[at.index("=== BackingStorage") :]
    energies = re.findall(r"        Energy \(total\) +: [\d.]+ pJ", inside)[:3]
    printed = tuple((energy, re.sub(r"[\d.]+ pJ", "0.00 pJ", energy)) for energy in energies)
    size = "Cluster size                    : "
    wide = (inside[: inside.index(size)] + size + "1", inside[: inside.index(size)] + size + "4")
    found = compared_with_version_2(PLAIN_2, tmp_path, wide, *printed)
    wrong = [each for each in found if each.level == "BackingStorage" and not each.equal]
    assert len(wrong) == 3 and {cause.code for each in wrong for cause in each.causes} == {"clusters"}
    assert not any(each.causes for each in compared_with_version_2(PLAIN_2, tmp_path, *printed))


@pytest.mark.parametrize("name", [name for name in READABLE if name.startswith("exercises_0")])
def test_instances_without_work_count_in_version_2(name: str, tmp_path: Path) -> None:
    found = compared_with_version_2(name, tmp_path)
    wrong = [each for each in found if not each.equal]
    assert {cause.code for each in wrong for cause in each.causes} <= {"average"}
    assert all(each.figure == "average_instances" for each in wrong)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("        Utilized instances (max)  ", "        Instances  ", "no 'Utilized instances \\(max\\)'"),
        (
            "Actual scalar reads (per-instance)                          : 64",
            "Actual scalar reads (per-instance)                          : none",
            "'none' is not a number",
        ),
    ],
)
def test_what_statistics_lack_is_told_with_its_line(old: str, new: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"B in Buffer: {told}") as raised:
        compared_with_version_2(PLAIN_2, tmp_path, (old, new))
    rows = (tmp_path / "old.stats.txt").read_text().splitlines()
    assert raised.value.location is not None and raised.value.location.line is not None
    row = rows[raised.value.location.line - 1]
    assert row == "    B:" or row.endswith(": none")

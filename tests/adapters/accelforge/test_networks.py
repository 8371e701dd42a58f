"""Networks of einsums: edges by the names of tensors, one einsum that is no layer, widths, and shared throughput."""

from pathlib import Path

import pytest

import tilewright as tw

ARCH = """\
arch:
  nodes:
  - !Memory
    name: Main
    size: inf
    tensors: {keep: ~Intermediates, may_keep: All}
    actions:
    - {name: read, energy: 10e-12, throughput: 2e9, bits_per_action: 8}
    - {name: write, energy: 10e-12, throughput: WRITES, bits_per_action: 8}
  - !Memory
    name: Buffer
    size: 8192
    tensors: {keep: All}
    actions:
    - {name: read, energy: 1e-12, throughput: inf, bits_per_action: 8}
    - {name: write, energy: 1e-12, throughput: inf, bits_per_action: 8}
  - !Compute {name: MAC, actions: [{name: compute, energy: 1e-12, throughput: 1e9}]}
"""
CHAIN = """\
workload:
  bits_per_value: {All: 8}
  rank_sizes: {M: 8, K: 4, N: 6, L: 2}
  einsums:
  - "Y[m, n] = X[m, k] * V[k, n]"
  - {name: Copied, is_copy_operation: true, tensor_accesses: [{name: Y, projection: [m, n]}, {name: C, projection: [m, n], output: true}]}
  - "Z[m, l] = C[m, n] * W[n, l]"
"""


def written(folder: Path, workload: str, arch: str = ARCH, writes: str = "2e9") -> tuple[Path, Path]:
    files = folder / "workload.yaml", folder / "arch.yaml"
    files[0].write_text(workload, encoding="utf-8")
    files[1].write_text(arch.replace("WRITES", writes), encoding="utf-8")
    return files


def test_an_einsum_reads_what_another_one_writes(tmp_path: Path) -> None:
    """The copy passes on all words, so Y stays: DRAM neither takes its 48 words nor gives them back, 20 pJ each, and no copy is written."""
    work, arch = written(tmp_path, CHAIN)
    found = tw.fuse_network(work, arch, objective="energy", progress=False)
    assert found.gain.unknown == () and [resident.maker for resident in found.residents] == ["Y"] and found.proved
    assert found.gain.unfused - found.value == pytest.approx(2 * 48 * 10 + 48, rel=1e-9)
    network = tw.load(work, "workload")
    assert [(layer.name, layer.after) for layer in network.layers] == [("Y", ()), ("Z", ("Y",))]
    assert network.edges[0][2].offsets == (0, 0)


def test_layers_that_are_picked_keep_their_edges(tmp_path: Path) -> None:
    work, arch = written(tmp_path, CHAIN)
    found = tw.fuse_network([f"{work}/Y", f"{work}/Z"], arch, objective="energy", progress=False)
    assert [resident.maker for resident in found.residents] == ["Y"]


def test_a_window_reads_the_words_that_exist(tmp_path: Path) -> None:
    """The rank has 8 words, the window needs 10: the two beyond are padding, and the whole result is read."""
    text = """\
workload:
  bits_per_value: {All: 8}
  rank_sizes: {M: 8, K: 4, R: 3, P: 8}
  einsums:
  - "Y[m] = X[m, k] * V[k]"
  - {einsum: "Z[p] = Y[M: p + r] * W[r]", iteration_space_shape: [0 <= p < 8, 0 <= r < 3]}
"""
    work, arch = written(tmp_path, text)
    ((layer, tensor, read),) = tw.load(work, "workload").edges
    assert (layer, tensor, read.maker, dict(read.sizes)) == ("Z", "Y", "Y", {"x0": 8})
    found = tw.fuse_network(work, arch, objective="energy", progress=False)
    assert [resident.maker for resident in found.residents] == ["Y"]


def test_a_sum_with_itself_reads_its_operand_once(tmp_path: Path) -> None:
    text = CHAIN.replace(
        '  - "Z[m, l] = C[m, n] * W[n, l]"\n', '  - "L[m, n] = Y[m, n] + Y[m, n]"\n  - "Z[m, n] = L[m, n] + Y[m, n]"\n'
    )
    network = tw.load(written(tmp_path, text)[0], "workload")
    assert [(layer.name, layer.problem.macs) for layer in network.layers] == [("Y", 192), ("L", 48), ("Z", 48)]
    assert network.layers[1].problem.tensor_names == ("Y", "L") and network.layers[2].after == ("L", "Y")


def test_an_einsum_that_reads_a_tensor_at_two_places_is_no_layer(tmp_path: Path) -> None:
    text = CHAIN.replace("  - {name: Copied", '  - "S[m, n] = Y[m, n] * Y[n, m]"\n  - {name: Copied')
    network = tw.load(written(tmp_path, text)[0], "workload")
    assert [layer.name for layer in network.layers] == ["Y", "Z"]
    assert [(each.name, each.reason) for each in network.unmapped][0] == ("S", "it reads Y at two places")
    assert network.edges[0][2].cut is not None  # S reads Y, too


def test_einsums_of_several_widths_have_one_architecture(tmp_path: Path) -> None:
    text = CHAIN.replace("{All: 8}", "{All: 8, Z: 16}")
    work, arch = written(tmp_path, text)
    report = tw.map(work, arch, objective="energy", progress=False)
    buffer = report.configuration.architecture.memories[1]
    assert (buffer.word_bits, dict(buffer.bits_per_value)) == (8, {"Z": 16})
    alone = [tw.map(f"{work}/{name}", arch, objective="energy", progress=False).energy_pj or 0 for name in "YZ"]
    assert report.energy_pj == pytest.approx(sum(alone), rel=1e-9)


@pytest.mark.parametrize(("writes", "cycles"), [("1e9", 48), ("inf", 32)])
def test_reads_and_writes_take_turns(writes: str, cycles: int, tmp_path: Path) -> None:
    """32 words are read and 16 written, one a cycle: 48 cycles in turn, and 32 if writes take no time."""
    text = """\
workload:
  bits_per_value: {All: 8}
  rank_sizes: {M: 8, K: 2}
  einsums: ["Y[m, k] = X[m, k] * V[m, k]"]
"""
    work, machine = written(tmp_path, text, ARCH.replace("2e9", "1e9"), writes)
    (layer,) = tw.map(work, machine, objective="cycles", progress=False).layers
    assert layer.cycles == cycles


def test_rates_that_differ_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    work, arch = written(tmp_path, CHAIN, writes="1e9")
    report = tw.map(work, arch, objective="energy", progress=False)
    assert report.configuration.architecture.memories[0].shared_bandwidth_words_per_cycle is None
    assert any("take turns in AccelForge, each at a throughput of its own" in message for message in caplog.messages)


@pytest.mark.parametrize(("scale", "bits"), [(2, 16), (0.5, 4)])
def test_a_memory_scales_the_widths_of_values(scale: float, bits: int, tmp_path: Path) -> None:
    arch = ARCH.replace("    size: 8192\n", f"    size: 8192\n    bits_per_value_scale: {{All: {scale}}}\n").replace(
        "WRITES", "inf"
    )
    work, machine = written(tmp_path, CHAIN, arch)
    report = tw.map(f"{work}/Y", machine, objective="energy", progress=False)
    assert report.configuration.architecture.memories[1].word_bits == bits


def test_a_folder_above_a_file_is_searched_and_all_wanted_values_are_named(tmp_path: Path) -> None:
    """The network includes sizes from a folder above its own one, as AccelForge's examples do."""
    inner = tmp_path / "nets" / "small"
    inner.mkdir(parents=True)
    (tmp_path / "nets" / "_sizes.yaml").write_text("rank_sizes: {M: {{ROWS}}, K: {{DEPTH}}, N: 6, L: 2}\n")
    text = "{% set SIZES = include('../_sizes.yaml') %}\n" + CHAIN.replace(
        "{M: 8, K: 4, N: 6, L: 2}", "{<<: {{SIZES}}.rank_sizes}"
    )
    work, arch = written(inner, text)
    values = {"set": {"ROWS": 8, "DEPTH": 4}}
    with pytest.raises(tw.errors.InputError, match="is outside the given folders"):
        tw.map(work, arch, progress=False, reading=values)
    with pytest.raises(tw.errors.InputError, match="needs a value for ROWS, DEPTH") as raised:
        tw.map([work, tmp_path / "nets"], arch, progress=False)
    assert raised.value.hint is not None and "--set ROWS=VALUE --set DEPTH=VALUE" in raised.value.hint
    report = tw.map([work, tmp_path / "nets"], arch, objective="energy", progress=False, reading=values)
    assert [layer.problem.macs for layer in report.layers] == [192, 96]


def test_an_einsum_of_another_unit_or_another_memory_is_no_layer(tmp_path: Path) -> None:
    """The scalar unit computes einsums of one operand, and a register is as large as the einsum's result."""
    unit = (
        "  - !Compute {name: Scalar, enabled: len(All) == 2, actions: [{name: compute, energy: 0, throughput: 1e9}]}\n"
    )
    text = CHAIN.replace("bits_per_value: {All: 8}", "bits_per_value: {All: 8, Z: 16}").replace(
        "  - {name: Copied", '  - "S[m, n] = Y[m, n]"\n  - {name: Copied'
    )
    arch = ARCH.replace("  - !Compute", unit + "  - !Compute").replace(
        "size: 8192", "size: 512 * output.bits_per_value"
    )
    work, machine = written(tmp_path, text, arch)
    report = tw.map(work, machine, objective="energy", progress=False)
    assert [layer.name for layer in report.layers] == ["Y"]
    assert {each.name: each.operator for each in report.workload.unmapped} == {
        "S": "compute",
        "Copied": "copy",
        "Z": "architecture",
    }


MATRIX = """\
workload:
  bits_per_value: {All: 8}
  rank_sizes: {M: 4, K: 64, N: 64}
  einsums:
  - "Y[m, n] = X[m, k] * V[k, n]"
"""


def test_provers_search_accelforges_uneven_space_and_others_say_that_they_do_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In 300 words of a buffer, even mappings fetch X twice: 256 words at 11 pJ more."""
    work, arch = written(tmp_path, MATRIX, ARCH.replace("size: 8192", "size: 2400"))
    found = {
        uneven: tw.map(work, arch, objective="energy", progress=False, uneven=uneven) for uneven in (None, True, False)
    }
    energies = {uneven: report.energy_pj for uneven, report in found.items()}
    assert (
        energies[None] == energies[True] == (energies[False] or 0) - 256 * 11
        and found[None].configuration.constraints.uneven
    )
    assert all(layer.report is not None for report in found.values() for layer in report.layers)
    assert not caplog.messages
    tried = tw.map(work, arch, mapper="random", evaluations=20, progress=False, cache=False)
    assert not tried.configuration.constraints.uneven
    assert any("even ones are searched here" in text for text in caplog.messages)
    mine = tw.load({"kind": "constraints", "name": "mine"}, "constraints")
    assert tw.map(work, arch, constraints=mine, progress=False).configuration.constraints.uneven


def test_template_functions_and_assertions_while_values_are_missing(tmp_path: Path) -> None:
    """AccelForge's examples call ceil and max, and assert the words of a value; all missing values are named at once."""
    text = '{% assert KIND in ["dense"], "KIND must be dense" %}\n' + MATRIX.replace(
        "M: 4", "M: {{ceil(TOKENS / max(CHUNKS, 1))}}"
    )
    work, arch = written(tmp_path, text)
    with pytest.raises(tw.errors.InputError, match="needs a value for KIND, CHUNKS, TOKENS"):
        tw.map(work, arch, progress=False)
    values = {"KIND": "dense", "TOKENS": 10, "CHUNKS": 3}
    report = tw.map(work, arch, progress=False, reading={"set": values})
    assert report.layers[0].problem.dimensions["m"] == 4
    with pytest.raises(tw.errors.InputError, match="KIND must be dense"):
        tw.map(work, arch, progress=False, reading={"set": values | {"KIND": "moe"}})


REGISTER = """\
  - !Memory
    name: Register
    size: weight.bits_per_value
    tensors: {keep: weight}
    actions:
    - {name: read, energy: PRICE, throughput: inf, bits_per_action: 8}
    - {name: write, energy: PRICE, throughput: inf, bits_per_action: 8}
  - !Compute"""


@pytest.mark.parametrize(("price", "mapped"), [("0", ["Y", "Z"]), ("1e-12", ["Y"])])
def test_a_free_register_of_one_value_is_the_same_for_wider_values(
    price: str, mapped: list[str], tmp_path: Path
) -> None:
    """Z multiplies by 16 bits. A register that costs energy holds two words for it, and is another machine."""
    work, arch = written(
        tmp_path,
        CHAIN.replace("bits_per_value: {All: 8}", "bits_per_value: {All: 8, W: 16}"),
        ARCH.replace("  - !Compute", REGISTER.replace("PRICE", price)),
    )
    report = tw.map(work, arch, objective="energy", progress=False, uneven=False)
    assert [layer.name for layer in report.layers] == mapped
    if price == "0":
        register = next(memory for memory in report.configuration.architecture.memories if memory.name == "Register")
        assert register.capacity_words == 1 and not register.bits_per_value
        alone = tw.map(f"{work}/Z", arch, objective="energy", progress=False, uneven=False)
        assert report.layers[1].energy_pj == alone.layers[0].energy_pj

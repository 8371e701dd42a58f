"""A machine of one's own from sizes in their units, and sweeps of its fields."""

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.command import Command, command
from tilewright.errors import CallError, InputError

FORMULA = "nk,km->nm; n=16 k=16 m=16"
QUICK: dict[str, Any] = {"mapper": "quickflow", "evaluations": 100, "progress": False}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    return command(monkeypatch, capsys)


def test_a_new_machine_has_its_sizes_and_estimated_energies(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    words = ("--array", "14x12", "--buffer", "64KiB", "--word-bits", 8, "--dram", "25.6GB/s", "--clock", "500MHz")
    ran = run("library", "new", "mine", *words, "-o", file)
    machine = tw.load(file, "architecture")

    assert ran.code == 0 and ran.err.startswith(f"written to {file}")
    assert [memory.capacity_words for memory in machine.memories] == [None, 65536, 64]
    assert [cluster.fanout.size for cluster in machine.clusters] == [1, 14, 12, 1] and machine.compute_instances == 168
    assert machine.memories[0].shared_bandwidth_words_per_cycle == 51.2 and machine.clock_ghz == 0.5
    assert all(memory.read_energy_pj > 0 and memory.estimates for memory in machine.memories)
    assert "size: 64KiB" in file.read_text(encoding="utf-8") and machine.area_um2
    assert tw.Architecture.from_yaml(machine.to_yaml()) == machine  # written with the figures
    same = tw.new_architecture("mine", array="14x12", buffer="64KiB", word_bits=8, clock="500MHz")
    assert same == machine and run("library", "new", "mine", "--json", *words).data == machine.to_data()


def test_large_registers_are_an_array() -> None:
    machine = tw.new_architecture("m", array="16", registers="1 KiB")

    assert machine.memories[2].technology == "sram" and machine.memories[2].block_words == 2
    assert [cluster.name for cluster in machine.clusters] == ["DRAM", "Buffer", "PE"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"array": "16*16"}, "expected the units along X and Y, such as 16x16"),
        ({"array": "0x4"}, "expected the units along X and Y"),
        ({"buffer": "128"}, "size: '128' is no number with a unit"),
        ({"buffer": "128 KB"}, "is ambiguous"),
        ({"buffer": "128 B"}, "Buffer: "),
        ({"registers": "300 B"}, "Registers: "),
        ({"technology": "5 nm"}, "5 nm"),
        ({"dram": "25.6"}, "bandwidth: '25.6' is no number with a unit"),
        ({"clock": "fast"}, "clock: 'fast' is no number with a unit"),
        ({"word_bits": 0}, "word_bits"),
        ({"buffer": "1 KiB}\nkind: x"}, "is no number with a unit"),
    ],
)
def test_what_is_no_machine_is_refused(words: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as refused:
        tw.new_architecture("m", **words)

    assert told in str(refused.value)


def test_a_sweep_prints_all_points_in_order(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    tw.new_architecture("mine", file, array="4x4", buffer="64 KiB")
    ran = run("explore", FORMULA, "--arch", file, "--vary", "Buffer.capacity=128KiB,32KiB", "--vary", "Column.fanout=4,8",
              "--mapper", "quickflow", "--evaluations", 100, "--store", tmp_path / "s.sqlite")  # fmt: skip
    rows = tw.explored(tmp_path / "s.sqlite").rows()

    assert ran.code == 0 and "all points, in their order" in ran.out
    assert [(row["Buffer.capacity"], row["Column.fanout"]) for row in rows] == [
        ("128KiB", 4), ("128KiB", 8), ("32KiB", 4), ("32KiB", 8),
    ]  # fmt: skip
    assert all(row["energy_pj"] and row["outcome"] == "searched" for row in rows)  # none is left out by bounds
    assert rows[0]["area_um2"] > rows[2]["area_um2"] and rows[1]["area_um2"] > rows[0]["area_um2"]


def test_estimated_energies_follow_the_size_of_an_object() -> None:
    machine = tw.new_architecture("mine", array="4x4", buffer="64 KiB")
    sizes = ["64 KiB", "1 MiB"]
    report = tw.explore(FORMULA, arch=machine, vary={"Buffer.capacity": sizes, "clock": ["1 GHz", 0.5]}, **QUICK)
    space = tw.architecture_space(dict(report.record.space))
    first, slow, large, _ = (point.architecture for point in space.points())

    assert first is not None and slow is not None and large is not None
    assert first.memories == machine.memories and large.memories[1].read_energy_pj > machine.memories[1].read_energy_pj
    assert slow.memories[1].leakage_pj_per_cycle > first.memories[1].leakage_pj_per_cycle  # twice the time
    assert slow.memories[0].shared_bandwidth_words_per_cycle == 12.8  # stated in words per cycle by an object


def test_rates_of_a_file_follow_the_clock(tmp_path: Path) -> None:
    tw.new_architecture("mine", tmp_path / "mine.yaml", array="4x4")
    report = tw.explore(FORMULA, arch=tmp_path / "mine.yaml", vary={"clock": ["1 GHz", "500 MHz"]}, **QUICK)
    machines = [point.architecture for point in tw.architecture_space(dict(report.record.space)).points()]

    assert [one.memories[0].shared_bandwidth_words_per_cycle for one in machines if one] == [12.8, 25.6]


def test_given_energies_stay_and_a_note_says_so(run: Command, caplog: pytest.LogCaptureFixture) -> None:
    ran = run("explore", FORMULA, "--arch", "eyeriss", "--vary", "GlobalBuffer.capacity=32KiB,64KiB", "--vary",
              "DRAM.bandwidth=2,4", "--mapper", "quickflow", "--evaluations", 60)  # fmt: skip
    space = tw.explore(FORMULA, arch="eyeriss", vary={"DRAM.bandwidth": "2,4"}, **QUICK).record.space
    machine = tw.architecture_space(dict(space)).point(0).architecture

    assert ran.code == 0 and "note: the energies of GlobalBuffer are the same at every capacity" in caplog.text
    assert machine is not None and [rate for _, rate in machine.memories[0].bandwidths] == [2, 2]
    assert machine.dataflow == "eyeriss.row_stationary"  # as `map` uses


def test_a_base_is_a_file_beside_the_space(tmp_path: Path) -> None:
    tw.new_architecture("mine", tmp_path / "mine.yaml", array="4x4")
    text = "kind: space\nname: s\nbase: mine.yaml\nchoices:\n  Buffer.capacity: [32 KiB, 64 KiB]\n  PE.fanout: [1, 2]\n"
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    space = tw.architecture_space(tmp_path / "s.yaml")
    machines = [point.architecture for point in space.points()]

    assert [one.memories[1].capacity_words for one in machines if one] == [16384, 16384, 32768, 32768]
    assert [one.compute_instances for one in machines if one] == [16, 32] * 2
    assert tw.ArchitectureSpace.from_yaml(space.to_yaml()) == space  # has the contents of the file
    for name, told in (("none.yaml", "none.yaml"), ("s.yaml", "s.yaml is no architecture")):
        (tmp_path / "t.yaml").write_text(text.replace("mine.yaml", name), encoding="utf-8")
        with pytest.raises(InputError, match=rf"t\.yaml:3:7: base: .*{told}"):
            tw.architecture_space(tmp_path / "t.yaml")


def test_a_point_without_a_machine_has_its_reason() -> None:
    machine = tw.new_architecture("mine", array="4x4", buffer="64 KiB")
    report = tw.explore(FORMULA, arch=machine, vary={"Buffer.capacity": "64KiB,100B", "Column.fanout": "4"}, **QUICK)

    assert "without figures because" in str(report) and "a size of 100 bytes" in str(report)
    assert [row["outcome"] for row in report.rows()] == ["searched", "refused"]


def test_an_incomplete_sweep_says_what_to_type() -> None:
    for words in ({}, {"arch": "eyeriss"}, {"vary": {"a.b": [1]}}, {"space": "sunstone_l1", "arch": "eyeriss"}):
        with pytest.raises(CallError, match="explore needs a space, or an architecture and the fields to vary"):
            tw.explore(FORMULA, **words)
    for vary, told in (
        ({}, "explore needs a space, or an architecture and the fields to vary"),
        ({"GlobalBufer.capacity": "1KiB"}, "did you mean 'GlobalBuffer'"),
        ({"GlobalBuffer.capacity": "1KiB,,2KiB"}, "a value is missing"),
        ({"GlobalBuffer.capacity": []}, "a value is missing"),
        ({"GlobalBuffer.capacity": "1KB"}, "is ambiguous"),
        ({"speed": "1,2"}, "the machine has nothing at 'speed'"),
        ({"Column.fanout": "true"}, "True is no value; expected numbers, sizes and names"),
        ({"Column.fanout": "4,{a: 1}"}, "{'a': 1} is no value"),
        ({"GlobalBuffer.capacity": 4, "GlobalBuffer.size": 8}, "are one value"),
    ):
        with pytest.raises((CallError, InputError)) as refused:
            tw.explore(FORMULA, arch="eyeriss", vary=vary, progress=False)
        assert told in str(refused.value)


def test_layers_of_a_model_with_an_open_batch_are_listed(run: Command) -> None:
    ran = run("library", "layers", "squeezenet", "--batch", 2, "--json")
    one = run("library", "layers", "squeezenet", "--json")

    assert ran.data["layers"][0]["macs"] == 2 * one.data["layers"][0]["macs"]

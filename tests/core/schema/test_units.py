"""Texts with units in architecture files are the numbers that they mean, and nothing is guessed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.errors import InputError
from tilewright.schema.architecture import Architecture
from tilewright.schema.units import fields_of, in_words, with_fields


def machine(memory: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    buffer = {"name": "Buffer", "read_energy_pj": 1, "write_energy_pj": 1} | (memory or {})
    return {
        "kind": "architecture",
        "name": "m",
        "clusters": [{"name": "c", "memories": [buffer]}],
        "compute": {"energy_per_operation_pj": 1},
    } | more


@pytest.mark.parametrize(
    ("memory", "field", "value"),
    [
        ({"size": "128 KiB"}, "capacity_words", 65536),
        ({"size": "128KiB", "word_bits": 8}, "capacity_words", 131072),
        ({"capacity": "1.5 MiB", "word_bits": 32}, "capacity_words", 393216),
        ({"capacity_words": "512 bit"}, "capacity_words", 32),
        ({"size": "300 words"}, "capacity_words", 300),
        ({"block": "64 bits", "word_bits": 8}, "block_words", 8),
        ({"bandwidth": "25.6 GB/s"}, "shared_bandwidth_words_per_cycle", 12.8),
        ({"read_bandwidth": "16 B/cycle"}, "read_bandwidth_words_per_cycle", 8),
        ({"write_bandwidth": "12 Gbit/s"}, "write_bandwidth_words_per_cycle", 0.75),
        ({"write_bandwidth_words_per_cycle": "1 GiB/s"}, "write_bandwidth_words_per_cycle", 0.536870912),
        ({"shared_bandwidth": "2 words / cycle"}, "shared_bandwidth_words_per_cycle", 2),
    ],
)
def test_a_size_or_a_rate_is_counted_in_words(memory: dict[str, Any], field: str, value: float) -> None:
    architecture = Architecture.model_validate(machine(memory, clock="1 GHz", technology="28 nm"))

    assert getattr(architecture.memories[0], field) == value
    assert (architecture.clock_ghz, architecture.technology_nm) == (1, 28)
    written = architecture.to_data()
    assert (
        Architecture.model_validate(written) == architecture and written["clusters"][0]["memories"][0][field] == value
    )


def test_a_slower_clock_has_more_words_per_cycle() -> None:
    rates = [
        Architecture.model_validate(machine({"bandwidth": "8 GB/s"}, clock=clock))
        .memories[0]
        .shared_bandwidth_words_per_cycle
        for clock in ("500 MHz", "0.5 GHz", "2 GHz")
    ]

    assert rates == [8, 8, 2]


@pytest.mark.parametrize(
    ("memory", "more", "told"),
    [
        ({"size": "128 KB"}, {}, "size: '128 KB' is ambiguous; expected such as 128 KiB: Ki is a power of 1024"),
        ({"size": "128 kB"}, {}, "is ambiguous"),
        ({"size": 131072}, {}, "size: 131072 has no unit; expected such as 128 KiB, or capacity_words: 131072"),
        ({"size": "128"}, {}, "size: '128' is no number with a unit"),
        ({"size": "-1 KiB"}, {}, "is no number with a unit"),
        ({"size": "3 B"}, {}, "size: '3 B' is 1.5 words of 16 bits; expected a whole number of words"),
        ({"size": "0 B"}, {}, "is 0 words"),
        ({"size": "8 GB/s"}, {}, "has another unit; expected such as 128 KiB"),
        ({"size": "8 Kb"}, {}, "has another unit"),
        ({"size": "1 KiB", "capacity_words": 512}, {}, "size and capacity_words are one value"),
        ({"size": "1 KiB", "capacity": "1 KiB"}, {}, "size and capacity are one value"),
        (
            {"bandwidth": "8 GB/s"},
            {},
            "needs a clock; expected clock_ghz in the architecture, or a rate such as 64 B/cycle",
        ),
        ({"bandwidth": "8 GB"}, {"clock": "1 GHz"}, "has another unit; expected such as 25.6 GB/s"),
        ({"bandwidth": "8 GB/s"}, {"clock_ghz": 0}, "needs a clock"),
        ({}, {"clock": "1 nm"}, "clock: '1 nm' has another unit; expected such as 500 MHz"),
        ({}, {"technology": "28"}, "technology: '28' is no number with a unit; expected such as 28 nm"),
        ({"sizes": "1 KiB"}, {}, "unknown key 'sizes'; did you mean 'size'"),
        ({"size": "1e99 B"}, {}, "expected a value less than or equal to"),
    ],
)
def test_what_is_unclear_is_refused(memory: dict[str, Any], more: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as refused:
        tw.load(machine(memory, **more))

    assert told in str(refused.value)


def test_a_fault_has_the_line_of_the_text(tmp_path: Any) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(
        "kind: architecture\nname: m\nclusters:\n  - name: c\n    memories:\n      - name: B\n        size: 1 KB\n"
        "compute: {energy_per_operation_pj: 1}\n",
        encoding="utf-8",
    )

    with pytest.raises(InputError, match=r"m\.yaml:7:15"):
        tw.load(file)


@given(st.integers(1, 2**40), st.sampled_from([1, 8, 12, 16, 32]))
def test_a_size_in_bits_is_exact(words: int, bits: int) -> None:
    memory = in_words(machine({"size": f"{words * bits} bit", "word_bits": bits}))["clusters"][0]["memories"][0]

    assert memory["capacity_words"] == words


def test_data_without_units_is_unchanged() -> None:
    data = tw.load("eyeriss", "architecture").to_data()

    assert in_words(data) == data == with_fields(data)
    for odd in (3, None, {"clusters": 4}, {"clusters": [4, {"memories": [7, {"word_bits": "x", "size": "1 B"}]}]}):
        in_words(odd)


def test_replace_takes_units() -> None:
    larger = tw.load("eyeriss", "architecture").replace({"GlobalBuffer.capacity_words": "1 MiB"})

    assert larger.memories[1].capacity_words == 2**19


def test_bandwidth_is_each_that_the_memory_states() -> None:
    reads, writes, shared = (f"{name}_bandwidth_words_per_cycle" for name in ("read", "write", "shared"))

    assert fields_of("bandwidth", {reads: 1, writes: 2}) == (reads, writes)
    assert fields_of("bandwidth", {writes: 2}) == (writes,) and fields_of("bandwidth", {}) == (shared,)
    assert fields_of("capacity", {}) == ("capacity_words",) and fields_of("holds", {}) == ("holds",)


def test_notebooks_show_tables_in_which_texts_are_escaped() -> None:
    machine, problem = tw.load("eyeriss", "architecture"), tw.load("quickflow_convs/V", "problem")
    network = tw.load("quickflow_convs", "workload")
    odd = problem.replace({"name": "<b>"})._repr_html_()

    assert "x 14 along X" in machine._repr_html_() and "168 compute units" in machine._repr_html_()
    assert "131,072 words of 16 bits" in machine._repr_html_() and machine._repr_html_().count("<tr>") == 8
    assert "115,605,504 operations" in problem._repr_html_() and "P + R" in problem._repr_html_()
    assert "&lt;b&gt;" in odd and "<b>" not in odd
    assert "a list of 20 layers" in network._repr_html_() and network._repr_html_().count("<tr>") == 21
    assert max(map(len, (machine._repr_html_(), problem._repr_html_()))) < 3000

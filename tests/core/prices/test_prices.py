"""Prices of accesses, against the rules written out for one memory with whole numbers."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.prices import (
    access_pj,
    charged,
    leakage_pj,
    leaked_pj,
    least_cycles,
    memory_speed,
    more_leaked_pj,
    port_cycles,
    port_limits,
    port_time,
    price_of,
    price_table,
    prices_of,
    slowed_cycles,
    tensor_pj,
    throttling_limits,
    transfer_cycles,
)
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.problem import Tensor

ARCHITECTURE = Architecture.from_yaml("""
name: priced
clusters:
- name: DRAM
  memories: [{name: DRAM, technology: dram, read_energy_pj: 64, write_energy_pj: 64, leakage_pj_per_cycle: 0.5}]
  fanout: {size: 3}
- name: Tile
  memories: [{name: Buffer, read_energy_pj: 2, write_energy_pj: 5, update_energy_pj: 7, block_words: 4, leakage_pj_per_cycle: 2}]
  fanout: {size: 6}
- name: PE
  memories:
  - {name: Register, read_energy_pj: 1, write_energy_pj: 1, instances_per_macro: 4, leakage_pj_per_cycle: 0.25, power_gated_at: Buffer}
compute: {energy_per_operation_pj: 1}
""")
MEMORY = Memory.model_validate(
    {
        "name": "M",
        "read_energy_pj": 2,
        "write_energy_pj": 5,
        "update_energy_pj": 7,
        "block_words": 2,
        "bits_per_value": {"input": 8},
        "read_bandwidth_words_per_cycle": 1.5,
        "shared_bandwidth_words_per_cycle": 2,
    }
)  # two slices of 8 bits are a word
INPUT = Tensor.model_validate({"name": "Inputs", "role": "input", "projection": ["M"]})
AMOUNTS = st.lists(st.integers(0, 1000), min_size=3, max_size=3)


def test_the_worked_example() -> None:
    price = prices_of(ARCHITECTURE)["Buffer"]
    assert access_pj(price, 10, 3, 0) == 11
    assert port_cycles(price._replace(read_bandwidth=3.0), 10, 0) == 4
    assert tensor_pj(MEMORY, INPUT, 9, 4, 1) == 3 * 2 + 1 * 5 + 1 * 7  # four narrow values are a block


def test_blocks_of_one_slice_are_not_rounded() -> None:
    assert access_pj(prices_of(ARCHITECTURE)["DRAM"], 1.25, 0.0, 0.5) == 112


@given(st.lists(AMOUNTS, min_size=1, max_size=20))
def test_arrays_are_rows_of_single_memories(rows: list[list[int]]) -> None:
    price, row = price_of(MEMORY), price_table([price_of(MEMORY)])[0]
    reads, fills, updates = np.array(rows).T
    energies, cycles = access_pj(price, reads, fills, updates), port_cycles(row, reads, fills + updates)
    times = port_time(price, reads, fills + updates)
    for number, (read, fill, update) in enumerate(rows):
        blocks = [-(-count // 4) for count in (read, fill, update)]
        assert energies[number] == 2 * blocks[0] + 5 * blocks[1] + 7 * blocks[2]
        assert cycles[number] == max(-(-read // 3), -(-(read + fill + update) // 4))
        assert times[number] == max(read / 3, (read + fill + update) / 4)


@given(AMOUNTS, st.integers(1, 50))
def test_timeloop_rounds_the_cycles_of_the_slowest_port(amounts: list[int], computing: int) -> None:
    read, written = amounts[0] / computing, (amounts[1] + amounts[2]) / computing
    price = price_of(MEMORY)
    cycles = slowed_cycles(computing, memory_speed(price, read, written))
    ports = [(read, 3.0), (read + written, 4.0)]
    assert cycles == max([computing, *(math.ceil(computing / (most / rate)) for rate, most in ports if rate)])
    limits = list(throttling_limits(MEMORY, computing, read, written))
    assert max([computing, *(limit.cycles for limit in limits)]) == cycles
    assert [limit.words for limit in limits] == [-(-amount // 2) for amount in (amounts[0], sum(amounts)) if amount]


def test_rounding_makes_no_port_slower_than_the_array() -> None:
    """Ten cycles at 2.96 slices ask for 29.6 slices: 30 at 2.97 per cycle would need an eleventh."""
    memory = MEMORY.model_copy(
        update={"read_bandwidth_words_per_cycle": 2.97 / 2, "shared_bandwidth_words_per_cycle": None}
    )
    assert [limit.cycles for limit in throttling_limits(memory, 10, 2.96, 0, ragged=True)] == [10]


def test_limits_are_those_of_the_busiest_instance() -> None:
    moved = {"M": (Counter({0: 7, 1: 9}), Counter({0: 6}))}
    limits = [(limit.action, limit.cycles, limit.words) for limit in port_limits([MEMORY], moved)]
    assert limits == [("read", 3, 5), ("access", 4, 7)]


def test_instances_of_a_macro_and_of_a_switch() -> None:
    prices = prices_of(ARCHITECTURE)
    assert charged(prices["Register"], 18) == 4 and charged(prices["Register"], 3) == 3  # 18 // 4 macros exist
    leaked = leakage_pj(ARCHITECTURE, 100, {"Buffer": 2, "Register": 5})
    assert leaked == pytest.approx(
        {"DRAM": 50, "Buffer": 400, "Register": 300}
    )  # six registers at each of two switches


def test_a_longer_run_leaks_more_in_proportion() -> None:
    assert more_leaked_pj(12.0, 4, 6) == 6.0 and more_leaked_pj(12.0, 4, 4) == more_leaked_pj(0.0, 4, 6) == 0.0
    whole = leaked_pj(price_of(Memory(name="M", read_energy_pj=1, write_energy_pj=1, leakage_pj_per_cycle=3.0)), 6, 1)
    assert whole == 18.0 == 12.0 + more_leaked_pj(12.0, 4, 6)


def test_rounding_of_a_bound_on_slices_adds_no_cycle() -> None:
    assert [least_cycles(4, slices) for slices in (0.0, 8.0, 8.000000001, 8.5, 9.0)] == [0, 2, 2, 3, 3]
    assert all(least_cycles(3, slices) <= transfer_cycles(3, slices) for slices in range(50))

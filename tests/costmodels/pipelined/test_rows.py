"""Rows of a DRAM: `pipelined` against a small simulator of banks, which serves the words of a mapping in their order."""

from itertools import pairwise, product

import pytest

import tilewright as tw
from support.pipelined import MODEL
from support.profiles import first

PROBLEM = tw.Problem.model_validate(
    {
        "name": "copy",
        "dimensions": {"K": 64, "C": 64},
        "tensors": [
            {"name": "I", "role": "input", "projection": ["K", "C"]},
            {"name": "O", "role": "output", "projection": ["K"]},
        ],
    }
)


def visits(addresses: list[int], row_words: int) -> list[tuple[int, int]]:
    """Return the rows in their order, with the words that follow each other there."""
    found: list[tuple[int, int]] = []
    for address in addresses:
        row = address // row_words
        if found and found[-1][0] == row:
            found[-1] = row, found[-1][1] + 1
        else:
            found.append((row, 1))
    return found


def served(rows: list[tuple[int, int]], miss: int, banks: int, rate: float) -> float:
    """Return the time of the last word. The bus moves words in order; an idle bank opens its next row as early as it can."""
    opened, idle, bus = dict[int, int](), dict[int, float](), 0.0
    for row, words in rows:
        bank = row % banks
        ready = idle.get(bank, 0.0) + (0 if opened.get(bank) == row else miss)
        bus = max(bus, ready) + words / rate
        opened[bank], idle[bank] = row, bus
    return bus


def machine(row_words: int, miss: int, banks: int, rate: float) -> tw.Architecture:
    energies = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}
    rows = {"words": row_words, "miss_cycles": miss, "banks": banks}
    dram = {"name": "DRAM", "shared_bandwidth_words_per_cycle": rate, "timing": {"rows": rows}, **energies}
    buffer = {
        "name": "Buffer",
        "holds": ["input"],
        "timing": {"requests": {"along": ["C"], "words": 2**20, "cycles": 1}},
    }
    clusters = [{"name": "chip", "memories": [dram]}, {"name": "core", "memories": [buffer | energies]}]
    compute = {"energy_per_operation_pj": 1.0, "cycles_per_operation": 1}
    return tw.Architecture.model_validate({"name": "rows", "clusters": clusters, "compute": compute})


def tiles(k: int, c: int) -> tw.Mapping:
    sizes = dict(PROBLEM.dimensions)
    entries = [
        {"target": "chip", "keep": ["I", "O"], "temporal_tile_sizes": sizes},
        {"target": "core", "keep": ["I"], "temporal_order": ["K", "C"], "temporal_tile_sizes": {"K": k, "C": c}},
        {"target": "core", "temporal_order": ["K", "C"], "temporal_tile_sizes": {"K": 1, "C": 1}},
    ]
    return tw.Mapping.model_validate({"entries": entries})


def order(k: int, c: int) -> list[int]:
    """Return the addresses of I, row-major, tile by tile."""
    blocks = product(range(0, 64, k), range(0, 64, c))
    return [64 * (a + i) + b + j for a, b in blocks for i in range(k) for j in range(c)]


def scheduled(tile: tuple[int, int], row_words: int, miss: int, banks: int, rate: float) -> int:
    report = MODEL.bind(PROBLEM, machine(row_words, miss, banks, rate)).explain(tiles(*tile))
    (schedule,) = (limit for limit in report.limits if limit.name == "schedule")
    return schedule.cycles


CASES = list(product(((64, 64), (8, 16), (64, 4)), ((16, 12), (64, 40)), (1, 2, 4), (0.25, 2.0)))


@pytest.mark.parametrize(("tile", "row", "banks", "rate"), first(12, *CASES[::3], *CASES[1::3], *CASES[2::3]))
def test_the_busiest_memory_is_as_busy_as_the_simulated_banks(
    tile: tuple[int, int], row: tuple[int, int], banks: int, rate: float
) -> None:
    """One bank: exactly. More: apart from the start, unless consecutive runs meet in one bank, which takes longer."""
    (row_words, miss), requests, computing = row, 64 * 64 // tile[1], 64 * 64
    rows = visits(order(*tile), row_words)
    simulated = max(computing, served(rows, miss, banks, rate) + requests)
    ratio = scheduled(tile, row_words, miss, banks, rate) / simulated
    if banks == 1:
        assert ratio == 1.0
    elif all((here - there) % banks for (here, _), (there, _) in pairwise(rows)):
        assert 0.98 <= ratio <= 1.0
    else:
        assert ratio < 1.0 or simulated == computing


def test_a_run_in_one_row_opens_it_once() -> None:
    """Tiles of 64 x 16: 256 runs, with a request of one cycle and a miss of 12 each."""
    assert scheduled((64, 16), 16, 12, 1, 0.5) == 4096 / 0.5 + 256 + 256 * 12
    assert scheduled((64, 16), 32, 12, 1, 0.5) == 4096 / 0.5 + 256 + 256 * 12
    assert scheduled((64, 16), 8, 12, 1, 0.5) == 4096 / 0.5 + 256 + 512 * 12
    assert scheduled((64, 16), 16, 12, 2, 0.5) == 4096 / 0.5 + 256  # a row of 32 cycles hides a miss

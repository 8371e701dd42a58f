"""Mappings of convolutions: tiles of windows inside the first loop that moves them, and padding with unrolled windows."""

from pathlib import Path

import pytest

from support.groups import judged
from support.notations import evaluated
from tilewright.plugin.adapter import InputSet
from tilewright_adapters.accelforge import AccelForgeAdapter

ARCH = """\
arch:
  nodes:
  - !Memory
    name: DRAM
    size: inf
    tensors: {keep: ~Intermediates, may_keep: All}
    actions:
    - {name: read, energy: 10e-12, throughput: 2e9, bits_per_action: 8}
    - {name: write, energy: 10e-12, throughput: 2e9, bits_per_action: 8}
  - !Memory
    name: Buffer
    size: 8000
    tensors: {keep: All}
    actions:
    - {name: read, energy: 1e-12, throughput: inf, bits_per_action: 8}
    - {name: write, energy: 1e-12, throughput: inf, bits_per_action: 8}
  - !Container {name: PE, spatial: [{name: X, fanout: 12, may_reuse: All}]}
  - !Compute {name: MAC, actions: [{name: compute, energy: 1e-12, throughput: 1e9}]}
"""
ROWS = """\
workload:
  bits_per_value: {All: 8}
  einsums:
  - name: Conv
    tensor_accesses:
    - {name: I, projection: {C: c, H: p + r}}
    - {name: W, projection: [k, c, r]}
    - {name: O, projection: [k, p], output: true}
    iteration_space_shape: [0 <= p < 8, 0 <= r < 3, 0 <= c < 4, 0 <= k < 2]
    renames: {weight: W, input: I, output: O}
mapping:
  nodes:
  - !Storage {tensors: [W, O, I], component: DRAM}
  - !Storage {tensors: [W, I], component: Buffer}
LOOPS
  - !Storage {tensors: [O], component: Buffer}
  - !Temporal {rank_variable: c, tile_shape: 1}
  - !Temporal {rank_variable: p, tile_shape: 1}
  - !Temporal {rank_variable: r, tile_shape: 1}
  - !Temporal {rank_variable: k, tile_shape: 1}
  - !Compute {einsum: Conv, component: MAC}
"""
PADDED = """\
workload:
  bits_per_value: {All: 8}
  rank_sizes: {P0: 4, Q0: 4, P1: 4, Q1: 4, N0: 2, T0: 4}
  einsums:
  - name: Point
    tensor_accesses:
    - {name: T0, projection: [p0, q0, n0]}
    - {name: WA, projection: [n0, t0]}
    - {name: TA, projection: [p0, q0, t0], output: true}
    renames: {weight: WA}
  - name: Depth
    tensor_accesses:
    - {name: TA, projection: {P0: p1 + r0, Q0: q1 + s0, T0: t0}}
    - {name: WD, projection: [r0, s0, t0]}
    - {name: TB, projection: [p1, q1, t0], output: true}
    iteration_space_shape: [0 <= r0 < 3, 0 <= s0 < 3]
    renames: {weight: WD}
mapping:
  nodes:
  - !Storage {tensors: [WA, WD], component: DRAM}
  - !Storage {tensors: [TA], component: Buffer}
  - !Sequential
    nodes:
    - !Nested
      nodes:
      - !Storage {tensors: [T0], component: DRAM}
      - !Storage {tensors: [WA, T0], component: Buffer}
      - !Temporal {rank_variable: p0, tile_shape: 1}
      - !Temporal {rank_variable: q0, tile_shape: 1}
      - !Temporal {rank_variable: t0, tile_shape: 1}
      - !Temporal {rank_variable: n0, tile_shape: 1}
      - !Compute {einsum: Point, component: MAC}
    - !Nested
      nodes:
      - !Storage {tensors: [TB], component: DRAM}
      - !Storage {tensors: [WD, TB], component: Buffer}
      - !Spatial {rank_variable: UNROLLED, tile_shape: 1, name: X, component: PE}
      - !Spatial {rank_variable: r0, tile_shape: 1, name: X, component: PE}
LEFT
      - !Compute {einsum: Depth, component: MAC}
"""
LOOP = "      - !Temporal {{rank_variable: {}, tile_shape: 1}}"


def read(folder: Path, text: str) -> InputSet:
    files = folder / "arch.yaml", folder / "work.yaml"
    files[0].write_text(ARCH, encoding="utf-8")
    files[1].write_text(text, encoding="utf-8")
    return AccelForgeAdapter().parse(files)


@pytest.mark.parametrize(
    ("loops", "held", "fills"),
    [
        ([("p", 2)], 4 * 4, 4 * 10),  # 2 + 2 rows of 4 channels, and each of 10 rows once
        ([("k", 1), ("p", 2)], 4 * 10, 4 * 10),  # k does not index the rows: they stay whole
        ([("c", 2), ("p", 2)], 2 * 4, 4 * 10),  # two channels at a time
        ([("p", 4), ("r", 1)], 4 * 6, 4 * 10),  # only the first loop of a window
        ([("p", 8), ("c", 2)], 2 * 10, 4 * 10),  # a loop of one step is none
    ],
)
def test_the_tile_of_a_window_is_inside_its_first_loop(
    tmp_path: Path, loops: list[tuple[str, int]], held: int, fills: int
) -> None:
    lines = "\n".join(f"  - !Temporal {{rank_variable: {name}, tile_shape: {size}}}" for name, size in loops)
    report = evaluated(read(tmp_path, ROWS.replace("LOOPS", lines)))
    assert report.valid
    counts = next(level for level in report.levels if level.name == "Buffer").tensors["I"]
    assert (counts.tile_words, counts.fills) == (held, fills)


@pytest.mark.parametrize(
    ("unrolled", "outcome"), [("s0", "equal with padding"), ("p1", "refused by timeloop (padding)")]
)
def test_unrolled_windows_read_only_words_that_exist(tmp_path: Path, unrolled: str, outcome: str) -> None:
    """As executed. Units along p1 and r0 share words, which only execution counts."""
    left = "\n".join(LOOP.format(name) for name in ("p1", "q1", "t0", "r0", "s0") if name not in (unrolled, "r0"))
    group = read(tmp_path, PADDED.replace("UNROLLED", unrolled).replace("LEFT", left)).group
    assert group is not None and judged(group) == outcome

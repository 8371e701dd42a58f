"""Random layers, arrays and mappings, mostly expressible as directives; tiles need not divide."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

Case = tuple[Problem, Architecture, list[Mapping]]


@st.composite
def layers(draw: st.DrawFn, strides: tuple[int, ...] = (1, 1, 2, 3)) -> Problem:
    """Matrix products, convolutions in one or two dimensions, depthwise ones; with batch or without."""
    kind = draw(st.sampled_from(["gemm", "conv", "conv", "depthwise_conv"]))
    axes = draw(st.sampled_from([(("P", "R"), ("Q", "S")), (("P", "R"), ("Q", "S")), (("Q", "S"),)]))
    size = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12])
    if kind == "gemm":
        sizes = {name: draw(size) for name in "MNK"}
        ranks = {"input": ["M", "K"], "weight": ["K", "N"], "output": ["M", "N"]}
    else:
        batch = draw(st.sampled_from([[], ["N"]]))
        into, out = (["C"], ["K"]) if kind == "conv" else (["G"], ["G"])
        both = ["K", "C"] if kind == "conv" else ["G"]
        sizes = {name: draw(size) for name in (*batch, *both)}
        sizes |= {axis[0]: draw(size) for axis in axes} | {axis[1]: draw(st.sampled_from([1, 2, 3])) for axis in axes}
        windows = [f"{draw(st.sampled_from(strides))}*{position} + {window}" for position, window in axes]
        ranks = {
            "input": [*batch, *into, *windows],
            "weight": [*both, *(window for _, window in axes)],
            "output": [*batch, *out, *(position for position, _ in axes)],
        }
        kind += f"{len(axes)}d"
    tensors = [{"name": role[0].upper(), "role": role, "projection": ranks[role]} for role in ranks]
    return Problem.model_validate({"name": "layer", "operation": kind, "dimensions": sizes, "tensors": tensors})


@st.composite
def arrays(draw: st.DrawFn, roomy: bool = True) -> Architecture:
    """DRAM or none, L2, one to four fanouts, PEs with L1 and lanes."""

    def memory(name: str) -> dict[str, Any]:
        words = None if roomy or name == "D" else draw(st.integers(10, 2000))
        energy = st.sampled_from([0.5, 1.0, 4.0])
        return {"name": name, "capacity_words": words, "read_energy_pj": draw(energy), "write_energy_pj": draw(energy),
                "update_energy_pj": draw(st.sampled_from([None, 3.0])), "block_words": draw(st.sampled_from([1, 4]))}  # fmt: skip

    def siblings(name: str) -> list[dict[str, Any]]:
        if draw(st.integers(0, 3)):
            return [memory(name)]
        return [memory(name) | {"holds": ["input", "weight"]}, memory(name + "o") | {"holds": ["output"]}]

    fanout = st.sampled_from([1, 2, 3, 4, 8])
    network = {"bandwidth_words_per_cycle": draw(st.sampled_from([None, 1, 2, 7, 64])),
               "latency_cycles": draw(st.integers(0, 3))}  # fmt: skip
    clusters: list[dict[str, Any]] = [
        {"name": "L2", "memories": siblings("L2"), "fanout": {"size": draw(fanout), "network": network}},
        {"name": "Row", "fanout": {"size": draw(fanout), "axis": "Y"}},
        {"name": "PE", "memories": siblings("L1"), "fanout": {"size": draw(st.sampled_from([1, 1, 2]))}},
    ]
    for name in ("Column", "Lane")[: draw(st.sampled_from([0, 0, 1, 2]))]:
        clusters.insert(-1, {"name": name, "fanout": {"size": draw(fanout)}})
    if draw(st.booleans()):
        bandwidth = draw(st.sampled_from([None, 1, 5]))
        clusters.insert(0, {"name": "D", "memories": [memory("D") | {"read_bandwidth_words_per_cycle": bandwidth}]})
    return Architecture.model_validate(
        {"name": "array", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.25}}
    )


@st.composite
def tilings(draw: st.DrawFn, problem: Problem, architecture: Architecture, perfect: bool = False) -> Mapping:
    """One of the problem on the array; filters are whole outside L1 or cut in space, most of the time."""
    everything = list(problem.tensor_names)
    slots: list[tuple[str, list[str] | None, int]] = []
    for cluster in architecture.clusters:
        if cluster.memories:
            slots.append((cluster.name, everything, 1))
        slots.append((cluster.name, None, cluster.fanout.size))
    tile = dict(problem.dimensions)
    entries: list[dict[str, Any]] = []
    for number, (target, keep, fanout) in enumerate(slots):
        last, first, inside = number == len(slots) - 1, number == 0, number >= len(slots) - 1
        fixed = set() if inside or draw(st.integers(0, 19)) == 0 else {"R", "S"} & set(problem.dimensions)
        still = first or (draw(st.integers(0, 2)) > 0 and not last)
        temporal = {
            name: size if still or name in fixed else draw(_pieces(size, perfect)) for name, size in tile.items()
        }
        spatial, room = dict(temporal), fanout
        for name in draw(st.permutations(list(tile)))[: draw(st.sampled_from([1, 1, 1, 2]))] if room > 1 else []:
            able = [size for size in range(1, temporal[name] + 1)
                    if -(-temporal[name] // size) <= room and not (perfect and temporal[name] % size)]  # fmt: skip
            if name not in fixed or draw(st.booleans()):
                spatial[name] = draw(st.sampled_from(able))
                room //= -(-temporal[name] // spatial[name])
        if last:  # what is left is done in time
            temporal = {
                name: -(-size // spatial[name]) if spatial[name] < size else 1 for name, size in temporal.items()
            }
            spatial = dict.fromkeys(tile, 1)
        order, alone = draw(st.permutations(list(tile))), everything[:1] if draw(st.integers(0, 39)) == 0 else []
        entries.append({"target": target, "keep": keep, "temporal_order": order, "temporal_tile_sizes": temporal,
                        "spatial_tile_sizes": spatial, "unicast": alone})  # fmt: skip
        tile = spatial
    return Mapping.model_validate({"entries": entries})


def _pieces(size: int, perfect: bool) -> st.SearchStrategy[int]:
    divisors = [piece for piece in range(1, size + 1) if size % piece == 0]
    return st.sampled_from([size, *divisors] if perfect else [size, size, *divisors, *divisors, *range(1, size + 1)])


@st.composite
def cases(
    draw: st.DrawFn,
    roomy: bool = True,
    perfect: bool = False,
    most: int = 4,
    strides: tuple[int, ...] = (1, 1, 2, 3),
) -> Case:
    """A problem, an array and a few mappings over one skeleton."""
    problem, architecture = draw(layers(strides)), draw(arrays(roomy))
    mappings = draw(st.lists(tilings(problem, architecture, perfect), min_size=1, max_size=most))
    return problem, architecture, mappings

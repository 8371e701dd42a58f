"""Random inputs of ZigZag: accelerators whose memories nest, layers, and complete mappings."""

import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from support import DATA
from tilewright.application.conversion.conversion import write_files
from tilewright.errors import InputError
from tilewright.plugin.adapter import InputSet
from tilewright.schema.document import dump_yaml
from tilewright.testing.strategies import prime_factors
from tilewright_adapters.zigzag import ZigZagAdapter

_SIZES = (1, 2, 3, 4, 6, 8, 9, 12)
Files = dict[str, Any]
SEARCHED = json.loads((DATA / "zigzag/searched.json").read_text())
RUNS: list[dict[str, Any]] = SEARCHED["runs"]
"""Mappings that ZigZag's searches found, with their energy and cycles."""


def searched(runs: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], InputSet | None]]:
    """Each run and what is read of its files; None: its mapping has no form here."""
    for run in runs:
        layer = {
            "id": 0,
            "name": "layer",
            "operator_type": "Conv",
            "equation": run["equation"],
            "dimension_relations": run["relations"],
            "loop_dims": list(run["sizes"]),
            "loop_sizes": list(run["sizes"].values()),
            "operand_precision": run["bits"],
        }
        said = {"name": "default", "spatial_mapping": run["spatial"], "temporal_ordering": run["ordering"]}
        accelerator = SEARCHED["accelerators"][run["accelerator"]]
        contents = {"accelerator.yaml": accelerator, "workload.yaml": [layer], "mapping.yaml": [said]}
        with tempfile.TemporaryDirectory() as folder:
            paths = write_files(Path(folder), {name: dump_yaml(data) for name, data in contents.items()})
            try:
                yield run, ZigZagAdapter().parse(paths)
            except InputError as error:
                assert "this mapping cannot be expressed" in error.message, error
                yield run, None


@st.composite
def files(draw: st.DrawFn) -> Files:
    """Accelerator, workload and mapping as data. Orders are complete, sizes may be too small, some unrollings may not divide."""
    layer = draw(layers())
    sizes = dict(zip(layer["loop_dims"], layer["loop_sizes"], strict=True))
    axes = {f"D{number + 1}": draw(st.sampled_from([2, 3, 4, 6])) for number in range(draw(st.integers(1, 3)))}
    left = {name: prime_factors(size) for name, size in sizes.items()}
    spatial: dict[str, list[str]] = {}
    for axis, room in axes.items():
        taken: dict[str, int] = {}
        for name in draw(st.permutations(list(left))):
            for factor in list(left[name]):
                if factor <= room and draw(st.booleans()):
                    room //= factor
                    left[name].remove(factor)
                    taken[name] = taken.get(name, 1) * factor
        spatial[axis] = [f"{name}, {count}" for name, count in taken.items()] or [f"{next(iter(left))}, 1"]
    accelerator = draw(accelerators(axes, layer["operand_precision"]))
    free = [axis for axis, texts in spatial.items() if texts[0].endswith(", 1")]
    whole = [name for name, size in sizes.items() if math.prod(left[name]) == size > 1]
    if draw(st.booleans()) and free and whole:  # may not divide
        name, first = draw(st.sampled_from(whole)), draw(st.sampled_from(free))
        steps = sizes[name]
        for axis in free:  # of two in one cluster the order is told
            if steps > 1 and _beside(accelerator, first, axis) and (axis == first or draw(st.booleans())):
                count = draw(st.integers(2, min(steps, axes[axis])))
                spatial[axis] = [f"{name}, {count}"]
                steps = -(-steps // count)
        left[name] = prime_factors(steps)
    order = draw(st.permutations([[name, factor] for name, factors in left.items() for factor in factors]))
    said = {"name": "default", "spatial_mapping": spatial, "temporal_ordering": [list(pair) for pair in order]}
    return {
        "accelerator.yaml": accelerator,
        "workload.yaml": [layer],
        "mapping.yaml": [said],
    }


def _beside(accelerator: dict[str, Any], first: str, second: str) -> bool:
    """Are the two dimensions of the array served by the same memories?"""
    served = [memory["served_dimensions"] for memory in accelerator["memories"].values()]
    return all((first in names) == (second in names) for names in served)


@st.composite
def layers(draw: st.DrawFn) -> dict[str, Any]:
    """Matrix products and convolutions."""
    if draw(st.booleans()):
        equation, names, relations = "O[m][n]+=I[m][k]*W[k][n]", ["M", "N", "K"], []
    else:
        equation, names = "O[b][k][y]+=W[k][c][f]*I[b][c][iy]", ["B", "K", "C", "Y", "F"]
        relations = [f"iy={draw(st.integers(1, 3))}*y+{draw(st.integers(1, 2))}*f"]
    bits = draw(st.sampled_from([8, 16]))
    return {
        "id": 0,
        "name": "layer",
        "operator_type": "Conv",
        "equation": equation,
        "dimension_relations": relations,
        "loop_dims": names,
        "loop_sizes": [draw(st.sampled_from(_SIZES)) for _ in names],
        "operand_precision": {"I": bits, "W": bits, "O": bits * draw(st.sampled_from([1, 1, 2, 3])), "O_final": bits},
        "operand_source": {"I": 0, "W": 0},
    }


@st.composite
def accelerators(draw: st.DrawFn, axes: dict[str, int], precision: dict[str, int]) -> dict[str, Any]:
    """Some memories, innermost first, shared along more and more dimensions; the last one holds all and is large."""
    memories = {}
    served: list[str] = []
    bits = precision["I"]
    for number in range(draw(st.integers(1, 4))):
        served += [axis for axis in axes if axis not in served and draw(st.booleans())]
        operands = draw(st.lists(st.sampled_from(["I1", "I2", "O"]), unique=True, min_size=1))
        memories[f"m{number}"] = _memory(
            draw, draw(st.sampled_from([4, 16, 50, 128, 1000])) * bits, operands, list(served), precision
        )
    memories["dram"] = _memory(draw, 2**34, ["I1", "I2", "O"], list(axes), precision)
    return {
        "name": "random",
        "memories": memories,
        "operational_array": {
            "unit_energy": 0.5,
            "unit_area": 1.0,
            "dimensions": list(axes),
            "sizes": list(axes.values()),
        },
    }


def _memory(
    draw: st.DrawFn, size: int, operands: list[str], served: list[str], precision: dict[str, int]
) -> dict[str, Any]:
    finest = precision["I"] * draw(st.sampled_from([1, 2]))
    widest = finest * draw(st.sampled_from([1, 2, 8]))
    if "O" in operands and widest < precision["O"]:  # ZigZag ends with an assertion where a value does not pass at once
        widest = finest * 8
    ways = {"read": ("tl", "th"), "write": ("fh", "fl")}
    ports = [
        {
            "name": f"{kind[0]}_port_1",
            "type": kind,
            "bandwidth_min": finest,
            "bandwidth_max": widest,
            "allocation": [f"{operand}, {inner}" for operand in operands] + [f"O, {outer}"] * ("O" in operands),
        }
        for kind, (inner, outer) in ways.items()
    ]
    if draw(st.integers(0, 3)) == 0:  # a port for each operand towards the array, and one towards the outer memory
        towards = [[f"{operand}, tl", *(["O, fl"] if operand == "O" else [])] for operand in operands]
        outwards = [f"{operand}, fh" for operand in operands] + ["O, th"] * ("O" in operands)
        ports = [
            {
                "name": f"rw_port_{number + 1}",
                "type": "read_write",
                "bandwidth_min": finest,
                "bandwidth_max": widest * draw(st.sampled_from([1, 2, 4])),
                "allocation": allocation,
            }
            for number, allocation in enumerate([*towards, outwards])
        ]
    return {
        "size": size,
        "r_cost": draw(st.sampled_from([0.5, 2.0, 100.0])),
        "w_cost": draw(st.sampled_from([0.25, 3.0])),
        "area": 0.0,
        "latency": 1,
        "force_double_buffering": draw(st.integers(0, 3)) == 0,
        "operands": operands,
        "ports": ports,
        "served_dimensions": served,
    }


def operations(texts: Files) -> int:
    return math.prod(texts["workload.yaml"][0]["loop_sizes"])

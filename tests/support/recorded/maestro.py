"""Figures printed by MAESTRO itself.

`tests/data/maestro/cases.json.gz` has 173 layers with dataflow and hardware. `rejects.json.gz` has
40 inputs that MAESTRO refuses, crashes on or evaluates wrongly. Floats have six digits.
"""

from __future__ import annotations

import functools
import gzip
import json
from typing import Any

from support import DATA
from tilewright_notations.directives import DirectiveHardware, DirectiveLayer, Map

FOLDER = DATA / "maestro"


@functools.cache
def load(name: str) -> list[dict[str, Any]]:
    """`cases` or `rejects`."""
    with gzip.open(FOLDER / f"{name}.json.gz", "rt", encoding="utf-8") as stream:
        result: list[dict[str, Any]] = json.load(stream)
    return result


def layer_of(case: dict[str, Any]) -> DirectiveLayer:
    return DirectiveLayer(
        name=case["id"],
        type=case["type"],
        dimensions=case["dimensions"],
        strides=case["strides"],
        levels=tuple(
            tuple(Map(spatial=s, size=size, offset=offset, dimension=name) for s, size, offset, name in level)
            for level in case["levels"]
        ),
        cluster_sizes=tuple(case["cluster_sizes"]),
    )


def hardware_of(case: dict[str, Any]) -> DirectiveHardware:
    return DirectiveHardware(**case["hardware"])


def differences(numbers: dict[str, Any], expected: dict[str, Any], where: str = "") -> list[tuple[str, Any, Any]]:
    """(column, found, expected) for every expected number that is not found: integers exactly, floats to six digits."""
    result: list[tuple[str, Any, Any]] = []
    for name, value in expected.items():
        have = numbers.get(name, "absent")
        if isinstance(value, dict):
            result += differences(have, value, f"{where}{name} ")
        elif not _same(have, value):
            result.append((where + name, have, value))
    return result


def _same(number: Any, expected: Any) -> bool:
    if number is None or expected is None or isinstance(number, str):
        return number is expected
    return bool(number == expected) or (isinstance(number, float) and float(f"{number:.6g}") == float(expected))

"""Units of data sheets in architecture files. The schema counts in words of a memory, and in words per cycle.

{name: Buffer, word_bits: 8, size: 128 KiB}           ->  capacity_words: 131072
clock: 1 GHz, and {name: DRAM, bandwidth: 25.6 GB/s}  ->  clock_ghz: 1, shared_bandwidth_words_per_cycle: 12.8
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tilewright.values import MisplacedError

RATES = ("read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle", "shared_bandwidth_words_per_cycle")
"""Bandwidths of a memory."""
MEMORY = {"capacity_words": "size", "block_words": "size", **dict.fromkeys(RATES, "rate")}
"""Fields of a memory that may have a unit, with the kind of their values."""
MACHINE = {"clock_ghz": "clock", "technology_nm": "node"}
"""Such fields of an architecture."""
SHORT = {
    "size": "capacity_words",
    "capacity": "capacity_words",
    "block": "block_words",
    "read_bandwidth": RATES[0],
    "write_bandwidth": RATES[1],
    "shared_bandwidth": RATES[2],
    "bandwidth": RATES[2],
    "clock": "clock_ghz",
    "technology": "technology_nm",
}
"""Keys without a unit in their name, whose values have one, and their fields."""
EXAMPLES = {"size": "128 KiB", "rate": "25.6 GB/s", "clock": "500 MHz", "node": "28 nm"}
_NUMBER = r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE]([-+]?[0-9]{1,2}))?"
_TEXT = re.compile(rf"\s*{_NUMBER}\s*([A-Za-z]+)(?:\s*/\s*(s|cycle))?\s*")
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_BITS = {"bit": 1, "bits": 1, "B": 8, "byte": 8, "bytes": 8}
_PATTERN = {
    "size": r"^\s*[0-9.][0-9.eE+-]*\s*((Ki|Mi|Gi)?(B|bits?|bytes?)|words?)\s*$",
    "rate": r"^\s*[0-9.][0-9.eE+-]*\s*((k|M|G|T|Ki|Mi|Gi)?(B|bits?|bytes?)|words?)\s*/\s*(s|cycle)\s*$",
    "clock": r"^\s*[0-9.][0-9.eE+-]*\s*(k|M|G)?Hz\s*$",
    "node": r"^\s*[0-9.][0-9.eE+-]*\s*nm\s*$",
}
"""Texts of each kind, for the JSON schema."""


def in_words(data: Any) -> Any:
    """Return an architecture's plain data with fields of the schema in place of texts with units.

    Data without such texts, and objects, are returned with equal content. The schema refuses other faults. So it does with
    texts that have no unit, in fields that count words.

    Raises:
        MisplacedError: a text has another unit or no unit, two keys are one value, or a size is no whole number of words.
    """
    if not isinstance(data, Mapping):
        return data
    machine = _read(data, MACHINE, (), lambda kind, text: _plain(kind, text))
    clock = machine.get("clock_ghz")

    def of_memory(memory: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        bits = memory.get("word_bits", 16)
        if isinstance(bits, bool) or not isinstance(bits, int) or bits < 1:
            return dict(memory)  # the schema refuses it
        return _read(memory, MEMORY, path, lambda kind, text: _of_words(kind, text, bits, clock))

    return _each_memory(machine, of_memory)


def with_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an architecture's plain data with the names of fields in place of short keys; values keep their units."""

    def renamed(part: Mapping[str, Any], path: tuple[str | int, ...], fields: Mapping[str, str]) -> dict[str, Any]:
        return {SHORT[key] if SHORT.get(key) in fields else key: value for key, value in part.items()}

    machine = renamed(data, (), MACHINE)
    return _each_memory(machine, lambda memory, path: renamed(memory, path, MEMORY))


def fields_of(key: str, memory: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of a memory that a key is about; several for `bandwidth`: all that the memory states.

    >>> fields_of("bandwidth", {"read_bandwidth_words_per_cycle": 4, "write_bandwidth_words_per_cycle": 4})
    ('read_bandwidth_words_per_cycle', 'write_bandwidth_words_per_cycle')
    """
    if key == "bandwidth":
        return tuple(field for field in RATES if memory.get(field) is not None) or (SHORT[key],)
    return (SHORT[key] if SHORT.get(key) in MEMORY else key,)


def describe(schema: dict[str, Any], fields: Mapping[str, str]) -> None:
    """Add texts with units, and short keys, to the JSON schema of a memory or an architecture."""
    properties = schema["properties"]
    for field, kind in fields.items():
        text = {"type": "string", "pattern": _PATTERN[kind]}
        old = properties[field]
        head = {name: old[name] for name in ("description", "title", "default") if name in old}
        number = {name: value for name, value in old.items() if name not in head}
        properties[field] = head | {"anyOf": [*number.get("anyOf", [number]), text]}
    for key, field in SHORT.items():
        if field in fields and key not in properties:
            told = f"`{field}` with a unit, such as {EXAMPLES[fields[field]]}."
            properties[key] = {"type": "string", "pattern": _PATTERN[fields[field]], "description": told}


def _each_memory(
    machine: dict[str, Any], change: Callable[[Mapping[str, Any], tuple[str | int, ...]], dict[str, Any]]
) -> dict[str, Any]:
    """Return the data with each memory changed; what is no memory stays."""

    def inside(cluster: Any, at: int) -> Any:
        memories = cluster.get("memories") if isinstance(cluster, Mapping) else None
        if not isinstance(memories, list | tuple):
            return cluster
        changed = [
            change(memory, ("clusters", at, "memories", number)) if isinstance(memory, Mapping) else memory
            for number, memory in enumerate(memories)
        ]
        return {**cluster, "memories": changed}

    clusters = machine.get("clusters")
    if isinstance(clusters, list | tuple):
        machine["clusters"] = [inside(cluster, at) for at, cluster in enumerate(clusters)]
    return machine


def _read(
    part: Mapping[str, Any],
    fields: Mapping[str, str],
    path: tuple[str | int, ...],
    number: Callable[[str, str], float],
) -> dict[str, Any]:
    """Return a part with numbers for texts. Raises MisplacedError."""
    result: dict[str, Any] = {}
    for key, value in part.items():
        field = SHORT[key] if SHORT.get(key) in fields else key
        kind = fields.get(field)
        if kind is None:
            result[key] = value
            continue
        if field in result:
            other = next(name for name in part if name != key and SHORT.get(name, name) == field)
            raise MisplacedError(f"{other} and {key} are one value; expected one of them", *path, key)
        if isinstance(value, str) and (key != field or _TEXT.fullmatch(value)):
            try:
                value = number(kind, value)
            except ValueError as error:
                raise MisplacedError(f"{key}: {error}", *path, key) from None
        elif key != field and isinstance(value, int | float):
            told = f"{key}: {value} has no unit; expected such as {EXAMPLES[kind]}, or {field}: {value}"
            raise MisplacedError(told, *path, key)
        result[field] = value
    return result


def _plain(kind: str, text: str) -> float:
    """Return the GHz of a clock, or the nm of a node. Raises ValueError."""
    value, unit, per = _parts(kind, text)
    prefix, base = ("", unit) if kind == "node" else (unit.removesuffix("Hz"), "Hz" if unit.endswith("Hz") else unit)
    if per or base != ("nm" if kind == "node" else "Hz") or prefix not in _DECIMAL:
        raise ValueError(f"'{text}' has another unit; expected such as {EXAMPLES[kind]}")
    return _number(value if kind == "node" else value * _DECIMAL[prefix] / 10**9)


def _of_words(kind: str, text: str, word_bits: int, clock_ghz: object) -> float:
    """Return the words of a size, or the words per cycle of a rate. Raises ValueError."""
    value, unit, per = _parts(kind, text)
    if (kind == "size") != (not per):
        raise ValueError(f"'{text}' has another unit; expected such as {EXAMPLES[kind]}")
    if unit in ("word", "words"):
        words = value
    else:
        base = next((name for name in ("bytes", "byte", "bits", "bit", "B") if unit.endswith(name)), None)
        prefix = unit.removesuffix(base or "")
        if kind == "size" and base and prefix in (*_DECIMAL, "K") and prefix:
            power = prefix.upper()
            more = f": {power}i is a power of 1024" if power != "T" else ""
            raise ValueError(f"'{text}' is ambiguous; expected such as {EXAMPLES[kind]}{more}")
        scale = (_DECIMAL | _BINARY).get(prefix)
        if base is None or scale is None:
            raise ValueError(f"'{text}' has another unit; expected such as {EXAMPLES[kind]}")
        words = value * scale * _BITS[base] / word_bits
    if per == "s":
        if isinstance(clock_ghz, bool) or not isinstance(clock_ghz, int | float) or not 0 < clock_ghz < math.inf:
            raise ValueError(
                f"'{text}' needs a clock; expected clock_ghz in the architecture, or a rate such as 64 B/cycle"
            )
        words /= Fraction(clock_ghz) * 10**9
    if kind == "size" and (words.denominator != 1 or words < 1):
        raise ValueError(f"'{text}' is {float(words):.6g} words of {word_bits} bits; expected a whole number of words")
    return _number(words)


def _parts(kind: str, text: str) -> tuple[Fraction, str, str]:
    """Return number, unit, and `s` or `cycle` behind a slash. Raises ValueError."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no number with a unit; expected such as {EXAMPLES[kind]}")
    value = Fraction(match[1]) * Fraction(10) ** int(match[2] or 0)
    return value, match[3], match[4] or ""


def _number(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)

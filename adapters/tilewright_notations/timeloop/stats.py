"""Parser of Timeloop's statistics, `timeloop-model.stats.txt`, for all versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_LEVEL = re.compile(r"Level (\d+)")
_NAME = re.compile(r"=== (.+) ===")
_PART = re.compile(r" {4}([A-Z][A-Z ]+)")
_HEADING = re.compile(r" {4}(\S.*?)\s*:")
_FIELD = re.compile(r"\s{4,8}(\S.*?)\s*:\s+(\S+).*")
_FORMAT = re.compile(r" {8}(Representation format)\s*:\s+(.*?)\s*")
_RANKED = re.compile(r" {8}(\S[^:]*?)\s*")
_RANK = re.compile(r" {12}Rank (\d+) \(metadata, payload\): \((\S+),\s*(\S+)\)")
_LINK = re.compile(r"(\S+) <==> (\S+)")
_SUMMARY = re.compile(r"(Total topology energy|Cycles|Energy|Utilization)\s*:\s*(\S+)\s*(\S*)")
_SUMMARIES = ("Summary Stats", "Engine Stats")
_ENERGIES = ("Energy (total)", "Temporal Reduction Energy (total)", "Address Generation Energy (total)")
_NETWORK_ENERGIES = ("Energy (total)", "Link transfer energy (total)", "Spatial Reduction Energy (total)")


class Unreadable(ValueError):
    """Error: the text is not in Timeloop's format; `line` is where, if that is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Printed(str):
    """A printed value with its line."""

    __slots__ = ("line",)
    line: int

    @classmethod
    def at(cls, text: str, line: int) -> Printed:
        """Return a value of a line."""
        printed = cls(text)
        printed.line = line
        return printed


@dataclass
class Section:
    """One level or one network: its fields, and the fields of each tensor."""

    title: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    tensors: dict[str, dict[str, str]] = field(default_factory=dict)
    ranks: dict[str, dict[str, dict[int, tuple[str, str]]]] = field(default_factory=dict)
    """Tensor -> field -> rank -> metadata and payloads. Timeloop's rank 0 is the innermost one."""
    lines: dict[str, int] = field(default_factory=dict)
    """Tensor -> line of its heading."""


@dataclass
class Stats:
    """Statistics of one run.

    `levels` are by Timeloop's number: 0 is compute, 1 the innermost memory. `networks` are by the
    name of their outer level.
    """

    levels: dict[int, Section]
    networks: list[tuple[str, Section]]
    cycles: int
    utilization: float
    energy_pj: float
    energy_step_pj: float
    """Rounding step of the summary's energy."""
    is_sparse: bool
    """Whether energies and cycles are those of a sparse run."""


def read_stats(text: str) -> Stats:
    """Parse the statistics.

    Raises:
        Unreadable: levels or the summary are missing, or a value is malformed.
    """
    levels: dict[int, Section] = {}
    networks: list[tuple[str, Section]] = []
    summary: dict[str, tuple[str, str]] = {}
    section, tensor, ranked, in_stats, in_summary = Section(), "", "", False, False
    for row, line in enumerate(text.splitlines(), 1):
        in_summary = in_summary or line.strip() in _SUMMARIES
        if match := _SUMMARY.match(line):
            summary.setdefault(match[1], (Printed.at(match[2], row), match[3]))
        elif in_summary:
            continue
        elif match := _LEVEL.fullmatch(line):
            section, tensor, in_stats = Section(), "", False
            levels[int(match[1])] = section
        elif match := _NAME.fullmatch(line):
            section.title = match[1]
        elif match := _LINK.fullmatch(line.strip()):
            section, tensor, in_stats = Section(line.strip()), "", False
            networks.append((match[1], section))
        elif match := _PART.fullmatch(line):
            if match[1] == "NETWORK STATS" and any(section is level for level in levels.values()):  # format of 2019
                section = Section(section.title)
                networks.append((section.title, section))
            in_stats, tensor = match[1].endswith("STATS"), ""
        elif match := _RANK.fullmatch(line):
            pair = (Printed.at(match[2], row), Printed.at(match[3], row))
            section.ranks.setdefault(tensor, {}).setdefault(ranked, {})[int(match[1])] = pair
        elif in_stats and (match := _RANKED.fullmatch(line)):
            ranked = match[1]
        elif in_stats and (match := _HEADING.fullmatch(line)):
            tensor = match[1]
            section.lines.setdefault(tensor, row)
        elif match := _FORMAT.fullmatch(line) or _FIELD.fullmatch(line):
            here = section.tensors.setdefault(tensor, {}) if tensor else section.fields
            here.setdefault(match[1], Printed.at(match[2], row))
    if 0 not in levels or "Cycles" not in summary or "Energy" not in summary:
        raise Unreadable("the statistics have no levels or no summary")
    value, unit = summary.get("Total topology energy", summary["Energy"])
    scale = {"uJ": 1e6, "pJ": 1.0, "nJ": 1e3, "mJ": 1e9}.get(unit)
    if scale is None:
        raise Unreadable(f"unknown energy unit '{unit}'")
    return Stats(
        levels=levels,
        networks=networks,
        cycles=whole(summary["Cycles"][0]),
        utilization=_share(summary["Utilization"][0]) if "Utilization" in summary else 0.0,
        energy_pj=number(value) * scale,
        energy_step_pj=0.01 * scale,
        is_sparse=any(name.startswith("Algorithmic") for name in levels[0].fields),
    )


def leakage(section: Section) -> float:
    """Return the leakage energy of a level in pJ. Raises Unreadable."""
    return number(section.fields.get("Leakage energy (total)", "0"))


def _share(text: str) -> float:
    return number(text) / (100 if text.endswith("%") else 1)


def needed(fields: Mapping[str, str], name: str) -> str:
    """Return a field. Raises Unreadable."""
    if name not in fields:
        raise Unreadable(f"no '{name}'")
    return fields[name]


def whole(text: str) -> int:
    """Return a count. Raises Unreadable."""
    value = number(text)
    if value != int(value) or value < 0:
        raise Unreadable(f"'{text}' is not a count", getattr(text, "line", None))
    return int(value)


def number(text: str) -> float:
    """Return a finite number. Raises Unreadable."""
    try:
        value = float(text.rstrip("%"))
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise Unreadable(f"'{text}' is not a number", getattr(text, "line", None))
    return value


def count(fields: Mapping[str, str], what: str) -> int:
    """Return a count such as `Scalar reads (per-instance)`. Raises Unreadable.

    For a sparse run it is the count of executed actions, `Actual scalar reads`.
    """
    for name in (what, *(f"{kind} {what[0].lower()}{what[1:]}" for kind in ("Actual", "Algorithmic"))):
        if name in fields:
            return whole(fields[name])
    raise Unreadable(f"no '{what}'")


def energy(fields: Mapping[str, str], network: bool = False) -> float:
    """Return the energy of one tensor in one section, over all instances, in pJ. Raises Unreadable."""
    names = _NETWORK_ENERGIES if network else _ENERGIES
    needed(fields, names[0])
    return sum(number(fields[name]) for name in names if name in fields)

"""Estimates for Timeloop's and Accelergy's component classes, for files without an energy table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.errors import NotEstimatedError
from tilewright.estimation.architectures import records, rounded
from tilewright.estimation.asking import Answer, Question, current
from tilewright.plugin.estimator import Attribute
from tilewright.schema.component import Estimated
from tilewright_adapters.timeloop.reading.energies import Energies
from tilewright_adapters.timeloop.reading.hierarchy import DEPTH, WIDTH, WORD_BITS, Component, Hierarchy

_ARRAY = {"banks": ("n_banks",), "ports": ("n_rw_ports", "n_rdwr_ports")}
_MULTIPLIER, _ADDER = ("multiplier_width", "datawidth", *WORD_BITS), ("adder_width",)


@dataclass
class Estimates:
    """Energies (like a table of Accelergy), areas and estimate records, by component."""

    energies: Energies = field(default_factory=dict)
    areas: dict[str, float] = field(default_factory=dict)
    records: dict[str, tuple[Estimated, ...]] = field(default_factory=dict)


def asked() -> bool:
    """Return whether the user has named an estimator; if not, Timeloop's own table is used."""
    return bool(current().options)


def estimates(levels: Hierarchy) -> Estimates:
    """Return estimates for every level without energies of its own.

    Raises:
        InputError: a class is unknown, has no technology node, or no estimator answers.
    """
    answers = Estimates()
    for level in levels.storage:
        if not level.is_dummy and "vector_access_energy" not in level.fields:
            name, sizes = _storage(level)
            _ask(level, name, sizes, {"read": "read_energy_pj", "write": "write_energy_pj"}, answers)
    if "energy" not in levels.compute.fields:
        name, sizes = _compute(levels.compute)
        _ask(levels.compute, name, sizes, {"compute": "energy_per_operation_pj"}, answers)
    return answers


def _ask(level: Component, name: str, sizes: dict[str, Attribute], figures: dict[str, str], result: Estimates) -> None:
    answers: list[tuple[str, Answer]] = []
    result.energies[level.name] = {}
    for action, figure in figures.items():
        try:
            answer = current().ask(Question(name, sizes, action, _node(level), {}))
        except NotEstimatedError as error:
            raise level.where.error(f"{level.name}: {error.message}", hint="give its energies, or an ERT") from None
        result.energies[level.name][action] = rounded(answer.estimate.energy_pj)
        answers.append((figure, answer))
    area = answers[0][1].estimate.area_um2
    if area is not None:
        result.areas[level.name] = rounded(area)
        answers.append(("area_um2", answers[0][1]))
    result.records[level.name] = tuple(records(answers))


def _storage(level: Component) -> tuple[str, dict[str, Attribute]]:
    """Return a memory's component and sizes.

    The width of an access is `width`, or the product of word, block and cluster.
    """
    kind = level.kind.lower()
    word_bits = level.whole(WORD_BITS, 16)
    block, cluster = level.blocks(word_bits)
    width = level.whole(WIDTH, word_bits * block * cluster)
    if "dram" in kind:
        given = level.fields.get("type")
        return "dram", {"kind": "LPDDR4" if given is None else str(given.value), "width_bits": width}
    sizes: dict[str, Attribute] = {
        "size_bits": _words(level, word_bits, block) * word_bits * cluster,
        "width_bits": width,
    }
    if "sram" in kind:
        sizes |= {ours: level.whole(theirs, 1) for ours, theirs in _ARRAY.items()}
        return "smart_buffer" if "smart" in kind else "sram", sizes
    if "reg" in kind or kind.endswith("rf"):
        return "register", sizes
    raise level.where.error(
        f"{level.name}: unknown class {level.kind} for estimators",
        hint="known: DRAM, SRAM, smartbuffer_SRAM and registers; or give its energies, or an ERT",
    )


def _words(level: Component, word_bits: int, block: int) -> int:
    if "entries" in level.fields:
        return level.whole(("entries",), 0)
    if "sizeKB" in level.fields:
        return level.whole(("sizeKB",), 0) * 8192 // word_bits
    return level.whole(DEPTH, 1) * block


def _compute(level: Component) -> tuple[str, dict[str, Attribute]]:
    bits = level.whole(_MULTIPLIER, 16)
    return "mac", {"multiplier_bits": bits, "adder_bits": level.whole(_ADDER, 2 * bits)}


def _node(level: Component) -> float:
    """Return the technology node, given as `45nm` or as a number of nanometres."""
    given = level.fields.get("technology")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:nm)?", str(given.value).strip()) if given is not None else None
    if match is None:
        raise level.where.error(
            f"{level.name} has no technology node, which estimates need", hint="give technology: 45nm, or an ERT"
        )
    return float(match[1])


def texts(result: Estimates) -> Iterator[str]:
    """Yield sentences that name the estimator of each energy."""
    for name in dict.fromkeys(estimated.estimator for told in result.records.values() for estimated in told):
        of = [level for level, told in result.records.items() if any(estimated.estimator == name for estimated in told)]
        yield f"no energy table (ERT) is given: the energies of {', '.join(of)} are estimates of {name}"

"""Parser of Accelergy's reference tables.

Energies are component -> action -> pJ, areas are component -> square micrometres.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilewright_adapters.timeloop.cursor import Cursor

READ = ("random_read", "read")
WRITE = ("random_fill", "random_write", "fill", "write")
UPDATE = ("random_update", "random_write", "update", "write")
LEAK = ("leak",)
WIRE = ("transfer_random",)
COMPUTE = ("mac_random", "mult_random", "mac", "mult", "compute")
"""Timeloop's action names; the first one in the table counts."""

Energies = dict[str, dict[str, float]]


def read_energies(section: Cursor) -> Energies:
    """Return the energies of an `ERT` section, versions 0.2 to 0.4. Raises InputError.

    Of several rows of an action, the most expensive counts.
    """
    fields = section.fields("ERT")
    if "tables" not in fields:
        raise section.error("the energy table has no 'tables'")
    result: Energies = {}
    for name, actions in _tables(fields["tables"]):
        component = _component(name)
        energies: dict[str, float] = {}
        for action, energy in actions:
            energies[action] = max(energies.get(action, 0.0), energy)
        result[component] = energies
    return result


def one_for_all(energies: Energies) -> Energies:
    """Return a table in which every action of a component costs as much as its dearest one, as before June 2021."""
    names = (READ[-1], WRITE[-1], COMPUTE[-1], *WIRE)
    return {
        component: dict.fromkeys(names, max(by_action.values(), default=0.0))
        for component, by_action in energies.items()
    }


def read_areas(section: Cursor) -> dict[str, float]:
    """Return the areas of an `ART` section, per instance in square micrometres. Raises InputError.

    The result is empty if all areas are 0, which means unknown.
    """
    tables = section.fields("ART").get("tables")
    areas: dict[str, float] = {}
    if tables is None:
        return areas
    if isinstance(tables.value, dict):  # version 0.2
        rows = [(str(name), tables.child(name)) for name in tables.value]
    else:
        listed = [table.fields("an area table") for table in tables.items("tables")]
        rows = [
            (fields["name"].text("a component's name"), fields["area"])
            for fields in listed
            if {"name", "area"} <= set(fields)
        ]
    for name, cursor in rows:
        area = cursor.number("area")
        if not 0 <= area <= 1e15:
            raise cursor.error(f"area is {area:g}; expected 0 to 1e15")
        areas[_component(name)] = max(areas.get(_component(name), 0.0), area)
    return areas if any(areas.values()) else {}


def _component(name: str) -> str:
    """Return the last part of a component's path, without the range of its instances."""
    return re.sub(r"\[[^\[\]]*+\]", "", name).rpartition(".")[2]


def _tables(tables: Cursor) -> Iterator[tuple[str, Iterator[tuple[str, float]]]]:
    if isinstance(tables.value, dict):  # version 0.2
        for key in tables.value:
            yield key, _actions_by_name(tables.child(key))
        return
    for table in tables.items("tables"):
        fields = table.fields("an energy table")
        if "name" not in fields or "actions" not in fields:
            raise table.error("an energy table needs 'name' and 'actions'")
        yield fields["name"].text("a component's name"), _actions_listed(fields["actions"])


def _actions_listed(actions: Cursor) -> Iterator[tuple[str, float]]:
    for action in actions.items("actions"):
        fields = action.fields("an action")
        if "name" not in fields or "energy" not in fields:
            raise action.error("an action needs 'name' and 'energy'")
        yield fields["name"].text("an action's name"), fields["energy"].number("energy")


def _actions_by_name(component: Cursor) -> Iterator[tuple[str, float]]:
    for action in component.value if isinstance(component.value, dict) else component.fields("actions"):
        cursor = component.child(action)
        for row in cursor.items("rows") if isinstance(cursor.value, list) else [cursor]:
            fields = row.fields("a row")
            if "energy" in fields:
                yield action, fields["energy"].number("energy")


def pick(energies: dict[str, float], actions: tuple[str, ...]) -> float | None:
    """Return the energy of the first action in the table."""
    return next((energies[action] for action in actions if action in energies), None)


# For actions without an energy Timeloop uses a technology table. The formulas below are those of the
# public one (pat-public): fitted to Eyeriss, in units that Timeloop takes as pJ.


def sram_pj(capacity_words: int, word_bits: int, block_words: int, instances_per_macro: int) -> float:
    """Return the energy of one access of a block; 0 for a memory without words.

    Per 16 bits, the energy is linear in the size: 1 at 0.5 KB, 6 at 100 KB.
    """
    if not capacity_words:
        return 0.0
    width = word_bits * block_words * instances_per_macro
    kilobytes = width * -(-capacity_words // block_words) / 8192
    per_16_bits = 5 / 99.5 * (kilobytes - 0.5) + 1
    return max(0.0, per_16_bits * width / 16 / instances_per_macro)


def dram_pj(block_bits: int) -> float:
    """Return the energy of one access of a block: 200 per 16 bits."""
    return 200 * block_bits / 16


def multiplier_pj(word_bits: int) -> float:
    """Return the energy of one operation: 1 for 16 by 16 bits."""
    return (word_bits / 16) ** 2

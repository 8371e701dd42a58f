"""File form of a mapping's entries, without inherited values.

An entry that omits tile sizes inherits them. An order lists the dimensions with loops. The other
dimensions are outside them, in the order of the first entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from typing import Any


def completed(raws: Sequence[Any], sizes: MappingOf[str, Any] | None = None) -> list[Any] | None:
    """Return the entries with all inherited values; None if they are not entries at all.

    Args:
        raws: the entries.
        sizes: tile sizes outside the first entry; None: it has all sizes itself.

    Raises:
        ValueError: several dimensions have loops, and the order does not list them all.
    """
    incoming: dict[str, Any] = dict(sizes or {})
    entries: list[Any] = []
    for raw in raws:
        if not isinstance(raw, dict):
            return None
        temporal, spatial = raw.get("temporal_tile_sizes") or {}, raw.get("spatial_tile_sizes") or {}
        if not isinstance(temporal, dict) or not isinstance(spatial, dict):
            return None
        temporal = incoming | temporal
        spatial = temporal | spatial
        entry = raw | {"temporal_tile_sizes": temporal, "spatial_tile_sizes": spatial}
        where = f"entry {len(entries)} on {raw.get('target')}"
        stepping, unrolled = _moving(incoming or temporal, temporal), _moving(temporal, spatial)
        entry["temporal_order"] = _whole(
            raw.get("temporal_order", []), temporal, stepping, f"{where} steps", "temporal_order"
        )
        if raw.get("spatial_order") is not None:
            entry["spatial_order"] = _whole(
                raw["spatial_order"], temporal, unrolled, f"{where} unrolls", "spatial_order"
            )
        entries.append(entry)
        incoming = spatial
    return entries


def shortened(
    entries: Sequence[MappingOf[str, Any]], sizes: MappingOf[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield complete entries without the values that `completed` restores."""
    incoming: MappingOf[str, Any] = dict(sizes or {})
    for entry in entries:
        temporal, spatial = entry["temporal_tile_sizes"], entry["spatial_tile_sizes"]
        names = list(incoming or temporal)
        stepping, unrolled = _moving(incoming or temporal, temporal), _moving(temporal, spatial)
        order, placed = entry["temporal_order"], entry.get("spatial_order")
        short: dict[str, Any] = {
            "temporal_order": _end(order, names, stepping, 0 if len(stepping) < 2 else 1),
            "temporal_tile_sizes": {name: temporal[name] for name in names if temporal[name] != incoming.get(name)},
            "spatial_order": None if placed is None else _end(placed, names, unrolled, 1),
            "spatial_tile_sizes": {name: spatial[name] for name in unrolled},
        }
        yield {
            key: value for key, value in (dict(entry) | short).items() if value or (key == "keep" and value is not None)
        }
        incoming = {name: spatial[name] for name in names}


def _moving(outer: MappingOf[str, Any], inner: MappingOf[str, Any]) -> list[str]:
    return [name for name in outer if inner.get(name) != outer[name]]


def _whole(order: Any, sizes: MappingOf[str, Any], moving: Sequence[str], where: str, key: str) -> Any:
    """Return an order of all dimensions.

    An invalid order is returned unchanged; the schema refuses it.
    """
    if not isinstance(order, list | tuple) or not all(isinstance(name, str) for name in order):
        return order
    missing = [name for name in moving if name not in order]
    if missing and len(moving) > 1:
        raise ValueError(f"{where} {', '.join(moving)}: {key} must list them, outermost first")
    return [*(name for name in sizes if name not in order), *order]


def _end(order: Sequence[str], names: Sequence[str], moving: Sequence[str], least: int) -> list[str]:
    """Return the shortest suffix of an order that determines the whole order."""
    for start in range(len(order) - least, -1, -1):
        end = list(order[start:])
        said = len(moving) < 2 or set(moving) <= set(end)
        if said and [name for name in names if name not in end] == list(order[:start]):
            return end
    return list(order)

"""Scaling of energy and area between technology nodes: Stillmaker and Baas, Integration 58 (2017).

All factors are for 0.8 V.
"""

from __future__ import annotations

VOLTS = 0.8
NODES = (130, 90, 65, 45, 32, 20, 16, 14, 10, 7)
"""Technology nodes in nanometres."""
_ENERGY = (
    (7.171, -6.709, 2.904),
    (4.762, -4.781, 2.092),
    (3.755, -4.398, 1.975),
    (1.103, -0.362, 0.2767),
    (0.9559, -0.7823, 0.471),
    (0.373, -0.1582, 0.04104),
    (0.2958, -0.1241, 0.03024),
    (0.2363, -0.09675, 0.02239),
    (0.2068, -0.09311, 0.02375),
    (0.1776, -0.09097, 0.02447),
)
"""Coefficients of volts squared, of volts, and the constant, by node."""
_AREA_FROM_45 = (6.4, 2.8, 1.5, 1.0, 0.46, 0.21, 0.19, 0.17, 0.1, 0.059)
_AREA_FROM_32 = (14.0, 6.1, 3.3, 2.2, 1.0, 0.46, 0.41, 0.38, 0.22, 0.13)
_PART_OF_45 = (40 - 32) / (45 - 32)
"""Position of 40 nm between 32 and 45 nm, from 0 to 1."""


def in_range(technology_nm: float) -> bool:
    """Return whether the node is within the range of the published factors."""
    return NODES[-1] <= technology_nm <= NODES[0]


def energy_from_40(technology_nm: float) -> float:
    """Return the factor from 40 nm for energy and leakage."""
    levels = tuple(a * VOLTS**2 + b * VOLTS + c for a, b, c in _ENERGY)
    return _between(technology_nm, levels) / _between(40, levels)


def area_from_40(technology_nm: float) -> float:
    """Return the factor from 40 nm for area."""
    old, new = _between(technology_nm, _AREA_FROM_45), _between(technology_nm, _AREA_FROM_32)
    return _PART_OF_45 * old + (1 - _PART_OF_45) * new


def _between(technology_nm: float, levels: tuple[float, ...]) -> float:
    """Return a node's level, interpolated linearly between the published ones."""
    above = min(node for node in NODES if node >= technology_nm)
    below = max(node for node in NODES if node <= technology_nm)
    high, low = levels[NODES.index(above)], levels[NODES.index(below)]
    return high if above == below else low + (high - low) * (technology_nm - below) / (above - below)

"""AccelForge's component classes as estimators' components, with AccelForge's defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.errors import NotEstimatedError
from tilewright.estimation.asking import Answer, Question, current
from tilewright.expressions import ExpressionError
from tilewright.plugin.estimator import Attribute
from tilewright_adapters.accelforge.expressions import Scope
from tilewright_adapters.accelforge.files import ComponentData

_ARRAYS = {"sram": "sram", "smartbuffersram": "smart_buffer"}
_DRAMS = {"lpddr4": ("LPDDR4", 64), "lpddr": ("LPDDR", 64), "ddr3": ("DDR3", 64), "hbm2": ("HBM2", 2048),
          "hbm3": ("HBM3", 2048), "hbm4": ("HBM4", 4096)}  # fmt: skip
"""Class -> kind of DRAM, and default bits of an access."""
_UNITS = {"intmac": ("mac", {"multiplier_width": "multiplier_bits", "adder_width": "adder_bits"}),
          "intmultiplier": ("multiplier", {"width": "width_bits"}), "intadder": ("adder", {"width": "width_bits"})}  # fmt: skip
_OF_ARRAYS = {"width": "width_bits", "n_banks": "banks", "n_rw_ports": "ports"}
CLASSES = (*_ARRAYS, *_DRAMS, *_UNITS)
_CALLS = "sum(a.n_calls for a in actions)"
NODE = "tech_node"
"""Name of the attribute with the technology node in metres."""


@dataclass(frozen=True)
class Component:
    """A component to estimate. `width`: bits of one access; 1 for compute units."""

    name: str
    attributes: Mapping[str, Attribute]
    technology_nm: float
    width: float

    def ask(self, action: str) -> Answer:
        """Query the estimators for one action.

        Raises:
            ExpressionError: no estimator answers; the message lists their reasons.
        """
        try:
            return current().ask(Question(self.name, self.attributes, action, self.technology_nm, {}))
        except NotEstimatedError as error:
            asked = "to query an estimator that is used only if named, write: tilewright --estimator NAME COMMAND ..."
            raise ExpressionError(f"{error.message}; {asked}") from None


@dataclass(frozen=True)
class Action:
    """Energy in pJ of one action, and actions per second; `answer` if it was estimated."""

    energy_pj: float
    rate: float
    answer: Answer | None = None


def plain(name: str | None) -> str:
    """Return a class name in the form used for comparison."""
    return (name or "").lower().replace("_", "")


def calls_per_second(total_latency: object, scope: Scope) -> float | None:
    """Return actions per second, if `total_latency` is their number times seconds; otherwise None.

    Raises:
        ExpressionError: the seconds are not above 0.
    """
    text = re.sub(r"\s*([()])\s*", r"\1", " ".join(str(total_latency).split()))
    if _CALLS not in text:
        return None
    one, two = (scope.number(text.replace(_CALLS, str(calls))) for calls in (1, 2))
    if two != 2 * one:
        return None
    if not one > 0:
        raise ExpressionError(f"total_latency is {one:g} seconds per action; expected more than 0")
    return float(f"{1 / one:.12g}")  # 1 / 1e-9 is not exactly 1e9


def same(text: object, other: str) -> bool:
    """Return whether two expressions are equal except for spaces."""
    return "".join(str(text).split()) == "".join(other.split())


def component_of(data: ComponentData, common: Mapping[str, object], scope: Scope, size_bits: float | None) -> Component:
    """Return the component of a node.

    Args:
        data: the node.
        common: `extra_attributes_for_all_component_models`.
        scope: names in expressions.
        size_bits: size of a memory; None for compute units.

    Raises:
        ExpressionError: the class is unknown, or an attribute is missing or invalid.
    """
    kind = plain(data.component_class)
    if kind not in CLASSES:
        raise ExpressionError(
            f"unknown class {data.component_class}; expected {', '.join(CLASSES)}, or actions with energy"
        )
    given = {
        key: scope.number(value) for key, value in (dict(common) | data.extra_attributes_for_component_model).items()
    }
    node = given.pop(NODE, None)
    if node is None:
        raise ExpressionError(f"its class needs {NODE} (in metres) among the attributes for component models")
    technology = float(f"{1e9 * node:.6g}")
    if kind in _DRAMS:
        name, width = _DRAMS[kind]
        width = int(given.get("width", width))
        return Component("dram", {"kind": name, "width_bits": width}, technology, width)
    if kind in _UNITS:
        name, words = _UNITS[kind]
        return Component(name, _renamed(given, words), technology, 1)
    if size_bits is None or math.isinf(size_bits):
        raise ExpressionError(f"a {data.component_class} needs a size in bits")
    given.setdefault("width", max(16, math.ceil(math.sqrt(size_bits))))
    sizes: dict[str, Attribute] = {"size_bits": size_bits, **_renamed(given, _OF_ARRAYS)}
    return Component(_ARRAYS[kind], sizes, technology, given["width"])


def _renamed(given: Mapping[str, float], words: Mapping[str, str]) -> dict[str, Attribute]:
    """Return the attributes under Tilewright's names.

    Attributes of other classes are ignored, because all nodes may be given them.
    """
    return {ours: given[theirs] for theirs, ours in words.items() if theirs in given}

"""The estimator `hwcomponents`: queries the package of that name."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tilewright.errors import PluginError, Reason
from tilewright.plugin.estimator import Accuracy, Attribute, Estimate
from tilewright_estimators import HWCOMPONENTS
from tilewright_estimators.sizes import Refused, check_asked, checked

NAMES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "sram": ("SRAM", {"size_bits": "size", "width_bits": "width", "banks": "n_banks", "ports": "n_rw_ports"}, {}),
    "smart_buffer": (
        "smartbuffersram", {"size_bits": "size", "width_bits": "width", "banks": "n_banks", "ports": "n_rw_ports"}, {},
    ),
    "mac": ("IntMAC", {"multiplier_bits": "multiplier_width", "adder_bits": "adder_width"}, {}),
    "multiplier": ("IntMultiplier", {"width_bits": "width"}, {"compute": "multiply"}),
    "adder": ("IntAdder", {"width_bits": "width"}, {"compute": "add"}),
    "comparator": ("Comparator", {"width_bits": "width"}, {"compute": "compare"}),
    "counter": ("Counter", {"width_bits": "width"}, {"compute": "count"}),
}  # fmt: skip
"""Component -> class, attributes and (if different) actions in hwcomponents."""


class HwcomponentsEstimator:
    """The estimator; hwcomponents chooses among its own models by their priorities."""

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        try:
            check_asked(component, action, HWCOMPONENTS)
            sizes = checked(component, attributes)
            if not 1 <= technology_nm <= 90:
                raise Refused(
                    "technology",
                    f"{technology_nm:g} nm; expected 1 to 90 nm, because hwcomponents uses arrays of 22 nm above",
                )
            return self._ask(component, sizes, action, technology_nm)
        except Refused as refused:
            return refused.reason

    def _ask(self, component: str, sizes: dict[str, float], action: str, node: float) -> Estimate:
        hwcomponents = loaded()
        name, attributes, actions = NAMES[component]
        given: dict[str, Any] = {attributes[key]: int(value) for key, value in sizes.items() if key in attributes}
        if component in ("sram", "smart_buffer") and given["size"] < given["width"]:
            raise Refused("range", "the array is smaller than one row")
        try:
            model = hwcomponents.get_model(name, given | {"tech_node": node * 1e-9}, required_actions=[])
            cost = getattr(model, actions.get(action, action))()
            energy, area, leakage = (1e12 * cost.energy, 1e12 * model.area, model.leak_power)
        except (AssertionError, ValueError) as error:
            raise Refused("hwcomponents", f"hwcomponents refused: {error}") from None
        except Exception as error:  # its models may call any program
            raise PluginError(f"hwcomponents failed: {type(error).__name__}: {error}") from None
        bits = sizes.get("width_bits", sizes.get("multiplier_bits", 1))
        about = Accuracy(
            source=f"hwcomponents: {type(model).__name__}", error="not stated", valid="as hwcomponents checks"
        )
        return Estimate(energy_pj=energy, bits=int(bits), area_um2=area, leakage_w=leakage, accuracy=about)


def loaded() -> ModuleType:
    """Import the package and restore the root logger, which it reconfigures on import."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    import hwcomponents

    root.handlers[:] = handlers
    root.setLevel(level)
    package: ModuleType = hwcomponents
    return package

"""Estimates of memory arrays, plain or as smart buffers, for any source of array costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.plugin.estimator import Accuracy, Attribute, Estimate
from tilewright_estimators.arithmetic import CircuitCost, address_generator, aladdin, check_node
from tilewright_estimators.grid import Figures
from tilewright_estimators.sizes import checked


def estimate(
    component: str,
    attributes: Mapping[str, Attribute],
    action: str,
    node: float,
    figures: Callable[[dict[str, float]], Figures],
    accuracy: Callable[[dict[str, float]], Accuracy],
) -> Estimate:
    """Return the estimate of one full-width access of an `sram` or a `smart_buffer`.

    Args:
        component: `sram` or `smart_buffer`.
        attributes: sizes to check.
        action: `read` or `write`.
        node: technology node in nanometres.
        figures: function from checked sizes to the costs of the array.
        accuracy: function from checked sizes to the accuracy of these costs.

    Raises:
        Refused: a size is invalid or out of range.
    """
    sizes = checked(component, attributes)
    array = figures(sizes)
    cost = CircuitCost(array.read_pj if action == "read" else array.write_pj, array.area_um2, array.leak_mw * 1e-3)
    if component == "smart_buffer":
        check_node(node)
        cost += aladdin(node, address_generator(sizes["size_bits"] / sizes["width_bits"]))
    return Estimate(
        energy_pj=cost.energy_pj,
        bits=int(sizes["width_bits"]),
        area_um2=cost.area_um2,
        leakage_w=cost.leakage_w,
        accuracy=accuracy(sizes),
    )

"""Memory arrays, plain or as smart buffers, from whoever gives the figures of an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.plugin.estimator import Accuracy, Attribute, Estimate
from tilewright_estimators.arithmetic import Cost, address_generator, aladdin, check_node
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
    """One access of the whole width of an `sram` or a `smart_buffer`.

    Args:
        figures: checked sizes -> what the array takes.
        accuracy: checked sizes -> what that is worth.

    Raises:
        Refused: a size is wrong or beyond what is known.
    """
    sizes = checked(component, attributes)
    found = figures(sizes)
    cost = Cost(found.read_pj if action == "read" else found.write_pj, found.area_um2, found.leak_mw * 1e-3)
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

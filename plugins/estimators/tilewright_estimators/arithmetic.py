"""Costs of compute units, registers, wires and DRAM, scaled to other technology nodes.

Sources: Aladdin's library and published interface energies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log2

from tilewright.plugin.estimator import Accuracy, Attribute, Estimate
from tilewright_estimators.nodes import NODES, area_from_40, energy_from_40, in_range
from tilewright_estimators.sizes import Refused, checked


@dataclass(frozen=True)
class CircuitCost:
    """Energy in pJ per action, area in square micrometres, leakage in W; costs can be added."""

    energy_pj: float = 0.0
    area_um2: float = 0.0
    leakage_w: float = 0.0

    def __add__(self, other: CircuitCost) -> CircuitCost:
        return CircuitCost(
            self.energy_pj + other.energy_pj, self.area_um2 + other.area_um2, self.leakage_w + other.leakage_w
        )

    def times(self, energy: float, area: float | None = None) -> CircuitCost:
        """Return the cost times `energy`, its area times `area` if given.

        Leakage is scaled by `energy`, as between technology nodes.
        """
        return CircuitCost(
            self.energy_pj * energy, self.area_um2 * (energy if area is None else area), self.leakage_w * energy
        )


ADDER = CircuitCost(0.21, 278.0, 2.4e-6)
MULTIPLIER = CircuitCost(12.68, 6350.0, 80e-6)
COMPARATOR = CircuitCost(0.02947, 71.0, 0.0251e-6)
COUNTER = CircuitCost(0.25074, 495.5, 0.321e-6)
"""Costs for 32 bits at 40 nm and a clock period of 1 ns."""
REGISTER = CircuitCost(0.009, 5.98, 0.0)
"""Cost of one bit."""
FLOATS = {32: CircuitCost(7.93 + 24.4, 2060.0 + 2060.0), 64: CircuitCost(23.3 + 92.9, 5120.0 + 4910.0)}
"""Bits -> floating-point adder plus multiplier, at 40 to 45 nm and a clock period of 5 ns."""
WIRE_PJ = 0.098
"""Energy per bit and mm, at any node: 0.2 fF per micrometre at 0.7 V."""
DRAM_PJ = {
    "LPDDR4": 8.0, "LPDDR": 40.0, "DDR3": 70.0, "GDDR5": 14.0, "HMC": 4.2, "HBM2": 3.9, "HBM3": 4.05, "HBM4": 3.2,
}  # fmt: skip
"""Energy per bit, interface included."""
MAX_ROWS = 64
"""Maximum rows of registers; more would need a decoder, whose cost is not modelled."""

UNMEASURED = "not measured against a chip"
ALADDIN = "Aladdin's library (Shao et al., ISCA 2014), 40 nm, 1 ns; nodes by Stillmaker and Baas 2017, 0.8 V"


def aladdin(node: float, cost: CircuitCost) -> CircuitCost:
    """Return a cost at another node, given that at 40 nm."""
    return cost.times(energy_from_40(node), area_from_40(node))


def adder(bits: float) -> CircuitCost:
    """Return the cost of an adder at 40 nm."""
    return ADDER.times(bits / 32)


def multiplier(bits: float) -> CircuitCost:
    return MULTIPLIER.times((bits / 32) ** 2)


def mac(multiplier_bits: float, adder_bits: float) -> CircuitCost:
    return multiplier(multiplier_bits) + adder(adder_bits)


def address_generator(rows: float) -> CircuitCost:
    """Return the cost of an address generator at 40 nm, which turns an array into a smart buffer.

    It consists of two registers and an adder, all of the width of an address.
    """
    bits = max(1, ceil(log2(rows)))
    return REGISTER.times(2 * bits) + adder(bits)


def estimate(component: str, attributes: Mapping[str, Attribute], node: float) -> Estimate:
    """Return the estimate of one action. Raises Refused."""
    sizes = checked(component, attributes)
    if component == "dummy":
        free = Accuracy(source="by definition", error="none", valid="everywhere")
        return Estimate(energy_pj=0.0, bits=1, area_um2=0.0, leakage_w=0.0, accuracy=free)
    if component == "dram":
        return _dram(attributes.get("kind"), sizes["width_bits"])
    if component == "wire":
        about = Accuracy(source="0.2 fF per micrometre at 0.7 V", error=UNMEASURED, valid="any length")
        return Estimate(
            energy_pj=WIRE_PJ * sizes["width_bits"] * sizes["length_mm"], bits=int(sizes["width_bits"]), accuracy=about
        )
    if component == "float_mac":
        return _float_mac(sizes["width_bits"], node)
    check_node(node)
    limits = f"{NODES[-1]} to {NODES[0]} nm"
    if component == "register":
        bits = int(sizes["width_bits"])
        rows = sizes["size_bits"] / bits
        if not 1 <= rows <= MAX_ROWS:
            raise Refused("range", f"{rows:g} rows of registers; expected 1 to {MAX_ROWS}, which need no decoder")
        cost = REGISTER.times(bits, sizes["size_bits"])
        limits += f", up to {MAX_ROWS} rows, no decoder"
    elif component == "mac":
        bits = int(sizes["multiplier_bits"])
        cost = mac(sizes["multiplier_bits"], sizes["adder_bits"])
    else:
        bits = int(sizes["width_bits"])
        cost = {
            "adder": ADDER.times(bits / 32),
            "multiplier": MULTIPLIER.times((bits / 32) ** 2),
            "comparator": COMPARATOR.times(bits / 32),
            "counter": COUNTER.times(bits / 32),
        }[component]
    cost = aladdin(node, cost)
    about = Accuracy(source=ALADDIN, error=UNMEASURED, valid=limits)
    return Estimate(
        energy_pj=cost.energy_pj, bits=bits, area_um2=cost.area_um2, leakage_w=cost.leakage_w, accuracy=about
    )


def check_node(node: float) -> None:
    """Check that scaling factors are published for the node. Raises Refused."""
    if not in_range(node):
        raise Refused(
            "technology", f"{node:g} nm; expected {NODES[-1]} to {NODES[0]} nm, the range of published factors"
        )


def _dram(kind: object, width_bits: float) -> Estimate:
    if not isinstance(kind, str) or kind not in DRAM_PJ:
        raise Refused("attribute", f"kind is {kind!r}; known: {', '.join(DRAM_PJ)}")
    about = Accuracy(
        source=f"published energy per bit of {kind}, interface included",
        error="of the kind of DRAM, not of a device",
        valid=kind,
    )
    return Estimate(
        energy_pj=DRAM_PJ[kind] * width_bits, bits=int(width_bits), area_um2=0.0, leakage_w=0.0, accuracy=about
    )


def _float_mac(width_bits: float, node: float) -> Estimate:
    if width_bits not in FLOATS:
        raise Refused("range", f"floating-point numbers of {width_bits:g} bits; expected 32 or 64")
    if not 40 <= node <= 45:
        raise Refused("technology", f"{node:g} nm; expected 40 to 45 nm for floating-point units")
    cost = FLOATS[int(width_bits)]
    about = Accuracy(
        source="Aladdin's library (Shao et al., ISCA 2014), 40 nm, 5 ns", error=UNMEASURED, valid="40 to 45 nm"
    )
    return Estimate(energy_pj=cost.energy_pj, bits=int(width_bits), area_um2=cost.area_um2, accuracy=about)

"""Interface of estimators: energy and area of components by size.

All estimators share the names of components and attributes (`COMPONENTS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Protocol, runtime_checkable

from pydantic import Field

from tilewright.errors import Reason
from tilewright.values import Model

Attribute = float | str
"""Value of a component's attribute, such as a width in bits or a technology."""
Figure = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
Said = Annotated[str, Field(min_length=1, max_length=500)]

COMPONENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sram": (("read", "write"), ("size_bits", "width_bits", "banks", "ports")),
    "smart_buffer": (("read", "write"), ("size_bits", "width_bits", "banks", "ports")),
    "register": (("read", "write"), ("size_bits", "width_bits")),
    "dram": (("read", "write"), ("kind", "width_bits")),
    "mac": (("compute",), ("multiplier_bits", "adder_bits")),
    "multiplier": (("compute",), ("width_bits",)),
    "adder": (("compute",), ("width_bits",)),
    "comparator": (("compute",), ("width_bits",)),
    "counter": (("compute",), ("width_bits",)),
    "float_mac": (("compute",), ("width_bits",)),
    "wire": (("transfer",), ("width_bits", "length_mm")),
    "dummy": (("read", "write", "compute"), ()),
}
"""Component -> its actions and its attributes; estimators may define further ones.

`sram` is a memory array. `smart_buffer` is an array with two address registers and an adder, which
generates its own addresses. `register` is a set of flip-flops without a decoder. `dram` is external
memory with its interface; its `kind` is a word such as LPDDR4. `dummy` costs nothing. Sizes are in
bits. One action moves `width_bits`. `banks` and `ports` default to 1.
"""


class Accuracy(Model):
    """Quality of an estimate.

    Attributes:
        source: Origin of the figures.
        error: Measured error, or that none was measured.
        valid: Range of sizes to which the error applies.
        cell: Cell type of a memory.

    Example:
        >>> from tilewright.plugin import Accuracy
        >>> Accuracy(source="a table", error="10 %", valid="45 nm").error
        '10 %'
    """

    source: Said
    error: Said
    valid: Said
    cell: Said | None = None


class Estimate(Model):
    """Energy, area and leakage of a component.

    Attributes:
        energy_pj: pJ of one action of one instance.
        bits: Bits that the action moves or computes.
        area_um2: Area of one instance in square micrometres, the same for every action; None: unknown.
        leakage_w: Leakage of one instance in W, the same for every action; None: unknown.

    Example:
        >>> from tilewright.plugin import Accuracy, Estimate
        >>> Estimate(energy_pj=2.0, bits=16, accuracy=Accuracy(source="a table", error="10 %", valid="45 nm")).bits
        16
    """

    energy_pj: Figure
    bits: Annotated[int, Field(ge=1, le=2**53, strict=True)]
    area_um2: Figure | None = None
    leakage_w: Figure | None = None
    accuracy: Accuracy


@runtime_checkable
class Estimator(Protocol):
    """Product of an estimator's factory.

    Example:
        >>> from tilewright.plugin import Estimator, EstimatorSpec, installed
        >>> isinstance(installed().make(EstimatorSpec, "tables"), Estimator)
        True
    """

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        """Return the energy of an action, or the reason why this estimator has none.

        A reason is, for example, an unknown component, a missing attribute, or a size out of range.
        It never raises for these.

        Args:
            component: Name of the component, such as `sram`.
            attributes: Its sizes, such as `size_bits`.
            action: `read`, `write`, `compute`, `transfer` or one of the estimator's own.
            technology_nm: Technology node in nanometres.
        """
        ...

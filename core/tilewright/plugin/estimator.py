"""Estimator: what a component of a given size takes for an action, and the area that it covers; or why that is not known.

A component has a name and sizes that all estimators share, whatever the tools behind them call them (`COMPONENTS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Protocol, runtime_checkable

from pydantic import Field

from tilewright.errors import Reason
from tilewright.values import Model

Attribute = float | str
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
"""Component -> its actions and its attributes; estimators may know others.

`sram` is a memory array, `smart_buffer` one that steps through its addresses by itself (two address registers and an adder),
`register` flip-flops without a decoder, `dram` the memory outside with its interface, `dummy` what costs nothing. Sizes are
in bits; `width_bits` are moved by one action; `banks` and `ports` are 1 unless given; a `dram`'s `kind` is a word such as
LPDDR4.
"""


class Accuracy(Model):
    """What an estimate is worth. `source`: whose figures; `error`: how far off they are, where that was measured; `valid`: the
    range in which that holds; `cell`: what cells a memory is built of."""

    source: Said
    error: Said
    valid: Said
    cell: Said | None = None


class Estimate(Model):
    """What one action takes.

    Attributes:
        energy_pj: of one action of one instance, pJ.
        bits: that the action moves, or works on.
        area_um2: of one instance, square micrometres; None: not known. The same for every action.
        leakage_w: that one instance takes all the time, W; None: not known. The same for every action.
    """

    energy_pj: Figure
    bits: Annotated[int, Field(ge=1, le=2**53, strict=True)]
    area_um2: Figure | None = None
    leakage_w: Figure | None = None
    accuracy: Accuracy


@runtime_checkable
class Estimator(Protocol):
    """What a plugin's factory returns."""

    def estimate(
        self, component: str, attributes: Mapping[str, Attribute], action: str, technology_nm: float
    ) -> Estimate | Reason:
        """What an action takes, or the reason why this estimator does not say: it knows no such component, action or
        attribute, one is missing, or it is outside of what its figures hold for. Never raises for that.

        Args:
            component: such as `sram`.
            attributes: its sizes, such as `size_bits`.
            action: `read`, `write`, `compute`, `transfer` or one of the estimator's own.
            technology_nm: technology node in nanometres.
        """
        ...

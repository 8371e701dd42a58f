"""Attributes of hardware beyond size, energies and contents. The schema declares each of them once, at its field.

The field's default is neutral: a part with it states nothing, so notations do not write it, and every cost model takes it.
From the declarations follow what cost models and notations refuse, and what a lossy conversion drops.

    leakage_pj_per_cycle: Annotated[Energy, Attribute("leakage", "it leaks")] = 0.0
    zigzag, whose table has no leakage_pj_per_cycle  ->  [leakage] Buffer: it leaks; ZigZag has no leakage
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from tilewright.errors import Reason

if TYPE_CHECKING:
    from tilewright.schema.problem import Problem


@dataclass(frozen=True)
class Attribute:
    """Declaration of an attribute, among the annotations of its field.

    Attributes:
        code: Code of the reasons against it.
        states: Statement of a part whose value is not neutral, such as "it leaks". `{value}` is the value, `{field}` the field.
        unit: Unit of its values; those in words are multiples of a memory's word.
        loss: Lossy conversions drop attributes with the smallest loss first; None: they never drop it.
        capability: Field of `Capabilities` that a cost model needs to count it; None: all take it.
        warning: What a cost model without the capability counts instead, with this warning; None: it refuses the part.
        concerns: (part, problem or None) -> whether a value other than the neutral one can have an effect.
    """

    code: str
    states: str
    unit: str = ""
    loss: int | None = 2
    capability: str | None = None
    warning: str | None = None
    concerns: Callable[[Any, Problem | None], bool] = lambda part, problem: True


def _has_odd_widths(memory: Any, problem: Problem | None) -> bool:
    """Return whether the memory may hold a value that is not one word wide."""
    return problem is None or any(
        memory.may_hold(tensor) and memory.words_of(tensor) != 1 for tensor in problem.tensors
    )


WIDTHS = Attribute(
    "widths", "values have several widths", "bits", loss=3, capability="value_widths", concerns=_has_odd_widths
)
UPDATES = Attribute(
    "update_energy",
    "updates cost {value:g} pJ",
    "pJ",
    concerns=lambda memory, _: memory.accumulation_energy_pj != memory.write_energy_pj,
)
BANDWIDTH = Attribute("bandwidth", "it has a bandwidth", "words/cycle", loss=4)
SHARED_BANDWIDTH = Attribute(
    "shared_bandwidth", "reads and writes share its bandwidth", "words/cycle", loss=4, capability="shared_bandwidth"
)
PORTS = Attribute(
    "ports",
    "it defines ports",
    loss=3,
    capability="memory_ports",
    warning="reads have one bandwidth and energy, writes another",
)
FOOTPRINT = Attribute(
    "footprint",
    "it stores distinct words only",
    loss=3,
    capability="distinct_footprints",
    concerns=lambda _, problem: problem is None or problem.is_strided,
)
NETWORK = Attribute("network", "its network has {field}: {value}")
MESHES = Attribute("mesh", "its network has meshes", capability="meshes")
TIMING = Attribute("timing", "it states a timing", loss=3, capability="timing")
UNITS = Attribute("units", "it has vector units")
INSTRUCTIONS = replace(
    TIMING,
    concerns=lambda unit, _: (
        unit.instruction.cycles > unit.cycles_per_operation
        or unit.instruction.load_cycles + unit.instruction.issue_cycles > 0
    ),
)
SPARSE = Attribute("sparse", "it has formats or savings for sparse tensors", loss=3)
"""Cost models without the capability refuse sparse hardware as a whole (`Capabilities.judge_hardware`)."""


class Stated(NamedTuple):
    """An attribute that a part states: its value is not neutral, and can have an effect."""

    part: str
    field: str
    value: object
    attribute: Attribute

    def against(self, instead: str) -> Reason:
        """Return a reason against the attribute. `instead`: what the tool or the cost model has instead."""
        said = self.attribute.states.format(value=self.value, field=self.field)
        return Reason(code=self.attribute.code, where=self.part, message=f"{said}; {instead}")


@cache
def attributes_of(kind: type[BaseModel]) -> Mapping[str, Attribute]:
    """Return the attributes that a class of parts declares, by field, in the order of the schema."""
    return {
        name: item
        for name, field in kind.model_fields.items()
        for item in field.metadata
        if isinstance(item, Attribute)
    }


@cache
def _defaults(kind: type[BaseModel]) -> Mapping[str, object]:
    """Return the neutral values of these attributes."""
    return {name: kind.model_fields[name].default for name in attributes_of(kind)}


def droppable(kind: type[BaseModel]) -> list[str]:
    """Return the fields of the attributes that a lossy conversion may drop, those with the smallest loss first."""
    losses = {name: item.loss for name, item in attributes_of(kind).items() if item.loss is not None}
    return sorted(losses, key=losses.__getitem__)


def stated(name: str, part: BaseModel, problem: Problem | None) -> Iterator[Stated]:
    """Yield the attributes that a part states, in the order of the schema.

    Args:
        name: name of the part.
        problem: the problem; None: any.
    """
    neutral = _defaults(type(part))
    for field, item in attributes_of(type(part)).items():
        value = getattr(part, field)
        if value != neutral[field] and item.concerns(part, problem):
            yield Stated(name, field, value, item)

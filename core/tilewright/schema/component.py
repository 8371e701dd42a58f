"""Components, which describe parts by sizes instead of energies, and records of their estimates."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from tilewright.schema.frozen import FrozenDict
from tilewright.values import Model

Word = Annotated[str, Field(min_length=1, max_length=200)]
Size = Annotated[float, Field(allow_inf_nan=False)] | Word


class Component(Model):
    """Description of a part for estimators. A file may give the name alone: `component: sram`."""

    _short_form: ClassVar = "name"
    name: Word
    """Name of the part, such as `sram`, `smart_buffer`, `register`, `dram` or `mac`."""
    attributes: FrozenDict[Word, Size] = FrozenDict()
    """Sizes that do not follow from the architecture, such as `banks`."""
    technology_nm: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """Technology node in nanometres; None: the architecture's."""
    estimator: Word | None = None
    """The only estimator to query; None: all, in their order."""

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


def required_without(schema: dict[str, Any], energies: tuple[str, ...]) -> None:
    """Let the JSON schema of a part require energies only if it names no component, which they are estimated from."""
    schema["required"] = [name for name in schema["required"] if name not in energies]
    schema |= {"if": {"required": ["component"]}, "else": {"required": list(energies)}}


SIZES = ("capacity_words", "word_bits", "block_words", "instances_per_macro", "component")
"""Fields of a part that its estimates depend on."""


class Estimated(Model):
    """Record of estimated values."""

    figures: tuple[Word, ...]
    """Names of the fields that are estimated."""
    estimator: Word
    """Name of the estimator."""
    version: str | None = None
    """Version of the estimator's distribution."""
    source: str
    """Where the estimator has its numbers from."""
    error: str
    """Its statement on accuracy."""
    valid: str
    """Its statement on the range of validity."""
    cell: str | None = None
    """Kind of memory cell, if it states one."""
    leakage_w: float | None = None
    """Leakage of one instance in W.

    `leakage_pj_per_cycle` includes it if the architecture has a clock and the part is a memory.
    """


def outdated(old: Any, new: Any, elsewhere: bool) -> list[str]:
    """Return estimated fields that did not change although their inputs did.

    Args:
        old: the memory or compute unit before.
        new: the memory or compute unit after.
        elsewhere: whether an input common to all parts changed, such as the technology node.
    """
    estimated = [figure for estimate in old.estimates for figure in estimate.figures]
    changed = elsewhere or any(getattr(old, name, None) != getattr(new, name, None) for name in SIZES)
    return [figure for figure in estimated if changed and getattr(old, figure) == getattr(new, figure)]

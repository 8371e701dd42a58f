"""Component: what a memory or a compute unit is built of, where a file gives sizes instead of energies; and who said what."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from tilewright.schema.frozen import FrozenDict
from tilewright.values import Model

Word = Annotated[str, Field(min_length=1, max_length=200)]
Size = Annotated[float, Field(allow_inf_nan=False)] | Word


class Component(Model):
    """What estimators are asked about. In a file its name alone will do: `component: sram`.

    Attributes:
        name: such as `sram`, `smart_buffer`, `register`, `dram` or `mac`.
        attributes: sizes beyond those that follow from where it stands, such as `banks`.
        technology_nm: nanometres; None: the architecture's.
        estimator: the only one to ask; None: all, in their order.
    """

    name: Word
    attributes: FrozenDict[Word, Size] = FrozenDict()
    technology_nm: Annotated[float, Field(gt=0, le=1e6)] | None = None
    estimator: Word | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


SIZES = ("capacity_words", "word_bits", "block_words", "instances_per_macro", "component")
"""Fields of a part that its estimates follow from."""


class Estimated(Model):
    """What of a part was estimated, and by whom; `figures` names the fields that hold it.

    `source`, `error`, `valid` and `cell` are the estimator's words on what that is worth.
    """

    figures: tuple[Word, ...]
    estimator: Word
    version: str | None = None
    source: str
    error: str
    valid: str
    cell: str | None = None
    leakage_w: float | None = None
    """Of one instance; in `leakage_pj_per_cycle` where the architecture has a clock and the part can leak."""


def outdated(old: Any, new: Any, elsewhere: bool) -> list[str]:
    """Figures of a memory or compute that were estimated and are as they were, though what they follow from is not.

    Args:
        elsewhere: what the architecture says of all parts has changed.
    """
    estimated = [figure for each in old.estimates for figure in each.figures]
    changed = elsewhere or any(getattr(old, name, None) != getattr(new, name, None) for name in SIZES)
    return [figure for figure in estimated if changed and getattr(old, figure) == getattr(new, figure)]

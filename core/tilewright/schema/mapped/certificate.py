"""Certificates: a lower bound on the cost of all mappings of a space, with the data to check it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tilewright.digests import of_data
from tilewright.schema.constraints import Cutting, Variant
from tilewright.schema.document import FileModel, commented
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapped import MappedProblem
from tilewright.schema.objective import Objective
from tilewright.schema.unsearched import JudgedRule, judged, statement
from tilewright.tables import Printed
from tilewright.values import Model

SPACE = "with spatial order as the problem lists its dimensions"
"""Part of a statement about a map space: the placement of unrolled dimensions is not searched."""


def told_space(factors: Cutting) -> str:
    """Return the part of a statement that tells which mappings a map space has."""
    return SPACE if factors == "perfect" else f"with ragged tiles, and {SPACE}"


Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def digest_of(part: FileModel | Variant) -> str:
    """Return the SHA-256 of a part's content, which is the same for equal parts."""
    data = part.to_data() if isinstance(part, FileModel) else part.model_dump(mode="json")
    return of_data(data)


class CoveredSpace(Model):
    """The map space that a proof covers: the incumbent's problem and architecture under `rules`.

    `rules` combine those of constraints, mapper and cost model, on the problem's dimensions. `mappings` is the exact
    size of the space. With `most_cycles`, the proof covers mappings with at most that many cycles; None: all.
    """

    factors: Cutting
    rules: Variant
    mappings: int = Field(ge=1)
    most_cycles: int | None = Field(default=None, ge=0)


class SearchLimits(Model):
    """Conditions at which the search had to stop; None: no such condition."""

    evaluations: int | None = None
    seconds: float | None = None
    patience: int | None = None


class Digests(Model):
    """SHA-256 of the parts, by `digest_of`."""

    problem: str
    architecture: str
    rules: str
    mapping: str


class Certificate(Printed, FileModel):
    """A statement that no mapping of `space` costs less than `bound`.

    The incumbent costs `value`. Both are in `objective`, by the cost model in the incumbent's
    provenance. `gap` is (value - bound) / value. `counts` are statistics of the mapper, such as the
    mappings that each rule pruned. `proof_version` is the version of the mapper's proof rules; None:
    its specification has none, or the certificate is older. `versions` are those of Tilewright, of
    the plugins' distributions, and of Python. `incumbent` is the content of the mapping file.
    """

    schema_version: Literal[1] = 1
    kind: Literal["certificate"] = "certificate"
    objective: Objective
    value: Finite
    bound: Finite
    gap: float = Field(allow_inf_nan=False)
    space: CoveredSpace
    counts: FrozenDict[str, float] = FrozenDict()
    limits: SearchLimits = SearchLimits()
    proof_version: int | None = None
    versions: FrozenDict[str, str] = FrozenDict()
    digests: Digests
    incumbent: MappedProblem

    @model_validator(mode="after")
    def _says_where_it_comes_from(self) -> Self:
        if self.incumbent.provenance is None or self.incumbent.figures is None:
            raise ValueError("a certificate's incumbent must have figures and provenance")
        return self

    @property
    def subject(self) -> str:
        """Name of the problem."""
        return self.incumbent.problem.name

    @property
    def arch(self) -> str:
        """Name of the architecture."""
        return self.incumbent.architecture.name

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back to an equal object."""
        return super().to_data() | {"incumbent": self.incumbent.to_data()}

    def to_yaml(self) -> str:
        """Return the YAML form, with the statement as a comment; `from_yaml` restores it."""
        return commented(str(self)) + super().to_yaml()

    def __str__(self) -> str:
        sure = (
            "is the minimum" if self.gap < 1e-8 else f"exceeds the minimum by at most {100 * self.gap:.2g} % of itself"
        )
        what, unit = self.objective.title, self.objective.unit
        most = self.space.most_cycles
        none = "none" if most is None else f"none of at most {most:,} cycles"
        return (
            f"{self.subject} on {self.arch}: of {self.space.mappings:,} mappings, {told_space(self.space.factors)}, {none} has less {what} "
            f"than {self.bound:.10g} {unit}\nthe incumbent's, {self.value:.10g}, {sure}"
        ) + "".join(f"\n{line}" for line in statement(self.unsearched, self.gap < 1e-8))

    @property
    def unsearched(self) -> tuple[JudgedRule, ...]:
        """Rules of other tools' files that the space does not have, each compared with the incumbent."""
        return judged(self.space.rules, self.incumbent.mapping, self.incumbent.architecture)

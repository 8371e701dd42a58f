"""Certificate: that no mapping of a map space costs less than a bound, with all that it takes to check that."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tilewright.digests import of_data
from tilewright.schema.constraints import Cutting, Variant
from tilewright.schema.document import FileModel, commented
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapped import MappedProblem
from tilewright.schema.report import UNITS, Objective
from tilewright.tables import Printed
from tilewright.values import Model

Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def digest_of(part: FileModel | Variant) -> str:
    """SHA-256 of what a part says, the same for equal parts."""
    data = part.to_data() if isinstance(part, FileModel) else part.model_dump(mode="json")
    return of_data(data)


class CoveredSpace(Model):
    """The map space that a proof speaks of: that of the incumbent's problem and architecture under `rules`, which are those of the
    constraints and of what mapper and cost model declare, on the problem's dimensions. `mappings`: exactly how many it has.
    `most_cycles`: the proof speaks of those that take no more; None: of all."""

    factors: Cutting
    rules: Variant
    mappings: int = Field(ge=1)
    most_cycles: int | None = Field(default=None, ge=0)


class SearchLimits(Model):
    """When the search had to stop; None: never for that reason."""

    evaluations: int | None = None
    seconds: float | None = None
    patience: int | None = None


class Digests(Model):
    """SHA-256 of what the parts say (`digest_of`)."""

    problem: str
    architecture: str
    rules: str
    mapping: str


class Certificate(Printed, FileModel):
    """No mapping of `space` costs less than `bound`, and the incumbent costs `value`, both in `objective` by the cost model that the
    incumbent's provenance names.

    `gap` is (value - bound) / value. `counts` are the mapper's own, such as what each of its rules pruned. `proof_version` is the version of
    the rules by which the mapper proves; None: its specification has none, or the certificate is older than such versions. `versions`: of
    Tilewright, of the distributions of the plugins, and of Python. `incumbent` is what the mapping file says.
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
            raise ValueError("the incumbent of a certificate has figures and provenance")
        return self

    def to_data(self) -> dict[str, Any]:
        """Plain data that `model_validate` reads back to an equal object."""
        return super().to_data() | {"incumbent": self.incumbent.to_data()}

    def to_yaml(self) -> str:
        """The YAML form, with what it says as a comment; `from_yaml` reads it back to an equal object."""
        return commented(str(self)) + super().to_yaml()

    def __str__(self) -> str:
        sure = (
            "is the least there is"
            if self.gap < 1e-8
            else f"is at most {100 * self.gap:.2g} % above the least there is"
        )
        what, unit = "EDP" if self.objective == "edp" else self.objective, UNITS[self.objective]
        most = self.space.most_cycles
        none = "none" if most is None else f"none of at most {most:,} cycles"
        return (
            f"{self.incumbent.problem.name} on {self.incumbent.architecture.name}: of {self.space.mappings:,} mappings {none} has less {what} "
            f"than {self.bound:.10g} {unit}\nthe incumbent's, {self.value:.10g}, {sure}"
        )

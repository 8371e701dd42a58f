"""Certificates: a lower bound on the cost of all mappings of a space, with the data to check it.

One envelope holds one of three claims: on a layer, on a fused group of layers, or on a fused network.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import Field, model_validator

from tilewright.digests import of_data
from tilewright.markup import Printed
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Cutting, Variant
from tilewright.schema.document import FileModel, commented
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import MappedProblem, PluginRecord
from tilewright.schema.mapped.claimants import claimant
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import Objective
from tilewright.schema.unsearched import JudgedRule, judged, statement
from tilewright.schema.workload import Workload
from tilewright.values import Model

SPACE = "with spatial order as the problem lists its dimensions"
"""Part of a statement about a map space: the placement of unrolled dimensions is not searched."""
FUSION_PROOFS = 4
"""Version of the proof rules of fused networks; 1 excluded results that fill their home.

2 excluded tensors that bypass a home with room for them, and 3 concatenated results. 3 took results of other words for a sum.
"""
FORMER_KINDS = {"certificate": "layer", "group_certificate": "fused_group", "network_certificate": "fused_network"}
"""Kinds of certificates of version 1, and their claims."""
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def told_space(factors: Cutting) -> str:
    """Return the part of a statement that tells which mappings a map space has."""
    return SPACE if factors == "perfect" else f"with ragged tiles, and {SPACE}"


class CoveredSpace(Model):
    """The map space that a proof covers: the incumbent's problem and architecture under `rules`."""

    factors: Cutting
    """Whether every tile divides."""
    rules: Variant
    """Rules of constraints, mapper and cost model together, on the problem's dimensions."""
    mappings: int = Field(ge=1)
    """Exact number of mappings."""
    most_cycles: int | None = Field(default=None, ge=0)
    """Largest number of cycles of the mappings that the proof covers; None: any."""


class SearchLimits(Model):
    """Conditions at which the search had to stop; None: no such condition."""

    evaluations: int | None = None
    """Most mappings evaluated."""
    seconds: float | None = None
    """Most seconds."""
    patience: int | None = None
    """Most evaluations without an improvement."""


class _Claim(Model):
    """Common part of claims: plain data, whose parts have digests in the certificate."""

    of: str

    @property
    def plugins(self) -> tuple[PluginRecord, ...]:
        """The plugins whose versions the claim has."""
        return ()

    @property
    def claimed_by(self) -> str | None:
        """Name of the mapper whose claim it is, if it is known from its record; see `claimant`."""
        return None

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back to an equal object."""
        data = {"of": self.of} | self.model_dump(mode="json", exclude_defaults=True)
        parts = {name: getattr(self, name) for name in data}
        return data | {name: part.to_data() for name, part in parts.items() if isinstance(part, FileModel)}

    def parts(self) -> dict[str, Any]:
        """Return the parts by their names, as plain data."""
        return {name: part for name, part in self.to_data().items() if name != "of"}


class LayerClaim(_Claim):
    """No mapping of `space` costs less than the bound.

    Example:
        >>> import tilewright as tw
        >>> report = tw.map("nk,km->nm; n=2 k=2 m=2", "eyeriss", cache=False)
        >>> report.certificate("einsum").claim.of
        'layer'
    """

    of: Literal["layer"] = "layer"
    """Kind of claim."""
    space: CoveredSpace
    """Map space that the proof covers."""
    counts: FrozenDict[str, float] = FrozenDict()
    """Statistics of the mapper, such as the mappings that each rule pruned."""
    limits: SearchLimits = SearchLimits()
    """Conditions at which the search had to stop."""
    incumbent: MappedProblem
    """Content of the mapping file."""

    @model_validator(mode="after")
    def _says_where_it_comes_from(self) -> Self:
        if self.incumbent.provenance is None or self.incumbent.figures is None:
            raise ValueError("a certificate's incumbent must have figures and provenance")
        return self

    @property
    def names(self) -> tuple[str, str]:
        """Name of what is mapped, and of the architecture."""
        return self.incumbent.problem.name, self.incumbent.architecture.name

    @property
    def plugins(self) -> tuple[PluginRecord, ...]:
        """The plugins whose versions the claim has."""
        origin = self.incumbent.provenance
        return () if origin is None else (origin.mapper, origin.model)

    @property
    def claimed_by(self) -> str | None:
        """Name of the mapper, if it is an installed one that is not built in."""
        origin = self.incumbent.provenance
        return None if origin is None or origin.mapper.distribution is None else claimant(origin.mapper)

    @property
    def unsearched(self) -> tuple[JudgedRule, ...]:
        """Rules of other tools' files that the space does not have, each compared with the incumbent."""
        return judged(self.space.rules, self.incumbent.mapping, self.incumbent.architecture)

    def parts(self) -> dict[str, Any]:
        """Return the inputs and the mapping; the figures are computed again."""
        incumbent = self.incumbent
        files = {"problem": incumbent.problem, "architecture": incumbent.architecture, "mapping": incumbent.mapping}
        rules = {"rules": self.space.rules.model_dump(mode="json")}
        return {name: part.to_data() for name, part in files.items()} | rules

    def words(self, proved: bool) -> tuple[str, str, str]:
        """Return what has no lower cost, whose value it is, and what follows in the statement."""
        most = self.space.most_cycles
        none = "none" if most is None else f"none of at most {most:,} cycles"
        which = f"of {self.space.mappings:,} mappings, {told_space(self.space.factors)}, {none}"
        return which, "the incumbent's", "".join(f"\n{line}" for line in statement(self.unsearched, proved))


class GroupClaim(_Claim):
    """No group mapping that a group mapper searches costs less than the bound, by a cost model."""

    of: Literal["fused_group"] = "fused_group"
    """Kind of claim."""
    unfused: Finite
    """Least cost without fusion."""
    mapper: PluginRecord | None = None
    """The group mapper; None: the certificate is older than the field."""
    space: str | None = None
    """Group mappings that are searched, as the end of "mappings with ..."."""
    model: PluginRecord
    """The cost model."""
    group: GroupMapping
    """Group mapping that has the value."""

    @property
    def names(self) -> tuple[str, str]:
        """Name of what is mapped, and of the architecture."""
        return self.group.name, self.group.architecture.name

    @property
    def plugins(self) -> tuple[PluginRecord, ...]:
        """The plugins whose versions the claim has."""
        return (self.model,) if self.mapper is None else (self.mapper, self.model)

    @property
    def claimed_by(self) -> str | None:
        """Name of the group mapper, if it is not built in."""
        return None if self.mapper is None else claimant(self.mapper)

    def words(self, proved: bool) -> tuple[str, str, str]:
        """Return what has no lower cost, whose value it is, and what follows in the statement."""
        space = "" if self.space is None else f"\nthe space: {self.space}"
        return *_FUSED, f"; without fusion: {self.unfused:.10g}{space}"


class NetworkClaim(_Claim):
    """No choice of results of a network that stay on chip, as `map NET --fuse` searches them, costs less than the bound."""

    of: Literal["fused_network"] = "fused_network"
    """Kind of claim."""
    unfused: Finite
    """Least cost without fusion."""
    least: Finite | None
    """Bound on mappings whose results stay in tiles, too; None: the workload does not state whose results are read."""
    energy_pj: Finite
    """Energy of the network in pJ."""
    cycles: Finite
    """Cycles of the network."""
    residents: tuple[str, ...] = ()
    """Layers whose results stay on chip."""
    settings: FrozenDict[str, Any] = FrozenDict()
    """Settings of `map`."""
    architecture: Architecture
    """The machine."""
    workload: Workload
    """The network."""
    mappings: FrozenDict[str, Mapping]
    """Mapping of each layer."""

    @property
    def names(self) -> tuple[str, str]:
        """Name of what is mapped, and of the architecture."""
        return self.workload.name, self.architecture.name

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back to an equal object."""
        return super().to_data() | {"mappings": {name: mapping.to_data() for name, mapping in self.mappings.items()}}

    def words(self, proved: bool) -> tuple[str, str, str]:
        """Return what has no lower cost, whose value it is, and what follows in the statement."""
        told = ""
        if self.least is None:
            told = f"\n{self.workload.told_unknown}: mappings that keep these are not in the space"
        return *_FUSED, f"; without fusion: {self.unfused:.10g}{told}"


_FUSED = ("no fused mapping of the space", "the one found")
AnyClaim = Annotated[LayerClaim | GroupClaim | NetworkClaim, Field(discriminator="of")]
Claim = TypeVar("Claim", bound=AnyClaim, covariant=True)


class Certificate(Printed, FileModel, Generic[Claim]):
    """A statement that nothing in the space of `claim` costs less than `bound`.

    Example:
        >>> import tilewright as tw
        >>> report = tw.map("nk,km->nm; n=2 k=2 m=2", "eyeriss", cache=False)
        >>> certificate = report.certificate("einsum")
        >>> certificate.claim.of, certificate.bound <= certificate.value
        ('layer', True)
    """

    schema_version: Literal[2] = 2
    kind: Literal["certificate"] = "certificate"
    objective: Objective
    """Name of the objective, in whose unit `value` and `bound` are."""
    value: Finite
    """Cost of what was found."""
    bound: Finite
    """Cost that nothing in the space is below."""
    gap: float = Field(allow_inf_nan=False)
    """(value - bound) / value."""
    proof_version: int | None = None
    """Version of the prover's rules; None: it has none, or the certificate is older."""
    claimed_by: str | None = None
    """Names of the plugins that are not built in and state it; a certificate of such a mapper always has them. None: it is proved."""
    versions: FrozenDict[str, str] = FrozenDict()
    """Versions of Tilewright, of the plugins' distributions, and of Python."""
    digests: FrozenDict[str, str] = FrozenDict()
    """SHA-256 of the versions and of each part of the claim."""
    claim: Claim
    """The claim, with all inputs."""

    @model_validator(mode="after")
    def _says_whose_it_is(self) -> Self:
        if self.claimed_by is None and (by := self.claim.claimed_by) is not None:
            object.__setattr__(self, "claimed_by", by)
        return self

    @model_validator(mode="before")
    @classmethod
    def _of_version_1(cls, data: Any) -> Any:
        """Read a file of version 1, whose kind was that of the claim, and which had the claim's fields among its own."""
        if not isinstance(data, dict) or "claim" in data or data.get("schema_version", 1) != 1:
            return data
        of = FORMER_KINDS.get(str(data.get("kind", "certificate")))
        if of is None:
            return data
        head = {name: part for name, part in data.items() if name in cls.model_fields}
        claim = {"of": of} | {name: part for name, part in data.items() if name not in head}
        if isinstance(digests := data.get("digests"), dict):  # two parts had none
            with suppress(TypeError):
                new = {"versions": data.get("versions", {}), "unfused": data.get("unfused")}
                head["digests"] = {name: of_data(new[name]) for name in new if name in ("versions", *claim)} | digests
        return head | {"schema_version": 2, "kind": "certificate", "claim": claim}

    def part_digests(self) -> FrozenDict[str, str]:
        """Return the digests of the present parts."""
        parts = {"versions": dict(self.versions)} | self.claim.parts()
        return FrozenDict({name: of_data(part) for name, part in parts.items()})

    def sealed(self) -> Self:
        """Return the certificate with the digests of its parts."""
        return self.model_copy(update={"digests": self.part_digests()})

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back to an equal object."""
        return super().to_data() | {"claim": self.claim.to_data()}

    def to_yaml(self) -> str:
        """Return the YAML form, with the statement as a comment; `from_yaml` restores it."""
        return commented(str(self)) + super().to_yaml()

    def __str__(self) -> str:
        proved = self.gap < 1e-8 and self.claimed_by is None
        sure = "is the minimum" if proved else f"exceeds the minimum by at most {100 * self.gap:.2g} % of itself"
        what, unit = self.objective.title, self.objective.unit
        which, whose, more = self.claim.words(proved)
        subject, arch = self.claim.names
        statement = f"{subject} on {arch}: {which} has less {what} than {self.bound:.10g} {unit}"
        if self.claimed_by is None:
            return f"{statement}\n{whose}, {self.value:.10g}, {sure}{more}"
        return (
            f"{self.claimed_by} claims: {statement}\n{whose} is {self.value:.10g}; nothing else proves the claim{more}"
        )

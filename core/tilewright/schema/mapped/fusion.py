"""Certificates of fused layers: a lower bound on the cost of all ways to fuse them, with the data to check it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tilewright.digests import of_data
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import FileModel, commented
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.mapped.certificate import Finite
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import Objective
from tilewright.schema.workload import Workload
from tilewright.tables import Printed

FUSION_PROOFS = 3
"""Version of the proof rules of fused networks; 1 excluded results that fill their home.

2 excluded tensors that bypass a home with room for them.
"""


class FusionCertificate(Printed, FileModel):
    """Common part of the certificates of groups and of networks.

    The fused mapping costs `value`, and nothing in its space less than `bound`. Both are in `objective`, as is
    `unfused`, the least cost without fusion. `gap` is (value - bound) / value. `proof_version` is the version of the
    search's proof rules; None: the certificate is older. `digests` are those of the other parts, by `part_digests`.
    """

    objective: Objective
    unfused: Finite
    value: Finite
    bound: Finite
    gap: float = Field(allow_inf_nan=False)
    proof_version: int | None = None
    versions: FrozenDict[str, str] = FrozenDict()
    digests: FrozenDict[str, str] = FrozenDict()

    @property
    def subject(self) -> str:
        """Name of what is fused."""
        raise NotImplementedError

    @property
    def arch(self) -> str:
        """Name of the architecture."""
        raise NotImplementedError

    def part_digests(self) -> FrozenDict[str, str]:
        """Return the digests of the parts as they are."""
        own = self.to_data()
        given = {"schema_version", "kind", *FusionCertificate.model_fields} - {"versions"}
        return FrozenDict({name: of_data(part) for name, part in own.items() if name not in given})

    def to_yaml(self) -> str:
        """Return the YAML form, with the statement as a comment; `from_yaml` restores it."""
        return commented(str(self)) + super().to_yaml()

    def __str__(self) -> str:
        what, unit = self.objective.title, self.objective.unit
        sure = (
            "is the minimum" if self.gap < 1e-8 else f"exceeds the minimum by at most {100 * self.gap:.2g} % of itself"
        )
        return (
            f"{self.subject} on {self.arch}: no fused mapping of the space has less {what} than {self.bound:.10g} {unit}\n"
            f"the one found, {self.value:.10g}, {sure}; without fusion: {self.unfused:.10g}"
        )


class GroupCertificate(FusionCertificate):
    """A statement on the group mappings that a group mapper searches, by the cost model `model`.

    `space` says which these are, as the end of "mappings with ...". Without a `mapper`, the certificate is older than the field.
    """

    schema_version: Literal[1] = 1
    kind: Literal["group_certificate"] = "group_certificate"
    mapper: PluginRecord | None = None
    space: str | None = None
    model: PluginRecord
    group: GroupMapping

    def __str__(self) -> str:
        return super().__str__() if self.space is None else f"{super().__str__()}\nthe space: {self.space}"

    @property
    def subject(self) -> str:
        """Name of the group."""
        return self.group.name

    @property
    def arch(self) -> str:
        """Name of the architecture."""
        return self.group.architecture.name

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back to an equal object."""
        return super().to_data() | {"group": self.group.to_data()}


class NetworkCertificate(FusionCertificate):
    """A statement on the results of a network that stay on chip, as `map NET --fuse` searches them.

    `settings` are those of `map`. `least` bounds mappings whose results stay in tiles, too; None: the workload does not
    state whose results are read. `residents` name the layers whose results stay, and `mappings` has the mapping of each
    layer.
    """

    schema_version: Literal[1] = 1
    kind: Literal["network_certificate"] = "network_certificate"
    least: Finite | None
    energy_pj: Finite
    cycles: Finite
    residents: tuple[str, ...] = ()
    settings: FrozenDict[str, Any] = FrozenDict()
    architecture: Architecture
    workload: Workload
    mappings: FrozenDict[str, Mapping]

    @property
    def subject(self) -> str:
        """Name of the network."""
        return self.workload.name

    @property
    def arch(self) -> str:
        """Name of the architecture."""
        return self.architecture.name

    def __str__(self) -> str:
        if self.least is not None:
            return super().__str__()
        unknown = self.workload.unknown
        several = f"{len(unknown)} layers do not state whose results they read" if len(unknown) > 1 else ""
        told = several or "one layer does not state whose results it reads"
        return f"{super().__str__()}\n{told}: mappings that keep these are not in the space"

    def to_data(self) -> dict[str, Any]:
        """Return plain data that `model_validate` reads back to an equal object."""
        parts = {"architecture": self.architecture.to_data(), "workload": self.workload.to_data()}
        return (
            super().to_data()
            | parts
            | {"mappings": {name: mapping.to_data() for name, mapping in self.mappings.items()}}
        )

"""Constraints: the part of a map space that a dataflow or a user selects (Union, section IV-E).

Rules are stored in a separate file; the architecture stays bare hardware. A variant may be written for a structure
(`conv`, `gemm`). Its dimensions are then the canonical letters of `tilewright.schema.structure`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tilewright.errors import InputError
from tilewright.schema.architecture import Architecture
from tilewright.schema.divisors import has_few_divisors
from tilewright.schema.document import FileModel, suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import DimensionName, Name, Problem
from tilewright.schema.structure import Kind, recognise
from tilewright.values import Model

Trips = Annotated[int, Field(ge=1, le=2**53, strict=True)]


class TripRange(Model):
    """Bounds on a trip count; a plain number fixes it."""

    short_form = {"type": "integer", "minimum": 1}
    min: Trips = 1
    max: Trips | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: Any) -> Any:
        return {"min": value, "max": value} if isinstance(value, int) else value

    @model_validator(mode="after")
    def _ordered(self) -> TripRange:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"min {self.min} is above max {self.max}")
        return self


Factors = FrozenDict[DimensionName, TripRange]
Cutting = Literal["perfect", "ragged"]
"""Tile cutting: `perfect` if every tile divides the one it is cut from.

With `ragged`, only tiles that are cut from another tile must divide it. Those cut from the whole dimension need not.
"""
CuttingRule = Cutting | Literal["as_needed", "as_prescribed"]
"""Tile cutting, or when it is ragged (`Constraints`)."""


class TemporalRule(Model):
    """Bounds on the temporal loops directly inside `memory`.

    `only`: dimensions that may have a loop there (None: all). `factors`: their trip counts.
    `order`: these dimensions keep this relative order, outermost first. The loops of `outermost` are outside all others,
    and those of `innermost` inside all others, both in the order given, outermost first.
    """

    memory: Name
    only: tuple[DimensionName, ...] | None = None
    factors: Factors = FrozenDict()
    order: tuple[DimensionName, ...] = ()
    outermost: tuple[DimensionName, ...] = ()
    innermost: tuple[DimensionName, ...] = ()

    @model_validator(mode="after")
    def _once(self) -> TemporalRule:
        named = (*self.outermost, *self.order, *self.innermost)
        if len(set(named)) != len(named):
            raise ValueError("order, outermost and innermost name a dimension twice")
        return self

    @model_serializer(mode="wrap")
    def _without_new_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave empty new fields out, so that older digests of rules stay valid."""
        return {name: value for name, value in handler(self).items() if value or name not in ("outermost", "innermost")}

    @property
    def has_order(self) -> bool:
        """Whether the rule limits the order of loops."""
        return bool(self.outermost or self.order or self.innermost)


class SpatialRule(Model):
    """Bounds on the unrolling over the fanout of `cluster`; utilizations are fractions of its size."""

    cluster: Name
    only: tuple[DimensionName, ...] | None = None
    factors: Factors = FrozenDict()
    min_utilization: Annotated[float, Field(ge=0, le=1)] = 0.0
    max_utilization: Annotated[float, Field(gt=0, le=1)] = 1.0


class KeepRule(Model):
    """Tensors, by name or role, that `memory` must keep, must bypass, or may do either (`free`).

    Without a rule a memory keeps every tensor that it may hold. A memory too small for one value of
    each may bypass any of them.
    """

    memory: Name
    keep: tuple[str, ...] = ()
    bypass: tuple[str, ...] = ()
    free: tuple[str, ...] = ()


class StoredTensors(Model):
    """Tensors, by name or role, that one storage entry keeps in `memory`."""

    memory: Name
    tensors: Annotated[tuple[str, ...], Field(min_length=1)]


class StorageRule(Model):
    """Storage entries of `cluster`, outermost first, with temporal loops between them.

    Without a rule every memory has one entry, in file order. A memory of several entries keeps its
    tensors at different loops, which makes mappings uneven.
    """

    cluster: Name
    entries: Annotated[tuple[StoredTensors, ...], Field(min_length=1)]


class JointRule(Model):
    """Bounds on the unrollings over several fanouts together. Mappings are compared with it, but it is not searched.

    `factors`: trips of a dimension over all of them. `apart`: a dimension is unrolled over at most one of them.
    `first` and `last`: the dimensions form one sequence, `first` before the others and `last` behind them, and each
    fanout takes the next part of it. `others`: largest number of dimensions besides these over each fanout.
    `min_utilization`: fraction of all their sub-clusters.
    """

    clusters: Annotated[tuple[Name, ...], Field(min_length=1)]
    factors: Factors = FrozenDict()
    apart: bool = False
    first: tuple[DimensionName, ...] = ()
    last: tuple[DimensionName, ...] = ()
    others: tuple[Annotated[int, Field(ge=0)], ...] = ()
    min_utilization: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class UnsearchedRule(Model):
    """A rule of another tool's file that the map space does not have, so that it is wider than the file's.

    `name` is the file's word, `where` its place, and `why` a clause on what is not searched. With `missing`, the file's
    space also has mappings that the searched one lacks. `joint` is the rule, if a mapping can be compared with it.
    """

    name: str
    where: str
    why: str
    missing: bool = False
    joint: JointRule | None = None

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.where.partition(":")[0]

    def __str__(self) -> str:
        return f"{self.where}: {self.name}: {self.why}"


class Variant(Model):
    """Rules for one structure of problem, or for problems that use the named dimensions.

    `sizes` restricts the variant to problems with exactly these dimensions and sizes, because rules
    of other tools may depend on them. `unsearched` are rules of other tools' files that the map space does not have.
    """

    structure: Kind | None = None
    sizes: FrozenDict[DimensionName, Trips] | None = None
    temporal: tuple[TemporalRule, ...] = ()
    spatial: tuple[SpatialRule, ...] = ()
    keep: tuple[KeepRule, ...] = ()
    storage: tuple[StorageRule, ...] = ()
    unsearched: tuple[UnsearchedRule, ...] = ()

    @model_serializer(mode="wrap")
    def _without_new_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave empty new fields out, so that older digests of rules stay valid."""
        return {name: value for name, value in handler(self).items() if value or name != "unsearched"}

    def renamed(self, parts: FrozenDict[str, tuple[str, ...]]) -> Variant:
        """Return the rules on a problem's own dimensions.

        A rule on a letter applies to each dimension that plays it.
        """

        def names(letters: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for letter in letters for name in parts.get(letter, ()))

        def factors(rules: Factors) -> Factors:
            return FrozenDict({name: rule for letter, rule in rules.items() for name in parts.get(letter, ())})

        return Variant(
            temporal=tuple(
                rule.model_copy(
                    update={
                        "only": None if rule.only is None else names(rule.only),
                        "factors": factors(rule.factors),
                        "order": names(rule.order),
                        "outermost": names(rule.outermost),
                        "innermost": names(rule.innermost),
                    }
                )
                for rule in self.temporal
            ),
            spatial=tuple(
                rule.model_copy(
                    update={
                        "only": None if rule.only is None else names(rule.only),
                        "factors": factors(rule.factors),
                    }
                )
                for rule in self.spatial
            ),
            keep=self.keep,
            storage=self.storage,
            unsearched=tuple(
                rule
                if rule.joint is None
                else rule.model_copy(
                    update={
                        "joint": rule.joint.model_copy(
                            update={
                                "factors": factors(rule.joint.factors),
                                "first": names(rule.joint.first),
                                "last": names(rule.joint.last),
                            }
                        )
                    }
                )
                for rule in self.unsearched
            ),
        )

    def within(self, problem: Problem) -> Variant:
        """Return the rules with no more sub-clusters prescribed than the dimensions have iterations."""
        left = dict(problem.dimensions)
        rules = []
        for rule in self.spatial:
            factors = {}
            for name, trips in rule.factors.items():
                least = min(trips.min, left[name])
                left[name] = -(-left[name] // least)
                most = least if trips.max == trips.min else trips.max
                factors[name] = TripRange(min=least, max=most)
            rules.append(rule.model_copy(update={"factors": FrozenDict(factors)}))
        return self.model_copy(update={"spatial": tuple(rules)})


class Constraints(FileModel):
    """Named rules for one architecture; without one, for any that has the named parts.

    `default` marks the dataflow that the architecture's authors published. It applies unless the user selects another.
    `aspect` reshapes a flexible array: cluster -> fanout size, with the same number of compute units. `factors` states
    whether every tile divides, or the last tile of a dimension may be smaller. With `as_prescribed` it may only in
    problems where a prescribed unrolling does not divide its dimension. With `as_needed` it may also in those with a size
    that has few divisors. `uneven` adds the mappings that keep the tensors of one cluster
    at different loops, in every order.
    """

    schema_version: Literal[1] = 1
    kind: Literal["constraints"] = "constraints"
    name: Name
    architecture: Name | None = None
    source: str | None = None
    default: bool = False
    aspect: FrozenDict[Name, Trips] = FrozenDict()
    factors: CuttingRule = "perfect"
    uneven: bool = False
    variants: tuple[Variant, ...] = ()

    def variant_for(self, problem: Problem) -> Variant | None:
        """Return the first variant for the problem's structure, else the first without a structure."""
        structure = recognise(problem)
        kinds = (None,) if structure is None else (structure.kind, None)
        fitting = [variant for variant in self.variants if variant.sizes is None or variant.sizes == problem.dimensions]
        return next((variant for kind in kinds for variant in fitting if variant.structure == kind), None)

    def rules_for(self, problem: Problem, architecture: Architecture) -> Variant | None:
        """Return the rules on the problem's own dimensions, or None if no variant applies.

        Rules on dimensions that the problem lacks are omitted.

        Raises:
            InputError: a rule names an unknown cluster or memory.
        """
        variant = self.variant_for(problem)
        if variant is None:
            return None
        self._check(variant, architecture)
        structure = None if variant.structure is None else recognise(problem)
        own = FrozenDict[str, tuple[str, ...]]({name: (name,) for name in problem.dimensions})
        rules = variant.renamed(own if structure is None else structure.parts)
        return rules if self.factors in get_args(Cutting) else rules.within(problem)

    def swapped_letters(self, problem: Problem) -> dict[str, str]:
        """Return letter of the rules -> dimension, for letters that are the name of another dimension."""
        variant = self.variant_for(problem)
        structure = None if variant is None or variant.structure is None else recognise(problem)
        if structure is None:
            return {}
        return {
            letter: ", ".join(names)
            for letter, names in structure.parts.items()
            if letter in problem.dimensions and letter not in names
        }

    def factors_for(self, problem: Problem, rules: Variant | None) -> Cutting:
        """Return how tiles are cut, given the rules on the problem's own dimensions."""
        if self.factors == "perfect" or self.factors == "ragged":
            return self.factors
        if self.factors == "as_needed" and any(map(has_few_divisors, problem.sizes)):
            return "ragged"
        unrolled = dict.fromkeys(problem.dimensions, 1)
        for rule in rules.spatial if rules is not None else ():
            for name, trips in rule.factors.items():
                unrolled[name] *= trips.min
        return "ragged" if any(size % unrolled[name] for name, size in problem.dimensions.items()) else "perfect"

    def shape(self, architecture: Architecture) -> Architecture:
        """Return the architecture with the aspect ratio applied.

        Raises:
            InputError: the number of compute units would change, or a cluster is unknown.
        """
        if not self.aspect:
            return architecture
        for name in self.aspect:
            self._known("cluster", name, [cluster.name for cluster in architecture.clusters])
        clusters = tuple(
            cluster.model_copy(
                update={
                    "fanout": cluster.fanout.model_copy(
                        update={"size": self.aspect.get(cluster.name, cluster.fanout.size)}
                    )
                }
            )
            for cluster in architecture.clusters
        )
        count = math.prod(cluster.fanout.size for cluster in clusters)
        if count != architecture.compute_instances:
            raise InputError(
                f"constraints {self.name}: aspect gives {count} compute units, {architecture.name} has "
                f"{architecture.compute_instances}"
            )
        return architecture.model_copy(update={"clusters": clusters})

    def check_names(self, architecture: Architecture) -> None:
        """Check all variants. Raises InputError if a rule names an unknown cluster or memory."""
        for variant in self.variants:
            self._check(variant, architecture)

    def _check(self, rules: Variant, architecture: Architecture) -> None:
        memories = [memory.name for memory in architecture.memories]
        for name in (*(rule.memory for rule in rules.temporal), *(rule.memory for rule in rules.keep)):
            self._known("memory", name, memories)
        for spatial in rules.spatial:
            self._known("cluster", spatial.cluster, [cluster.name for cluster in architecture.clusters])
        for unsearched in rules.unsearched:
            for name in () if unsearched.joint is None else unsearched.joint.clusters:
                self._known("cluster", name, [cluster.name for cluster in architecture.clusters])
        inner = architecture.clusters[1:]
        for storage in rules.storage:
            self._known("inner cluster", storage.cluster, [cluster.name for cluster in inner])
            here = next(cluster for cluster in inner if cluster.name == storage.cluster)
            for entry in storage.entries:
                self._known(f"memory of {here.name}", entry.memory, [memory.name for memory in here.memories])

    def _known(self, what: str, name: str, known: list[str] | tuple[str, ...]) -> None:
        if name not in known:
            raise InputError(
                f"constraints {self.name}: unknown {what} '{name}'{suggestion(name, known)}; known: {', '.join(known)}"
            )


NO_CONSTRAINTS = Constraints(name="none")

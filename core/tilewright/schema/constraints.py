"""Constraints: the part of a map space that a dataflow or a user selects (Union, section IV-E).

Rules are stored in a separate file; the architecture stays bare hardware. A variant may be written for a structure
(`conv`, `gemm`). Its dimensions are then the canonical letters of `tilewright.schema.structure`.
"""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal, get_args

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

    _short_form: ClassVar = {"type": "integer", "minimum": 1}
    min: Trips = 1
    """Least trips."""
    max: Trips | None = None
    """Most trips; None: any number."""

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
    """Bounds on the temporal loops directly inside `memory`."""

    memory: Name
    """Name of the memory."""
    only: tuple[DimensionName, ...] | None = None
    """Dimensions that may have a loop there; None: all."""
    factors: Factors = FrozenDict()
    """Dimension -> trips of its loop."""
    order: tuple[DimensionName, ...] = ()
    """Dimensions that keep this relative order, outermost first."""
    outermost: tuple[DimensionName, ...] = ()
    """Dimensions whose loops are outside all others, in this order."""
    innermost: tuple[DimensionName, ...] = ()
    """Dimensions whose loops are inside all others, in this order, outermost first."""

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
    """Bounds on the unrolling over the fanout of `cluster`."""

    cluster: Name
    """Name of the cluster."""
    only: tuple[DimensionName, ...] | None = None
    """Dimensions that may be unrolled; None: all."""
    factors: Factors = FrozenDict()
    """Dimension -> trips of its unrolling."""
    min_utilization: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Least fraction of the sub-clusters in use."""
    max_utilization: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Largest fraction of the sub-clusters in use."""


class KeepRule(Model):
    """Tensors, by name or role, that a memory must keep, must bypass, or may do either.

    Without a rule a memory keeps every tensor that it may hold. A memory too small for one value of
    each may bypass any of them.
    """

    memory: Name
    """Name of the memory."""
    keep: tuple[str, ...] = ()
    """Tensors that it must keep."""
    bypass: tuple[str, ...] = ()
    """Tensors that bypass it."""
    free: tuple[str, ...] = ()
    """Tensors that may do either."""


class StoredTensors(Model):
    """Tensors, by name or role, that one storage entry keeps in `memory`."""

    memory: Name
    """Name of the memory."""
    tensors: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names or roles."""


class StorageRule(Model):
    """Storage entries of `cluster`, outermost first, with temporal loops between them.

    Without a rule every memory has one entry, in file order. A memory of several entries keeps its
    tensors at different loops, which makes mappings uneven.
    """

    cluster: Name
    """Name of the cluster."""
    entries: Annotated[tuple[StoredTensors, ...], Field(min_length=1)]
    """Entries, outermost first."""


class JointRule(Model):
    """Bounds on the unrollings over several fanouts together. Mappings are compared with it, but it is not searched."""

    clusters: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Names of the clusters with these fanouts."""
    factors: Factors = FrozenDict()
    """Dimension -> trips over all of them."""
    apart: bool = False
    """Whether a dimension is unrolled over at most one of them."""
    first: tuple[DimensionName, ...] = ()
    """Dimensions that begin one sequence. Each fanout takes the next part of it."""
    last: tuple[DimensionName, ...] = ()
    """Dimensions that end this sequence."""
    others: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Largest number of dimensions besides these over each fanout."""
    min_utilization: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Least fraction of all their sub-clusters in use."""


class UnsearchedRule(Model):
    """A rule of another tool's file that the map space does not have, so that it is wider than the file's."""

    name: str
    """The file's word for it."""
    where: str
    """Its place in the file."""
    why: str
    """A clause on what is not searched."""
    missing: bool = False
    """Whether the file's space also has mappings that the searched one lacks."""
    joint: JointRule | None = None
    """The rule, if a mapping can be compared with it."""

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.where.partition(":")[0]

    def __str__(self) -> str:
        return f"{self.where}: {self.name}: {self.why}"


def tensors_of(problem: Problem) -> FrozenDict[str, tuple[str, ...]]:
    """Return tensor -> its dimensions, sorted."""
    return FrozenDict({tensor.name: tuple(sorted(tensor.dimensions)) for tensor in problem.tensors})


class Variant(Model):
    """Rules for one structure of problem, or for problems that use the named dimensions."""

    structure: Kind | None = None
    """Structure of the problems; None: any."""
    sizes: FrozenDict[DimensionName, Trips] | None = None
    """Dimensions and sizes that the problem must have exactly, since rules of other tools may depend on them."""
    tensors: FrozenDict[Name, tuple[DimensionName, ...]] | None = None
    """Tensor -> its dimensions, sorted, which the problem must have, too. Layers of the same sizes may have other rules."""
    layers: tuple[str, ...] = ()
    """Names of layers, patterns of names such as `b*_dw`, or labels of problems; empty: all."""
    operations: tuple[str, ...] = ()
    """Kinds of operation, such as `depthwise_conv2d`; empty: all."""
    temporal: tuple[TemporalRule, ...] = ()
    """Rules on temporal loops."""
    spatial: tuple[SpatialRule, ...] = ()
    """Rules on unrollings."""
    keep: tuple[KeepRule, ...] = ()
    """Rules on the tensors that memories keep."""
    storage: tuple[StorageRule, ...] = ()
    """Rules on storage entries."""
    unsearched: tuple[UnsearchedRule, ...] = ()
    """Rules of other tools' files that the map space does not have."""

    @model_serializer(mode="wrap")
    def _without_new_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave empty new fields out, so that older digests of rules stay valid."""
        new = ("unsearched", "tensors", "layers", "operations")
        return {name: value for name, value in handler(self).items() if value or name not in new}

    def fits(self, problem: Problem) -> bool:
        """Return whether a problem has the sizes, tensors, label and operation of the rules, if they name some."""
        selected = not self.layers or (problem.name if problem.label is None else problem.label) in self.layers
        selected &= not self.operations or problem.operation in self.operations
        return selected and self.sizes in (None, problem.dimensions) and self.tensors in (None, tensors_of(problem))

    @property
    def is_for_some(self) -> bool:
        """Whether the rules are for problems of some sizes, layers or operations only."""
        return self.sizes is not None or bool(self.layers or self.operations)

    def for_any(self) -> Variant:
        """Return the rules without the sizes, tensors, layers and operations that select their problems."""
        return self.model_copy(update={"sizes": None, "tensors": None, "layers": (), "operations": ()})

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

    Example:
        >>> import tilewright as tw
        >>> tw.load("eyeriss.row_stationary", "constraints").name
        'row_stationary'
    """

    schema_version: Literal[1] = 1
    kind: Literal["constraints"] = "constraints"
    name: Name
    """Name of the rules."""
    architecture: Name | None = None
    """Name of the architecture; None: any."""
    source: str | None = None
    """Origin of the rules."""
    default: bool = False
    """Whether it is the dataflow that the architecture's authors published. It applies unless the user selects another."""
    aspect: FrozenDict[Name, Trips] = FrozenDict()
    """Cluster -> fanout size: another shape of a flexible array, with the same number of compute units."""
    factors: CuttingRule = "perfect"
    """Whether every tile divides, or the last tile of a dimension may be smaller.

    With `as_prescribed` it may only in problems where a prescribed unrolling does not divide its dimension. With `as_needed`
    it may also in those with a size that has few divisors.
    """
    uneven: bool = False
    """Whether mappings may keep the tensors of one cluster at different loops, in every order."""
    variants: tuple[Variant, ...] = ()
    """Rules by kind of problem."""

    def variant_for(self, problem: Problem) -> Variant | None:
        """Return the variant of a problem.

        Variants for layers come first, then those for operations, then others. Of each, the first for the problem's
        structure counts, else the first without a structure.
        """
        structure = recognise(problem)
        kinds = (None,) if structure is None else (structure.kind, None)
        fitting = [variant for variant in self.variants if variant.fits(problem) and variant.structure in kinds]

        def rank(variant: Variant) -> tuple[bool, bool, int]:
            return not variant.layers, not variant.operations, kinds.index(variant.structure)

        return min(fitting, key=rank, default=None)

    def labelled(self, problem: Problem) -> Problem:
        """Return a problem with the first word of a rule for layers that selects it, if there is one, as its label.

        So layers with equal work and different rules are different problems.
        """
        words = [word for variant in self.variants for word in variant.layers]
        names = (problem.name, problem.label)
        label = next((word for word in words if word in names or fnmatchcase(problem.name, word)), problem.label)
        return problem if label == problem.label else problem.model_copy(update={"label": label})

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
        parts = FrozenDict[str, tuple[str, ...]]({name: (name,) for name in problem.dimensions})
        rules = variant.renamed(parts if structure is None else structure.parts)
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

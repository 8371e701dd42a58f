"""Parser of Timeloop v4's `architecture`: a tree of nodes, converted to storage levels.

If a node has a fanout, Timeloop's front end inserts a storage level outside it that keeps nothing
and unrolls. It is called `inter_<node>_spatial`. The same level is created here, because a level
that all tensors bypass can change counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.expressions import resolved
from tilewright.schema.document import suggestion
from tilewright_adapters.timeloop.cursor import Cursor, refuse_unknown
from tilewright_adapters.timeloop.reading.directives import KINDS, ParsedDirective
from tilewright_adapters.timeloop.reading.hierarchy import DUMMY, Component, Hierarchy, computed, hierarchy_of
from tilewright_adapters.timeloop.reading.sections import Sections

_KINDS = ("Architecture", "Container", "ArrayContainer", "Component", "Element", "Hierarchical", "Parallel", "Nothing")
_FIELDS = {
    "Container": {"name", "attributes", "spatial", "constraints", "networks", "sparse_optimizations"},
    "Component": {"name", "class", "subclass", "attributes", "spatial", "constraints", "enabled", "required_actions"}
    | {"area_scale", "energy_scale", "sparse_optimizations"},
    "Branch": {"name", "nodes", "version"},
    "Nothing": {"name", "constraints"},
}


@dataclass
class NodeRule:
    """A node's `constraints` on one storage level; `kind` is temporal, spatial or dataspace."""

    target: str
    kind: str
    where: Cursor


@dataclass
class Nodes:
    """The levels of a tree of nodes, and the rules on them.

    `unrolled_at` maps a node to the level that unrolls for it.
    """

    levels: Hierarchy
    rules: list[NodeRule] = field(default_factory=list)
    unrolled_at: dict[str, str] = field(default_factory=dict)
    parallel: list[list[tuple[tuple[str, ...], frozenset[str]]]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def said(self) -> Iterator[ParsedDirective]:
        """Yield the rules as directives, because Timeloop treats them as part of the mapping.

        Raises:
            InputError: a rule is invalid.
        """
        for rule in self.rules:
            if rule.kind in KINDS:
                fields = rule.where.fields("constraints")
                yield ParsedDirective(rule.where, rule.target, KINDS[rule.kind], fields, is_rule=True)


def read_nodes(section: Cursor, sections: Sections) -> Nodes:
    """Return the nodes of a section. Raises InputError with file and line."""
    walk = _Walk(sections.variables(), sections)
    fields = section.fields("architecture")
    refuse_unknown(fields, _FIELDS["Branch"] | {"attributes", "variables"}, "an architecture of nodes")
    components = list(walk.branch(section, parallel=False))
    name = str(fields["name"].value) if "name" in fields else walk.first or "timeloop"
    levels = hierarchy_of(name, section, components)
    return Nodes(levels, walk.rules, walk.unrolled_at, walk.parallel_groups, walk.warnings)


@dataclass
class _Walk:
    """State of the traversal, outermost first: instances so far, and inherited attributes."""

    values: dict[str, object]
    sections: Sections
    mesh: tuple[int, int] = (1, 1)
    inherited: dict[str, Cursor] = field(default_factory=dict)
    first: str | None = None
    rules: list[NodeRule] = field(default_factory=list)
    unrolled_at: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    parallel_groups: list[list[tuple[tuple[str, ...], frozenset[str]]]] = field(default_factory=list)

    def branch(self, node: Cursor, parallel: bool) -> Iterator[Component]:
        fields = node.fields("a branch")
        for child in fields["nodes"].items("nodes") if "nodes" in fields else ():
            yield from self.node(child, parallel)

    def node(self, node: Cursor, parallel: bool) -> Iterator[Component]:
        kind = node.document.tags.get(node.path, "").removeprefix("!")
        if kind not in _KINDS:
            what = f"'!{kind}'" if kind else "nothing"
            raise node.error(
                f"the node has the tag {what}; expected !Container, !Component, !Parallel, ..."
                f"{suggestion(kind, _KINDS)}",
                hint="Timeloop's front end supports " + ", ".join(f"!{name}" for name in _KINDS[1:]),
            )
        if kind == "Parallel":
            yield from self.parallel(node)
        elif kind == "Hierarchical":
            refuse_unknown(node.fields("a branch"), _FIELDS["Branch"], "a branch")
            yield from self.branch(node, parallel)
        elif kind in ("Container", "ArrayContainer"):  # CiMLoop's own name for a container with a fanout
            yield from self.container(node, parallel)
        elif kind in ("Component", "Element"):
            yield from self.component(node, parallel)

    def parallel(self, node: Cursor) -> Iterator[Component]:
        """Yield the components of parallel branches.

        Timeloop puts the branches in sequence; each bypasses the tensors that another keeps.
        """
        fields = node.fields("a parallel branch")
        refuse_unknown(fields, _FIELDS["Branch"], "a parallel branch")
        group: list[tuple[tuple[str, ...], frozenset[str]]] = []
        for child in fields["nodes"].items("nodes") if "nodes" in fields else ():
            levels = list(self.node(child, parallel=True))
            passed = frozenset[str]()
            if not levels and isinstance(child.value, dict):
                passed = _kept(child.fields("a node").get("constraints"))
            group.append((tuple(level.name for level in levels), passed))
            yield from levels
        self.parallel_groups.append(group)

    def container(self, node: Cursor, parallel: bool) -> Iterator[Component]:
        fields = self.fields(node, "Container")
        name = fields["name"].text("a name")
        self.first = self.first or name
        attributes = self.attributes(fields)
        if parallel:
            raise node.error(f"container {name} is in a parallel branch; Timeloop's levels are a chain")
        yield from self.fanout(name, node, fields)
        self.inherited |= attributes

    def component(self, node: Cursor, parallel: bool) -> Iterator[Component]:
        fields = self.fields(node, "Component")
        name = fields["name"].text("a name")
        if "class" not in fields:
            raise node.error(f"component {name} has no 'class'")
        enabled = fields.get("enabled")
        if enabled is not None and enabled.value is not None:
            given = enabled.with_value(resolved(enabled.value, self.values))
            if not given.truth(f"enabled of {name}"):
                return
        if "energy_scale" in fields and fields["energy_scale"].value not in (None, 1):
            raise fields["energy_scale"].error("energy_scale is not supported; give the energies in the energy table")
        unrolling = list(self.fanout(name, node, fields))
        if unrolling and parallel:
            raise node.error(f"component {name} fans out in a parallel branch; Timeloop's levels are a chain")
        yield from unrolling
        sparse = fields.get("sparse_optimizations")
        if sparse is not None and sparse.value and not self.sections.dense:
            self.sections.sparse_nodes.append((name, sparse))
        attributes = self.attributes(fields)
        x, y = self.mesh
        yield Component(name, fields["class"].text("a class"), node, {**self.inherited, **attributes}, x * y, (x, y))
        self.rule(name, fields, spatial_too=not unrolling)

    def fields(self, node: Cursor, kind: str) -> dict[str, Cursor]:
        """Return the fields of a container or component, checked."""
        fields = node.fields(f"a {kind.lower()}")
        sparse = fields.get("sparse_optimizations")
        if sparse is not None and self.sections.dense:
            self.sections.omit("sparse_optimizations", sparse)
        elif sparse is not None and sparse.value and kind == "Container":
            raise sparse.error("a container has no sparse_optimizations; give them to a memory or a compute unit")
        networks = fields.pop("networks", None)
        if networks is not None and networks.value:
            raise networks.error("networks is not supported: it could change results")
        enlarged = fields.pop("max_utilization", None)  # of CiMLoop
        if enlarged is not None:
            if self.values.get("MAX_UTILIZATION"):
                raise enlarged.error("MAX_UTILIZATION is not supported: CiMLoop would enlarge the problem")
            place = enlarged.document.locate(enlarged.path)
            self.warnings.append(f"{place}: max_utilization is ignored, as in CiMLoop without MAX_UTILIZATION")
        refuse_unknown(fields, _FIELDS[kind], f"a {kind.lower()}")
        if "name" not in fields:
            raise node.error(f"the {kind.lower()} has no 'name'")
        return fields

    def attributes(self, fields: dict[str, Cursor]) -> dict[str, Cursor]:
        """Return attributes with expressions evaluated.

        Expressions may use variables, attributes of the containers around the node, and its other attributes.
        """
        if "attributes" not in fields or fields["attributes"].value is None:
            return {}
        return computed(fields["attributes"].fields("attributes"), self.inherited, self.values)

    def fanout(self, name: str, node: Cursor, fields: dict[str, Cursor]) -> Iterator[Component]:
        """Yield the level that unrolls over a node's instances, if there are several."""
        spatial = fields["spatial"].fields("spatial") if "spatial" in fields and fields["spatial"].value else {}
        refuse_unknown(spatial, {"meshX", "meshY"}, "spatial")
        counts = []
        known = {**self.values, **{key: cursor.value for key, cursor in self.inherited.items()}}
        for axis in ("meshX", "meshY"):
            given = spatial.get(axis)
            count = given.with_value(resolved(given.value, known)) if given else None
            counts.append(count.whole(f"{axis} of {name}") if count else 1)
        if counts == [1, 1]:
            if "class" not in fields and "constraints" in fields and fields["constraints"].value:
                place = node.document.locate(node.path)
                self.warnings.append(f"{place}: container {name} has no fanout: its constraints have no effect")
            return
        dummy, (x, y) = f"inter_{name}_spatial", self.mesh
        yield Component(dummy, DUMMY, node, {}, x * y, (x, y))
        self.mesh = (x * counts[0], y * counts[1])
        self.unrolled_at[name] = dummy
        if "constraints" in fields and fields["constraints"].value:
            rules = fields["constraints"].fields("constraints")
            if "spatial" in rules and rules["spatial"].value:
                self.rules.append(NodeRule(dummy, "spatial", rules["spatial"]))

    def rule(self, name: str, fields: dict[str, Cursor], spatial_too: bool) -> None:
        """Record the rules of a component on itself."""
        if "constraints" not in fields or not fields["constraints"].value:
            return
        rules = fields["constraints"].fields("constraints")
        refuse_unknown(rules, {"spatial", "temporal", "dataspace", "max_overbooked_proportion"}, "constraints")
        for kind, cursor in rules.items():
            if cursor.value and (kind != "spatial" or spatial_too):
                self.rules.append(NodeRule(name, kind, cursor))


def _kept(constraints: Cursor | None) -> frozenset[str]:
    """Return the tensors that constraints keep."""
    if constraints is None or not isinstance(constraints.value, dict):
        return frozenset()
    dataspace = constraints.value.get("dataspace")
    kept = dataspace.get("keep") if isinstance(dataspace, dict) else None
    return frozenset(map(str, kept)) if isinstance(kept, list) else frozenset()

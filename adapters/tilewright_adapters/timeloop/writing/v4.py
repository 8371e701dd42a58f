"""Rendering of an outline in the notation of v4."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from tilewright.schema.document import dump_yaml
from tilewright_adapters.timeloop.writing.limits import LevelConstraint
from tilewright_adapters.timeloop.writing.outline import Outline, Storage
from tilewright_adapters.timeloop.writing.sparse import refuse_sparse_v4, sparse_compute, sparse_memory
from tilewright_adapters.timeloop.writing.v3 import (
    areas,
    class_of,
    compute_name,
    energies,
    factors,
    memory_attributes,
    problem_data,
)

VERSION = 0.4
_BEFORE, _AFTER = "inter_", "_spatial"


def refuse_v4(plan: Outline, rules: list[LevelConstraint]) -> None:
    """Add reasons why v4 cannot express what v0.3 can."""
    if rules and plan.nests:
        plan.refuse("constraints", "", "in v4 constraints are part of the mapping; write one of them")
    refuse_sparse_v4(plan)
    for index, storage in enumerate(plan.storage):
        nest = plan.nests[index] if plan.nests else None
        if nest and (nest.x or nest.y) and plan.fanout(index) == (1, 1):
            plan.refuse("fanout", storage.name, "unrolls without a fanout; v4 cannot express that")


def write_v4(plan: Outline, rules: list[LevelConstraint]) -> dict[str, str]:
    """Return file name -> text.

    Files are arch.yaml with ERT.yaml and ART.yaml, problem.yaml, map.yaml and constraints.yaml, for
    the parts that are present.
    """
    files: dict[str, str] = {}
    if plan.storage:
        top = f"{plan.name}_top_level"
        files["arch.yaml"] = f"architecture:\n  version: {VERSION}\n  nodes:\n" + "".join(_nodes(plan))
        for name, tables in (("ERT", energies(plan, top, "compute")), ("ART", areas(plan, top))):
            rows = [row for row in tables if row["name"] not in {f"{top}.{fanout}" for fanout in _fanouts(plan)}]
            files[f"{name}.yaml"] = dump_yaml({name: {"version": VERSION, "tables": rows}})
    if plan.problem is not None:
        problem = {"version": VERSION} | problem_data(plan.problem, plan, "_")
        files["problem.yaml"] = dump_yaml({"problem": problem})
    if plan.nests is not None:
        files["map.yaml"] = dump_yaml({"mapping": list(_directives(plan))})
    if rules:
        targets = list(_targets(plan, rules))
        files["constraints.yaml"] = dump_yaml({"constraints": {"version": VERSION, "targets": targets}})
    return files


def _nodes(plan: Outline) -> Iterator[str]:
    """Yield a container around everything, a component per level, and a container per fanout."""
    assert plan.compute is not None
    yield _node("Container", {"name": plan.name})
    for index, storage in enumerate(plan.storage):
        if not _is_fanout(plan, index):
            yield _node("Component", _component(storage, plan))
        x, y = plan.fanout(index)
        if (x, y) != (1, 1):
            yield _node("Container", {"name": container(plan, index), "spatial": {"meshX": x, "meshY": y}})
    fields = {"name": compute_name(plan), "class": "intmac", "attributes": {"datawidth": plan.compute.word_bits}}
    yield _node("Component", fields | _sparse(sparse_compute(plan.compute, "_")))


def _sparse(content: dict[str, Any]) -> dict[str, Any]:
    return {"sparse_optimizations": content} if content else {}


def _node(kind: str, fields: dict[str, Any]) -> str:
    body = textwrap.indent(dump_yaml(fields), "    ")
    return f"  - !{kind}\n{body}"


def _is_fanout(plan: Outline, index: int) -> bool:
    """Return whether Timeloop's front end creates this level for a container with a fanout.

    Such a level is not written.
    """
    storage = plan.storage[index]
    steps = plan.nests is not None and bool(plan.nests[index].temporal)
    inner = storage.name.removeprefix(_BEFORE).removesuffix(_AFTER)
    taken = {other.name for other in plan.storage} | {compute_name(plan), plan.name}
    return (
        storage.is_dummy
        and storage.name == f"{_BEFORE}{inner}{_AFTER}"
        and bool(inner)
        and inner not in taken
        and plan.fanout(index) != (1, 1)
        and not steps
    )


def _fanouts(plan: Outline) -> set[str]:
    """Return the names of levels that are not written."""
    return {storage.name for index, storage in enumerate(plan.storage) if _is_fanout(plan, index)}


def container(plan: Outline, index: int) -> str:
    """Return the name of the container below level `index`."""
    if _is_fanout(plan, index):
        return plan.storage[index].name.removeprefix(_BEFORE).removesuffix(_AFTER)
    taken = {storage.name for storage in plan.storage} | {compute_name(plan), plan.name}
    name = f"below_{plan.storage[index].name}"
    while name in taken:
        name += "_"
    return name


def _component(storage: Storage, plan: Outline) -> dict[str, Any]:
    attributes = memory_attributes(storage.memory, plan, "_")
    attributes["datawidth"] = attributes.pop("word_bits")
    fields = {"name": storage.name, "class": class_of(storage), "attributes": attributes}
    return fields | _sparse(sparse_memory(storage.memory, plan, "_"))


def _directives(plan: Outline) -> Iterator[dict[str, Any]]:
    assert plan.problem is not None and plan.nests is not None
    for index, (storage, nest) in enumerate(zip(plan.storage, plan.nests, strict=True)):
        bypass = [name for name in plan.problem.tensor_names if name not in nest.keep]
        if not _is_fanout(plan, index):
            yield {"target": storage.name, "type": "dataspace", "keep": list(nest.keep), "bypass": bypass}
            yield {
                "target": storage.name,
                "type": "temporal",
                "factors": factors(nest.temporal, plan),
                "permutation": [plan.letters[name] for name in nest.temporal_permutation],
            }
        if plan.fanout(index) != (1, 1):
            spatial: dict[str, Any] = {
                "target": container(plan, index),
                "type": "spatial",
                "factors": factors([*nest.x, *nest.y], plan),
                "permutation": [plan.letters[name] for name in nest.spatial_permutation],
                "split": nest.split,
            }
            spatial |= {"no_reuse": list(nest.unicast)} if nest.unicast else {}
            yield spatial | ({"no_link_transfer": list(nest.unlinked)} if nest.unlinked else {})


def _targets(plan: Outline, rules: list[LevelConstraint]) -> Iterator[dict[str, Any]]:
    for rule in rules:
        if rule.kind != "spatial" and _is_fanout(plan, rule.level):
            continue  # the level keeps nothing and has no temporal loops
        name = container(plan, rule.level) if rule.kind == "spatial" else plan.storage[rule.level].name
        if rule.kind == "bypass":
            yield {"target": name, "type": "dataspace", "keep": list(rule.keep), "bypass": list(rule.bypass)}
            continue
        data: dict[str, Any] = {"target": name, "type": rule.kind}
        if rule.factors:
            data["factors"] = rule.factor_words(plan)
        if rule.permutation:
            data["permutation"] = [plan.letters[name] for name in rule.permutation]
        yield data | ({} if rule.split is None else {"split": rule.split})

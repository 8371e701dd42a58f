"""Rendering of an outline in the notation of v0.3: plain data, one document per file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.schema.architecture import Memory
from tilewright.schema.attribute import stated
from tilewright.schema.document import dump_yaml
from tilewright.schema.problem import Problem, Rank
from tilewright_adapters.timeloop.attributes import ENERGIES, NUMBERS
from tilewright_adapters.timeloop.writing.limits import LevelConstraint
from tilewright_adapters.timeloop.writing.outline import LoopBounds, Outline, Storage, plain
from tilewright_adapters.timeloop.writing.sparse import (
    compute_energies,
    density_data,
    sparse_attributes,
    sparse_compute,
    sparse_energies,
    sparse_memory,
)

CLASSES = {"dram": "DRAM", "sram": "SRAM", "register": "regfile"}
"""Technology -> class that Timeloop and Accelergy support."""
_UNLIMITED = 2**32 - 1
"""Maximum number of entries that Timeloop's files can express."""


def write_v3(plan: Outline, rules: list[LevelConstraint]) -> dict[str, str]:
    """Return file name -> text.

    Files are arch.yaml with ERT.yaml and ART.yaml, sparse.yaml, problem.yaml, map.yaml and
    constraints.yaml, for the parts that are present.
    """
    files: dict[str, Any] = {}
    if plan.storage:
        files["arch.yaml"] = {"architecture": {"version": 0.3, "subtree": [_tree(plan)]}}
        files["ERT.yaml"] = {"ERT": {"version": 0.3, "tables": energies(plan, plan.name, "mac_random")}}
        files["ART.yaml"] = {"ART": {"version": 0.3, "tables": areas(plan, plan.name)}}
        targets = [target for target in _sparse_targets(plan) if len(target) > 1]
        if targets:
            files["sparse.yaml"] = {"sparse_optimizations": {"targets": targets}}
    if plan.problem is not None:
        files["problem.yaml"] = {"problem": problem_data(plan.problem, plan, "-")}
    if plan.nests is not None:
        files["map.yaml"] = {"mapping": list(_directives(plan))}
    if rules:
        files["constraints.yaml"] = {"mapspace_constraints": {"targets": list(_targets(plan, rules))}}
    return {name: dump_yaml(data) for name, data in files.items()}


def _sparse_targets(plan: Outline) -> Iterator[dict[str, Any]]:
    """Yield the name and the sparse content of every level."""
    assert plan.compute is not None
    for storage in plan.storage:
        yield {"name": storage.name} | sparse_memory(storage.memory, plan, "-")
    yield {"name": compute_name(plan)} | sparse_compute(plan.compute, "-")


def _tree(plan: Outline) -> dict[str, Any]:
    """Return a container with one component per level, and compute."""
    assert plan.compute is not None
    parts = [_component(storage, plan) for storage in plan.storage]
    x, y = plan.mesh
    attributes = {"datawidth": plan.compute.word_bits, "instances": x * y, "meshX": x, "meshY": y}
    parts.append({"name": compute_name(plan), "class": "intmac", "attributes": attributes})
    return {"name": plan.name, "local": parts}


def compute_name(plan: Outline) -> str:
    """Return the name of the compute component."""
    assert plan.compute is not None
    return plain(plan.compute.name)


def _component(storage: Storage, plan: Outline) -> dict[str, Any]:
    x, y = storage.mesh
    attributes = memory_attributes(storage.memory, plan, "-") | {"instances": x * y, "meshX": x, "meshY": y}
    noc = storage.network
    for name, energy in (
        ("energy-per-hop", noc.energy_per_hop_pj),
        ("router-energy", noc.energy_per_router_pj),
        ("energy-per-ingress", noc.energy_per_ingress_pj),
    ):
        if energy:
            attributes[name] = energy
    return {"name": storage.name, "class": class_of(storage), "attributes": attributes}


def class_of(storage: Storage) -> str:
    """Return the class of a component."""
    return "dummy_storage" if storage.is_dummy else CLASSES[storage.memory.technology]


def memory_attributes(memory: Memory, plan: Outline, hyphen: str) -> dict[str, Any]:
    """Return Timeloop's attributes of a memory; `hyphen` joins the words of a key."""
    attributes: dict[str, Any] = {
        f"word{hyphen}bits": memory.word_bits,
        f"block{hyphen}size": memory.block_words,
        f"cluster{hyphen}size": memory.instances_per_macro,
        "width": memory.word_bits * memory.block_words * memory.instances_per_macro,
    }
    if memory.capacity_words is not None:
        attributes["entries"] = memory.capacity_words
    elif memory.technology != "dram":  # Timeloop aborts without it
        attributes["entries"] = 0 if memory.holds == () else _UNLIMITED
    values = {item.field: item.value for item in stated(memory.name, memory, None)}
    attributes |= {key.replace("-", hyphen): values[field] for field, (key, _) in NUMBERS.items() if field in values}
    for storage in plan.storage:
        if storage.memory.name == memory.power_gated_at:
            attributes["power_gated_at"] = storage.name
    return attributes | sparse_attributes(memory)


def energies(plan: Outline, path: str, compute_action: str) -> list[dict[str, Any]]:
    """Return the tables of an ERT; components are named below `path`."""
    assert plan.compute is not None
    tables = []
    for storage in plan.storage:
        memory = storage.memory
        given = {"read": memory.read_energy_pj, "write": memory.write_energy_pj}
        if memory.update_energy_pj is not None:
            given["random_update"] = memory.update_energy_pj
        given |= {actions[0]: getattr(memory, field) for field, actions in ENERGIES.items() if getattr(memory, field)}
        given |= sparse_energies(memory)
        tables.append({"name": f"{path}.{storage.name}", "actions": [_action(*item) for item in given.items()]})
    given = {compute_action: plan.compute.energy_per_operation_pj} | compute_energies(plan.compute, compute_action)
    tables.append({"name": f"{path}.{compute_name(plan)}", "actions": [_action(*item) for item in given.items()]})
    return tables


def _action(name: str, energy: float) -> dict[str, Any]:
    return {"name": name, "arguments": {}, "energy": energy}


def areas(plan: Outline, path: str) -> list[dict[str, Any]]:
    """Return the tables of an ART in square micrometres, with 0 for unknown areas.

    Without any area, Timeloop would call Accelergy.
    """
    assert plan.compute is not None
    parts = [(storage.name, storage.memory.area_um2) for storage in plan.storage]
    parts.append((compute_name(plan), plan.compute.area_um2))
    return [{"name": f"{path}.{name}", "area": area or 0} for name, area in parts]


def problem_data(problem: Problem, plan: Outline, hyphen: str) -> dict[str, Any]:
    """Return shape and instance; `hyphen` joins the words of a key.

    Timeloop requires names for coefficients other than 1; they are called Px2 and the like.
    """
    coefficients: dict[str, int] = {}

    def term(name: str, coefficient: int) -> list[str]:
        letter = plan.letters[name]
        if coefficient == 1:
            return [letter]
        coefficients[f"{letter}x{coefficient}"] = coefficient
        return [letter, f"{letter}x{coefficient}"]

    def rank(rank: Rank) -> list[list[str]]:
        return [term(name, coefficient) for name, coefficient in rank.terms.items()]

    spaces: list[dict[str, Any]] = []
    for tensor in problem.tensors:
        space: dict[str, Any] = {"name": tensor.name, "projection": [rank(r) for r in tensor.projection]}
        spaces.append(space | ({f"read{hyphen}write": True} if tensor.is_output else {}))
    shape: dict[str, Any] = {"name": problem.name, "dimensions": list(plan.letters.values())}
    if coefficients:
        shape["coefficients"] = [{"name": name, "default": value} for name, value in coefficients.items()]
    instance: dict[str, Any] = {plan.letters[name]: size for name, size in problem.dimensions.items()}
    densities = density_data(problem)
    if densities:
        instance["densities"] = densities
    return {"shape": shape | {f"data{hyphen}spaces": spaces}, "instance": instance}


def _directives(plan: Outline) -> Iterator[dict[str, Any]]:
    assert plan.problem is not None and plan.nests is not None
    for index, (storage, nest) in enumerate(zip(plan.storage, plan.nests, strict=True)):
        bypass = [name for name in plan.problem.tensor_names if name not in nest.keep]
        yield {"target": storage.name, "type": "bypass", "keep": list(nest.keep), "bypass": bypass}
        yield {
            "target": storage.name,
            "type": "temporal",
            "factors": " ".join(factors(nest.temporal, plan)),
            "permutation": "".join(plan.letters[name] for name in nest.temporal_permutation),
        }
        if plan.fanout(index) != (1, 1) or nest.x or nest.y:
            spatial: dict[str, Any] = {
                "target": storage.name,
                "type": "spatial",
                "factors": " ".join(factors([*nest.x, *nest.y], plan)),
                "permutation": "".join(plan.letters[name] for name in nest.spatial_permutation),
                "split": nest.split,
            }
            if nest.unicast:  # v3.0 supports the first name only, later versions the second
                spatial |= {"no_multicast_no_reduction": list(nest.unicast), "no_reuse": list(nest.unicast)}
            yield spatial | ({"no_link_transfer": list(nest.unlinked)} if nest.unlinked else {})


def _targets(plan: Outline, rules: list[LevelConstraint]) -> Iterator[dict[str, Any]]:
    for rule in rules:
        data: dict[str, Any] = {"target": plan.storage[rule.level].name, "type": rule.kind}
        if rule.kind == "bypass":
            yield data | {"keep": list(rule.keep), "bypass": list(rule.bypass)}
            continue
        if rule.factors:
            data["factors"] = " ".join(rule.factor_words(plan))
        if rule.permutation:
            data["permutation"] = "".join(plan.letters[name] for name in rule.permutation)
        yield data | ({} if rule.split is None else {"split": rule.split})


def factors(loops: list[LoopBounds], plan: Outline) -> list[str]:
    """Return a factor of every dimension: `K=4`, or `K=5,3` if the last has only 3."""
    by_dimension = {loop.dimension: loop for loop in loops}
    result = []
    for name, letter in plan.letters.items():
        loop = by_dimension.get(name, LoopBounds(name, 1, 1))
        result.append(f"{letter}={loop.end}" + (f",{loop.last}" if loop.last != loop.end else ""))
    return result

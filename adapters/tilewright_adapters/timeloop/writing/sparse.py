"""Rendering of sparse hardware and densities in Timeloop's notation, of v0.3 and v4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.schema.architecture import Compute, Memory
from tilewright.schema.density import Density
from tilewright.schema.problem import Problem
from tilewright.schema.sparse import MetadataStorage, RankFormat, Saving, SparseMemory, TensorFormat
from tilewright_adapters.timeloop.reading.sparse import ACTIONS
from tilewright_adapters.timeloop.writing.outline import Outline

_ROLES = ("input", "weight", "output")
_TYPES = {"gate": "gating", "skip": "skipping", "skip_units": "skipping{h}spatial"}
_FORMATS_OF_V4 = ("UOP", "CP", "B", "RLE")


def refuse_sparse(plan: Outline) -> None:
    """Add reasons why Timeloop's files cannot express the sparse hardware, or the densities."""
    for tensor in () if plan.problem is None else plan.problem.tensors:
        if tensor.density is not None and tensor.density.data is not None:
            plan.refuse("density", tensor.name, "actual data; public versions of Timeloop read none")
    for storage in plan.storage:
        sparse = storage.memory.sparse
        if sparse is None or plan.problem is not None:
            continue
        roles = [name for name in sparse.names if name in _ROLES]
        if roles:
            text = f"formats or savings of the roles {', '.join(roles)}; Timeloop has names, which need a problem"
            plan.refuse("sparse", storage.name, text)
        if any(rank.flatten == "all" for tensor_format in sparse.formats.values() for rank in tensor_format.ranks):
            plan.refuse("sparse", storage.name, "flattens all dimensions; Timeloop names them, which needs a problem")


def refuse_sparse_v4(plan: Outline) -> None:
    """Add reasons why v4 cannot express sparse hardware that v0.3 can."""
    for storage in plan.storage:
        sparse = storage.memory.sparse or SparseMemory()
        kinds = {rank.format for tensor_format in sparse.formats.values() for rank in tensor_format.ranks}
        for kind in sorted(kinds.difference(_FORMATS_OF_V4)):
            plan.refuse("sparse", storage.name, f"the format {kind}; v4 has {', '.join(_FORMATS_OF_V4)}")
        if any(action.kind == "skip_units" for action in sparse.actions):
            plan.refuse("sparse", storage.name, "skips in space; v4's own name of it aborts Timeloop")


def sparse_attributes(memory: Memory) -> dict[str, Any]:
    """Return the attributes of a memory's metadata storage."""
    sparse = memory.sparse
    if sparse is None:
        return {}
    attributes: dict[str, Any] = {}
    if sparse.metadata != MetadataStorage():
        attributes["metadata_datawidth"] = sparse.metadata.default_bits
        attributes["metadata_storage_width"] = sparse.metadata.width_bits
        attributes["metadata_storage_depth"] = sparse.metadata.depth
    given = {"decompression_supported": sparse.decompresses, "compression_supported": sparse.compresses}
    return attributes | {name: value for name, value in given.items() if value}


def sparse_energies(memory: Memory) -> dict[str, float]:
    """Return the energies of sparse actions by Timeloop's names, zeros included, so that none falls back to another."""
    if memory.sparse is None:
        return {}
    return {names[0]: memory.sparse.energy_pj(action) for action, names in ACTIONS.items()}


def compute_energies(compute: Compute, action: str) -> dict[str, float]:
    """Return the energies of gated and skipped operations; `action` is the name of the others'."""
    if compute.sparse is None:
        return {}
    stem = action.removesuffix("_random")
    return {f"{stem}_gated": compute.sparse.gated_pj, f"{stem}_skipped": compute.sparse.skipped_pj}


def sparse_memory(memory: Memory, plan: Outline, h: str) -> dict[str, Any]:
    """Return a memory's part of `sparse_optimizations`; `h` joins the words of a keyword."""
    if memory.sparse is None:
        return {}
    attributes: dict[str, Any] = {}
    formats = [_format(name, tensor_format, plan, h) for name, tensor_format in _formats(memory.sparse, plan)]
    if formats:
        attributes[f"representation{h}format"] = {f"data{h}spaces": formats}
    actions = memory.sparse.actions if plan.problem is None else memory.sparse.actions_on(plan.problem.tensors)
    if actions:
        attributes[f"action{h}optimization"] = [_action(action, h) for action in actions]
    return attributes


def sparse_compute(compute: Compute, h: str) -> dict[str, Any]:
    """Return the compute unit's part of `sparse_optimizations`."""
    if compute.sparse is None or not compute.sparse.is_active:
        return {}
    given = {"gating": compute.sparse.gate, "skipping": compute.sparse.skip}
    return {f"compute{h}optimization": [{"type": name} for name, has in given.items() if has]}


def density_data(problem: Problem) -> dict[str, Any]:
    """Return the densities of an instance by tensor; empty if there are none."""
    return {tensor.name: _density(tensor.density) for tensor in problem.tensors if tensor.density is not None}


def _density(density: Density) -> Any:
    if density.distribution == "banded":
        return {"distribution": "banded", "band_width": density.band_width}
    if density.distribution == "uniform":
        return {"distribution": "hypergeometric", "density": density.density}
    return density.density


def _formats(sparse: SparseMemory, plan: Outline) -> Iterator[tuple[str, TensorFormat]]:
    if plan.problem is None:
        yield from sparse.formats.items()
        return
    for tensor in plan.problem.tensors:
        tensor_format = sparse.format_of(tensor)
        if tensor_format is not None:
            yield tensor.name, tensor_format


def _format(name: str, tensor_format: TensorFormat, plan: Outline, h: str) -> dict[str, Any]:
    data: dict[str, Any] = {"name": name}
    if tensor_format.fill == "inner":
        data[f"rank{h}application{h}order"] = f"inner{h}to{h}outer"
    return data | {"ranks": [_rank(rank, plan, h) for rank in tensor_format.ranks]}


def _rank(rank: RankFormat, plan: Outline, h: str) -> dict[str, Any]:
    data: dict[str, Any] = {"format": rank.format}
    if rank.metadata_bits is not None:
        data[f"metadata{h}word{h}bits"] = rank.metadata_bits
    if rank.payload_bits is not None:  # Timeloop 3.0.3 has the name with `-` only, later ones that with `_`
        data |= {f"payload{h}word{h}bits": rank.payload_bits, "payload_word_bits": rank.payload_bits}
    if rank.flatten is not None:
        letters = plan.letters
        groups = [tuple(letters)] if rank.flatten == "all" else rank.flatten
        data[f"flattened{h}rankIDs"] = [[letters.get(name, name) for name in group] for group in groups]
    return data


def _action(saving: Saving, h: str) -> dict[str, Any]:
    kind = _TYPES[saving.kind].format(h=h)
    options = [{"target": option.tensor, f"condition{h}on": list(option.when_empty)} for option in saving.options]
    if len(options) == 1 and h == "-":
        return {"type": kind} | options[0]
    return {"type": kind, "options": options}

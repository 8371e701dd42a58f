"""Archives as torch.export.save writes them, made by hand from the published schema (major version 8)."""

import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Size = int | str


def meta(shape: Sequence[Size]) -> dict[str, Any]:
    sizes = [
        {"as_int": size} if isinstance(size, int) else {"as_expr": {"expr_str": size, "hint": None}} for size in shape
    ]
    return {"dtype": 7, "sizes": sizes, "requires_grad": False, "device": {"type": "cpu", "index": None}, "strides": []}


def argument(value: Any) -> dict[str, Any]:
    """Names of tensors are texts that begin with `%`."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, str):
        return {"as_tensor": {"name": value[1:]}} if value.startswith("%") else {"as_string": value}
    if isinstance(value, list) and value and isinstance(value[0], str):
        return {"as_tensors": [{"name": name[1:]} for name in value]}
    if isinstance(value, float):
        return {"as_float": value if math.isfinite(value) else str(value).replace("inf", "Infinity")}
    kind = "as_bool" if isinstance(value, bool) else "as_int" if isinstance(value, int) else "as_ints"
    return {kind: value}


def node(target: str, result: str, module: str = "", **arguments: Any) -> dict[str, Any]:
    """A call; what is left out has its default."""
    return {
        "target": f"torch.ops.{target}",
        "inputs": [{"name": name.rstrip("_"), "arg": argument(value), "kind": 1} for name, value in arguments.items()],
        "outputs": [{"as_tensor": {"name": result}}],
        "metadata": {"nn_module_stack": f"L__self__,,torch.nn.Module;key,{module},torch.nn.Module"} if module else {},
    }


def program(
    inputs: Sequence[str], tensors: Mapping[str, Sequence[Size]], nodes: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """`inputs`: those of `tensors` that users give; the others that no node makes are parameters."""
    outputs = [value for item in nodes for value in item["outputs"]]
    made = {one["name"] for value in outputs for one in value.get("as_tensors", [value.get("as_tensor")])}
    specs = [
        {"user_input": {"arg": {"as_tensor": {"name": name}}}}
        if name in inputs
        else {"parameter": {"arg": {"name": name}, "parameter_name": name}}
        for name in tensors
        if name not in made
    ]
    graph = {
        "inputs": [],
        "outputs": [],
        "nodes": list(nodes),
        "tensor_values": {name: meta(shape) for name, shape in tensors.items()},
        "sym_int_values": {},
        "sym_bool_values": {},
    }
    return {
        "graph_module": {
            "graph": graph,
            "signature": {"input_specs": specs, "output_specs": []},
            "module_call_graph": [],
        },
        "opset_version": {"aten": 10},
        "range_constraints": {},
        "schema_version": {"major": 8, "minor": 17},
        "torch_version": "2.9.0",
    }


def save(data: Any, path: Path, name: str = "net/models/model.json") -> str:
    """As an archive with some weights beside."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/archive_format", "pt2")
        archive.writestr("net/data/weights/weight_0", b"\0" * 100)
        archive.writestr(name, data if isinstance(data, str | bytes) else json.dumps(data))
    return str(path)

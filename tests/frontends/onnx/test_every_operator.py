"""Each operator of a file is a layer, a vector layer, moves words, or is listed with the reason why it is not counted."""

import re
import warnings
from collections import Counter
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, defs

from support.operator_files import FILES, NOT_COUNTED, text_of, write
from support.profiles import first
from support.real_networks import digest, read, recorded, shipped
from tilewright.errors import InputError
from tilewright.schema.vector import OPERATORS
from tilewright.schema.workload import Unmapped, Workload
from tilewright_frontends.onnx import _workload, read_file
from tilewright_frontends.onnx.graph import graph_of
from tilewright_frontends.onnx.unmapped import CONTROL, PLUMBING

KNOWN = [
    name
    for name in FILES
    if all(defs.has(kind) or kind.startswith("Simplified") for kind in re.findall(r" = ([A-Z]\w+)[ (]", text_of(name)))
]
"""Files whose operators the installed onnx has."""
VAGUE = {
    "works element by element",
    "a reduction without weights",
    "a window without weights",
    "not a product of tensors over affine loops",
}
"""Reasons why an operator is no product, which do not say why it is not counted."""


ELSEWHERE = {
    *("SwiGLU", "GeGLU", "SelectiveScan", "ReduceVariance"),  # several operators in ONNX
    *("SoftmaxBlock", "SoftmaxRescale", "SoftmaxScale"),  # parts of a softmax in groups
    "CumProd",  # since opset 26
}
"""Operators of the table that the files do not have."""


def kinds_of(work: Workload, model: ModelProto) -> dict[str, str]:
    """Return for each operator of a file how it is counted, after a check that it is in one place and no more."""
    counts = Counter(name for vector in work.vectors for name in vector.operators)
    assert set(counts) <= {part.name for part in work.unmapped} and set(counts.values()) <= {1}
    kinds = dict[str, str]()
    for node in model.graph.node:
        layers = [layer for layer in work.layers if layer.origin and layer.origin.output == node.output[0]]
        parts = [part for part in work.unmapped if part.origin and part.origin.output == node.output[0]]
        assert layers or len(parts) == 1, f"{node.op_type} of {node.output[0]} is missing"
        left = [part for part in parts if part.name not in counts]
        assert all(part.operations == 0 or told(part) for part in left), left
        reasons = "; ".join(part.reason for part in left if part.operations != 0)
        vectors = "vector" if not left else reasons or "moves"
        kinds[node.output[0]] = reasons or "layer" if layers else vectors
    return kinds


def told(part: Unmapped) -> bool:
    """Return whether an operator that is not counted says why."""
    return part.reason not in VAGUE and len(part.reason) > 10


@pytest.mark.parametrize("name", first(4, *KNOWN[::-1]))
def test_files_with_every_operator(name: str, tmp_path: Path) -> None:
    path = write(name, tmp_path)
    model = onnx.load(str(path))
    work = read_file(path, name, path.name, None, {})
    kinds = kinds_of(work, model)
    expected = NOT_COUNTED.get(name, {})
    for node in model.graph.node:
        kind = kinds[node.output[0]]
        if kind not in ("layer", "vector"):
            assert (kind == "moves" and node.op_type in PLUMBING | {"Resize"}) or expected[node.op_type] in kind
    said = [kind for kind in kinds.values() if kind not in ("layer", "vector", "moves")]
    assert len(said) == len(expected)


@pytest.mark.exhaustive
def test_the_files_have_every_operator_of_the_table(tmp_path: Path) -> None:
    works = [read_file(write(name, tmp_path), name, name, None, {}) for name in KNOWN]
    counted = {vector.operator for work in works for vector in work.vectors}
    left = set(OPERATORS) - counted - ELSEWHERE
    assert len(FILES) == 20 and (len(KNOWN) < 20 or not left)


@pytest.mark.parametrize("path", first(1, *shipped()))
def test_exported_networks(path: Path) -> None:
    """Files that come with onnx: nine networks, and 140 exports of modules of PyTorch and other programs."""
    work = read(path)
    kinds_of(work, onnx.load(str(path)))
    if (key := digest(path)) in recorded():  # other releases of onnx may have other files
        assert (sum(layer.count for layer in work.layers), work.macs) == recorded()[key]


@pytest.mark.exhaustive
def test_the_examples_of_onnx() -> None:
    """The node tests of onnx's specification, about 1,900 of all operators."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [case.model for case in collect_testcases(None) if case.model is not None]
    counts = Counter[str]()
    for model in models:
        try:
            work = _workload(graph_of(model, "node", {}), "node", "node")
        except InputError:
            counts["refused"] += 1
            continue
        counted = {name for vector in work.vectors for name in vector.operators}
        for part in work.unmapped:
            is_listed = part.name not in counted and part.operations != 0
            assert not is_listed or told(part), part
            counts["listed" if is_listed else "counted"] += 1
    assert counts["counted"] > 10_000 and counts["refused"] < 10, counts
    assert not PLUMBING & CONTROL

"""Vector layers of ATen's operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.schema.origin import Origin
from tilewright.schema.vector import VectorLayer
from tilewright_frontends.nests import Shape
from tilewright_frontends.pt2.moves import tensors_in
from tilewright_frontends.vectors import NO_ROW, NO_SHAPE, SOFTMAX, vector_layer

NAMES: Mapping[str, str] = {
    **{
        name: name.capitalize()
        for name in "relu sigmoid tanh elu mish softplus gelu erf exp log sin cos floor ceil round".split()
    },
    **{name: name.capitalize() for name in "add sub mul div neg abs sqrt reciprocal pow where".split()},
    **dict.fromkeys("relu6 hardtanh clamp clamp_min clamp_max".split(), "Clip"),
    "silu": "Swish",
    "leaky_relu": "LeakyRelu",
    "hardsigmoid": "HardSigmoid",
    "hardswish": "HardSwish",
    "rsub": "Sub",
    "rsqrt": "Sqrt",
    "square": "Mul",
    "maximum": "Max",
    "minimum": "Min",
    "eq": "Equal",
    "gt": "Greater",
    "lt": "Less",
    "ge": "GreaterOrEqual",
    "le": "LessOrEqual",
    **dict.fromkeys(("softmax", "_softmax"), "Softmax"),
    **dict.fromkeys(("log_softmax", "_log_softmax"), "LogSoftmax"),
    **dict.fromkeys(("layer_norm", "native_layer_norm"), "LayerNormalization"),
    "rms_norm": "RMSNormalization",
    **dict.fromkeys(("batch_norm", "_native_batch_norm_legit_no_training", "native_batch_norm"), "BatchNormalization"),
    **dict.fromkeys(("group_norm", "native_group_norm"), "GroupNormalization"),
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "prod": "ReduceProd",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
    **dict.fromkeys("adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d".split(), "GlobalAveragePool"),
    **dict.fromkeys("max_pool1d max_pool2d max_pool2d_with_indices max_pool3d".split(), "MaxPool"),
    **dict.fromkeys("avg_pool1d avg_pool2d avg_pool3d".split(), "AveragePool"),
    "topk": "TopK",
}
"""Operator of ATen -> the name of the same work in the table of operations."""


def vector_of(
    operator: str,
    arguments: Mapping[str, Any],
    shape_of: Callable[[str], Shape | None],
    results: Sequence[str],
    name: str,
    origin: Origin,
    times: int = 1,
) -> VectorLayer | str:
    """Return the vector layer of an operator, or why it has none.

    Args:
        arguments: tensors by name, and constants, as ATen's schema names them.
        shape_of: returns the shape of a tensor; None: not known.
    """
    kind = NAMES.get(operator.rstrip("_") if not operator.endswith("__") else operator)
    read = list(tensors_in(arguments.values()))
    shapes = [shape for value in read if (shape := shape_of(value)) is not None]
    result = shape_of(results[0]) if results else None
    if kind is None:
        return NO_ROW
    if result is None or not shapes or len(shapes) < len(read):
        return NO_SHAPE
    data, row, first = shapes[0], 1, 1
    if kind == "Pow" and (arguments.get("exponent") == 2 or arguments.get("argument1") == 2):
        kind = "Mul"
    if kind in SOFTMAX:
        row = data[int(arguments.get("dim", -1))]
    elif kind in ("LayerNormalization", "RMSNormalization"):
        row = math.prod(arguments.get("normalized_shape") or data[-1:])
    elif kind == "GroupNormalization":
        groups = arguments.get("num_groups", arguments.get("group", 1))
        row = math.prod(data[1:]) // max(int(groups), 1)
    elif kind in ("MaxPool", "AveragePool"):
        size = arguments.get("kernel_size", arguments.get("argument1"))
        axes = int(operator.partition("pool")[2][:1] or 1)
        row = size**axes if isinstance(size, int) else math.prod(size or ()) ** (axes if len(size or ()) == 1 else 1)
    elif kind == "TopK":
        first = int(arguments.get("k", 1))
    operands = [(shape, place > 0 and kind.endswith("Normalization")) for place, shape in enumerate(shapes)]
    return vector_layer(name, kind, operands, result, row=row, first=first, count=times, origin=origin)

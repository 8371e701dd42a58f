"""Vector layers of ATen's operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.schema.origin import Origin
from tilewright.schema.vector import VectorLayer
from tilewright_frontends.nests import Shape
from tilewright_frontends.pt2.moves import tensors_in
from tilewright_frontends.vectors import NO_ROW, NO_SHAPE, SOFTMAX, Fused, unless_contradicting, vector_layer

NAMES: Mapping[str, str] = {
    **{
        name: name.capitalize()
        for name in "relu sigmoid tanh elu selu celu mish softplus gelu erf exp log sin cos tan floor ceil round sign".split()
    },
    **{name: name.capitalize() for name in "asin acos atan sinh cosh asinh acosh atanh".split()},
    **dict.fromkeys("log2 log10".split(), "Log"),
    **dict.fromkeys("exp2".split(), "Exp"),
    **dict.fromkeys("trunc frac".split(), "Round"),
    **dict.fromkeys("remainder fmod".split(), "Mod"),
    **dict.fromkeys("hardshrink softshrink".split(), "Shrink"),
    **dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), "BitShift"),
    **{f"logical_{name}": name.capitalize() for name in ("and", "or", "xor", "not")},
    **{f"bitwise_{name}": f"Bitwise{name.capitalize()}" for name in ("and", "or", "xor", "not")},
    "ne": "Equal",
    "isnan": "IsNaN",
    "isinf": "IsInf",
    "threshold": "ThresholdedRelu",
    "prelu": "PRelu",
    "sgn": "Sign",
    "masked_fill": "Where",
    "log_sigmoid": "Softplus",
    **dict.fromkeys("quantize_per_tensor quantize_per_channel".split(), "QuantizeLinear"),
    **dict.fromkeys("dequantize_per_tensor dequantize_per_channel".split(), "DequantizeLinear"),
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
    "var": "ReduceVariance",
    "logsumexp": "ReduceLogSumExp",
    **dict.fromkeys(("any", "all"), "ReduceMax"),
    **dict.fromkeys(("norm", "linalg_vector_norm"), "ReduceL2"),
    "cumsum": "CumSum",
    "cumprod": "CumProd",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
    **dict.fromkeys("adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d".split(), "GlobalAveragePool"),
    **dict.fromkeys("max_pool1d max_pool2d max_pool2d_with_indices max_pool3d".split(), "MaxPool"),
    **dict.fromkeys("avg_pool1d avg_pool2d avg_pool3d".split(), "AveragePool"),
    **dict.fromkeys("adaptive_max_pool1d adaptive_max_pool2d".split(), "GlobalMaxPool"),
    **dict.fromkeys(("instance_norm", "_native_batch_norm_legit"), "InstanceNormalization"),
    "upsample_bilinear2d": "Resize",
    "topk": "TopK",
}
"""Operator of ATen -> the name of the same work in the table of operations."""
FUSED = {
    "log1p": Fused(("Add",), "Log"),
    "expm1": Fused((), "Exp", ("Sub",)),
    "std": Fused((), "ReduceVariance", ("Sqrt",)),
    "var_mean": Fused((), "ReduceVariance"),
    "glu": Fused(("Sigmoid",), "Mul"),
    "addcmul": Fused(("Mul", "Mul"), "Add"),
    "addcdiv": Fused(("Div", "Mul"), "Add"),
    "lerp": Fused(("Sub", "Mul"), "Add"),
    "fake_quantize_per_tensor_affine": Fused((), "DequantizeLinear", ("QuantizeLinear",)),
}
"""Operator of ATen -> the operators whose work it does at once."""
WHY = {
    **dict.fromkeys(
        "_fft_r2c _fft_c2c _fft_c2r stft istft linalg_inv_ex linalg_eigh".split(),
        "it contains products, which are not mapped",
    ),
    **dict.fromkeys("sort argsort nonzero unique _unique2 unique_dim bincount".split(), "its work depends on the data"),
    **dict.fromkeys("rand randn rand_like randn_like randint bernoulli multinomial".split(), "it draws random numbers"),
    **dict.fromkeys(
        "grid_sampler grid_sampler_2d grid_sampler_3d affine_grid_generator".split(),
        "it reads at positions that are computed",
    ),
}
"""Operator of ATen -> why the table of operations has no row for it."""


@unless_contradicting
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
    plain = operator.rstrip("_") if not operator.endswith("__") else operator
    fused = FUSED.get(plain)
    kind = fused.main if fused else NAMES.get(plain)
    if plain in ("max", "min"):  # of two tensors, or along an axis
        kind = f"{'' if 'other' in arguments else 'Reduce'}{plain.capitalize()}"
    read = list(tensors_in(arguments.values()))
    shapes = [shape for value in read if (shape := shape_of(value)) is not None]
    result = shape_of(results[0]) if results else None
    if kind is None:
        return WHY.get(plain, NO_ROW)
    if result is None or not shapes or len(shapes) < len(read):
        return NO_SHAPE
    data, row, first = shapes[0], 1, 1
    if kind == "Pow" and (arguments.get("exponent") == 2 or arguments.get("argument1") == 2):
        kind = "Mul"
    if kind in SOFTMAX and data:
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
    elif kind == "InstanceNormalization":
        row = math.prod(data[2:] if plain == "instance_norm" else (data[0], *data[2:]))
    elif kind == "Resize":
        row = 4
    elif kind == "TopK":
        first = int(arguments.get("k", 1))
    operands = [(shape, place > 0 and kind.endswith("Normalization")) for place, shape in enumerate(shapes)]
    return vector_layer(
        name, fused or kind, operands, result, row=row, first=first, count=times, origin=origin, called=plain
    )

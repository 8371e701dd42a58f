"""Registration of the built-in algorithms; an algorithm's module is imported when it is built."""

from __future__ import annotations

from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import AlgorithmSpec, lazy


@hookimpl
def tilewright_plugins() -> list[AlgorithmSpec]:
    """Return the built-in algorithms."""
    return [
        AlgorithmSpec(
            name="native",
            summary="The unchanged problem: its own loop nest.",
            factory=lazy("tilewright_algorithms.native", "Native"),
            interface=1,
        ),
        AlgorithmSpec(
            name="ttgt",
            summary="Contractions of two tensors as one matrix product between transpositions (COMET, Union).",
            factory=lazy("tilewright_algorithms.ttgt", "Ttgt"),
            interface=1,
        ),
        AlgorithmSpec(
            name="im2col",
            summary="Convolutions as one matrix product: the input's windows are copied to a matrix, or gathered while reading.",
            factory=lazy("tilewright_algorithms.im2col", "Im2col"),
            interface=1,
        ),
        AlgorithmSpec(
            name="loop_over_gemm",
            summary="Contractions of two tensors as loops around a matrix product of slices; nothing is transposed.",
            factory=lazy("tilewright_algorithms.loops", "LoopOverGemm"),
            interface=1,
        ),
        AlgorithmSpec(
            name="space_to_depth",
            summary="Convolutions with strides as ones of stride 1: the phases of a stride become channels (NVDLA).",
            factory=lazy("tilewright_algorithms.strides", "SpaceToDepth"),
            interface=1,
        ),
    ]

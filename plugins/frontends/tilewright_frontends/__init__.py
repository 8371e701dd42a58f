"""Registration of the built-in frontends; a frontend's module is imported when it is built."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import FrontendSpec, Options, lazy
from tilewright_frontends.transformer_sizes import NETWORKS as TRANSFORMERS

NETWORKS = {
    "resnet50": "ResNet-50, 224x224",
    "vgg19": "VGG-19, 224x224",
    "inception_v1": "Inception v1 (GoogLeNet), 224x224",
    "inception_v2": "Inception v2, 224x224",
    "densenet121": "DenseNet-121, 224x224",
    "squeezenet": "SqueezeNet 1.1, 224x224",
    "shufflenet": "ShuffleNet v1, 224x224",
    "alexnet": "AlexNet (BVLC), 224x224",
    "zfnet": "ZFNet-512, 224x224",
}
"""Networks in the onnx package: graphs without weights, from its backend tests.

Their pooling operators round down, so some tensors are smaller by one row than in the papers. For
Inception v1 the sizes are 55, 27, 13, 6 instead of 56, 28, 14, 7.
"""


MAX_SIZE = 2**31
"""Largest size or stride in a list of layers."""
Sizes = dict[str, Annotated[int, Field(ge=1)]]


class FileOptions(Options):
    """Options of frontends that read files: sizes that a file leaves open."""

    batch: int | None = Field(default=None, ge=1, description="size of the first dimension of the inputs")
    sizes: Sizes = Field(default_factory=dict, description="sizes of named dynamic dimensions")


class OnnxOptions(FileOptions):
    """Options of `onnx`."""

    density: Literal["from-weights"] | None = Field(
        default=None, description="from-weights: densities of weights are the fractions of nonzeros in the model"
    )
    branches: dict[str, Literal["then", "else"]] = Field(
        default_factory=dict, description="branches of `If` operators that data decide, by the operator's name"
    )


class MlirOptions(FileOptions):
    """Options of `mlir`."""

    sizes: Sizes = Field(
        default_factory=dict, description="sizes of dynamic dimensions, such as arg0_1: axis 1 of the first argument"
    )


class Pt2Options(FileOptions):
    """Options of `pt2`."""

    sizes: Sizes = Field(default_factory=dict, description="sizes of symbols, such as s0")


class ScaleSimOptions(FileOptions):
    """Options of `scalesim`."""

    batch: int | None = Field(default=None, ge=1, le=MAX_SIZE, description="inputs of each convolution")
    sizes: dict[str, Annotated[int, Field(ge=1, le=MAX_SIZE)]] = Field(
        default_factory=dict, description="sizes of letters in the table, such as B"
    )


class CometOptions(Options):
    """Options of `comet`."""

    sizes: dict[str, Annotated[int, Field(ge=1, le=MAX_SIZE)]] = Field(
        default_factory=dict, description="sizes of labels that the file leaves open ([?])"
    )


class TransformerOptions(Options):
    """Options of `transformers`: sizes other than the defaults."""

    batch: int | None = Field(default=None, ge=1, description="number of sequences or pictures")
    sizes: Sizes = Field(
        default_factory=dict, description="seq: tokens per pass; cache: tokens with cached keys and values; batch"
    )


@hookimpl
def tilewright_plugins() -> list[FrontendSpec]:
    """Return the built-in frontends."""
    return [
        FrontendSpec(
            name="einsum",
            summary="One line: 'O[n,k,p,q] += I[n,c,p+r,q+s] * W[k,c,r,s]; n=1 k=8 ...', or numpy.einsum's short form.",
            factory=lazy("tilewright_frontends.einsum", "EinsumFrontend"),
            interface=1,
        ),
        FrontendSpec(
            name="onnx",
            summary="ONNX models: convolutions and matrix products are mapped, other operators listed.",
            factory=lazy("tilewright_frontends.onnx", "OnnxFrontend"),
            interface=1,
            options=OnnxOptions,
            needs=("onnx",),
            hint="pip install onnx",
            suffixes=(".onnx",),
            library={name: f"{text}; graph from the onnx package's backend tests" for name, text in NETWORKS.items()},
        ),
        FrontendSpec(
            name="mlir",
            summary="MLIR modules (StableHLO, TOSA, linalg, affine, torch, TensorFlow, onnx-mlir, COMET): tensor products are mapped, others listed.",
            factory=lazy("tilewright_frontends.mlir", "MlirFrontend"),
            interface=1,
            options=MlirOptions,
            needs=("xdsl",),
            hint="pip install xdsl",
            suffixes=(".mlir",),
        ),
        FrontendSpec(
            name="pt2",
            summary="Programs of torch.export.save, read without torch: convolutions and products are mapped, other operators listed.",
            factory=lazy("tilewright_frontends.pt2", "Pt2Frontend"),
            interface=1,
            options=Pt2Options,
            suffixes=(".pt2",),
        ),
        FrontendSpec(
            name="comet",
            summary="COMET's language for tensor algebra (.ta): products of dense tensors are mapped, other operations listed.",
            factory=lazy("tilewright_frontends.comet", "CometFrontend"),
            interface=1,
            options=CometOptions,
            suffixes=(".ta",),
        ),
        FrontendSpec(
            name="scalesim",
            summary="Topologies of SCALE-Sim and uSystolic-Sim (CSV): each row is a convolution, or a product of matrices.",
            factory=lazy("tilewright_frontends.scalesim", "ScaleSimFrontend"),
            interface=1,
            options=ScaleSimOptions,
            suffixes=(".csv",),
        ),
        FrontendSpec(
            name="dmazerunner",
            summary="Networks of dMazeRunner (JSON): convolutions, depthwise convolutions, products of matrices.",
            factory=lazy("tilewright_frontends.dmazerunner", "DMazeRunnerFrontend"),
            interface=1,
            suffixes=(".json",),
        ),
        FrontendSpec(
            name="interstellar",
            summary="Layers of Interstellar's scheduler (JSON): one convolution in a file.",
            factory=lazy("tilewright_frontends.interstellar", "InterstellarFrontend"),
            interface=1,
            suffixes=(".json",),
        ),
        FrontendSpec(
            name="transformers",
            summary="Language models from the config.json of their files, and published transformers from their sizes.",
            factory=lazy("tilewright_frontends.transformers", "TransformersFrontend"),
            interface=1,
            options=TransformerOptions,
            suffixes=(".json",),
            library={name: f"{network.summary}; sizes as published" for name, network in TRANSFORMERS.items()},
        ),
    ]

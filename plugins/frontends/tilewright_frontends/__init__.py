"""Built-in frontends. Only names and options live here; a frontend is imported when it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import FrontendSpec

if TYPE_CHECKING:
    from tilewright.plugin.frontend import Frontend

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
"""Graphs without weights that ship in the onnx package for its backend tests. Their poolings round down, so some maps
are a row smaller than in the papers (Inception v1: 55, 27, 13, 6 for 56, 28, 14, 7)."""


class OnnxOptions(BaseModel):
    """Options of `onnx`: sizes for what the model leaves open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int | None = Field(default=None, ge=1, description="size of the first dimension of the inputs")
    sizes: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict, description="sizes of named dynamic dimensions"
    )


def _einsum(options: BaseModel) -> Frontend:
    from tilewright_frontends.einsum import EinsumFrontend

    return EinsumFrontend()


def _onnx(options: OnnxOptions) -> Frontend:
    from tilewright_frontends.onnx import OnnxFrontend

    return OnnxFrontend(options.batch, options.sizes)


@hookimpl
def tilewright_plugins() -> list[FrontendSpec]:
    """The built-in frontends."""
    return [
        FrontendSpec(
            name="einsum",
            summary="One line: 'O[n,k,p,q] += I[n,c,p+r,q+s] * W[k,c,r,s]; n=1 k=8 ...', or numpy.einsum's short form.",
            factory=_einsum,
        ),
        FrontendSpec(
            name="onnx",
            summary="ONNX models: convolutions and matrix products mapped, all else listed.",
            factory=_onnx,
            options=OnnxOptions,
            needs=("onnx",),
            hint="pip install onnx",
            suffixes=(".onnx",),
            library={name: f"{text}; graph from the onnx package's backend tests" for name, text in NETWORKS.items()},
        ),
    ]

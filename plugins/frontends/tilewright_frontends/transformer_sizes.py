"""Block sizes of published transformers, with sources. Kept free of imports from the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Block:
    """One kind of block, repeated `count` times. Widths are in channels.

    Attributes:
        count: number of blocks.
        hidden: width of a token.
        heads: number of query heads.
        mlp: width of the MLP.
        shared: number of query heads that share keys and values (grouped-query attention).
        head: width of one head.
        gated: whether the MLP has a gate in addition to its first matrix.
        experts: number of MLPs.
        active: number of MLPs that process each token.
        across: tokens of another stack that cross-attention reads; 0: no cross-attention.
        cached: whether keys and values of earlier tokens are kept.
    """

    count: int
    hidden: int
    heads: int
    mlp: int
    shared: int = 1
    head: int = 64
    gated: bool = False
    experts: int = 1
    active: int = 1
    across: int = 0
    cached: bool = False


@dataclass(frozen=True)
class Network:
    """A published network.

    Attributes:
        summary: one line of description.
        stacks: name -> block, and its tokens; 0 tokens: `seq`.
        seq: default number of tokens per pass; None: the number is fixed.
        source: publication with the sizes.
        head: name and output channels of the last product, and whether it applies to every token (else to one).
        pictures: convolutions before the first stack: name -> output channels, input channels,
            positions, window, stride.
    """

    summary: str
    stacks: Mapping[str, tuple[Block, int]]
    seq: int | None
    source: str
    head: tuple[str, int, bool] | None = None
    pictures: Mapping[str, tuple[int, int, tuple[int, ...], tuple[int, ...], int]] = field(default_factory=dict)


NETWORKS: dict[str, Network] = {
    "bert_base": Network(
        "BERT base, encoder, 512 tokens",
        {"encoder": (Block(12, 768, 12, 3072), 0)},
        512,
        "Devlin et al., NAACL 2019, section 3",
        ("pooler", 768, False),
    ),
    "bert_large": Network(
        "BERT large, encoder, 512 tokens",
        {"encoder": (Block(24, 1024, 16, 4096), 0)},
        512,
        "Devlin et al., NAACL 2019, section 3",
        ("pooler", 1024, False),
    ),
    "vit_b16": Network(
        "ViT-B/16, 224x224, 197 tokens",
        {"encoder": (Block(12, 768, 12, 3072), 197)},
        None,
        "Dosovitskiy et al., ICLR 2021, table 1; 196 patches of 16 x 16 and a class token",
        ("classes", 1000, False),
        {"patches": (768, 3, (14, 14), (16, 16), 16)},
    ),
    "gpt2": Network(
        "GPT-2 (124 M), 1,024 tokens",
        {"decoder": (Block(12, 768, 12, 3072, cached=True), 0)},
        1024,
        "Radford et al., 2019, table 2, the smallest; 12 heads",
        ("vocabulary", 50257, True),
    ),
    "gpt3_6_7b": Network(
        "GPT-3 6.7B, 2,048 tokens",
        {"decoder": (Block(32, 4096, 32, 16384, head=128, cached=True), 0)},
        2048,
        "Brown et al., NeurIPS 2020, table 2.1",
        ("vocabulary", 50257, True),
    ),
    "llama3_8b": Network(
        "Llama 3 8B, 2,048 tokens",
        {"decoder": (Block(32, 4096, 32, 14336, shared=4, head=128, gated=True, cached=True), 0)},
        2048,
        "Grattafiori et al., The Llama 3 herd of models, 2024, table 3",
        ("vocabulary", 128256, True),
    ),
    "llama3_70b": Network(
        "Llama 3 70B, 2,048 tokens",
        {"decoder": (Block(80, 8192, 64, 28672, shared=8, head=128, gated=True, cached=True), 0)},
        2048,
        "Grattafiori et al., The Llama 3 herd of models, 2024, table 3",
        ("vocabulary", 128256, True),
    ),
    "mixtral_8x7b": Network(
        "Mixtral 8x7B, two of eight experts, 2,048 tokens",
        {
            "decoder": (
                Block(32, 4096, 32, 14336, shared=4, head=128, gated=True, experts=8, active=2, cached=True),
                0,
            )
        },
        2048,
        "Jiang et al., Mixtral of experts, 2024, table 1",
        ("vocabulary", 32000, True),
    ),
    "whisper_small": Network(
        "Whisper small, 30 s of sound, 448 tokens",
        {
            "encoder": (Block(12, 768, 12, 3072), 1500),
            "decoder": (Block(12, 768, 12, 3072, across=1500, cached=True), 0),
        },
        448,
        "Radford et al., ICML 2023, table 1; 30 s of sound, 3,000 frames of 80 channels, halved",
        ("vocabulary", 51865, True),
        {"conv1": (768, 80, (3000,), (3,), 1), "conv2": (768, 768, (1500,), (3,), 2)},
    ),
}

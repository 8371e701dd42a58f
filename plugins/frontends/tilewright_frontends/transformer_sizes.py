"""Block sizes of published transformers and state spaces, with sources. Kept free of imports from the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True)
class Latent:
    """Widths of latent attention: keys and values of all heads are products of one vector, which is cached.

    Attributes:
        query: the vector that queries are products of; 0: the token itself.
        keys: the vector of keys and values.
        position: the part of queries and keys with the position, in addition to a head; all heads share that of the keys.
        value: values of one head.
    """

    query: int
    keys: int
    position: int
    value: int


@dataclass(frozen=True)
class StateSpace:
    """Blocks with a selective state space instead of attention (Mamba).

    Attributes:
        count: number of blocks.
        hidden: width of a token.
        inner: channels of the convolution and of the states.
        state: states of one channel.
        rank: width that the time steps of all channels are products of.
        window: taps of the convolution over tokens.
    """

    count: int
    hidden: int
    inner: int
    state: int
    rank: int
    window: int
    cached: ClassVar[bool] = True
    experts: ClassVar[int] = 1

    @property
    def states(self) -> int:
        """Values of one sequence that all blocks keep: their states, and the earlier inputs of a window."""
        return self.count * self.inner * (self.state + self.window - 1)


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
        always: number of further MLPs, which process every token.
        across: tokens of another stack that cross-attention reads; 0: no cross-attention.
        cached: whether keys and values of earlier tokens are kept.
        latent: widths of latent attention; None: keys and values have matrices of their own.
        norm_last: whether a norm follows each residual addition, instead of being in front of attention and MLP.
        window: tokens whose keys a query reads, its own included; 0: all.
        gate: operator of gated MLPs.
        head_norms: whether queries and keys have norms of their own.
        capped: whether a hyperbolic tangent bounds the scores.
        inner_norms: whether a norm follows attention and MLP, in front of the additions.
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
    always: int = 0
    across: int = 0
    cached: bool = False
    latent: Latent | None = None
    norm_last: bool = False
    window: int = 0
    gate: str = "SwiGLU"
    head_norms: bool = False
    capped: bool = False
    inner_norms: bool = False

    @property
    def groups(self) -> int:
        """Heads of keys and values."""
        return self.heads // self.shared

    def cache(self, tokens: int) -> int:
        """Return the values that all blocks keep of one sequence after some tokens."""
        pair = 2 * self.groups * self.head
        tokens = min(tokens, self.window or tokens)
        words = self.latent.keys + self.latent.position if self.latent else pair
        return self.count * (words * tokens + pair * self.across) if self.cached else 0


@dataclass(frozen=True)
class Network:
    """A published network.

    Attributes:
        summary: one line of description.
        stacks: name -> block, and its tokens; 0 tokens: `seq`.
        seq: default number of tokens per pass; None: the number is fixed.
        source: publication with the sizes.
        head: name and output channels of the last product, and whether it applies to every token (else to one).
        tied: whether the matrix of the last product is that of the look-up of tokens, too.
        pictures: convolutions before the first stack: name -> output channels, input channels,
            positions, window, stride.
    """

    summary: str
    stacks: Mapping[str, tuple[Block | StateSpace, int]]
    seq: int | None
    source: str
    head: tuple[str, int, bool] | None = None
    tied: bool = False
    pictures: Mapping[str, tuple[int, int, tuple[int, ...], tuple[int, ...], int]] = field(default_factory=dict)

    @property
    def keeps(self) -> bool:
        """Whether it keeps anything from token to token: it generates tokens."""
        return any(block.cached for block, _ in self.stacks.values())


_DEEPSEEK = Latent(query=1536, keys=512, position=64, value=128)

NETWORKS: dict[str, Network] = {
    "bert_base": Network(
        "BERT base, encoder, 512 tokens",
        {"encoder": (Block(12, 768, 12, 3072, norm_last=True), 0)},
        512,
        "Devlin et al., NAACL 2019, section 3",
        ("pooler", 768, False),
    ),
    "bert_large": Network(
        "BERT large, encoder, 512 tokens",
        {"encoder": (Block(24, 1024, 16, 4096, norm_last=True), 0)},
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
        pictures={"patches": (768, 3, (14, 14), (16, 16), 16)},
    ),
    "gpt2": Network(
        "GPT-2 (124 M), 1,024 tokens",
        {"decoder": (Block(12, 768, 12, 3072, cached=True), 0)},
        1024,
        "Radford et al., 2019, table 2, the smallest; 12 heads",
        ("vocabulary", 50257, True),
        tied=True,
    ),
    "gpt3_6_7b": Network(
        "GPT-3 6.7B, 2,048 tokens",
        {"decoder": (Block(32, 4096, 32, 16384, head=128, cached=True), 0)},
        2048,
        "Brown et al., NeurIPS 2020, table 2.1",
        ("vocabulary", 50257, True),
        tied=True,
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
        tied=True,
        pictures={"conv1": (768, 80, (3000,), (3,), 1), "conv2": (768, 768, (1500,), (3,), 2)},
    ),
    "deepseek_v3": Network(
        "DeepSeek-V3, eight of 256 experts, 2,048 tokens",
        {
            "dense": (Block(3, 7168, 128, 18432, head=128, gated=True, cached=True, latent=_DEEPSEEK), 0),
            "decoder": (
                Block(
                    58, 7168, 128, 2048, 1, 128, True, experts=256, active=8, always=1, cached=True, latent=_DEEPSEEK
                ),
                0,
            ),
        },
        2048,
        "DeepSeek-AI, DeepSeek-V3 technical report, 2024, section 4.2; dense MLP and vocabulary are of its configuration",
        ("vocabulary", 129280, True),
    ),
    "mamba_2_8b": Network(
        "Mamba 2.8B, 2,048 tokens",
        {"decoder": (StateSpace(64, 2560, 5120, 16, 160, 4), 0)},
        2048,
        "Gu and Dao, Mamba, 2023; the sizes are those of its published configuration",
        ("vocabulary", 50280, True),
        tied=True,
    ),
}

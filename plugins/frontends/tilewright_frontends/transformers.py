"""`transformers`: networks of transformer blocks, made from their published sizes: no file, no weights.

Blocks that are alike stand once, with their number as the layers' count. Tokens that pass at a time (`seq`), tokens whose keys
and values are cached (`cache`) and the batch are sizes: `seq=2048` is a prefill, `seq=1 cache=2047` one step of decoding.
Every product of every token is counted, masked or not. Norms, softmax, activations and look-ups are listed, not mapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tilewright.errors import InputError
from tilewright.schema.document import suggestion
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright_frontends import TransformerOptions, nests


@dataclass(frozen=True)
class Block:
    """One kind of block, `count` times. Widths are in channels.

    Attributes:
        hidden: of a token.
        heads, shared: of queries; and how many of them share keys and values (grouped-query attention).
        head: of one head.
        mlp, gated: of the MLP; whether it has a gate beside its first matrix.
        experts, active: MLPs of which every token takes some.
        across: tokens of another stack that a cross-attention reads; 0: there is none.
        cached: keys and values of earlier tokens are kept.
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
        stacks: name -> blocks and tokens of it; 0 tokens: `seq` says.
        seq: tokens that pass at a time where nobody says; None: they are fixed.
        pictures: convolutions before the first stack: name -> channels out, channels in, positions, window, stride.
        head: name, channels out, and whether of every token (else of one) at the end.
        source: where the sizes are from.
    """

    stacks: Mapping[str, tuple[Block, int]]
    seq: int | None
    source: str
    head: tuple[str, int, bool] | None = None
    pictures: Mapping[str, tuple[int, int, tuple[int, ...], tuple[int, ...], int]] = field(default_factory=dict)


NETWORKS: dict[str, Network] = {
    "bert_base": Network(
        {"encoder": (Block(12, 768, 12, 3072), 0)}, 512, "Devlin et al., NAACL 2019, section 3", ("pooler", 768, False)
    ),
    "bert_large": Network(
        {"encoder": (Block(24, 1024, 16, 4096), 0)},
        512,
        "Devlin et al., NAACL 2019, section 3",
        ("pooler", 1024, False),
    ),
    "vit_b16": Network(
        {"encoder": (Block(12, 768, 12, 3072), 197)},
        None,
        "Dosovitskiy et al., ICLR 2021, table 1; 196 patches of 16 x 16 and a class token",
        ("classes", 1000, False),
        {"patches": (768, 3, (14, 14), (16, 16), 16)},
    ),
    "gpt2": Network(
        {"decoder": (Block(12, 768, 12, 3072, cached=True), 0)},
        1024,
        "Radford et al., 2019, table 2, the smallest; 12 heads",
        ("vocabulary", 50257, True),
    ),
    "llama3_8b": Network(
        {"decoder": (Block(32, 4096, 32, 14336, shared=4, head=128, gated=True, cached=True), 0)},
        2048,
        "Grattafiori et al., The Llama 3 herd of models, 2024, table 3",
        ("vocabulary", 128256, True),
    ),
    "llama3_70b": Network(
        {"decoder": (Block(80, 8192, 64, 28672, shared=8, head=128, gated=True, cached=True), 0)},
        2048,
        "Grattafiori et al., The Llama 3 herd of models, 2024, table 3",
        ("vocabulary", 128256, True),
    ),
    "mixtral_8x7b": Network(
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


class TransformersFrontend:
    """Makes the networks of `NETWORKS`."""

    def __init__(self, options: TransformerOptions) -> None:
        self.batch, self.sizes = options.batch, options.sizes

    def recognises(self, source: str) -> bool:
        return source in NETWORKS

    def load(self, source: str) -> Workload:
        """Raises InputError: no network of that name, sizes that it does not have."""
        if source not in NETWORKS:
            raise InputError(
                f"no transformer is called '{source}'; known: {', '.join(NETWORKS)}{suggestion(source, NETWORKS)}"
            )
        network = NETWORKS[source]
        known = self._known(network)
        for name in self.sizes:
            if name not in known:
                raise InputError(
                    f"{source} has no size called '{name}'; it has: {', '.join(known)}{suggestion(name, known)}"
                )
        if self.batch is not None and "batch" in self.sizes:
            raise InputError(f"{source}: --batch and --size both set batch", hint="give one of them")
        batch = self.batch or self.sizes.get("batch", 1)
        seq, cache = self.sizes.get("seq", network.seq or 0), self.sizes.get("cache", 0)
        maker = _Maker(batch)
        maker.network(network, seq, cache)
        tokens = f", {seq} tokens" if network.seq else ""
        past = f" after {cache}" if cache else ""
        return Workload(
            name=source,
            source=f"{network.source}; batch {batch}{tokens}{past}",
            layers=tuple(maker.layers),
            unmapped=tuple(maker.unmapped),
        )

    def _known(self, network: Network) -> list[str]:
        cached = any(block.cached for block, _ in network.stacks.values())
        return ["batch", *(["seq"] if network.seq else []), *(["cache"] if cached else [])]


class _Maker:
    """Layers as they are made; what makes some gives the names of those whose results come next."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.layers: list[Layer] = []
        self.unmapped: list[Unmapped] = []

    def network(self, network: Network, seq: int, cache: int) -> None:
        """With a cache, what comes before the blocks that have one has passed already."""
        last: tuple[str, ...] = ()
        for name, (outward, inward, positions, window, stride) in {} if cache else network.pictures.items():
            strides, dilations = (stride,) * len(window), (1,) * len(window)
            channels = outward, inward
            last = self.add(
                nests.convolution(name, self.batch, 1, channels, positions, window, strides, dilations), last
            )
        hidden = tokens = 0
        for stack, (block, fixed) in network.stacks.items():
            if block.cached or not cache:
                hidden, tokens = block.hidden, fixed or seq
                last = self.blocks(stack, block, tokens, cache if block.cached else 0, last)
        if network.head is not None:
            name, width, every = network.head
            self.add(self.product(name, tokens if every else 1, hidden, width), last)

    def blocks(self, stack: str, block: Block, tokens: int, cache: int, last: tuple[str, ...]) -> tuple[str, ...]:
        """All blocks of a stack. `last`: what its first tokens are made from, or what its cross-attention reads besides."""
        if not last or block.across:
            self.skip(f"{stack}.embedding", "Gather", "a look-up of tokens", 0)
        before = () if block.across else last
        done = self.attention(f"{stack}.attention", block, tokens, cache + tokens, tokens, before, before)
        if block.across:
            made = 0 if cache else block.across
            done = self.attention(f"{stack}.cross", block, tokens, block.across, made, done, last)
        operations = 2 * 6 * self.batch * tokens * block.count * block.hidden
        self.skip(f"{stack}.norms", "Norm", "works element by element", operations)
        return self.mlp(f"{stack}.mlp", block, tokens, done)

    def attention(
        self,
        name: str,
        block: Block,
        tokens: int,
        keys: int,
        made: int,
        before: tuple[str, ...],
        others: tuple[str, ...],
    ) -> tuple[str, ...]:
        """`keys`: tokens whose keys and values are read; `made`: of how many they are made now, from `others`."""
        width, groups = block.heads * block.head, block.heads // block.shared
        q = self.add(self.product(f"{name}.q", tokens, block.hidden, width), before, block.count)
        k, v = (
            self.add(self.product(f"{name}.{each}", made, block.hidden, groups * block.head), others, block.count)
            if made
            else ()
            for each in "kv"
        )
        sizes = {"B": self.batch, "G": groups, "H": block.shared, "T": tokens, "S": keys, "D": block.head}
        used = {letter: size for letter, size in sizes.items() if size > 1 or letter in "TSD"}
        scores = _contraction(f"{name}.scores", used, "BGHTD", "BGSD", "BGHTS")
        operations = 5 * self.batch * block.heads * tokens * keys * block.count
        self.skip(f"{name}.softmax", "Softmax", "works element by element", operations)
        context = _contraction(f"{name}.context", used, "BGHTS", "BGSD", "BGHTD")
        done = self.add(context, (*self.add(scores, (*q, *k), block.count), *v), block.count)
        return self.add(self.product(f"{name}.out", tokens, width, block.hidden), done, block.count)

    def mlp(self, name: str, block: Block, tokens: int, before: tuple[str, ...]) -> tuple[str, ...]:
        if block.experts > 1:
            before = self.add(self.product(f"{name}.router", tokens, block.hidden, block.experts), before, block.count)
        ends: tuple[str, ...] = ()
        inward, outward = (block.hidden, block.mlp), (block.mlp, block.hidden)
        for suffix, share, experts in _shares(self.batch * tokens, block):
            made: tuple[str, ...] = ()
            for first in ("up", "gate") if block.gated else ("up",):
                problem = nests.gemm(f"{name}.{first}{suffix}", (share, block.hidden), inward)
                made += self.add(problem, before, experts * block.count)
            ends += self.add(
                nests.gemm(f"{name}.down{suffix}", (share, block.mlp), outward), made, experts * block.count
            )
        operations = 6 * self.batch * tokens * block.active * block.count * block.mlp
        self.skip(f"{name}.activation", "Gelu", "works element by element", operations)
        return ends

    def product(self, name: str, tokens: int, inward: int, outward: int) -> Problem:
        """Of all tokens with one matrix."""
        return nests.gemm(name, (self.batch * tokens, inward), (inward, outward))

    def add(self, problem: Problem, before: tuple[str, ...], count: int = 1) -> tuple[str, ...]:
        self.layers.append(Layer(problem=problem, after=before, count=count))
        return (problem.name,)

    def skip(self, name: str, operator: str, reason: str, operations: int) -> None:
        self.unmapped.append(Unmapped(name=name, operator=operator, reason=reason, operations=operations))


def _contraction(name: str, sizes: Mapping[str, int], *tensors: str) -> Problem:
    """Of letters that are sizes; the others are 1, and left out."""
    *operands, output = [nests.plain([letter for letter in each if letter in sizes]) for each in tensors]
    return nests.contraction(name, sizes, operands, output)


def _shares(tokens: int, block: Block) -> Iterator[tuple[str, int, int]]:
    """(suffix, tokens, experts that get so many): the expected load, which is even."""
    if block.experts == 1:
        yield "", tokens, 1
        return
    assigned = tokens * block.active
    experts = min(block.experts, assigned)
    share, rest = divmod(assigned, experts)
    if rest:
        yield f"_{share + 1}", share + 1, rest
    yield f"_{share}" if rest else "", share, experts - rest

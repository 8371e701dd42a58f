"""`transformers`: networks of transformer blocks, or of state spaces, built from published sizes alone.

Equal blocks appear once; their number is the layers' count. Sizes are the tokens per pass (`seq`), the tokens with
cached keys and values (`cache`), and the batch. `seq=2048` is a prefill, `seq=1 cache=2047` one decoding step. Every
product of every token is counted, even if masked. Norms, softmax, activations and look-ups are listed, not mapped.

Reads tell which words of queries, keys, values, scores, contexts and activations a product reads. An MLP and a
cross-attention read the sum of the attentions before them in the block. The last product reads the sum with the MLP, too.
The input of the block is added to that sum. It comes from the block before, so queries, keys and values have unknown
reads. But they read the same words (`inputs`). A router decides which tokens an expert reads, so these reads are unknown, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.errors import InputError
from tilewright.schema.document import suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright.schema.read import Read
from tilewright.schema.vector import Operand, VectorLayer
from tilewright.schema.workload import Kept, Layer, Unmapped, Workload
from tilewright_frontends import TransformerOptions, nests, transformer_files
from tilewright_frontends.transformer_sizes import NETWORKS, Block, Latent, Network, StateSpace

ALWAYS = "_always"
"""The suffix of layers of the experts that process every token."""


class TransformersFrontend:
    """A frontend that builds the networks of `NETWORKS`."""

    def __init__(self, options: TransformerOptions) -> None:
        self.batch, self.sizes = options.batch, options.sizes

    def recognises(self, source: str) -> bool:
        """Return whether it is the name of a published network, or a file with the sizes of a model."""
        return source in NETWORKS or transformer_files.recognises(source)

    def load(self, source: str) -> Workload:
        """Return the workload of a network.

        Raises:
            InputError: the network or a size is unknown, or the file has no sizes of a model.
        """
        if source in NETWORKS:
            name, network = source, NETWORKS[source]
        elif source.endswith(transformer_files.SUFFIX):
            name, network = transformer_files.network_of(source)
        else:
            raise InputError(
                f"unknown transformer '{source}'; known: {', '.join(NETWORKS)}{suggestion(source, NETWORKS)}"
            )
        known = self._known(network)
        for size in self.sizes:
            if size not in known:
                raise InputError(
                    f"{name} has no size called '{size}'; it has: {', '.join(known)}{suggestion(size, known)}"
                )
        if self.batch is not None and "batch" in self.sizes:
            raise InputError(f"{name}: --batch and --size both set batch", hint="give one of them")
        batch = self.batch or self.sizes.get("batch", 1)
        seq, cache = self.sizes.get("seq", network.seq or 0), self.sizes.get("cache", 0)
        maker = _Maker(batch)
        maker.network(network, seq, cache)
        tokens = f", {seq} tokens" if network.seq else ""
        past = f" after {cache}" if cache else ""
        return Workload(
            name=name,
            source=f"{network.source}; batch {batch}{tokens}{past}",
            layers=tuple(maker.layers),
            unmapped=tuple(maker.unmapped),
            vectors=tuple(maker.vectors),
            kept=_kept(network, batch, seq + cache) if network.keeps else None,
        )

    def _known(self, network: Network) -> list[str]:
        return ["batch", *(["seq"] if network.seq else []), *(["cache"] if network.keeps else [])]


def _kept(network: Network, batch: int, tokens: int) -> Kept:
    """Return the values that a network keeps after some tokens of each sequence.

    Weights are those of a pass in which all experts work. Biases, norms and positions are left out.
    """
    blocks = [block for block, _ in network.stacks.values()]
    whole = _Maker(1)
    whole.network(network, max(block.experts for block in blocks), 0)
    products = [layer for layer in whole.layers if not layer.name.endswith(PRODUCTS)]
    matrices = ((layer, tensor) for layer in products for tensor in layer.problem.operands if tensor.role == "weight")
    weights = sum(layer.count * layer.problem.tensor_words(tensor) for layer, tensor in matrices)
    looked_up = 0 if network.tied or network.head is None else network.head[1] * blocks[-1].hidden
    return Kept(
        weights=weights + looked_up,
        cache=batch * sum(block.cache(tokens) for block in blocks if isinstance(block, Block)),
        states=batch * sum(block.states for block in blocks if isinstance(block, StateSpace)),
    )


PRODUCTS = (".scores", ".context")
"""Ends of the names of layers without a matrix of the network: all their operands are results."""


OPERATORS_OF = {"RMSNormalization": "Norm", "Swish": "SiLU", "SwiGLU": "SiLU"}
"""Operators of vector layers with other names among the unmapped ones."""
WINDOW = "+"
"""The coordinate of a key that token T reads as the S-th of its window: T + S."""


Sums = Sequence[tuple[str, tuple[str, ...]]]
"""Layers whose results are added, and the norms that each result passes."""


class _Maker:
    """Collector of layers. Its methods return the names of the layers that the next ones read."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.layers: list[Layer] = []
        self.unmapped: list[Unmapped] = []
        self.vectors: list[VectorLayer] = []
        self.norm: str | None = None  # operator of the norm in front of the head

    def network(self, network: Network, seq: int, cache: int) -> None:
        """Add a network; with a cache, the stages before the first cached block have already run."""
        last: tuple[str, ...] = ()
        sums: Sums = ()
        for name, (outward, inward, positions, window, stride) in {} if cache else network.pictures.items():
            strides, dilations = (stride,) * len(window), (1,) * len(window)
            channels = outward, inward
            last = self.add(
                nests.convolution(name, self.batch, 1, channels, positions, window, strides, dilations), last
            )
        hidden = tokens = 0
        for stack, (block, fixed) in network.stacks.items():
            if isinstance(block, StateSpace):
                hidden, tokens = block.hidden, fixed or seq
                last, sums = self.states(stack, block, tokens, last), ()
            elif block.cached or not cache:
                hidden, tokens = block.hidden, fixed or seq
                last, sums = self.blocks(stack, block, tokens, cache if block.cached else 0, last)
        if network.head is not None:
            name, width, every = network.head
            read = self.added(sums, tokens, hidden, every) if sums else None
            self.add(self.product(name, tokens if every else 1, hidden, width), last, A=read)
            norm = self.norm
            if norm is not None:
                self.vector("norm", norm, self.batch * tokens, hidden, 1, self.vectors[-1:], (name,), shared=1)
        else:
            parts = {name for name, _ in sums[:-1]}  # the network returns their sum
            self.layers = [
                layer.model_copy(update={"returned": True}) if layer.name in parts else layer for layer in self.layers
            ]

    def blocks(
        self, stack: str, block: Block, tokens: int, cache: int, last: tuple[str, ...]
    ) -> tuple[tuple[str, ...], Sums]:
        """Add all blocks of a stack.

        Return the layers whose results are added up to its tokens, and their sum; () if a router decides about it.

        Args:
            last: layers that produce its first tokens, or the input of its cross-attention.
        """
        if not last or block.across:
            self.skip(f"{stack}.embedding", "Gather", "a look-up of tokens", 0, 1)
        before = () if block.across else last
        if block.latent:
            done = self.latent(f"{stack}.attention", block, block.latent, tokens, cache, before)
        else:
            done = self.attention(f"{stack}.attention", block, tokens, cache + tokens, tokens, before, before)
        if block.across:
            made = 0 if cache else block.across
            read = self.added([(done[0], ())], tokens, block.hidden)
            done += self.attention(f"{stack}.cross", block, tokens, block.across, made, done, last, read)
        norm = 6 * self.batch * tokens * block.hidden
        self.skip(f"{stack}.norm", "Norm", "works element by element", norm, 2 * block.count)
        start = len(self.layers)
        self.norms(stack, block, tokens, before, done)
        if block.experts > 1:
            ends = self.mlp(f"{stack}.mlp", block, tokens, done[-1:], None)
            self.joined(stack, block, tokens, ends, start)
            return ends, ()
        norms = [f"{stack}.norm_{2 * block.count - number}" for number in (2, 1)] if block.norm_last else []
        first = (f"{stack}.norm_{0 if block.norm_last else 1}",)
        read = self.added([(name, first) for name in done], tokens, block.hidden)
        ends = self.mlp(f"{stack}.mlp", block, tokens, done, read)
        self.joined(stack, block, tokens, ends, start)
        every = (*((name, tuple(norms)) for name in done), *((name, tuple(norms[1:])) for name in ends))
        return (*done, *ends), every

    def norms(self, stack: str, block: Block, tokens: int, before: tuple[str, ...], done: tuple[str, ...]) -> None:
        """Add the vector layers around the attentions `done`: residual additions, and the first norm of a block."""
        rows, kind = self.batch * tokens, "RMSNormalization" if block.gated else "LayerNormalization"
        self.norm = None if block.norm_last else kind
        shared, names = 1 if block.gated else 2, tuple(f"{stack}.norm_{2 * n}" for n in range(block.count))
        readers = tuple(
            layer.name for layer in self.layers if layer.after == before and layer.name.startswith(f"{stack}.")
        )
        if not block.norm_last:
            self.vector(f"{stack}.norm1", kind, rows, block.hidden, block.count, before, readers, shared, names)
        last: tuple[str, ...] = ()
        for name in done:
            added: tuple[str, ...] = (name,)
            if block.inner_norms:
                added = self.vector(f"{name}.norm", kind, rows, block.hidden, block.count, added, shared=shared)
            last = (*last[-1:], *added)
            last = self.vector(f"{name}.residual", "Add", rows * block.hidden, 1, block.count, last)
        if block.norm_last:
            self.vector(f"{stack}.norm1", kind, rows, block.hidden, block.count, last, (), shared, names)

    def joined(self, stack: str, block: Block, tokens: int, ends: tuple[str, ...], start: int) -> None:
        """Add the vector layers around an MLP with the results `ends`, whose layers begin at a position."""
        rows, kind = self.batch * tokens, "RMSNormalization" if block.gated else "LayerNormalization"
        shared, names = 1 if block.gated else 2, tuple(f"{stack}.norm_{2 * n + 1}" for n in range(block.count))
        readers = tuple(layer.name for layer in self.layers[start:] if layer.name not in ends)
        sums = next(layer.name for layer in reversed(self.vectors) if layer.name.endswith(".residual"))
        if block.norm_last:
            sums = f"{stack}.norm1"
            place = next(place for place, layer in enumerate(self.vectors) if layer.name == sums)
            self.vectors[place] = self.vectors[place].model_copy(update={"before": readers})
        else:
            self.vector(f"{stack}.norm2", kind, rows, block.hidden, block.count, (sums,), readers, shared, names)
        if block.inner_norms:
            ends = self.vector(f"{stack}.mlp.norm", kind, rows, block.hidden, block.count, ends, shared=shared)
        last = self.vector(f"{stack}.mlp.residual", "Add", rows * block.hidden, 1, block.count, (*ends, sums))
        if block.norm_last:
            self.vector(f"{stack}.norm2", kind, rows, block.hidden, block.count, last, (), shared, names)

    def vector(
        self,
        name: str,
        operator: str,
        rows: int,
        row: int,
        count: int,
        after: Sequence[str | VectorLayer],
        before: Sequence[str] = (),
        shared: int = 0,
        operators: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """Add a vector layer whose result is as large as its first operand.

        An addition and a gate have two such operands. `shared` is the number of operands of one row that all rows share.
        """
        words = [rows * row] * (2 if operator in ("Add", "SwiGLU", "GeGLU") else 1) + [row] * shared
        layer = VectorLayer(
            name=name,
            operator=operator,
            rows=rows,
            row=row,
            operands=tuple(
                Operand(name=f"X{place}", words=size, role="weight", shared=True)
                if place >= len(words) - shared
                else Operand(name=f"X{place}", words=size)
                for place, size in enumerate(words)
            ),
            result=rows * row,
            count=count,
            after=tuple(one if isinstance(one, str) else one.name for one in after),
            before=tuple(before),
            operators=tuple(operators),
        )
        self.vectors.append(layer)
        return (name,)

    def softmax(self, name: str, heads: int, tokens: int, keys: int, count: int, capped: bool = False) -> None:
        """Add the softmax between the scores and the context of an attention."""
        names = [f"{name}.softmax_{number}" for number in range(count)]
        rows = self.batch * heads * tokens
        last: tuple[str, ...] = (f"{name}.scores",)
        if capped:
            last = self.vector(f"{name}.cap", "Tanh", rows * keys, 1, count, last)
        self.vector(f"{name}.softmax", "Softmax", rows, keys, count, last, [f"{name}.context"], 0, names)

    def added(self, sums: Sums, tokens: int, hidden: int, every: bool = True) -> list[Read]:
        """Return the reads of the tokens that are the sum of some results, or of the first token of each sequence.

        A norm needs all channels of a token together.

        Args:
            sums: layers, and the norms that their results pass.
        """
        sizes, words = {"t": self.batch * tokens if every else self.batch, "c": hidden}, ["t", "c"]
        made = words if every or tokens == 1 else [f"{tokens}*t", "c"]
        data = {"sizes": sizes, "made": made, "read": words, "whole": ("c",)}
        return [Read.model_validate({"maker": maker, "through": norms} | data) for maker, norms in sums]

    def attention(
        self,
        name: str,
        block: Block,
        tokens: int,
        keys: int,
        made: int,
        before: tuple[str, ...],
        others: tuple[str, ...],
        read: Sequence[Read] | None = None,
    ) -> tuple[str, ...]:
        """Add an attention.

        `keys` is the number of tokens whose keys and values are read. Of these, `made` are computed
        now, from layers `others`. `read` are the words of layers `before`; None: unknown.
        """
        width, groups, window = block.heads * block.head, block.groups, 0
        if 0 < block.window < keys:
            window = block.window if tokens > 1 else 0  # of one query it is an attention to fewer keys
            keys = block.window + tokens - 1  # those of the first window may lie in front of the first token
        values = f"{name}.input" if before == others else f"{name}.keys"
        queries = values if before == others else None
        q = self.add(self.product(f"{name}.q", tokens, block.hidden, width), before, block.count, value=queries, A=read)
        k, v = (
            self.add(
                self.product(f"{name}.{letter}", made, block.hidden, groups * block.head),
                others,
                block.count,
                block.cached,
                values,
            )
            if made
            else ()
            for letter in "kv"
        )
        sizes = {"B": self.batch, "G": groups, "H": block.shared, "T": tokens, "S": window or keys, "D": block.head}
        used = {letter: size for letter, size in sizes.items() if size > 1 or letter in "TSD"}
        read_keys = f"BG{WINDOW if window else 'S'}D"
        scores = _contraction(f"{name}.scores", used, "BGHTD", read_keys, "BGHTS")
        operations = 5 * self.batch * block.heads * tokens * used["S"]
        self.skip(f"{name}.softmax", "Softmax", "works element by element", operations, block.count)
        self.softmax(name, block.heads, tokens, used["S"], block.count, block.capped)
        for letter, makers, heads in (("q", q, tokens * block.heads), ("k", k, made * groups)):
            sizes_of = self.batch * heads, block.head, block.count
            if block.head_norms and makers:
                makers = self.vector(f"{name}.norm_{letter}", "RMSNormalization", *sizes_of, makers, shared=1)
            if block.gated and makers:
                self.vector(f"{name}.rotary_{letter}", "RotaryEmbedding", *sizes_of, makers, [f"{name}.scores"], 2)
        context = _contraction(f"{name}.context", used, "BGHTS", read_keys, "BGHTD")

        every = [letter for letter in "bghtd" if letter.upper() in used]
        flat = [_sum(used, b=tokens, t=1), _sum(used, g=block.shared * block.head, h=block.head, d=1)]
        square = [letter.lower() for letter in "BGHTS" if letter in used]
        cached = {letter: size for letter, size in used.items() if letter != "S"} | {"S": made}
        rows = [_sum(used, b=made, s=1), _sum(used, g=block.head, d=1)]
        later = [*(letter for letter in "bg" if letter.upper() in used), f"s + {keys - made}", "d"]
        turned = {"whole": ("d",)}  # a rotation of positions would mix the channels of a head
        softmax = {"through": (f"{name}.softmax_0",), "whole": ("s",)}
        asked = _reads(q, used, flat, every, **turned)
        made_scores = self.add(scores, (*q, *k), block.count, A=asked, B=_reads(k, cached, rows, later, **turned))
        weights = _reads(made_scores, used, square, square, **softmax)
        done = self.add(context, (*made_scores, *v), block.count, A=weights, B=_reads(v, cached, rows, later))
        out = self.product(f"{name}.out", tokens, width, block.hidden)
        return self.add(out, done, block.count, A=_reads(done, used, every, flat))

    def latent(
        self, name: str, block: Block, latent: Latent, tokens: int, cache: int, before: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Add a latent attention.

        Without a cache, keys and values are computed from the latent vectors. With one, the cached vectors are used
        unchanged. Queries are multiplied with the matrix of the keys instead, and the result with that of the values.
        All reads are unknown.
        """
        count, heads, depth = block.count, block.heads, block.head + latent.position
        q = before
        read = f"{name}.input"
        if latent.query:
            q = self.add(self.product(f"{name}.q_down", tokens, block.hidden, latent.query), q, count, value=read)
        up = self.product(f"{name}.q_up", tokens, latent.query or block.hidden, heads * depth)
        q = self.add(up, q, count, value=None if latent.query else read)
        vectors = self.product(f"{name}.kv_down", tokens, block.hidden, latent.keys + latent.position)
        kv = self.add(vectors, before, count, block.cached, read)
        norm = 6 * self.batch * tokens * (latent.query + latent.keys)
        self.skip(f"{name}.norm", "Norm", "works element by element", norm, count)
        rows, down, readers = self.batch * tokens, kv, [f"{name}.{'scores' if cache else 'kv_up'}"]
        names = [f"{name}.norm_{number}" for number in range(count)]
        self.vector(f"{name}.norm_kv", "RMSNormalization", rows, latent.keys, count, down, readers, 1, names)
        if latent.query:
            narrow, wide = [f"{name}.q_down"], [f"{name}.q_up"]
            self.vector(f"{name}.norm_q", "RMSNormalization", rows, latent.query, count, narrow, wide, 1)
        for letter, makers, turned_rows in (("q", q, rows * heads), ("k", down, rows)):
            part = f"{name}.rotary_{letter}"
            self.vector(part, "RotaryEmbedding", turned_rows, latent.position, count, makers, [f"{name}.scores"], 2)
        common = {"H": heads, "T": self.batch * tokens, "L": latent.keys}
        sizes = {
            "B": self.batch,
            "G": 1 if cache else heads,
            "H": heads if cache else 1,
            "T": tokens,
            "S": cache + tokens,
        }
        used = {letter: size for letter, size in sizes.items() if size > 1 or letter in "TS"}
        key, value = depth, latent.value
        if cache:
            turned = _contraction(f"{name}.q_latent", common | {"D": block.head}, "THD", "HDL", "THL")
            q = self.add(turned, q, count)
            key, value = latent.keys + latent.position, latent.keys
        else:
            width = heads * (block.head + latent.value)
            kv = self.add(self.product(f"{name}.kv_up", tokens, latent.keys, width), kv, count)
        scores = _contraction(f"{name}.scores", used | {"D": key}, "BGHTD", "BGSD", "BGHTS")
        operations = 5 * self.batch * heads * tokens * (cache + tokens)
        self.skip(f"{name}.softmax", "Softmax", "works element by element", operations, count)
        self.softmax(name, heads, tokens, cache + tokens, count)
        context = _contraction(f"{name}.context", used | {"D": value}, "BGHTS", "BGSD", "BGHTD")
        done = self.add(context, (*self.add(scores, (*q, *kv), count), *kv), count)
        if cache:
            values = _contraction(f"{name}.values", common | {"D": latent.value}, "THL", "HLD", "THD")
            done = self.add(values, done, count)
        return self.add(self.product(f"{name}.out", tokens, heads * latent.value, block.hidden), done, count)

    def states(self, stack: str, block: StateSpace, tokens: int, last: tuple[str, ...]) -> tuple[str, ...]:
        """Add all blocks with a state space; the states are updated element by element."""
        count, inner, rows = block.count, block.inner, self.batch * tokens
        channels = rows * inner
        if not last:
            self.skip(f"{stack}.embedding", "Gather", "a look-up of tokens", 0, 1)

        def vector(part: str, operator: str, size: int, operations: int, after: tuple[str, ...], *before: str) -> str:
            """Add a vector layer on all channels of all tokens, and the operators that it counts."""
            name = f"{stack}.{part}"
            self.skip(name, OPERATORS_OF.get(operator, operator), "works element by element", operations, count)
            names = [f"{name}_{number}" for number in range(count)]
            norm = operator == "RMSNormalization"
            shape = (size // block.hidden, block.hidden) if norm else (size, 1)
            self.vector(name, operator, *shape, count, after, before, int(norm), names)
            return name

        self.norm = "RMSNormalization"
        vector("norm", self.norm, rows * block.hidden, 6 * rows * block.hidden, last, f"{stack}.in")
        (gate,) = self.add(self.product(f"{stack}.in", tokens, block.hidden, 2 * inner), last, count)
        shape = (inner, (1, 1), (tokens,), (block.window,), (1,), (1,))
        (taps,) = self.add(nests.convolution(f"{stack}.convolution", self.batch, *shape), (gate,), count)
        active = vector("activation", "Swish", channels, 5 * channels, (taps,), f"{stack}.states")
        states = self.product(f"{stack}.states", tokens, inner, block.rank + 2 * block.state)
        (parts,) = self.add(states, (taps,), count)
        (steps,) = self.add(self.product(f"{stack}.steps", tokens, block.rank, inner), (parts,), count)
        times = vector("softplus", "Softplus", channels, 3 * channels, (steps,))
        # per state: its two factors take two multiplications and an exponential, update and result two operations each
        scan = vector("scan", "SelectiveScan", channels, 7 * channels * block.state, (active, times, parts))
        words = {"X0": channels, "X1": channels, "X2": rows * block.state, "X3": rows * block.state}
        operands = [Operand(name=name, words=size) for name, size in words.items()]
        operands.append(Operand(name="X4", words=inner * block.state, role="weight"))
        self.vectors[-1] = self.vectors[-1].model_copy(update={"row": block.state, "operands": tuple(operands)})
        vector("gate", "SwiGLU", channels, 6 * channels, (scan, gate), f"{stack}.out")
        out = self.product(f"{stack}.out", tokens, inner, block.hidden)
        done = self.add(out, (steps, parts, taps), count)
        self.vector(f"{stack}.residual", "Add", rows * block.hidden, 1, count, (*last, *done))
        return done

    def mlp(
        self, name: str, block: Block, tokens: int, before: tuple[str, ...], known: Sequence[Read] | None
    ) -> tuple[str, ...]:
        """Add an MLP, or a router and experts. `known` are the reads of layers `before`; None: unknown."""
        routed = before
        if block.experts > 1:
            routed = self.add(self.product(f"{name}.router", tokens, block.hidden, block.experts), before, block.count)
            for number, kind in enumerate(("Softmax", "TopK")):
                row = block.experts * (block.active if number else 1)
                earlier = routed if not number else self.vectors[-1:]
                self.vector(f"{name}.{kind.lower()}", kind, self.batch * tokens, row, block.count, earlier)
            scores, chosen = (self.batch * tokens * experts for experts in (block.experts, block.active))
            best = {"operands": (Operand(name="X0", words=scores),), "result": chosen}
            self.vectors[-1] = self.vectors[-1].model_copy(update=best)
        ends: tuple[str, ...] = ()
        start = len(self.layers)
        inward, outward = (block.hidden, block.mlp), (block.mlp, block.hidden)
        for suffix, share, experts in _shares(self.batch * tokens, block):
            read = before if suffix == ALWAYS else routed
            made: tuple[str, ...] = ()
            for first in ("up", "gate") if block.gated else ("up",):
                problem = nests.gemm(f"{name}.{first}{suffix}", (share, block.hidden), inward)
                value = f"{name}.input{suffix}" if block.gated else None
                made += self.add(problem, read, experts * block.count, value=value, A=known)
            problem = nests.gemm(f"{name}.down{suffix}", (share, block.mlp), outward)
            reads = [Read(maker=maker, through=(f"{name}.activation_0",)) for maker in made]
            ends += self.add(problem, made, experts * block.count, A=reads)
        width = (block.active + block.always) * block.mlp
        operations = 6 * self.batch * tokens * width  # a gate is SiLU, five, and a multiplication
        activation = "SiLU" if block.gated else "Gelu"
        self.skip(f"{name}.activation", activation, "works element by element", operations, block.count)
        names = [f"{name}.activation_{number}" for number in range(block.count)]
        made = tuple(layer.name for layer in self.layers[start:] if layer.name not in ends)
        kind, elements = block.gate if block.gated else "Gelu", self.batch * tokens * width
        self.vector(f"{name}.activation", kind, elements, 1, block.count, made, ends, 0, names)
        if block.experts > 1:
            routing = self.vectors[-2]
            self.vectors[-2] = routing.model_copy(update={"before": tuple(n for n in made if not n.endswith(ALWAYS))})
        return ends

    def product(self, name: str, tokens: int, inward: int, outward: int) -> Problem:
        """Return the product of all tokens with one matrix."""
        return nests.gemm(name, (self.batch * tokens, inward), (inward, outward))

    def add(
        self,
        problem: Problem,
        before: tuple[str, ...],
        count: int = 1,
        returned: bool = False,
        value: str | None = None,
        **reads: Sequence[Read] | None,
    ) -> tuple[str, ...]:
        """Add a layer. Reads that are None are unknown.

        Args:
            returned: its result goes into the cache, too.
            value: name of the value of operand A, which other layers read, too.
        """
        known = {operand: tuple(read) for operand, read in reads.items() if read is not None}
        if not problem.name.endswith(PRODUCTS):
            known = {tensor.name: () for tensor in problem.operands if tensor.role == "weight"} | known
        layer = Layer(problem=problem, after=before, count=count, reads=FrozenDict(known), returned=returned)
        if value is not None:
            layer = layer.model_copy(update={"inputs": FrozenDict({"A": value})})
        self.layers.append(layer)
        return (problem.name,)

    def skip(self, name: str, operator: str, reason: str, operations: int, count: int) -> None:
        """List an operator as often as the network has it; `operations` are those of one."""
        self.unmapped += [
            Unmapped(name=f"{name}_{number}", operator=operator, reason=reason, operations=operations)
            for number in range(count)
        ]


def _sum(sizes: Mapping[str, int], **factors: int) -> str:
    """Return the coordinate of a matrix that a sum of others is; letters without a size are omitted."""
    return " + ".join(f"{factor}*{letter}" for letter, factor in factors.items() if letter.upper() in sizes)


def _reads(
    makers: tuple[str, ...], sizes: Mapping[str, int], made: Sequence[str], read: Sequence[str], **more: Any
) -> list[Read]:
    """Return the read of each maker; `sizes` of coordinates by their capital letters, and only those that occur."""
    used = {letter.lower(): size for letter, size in sizes.items() if any(letter.lower() in text for text in read)}
    data = {"sizes": used, "made": list(made), "read": list(read)} | more
    return [Read.model_validate({"maker": maker} | data) for maker in makers]


def _contraction(name: str, sizes: Mapping[str, int], *tensors: str) -> Problem:
    """Return a contraction; letters without a size are 1 and are omitted."""
    *operands, output = [
        [{"T": 1, "S": 1} if letter == WINDOW else {letter: 1} for letter in tensor if letter in (*sizes, WINDOW)]
        for tensor in tensors
    ]
    return nests.contraction(name, sizes, operands, output)


def _shares(tokens: int, block: Block) -> Iterator[tuple[str, int, int]]:
    """Yield (suffix, tokens, number of experts with that many) for an even load, and for those of every token."""
    if block.always:
        yield ALWAYS, tokens, block.always
    if block.experts == 1:
        yield "", tokens, 1
        return
    assigned = tokens * block.active
    experts = min(block.experts, assigned)
    share, rest = divmod(assigned, experts)
    if rest:
        yield f"_{share + 1}", share + 1, rest
    yield f"_{share}" if rest else "", share, experts - rest

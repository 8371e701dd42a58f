"""Published transformers: their operations in closed form, prefill and decoding, and their graphs."""

from collections import Counter

import numpy as np
import pytest

import tilewright as tw
from support.networks import Part, joined
from support.onnx_models import Array, walk
from tilewright.errors import InputError
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.read import shape_of
from tilewright_frontends import TransformerOptions
from tilewright_frontends.transformer_sizes import NETWORKS, Block, Network
from tilewright_frontends.transformers import TransformersFrontend

PUBLISHED_PARAMETERS = {
    "bert_base": 110e6,
    "bert_large": 340e6,
    "vit_b16": 86e6,
    "gpt2": 124e6,
    "gpt3_6_7b": 6.7e9,
    "llama3_8b": 8.03e9,
    "llama3_70b": 70.6e9,
    "mixtral_8x7b": 46.7e9,
    "whisper_small": 244e6,
    "deepseek_v3": 671e9,
    "mamba_2_8b": 2.8e9,
}
LOOKED_UP = {
    "bert_base": (30522 + 512) * 768,
    "bert_large": (30522 + 512) * 1024,
    "vit_b16": 197 * 768,
    "gpt2": 1024 * 768,  # the vocabulary's matrix is the look-up table, too
    "gpt3_6_7b": 2048 * 4096,
    "llama3_8b": 128256 * 4096,
    "llama3_70b": 128256 * 8192,
    "mixtral_8x7b": 32000 * 4096,
    "whisper_small": (1500 + 448) * 768,
    "deepseek_v3": 129280 * 7168,
    "mamba_2_8b": 0,  # as GPT-2
}
"""Parameters that no product reads."""


def load(name: str, **sizes: int) -> tw.Workload:
    return tw.load(name, kind="workload", sizes=sizes)


def small(batch: int | None = None) -> tw.Workload:
    """The network that a test put among the others."""
    return TransformersFrontend(TransformerOptions(batch=batch)).load("small")


def llama(layers: int, hidden: int, mlp: int, tokens: int, keys: int) -> int:
    """Return the MACs of Llama 3.

    They are those of queries and results, keys and values with an eighth of the heads, three MLP
    matrices, the two attention products and the vocabulary.
    """
    matrices = 2 * hidden * hidden + 2 * hidden * 1024 + 3 * hidden * mlp
    return layers * tokens * (matrices + 2 * keys * hidden) + tokens * hidden * 128256


@pytest.mark.parametrize(("seq", "cache"), [(2048, 0), (1, 2047), (16, 1000)])
def test_llama_in_closed_form(seq: int, cache: int) -> None:
    past = {"cache": cache} if cache else {}
    assert load("llama3_8b", seq=seq, **past).macs == llama(32, 4096, 14336, seq, seq + cache)
    assert load("llama3_70b", seq=seq, **past).macs == llama(80, 8192, 28672, seq, seq + cache)


@pytest.mark.parametrize(("name", "layers", "hidden"), [("bert_base", 12, 768), ("bert_large", 24, 1024)])
def test_bert_in_closed_form(name: str, layers: int, hidden: int) -> None:
    blocks = layers * 512 * (12 * hidden**2 + 2 * 512 * hidden)
    assert load(name).macs == blocks + hidden**2


def test_gpt2_in_closed_form() -> None:
    assert load("gpt2").macs == 12 * 1024 * (12 * 768**2 + 2 * 1024 * 768) + 1024 * 768 * 50257


def test_vit_is_what_was_published() -> None:
    """17.6 billion in later papers; exactly: patches, blocks over 197 tokens, classes of one."""
    blocks = 12 * 197 * (12 * 768**2 + 2 * 197 * 768)
    assert load("vit_b16").macs == 196 * 768 * 768 + blocks + 768 * 1000


@pytest.mark.parametrize("batch", [1, 3, 4, 5, 7])
def test_experts_share_the_tokens_evenly(batch: int) -> None:
    """Two of eight experts for every token, in decoding, too."""
    workload = tw.load("mixtral_8x7b", kind="workload", batch=batch, sizes={"seq": 1, "cache": 99})
    attention = 2 * 4096**2 + 2 * 4096 * 1024 + 2 * 100 * 4096
    assert workload.macs == batch * (32 * (attention + 4096 * 8 + 2 * 3 * 4096 * 14336) + 4096 * 32000)
    downs = [layer for layer in workload.layers if ".down" in layer.name]
    assert sum(layer.count for layer in downs) == 32 * min(8, 2 * batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_latent_attention_in_closed_form(batch: int) -> None:
    """With a cache, 128 heads share the cached vectors of 512 + 64; without one, they have keys of 192 and values of 128."""
    mlp = 3 * 3 * 7168 * 18432 + 58 * (9 * 3 * 7168 * 2048 + 256 * 7168)
    projections = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 128 * 128 * 7168
    for seq, cache in ((16, 0), (1, 99), (2, 98)):
        past = {"cache": cache} if cache else {}
        workload = tw.load("deepseek_v3", kind="workload", batch=batch, sizes={"seq": seq, **past})
        words = 576 + 512 if cache else 192 + 128
        keys = 128 * words * (seq + cache)
        latent = 512 * 128 * 256  # both matrices, whether keys or queries are multiplied
        assert workload.macs == batch * seq * (61 * (projections + latent + keys) + mlp + 7168 * 129280)


def test_experts_of_every_token_do_not_wait_for_the_router() -> None:
    reads = {layer.name: layer.after for layer in load("deepseek_v3", seq=1).layers}
    assert reads["decoder.mlp.up_always"] == ("decoder.attention.out",)
    assert reads["decoder.mlp.up"] == ("decoder.mlp.router",)


def test_mamba_in_closed_form() -> None:
    """Cost by token does not depend on the number of tokens."""
    inner = 5120 * (2 * 2560 + 4 + 160 + 32 + 160 + 2560)
    for seq in (1, 2048):
        workload = load("mamba_2_8b", seq=seq)
        assert workload.macs == seq * (64 * inner + 2560 * 50280)
        scans = [each.operations for each in workload.unmapped if each.operator == "SelectiveScan"]
        assert scans == [7 * seq * 5120 * 16] * 64


def test_whisper_reads_the_sound_once() -> None:
    """The decoder's cross-attention finds its keys in a cache after the first step."""
    first, later = load("whisper_small", seq=1), load("whisper_small", seq=1, cache=1)
    assert {layer.name for layer in first.layers} - {layer.name for layer in later.layers} == {
        *("conv1", "conv2"),
        *(layer.name for layer in first.layers if layer.name.startswith("encoder.")),
        *("decoder.cross.k", "decoder.cross.v"),
    }


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_are_as_many_as_published(name: str) -> None:
    """Matrices, once for every repetition; biases and norms are a few parts in a thousand.

    BERT's and GPT-2's published numbers are rounded.
    """
    found = 0
    for layer in load(name).layers:
        if not layer.name.endswith((".scores", ".context")):
            weight = layer.problem.tensors[1]
            found += layer.problem.tensor_words(weight) * layer.count
    assert found + LOOKED_UP[name] == pytest.approx(PUBLISHED_PARAMETERS[name], rel=0.02)


@pytest.mark.parametrize("name", NETWORKS)
def test_batches_and_graphs(name: str) -> None:
    one, four = load(name), load(name, batch=4)
    assert four.macs == 4 * one.macs
    assert sum(found.count for found in one.distinct()) == sum(layer.count for layer in one.layers)
    assert all(before in {layer.name for layer in one.layers} for layer in one.layers for before in layer.after or ())
    inner = "SelectiveScan" if name.startswith("mamba") else "Softmax"
    assert {each.operator for each in one.unmapped} >= {inner, "Norm"}


@pytest.mark.parametrize(("name", "activation"), [("llama3_8b", "SiLU"), ("gpt2", "Gelu")])
def test_every_block_has_its_softmax_norms_and_activation(name: str, activation: str) -> None:
    ((block, _),) = NETWORKS[name].stacks.values()
    found = Counter(each.operator for each in load(name).unmapped)
    assert found == {"Gather": 1, "Softmax": block.count, "Norm": 2 * block.count, activation: block.count}


def test_sizes_that_do_not_exist_are_told() -> None:
    with pytest.raises(InputError, match="bert_base has no size called 'cache'; it has: batch, seq"):
        load("bert_base", cache=5)
    with pytest.raises(InputError, match="vit_b16 has no size called 'seq'; it has: batch"):
        load("vit_b16", seq=5)


@pytest.mark.parametrize("shared", [1, 2])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("gated", [False, True])
def test_a_block_along_its_reads_computes_an_attention_and_an_mlp(
    shared: int, batch: int, gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Activations are replaced by products, whose result does not depend on the number of operands."""
    tokens, head, groups = 3, 2, 2
    width = groups * shared * head
    block = Block(1, width, groups * shared, 6, shared=shared, head=head, gated=gated)
    monkeypatch.setitem(NETWORKS, "small", Network("", {"stack": (block, 0)}, tokens, ""))
    network = small(batch)
    rng = np.random.default_rng(batch)
    operators = {each.name: {"Softmax": "Softmax"}.get(each.operator, "Mul") for each in network.unmapped}
    order = {name: place for place, name in enumerate(operators)}
    parts = dict[tuple[str, str], list[Part]]()
    for name, operand, read in network.edges:
        parts.setdefault((name, operand), []).append(Part(read, [*read.through]))
    operands, results = dict[tuple[str, str], Array](), dict[str, Array]()
    for layer in network.layers:
        for tensor in layer.problem.operands:
            shape = shape_of(layer.problem, tensor.name)
            for part in parts.get((layer.name, tensor.name), ()):
                made, words = part.read.points()
                part.array = np.zeros(shape)
                part.array[words] = results[part.read.maker][made]
            known = parts.get((layer.name, tensor.name))
            found = joined(known, operators, order) if known else rng.integers(-2, 3, shape).astype(float)
            operands[layer.name, tensor.name] = found
        own = [operands[layer.name, each.name] for each in layer.problem.operands]
        results[layer.name] = walk(layer.problem, own)

    def heads(name: str, count: int) -> Array:
        return results[f"stack.attention.{name}"].reshape(batch, tokens, count, head)

    q, k, v = heads("q", groups * shared), heads("k", groups), heads("v", groups)
    scores = np.einsum("bthd,bshd->bhts", q, np.repeat(k, shared, axis=2))
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    context = np.einsum("bhts,bshd->bthd", weights, np.repeat(v, shared, axis=2)).reshape(batch * tokens, width)
    np.testing.assert_allclose(results["stack.attention.out"], context @ operands["stack.attention.out", "B"])
    activated = results["stack.mlp.up"] * (results["stack.mlp.gate"] if gated else 1)
    np.testing.assert_allclose(results["stack.mlp.down"], activated @ operands["stack.mlp.down", "B"])


@pytest.mark.parametrize("across", [0, 3])
@pytest.mark.parametrize("batch", [1, 2])
def test_the_sum_of_attentions_and_mlp_reaches_the_last_product(
    across: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The input of the block is 0 here, and norms change nothing."""
    tokens, hidden = 3, 4
    sound, block = Block(1, hidden, 2, 6, head=2), Block(1, hidden, 2, 6, head=2, across=across)
    stacks = ({"sound": (sound, across)} if across else {}) | {"stack": (block, 0)}
    monkeypatch.setitem(NETWORKS, "small", Network("", stacks, tokens, "", ("head", 5, bool(across))))
    network = small(batch)
    rng = np.random.default_rng(batch)
    results = {layer.name: rng.integers(-9, 9, shape_of(layer.problem, "Z")).astype(float) for layer in network.layers}
    attentions = ["stack.attention.out", *(["stack.cross.out"] if across else [])]
    sums = {"stack.cross.q": attentions[:1]} if across else {}
    sums |= {"stack.mlp.up": attentions, "head": [*attentions, "stack.mlp.down"]}
    for reader, makers in sums.items():
        parts = [read for name, tensor, read in network.edges if (name, tensor) == (reader, "A")]
        assert [read.maker for read in parts] == makers == list(network.layer(reader).after or ())
        operand = np.zeros(shape_of(network.layer(reader).problem, "A"))
        for read in parts:
            made, words = read.points()
            operand[words] += results[read.maker][made]
        expected = np.sum([results[maker].reshape(batch, tokens, hidden) for maker in makers], axis=0)
        if reader == "head" and not across:  # the first token of each sequence
            expected = expected[:, :1]
        np.testing.assert_array_equal(operand.reshape(expected.shape), expected)
        assert {read.whole for read in parts} == {("c",)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bert_base", ["attention.out via norm_0"]),
        ("llama3_8b", ["attention.out via norm_1"]),
        ("whisper_small", ["attention.out via norm_1", "cross.out via norm_1"]),
        ("mixtral_8x7b", []),  # a router decides which tokens an expert reads
    ],
)
def test_an_mlp_reads_the_attentions_of_its_block_behind_a_norm(name: str, expected: list[str]) -> None:
    network = load(name)
    stack = list(NETWORKS[name].stacks)[-1]
    reads = [read for layer, tensor, read in network.edges if (layer, tensor) == (f"{stack}.mlp.up", "A")]
    told = [f"{read.maker} via {' '.join(read.through)}".replace(f"{stack}.", "") for read in reads]
    assert told == expected
    assert {operator for read in reads for operator in read.through} <= {each.name for each in network.unmapped}


@pytest.mark.parametrize(
    ("name", "sizes", "expected"),
    [
        ("bert_base", {}, {"attention.input": ["attention.q", "attention.k", "attention.v"]}),
        (
            "llama3_8b",
            {"seq": 1, "cache": 7},
            {
                "attention.input": ["attention.q", "attention.k", "attention.v"],
                "mlp.input": ["mlp.up", "mlp.gate"],
            },
        ),
        (
            "whisper_small",
            {},
            {
                "attention.input": ["attention.q", "attention.k", "attention.v"],
                "cross.keys": ["cross.k", "cross.v"],
            },
        ),
        (
            "deepseek_v3",
            {},
            {
                "attention.input": ["attention.q_down", "attention.kv_down"],
                "mlp.input": ["mlp.up", "mlp.gate"],
                "mlp.input_always": ["mlp.up_always", "mlp.gate_always"],
            },
        ),
    ],
)
def test_products_of_one_input_say_so(name: str, sizes: dict[str, int], expected: dict[str, list[str]]) -> None:
    stack = f"{list(NETWORKS[name].stacks)[-1]}."
    readers = dict[str, list[str]]()
    for layer in load(name, **sizes).layers:
        for value in layer.inputs.values() if layer.name.startswith(stack) else ():
            readers.setdefault(value.removeprefix(stack), []).append(layer.name.removeprefix(stack))
    assert readers == expected


def test_without_a_last_product_the_parts_of_the_sum_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NETWORKS, "small", Network("", {"stack": (Block(2, 4, 2, 6, head=2), 0)}, 3, ""))
    assert {layer.name for layer in small().layers if layer.returned} == {"stack.attention.out"}


def test_a_block_may_keep_the_sum_on_chip_and_no_bound_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attention's result is a further result that may stay, until the MLP's is added to it."""
    block = Block(2, 4, 2, 4, head=2, gated=True, cached=True)
    monkeypatch.setitem(NETWORKS, "small", Network("", {"stack": (block, 0)}, 2, "", ("head", 4, True)))
    stated = small()
    sums = {"stack.mlp.up", "stack.mlp.gate", "head"}
    unknown = stated.model_copy(
        update={
            "layers": tuple(
                layer.model_copy(update={"reads": FrozenDict({t: r for t, r in layer.reads.items() if t != "A"})})
                if layer.name in sums
                else layer
                for layer in stated.layers
            )
        }
    )
    arch = tw.load("eyeriss", "architecture").replace({"GlobalBuffer.capacity_words": 64})
    settings: dict[str, object] = {"objective": "energy", "progress": False}
    with_sums, without = (tw.fuse_network(network, arch, **settings) for network in (stated, unknown))  # type: ignore[arg-type]
    assert set(with_sums.gain.may_stay) - set(without.gain.may_stay) == {"stack.attention.out"}
    assert with_sums.gain.unfused == without.gain.unfused and with_sums.gain.least == without.gain.least
    assert with_sums.value < without.value and with_sums.bound == pytest.approx(with_sums.value)
    (kept,) = (resident for resident in with_sums.residents if resident.maker == "stack.attention.out")
    assert stated.layers[kept.last].name == "stack.mlp.down" and set(kept.operands) == {
        "stack.mlp.up",
        "stack.mlp.gate",
    }


def test_keys_of_the_cache_are_no_words_of_the_layer_that_makes_the_others() -> None:
    reads = {(name, t): read for name, t, read in load("llama3_8b", seq=4, cache=99).edges}
    keys = reads["decoder.attention.scores", "B"]
    assert keys.sizes["s"] == 4 and str(keys.read[1]) == "s + 99"  # type: ignore[index]
    assert reads["decoder.attention.scores", "A"].sizes == {"g": 8, "h": 4, "t": 4, "d": 128}


@pytest.mark.parametrize(
    ("name", "sizes", "returned"),
    [
        ("gpt2", {}, {"decoder.attention.k", "decoder.attention.v"}),
        ("gpt2", {"seq": 1, "cache": 1023}, {"decoder.attention.k", "decoder.attention.v"}),
        ("llama3_8b", {}, {"decoder.attention.k", "decoder.attention.v"}),
        (
            "whisper_small",
            {},
            {"decoder.attention.k", "decoder.attention.v", "decoder.cross.k", "decoder.cross.v"},
        ),
        ("whisper_small", {"seq": 1, "cache": 447}, {"decoder.attention.k", "decoder.attention.v"}),
        ("deepseek_v3", {}, {"dense.attention.kv_down", "decoder.attention.kv_down"}),
        ("bert_base", {}, set()),
        ("vit_b16", {}, set()),
    ],
)
def test_keys_and_values_for_the_cache_leave_the_chip(name: str, sizes: dict[str, int], returned: set[str]) -> None:
    workload = tw.load(name, "workload", sizes=sizes)
    assert {layer.name for layer in workload.layers if layer.returned} == returned
    read = {maker for layer in workload.layers for maker in layer.after or ()}
    assert returned <= read

"""Sizes of language models from the file `config.json` that Hugging Face's transformers writes next to the weights.

    {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, ...}

Only sizes are read. Blocks with equal sizes and windows are one stack, so stacks are not in the order of the blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.files import read_text
from tilewright.schema.document import parse_document, suggestion
from tilewright_frontends.nests import unique_name
from tilewright_frontends.sources import text_of
from tilewright_frontends.transformer_sizes import Block, Latent, Network, StateSpace

SUFFIX, SIGN = ".json", '"model_type"'
MOST = 2**24
"""Largest size in a file."""
MOST_BLOCKS = 4096
"""Largest number of blocks, and of experts."""
WINDOWED = ("mistral", "mixtral", "phi3", "gemma2", "gemma3_text", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe")
"""Kinds of models whose blocks may have a sliding window."""
GEMMA = ("gemma", "gemma2", "gemma3_text")
DEEPSEEK = ("deepseek_v2", "deepseek_v3")
EXPERTS = {"mixtral": "num_local_experts", "qwen2_moe": "num_experts", "qwen3_moe": "num_experts"}
"""Kind of model -> the key with the number of experts."""
KINDS = (*dict.fromkeys(("llama", *WINDOWED, *GEMMA, *EXPERTS, *DEEPSEEK)), "gpt2", "mamba")
"""Kinds of models (`model_type`) that are read."""
HEAD = "vocabulary"


def recognises(source: str) -> bool:
    """Return whether a file is the configuration of a model."""
    text = text_of(source, SUFFIX)
    return text is not None and SIGN in text


def network_of(file: str) -> tuple[str, Network]:
    """Return name and blocks of the model in a file.

    Raises:
        InputError: the file has no sizes of a model, or a part that is not known here.
    """
    sizes = _Sizes(file)
    kind = sizes.kind
    stacks: Mapping[str, Block | StateSpace]
    if kind in DEEPSEEK:
        stacks = _deepseek(sizes)
    else:
        stacks = _gpt2(sizes) if kind == "gpt2" else _mamba(sizes) if kind == "mamba" else _decoder(sizes)
    every = sizes.size("max_position_embeddings", "n_positions", default=2048)
    tied = sizes.flag("tie_word_embeddings", kind in (*GEMMA, "gpt2", "mamba"))
    network = Network(
        f"{kind} of a file",
        {name: (block, 0) for name, block in stacks.items()},
        min(every, 2048),
        f"{Path(file).name}: sizes of a model of the kind {kind}",
        (HEAD, sizes.size("vocab_size"), True),
        tied=tied,
    )
    stem = Path(file).stem
    return unique_name(Path(file).absolute().parent.name if stem == "config" else stem, set()), network


class _Sizes:
    """The numbers of a file."""

    def __init__(self, file: str) -> None:
        self.document = parse_document(read_text(file), source=file)
        data: Any = self.document.data
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        kind = self.data.get("model_type")
        self.kind = str(kind)
        if self.kind not in KINDS:
            near = suggestion(self.kind, KINDS)
            raise InputError(
                f"models of the kind {kind!r} are not read{near}; expected one of {', '.join(KINDS)}",
                location=self.document.locate(("model_type",) if "model_type" in self.data else ()),
                hint="write the model's layers as an ONNX file or a workload file",
            )

    def refuse(self, key: str, told: str) -> InputError:
        """Return the error on the value of a key."""
        return InputError(f"{key}: {told}", location=self.document.locate((key,) if key in self.data else ()))

    def size(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """Return the number of the first of some keys that the file has. Raises InputError."""
        name = next((name for name in names if self.data.get(name) is not None), names[0])
        value = self.data.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.refuse(name, f"expected a whole number from {least} to {most:,}, not {value!r}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.data.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(name, f"expected true or false, not {value!r}")
        return default if value is None else value

    @property
    def blocks(self) -> int:
        return self.size("num_hidden_layers", "n_layer", most=MOST_BLOCKS)

    def windows(self) -> Counter[int]:
        """Return how many blocks have each window; 0: none. Raises InputError."""
        count, kinds = self.blocks, self.data.get("layer_types")
        if self.kind not in WINDOWED or self.data.get("sliding_window") is None:
            return Counter({0: count})
        window = self.size("sliding_window")
        if isinstance(kinds, list):
            if len(kinds) != count or not {*map(str, kinds)} <= {"sliding_attention", "full_attention"}:
                raise self.refuse("layer_types", f"expected {count} times sliding_attention or full_attention")
            local = [kind == "sliding_attention" for kind in kinds]
        elif self.kind == "gemma2":
            local = [number % 2 == 0 for number in range(count)]
        elif self.kind == "gemma3_text":
            every = self.size("sliding_window_pattern", default=6)
            local = [number % every != every - 1 for number in range(count)]
        elif self.kind.startswith("qwen"):
            first = self.size("max_window_layers", default=count, least=0) if self.flag("use_sliding_window") else count
            local = [number >= first for number in range(count)]
        else:
            local = [True] * count
        return Counter(window if one else 0 for one in local)


def _decoder(sizes: _Sizes) -> dict[str, Block]:
    """Return the blocks of Llama's descendants: by window, with one MLP or with experts."""
    hidden, heads, kind = sizes.size("hidden_size"), sizes.size("num_attention_heads"), sizes.kind
    groups = sizes.size("num_key_value_heads", default=heads)
    if heads % groups:
        raise sizes.refuse("num_key_value_heads", f"{groups} does not divide the {heads} heads")
    mlp, experts, active, always = sizes.size("intermediate_size"), 1, 1, 0
    if kind in EXPERTS:
        experts = sizes.size(EXPERTS[kind], most=MOST_BLOCKS)
        active = sizes.size("num_experts_per_tok", most=experts)
        mlp = sizes.size("moe_intermediate_size", default=mlp)
        shared = sizes.size("shared_expert_intermediate_size") if kind == "qwen2_moe" else 0
        always, rest = divmod(shared, mlp)
        if rest:
            raise sizes.refuse("shared_expert_intermediate_size", f"{shared} is no multiple of the {mlp} of an expert")
        if sizes.data.get("mlp_only_layers") or sizes.size("decoder_sparse_step", default=1) != 1:
            raise sizes.refuse("mlp_only_layers", "blocks with experts and blocks without are not read together")
    windows = sizes.windows()
    return {
        ("decoder" if len(windows) == 1 else "local" if window else "global"): Block(
            count,
            hidden,
            heads,
            mlp,
            shared=heads // groups,
            head=sizes.size("head_dim", default=max(1, hidden // heads)),
            gated=True,
            experts=experts,
            active=active,
            always=always,
            cached=True,
            window=window,
            gate="GeGLU" if kind in GEMMA else "SwiGLU",
            head_norms=kind in ("qwen3", "qwen3_moe", "gemma3_text"),
            capped=sizes.data.get("attn_logit_softcapping") is not None,
            inner_norms=kind in ("gemma2", "gemma3_text"),
        )
        for window, count in windows.items()
        if count
    }


def _deepseek(sizes: _Sizes) -> dict[str, Block]:
    """Return the blocks with latent attention: the first ones with a dense MLP, the others with experts."""
    latent = Latent(
        query=0 if sizes.data.get("q_lora_rank") is None else sizes.size("q_lora_rank"),
        keys=sizes.size("kv_lora_rank"),
        position=sizes.size("qk_rope_head_dim"),
        value=sizes.size("v_head_dim"),
    )
    blocks, heads = sizes.blocks, sizes.size("num_attention_heads")
    if sizes.size("moe_layer_freq", default=1) != 1:
        raise sizes.refuse("moe_layer_freq", "expected 1: all blocks after the dense ones have experts")
    dense = sizes.size("first_k_dense_replace", default=0, least=0, most=blocks - 1)
    common: dict[str, Any] = {"head": sizes.size("qk_nope_head_dim"), "gated": True, "cached": True, "latent": latent}
    hidden, experts = sizes.size("hidden_size"), sizes.size("n_routed_experts", most=MOST_BLOCKS)
    always = sizes.size("n_shared_experts", default=0, least=0, most=MOST_BLOCKS)
    active = sizes.size("num_experts_per_tok", most=experts)
    some = {"dense": Block(dense, hidden, heads, sizes.size("intermediate_size"), **common)} if dense else {}
    mlp = sizes.size("moe_intermediate_size")
    others = Block(blocks - dense, hidden, heads, mlp, experts=experts, active=active, always=always, **common)
    return some | {"decoder": others}


def _gpt2(sizes: _Sizes) -> dict[str, Block]:
    hidden, heads = sizes.size("n_embd", "hidden_size"), sizes.size("n_head", "num_attention_heads")
    mlp = sizes.size("n_inner", "intermediate_size", default=4 * hidden)
    return {"decoder": Block(sizes.blocks, hidden, heads, mlp, head=max(1, hidden // heads), cached=True)}


def _mamba(sizes: _Sizes) -> dict[str, StateSpace]:
    hidden = sizes.size("hidden_size", "d_model")
    inner = sizes.size("intermediate_size", "d_inner", default=sizes.size("expand", default=2) * hidden)
    rank = sizes.data.get("time_step_rank", "auto")
    rank = -(-hidden // 16) if rank == "auto" else sizes.size("time_step_rank")
    window = sizes.size("conv_kernel", "d_conv", default=4)
    return {"decoder": StateSpace(sizes.blocks, hidden, inner, sizes.size("state_size", default=16), rank, window)}

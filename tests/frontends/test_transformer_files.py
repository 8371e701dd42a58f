"""Language models from their `config.json`: parameters as published, windows, and errors with their place."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from support import DATA
from support.onnx_models import walk
from tilewright_frontends.transformer_sizes import NETWORKS, Block, Network

FILES = sorted((DATA / "transformers").glob("*.json"))
"""Sizes of published models, in the form of their own files."""
MODELS: dict[str, dict[str, Any]] = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in FILES}
QWEN2, GEMMA2, QWEN3_MOE = (MODELS[name] for name in ("qwen2", "gemma2", "qwen3_moe"))


def written(folder: Path, data: object) -> Path:
    file = folder / "config.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    return file


def load(file: Path, **sizes: int) -> tw.Workload:
    return tw.load(file, kind="workload", sizes=sizes)


@pytest.mark.parametrize(
    ("name", "parameters", "cache", "states"),
    [
        ("qwen2", 7.62e9, 28 * 2 * 4 * 128 * 5000, 0),
        ("gemma2", 2.61e9, 13 * 2 * 4 * 256 * (5000 + 4096), 0),
        ("phi3", 3.82e9, 32 * 2 * 32 * 96 * 2047, 0),
        ("deepseek", 15.7e9, 27 * (512 + 64) * 5000, 0),
        ("qwen3_moe", 30.5e9, 48 * 2 * 4 * 128 * 5000, 0),
        ("mamba", 0.129e9, 0, 24 * 1536 * (16 + 3)),
    ],
)
def test_models_have_their_published_parameters_and_keep_what_follows(
    name: str, parameters: float, cache: int, states: int
) -> None:
    kept = load(DATA / "transformers" / f"{name}.json", seq=1, cache=4999).kept
    assert kept is not None
    assert kept.weights == pytest.approx(parameters, rel=0.006)
    assert (kept.cache, kept.states) == (cache, states)


def test_every_second_block_of_gemma_has_a_window_and_more_norms(tmp_path: Path) -> None:
    network = load(written(tmp_path, GEMMA2), seq=1, cache=4999)
    keys = {layer.name: layer.problem.dimensions["S"] for layer in network.layers if layer.name.endswith(".scores")}
    assert keys == {"local.attention.scores": 4096, "global.attention.scores": 5000}
    kinds = {vector.name: vector.operator for vector in network.vectors if vector.name.startswith("local.")}
    norms = {name for name, kind in kinds.items() if kind == "RMSNormalization"}
    assert norms == {f"local.{name}" for name in ("norm1", "norm2", "attention.out.norm", "mlp.norm")}
    assert (kinds["local.mlp.activation"], kinds["local.attention.cap"]) == ("GeGLU", "Tanh")
    assert {layer.name: layer.count for layer in network.layers}["local.attention.q"] == 13


def test_layer_types_say_which_blocks_have_a_window(tmp_path: Path) -> None:
    small = QWEN2 | {
        "num_hidden_layers": 3,
        "sliding_window": 8,
        "layer_types": ["full_attention", *["sliding_attention"] * 2],
    }
    counts = {layer.name: layer.count for layer in load(written(tmp_path, small), seq=1, cache=99).layers}
    assert (counts["global.attention.q"], counts["local.attention.q"]) == (1, 2)


@pytest.mark.parametrize(("seq", "cache"), [(6, 0), (3, 5), (1, 7)])
def test_a_window_is_the_band_of_the_product_with_all_keys(
    seq: int, cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys in front of the first token are zeros, as padding is."""
    window, head = 3, 2
    block = Block(1, 4, 2, 4, head=head, cached=True, window=window)
    monkeypatch.setitem(NETWORKS, "gpt2", Network("", {"stack": (block, 0)}, 8, "", ("vocabulary", 8, True)))
    layer = tw.load("gpt2", kind="workload", sizes={"seq": seq} | ({"cache": cache} if cache else {})).layer(
        "stack.attention.scores"
    )
    rng = np.random.default_rng(seq)
    queries, keys = rng.integers(-3, 4, (2, seq, head)), rng.integers(-3, 4, (2, cache + seq, head))
    padded = np.pad(keys, ((0, 0), (window - 1, 0), (0, 0)))
    scores = walk(layer.problem, [queries.astype(float), padded[:, cache : cache + seq + window - 1].astype(float)])
    whole = np.einsum("gtd,gsd->gts", queries, padded)
    expected = np.stack([whole[:, token, cache + token : cache + token + window] for token in range(seq)], axis=1)
    np.testing.assert_array_equal(scores.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"model_type": "lama"}, "models of the kind 'lama' are not read; did you mean 'llama'"),
        (
            QWEN2 | {"num_key_value_heads": "4"},
            "num_key_value_heads: expected a whole number from 1 to 16,777,216, not '4'",
        ),
        (QWEN2 | {"num_key_value_heads": 5}, "num_key_value_heads: 5 does not divide the 28 heads"),
        ({name: size for name, size in QWEN2.items() if name != "hidden_size"}, "hidden_size: expected a whole number"),
        (QWEN2 | {"num_hidden_layers": 10**9}, "num_hidden_layers: expected a whole number from 1 to 4,096"),
        (QWEN3_MOE | {"mlp_only_layers": [0]}, "blocks with experts and blocks without"),
        (QWEN2 | {"layer_types": ["linear_attention"] * 28}, "expected 28 times sliding_attention or full_attention"),
        ([{"model_type": "llama"}], "models of the kind None are not read"),
    ],
)
def test_wrong_files_are_refused_with_the_place(data: object, told: str, tmp_path: Path) -> None:
    with pytest.raises(tw.errors.InputError, match=told) as caught:
        load(written(tmp_path, data), seq=1)
    assert "config.json" in str(caught.value)

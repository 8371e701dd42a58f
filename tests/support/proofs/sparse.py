"""Random tasks on sparse hardware, for proofs."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from support.proofs.drawing import Document, Inputs, draw

DENSITIES = 0.0, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 1.0
RARE = "leakage_pj_per_cycle", "power_gated_at", "block_words", "instances_per_macro", "word_bits", "bits_per_value"
"""Fields that make savings differ between mappings."""
PRICES = "gated_read", "skipped_read", "gated_update", "metadata_read", "metadata_fill", "metadata_update", "gated_metadata_read", "decompression"  # fmt: skip


def draw_sparse(seed: int, *, simple: bool | None = None, **model_options: object) -> Inputs:
    """Draw a task with two operands, densities, formats and actions.

    Args:
        seed: the same seed gives the same task.
        simple: mostly parts whose savings are the same in all mappings (the exact class); None: either.
    """
    rng = Random(seed)
    simple = rng.random() < 0.5 if simple is None else simple
    inputs = draw(rng.randrange(2**32), "small", ragged=False, **model_options)
    while len(inputs.problem["tensors"]) != 3 or inputs.problem["tensors"][-1]["role"] != "output":
        inputs = draw(rng.randrange(2**32), "small", ragged=False, **model_options)
    for tensor in inputs.problem["tensors"]:
        measure = rng.choice(DENSITIES)
        uniform = {"distribution": "uniform", "density": measure}
        tensor["density"] = rng.choice((measure,) if simple else (None, measure, uniform, uniform))
    draw_parts(rng, inputs.problem, inputs.architecture, simple)
    return replace(inputs, seed=seed)


def draw_parts(rng: Random, problem: Document, architecture: Document, simple: bool) -> None:
    """Add sparse parts to an architecture."""
    clusters = [cluster for cluster in architecture["clusters"] if "memories" in cluster]
    names = [tensor["name"] for tensor in problem["tensors"]]
    # savings are the same in all mappings if a tensor has one format everywhere
    kept = {
        name: [{"format": rng.choice(("CP", "RLE", "UB")), "flatten": "all"}] for name in names if rng.random() < 0.6
    }
    compressed = {name: rng.random() < 0.5 for name in names}
    for cluster in clusters:
        for memory in cluster["memories"]:
            formats: dict[str, Any] = kept
            if not simple:
                formats = {name: _format(rng, compressed[name]) for name in names if rng.random() < 0.5}
                compressed |= {name: compressed[name] and name in formats for name in names}
            sparse: dict[str, Any] = {
                "formats": formats,
                "metadata": {"width_bits": 16, "depth": 2**16, "default_bits": rng.choice((0, 0, 2, 4))},
                "decompresses": rng.random() < 0.9,
                "compresses": rng.random() < 0.9,
                "energies_pj": {
                    name: rng.choice((0.05, 0.5, 4.0)) for name in PRICES if rng.random() < (0.1 if simple else 0.4)
                },
            }
            if not simple or cluster is clusters[-1]:
                sparse["actions"] = _actions(rng, names, simple)
            memory["sparse"] = sparse
            for name in (*(RARE if simple else ()), "footprint"):
                memory.pop(name, None)
            if simple and rng.random() < 0.6:
                for name in [key for key in memory if "bandwidth" in key]:
                    del memory[name]
    for cluster in architecture["clusters"] if simple else ():
        cluster.get("fanout", {}).pop("network", None)
    inner = architecture["clusters"][architecture["clusters"].index(clusters[-1]) :]
    for cluster in inner if simple and rng.random() < 0.7 else ():
        cluster.pop("fanout", None)
    if rng.random() < 0.5:
        flags = {name: rng.random() < 0.6 for name in ("gate", "skip")}
        architecture["compute"]["sparse"] = flags | {
            "gated_pj": rng.choice((0, 0.2)),
            "skipped_pj": rng.choice((0, 0.1)),
        }


def _format(rng: Random, compressed: bool) -> Document:
    kinds = [["UB"], ["UOP"], ["UOP", "UB"]]
    kinds += [["CP"], ["RLE"], ["B"], ["UOP", "CP"], ["B", "CP"], ["CP", "RLE"]] if compressed else []
    flatten = rng.choice(("all", "all", None))
    ranks = [{"format": kind, "flatten": flatten} for kind in rng.choice(kinds)]
    return {"ranks": ranks, "fill": rng.choice(("outer", "outer", "inner"))}


def _actions(rng: Random, names: list[str], simple: bool) -> list[Document]:
    actions: list[Document] = []
    for target in names[:-1] if simple else names:
        while rng.random() < 0.4:
            others = [name for name in names if name != target and (not simple or name != names[-1])]
            kind = rng.choice(("gate", "skip"))
            options = [
                {kind: target, "when_empty": rng.sample(others, rng.randint(1, len(others)))}
                for _ in range(1 if simple or rng.random() < 0.8 else 2)
            ]
            actions.append(options[0] if len(options) == 1 else {"best_of": options})
            if simple:
                break
    return actions

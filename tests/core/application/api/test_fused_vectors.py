"""Fused networks with vector layers on tiles: the form of a softmax, totals, and what is not joined."""

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.profiles import first

KINDS = ("add", "multiply", "exponential", "compare", "divide", "convert")


def network(words: int, **more: Any) -> dict[str, Any]:
    """Return attention of four rows over some words, with two columns of queries and results."""

    def tensor(name: str, role: str, *projection: str) -> dict[str, Any]:
        return {"name": name, "role": role, "projection": list(projection)}

    read = {
        "maker": "scores", "sizes": {"m": 4, "n": words}, "made": ["m", "n"], "read": ["m", "n"],
        "through": ["softmax_0"], "whole": ["n"],
    }  # fmt: skip
    scores = [tensor("Q", "input", "M", "K"), tensor("K", "weight", "N", "K"), tensor("P", "output", "M", "N")]
    context = [tensor("P", "input", "M", "N"), tensor("V", "weight", "N", "E"), tensor("Z", "output", "M", "E")]
    softmax = {
        "name": "softmax", "operator": "Softmax", "rows": 4, "row": words, "operands": [{"name": "X", "words": 4 * words}],
        "result": 4 * words, "after": ["scores"], "before": ["context"], "operators": ["softmax_0"],
    }  # fmt: skip
    return {
        "name": "attention",
        "layers": [
            {"problem": {"name": "scores", "dimensions": {"M": 4, "N": words, "K": 2}, "tensors": scores}, "after": []},
            {
                "problem": {"name": "context", "dimensions": {"M": 4, "N": words, "E": 2}, "tensors": context},
                "after": ["scores"],
                "reads": {"P": [read]},
            },
        ],
        "unmapped": [
            {"name": "softmax_0", "operator": "Softmax", "reason": "it has no product", "operations": 20 * words}
        ],
        "vectors": [softmax | more],
    }


def machine(words: int, units: bool = True) -> dict[str, Any]:
    dram = {"name": "DRAM", "read_energy_pj": 64, "write_energy_pj": 64, "shared_bandwidth_words_per_cycle": 8}
    buffer = {"name": "Buffer", "capacity_words": words, "read_energy_pj": 2, "write_energy_pj": 2}
    register = {"name": "R", "capacity_words": 4, "holds": ["weight"], "read_energy_pj": 0.1, "write_energy_pj": 0.1}
    unit = {"name": "VPU", "lanes": 1, "memory": "Buffer", "energy_pj": dict.fromkeys(KINDS, 1)}
    memories = [dram, buffer, register]
    return {
        "name": "m",
        "clusters": [{"name": memory["name"], "memories": [memory]} for memory in memories],
        "compute": {"energy_per_operation_pj": 1},
        "units": [unit] if units else [],
    }


def fused(work: dict[str, Any], arch: dict[str, Any], objective: Any = "energy", **more: Any) -> tw.NetworkFusion:
    return tw.fuse_network(work, arch, objective=objective, cache=False, progress=False, **more)


@pytest.mark.parametrize(
    ("words", "room", "objective", "form"),
    first(2, (8, 48, "energy", "whole"), (16, 24, "energy", "online"), (16, 40, "cycles", "whole")),
)
def test_fusion_chooses_the_form_of_softmax(words: int, room: int, objective: str, form: str) -> None:
    """With 16 words in a row and 24 in the buffer, no tile has whole rows; with 40, whole rows take 580 cycles and online ones 604."""
    made = fused(network(words), machine(room), objective)
    totals, alone, (part,) = made.with_vectors, made.unfused_with_vectors, made.parts
    assert totals is not None and alone is not None and part.vectors is not None
    assert [one.form for one in part.vectors.vectors] == [form]
    assert totals.network_energy_pj == made.energy_pj + part.vectors.vector_energy_pj < alone.network_energy_pj / 2
    assert totals.overlapped_cycles <= alone.sequential_cycles
    without = tw.evaluate(part.mapping).reports[0]
    assert (without.energy_pj, without.cycles) == (made.energy_pj, made.cycles)
    assert "what is proved is proved of the layers alone" in str(made)


def test_units_change_no_figure_of_the_layers(tmp_path: Path) -> None:
    work, plain = network(8), fused(network(8), machine(48, units=False))
    made = fused(work, machine(48), folder=tmp_path)
    assert (plain.energy_pj, plain.bound, plain.with_vectors) == (made.energy_pj, made.bound, None)
    data = made.data()
    assert data["units"]["network_energy_pj"] < data["unfused_units"]["network_energy_pj"]
    assert data["groups"][0]["units"]["vectors"][0]["form"] == "whole"
    assert "softmax" in str(tw.evaluate(tmp_path / "group_1.yaml"))


def test_vector_layers_that_others_read_are_not_joined() -> None:
    """What a gate reads leaves the chip, so no tile of it may stay."""
    work = network(8)
    gate = {"name": "gate", "operator": "Relu", "rows": 32, "row": 1, "after": ["softmax"]}
    work["vectors"].append(gate | {"operands": [{"name": "X", "words": 32}], "result": 32})
    made = fused(work, machine(48))
    assert not made.parts and any("softmax is read by gate, too" in text for text in made.messages())
    totals, alone = made.with_vectors, made.unfused_with_vectors
    assert totals is not None and alone is not None and totals.vector_energy_pj == alone.vector_energy_pj

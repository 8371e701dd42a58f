"""Operators below the roofline: words of the outermost memory, and the fraction of the peak."""

from typing import Any

import pytest

import tilewright as tw
from tilewright.application.run.roofline import ROOFLINE, Roof, roof_of
from tilewright.reports import Limit, Report

EMPTY: dict[str, Any] = {"technology": "dram", "read_energy_pj": 1, "write_energy_pj": 1}
PAIR = {
    "name": "pair",
    "clusters": [
        {
            "name": "Outside",
            "memories": [
                EMPTY | {"name": "A", "holds": ["input", "output"]},
                EMPTY | {"name": "W", "holds": ["weight"], "word_bits": 8},
            ],
            "fanout": {"size": 2},
        },
        {"name": "Inside", "memories": [EMPTY | {"name": "Buffer"}]},
    ],
    "compute": {"energy_per_operation_pj": 1},
}


def report(*limits: Limit, **more: Any) -> Report:
    return Report(model="m", problem="p", valid=True, macs=640, cycles=80, utilization=0.5, limits=limits, **more)


def test_the_slowest_port_of_the_outermost_memories_counts() -> None:
    """640 operations for 160 words of 8 bits."""
    limits = (
        Limit(name="A", action="read", cycles=30, words=300, words_per_cycle=10),
        Limit(name="W", action="read", cycles=80, binding_cycles=80, words=160, words_per_cycle=2),
        Limit(name="Buffer", action="read", cycles=70, words=9000),
        Limit(name="compute", action="compute", cycles=40),
    )
    roof = roof_of(report(*limits), tw.load(PAIR, kind="architecture"))
    assert ROOFLINE.data("json", roof) == {
        "memory": "W",
        "words": 160,
        "words_per_cycle": 2.0,
        "macs_per_word": 4.0,
        "macs_per_byte": 4.0,
        "limited_by": "W reads",
        "of_peak": 0.5,
    }


def test_without_ports_there_is_no_intensity() -> None:
    machine = tw.load(PAIR, kind="architecture")
    roof = roof_of(report(Limit(name="compute", action="compute", cycles=80, binding_cycles=80)), machine)
    assert isinstance(roof, Roof) and (roof.memory, roof.macs_per_word, roof.macs_per_byte) == (None, None, None)
    assert roof_of(None, machine) is None
    assert roof_of(Report(model="m", problem="p", valid=False, macs=1), machine) is None


def test_weights_of_their_own_memory_make_the_product_of_one_token_slow() -> None:
    """On tpu_v1 each of 4,096 weights comes once for one MAC, from a memory beside that of the other tensors."""
    layers = tw.map("nk,km->nm; n=1 k=64 m=64", "tpu_v1", mapper="random", evaluations=50, cache=False).data()["layers"]
    roofline = layers[0]["roofline"]
    assert (roofline["memory"], roofline["words"], roofline["macs_per_word"]) == ("WeightsDRAM", 4096, 1.0)
    assert roofline["of_peak"] == pytest.approx(layers[0]["best"]["utilization"])

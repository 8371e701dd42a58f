"""Proofs by `optimal` under `pipelined` equal the enumeration of the map space."""

from random import Random

import pytest

import tilewright as tw
from support.proofs.drawing import Document, draw

pytestmark = pytest.mark.exhaustive


def timed(architecture: Document, rng: Random) -> Document:
    """Give most memories a timing, and some arrays a fill and drain."""
    for cluster in architecture["clusters"]:
        for memory in cluster.get("memories", ()):
            if rng.random() < 0.8:
                memory["timing"] = {
                    "prefetch": rng.choice(("any", "next", "none")),
                    "burst_words": rng.choice((1, 1, 3, 8)),
                    "latency_cycles": rng.choice((0, 2, 20, 100)),
                }
    architecture["compute"]["fill_drain_cycles"] = rng.choice((0, 0, 5, 40))
    return architecture


def test_a_bound_is_never_above_the_enumerated_optimum() -> None:
    compared = proved = 0
    for seed in range(40):
        inputs = draw(seed, "small", ragged=False)
        arch = timed(inputs.architecture, Random(seed))
        space = tw.space(inputs.problem, arch=arch, constraints=inputs.constraints)
        if not 1 < space.size <= 5_000:
            continue
        optimal, every = (
            tw.map(
                inputs.problem,
                arch=arch,
                constraints=inputs.constraints,
                mapper=mapper,
                model="pipelined",
                model_options=inputs.model_options,
                objective="cycles",
                cache=False,
            )
            .layers[0]
            .result
            for mapper in ("optimal", "exhaustive")
        )
        assert optimal is not None and every is not None and every.stop == "finished"
        if optimal.lower_bound is not None:
            assert optimal.lower_bound <= every.value * (1 + 1e-9), seed
            assert optimal.proved != "yes" or optimal.value == pytest.approx(every.value), seed
        compared, proved = compared + 1, proved + (optimal.proved == "yes")
    assert compared > 20 and proved > 10

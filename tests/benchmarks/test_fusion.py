"""The benchmark of fused networks: DeFiNES' machines, and the bound without results that are read in sums."""

from pathlib import Path

import pytest
from benchmarks.fusion import DEFINES, ROOT, without_sums

import tilewright as tw


@pytest.mark.parametrize("machine", DEFINES)
def test_machines_of_defines_take_their_unrolling(machine: str) -> None:
    rules = Path(ROOT / machine.replace("_df.yaml", ".constraints.yaml"))
    layer = "O[k,p,q] += I[c,p,q] * W[k,c]; k=32 p=4 q=4 c=32"
    assert tw.load(ROOT / machine, "architecture").instances[-1] == 1024
    report = tw.map(
        layer, ROOT / machine, constraints=rules, objective="energy", evaluations=2, mapper="random", cache=False
    )
    assert report.layers[0].error is None


def test_most_results_of_resnet50_are_read_in_sums() -> None:
    """The share that benchmarks/fusion.md states; without them each layer reads one maker, or nothing of the network."""
    network = tw.load("resnet50", "workload")
    words = {layer.name: layer.problem.tensor_words(layer.problem.output) for layer in network.layers}
    made = [read for layer in network.layers for read in layer.reads.values()]
    sums = {one.maker for makers in made if len(makers) > 1 for one in makers}
    used = {one.maker for makers in made for one in makers}
    assert sum(words[name] for name in sums) == 7_024_640 and sum(words[name] for name in used) == 11_113_984
    rest = without_sums(network)
    assert not rest.unknown and len(rest.layers) == len(network.layers)
    assert {len(makers) for layer in rest.layers for makers in layer.reads.values()} == {0, 1}

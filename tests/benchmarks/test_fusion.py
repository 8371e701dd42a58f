"""The benchmark of fused networks: DeFiNES' machines, and the reduced network that is executed."""

from pathlib import Path

import pytest
from benchmarks.fusion import DEFINES, ROOT
from benchmarks.fusion_executed import reduced, without_reads

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


def test_the_reduced_network_has_the_structure_of_resnet50() -> None:
    network = tw.load("resnet50", "workload")
    small = reduced(network)
    assert [layer.reads.keys() for layer in small.layers] == [layer.reads.keys() for layer in network.layers]
    words = [[layer.problem.tensor_words(layer.problem.output) for layer in one.layers] for one in (network, small)]
    assert 80 < sum(words[0]) / sum(words[1]) < 110
    assert max(layer.problem.macs for layer in small.layers) < 2_000_000
    assert not any(layer.reads for layer in without_reads(small).layers)

"""What is left of the home beside results that stay."""

import pytest

import tilewright as tw
from support.products import products
from tilewright.application.run.resident_cases import Case, left_of, priced_by_port, shared_port
from tilewright.schema.architecture import Memory


@pytest.mark.parametrize(
    ("buffering", "reserved", "left"),
    [
        (1, 0, 32),
        (1, 16, 16),
        (1, 31, 1),
        (1, 32, 0),
        (1, 33, None),
        (1, 32.0625, None),
        (2, 8, 8),
        (2, 16, 0),
        (2, 17, None),
    ],
)
def test_results_that_stay_take_their_room(buffering: int, reserved: float, left: int | None) -> None:
    """Of 32 words, double buffering leaves 16."""
    home = Memory.model_validate(
        {"name": "Buffer", "capacity_words": 32, "read_energy_pj": 1, "write_energy_pj": 1}
        | {"multiple_buffering": buffering}
    )
    problem = tw.Workload.model_validate(products(4, (4, 4))).layers[0].problem
    found = left_of(home, problem, Case("", frozenset(), int(reserved * home.word_bits)))
    assert (None if found is None else found.usable_words) == left


@pytest.mark.parametrize("action", ["read", "write", "access"])
def test_the_energy_by_a_port_is_the_slices_that_it_moves(action: str) -> None:
    """Values of 24 bits are three slices of 8 bits; what networks and other memories spend does not count."""
    port = "shared" if action == "access" else action
    prices = {"read_energy_pj": 3, "write_energy_pj": 5}
    home = {"name": "Buffer", "capacity_words": 64, f"{port}_bandwidth_words_per_cycle": 1, "block_words": 2} | prices
    home |= {"word_bits": 16, "bits_per_value": {"weight": 24, "output": 24}}
    network = {"size": 2, "network": {"energy_per_hop_pj": 1, "energy_per_router_pj": 1, "energy_per_ingress_pj": 1}}
    clusters = [
        {"name": "DRAM", "memories": [{"name": "DRAM"} | prices]},
        {"name": "Buffer", "memories": [home], "fanout": network},
        {"name": "PE", "memories": [{"name": "RF", "capacity_words": 4} | prices]},
    ]
    arch = tw.Architecture.model_validate(
        {"name": "small", "clusters": clusters, "compute": {"energy_per_operation_pj": 1}}
    )
    problem = tw.Workload.model_validate(products(4, (4, 4))).layers[0].problem
    mapping = tw.map(problem, arch, cache=False, progress=False).layers[0].mapping
    assert mapping is not None
    buffer = next(memory for memory in arch.memories if memory.name == "Buffer")
    plain, priced = (
        tw.evaluate(mapping, problem, each, models="timeloop", model_options={"link_transfers": False}).reports[0]
        for each in (arch, priced_by_port(arch, buffer, action))
    )
    limit = shared_port(buffer, problem, plain)
    assert limit is not None and limit.action == action and limit.words
    level = next(level for level in plain.levels if level.name == "Buffer")
    assert level.tensors["B"].fills
    assert priced.energy_pj == limit.words * buffer.slices_per_word

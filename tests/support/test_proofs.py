"""The generator of proofs' tests draws every input of a cost, and counts equal those of the map space."""

from collections.abc import Iterator
from typing import Any

import pytest

import tilewright
from support.proofs.drawing import KINDS, Inputs, draw
from support.proofs.enumeration import Enumeration, TooLargeError
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.architecture import Cluster, Compute, Fanout, Memory, Network
from tilewright.schema.constraints import KeepRule, SpatialRule, StorageRule, StoredTensors, TemporalRule
from tilewright.values import Model

pytestmark = pytest.mark.exhaustive
SHORT_SAMPLE = 7

RULES = TemporalRule, SpatialRule, KeepRule, StorageRule, StoredTensors
DRAWN = [draw(seed) for seed in range(400)]

NO_COST: dict[type[Model], set[str]] = {
    Memory: {"ports", "sparse", "timing", "area_um2", "component", "estimates"},
    Compute: {"name", "word_bits", "sparse", "area_um2", "component", "estimates"}
    | {"fill_drain_cycles", "start_cycles", "instruction"},
    Fanout: {"unlinked"},
    Network: {"bandwidth_words_per_cycle", "latency_cycles", "meshes"},
}
"""Fields that change no cost of a proof by `timeloop`.

Capabilities leave them out, and `timeloop` refuses timing. Nothing is proved on sparse hardware, on meshes, or where some tensors have no links: these
offer no relaxation.
"""


def _documents(inputs: Inputs) -> Iterator[tuple[type[Model], dict[str, Any]]]:
    yield Compute, inputs.architecture["compute"]
    for cluster in inputs.architecture["clusters"]:
        yield Cluster, cluster
        yield from ((Memory, memory) for memory in cluster.get("memories", ()))
        if "fanout" in cluster:
            yield Fanout, cluster["fanout"]
            yield Network, cluster["fanout"].get("network", {})
    (rules,) = inputs.constraints["variants"]
    kinds = ("temporal", TemporalRule), ("spatial", SpatialRule), ("keep", KeepRule), ("storage", StorageRule)
    for name, rule in kinds:
        yield from ((rule, entry) for entry in rules.get(name, ()))
    yield from ((StoredTensors, entry) for part in rules.get("storage", ()) for entry in part["entries"])


@pytest.mark.parametrize("model", [Cluster, Memory, Fanout, Network, Compute, *RULES])
def test_every_field_that_a_cost_or_a_rule_depends_on_is_drawn(model: type[Model]) -> None:
    drawn = {name for inputs in DRAWN for kind, document in _documents(inputs) if kind is model for name in document}
    assert drawn == set(model.model_fields) - NO_COST.get(model, set())


def test_every_option_of_the_model_is_drawn() -> None:
    """An option is drawn if tasks differ in it."""
    spec = installed().find(CostModelSpec, "timeloop").spec
    values = {name: {inputs.model_options[name] for inputs in DRAWN} for name in spec.options.model_fields}
    assert all(len(options) > 1 for options in values.values())
    assert {inputs.objective for inputs in DRAWN} == {"edp", "ed2p", "energy", "cycles"}
    assert {inputs.constraints["factors"] for inputs in DRAWN} == {"perfect", "ragged"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_map_space_has_as_many_mappings_as_the_enumeration(kind: Any) -> None:
    compared = 0
    for seed in range(60):
        inputs = draw(seed, kind)
        try:
            every = Enumeration(inputs, 20_000)
            space = tilewright.space(inputs.problem, arch=inputs.architecture, constraints=inputs.constraints)
        except (TooLargeError, tilewright.TilewrightError):
            continue
        assert space.size == every.size, seed
        compared += 1
    assert compared > 20

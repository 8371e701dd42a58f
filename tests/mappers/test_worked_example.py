"""Worked example of docs/optimal_proof.md: every number of the section is recomputed."""

import itertools
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from support.staged_states import RecordedSearch, RecordedState
from tilewright.mapspace.batch import Floats
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Relaxable
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.objective import ENERGY
from tilewright.schema.problem import Problem
from tilewright_mappers.optimal.kernel import stages
from tilewright_mappers.optimal.mapper import ROUNDING_FACTOR
from tilewright_mappers.optimal.search_instance import SearchInstance
from tilewright_mappers.optimal.staged_search import CompleteMappings

PAGE = Path(__file__).parents[2] / "docs/optimal_proof.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("\n## Worked example\n")[2]
HEADER = """\
|state|from|step|tiles M, N, K|stationary|committed|deferred A, B, Z|demand A, B, Z|credit|bound|outcome|
|---:|---:|---|---|---|---:|---|---|---:|---:|---|"""
STEPS = {stages.END_FANOUT: "end fanout", stages.CLOSE_BLOCK: "close block", stages.STORE: "store"}


@cache
def example() -> tuple[MapSpace, RecordedSearch, CompleteMappings, Floats]:
    """Return the space, the recorded search, its complete mappings, and the costs of all mappings of the space."""
    problem, architecture = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", SECTION, flags=re.DOTALL))
    space = MapSpace.of(Problem.model_validate(problem), Architecture.model_validate(architecture), None)
    model = installed().make(CostModelSpec, "timeloop", {}).bind(space.problem, space.architecture)
    assert isinstance(model, Relaxable)
    costs = np.concatenate([model.evaluate_batch(each.batch()).energy_pj for each in space.enumerate(1000)])
    relaxation = model.relaxation(space.skeleton)
    assert relaxation is not None
    instance = SearchInstance(space, relaxation, ENERGY, math.inf)
    second = sorted({round(float(cost), 6) for cost in costs if math.isfinite(cost)})[1]
    search = RecordedSearch(instance, second * ROUNDING_FACTOR, 1000, lambda: False)
    return space, search, search.run(), costs


def outcome(state: RecordedState, states: list[RecordedState], last: int) -> str:
    if state.pruned == "bound":
        return "bound: Lemma 12" if state.outer_table_needed else "bound: Lemmas 6, 7, 10, 11"
    if state.pruned == "dominance":
        peers = [each for each in states if each.kind == state.kind and not each.pruned and each.dominates(state)]
        return f"dominated by {peers[0].number}: Lemma 3"
    return "complete" if state.number > last else "kept"


def step(state: RecordedState, before: tuple[int, ...]) -> str:
    changed = [
        f"loop {name} x {old // new}" for name, old, new in zip("MNK", before, state.tiles, strict=True) if old != new
    ]
    return STEPS.get(state.kind) or (changed[0] if changed else "no loop")


def rendered(states: list[RecordedState], complete: int) -> str:
    def listed(numbers: tuple[float, ...]) -> str:
        return ", ".join(f"{number:,.0f}" for number in numbers)

    lines = [HEADER]
    for state in states:
        before = states[state.predecessor - 1].tiles if state.predecessor else state.tiles
        cells = [
            str(state.number),
            str(state.predecessor or "start"),
            step(state, before),
            listed(state.tiles),
            " ".join(itertools.compress("ABZ", state.stationary)) or "none",
            f"{state.committed:,.0f}",
            listed(state.deferred),
            listed(state.demand),
            f"{state.credit[2]:,.0f}",
            f"{state.bound:,.0f}",
            outcome(state, states, len(states) - complete),
        ]
        lines.append(f"|{'|'.join(cells)}|")
    return "\n".join(lines)


def test_the_table_has_all_states_of_the_search() -> None:
    _, search, complete, _ = example()
    states = search.recorded
    pruned = [sum(state.pruned == kind for state in states) for kind in ("bound", "dominance")]

    assert rendered(states, len(complete.bounds)) in SECTION
    assert list(search.counts) == [len(states) - sum(pruned), *pruned]


def test_the_search_proves_the_minimum_of_all_mappings() -> None:
    space, _, complete, costs = example()

    assert len(costs) == space.size
    assert not complete.undercounted.any()
    assert set(complete.bounds) == {costs.min()}


def test_the_text_has_no_other_numbers() -> None:
    space, search, complete, costs = example()
    states, final = search.recorded, search.recorded[-1]
    sides = [(4 // m, 4 // n, 4 // k) for m, n, k in itertools.product((1, 2, 4), repeat=3)]
    capacity = space.architecture.memories[1].capacity_words
    assert capacity is not None
    too_large = [m * k + k * n + m * n > capacity for m, n, k in sides]
    dram, buffer = (memory.read_energy_pj for memory in space.architecture.memories)
    operation, macs = space.architecture.compute.energy_per_operation_pj, space.problem.macs
    demand, words = final.demand, space.problem.tensor_words(space.problem.tensors[2])
    stored = next(state for state in states if state.kind == stages.STORE)
    bound, dominance = (sum(state.pruned == kind for state in states) for kind in ("bound", "dominance"))
    second = sorted({round(float(cost)) for cost in costs if math.isfinite(cost)})[1]
    filled = sum(demand)
    moved = filled + demand[2]
    assert stored.committed + filled * buffer + moved * dram == final.committed
    assert words * 2 * buffer == stored.credit[2] and words * (2 * buffer + dram) == final.credit[2]
    assert stored.committed == macs * 4 * buffer
    assert macs * operation + final.committed - final.credit[2] == costs.min()
    facts = [
        f"The map space has {space.size} mappings.",
        f"Of the {len(sides)} tilings, {sum(too_large)} do not fit {capacity} words",
        f"with a mapping of {second:,} pJ as the incumbent",
        f"{second:,} x (1 - 10^-9)",
        f"The table shows all {len(states)} states",
        f"{bound} states are pruned by their bounds, and {dominance} by dominance",
        f"{len(complete.bounds)} complete mappings are left",
        f"{macs} x 4 x {buffer:g} = {stored.committed:,.0f} pJ",
        f"{words} x 2 x {buffer:g} = {stored.credit[2]:,.0f} pJ",
        f"{demand[0]:g} + {demand[1]:g} + {demand[2]:g} = {filled:g} words",
        f"{filled:g} + {demand[2]:g} = {moved:g} words",
        f"{stored.committed:,.0f} + {filled:g} x {buffer:g} + {moved:g} x {dram:g} = {final.committed:,.0f} pJ",
        f"{stored.credit[2]:,.0f} + {words} x {dram:g} = {final.credit[2]:,.0f} pJ",
        f"{macs} x {operation:g} + {final.committed:,.0f} - {final.credit[2]:,.0f} = {costs.min():,.0f} pJ",
        f"4 x 4 x 4 matrix product has {macs} operations",
    ]
    text = re.sub(r"```.*?```|^\|[^\n]*$|Lemmas? [\d, ]*\d", "", SECTION, flags=re.DOTALL | re.MULTILINE)
    text = " ".join(text.split())
    for fact in facts:
        assert fact in text, fact
        text = text.replace(fact, "")
    assert not re.findall(r"\d+", text)

"""Staged search that records every state with its predecessor and its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.compiled import for_kernel
from tilewright_mappers.optimal.kernel import stages
from tilewright_mappers.optimal.kernel.state import (
    BOUND,
    COMMITTED,
    DEFERRED,
    DEMAND,
    FIRST_READ_CREDIT,
    FIRST_TENSOR,
    PER_TENSOR,
    STATUS,
)
from tilewright_mappers.optimal.kernel.structures import STATIONARY, Stage, StateRows, StateTable
from tilewright_mappers.optimal.search_instance import SearchInstance
from tilewright_mappers.optimal.staged_search import StagedSearch
from tilewright_mappers.optimal.state_tables import States, StateTables


@dataclass
class RecordedState:
    """State of a recorded search; `pruned` is empty if the state is kept, else "bound" or "dominance"."""

    kind: int
    number: int
    predecessor: int
    tiles: tuple[int, ...]
    """Number of tiles per dimension."""
    stationary: tuple[bool, ...]
    committed: float
    deferred: tuple[float, ...]
    demand: tuple[float, ...]
    credit: tuple[float, ...]
    bound: float
    outer_table_needed: bool = False
    """Whether the bound is below the cutoff without the table of outer memories (Lemma 12)."""
    pruned: str = ""

    def dominates(self, other: RecordedState) -> bool:
        """Return whether the conditions of Lemma 3 hold without windows, ports and payment of credits."""
        if (self.tiles, self.stationary) != (other.tiles, other.stationary):
            return False
        mine, theirs = ((state.committed, *state.deferred, *state.demand) for state in (self, other))
        worse = [a > b * (1 + 1e-9) for a, b in zip(mine, theirs, strict=True)]
        return not any(worse) and all(a >= b * (1 - 1e-9) for a, b in zip(self.credit, other.credit, strict=True))


class RecordedSearch(StagedSearch):
    """Staged search that expands each state a second time without pruning, and compares the results."""

    def __init__(self, instance: SearchInstance, cutoff: float, width: int, over: Callable[[], bool]) -> None:
        super().__init__(instance, cutoff, width, over)
        self.recorded: list[RecordedState] = []
        self._numbers: dict[int, list[int]] = {}
        self._results: list[States] = []
        """All results, so that the keys of `_numbers` stay unique."""

    def _expand(self, stage: Stage, states: States, decision: int = -1, table: StateTable | None = None) -> States:
        free = self.context._replace(cutoff=math.inf, costs=self.context.costs._replace(dominance=False))
        before, rows = self._numbers.get(id(states), [0]), StateRows(states.numbers, states.integers)
        owner: list[int] = []
        tables = StateTables(self.instance.layout, self.instance.problem.trip.shape, self.width, 1 << 30)
        every = tables.empty(states)
        plain = tables.empty(states, every)
        without = stage._replace(outer=stage.outer._replace(outer_pj=for_kernel(stage.outer.outer_pj[:0])))
        for i in range(len(states)):
            stages.expand_states(free, stage, rows, every, i, i + 1)
            stages.expand_states(free, without, rows, plain, i, i + 1)
            owner += [before[i]] * (int(every.counters[0]) - len(owner))
        count = len(owner)
        successors = States(every.rows.numbers[:count], every.rows.integers[:count])
        recorded = [self._record(stage.kind, successors, i, owner[i]) for i in range(count)]
        result = super()._expand(stage, states, decision, table)
        left = [self._content(result, i) for i in range(len(result))]
        kept = []
        for i, state in enumerate(recorded):
            if state.bound > self.context.cutoff:
                state.pruned = "bound"
                state.outer_table_needed = bool(plain.rows.numbers[i, BOUND] <= self.context.cutoff)
            elif (content := self._content(successors, i)) in left:
                left.remove(content)
                kept.append(state.number)
            else:
                state.pruned = "dominance"
        self._numbers[id(result)] = kept
        self._results.append(result)
        return result

    def _content(self, states: States, i: int) -> bytes:
        """Return the state without its bound, which depends on the cutoff, and without its decision."""
        numbers, integers = states.numbers[i].copy(), states.integers[i].copy()
        numbers[BOUND], integers[self.instance.layout.decision] = 0.0, 0
        return bytes(numbers.tobytes() + integers.tobytes())

    def _record(self, kind: int, states: States, i: int, predecessor: int) -> RecordedState:
        problem, layout = self.instance.problem, self.instance.layout
        numbers, integers = states.numbers[i], states.integers
        tensors = range(self.instance.tensors)

        def column(offset: int) -> tuple[float, ...]:
            return tuple(float(numbers[FIRST_TENSOR + PER_TENSOR * t + offset]) for t in tensors)

        self.recorded.append(
            RecordedState(
                kind=kind,
                number=len(self.recorded) + 1,
                predecessor=predecessor,
                tiles=tuple(
                    int(problem.tile_count[d, integers[i, layout.tile_index + d]]) for d in range(self.instance.dims)
                ),
                stationary=tuple(int(integers[i, STATUS]) >> 2 * t & 3 == STATIONARY for t in tensors),
                committed=float(numbers[COMMITTED]),
                deferred=column(DEFERRED),
                demand=column(DEMAND),
                credit=column(FIRST_READ_CREDIT),
                bound=float(numbers[BOUND]),
            )
        )
        return self.recorded[-1]

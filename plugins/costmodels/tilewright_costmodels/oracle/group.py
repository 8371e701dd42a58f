"""Execution of a group mapping: layers that share outer loops, and the tensors between them.

Each layer is executed along its path from the root. A branch starts with nothing in the entries
inside it. Words that several layers read from one shared tile are moved once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewright.errors import Reason
from tilewright.mapspace.group_legality import (
    crowded,
    ends_with_sequence,
    group_legality,
    group_peaks,
    halo_coordinate,
    home_of,
    keeps_halo,
    width_at,
)
from tilewright.mapspace.group_loops import executed
from tilewright.plugin.group_reports import GroupRow, group_report
from tilewright.prices import prices_of
from tilewright.reports import Execution, Limit, Report
from tilewright.schema.group import Edge, GroupMapping, Path, Place
from tilewright.schema.problem import Tensor
from tilewright_costmodels.oracle.memories import MemoryTraffic, Uses, compute, largest_tile, move
from tilewright_costmodels.oracle.report import TensorResidency, limits, sharing
from tilewright_costmodels.oracle.result import Words, examine, inside
from tilewright_costmodels.oracle.trace import Ints, OperationTrace, TooManyOperationsError, trace_operations


def explain_group(group: GroupMapping, limit: int) -> Report:
    """Return the report of a group, or the reasons against it.

    Args:
        group: the group; a row of the report is a tensor of the group in one memory.
        limit: operations of all layers that are executed at most.
    """
    macs = sum(problem.macs for problem in group.layers)
    report = Report(model="oracle", problem=group.name, valid=False, macs=macs)
    if macs > limit:
        text = f"{macs} operations; expected at most {limit} (option max_operations)"
        return report.model_copy(update={"reasons": (Reason(code="too_large", where=group.name, message=text),)})
    reasons = group_legality(group).reasons
    if reasons:
        return report.model_copy(update={"reasons": reasons})
    try:
        run = GroupRun(group, 4 * limit)
    except TooManyOperationsError as error:
        text = f"the group executes {error}; its layers have {macs}"
        return report.model_copy(update={"reasons": (Reason(code="too_large", where="execution", message=text),)})
    execution, errors = run.examined()
    reasons = (*errors, *run.unreadable())
    if not reasons:
        peaks = run.peaks()
        reasons = tuple(crowded(group, peaks))
    if reasons:
        return report.model_copy(update={"reasons": reasons, "execution": execution})
    return _costed(report, run, execution, peaks)


def _costed(report: Report, run: GroupRun, execution: Execution, peaks: dict[str, float]) -> Report:
    group = run.group
    rows, limited, prices = list[GroupRow](), dict[str, list[Limit]](), prices_of(group.architecture)
    counted = run.count()
    for use, residencies in counted:
        names = {"layer": use.path.problem.name, "tensor": use.name}
        for residency in residencies:
            accesses = residency.accesses().model_copy(update=names)
            rows.append(
                GroupRow(accesses, residency.traffic.tile_words, residency.energy_pj(prices[residency.memory.name]))
            )
    for layer, trace in run.traces.items():
        cycles = len(np.unique(trace.time_steps)) * group.architecture.compute.cycles_per_operation
        kept = [
            residency for use, residencies in counted if use.path.problem.name == layer for residency in residencies
        ]
        computing = Limit(name="compute", action="compute", cycles=cycles)
        limited[layer] = [computing, *limits(group.architecture, kept)]
    return group_report(report, group, rows, limited, peaks).model_copy(update={"execution": execution})


@dataclass(frozen=True)
class Use:
    """Operations of one layer on words of a tensor of the group that exist.

    `words` has the group's index of the word of each operation, and `points` the word's coordinates in the group.
    """

    path: Path
    tensor: Tensor
    trace: OperationTrace
    words: Ints
    points: Ints

    @property
    def name(self) -> str:
        """The group's name of the tensor."""
        return self.path.names[self.tensor.name]


class GroupRun:
    """Traffic of a legal group whose layers each execute every iteration once.

    Raises:
        TooManyOperationsError: more than `limit` operations in a layer.
    """

    def __init__(self, group: GroupMapping, limit: int) -> None:
        self.group = group
        traces = {name: _trace(group, path, limit) for name, path in group.paths.items()}
        self.traces = traces
        self.uses, self.added = dict[str, list[Use]](), dict[str, list[Use]]()
        for tensor, users in group.users.items():
            some = list(_uses(group, tensor, traces))
            self.uses[tensor] = [use for use in some if use.path.problem.name in users]
            self.added[tensor] = [use for use in some if use.path.problem.name not in users]
        self.traffic: dict[tuple[str, str], list[MemoryTraffic]] = {}

    def examined(self) -> tuple[Execution, list[Reason]]:
        """Return the outcome of executing the layers, added up, and the errors."""
        total, errors = (
            Execution(operations=0, missing=0, repeated=0, outside=0, result_words=0, wrong_words=0),
            list[Reason](),
        )
        for name, path in self.group.paths.items():
            words = {tensor.name: Words(path.problem, tensor) for tensor in path.problem.tensors}
            execution, reasons = examine(path.problem, words, inside(path.problem, self.traces[name]))
            total = Execution(
                operations=total.operations + execution.operations,
                missing=total.missing + execution.missing,
                repeated=total.repeated + execution.repeated,
                outside=total.outside + execution.outside,
                result_words=total.result_words + execution.result_words,
                wrong_words=total.wrong_words + execution.wrong_words,
            )
            errors += [reason.model_copy(update={"where": f"{name}, {reason.where}"}) for reason in reasons]
        return total, errors

    def unreadable(self) -> Iterator[Reason]:
        """Yield a reason for each tensor that a layer reads before it is made, or that has gone."""
        for tensor, uses in self.uses.items():
            maker = next((use for use in uses if use.tensor.is_output), None)
            for use in uses:
                if not len(use.words):
                    text = f"{use.path.problem.name} touches no word of it; check the offsets and sizes of its edge"
                    yield Reason(code="halo", where=f"tensor {tensor}", message=text)
                elif maker is not None and use is not maker and len(maker.words):
                    yield from _read_early(maker, use, keeps_halo(self.group, tensor), self._is_stored(tensor))
            for use in self.added[tensor]:
                assert maker is not None, "a result is added"
                yield from _read_early(maker, use, keeps_halo(self.group, tensor), self._is_stored(tensor), "adds")

    def count(self) -> list[tuple[Use, list[TensorResidency]]]:
        """Return the traffic of each layer and tensor in the memories that keep it."""
        for uses in self.uses.values():
            self._move(uses)
        return [
            (use, [self._residency(use, traffic) for traffic in self.traffic[use.path.problem.name, use.tensor.name]])
            for uses in self.uses.values()
            for use in uses
        ]

    def peaks(self) -> dict[str, float]:
        """Return memory -> words alive at one moment, at most, in one instance."""

        def tile(tensor: str, place: Place, number: int) -> float:
            users = [use for use in self.uses[tensor] if (place, number) in use.path.places]
            held: Uses = [(use.trace, use.words) for use in users]
            entry = users[0].path.places.index((place, number))
            if keeps_halo(self.group, tensor) and home_of(self.group, users[0].path.problem.name, tensor) == (
                place,
                number,
            ):
                along = halo_coordinate(self.group, tensor) if self._is_stored(tensor) else None
                return _most_alive([*users, *self.added[tensor]], entry, along) * width_at(
                    self.group, tensor, place, number
                )
            return largest_tile(held, entry) * width_at(self.group, tensor, place, number)

        return group_peaks(self.group, tile)

    def _is_stored(self, tensor: str) -> bool:
        """Return whether words that no layer makes exist, as zeros."""
        edge = self.group.edge_of(tensor)
        return edge is not None and edge.zeros

    def _residency(self, use: Use, traffic: MemoryTraffic) -> TensorResidency:
        cluster = self.group.architecture.cluster(use.path.mapping.entries[traffic.entry].target)
        memory = cluster.memory_for(use.tensor)
        assert memory is not None, "legality has been checked"
        return TensorResidency(memory, cluster, use.tensor, traffic)

    def _move(self, uses: list[Use]) -> None:
        """Execute one tensor of the group; a shared tile of operands is filled for its first reader."""
        moved = set[tuple[Place, int]]()
        for use in uses:
            path, output = use.path, use.tensor.is_output
            memories = [MemoryTraffic(entry) for entry in path.keepers(use.tensor.name)]
            may_share = sharing(self.group.architecture, path.mapping, use.tensor)
            self.traffic[path.problem.name, use.tensor.name] = memories
            for memory in memories:
                memory.instances = len(np.unique(use.trace.instances(memory.entry)))
                memory.tile_words = largest_tile([(use.trace, use.words)], memory.entry)
            for outer, inner in zip(memories, memories[1:], strict=False):
                place = path.places[inner.entry]
                if place in moved:
                    continue
                sharers = [
                    reader
                    for reader in uses
                    if not output and not reader.tensor.is_output and place in reader.path.places
                ]
                moved |= {place} if sharers else set()
                together: Uses = [(sharer.trace, sharer.words) for sharer in sharers or [use]]
                move(together, outer, inner, may_share, output, self._visit(use, inner.entry))
            compute(use.trace, use.words, memories[-1], may_share, output)

    def _visit(self, use: Use, entry: int) -> int:
        """Return after how many steps of an entry's memory it starts empty; 0: never."""
        if ends_with_sequence(self.group, use.name, use.path, entry):
            return 1
        start = use.path.starts[entry]
        if start == 0:
            return 0
        return use.trace.time_steps_per_tile[start - 1] // use.trace.time_steps_per_tile[entry]


def _uses(group: GroupMapping, tensor: str, traces: dict[str, OperationTrace]) -> Iterator[Use]:
    """Yield the operations of each layer on a tensor of the group, with common indices of its words."""
    edge = group.edge_of(tensor)
    uses = []
    for layer, name in group.needs[tensor].items():
        path = group.paths[layer]
        layer_tensor = path.problem.tensor(name)
        points = traces[layer].points @ path.problem.projection_matrix(layer_tensor).T
        uses.append((path, layer_tensor, traces[layer], points - np.array(edge.offsets.get(layer, 0) if edge else 0)))
    made_by = None if edge and edge.zeros else group.maker(tensor)
    maker = next((points for path, _, _, points in uses if path.problem.name == made_by), None)
    least, most = _box(edge, maker, [points for *_, points in uses])
    shape = [max(1, int(high - low)) for low, high in zip(least, most, strict=True)]
    for path, layer_tensor, trace, points in uses:
        there = ((points >= least) & (points < most)).all(axis=1)
        part = replace(
            trace,
            points=trace.points[there],
            time_steps=trace.time_steps[there],
            unit_indices=trace.unit_indices[there],
        )
        places = (points[there] - least).T
        words = np.ravel_multi_index(tuple(places), shape) if shape else np.zeros(len(part.points), dtype=np.int64)
        yield Use(path, layer_tensor, part, words, points[there])


def _box(edge: Edge | None, maker: Ints | None, points: list[Ints]) -> tuple[Ints, Ints]:
    """Return the first coordinates of the words that exist, and the ends, int64 [coordinate] each."""
    known = maker if maker is not None else np.concatenate(points)
    least, most = known.min(axis=0), known.max(axis=0) + 1
    if edge is None or edge.sizes is None:
        return least, most
    return np.maximum(least, 0), np.minimum(most, np.array(edge.sizes, dtype=np.int64))


def _trace(group: GroupMapping, path: Path, limit: int) -> OperationTrace:
    """Execute one layer."""
    run = executed(group, path)
    trace = trace_operations(run.problem, run.mapping, limit)
    points = trace.points - np.array([run.skipped.get(name, 0) for name in run.problem.dimension_names])
    there = ((points >= 0) & (points < np.array(path.problem.sizes))).all(axis=1)
    return replace(
        trace, points=points[there], time_steps=trace.time_steps[there], unit_indices=trace.unit_indices[there]
    )


def _most_alive(users: list[Use], entry: int, along: int | None) -> int:
    """Return the most words of a tensor that one instance of its home holds, from the first use to the last.

    Args:
        along: coordinate along which rows are kept, in which zeros live as long as the word next to them; None: there are none.
    """
    words, instances, steps = (
        np.concatenate(arrays)
        for arrays in zip(*((u.words, u.trace.instances(entry), u.trace.steps(entry)) for u in users), strict=True)
    )
    next_to = words
    if along is not None:
        points = np.concatenate([user.points for user in users])
        made = next(user.points for user in users if user.tensor.is_output)
        least, most = made.min(axis=0), made.max(axis=0)
        least[along], most[along] = points[:, along].min(), points[:, along].max()
        next_to = np.unique(np.clip(points, least, most), axis=0, return_inverse=True)[1].reshape(-1)
    alive = 0
    for instance in np.unique(instances):
        here = instances == instance
        cells, at = np.unique(next_to[here], return_inverse=True)
        first, last = np.full(len(cells), np.iinfo(np.int64).max), np.full(len(cells), -1)
        np.minimum.at(first, at, steps[here])
        np.maximum.at(last, at, steps[here])
        together = np.bincount(at[np.unique(words[here], return_index=True)[1]])
        begun, gone = np.argsort(first), np.argsort(last)
        left = np.concatenate([[0], np.cumsum(together[gone])])
        ended = left[np.searchsorted(last[gone], first[begun])]
        alive = max(alive, int((np.cumsum(together[begun]) - ended).max()))
    return alive


def _read_early(maker: Use, reader: Use, halo: bool, zeros: bool, verb: str = "reads") -> Iterator[Reason]:
    """Yield a reason for the first word that is not whole, or not there, when it is read.

    Args:
        halo: the home keeps words of earlier steps.
        zeros: words that the maker does not make are there.
    """
    shared = sum(1 for ours, theirs in zip(maker.path.places, reader.path.places, strict=False) if ours == theirs)
    count = 1 + int(max(maker.words.max(initial=0), reader.words.max()))
    before = maker.path.place < reader.path.place

    def steps(use: Use) -> Ints:
        return use.trace.steps(shared - 1) if shared else np.zeros(len(use.words), dtype=np.int64)

    needed = np.bincount(maker.words, minlength=count)
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, reader.words, steps(reader))
    ready = steps(maker) < first[maker.words] + int(before)
    done = np.bincount(maker.words[ready], minlength=count)
    home = maker.path.keepers(maker.tensor.name)[0]
    read = first < np.iinfo(np.int64).max
    early = read & ((done < needed) | ((needed == 0) & (not zeros)))
    if early.any():
        word = int(early.argmax())
        text = f"{reader.path.problem.name} {verb} a word after {done[word]} of {needed[word]} operations of {maker.path.problem.name}"
        yield Reason(code="unfinished" if done[word] else "halo", where=f"tensor {maker.name}", message=text)
        return
    made = set(maker.words.tolist()) if zeros else None
    if not halo and {at for at in _held(reader, home) if made is None or at[0] in made} - _held(maker, home):
        text = f"{reader.path.problem.name} {verb} words that its home does not hold at that step"
        yield Reason(code="halo", where=f"tensor {maker.name}", message=text)


def _held(use: Use, entry: int) -> set[tuple[int, int, int]]:
    """Return the words that a layer touches, with the entry's instance and step."""
    columns = (use.words, use.trace.instances(entry), use.trace.steps(entry))
    return set(zip(*(column.tolist() for column in columns), strict=True))

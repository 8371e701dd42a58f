"""Follow the reads of random fused networks through what their plans say: each word is whole before a layer uses it.

cd tests && python -m support.followed_networks 500 --start 0

The workload states which words a layer needs, and whose results add up to each. The plan states which tensors stay, and
who adds what to them. Nothing of the search, or of the way from reads to edges, is used but the names that parts of a
dimension have in a group. The questions, for all words of all operands:

* When: have all makers made all their contributions before the layer first needs the word, and rows that an operator
  needs together?
* What: has the stored tensor the very contributions that the layer asks for, behind the same operators?
* Where: does a result that other layers need, or the network returns, leave the chip on its own?

An operator that all results of a sum pass acts on the sum, with those behind it; those before it act on one result alone.
So it is for a sum that is added to another result: what all of its own results pass is behind it.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tilewright as tw
from support.groups import ORACLE, TIMELOOP, figures, judged
from support.residual_networks import Drawn
from support.tally import tally
from tilewright.application.api.network_fusion import NetworkFusion
from tilewright.application.run.evaluation import evaluate_group
from tilewright.application.run.network_groups import group_of_layers
from tilewright.errors import TilewrightError
from tilewright.schema.group import GroupMapping
from tilewright.schema.read import Index, Read
from tilewright.schema.workload import Workload
from tilewright_costmodels.oracle.group import _trace

Word = tuple[int, ...]
One = tuple[str, Word]
"""A maker, and a word of its result."""
Behind = tuple[str, ...]
"""Operators that a word has passed, in order."""
Operand = tuple[str, str]
"""A layer, and its name of the tensor."""


# -- what layers ask for -------------------------------------------------------------------------------------


@dataclass
class Asked:
    """What an operand has at one word: results that add up, with the operators of each, and all words that they need."""

    ones: list[tuple[One, Behind]] = field(default_factory=list)
    needs: set[One] = field(default_factory=set)

    @property
    def sum(self) -> Counter[One]:
        return Counter(one for one, _ in self.ones)


def asked(workload: Workload) -> dict[Operand, dict[Word, Asked]]:
    """Return what each operand with reads has, word by word."""
    reads, operands = dict[Operand, list[Read]](), dict[Operand, dict[Word, Asked]]()
    for layer, operand, read in workload.edges:
        reads.setdefault((layer, operand), []).append(read)
    for user, every in reads.items():
        words = operands.setdefault(user, {})
        rows = [
            [at for at, index in enumerate(read.read or ()) if index.terms.keys() & {*read.whole}] for read in every
        ]
        for read, along in zip(every, rows, strict=True):
            # rows that all results of a sum need together are those of an operator on the sum
            behind = (*([f"rows along {along}"] if along and rows.count(along) < len(rows) else ()), *read.through)
            points, together = [] if read.cut else list(_points(read)), dict[Word, list[One]]()
            for row, made, _ in points:
                together.setdefault(row, []).append((read.maker, made))
            for row, made, word in points:
                what = words.setdefault(word, Asked())
                what.ones.append(((read.maker, made), behind))
                what.needs |= {*together[row]} if read.whole else {(read.maker, made)}
    return operands


def _points(read: Read) -> Iterator[tuple[Word, Word, Word]]:
    """Yield the coordinates outside a row that an operator needs together, the maker's word and the operand's."""

    def word(indices: Sequence[Index] | None, at: Mapping[str, int]) -> Word:
        return tuple(one.offset + sum(n * at[name] for name, n in one.terms.items()) for one in indices or ())

    for values in itertools.product(*map(range, read.sizes.values())):
        at = dict(zip(read.sizes, values, strict=True))
        yield tuple(n for name, n in at.items() if name not in read.whole), word(read.made, at), word(read.read, at)


def alone(behind: Mapping[One, Behind]) -> dict[One, Behind]:
    """Return the operators that act on each result of a sum alone."""
    common = set[str].intersection(*(set(names) for names in behind.values()))
    cuts = {
        one: next((at for at, name in enumerate(names) if name in common), len(names)) for one, names in behind.items()
    }
    if len({names[cuts[one] :] for one, names in behind.items()}) > 1:
        return dict(behind)  # in another order: nothing acts on the sum
    return {one: names[: cuts[one]] for one, names in behind.items()}


Faults = dict[tuple[str, object], str]
"""Question, and layer or operand -> the first fault."""


# -- what stores have ----------------------------------------------------------------------------------------


@dataclass
class Stores:
    """Sums that are stored, and the operators before them, as the first layer that asks for each tells them.

    `inner`: word of a result -> the words of results that are added to it.
    """

    inner: dict[One, list[One]] = field(default_factory=dict)
    sums: dict[One, Counter[One]] = field(default_factory=dict)
    behind: dict[One, dict[One, Behind]] = field(default_factory=dict)
    faults: Faults = field(default_factory=dict)

    def content(self, one: One) -> list[One]:
        """Return the results that add up in a stored word, the last first."""
        return [one, *(other for before in self.inner.get(one, ()) for other in self.content(before))]

    def agree(self, one: One, what: Asked, who: object) -> None:
        """Compare a sum with that of other layers that read the same word of the last result."""
        if self.sums.setdefault(one, what.sum) != what.sum:
            self.faults.setdefault(
                ("WHAT", who), f"asks for {[*what.sum]}, others for {[*self.sums[one]]}, both stored as {one}"
            )

    def check(self, one: One, behind: Mapping[One, Behind], who: object) -> None:
        """Compare the operators of a sum, and of the sums before it, with those that other layers ask for."""
        if len(behind) < 2:
            return
        before_sum = alone(behind)
        if self.behind.setdefault(one, before_sum) != before_sum:
            self.faults.setdefault(("WHAT", who), f"asks for {before_sum}, others for {self.behind[one]}")
        for before in self.inner.get(one, ()):
            self.check(before, {other: before_sum[other] for other in self.content(before)}, who)


class Execution:
    """A group mapping, executed: when each layer uses each word of the network.

    Args:
        dimensions: layer -> dimension in the group -> (dimension in the network, factor).
    """

    def __init__(
        self, workload: Workload, group: GroupMapping, dimensions: Mapping[str, Mapping[str, tuple[str, int]]]
    ) -> None:
        self.workload, self.group, self.faults = workload, group, Faults()
        self.traces = {name: _trace(group, path, 10**6) for name, path in group.paths.items()}
        self.points = dict[str, np.ndarray[Any, Any]]()
        for name, trace in self.traces.items():
            joined, problem = group.paths[name].problem, workload.layer(name).problem
            factors = np.zeros((len(joined.sizes), len(problem.sizes)), dtype=np.int64)
            for new, (old, factor) in dimensions[name].items():
                factors[joined.dimension_names.index(new), problem.dimension_names.index(old)] = factor
            self.points[name] = trace.points @ factors
            grid = {tuple(point) for point in self.points[name].tolist()}
            if len(grid) < len(trace.points) or grid != {*itertools.product(*map(range, problem.sizes))}:
                self.faults["WHAT", name] = "executes other iterations than in the network"

    def words(self, layer: str, tensor: str) -> list[Word]:
        """Return the network's word of each operation."""
        problem = self.workload.layer(layer).problem
        return _rows(self.points[layer], problem.projection_matrix(problem.tensor(tensor)))

    def places(self, layer: str, tensor: str) -> dict[Word, Word]:
        """Return the coordinates in the group's tensor -> the network's word of a layer's tensor."""
        problem = self.group.paths[layer].problem
        edge = self.group.edge_of(self.group.paths[layer].names[tensor])
        starts = (edge.offsets.get(layer) if edge else None) or (0,) * len(problem.tensor(tensor).projection)
        places = dict[Word, Word]()
        rows = _rows(self.traces[layer].points, problem.projection_matrix(problem.tensor(tensor)))
        for place, word in zip(rows, self.words(layer, tensor), strict=True):
            at = tuple(n - start for n, start in zip(place, starts, strict=True))
            if places.setdefault(at, word) != word:
                self.faults["WHAT", (layer, tensor)] = f"has {word} and {places[at]} at {at}"
        return places

    def times(self, layer: str, tensor: str, other: str, last: bool) -> dict[Word, tuple[int, int]]:
        """Return when a layer first, or last, uses each word: the step of the loops shared with another one, and the branch."""
        path, shared = self.group.paths[layer], 0
        for ours, theirs in zip(path.places, self.group.paths[other].places, strict=False):
            if ours != theirs:
                break
            shared += 1
        trace, times = self.traces[layer], dict[Word, tuple[int, int]]()
        steps = trace.steps(shared - 1).tolist() if shared else [0] * len(trace.points)
        branch = [*self.group.paths].index(layer)
        for word, step in zip(self.words(layer, tensor), steps, strict=True):
            known = times.setdefault(word, (step, branch))
            times[word] = max(known, (step, branch)) if last else min(known, (step, branch))
        return times


def _rows(points: Any, matrix: Any) -> list[Word]:
    return [tuple(row) for row in (points @ matrix.T).tolist()]


class Judge:
    """The plan of a fused network, followed from the reads of its workload."""

    def __init__(self, fusion: NetworkFusion) -> None:
        self.fusion, self.workload = fusion, fusion.workload
        self.order = {layer.name: at for at, layer in enumerate(self.workload.layers)}
        self.asked = asked(self.workload)
        self.faults = Faults()
        self.stays = dict[Operand, str]()
        """Operands that are read on chip, and how."""
        self.fused = Counter[str]()

    def follow(self) -> list[str]:
        """Return what is wrong with the plan."""
        for part in self.fusion.parts:
            names = group_of_layers(self.workload, self._run(part.layers[0]), self.fusion.architecture)
            self._group(part.mapping, names.dimensions, "tiles")
        if self.fusion.group is not None:
            same = {p.name: {name: (name, 1) for name in p.dimensions} for p in self.fusion.group.layers}
            self._group(self.fusion.group, same, "a group")
        self._whole()
        return [f"{question}, {who}: {text}" for (question, who), text in self.faults.items()]

    def _run(self, name: str) -> list[str]:
        """Return the layers around one that are executed equally often."""
        layers, at = self.workload.layers, self.order[name]
        first = last = at
        while first and layers[first - 1].count == layers[at].count:
            first -= 1
        while last + 1 < len(layers) and layers[last + 1].count == layers[at].count:
            last += 1
        return [layer.name for layer in layers[first : last + 1]]

    def _made_at(self, one: One, user: Operand) -> int:
        """Return the position of a maker; below 0, the result is one of an earlier iteration."""
        at = self.order[one[0]]
        return at if at < self.order[user[0]] else at - len(self.order)

    # -- layers that share loops -----------------------------------------------------------------------------

    def _group(self, group: GroupMapping, dimensions: Mapping[str, Mapping[str, tuple[str, int]]], how: str) -> None:
        run, stores = Execution(self.workload, group, dimensions), Stores()
        outer, output = group.architecture.clusters[0].name, {p.name: p.output.name for p in group.layers}
        homes = {name: path.mapping.entries[path.keepers(output[name])[0]].target for name, path in group.paths.items()}
        words = {(name, tensor): run.places(name, tensor) for name, p in group.paths.items() for tensor in p.names}
        for edge in group.edges:
            maker = group.maker(edge.tensor)
            for layer in edge.added:
                self.fused["added edges"] += 1
                for place, word in words[layer, output[layer]].items():
                    before = words[str(maker), output[str(maker)]].get(place)
                    if before is None:
                        run.faults["WHAT", layer] = f"has nothing of {edge.tensor} to add at {place}"
                    else:
                        stores.inner.setdefault((layer, word), []).append((str(maker), before))
        for layer in {layer for edge in group.edges for layer in edge.added}:
            self._in_time(run, stores, (layer, output[layer]), None)
        for (layer, operand), users in self.asked.items():
            edge_read = group.edge_of(group.paths[layer].names[operand]) if layer in output else None
            maker = group.maker(edge_read.tensor) if edge_read else None
            if maker is not None:
                told = "edge" if homes[maker] != outer else "edge outside"
                self.stays[layer, operand] = f"{told}, {how}"
                self._is_stored(run, stores, words, maker, (layer, operand))
            for word, what in users.items() if maker is None else ():
                self._is_outside(stores, homes, outer, (layer, operand), word, what)
            if layer in output:
                self._in_time(run, stores, (layer, operand), users)
        for edge in group.edges:
            if group.maker(edge.tensor) is None:
                self._in_common(run, words, edge.layers)
        for layer in group.paths:
            if homes[layer] != outer or any(
                len(stores.content((layer, w))) > 1 for w in words[layer, output[layer]].values()
            ):
                for text in self._other_uses(layer):
                    run.faults["WHERE", layer] = f"{text}, and it is in {homes[layer]}, perhaps in a sum"
        self.faults |= run.faults | stores.faults

    def _is_stored(
        self, run: Execution, stores: Stores, words: Mapping[Operand, dict[Word, Word]], maker: str, user: Operand
    ) -> None:
        """Compare the words that a layer finds in a result on chip with those that it asks for."""
        output = self.workload.layer(maker).problem.output.name
        made = words[maker, output]
        for place, word in words[user].items():
            what = self.asked[user].get(word, Asked())
            inside = Counter({one: n for one, n in what.sum.items() if one[0] in run.group.paths})
            there = Counter(stores.content((maker, made[place]))) if place in made else Counter[One]()
            if inside != there:
                run.faults.setdefault(("WHAT", user), f"asks for {[*what.sum]} at {word}, and {[*there]} is there")
            elif any(self.order[name] >= self.order[user[0]] for name, _ in what.sum):
                run.faults["WHEN", user] = f"reads the result of an earlier iteration at {word}"
            elif there:
                last = (maker, made[place])
                self.fused["words with addends from outside"] += inside != what.sum
                stores.agree(last, what, user)
                stores.check(last, {one: names for one, names in what.ones if one in there}, user)

    def _is_outside(
        self,
        stores: Stores,
        homes: Mapping[str, str],
        outer: str,
        user: Operand,
        word: Word,
        what: Asked,
    ) -> None:
        """Find the sum that a layer asks for among the results in the outermost memory."""
        left = Counter({one: n for one, n in what.sum.items() if one[0] in homes})
        behind = dict(what.ones)
        while left:
            last = max(left, key=lambda one: self._made_at(one, user))
            there = Counter(stores.content(last))
            earlier = {self._made_at(one, user) < 0 for one in there}
            if homes[last[0]] != outer or there - left or len(earlier) > 1:
                told = f"asks for {[*what.sum]} at {word}; {[*there]} is in {homes[last[0]]}"
                stores.faults.setdefault(("WHERE", user), told)
                return
            stores.check(last, {one: behind[one] for one in there}, user)
            left -= there

    def _in_common(self, run: Execution, words: Mapping[Operand, dict[Word, Word]], users: Mapping[str, str]) -> None:
        """Compare what several layers find in an input that they share."""
        known = dict[Word, object]()
        self.fused["inputs in common"] += 1
        for user in users.items():
            value = self.workload.layer(user[0]).inputs.get(user[1])
            for place, word in words[user].items():
                what = self.asked.get(user, {}).get(word)
                content = (value, word) if what is None else (what.sum, alone(dict(what.ones)))
                if known.setdefault(place, content) != content:
                    run.faults.setdefault(("WHAT", user), f"asks for {content} at {place}, others for {known[place]}")
                if what is not None and any(
                    name in run.group.paths and self.order[name] < self.order[user[0]] for name, _ in what.sum
                ):
                    run.faults["WHAT", user] = f"reads {[*what.sum]}, which are made here, as an input"

    def _in_time(self, run: Execution, stores: Stores, user: Operand, users: Mapping[Word, Asked] | None) -> None:
        """Check that all that a word needs is made before a layer first uses it, or adds it (`users` is None)."""
        layer, tensor = user
        uses = dict[str, dict[Word, tuple[int, int]]]()
        made = dict[str, dict[Word, tuple[int, int]]]()
        for word in {*run.words(layer, tensor)}:
            needs = {*stores.content((layer, word))[1:]} if users is None else users.get(word, Asked()).needs
            for maker, needed in needs:
                if maker not in run.group.paths or self.order[maker] >= self.order[layer]:
                    continue
                if maker not in made:
                    made[maker] = run.times(maker, self.workload.layer(maker).problem.output.name, layer, last=True)
                    uses[maker] = run.times(layer, tensor, maker, last=users is None)
                if made[maker][needed] >= uses[maker][word]:
                    run.faults.setdefault(("WHEN", user), f"needs {maker} {needed} for {word} before it is whole")

    def _other_uses(self, maker: str) -> Iterator[str]:
        """Yield the uses of a result that state no words."""
        layer = self.workload.layer(maker)
        if layer.returned:
            yield f"the network returns {maker}"
        for other in self.workload.layers:
            reads = [read for some in other.reads.values() for read in some if read.maker == maker]
            if any(read.cut for read in reads) or (not reads and maker in (other.after or ())):
                yield f"{other.name} reads unknown words of {maker}"
        if all(maker not in (other.after or ()) for other in self.workload.layers):
            yield f"the network ends with {maker}"

    # -- results that stay whole -----------------------------------------------------------------------------

    def _whole(self) -> None:
        """Check results that stay whole. The plan does not state which words of a sum are added, so its readers tell it."""
        residents, stores = {one.maker: one for one in self.fusion.residents}, Stores()
        for resident in residents.values():
            self.fused["whole results"] += 1
            for text in self._other_uses(resident.maker):
                self.faults["WHERE", resident.maker] = f"{text}, and it stays"
            many = False
            for user in ((name, operand) for name, some in resident.operands.items() for operand in some):
                self.stays[user] = "whole"
                for what in self.asked[user].values():
                    for last in [one for one in what.sum if one[0] == resident.maker]:
                        many |= len(what.ones) > 1
                        stores.agree(last, what, user)
                        stores.check(last, dict(what.ones), user)
            self.fused["whole sums"] += many
        for user, words in self.asked.items():
            for word, what in words.items():
                self._is_there(residents, stores, user, word, what)
        self.faults |= stores.faults

    def _is_there(
        self,
        residents: Mapping[str, Any],
        stores: Stores,
        user: Operand,
        word: Word,
        what: Asked,
    ) -> None:
        """Check that the results of a sum that stay are alive when it is made, or read."""
        left, behind, when = Counter(what.sum), dict(what.ones), self.order[user[0]]
        is_direct = True
        while left:
            last = max(left, key=lambda one: self._made_at(one, user))
            resident = residents.get(last[0])
            there = Counter([last])
            if resident is not None:
                there = stores.sums.get(last, there)
                listed = user[1] in resident.operands.get(user[0], ()) or not is_direct
                if not listed or not resident.first < when <= resident.last or there - left:
                    told = (
                        f"asks for {[*what.sum]} at {word}; {[*there]} stays from {resident.first} to {resident.last}"
                    )
                    self.faults.setdefault(("WHERE", user), told)
                    return
                if not is_direct:
                    stores.check(last, {one: behind[one] for one in there}, user)
            if resident is None or is_direct:
                there = Counter([last])  # to which the sum of the others is added when it is made
            left -= there
            is_direct, when = False, self._made_at(last, user)


# -- outcomes ------------------------------------------------------------------------------------------------


FUSED, STAYS = Counter[str](), dict[str, Counter[str]]()
"""What the plans of all networks have, and how often each kind of operand is read in which way."""


def outcome(seed: int) -> str:
    """Follow the network of a seed; return what is wrong, or how it is fused."""
    try:
        drawn = Drawn(seed)
    except TilewrightError as error:
        return f"WRONG: {error}"
    return followed(drawn.workload, drawn.architecture, drawn.objective, drawn.kinds)


def followed(workload: Workload, architecture: tw.Architecture, objective: Any, kinds: Mapping[Operand, str]) -> str:
    """Return what is wrong with the plan of a network, or how it is fused."""
    given: Any = {"objective": objective, "cache": False, "seconds": 60}
    try:
        fusion = tw.fuse_network(workload, architecture, **given)
    except TilewrightError as error:
        try:
            tw.map(workload, architecture, **given)
        except TilewrightError:
            return "nothing fits"
        return f"WRONG: refused, {error}"
    except Exception:
        return f"WRONG: {traceback.format_exc()}"
    judge = Judge(fusion)
    faults = judge.follow()
    for group in [part.mapping for part in fusion.parts] + [group for group in (fusion.group,) if group is not None]:
        executed = _executed(group)
        FUSED[f"{'network' if group is fusion.group else 'part'} executed: {executed}"] += 1
        # the group of a whole network has no zeros around results, of which `timeloop` does not count all
        is_counted = group is not fusion.group or executed != "refused by timeloop (padding)"
        if is_counted and not executed.startswith("equal"):
            faults.append(f"{group.name}: {executed}")
    if not fusion.value <= fusion.gain.unfused * (1 + 1e-9) or not (fusion.bound or 0) <= fusion.value:
        faults.append(f"costs {fusion.value}, unfused {fusion.gain.unfused}, at least {fusion.bound}")
    faults += [f"not searched: {run}" for run in fusion.unsearched]
    if faults:
        return f"WRONG ({len(faults)}): {'; '.join(faults[:3])}"
    FUSED.update(judge.fused)
    for user, kind in kinds.items():
        STAYS.setdefault(kind, Counter())[judge.stays.get(user, "out")] += 1
    named = [("tiles", fusion.parts), ("whole results", fusion.residents), ("sums added", judge.fused["added edges"])]
    return ", ".join(name for name, some in named if some) or "unfused"


def _executed(group: GroupMapping) -> str:
    """Return whether `timeloop` counts as execution does, but for windows, whose overlap it credits as Timeloop does."""
    told = judged(group)
    if told != "WRONG: counts differ":
        return told
    counts, others = (figures(evaluate_group(model, group)) for model in (TIMELOOP, ORACLE))
    rows = {key[2] for key in counts if isinstance(key, tuple) and len(key) == 3 and counts[key] != others[key]}
    windows = {
        path.names[tensor.name]
        for path in group.paths.values()
        for tensor in path.problem.tensors
        if any(sum(path.problem.dimensions[name] > 1 for name in rank.terms) > 1 for rank in tensor.projection)
    }
    return "equal, but for windows" if rows and rows <= windows else told


def main() -> int:
    """Follow random networks, and print how many are fused in which way; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="networks")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    arguments = parser.parse_args()
    wrong = tally(outcome, range(arguments.start, arguments.start + arguments.count), "networks")
    print(dict(FUSED))
    for kind, ways in sorted(STAYS.items()):
        print(f"{kind}: {dict(ways)}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())

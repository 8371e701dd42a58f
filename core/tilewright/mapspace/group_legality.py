"""Legality of group mappings: each layer's own rules, homes, whole sums, halos, and capacity over time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tilewright.errors import Reason, Verdict
from tilewright.mapspace.group_padding import existing_words, padded_use
from tilewright.mapspace.legality import legality
from tilewright.mapspace.room import shared_words
from tilewright.mapspace.sliding import Window, alive_rows, window_along, words_of_boxes
from tilewright.schema.architecture import Cluster, Memory
from tilewright.schema.group import GroupMapping, Part, Path, Place
from tilewright.schema.mapping import Entry
from tilewright.schema.problem import Tensor

REPLACED = ("order", "keep", "capacity")
"""Rules of single mappings that a group states for itself: by tensor, and over time."""

TileWords = Callable[[str, Place, int], float]
"""Words of the memory that a tensor of the group needs where an entry of a part keeps it."""


def group_legality(group: GroupMapping) -> Verdict:
    """Return a verdict with a reason for every rule that the group breaks.

    The codes are those of `legality`, and:

    - `home`: A tensor has no single home for its maker and its readers, or two memories there. Or an input or a final
      result is at home in an inner memory, and not whole there from the first branch to the last.
    - `unfinished`: A tensor is read before its sums are whole, or made again at every step.
    - `halo`: A step reads words that only a later step makes, or a home cannot keep the halo of its windows.
    - `alive`: The tiles that are alive at one moment do not fit a memory.
    """
    reasons = [
        Reason(code="coverage", where=problem.name, message="it has no entries on its path; give at least one")
        for problem in group.layers
        if problem.name not in group.paths
    ]
    for name, path in group.paths.items():
        broken = legality(path.problem, group.architecture, path.mapping).reasons
        reasons += [
            reason.model_copy(update={"where": f"{name}, {reason.where}"})
            for reason in broken
            if reason.code not in REPLACED
        ]
    if reasons:
        return Verdict(reasons=tuple(reasons))
    for tensor in group.users:
        reasons += _ordered(group, tensor)
        reasons += _homes(group, tensor)
    if not reasons:
        reasons += _uneven(group, group.tree, {})
        for tensor in group.users:
            reasons += _whole(group, tensor)
            reasons += _halo(group, tensor)
        reasons += crowded(group, tile_peaks(group))
    return Verdict(reasons=tuple(reasons))


def crowded(group: GroupMapping, peaks: dict[str, float]) -> list[Reason]:
    """Return a reason for each memory that holds less than the words alive at one moment."""
    return [
        Reason(
            code="alive",
            where=memory.name,
            message=f"tiles alive at one moment need {peaks[memory.name]:.15g} words, {memory.usable_words} fit",
        )
        for memory in group.architecture.memories
        if memory.usable_words is not None and peaks[memory.name] > memory.usable_words
    ]


def home_of(group: GroupMapping, layer: str, tensor: str) -> tuple[Place, int]:
    """Return part and entry where a layer's tensor (the group's name) is at home; the group is legal."""
    path = group.paths[layer]
    return path.places[path.keepers(group.users[tensor][layer])[0]]


def memory_at(group: GroupMapping, tensor: str, place: Place, number: int) -> Memory:
    """Return the memory that keeps a tensor of the group at an entry; the group is legal."""
    path, index = _path_at(group, tensor, place, number)
    name = group.users[tensor][path.problem.name]
    memory = group.architecture.cluster(path.mapping.entries[index].target).memory_for(path.problem.tensor(name))
    assert memory is not None, "legality has been checked"
    return memory


def width_at(group: GroupMapping, tensor: str, place: Place, number: int) -> float:
    """Return the words of one value of a tensor of the group where an entry keeps it; the group is legal."""
    paths = [group.paths[layer] for layer in group.users[tensor]]
    uses = [
        path.problem.tensor(group.users[tensor][path.problem.name]) for path in paths if (place, number) in path.places
    ]
    return shared_words(memory_at(group, tensor, place, number), uses)


def _path_at(group: GroupMapping, tensor: str, place: Place, number: int) -> tuple[Path, int]:
    for layer in group.users[tensor]:
        path = group.paths[layer]
        if (place, number) in path.places:
            return path, path.places.index((place, number))
    raise KeyError(tensor)


def _holding(cluster: Cluster, tensor: Tensor) -> Memory | None:
    """Return the memory that may hold a tensor, or None if there is none, or more than one."""
    able = [memory for memory in cluster.memories if memory.may_hold(tensor)]
    return able[0] if len(able) == 1 else None


def _ordered(group: GroupMapping, tensor: str) -> Iterator[Reason]:
    """Yield a reason for each layer whose memories do not keep the tensor from the outermost in."""
    clusters = group.architecture.cluster_index
    for layer, name in group.users[tensor].items():
        path = group.paths[layer]
        targets = [path.mapping.entries[index].target for index in path.keepers(name)]
        for target in targets:
            if _holding(group.architecture.cluster(target), path.problem.tensor(name)) is None:
                yield Reason(code="keep", where=layer, message=f"{target} has no single memory that may hold {tensor}")
        for outer, inner in zip(targets, targets[1:], strict=False):
            if clusters[outer] > clusters[inner]:
                text = f"{inner} keeps {tensor} inside {outer}; keep it in outer memories first"
                yield Reason(code="order", where=layer, message=text)
            elif outer == inner:
                yield Reason(code="keep", where=layer, message=f"{inner} keeps {tensor} twice; keep it there once")


def _homes(group: GroupMapping, tensor: str) -> Iterator[Reason]:
    users, maker = group.users[tensor], group.maker(tensor)
    memories: dict[tuple[Place, int], set[str]] = {}
    for layer, name in users.items():
        path = group.paths[layer]
        for index in path.keepers(name):
            cluster = group.architecture.cluster(path.mapping.entries[index].target)
            memory = _holding(cluster, path.problem.tensor(name))
            memories.setdefault(path.places[index], set()).add(memory.name if memory else cluster.name)
    for names in memories.values():
        if len(names) > 1:
            text = f"its layers keep it in different memories there: {', '.join(sorted(names))}; expected one"
            yield Reason(code="home", where=f"tensor {tensor}", message=text)
    if maker is None or is_end(group, tensor):
        yield from _ends(group, tensor)
        return
    homes = {layer: home_of(group, layer, tensor) for layer in users}
    if len(set(homes.values())) > 1:
        text = f"{' and '.join(users)} have no common home for it; keep it in a part outside of them"
        yield Reason(code="home", where=f"tensor {tensor}", message=text)
        return
    for layer in group.needs[tensor].keys() - users.keys():
        if homes[maker] not in group.paths[layer].places:
            text = f"{layer} adds it outside of its home; keep it in a part outside of both"
            yield Reason(code="home", where=f"tensor {tensor}", message=text)
            return
    path = group.paths[maker]
    for index in path.keepers(users[maker])[1:]:
        place, number = path.places[index]
        others = [user for user in users if user != maker and (place, number) in group.paths[user].places]
        if others:
            text = f"{maker} and {' and '.join(others)} share a second storage entry of it; make that one its home"
            yield Reason(code="home", where=f"tensor {tensor}", message=text)


def is_end(group: GroupMapping, tensor: str) -> bool:
    """Return whether a tensor of the group comes from outside or leaves: it has no maker, or no reader."""
    return group.maker(tensor) is None or len(group.needs[tensor]) < 2


def _ends(group: GroupMapping, tensor: str) -> Iterator[Reason]:
    """Yield a reason for each layer that has an input or a final result nowhere as a whole.

    The outermost memory that may hold it has all of it. Another home must have all of it during all branches.
    """
    for layer, name in group.users[tensor].items():
        path = group.paths[layer]
        home, use = path.keepers(name)[0], path.problem.tensor(name)
        if _is_outermost(group, use, path.mapping.entries[home].target):
            continue
        loops = path.mapping.factors()[: home + 1]
        stepped = [at for at in path.problem.dimensions if at in use.dimensions and any(f[0][at] > 1 for f in loops)]
        if stepped or path.places[home][0]:
            what = f"only a tile of it, in loops over {', '.join(stepped)}" if stepped else "it in one branch only"
            text = f"{layer} has {what}; keep it in the outermost memory too, or whole outside of all branches"
            yield Reason(code="home", where=f"tensor {tensor}", message=text)


def _is_outermost(group: GroupMapping, tensor: Tensor, target: str) -> bool:
    """Return whether no memory outside a cluster may hold a layer's tensor."""
    clusters = itertools.takewhile(lambda cluster: cluster.name != target, group.architecture.clusters)
    return not any(memory.may_hold(tensor) for cluster in clusters for memory in cluster.memories)


def _whole(group: GroupMapping, tensor: str) -> Iterator[Reason]:
    """Yield a reason for each loop outside of maker and reader that does not step both alike."""
    maker = group.maker(tensor)
    if maker is None:
        return
    made = group.paths[maker]
    for reader in group.needs[tensor]:
        if reader == maker:
            continue
        read = group.paths[reader]
        plain, windows = joined_dimensions(group, tensor, maker, reader)
        for index, place in enumerate(made.places):
            if index >= len(read.places) or read.places[index] != place:
                break
            for axis in moving_axes(group, place):
                source, sink = group.axes[axis][maker], group.axes[axis][reader]
                equal = made.problem.dimensions[source] == read.problem.dimensions[sink]
                if ((source, sink) in plain and equal and not _is_late(group, maker, reader, axis)) or _slides(
                    group, tensor, maker, reader, axis, tile=part_at(group, place[0]).entries[place[1]]
                ):
                    continue
                where = f"tensor {tensor}, loop over {axis}"
                if sink in windows and source in made.problem.tensor(group.users[tensor][maker]).dimensions:
                    text = f"{reader} reads a window along {sink}, so a step needs words of other steps; keep {axis} whole here"
                    yield Reason(code="halo", where=where, message=text)
                else:
                    text = f"{reader} would read it before {maker} has made it; loop over {axis} inside the branches"
                    yield Reason(code="unfinished", where=where, message=text)
        places = (made.place, read.place)
        if places[0] > places[1]:
            text = f"{reader} runs before {maker}, which makes it; exchange the branches"
            yield Reason(code="unfinished", where=f"tensor {tensor}", message=text)


def _is_late(group: GroupMapping, maker: str, reader: str, axis: str) -> bool:
    """Return whether a reader takes other rows than a maker in a step, or at another time."""
    starts = group.starts(axis, (maker, reader))
    return starts[maker] != starts[reader] or group.rows(axis, maker) != group.rows(axis, reader)


def _slides(group: GroupMapping, tensor: str, maker: str, reader: str, axis: str, tile: Entry) -> bool:
    """Return whether a reader's window slides along an axis, over rows that the maker has made by then."""
    window = window_along(group, tensor, maker, reader, axis)
    return window is not None and window.is_ready(tile.temporal_tile_sizes[axis])


def uneven_axes(group: GroupMapping, layers: Sequence[str]) -> set[str]:
    """Return the axes on which some layers differ in length, or in the row at which they start."""
    stepped = {axis: [layer for layer in layers if layer in names] for axis, names in group.axes.items()}
    return {
        axis
        for axis, members in stepped.items()
        if members
        and (len({group.length(axis, layer) for layer in members}) > 1 or any(group.starts(axis, members).values()))
    }


def _uneven(group: GroupMapping, part: Part, outside: dict[str, int]) -> Iterator[Reason]:
    """Yield a reason for each shared loop whose tile is as large as a layer, or does not divide the row at which one starts.

    Args:
        outside: tile of each axis outside the part.
    """
    if part.layer is not None:
        return
    layers, outside = list(part.layers()), dict(outside)
    for axis in sorted(uneven_axes(group, layers)):
        names = group.axes[axis]
        if not names.keys() >= set(layers):
            continue
        sizes, starts = [group.length(axis, layer) for layer in layers], group.starts(axis, layers)
        for entry in part.entries:
            size = entry.temporal_tile_sizes[axis]
            steps = size < group.extent(axis, layers)
            if entry.spatial_tile_sizes[axis] != size or (
                steps and (any(row % size for row in (*starts.values(), outside.get(axis, 0))) or size >= min(sizes))
            ):
                told = ", ".join(
                    f"{extent} in {layer}" + (f" from row {starts[layer]} on" if starts[layer] else "")
                    for layer, extent in zip(layers, sizes, strict=True)
                )
                text = f"its sizes are {told}; expected a temporal tile that divides the starts, and is smaller than each size"
                yield Reason(code="halo", where=f"loop over {axis}", message=text)
            outside[axis] = size
    for branch in part.branches:
        yield from _uneven(group, branch, outside)


def _loops_outside(group: GroupMapping, tensor: str) -> list[tuple[Place, str, bool]]:
    """Return the loops outside the home of a tensor that one layer makes for others, outermost first.

    Each has its place, its axis, and whether the home keeps rows between its steps. Empty for inputs and final results.
    """
    maker = group.maker(tensor)
    if maker is None or len(group.needs[tensor]) < 2:
        return []
    layer = next(iter(group.users[tensor]))
    home = home_of(group, layer, tensor)
    places = group.paths[layer].places
    loops = list[tuple[Place, str, bool]]()
    for place in places[: places.index(home) + 1]:
        part = part_at(group, place[0])
        if part.layer is None:
            moving = moving_axes(group, place)
            for axis in part.entries[place[1]].temporal_order:
                if axis in moving:
                    loops.append((place[0], axis, any(window.stays for window in _windows(group, tensor, axis))))
    return loops


def _windows(group: GroupMapping, tensor: str, axis: str) -> list[Window]:
    """Return the windows of all layers that read or add a tensor, and that slide along an axis."""
    maker = group.maker(tensor)
    readers = [layer for layer in group.needs[tensor] if layer != maker and layer in group.axes[axis]]
    if maker is None or maker not in group.axes[axis]:
        return []
    windows = [window_along(group, tensor, maker, reader, axis) for reader in readers]
    return [window for window in windows if window is not None]


def keeps_halo(group: GroupMapping, tensor: str) -> bool:
    """Return whether rows of a tensor stay at home for the next step of a loop outside it."""
    return any(uneven for _, _, uneven in _loops_outside(group, tensor))


def _halo(group: GroupMapping, tensor: str) -> Iterator[Reason]:
    """Yield a reason if a home cannot keep the halo of a tensor's windows."""
    loops = _loops_outside(group, tensor)
    axis = next((axis for _, axis, uneven in loops if uneven), None)
    if axis is None:
        return
    home, _ = home_of(group, next(iter(group.users[tensor])), tensor)
    last_place, _, last_is_uneven = loops[-1]
    if sum(uneven for _, _, uneven in loops) > 1 or not last_is_uneven or last_place != home:
        text = (
            f"its home keeps a halo between the steps of {axis}; make that the last loop outside the home, in its part"
        )
        yield Reason(code="halo", where=f"tensor {tensor}, loop over {axis}", message=text)


def joined_dimensions(
    group: GroupMapping, tensor: str, maker: str, reader: str
) -> tuple[set[tuple[str, str]], set[str]]:
    """Return (maker's, reader's) dimensions that are one coordinate, and the reader's in windows."""
    users = group.needs[tensor]
    edge = group.edge_of(tensor)
    made = group.paths[maker].problem.tensor(users[maker]).projection
    read = group.paths[reader].problem.tensor(users[reader]).projection
    plain, windows = set[tuple[str, str]](), set[str]()
    for number, (rank, other) in enumerate(zip(made, read, strict=True)):
        shifts = {(edge.offsets.get(layer) or (0,) * len(made))[number] if edge else 0 for layer in (maker, reader)}
        if len(rank.terms) == len(other.terms) == len(shifts) == 1 and set(rank.terms.values()) == set(
            other.terms.values()
        ):
            plain.add((next(iter(rank.terms)), next(iter(other.terms))))
        else:
            windows |= other.terms.keys()
    return plain, windows


def part_at(group: GroupMapping, place: Place) -> Part:
    """Return the part at a place."""
    part = group.tree
    for number in place:
        part = part.branches[number]
    return part


def moving_axes(group: GroupMapping, place: tuple[Place, int]) -> list[str]:
    """Return the axes over which an entry of a shared part has loops of more than one trip."""
    at, number = place
    layer = next(part_at(group, at).layers())
    path = group.paths[layer]
    temporal, spatial = path.mapping.factors()[path.places.index(place)]
    axes = part_at(group, at).entries[number].temporal_tile_sizes
    return [axis for axis in axes if temporal[group.axes[axis][layer]] * spatial[group.axes[axis][layer]] > 1]


def tile_peaks(group: GroupMapping) -> dict[str, float]:
    """Return memory -> words that the tiles alive at one moment need, at most, in one instance."""
    return group_peaks(group, partial(words_at, group))


def ends_with_sequence(group: GroupMapping, tensor: str, path: Path, entry: int) -> bool:
    """Return whether several branches use a tile that is kept right above their sequence."""
    place, number = path.places[entry]
    part = part_at(group, place)
    using = [branch for branch in part.branches if not group.users[tensor].keys().isdisjoint(branch.layers())]
    factors = path.mapping.factors()
    inside = range(entry + 1, entry + len(part.entries) - number)
    loops = max(factors[entry][1].values()) > 1 or any(max(max(f.values()) for f in factors[i]) > 1 for i in inside)
    return len(using) > 1 and not loops


def is_padded(group: GroupMapping, tensor: str) -> bool:
    """Return whether some layer uses words of a tensor that do not exist."""
    return existing_words(group, tensor) is not None


def has_one_tile(group: GroupMapping, tensor: str) -> bool:
    """Return whether all layers that read a tensor from a tile that is filled for them together read the same tile.

    Nothing fills a home.
    """
    edge = group.edge_of(tensor)
    tiles = dict[tuple[Place, int], set[object]]()
    for layer, name in group.users[tensor].items() if edge else ():
        path = group.paths[layer]
        use, extents = path.problem.tensor(name), path.problem.dimensions
        if use.is_output:
            continue
        for index in path.keepers(name)[1:]:
            sizes = path.mapping.entries[index].temporal_tile_sizes
            if not part_at(group, path.places[index][0]).branches:
                continue
            moving = {axis for place in path.places[: index + 1] for axis in moving_axes(group, place)}
            axes = {group.axes[axis][layer]: (axis, group.starts(axis, group.axes[axis])[layer]) for axis in moving}
            tile = tuple(
                (
                    sum(c * (sizes[at] - 1) for at, c in rank.terms.items()),
                    frozenset((axes[at], c, extents[at]) for at, c in rank.terms.items() if at in axes),
                )
                for rank in use.projection
            )
            tiles.setdefault(path.places[index], set()).add((tile, edge.offsets.get(layer) if edge else None))
    return all(len(values) == 1 for values in tiles.values())


def words_at(group: GroupMapping, tensor: str, place: Place, number: int) -> float:
    """Return the words of its memory that a tensor of the group needs at an entry: those of the largest tile of its users."""
    most = 0
    sizes, boxes = _sizes(group, tensor), list[list[tuple[int, int]]]()
    edge = group.edge_of(tensor)
    for layer, name in group.users[tensor].items():
        path = group.paths[layer]
        if (place, number) in path.places:
            entry = path.mapping.entries[path.places.index((place, number))]
            use = path.problem.tensor(name)
            tile = [
                1 + sum(c * (entry.temporal_tile_sizes[at] - 1) for at, c in rank.terms.items())
                for rank in use.projection
            ]
            tile = list(map(min, tile, sizes or tile))
            starts = (edge.offsets.get(layer) if edge and edge.zeros else None) or (0,) * len(tile)
            boxes.append([(-start, extent) for start, extent in zip(starts, tile, strict=True)])
            padded = padded_use(group, tensor, layer)
            if padded is not None and padded.obstacle() is None:
                words = padded.tile_words(path.places.index((place, number)))
            else:
                words = math.prod(tile)
            most = max(most, words)
    if edge is not None and edge.zeros:
        most = words_of_boxes(boxes)
    rows = _rows_at_home(group, tensor, place, number)
    if rows is not None:
        coordinate, alive = rows
        most = alive * words_of_boxes([[part for at, part in enumerate(box) if at != coordinate] for box in boxes])
    return most * width_at(group, tensor, place, number)


def _rows_at_home(group: GroupMapping, tensor: str, place: Place, number: int) -> tuple[int, int] | None:
    """Return the coordinate along which a home keeps rows between steps, and their number; None if it keeps none."""
    axis = next((axis for _, axis, stays in _loops_outside(group, tensor) if stays), None)
    if axis is None or home_of(group, next(iter(group.users[tensor])), tensor) != (place, number):
        return None
    windows, tile = _windows(group, tensor, axis), part_at(group, place).entries[number].temporal_tile_sizes[axis]
    return windows[0].coordinate, alive_rows(windows, tile)


def halo_coordinate(group: GroupMapping, tensor: str) -> int | None:
    """Return the coordinate along which a tensor's home keeps rows between steps, or None."""
    loops = [axis for _, axis, stays in _loops_outside(group, tensor) if stays]
    return _windows(group, tensor, loops[0])[0].coordinate if loops else None


def _sizes(group: GroupMapping, tensor: str) -> tuple[int, ...] | None:
    """Return the coordinates of the words that exist, or None if all do."""
    edge = group.edge_of(tensor)
    maker = group.maker(tensor)
    if edge is not None and edge.zeros:
        return None
    if (edge is not None and edge.sizes is not None) or maker is None:
        return edge.sizes if edge else None
    problem = group.paths[maker].problem
    return tuple(
        1 + sum(c * (problem.dimensions[at] - 1) for at, c in rank.terms.items())
        for rank in problem.tensor(group.users[tensor][maker]).projection
    )


def group_peaks(group: GroupMapping, tile: TileWords) -> dict[str, float]:
    """Return memory -> words alive at one moment, at most, in one instance.

    A tile lives as long as loops inside its entry go on. One that is kept right above a sequence and
    used by several branches lives from the first of them to the last.
    """
    return {
        memory.name: math.ceil(_need(group, memory.name, tile, group.tree, (), False) - 1e-9)
        for memory in group.architecture.memories
    }


def _need(group: GroupMapping, memory: str, tile: TileWords, part: Part, place: Place, repeated: bool) -> float:
    always, last, whole = 0.0, list[tuple[str, float]](), set[str]()
    for number, entry in enumerate(part.entries):
        repeated, moved = _steps(group, part, place, number, repeated)
        always += math.fsum(words for _, words in last) if moved else 0.0
        last = [] if moved else last
        for tensor in entry.keep or ():
            name = tensor if part.layer is None else group.paths[part.layer].names[tensor]
            if _is_on_chip(group, name, place, number):
                whole.add(name)
            if memory_at(group, name, place, number).name == memory:
                last.append((name, tile(name, place, number)))
    if part.layer is not None or _unrolls(group, part, place):
        always, last = always + math.fsum(words for _, words in last), []
    if part.layer is not None:
        return always
    uses = [set(branch.layers()) for branch in part.branches]
    most = 0.0
    for at, branch in enumerate(part.branches):
        alive = 0.0
        for name, words in last:
            using = [number for number, layers in enumerate(uses) if layers & group.needs[name].keys()]
            stays = (len(using) == 1 and repeated) or keeps_halo(group, name) or name in whole
            alive += words if stays or using[0] <= at <= using[-1] else 0.0
        most = max(most, alive + _need(group, memory, tile, branch, (*place, at), repeated))
    return always + most


def _is_on_chip(group: GroupMapping, tensor: str, place: Place, number: int) -> bool:
    """Return whether an inner memory has an input or a final result of the group during all branches."""
    path, index = _path_at(group, tensor, place, number)
    name = group.users[tensor][path.problem.name]
    is_home = path.keepers(name)[0] == index and is_end(group, tensor)
    return is_home and not _is_outermost(group, path.problem.tensor(name), path.mapping.entries[index].target)


def _unrolls(group: GroupMapping, part: Part, place: Place) -> bool:
    """Return whether the last entry of a part unrolls a loop."""
    path = group.paths[next(part.layers())]
    if not part.entries:
        return False
    return max(path.mapping.factors()[path.places.index((place, len(part.entries) - 1))][1].values()) > 1


def _steps(group: GroupMapping, part: Part, place: Place, number: int, repeated: bool) -> tuple[bool, bool]:
    """Return whether anything outside the entry's tile repeats, and whether loops follow the entries before."""
    path = group.paths[next(part.layers())]
    index = path.places.index((place, number))
    temporal, spatial = path.mapping.factors()[index]
    outside = path.mapping.factors()[index - 1][1] if index > path.starts[index] else {}
    steps = max(temporal.values()) > 1
    return repeated or steps, steps or max(outside.values(), default=1) > 1

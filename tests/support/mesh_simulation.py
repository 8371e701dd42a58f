"""Meshes simulated router by router: a mapping is executed step by step, and every word is moved link by link.

Written independently of the cost model, from the schema's description alone. Only problems without windows: then
tiles of a tensor are equal or disjoint.
"""

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.schema.architecture import Architecture, Cluster
from tilewright.schema.mapping import Loop, Mapping
from tilewright.schema.problem import Problem, Tensor

Router = tuple[int, int]
Point = Counter[str]


@dataclass
class MeshRun:
    """One instance of a mesh. `packets`: (port, routers, whether they send), one for each word and time."""

    packets: list[tuple[Router, frozenset[Router], bool]] = field(default_factory=list)

    def simulate(self, words_per_cycle: int) -> tuple[Counter[str], int]:
        """Return the words on every link, and the cycles until the last word arrives."""
        loads, queues = Counter[str](), defaultdict[str, deque[tuple[int, str]]](deque)
        ways = [_sending(*packet[:2]) if packet[2] else _receiving(*packet[:2]) for packet in self.packets]
        waiting = [
            Counter(there for _, there in way) for way in ways
        ]  # words that a router adds up before it sends one
        onward = [defaultdict[str, list[str]](list) for _ in ways]
        for number, way in enumerate(ways):
            for here, there in way:
                onward[number][here].append(there)
            for here in {here for here, _ in way} - {there for _, there in way}:
                for there in onward[number][here]:
                    queues[f"{here}>{there}"].append((number, there))
        cycles = 0
        while any(queues.values()):
            cycles += 1
            arrived = []
            for link, queue in queues.items():
                for _ in range(min(words_per_cycle, len(queue))):
                    arrived.append(queue.popleft())
                    loads["node>" + link.partition(">")[2] if link.startswith("node") else link] += 1
            for number, here in arrived:
                waiting[number][here] -= 1
                if not waiting[number][here]:
                    for there in onward[number].get(here, ()):
                        queues[f"{here}>{there}"].append((number, there))
        return loads, cycles


def _receiving(port: Router, nodes: frozenset[Router]) -> set[tuple[str, str]]:
    """The hops of one word: each router sends it to those neighbours behind which a node wants it, along X first."""
    hops, reached = {("memory", _name(port))}, [(port, nodes)]
    while reached:
        (x, y), wanted = reached.pop()
        for step in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if step[0]:
                behind = frozenset(node for node in wanted if (node[0] - x) * step[0] > 0)
            else:
                behind = frozenset(node for node in wanted if node[0] == x and (node[1] - y) * step[1] > 0)
            if behind:
                there = x + step[0], y + step[1]
                hops.add((_name((x, y)), _name(there)))
                reached.append((there, behind))
        if (x, y) in wanted:
            hops.add((_name((x, y)), f"node {x},{y}"))
    return {(here, "node" if there.startswith("node") else there) for here, there in hops}


def _sending(port: Router, nodes: frozenset[Router]) -> set[tuple[str, str]]:
    hops = set()
    for x, y in nodes:
        hops.add((f"node {x},{y}", _name((x, y))))
        while (x, y) != port:
            there = (x + (1 if port[0] > x else -1), y) if x != port[0] else (x, y + (1 if port[1] > y else -1))
            hops.add((_name((x, y)), _name(there)))
            x, y = there
    return hops | {(_name(port), "memory")}


def _name(router: Router) -> str:
    return f"{router[0]},{router[1]}"


def runs(problem: Problem, architecture: Architecture, mapping: Mapping) -> dict[tuple[str, int], list[MeshRun]]:
    """Return, for each mesh (cluster, number), its instances that carry words."""
    meshes = defaultdict[tuple[str, int], dict[tuple[int, ...], MeshRun]](lambda: defaultdict(MeshRun))
    for tensor in problem.tensors:
        keeping = [number for number, entry in enumerate(mapping.entries) if tensor.name in (entry.keep or ())]
        for outer, inner in itertools.pairwise([*keeping, len(mapping.entries)]):
            for key, instance, packet in _packets(problem, architecture, mapping, tensor, outer, inner):
                meshes[key][instance].packets.append(packet)
    return {key: list(instances.values()) for key, instances in meshes.items()}


def _packets(
    problem: Problem, architecture: Architecture, mapping: Mapping, tensor: Tensor, outer: int, inner: int
) -> Iterator[tuple[tuple[str, int], tuple[int, ...], tuple[Router, frozenset[Router], bool]]]:
    """Yield the words that move between two storage entries, as packets of each mesh on the way."""
    clusters = architecture.clusters
    place = {cluster.name: number for number, cluster in enumerate(clusters)}
    loops = list(mapping.loops())
    outside = [loop for loop in loops if loop.entry < inner or (loop.entry == inner and not loop.spatial)]
    time, space = ([loop for loop in outside if loop.spatial == spatial] for spatial in (False, True))
    within = [loop for loop in loops if loop not in outside]
    offsets = {_word(tensor, point) for point in _points(within)}
    last = place[mapping.entries[inner].target] if inner < len(mapping.entries) else len(clusters)
    passed = [number for number in range(place[mapping.entries[outer].target], last) if _mesh(clusters[number], tensor)]
    instances = [
        (point, _positions(mapping, architecture, space, trips))
        for trips, point in zip(itertools.product(*(range(loop.trips) for loop in space)), _points(space), strict=True)
    ]
    held, stores = dict[int, tuple[int, ...] | None](), inner < len(mapping.entries)  # compute units store nothing
    for now in [*_points(time), None]:
        moved = defaultdict[tuple[object, ...], list[list[int]]](list)
        for number, (point, positions) in enumerate(instances):
            tile = None if now is None else _word(tensor, now + point)
            before = held.get(number)
            if tile == before and stores:
                continue
            held[number] = tile
            moving = before if tensor.is_output and stores else tile
            if moving is None:
                continue
            apart = [
                positions[cluster]
                for cluster in range(place[mapping.entries[outer].target], last)
                if not (clusters[cluster].fanout.reduction if tensor.is_output else clusters[cluster].fanout.multicast)
            ]
            parent = tuple(positions[: place[mapping.entries[outer].target]])
            for offset in offsets:
                word = tuple(a + b for a, b in zip(moving, offset, strict=True))
                moved[word, parent, tuple(apart)].append(positions)
        for members in moved.values():
            for cluster in passed:
                routers = defaultdict[tuple[int, ...], set[Router]](set)
                for positions in members:
                    routers[tuple(positions[:cluster])].add(_router(clusters, cluster, positions))
                index, port = _mesh(clusters[cluster], tensor) or (0, (0, 0))
                for instance, nodes in routers.items():
                    yield (clusters[cluster].name, index), instance, (port, frozenset(nodes), tensor.is_output)


def _mesh(cluster: Cluster, tensor: Tensor) -> tuple[int, Router] | None:
    """Number and port of the mesh that carries a tensor: by name, by role, or any."""
    meshes = list(enumerate(cluster.fanout.network.meshes))
    for wanted in ((tensor.name,), (tensor.role,), None):
        for number, mesh in meshes:
            if (wanted is None and mesh.tensors is None) or (wanted and wanted[0] in (mesh.tensors or ())):
                return number, mesh.port
    return None


def _points(loops: list[Loop]) -> Iterator[Point]:
    """Where the loops are, as iterations of each dimension, in order."""
    for trips in itertools.product(*(range(loop.trips) for loop in loops)):
        point = Counter[str]()
        for loop, trip in zip(loops, trips, strict=True):
            point[loop.dimension] += trip * loop.tile
        yield point


def _word(tensor: Tensor, point: Point) -> tuple[int, ...]:
    return tuple(sum(c * point[name] for name, c in rank.terms.items()) for rank in tensor.projection)


def _positions(mapping: Mapping, architecture: Architecture, space: list[Loop], trips: tuple[int, ...]) -> list[int]:
    """Position in the fanout of every cluster."""
    positions = [0] * len(architecture.clusters)
    for loop, trip in zip(space, trips, strict=True):
        at = architecture.cluster_index[mapping.entries[loop.entry].target]
        positions[at] = positions[at] * loop.trips + trip
    return positions


def _router(clusters: tuple[Cluster, ...], cluster: int, positions: list[int]) -> Router:
    x, y = 0, 0
    for number in range(cluster, len(clusters)):
        if number > cluster and clusters[number].memories:
            break
        fanout = clusters[number].fanout
        if fanout.axis == "X":
            x = x * fanout.size + positions[number]
        else:
            y = y * fanout.size + positions[number]
    return x, y

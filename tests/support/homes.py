"""Random networks and groups in homes of several sizes: arrays, padding, halos, limited ports, values of several words."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from support.fused_arrays import Pair
from support.fused_graphs import Graph, random_graph
from support.fused_networks import Known, prepared, random_net
from support.fused_padded import PaddedPair
from tilewright.application.run.resident import ResidentNetwork
from tilewright.schema.group import GroupMapping
from tilewright.schema.objective import ObjectiveName

GROUPS: dict[str, Callable[[int], Pair | Graph]] = {
    "array": Pair,
    "padding": PaddedPair,
    "halos": lambda seed: random_graph(seed, chain=True, windows=True),
    "graph": random_graph,
    "widths": lambda seed: random_graph(seed, widths=True),
}
"""Groups by seed, on a `Buffer` inside a `DRAM`."""
NETWORKS: dict[str, Callable[[int], tuple[Any, Any, ObjectiveName, Any]]] = {
    "products": lambda seed: _products(seed),
    "convolutions": lambda seed: _convolutions(seed),
}
"""Workload, architecture, objective and constraints by seed; the capacity of the `Home` is open."""


def resized(group: GroupMapping, words: int) -> GroupMapping:
    """Return the group with another capacity of its buffer."""
    arch = group.architecture.replace({"Buffer.capacity_words": words})
    return GroupMapping.model_validate(group.to_data() | {"architecture": arch.to_data()})


def network(kind: str, seed: int, words: int, known: Known) -> ResidentNetwork:
    """Return a network with a capacity of its home; `known` are searches of the same network, which grow."""
    workload, arch, objective, rules = NETWORKS[kind](seed)
    for cluster in arch["clusters"]:
        for memory in cluster["memories"]:
            if memory["name"] == "Home":
                memory["capacity_words"] = words
    return prepared(workload, arch, objective, rules, known=known)


def _products(seed: int) -> tuple[Any, Any, ObjectiveName, Any]:
    net = random_net(seed)
    return net.workload(), net.machine(1), net.objective, net.rules()


def _convolutions(seed: int) -> tuple[Any, Any, ObjectiveName, Any]:
    """Convolutions along rows with padding, one after another, on an array of up to four units."""
    random = Random(f"convolutions {seed}")
    rows, layers = random.choice([2, 3, 4]), list[dict[str, Any]]()
    channels = [random.choice([1, 2, 3]) for _ in range(random.choice([3, 3, 4]))]
    for number in range(len(channels) - 1):
        taps = random.choice([1, 2, 3])
        head = random.randrange(taps)
        made = rows if head or random.random() < 0.5 else max(1, rows - taps + 1)
        tensors = [
            {"name": "X", "role": "input", "projection": ["C", "P + R"]},
            {"name": "W", "role": "weight", "projection": ["K", "C", "R"]},
            {"name": "Y", "role": "output", "projection": ["K", "P"]},
        ]
        sizes = {"P": made, "R": taps, "C": channels[number], "K": channels[number + 1]}
        layer: dict[str, Any] = {"problem": {"name": f"L{number}", "dimensions": sizes, "tensors": tensors}}
        if number:
            there = min(rows, made + taps - 1 - head)
            read = {"maker": f"L{number - 1}", "sizes": {"c": channels[number], "p": there}}
            read |= {"made": ["c", "p"], "read": ["c", f"p + {head}"]}
            layer |= {"after": [f"L{number - 1}"], "reads": {"X": [read]}}
        layers.append(layer)
        rows = made
    workload = {"schema_version": 1, "kind": "workload", "name": "convolutions", "layers": layers}

    def memory(name: str, energies: tuple[int, ...], **more: Any) -> dict[str, Any]:
        ways = ("read", "write", "shared")
        ports = {f"{way}_bandwidth_words_per_cycle": random.choice([None, 0.5, 1, 2]) for way in ways}
        prices = {f"{way}_energy_pj": random.choice(energies) for way in ("read", "write")}
        return {"name": name} | prices | ports | more

    clusters: list[dict[str, Any]] = [
        {"name": "Out", "memories": [memory("DRAM", (4, 100))]},
        {"name": "In", "memories": [memory("Home", (1, 2, 8))], "fanout": {"size": random.choice([1, 2, 4])}},
    ]
    if random.random() < 0.6:
        clusters.append({"name": "PE", "memories": [memory("Register", (1,), capacity_words=random.choice([2, 3, 4]))]})
    arch = {"name": "small", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}
    return workload, arch, random.choice(["energy", "cycles"]), None

"""Random problems, architectures, constraints and model options, as the documents that users write.

A new option of a cost model, or a new field of an architecture or of constraints, must be drawn here before a proof uses it.
`tests/support/test_proofs.py` fails until then.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

Document = dict[str, Any]
Kind = Literal["small", "window", "large", "alike", "batch", "passing"]
KINDS: tuple[Kind, ...] = ("small", "window", "large")
"""Small sizes of many factors; windows unrolled over nested fanouts; few factors, long fanouts.

By name only: "alike", dimensions without windows, of which several index the same tensors; "batch", convolutions with a batch;
"passing", inputs with windows that pass a fanout to units, kept in no memory directly inside.
"""

SIZES: dict[Kind, tuple[int, ...]] = {
    "small": (1, 2, 2, 3, 3, 4, 4, 5, 6, 6, 8, 9, 12),
    "window": (2, 4, 6, 8, 9, 12, 16, 18),
    "large": (5, 7, 11, 13, 25, 31, 49, 64, 77, 121, 143, 509, 1024),
    "alike": (1, 2, 2, 2, 2, 3, 3, 4, 6),
    "batch": (2, 3, 4, 4, 6, 8),
    "passing": (2, 3, 4, 4),
}
KERNELS = (1, 2, 3, 3, 4, 5, 6)
FANOUTS: dict[Kind, tuple[int, ...]] = {
    "small": (2, 2, 3, 4, 5, 6, 8),
    "window": (2, 3, 4, 4, 6, 8),
    "large": (2, 7, 13, 32, 40, 128, 1024),
    "alike": (2, 3, 4, 4, 6, 8),
    "batch": (2, 3, 4, 4, 6),
    "passing": (4, 6, 8, 8, 12),
}
BANDWIDTHS = (0.1, 0.25, 0.3, 0.5, 1, 1.5, 2, 3, 4, 8)


@dataclass(frozen=True)
class Inputs:
    """One task, as documents: what to map, where, under which rules, by a model with which options."""

    seed: int
    problem: Document
    architecture: Document
    constraints: Document
    model_options: Document
    objective: str


def draw(seed: int, kind: Kind | None = None, *, ragged: bool | None = None, **model_options: object) -> Inputs:
    """Draw one task.

    Args:
        seed: the same seed and arguments give the same task.
        kind: the family of sizes; None: any.
        ragged: whether tiles may be ragged; None: either.
        model_options: options of `timeloop` that are fixed, not drawn.
    """
    if kind == "passing":
        return _draw_passing(seed, **model_options)
    rng = Random(seed)
    family: Kind = rng.choice(KINDS) if kind is None else kind
    ragged = rng.random() < 0.3 if ragged is None else ragged
    problem = draw_problem(rng, "small" if ragged and family == "large" else family)
    architecture = draw_architecture(rng, problem, family)
    constraints = draw_constraints(rng, problem, architecture)
    if family == "alike" and rng.random() < 0.6:  # rules mostly tell dimensions apart
        constraints["variants"] = [{}]
    constraints["factors"] = "ragged" if ragged else "perfect"
    drawn = {"link_transfers": rng.random() < 0.5}
    objective = rng.choice(("edp", "ed2p", "energy", "cycles"))
    for memory in (part for cluster in architecture["clusters"] for part in cluster.get("memories", ())):
        if rng.random() < 0.3:
            memory["footprint"] = "distinct"
    drawn["first_fills"] = rng.random() < 0.2
    return Inputs(seed, problem, architecture, constraints, drawn | model_options, objective)


def draw_problem(rng: Random, kind: Kind) -> Document:
    """Draw a problem: a contraction, in which some coordinates may be sums of dimensions."""
    if kind == "alike":
        return _draw_alike(rng)
    if kind == "batch":
        return _draw_convolution(rng)
    names = ["P", "R", "K", "C", "Q", "S"]
    windows = 0 if kind == "small" and rng.random() < 0.4 else rng.choice((1, 1, 1, 2))
    plain = rng.randint(0 if windows else 2, 3 - windows)
    operands = ["I", "W", "D"][: rng.choice((1, 2, 2, 2, 3))] if not windows else ["I", "W"]
    sizes: dict[str, int] = {}
    coordinates: dict[str, list[str]] = {name: [] for name in (*operands, "O")}
    for place in range(windows):
        outer, inner = names[4 * place], names[4 * place + 1]
        sizes[outer], sizes[inner] = rng.choice(SIZES[kind]), rng.choice(KERNELS)
        terms = [_times(rng.choice((1, 1, 2, 3)), outer), _times(rng.choice((1, 1, 2, 3)), inner)]
        if rng.random() < 0.15:
            extra = f"T{place}"
            sizes[extra] = rng.choice((2, 3, 4))
            terms.append(_times(rng.choice((1, 2)), extra))
            coordinates["W"].append(extra)
        transposed = rng.random() < 0.15
        coordinates["O" if transposed else "I"].append(" + ".join(terms))
        coordinates["I" if transposed else "O"].append(
            outer if rng.random() < 0.9 or transposed else _times(rng.choice((2, 3)), outer)
        )
        coordinates["W"].append(inner)
        if rng.random() < 0.08:  # the same dimensions in a second window
            coordinates["I"].append(f"{outer} + {inner}")
    for name in names[2:4] + ["G"]:
        if plain == 0:
            break
        plain -= 1
        sizes[name] = rng.choice(SIZES["small"])
        users = [tensor for tensor in coordinates if rng.random() < 0.6]
        if not any(tensor in operands for tensor in users):
            users.append(rng.choice(operands))
        for tensor in users:
            coordinates[tensor].append(name)
    for ranks in coordinates.values():
        if not ranks:
            ranks.append(next(iter(sizes)))
    if rng.random() < 0.04:  # a diagonal
        coordinates["I"].append(coordinates["I"][0])
    order = list(sizes)
    rng.shuffle(order)
    roles = {"I": "input", "W": "weight", "D": "input", "O": "output"}
    tensors = [{"name": name, "role": roles[name], "projection": texts} for name, texts in coordinates.items()]
    if rng.random() < 0.2:
        rng.shuffle(tensors)
    return {"kind": "problem", "name": kind, "dimensions": {name: sizes[name] for name in order}, "tensors": tensors}


def _draw_alike(rng: Random) -> Document:
    """Draw a contraction of two to six dimensions and up to 100 operations, which index one to three sets of tensors."""
    names, roles = "IWO", {"I": "input", "W": "weight", "O": "output"}
    sets = rng.sample(("IW", "IO", "WO", "IWO", "I", "O"), rng.choice((1, 1, 2, 2, 3)))
    sizes: dict[str, int] = {}
    users: dict[str, str] = {}
    count, mixed = rng.randint(2, 6), rng.random() < 0.4  # with links, only neighbours in the problem's order are alike
    for number in range(count):
        room = 100 // math.prod(sizes.values())
        sizes[f"d{number}"] = rng.choice([size for size in SIZES["alike"] if size <= room])
        users[f"d{number}"] = sets[number % len(sets) if mixed else number * len(sets) // count]
    tensors = []
    for name in names:
        ranks = [tensor for tensor in users if name in users[tensor]]
        rng.shuffle(ranks)
        if ranks and rng.random() < 0.2:  # a window with a dimension of size 1
            sizes[f"u{name}"] = 1
            ranks[0] = _times(rng.choice((1, 2)), f"u{name}") + f" + {ranks[0]}"
        tensors.append({"name": name, "role": roles[name], "projection": ranks})
    return {"kind": "problem", "name": "alike", "dimensions": sizes, "tensors": tensors}


def _draw_convolution(rng: Random) -> Document:
    """Draw a convolution with a batch, dense or depthwise."""
    sizes = {"N": rng.choice((2, 3, 4))}
    coordinates: dict[str, list[str]] = {"I": ["N"], "W": [], "O": ["N"]}
    for users in (("I", "W", "O"),) if rng.random() < 0.5 else rng.choice(((), (("W", "O"),), (("I", "W"),))):
        sizes["C"] = rng.choice((2, 3, 4))
        for tensor in users:
            coordinates[tensor].append("C")
    for outer, inner in (("P", "R"), ("Q", "S"))[: rng.choice((1, 1, 2))]:
        sizes[outer], sizes[inner] = rng.choice(SIZES["batch"][: 6 if outer == "P" else 4]), rng.choice((1, 2, 3, 3))
        terms = [_times(rng.choice((1, 1, 1, 2)), name) for name in (outer, inner)]
        coordinates["I"].append(" + ".join(terms))
        coordinates["W"].append(inner)
        coordinates["O"].append(outer)
    return _problem(rng, "batch", sizes, coordinates)


def _problem(rng: Random, name: str, sizes: dict[str, int], coordinates: dict[str, list[str]]) -> Document:
    """Return a problem of an input, a weight and an output, with its dimensions in a random order."""
    order = list(sizes)
    rng.shuffle(order)
    roles = {"I": "input", "W": "weight", "O": "output"}
    tensors = [{"name": letter, "role": roles[letter], "projection": ranks} for letter, ranks in coordinates.items()]
    return {"kind": "problem", "name": name, "dimensions": {at: sizes[at] for at in order}, "tensors": tensors}


def _draw_passing(seed: int, **model_options: object) -> Inputs:
    """Draw a task whose input passes a fanout: neighbours forward words that no memory directly inside keeps (Lemma 14).

    The input's words cost most, and the loops inside the fanout move whole words of it.
    So few undercounted words hide a bound that is too high.
    """
    rng = Random(seed)
    sizes: dict[str, int] = {}
    coordinates: dict[str, list[str]] = {"I": [], "W": [], "O": []}
    for name, users in (("N", "IO"), ("K", "WO"), ("C", "IW"), ("G", "IWO")):
        if rng.random() < (0.6 if name == "C" else 0.25):
            sizes[name] = rng.choice((2, 3, 4))
            for tensor in users:
                coordinates[tensor].append(name)
    windows = (("P", "R"), ("Q", "S"))[: rng.choice((1, 2, 2, 2))]
    for outer, inner in windows:
        sizes[outer] = rng.choice((4, 6, 8, 9, 12) if len(windows) == 1 else SIZES["passing"])
        sizes[inner] = rng.choice((2, 3, 4))
        steps = rng.choice(((1, 1), (1, 1), (1, 1), (2, 2), (1, 2), (2, 1), (1, 3), (3, 2)))
        terms = [_times(step, name) for step, name in zip(steps, (outer, inner), strict=True)]
        coordinates["I"].append(" + ".join(terms))
        coordinates["W"].append(inner)
        coordinates["O"].append(outer)
    problem = _problem(rng, "passing", sizes, coordinates)
    clusters = _draw_passed_clusters(rng, sum(words_of(problem, tensor) for tensor in problem["tensors"]))
    rules: Document = {}
    if rng.random() < 0.7:
        rules["temporal"] = [{"memory": "M2", "only": [name for name in sizes if name in "NCKG"]}]
    if rng.random() < 0.7:
        least = rng.choice(({}, {"min_utilization": 0.5}, {"min_utilization": 1.0}))
        cluster = next(cluster["name"] for cluster in clusters if "fanout" in cluster)
        rules["spatial"] = [{"cluster": cluster, "only": [name for name in sizes if name in "PQRSK"], **least}]
    compute = {"energy_per_operation_pj": 0.01}
    architecture = {"kind": "architecture", "name": "passing", "clusters": clusters, "compute": compute}
    constraints = {"kind": "constraints", "name": "rules", "variants": [rules], "factors": "perfect"}
    drawn = {"link_transfers": rng.random() < 0.8, "first_fills": rng.random() < 0.1}
    objective = rng.choice(("energy", "energy", "energy", "edp", "cycles"))
    return Inputs(seed, problem, architecture, constraints, drawn | model_options, objective)


def _draw_passed_clusters(rng: Random, total: int) -> list[Document]:
    """Draw a chain of clusters in which no memory directly inside the fanout may hold the input."""
    cheap = {"read_energy_pj": 0.01, "write_energy_pj": 0.01}
    memories = [_memory(rng, "D0", [], None, 0.0)]
    if rng.random() < 0.7:
        memories[0]["holds"] = ["input"]
        memories.append(_memory(rng, "D1", ["weight", "output"], None, 0.0) | cheap)
    clusters: list[Document] = [{"name": "c0", "memories": memories}]
    if rng.random() < 0.3:
        clusters.append({"name": "c1", "memories": [_memory(rng, "M1", [], max(4, total // rng.choice((1, 2))), 0.0)]})
    clusters[-1]["fanout"] = {"size": rng.choice(FANOUTS["passing"]), "axis": rng.choice("XXY")}
    if rng.random() < 0.85:
        clusters.append({"name": "v", "fanout": {"size": rng.choice((2, 3, 4)), "axis": rng.choice("XYY")}})
    for cluster in clusters:
        if "fanout" in cluster and rng.random() < 0.1:
            cluster["fanout"]["multicast"] = False
    holds = rng.choice((["weight", "output"], ["weight", "output"], ["weight"], ["output"]))
    clusters.append({"name": "c2", "memories": [_memory(rng, "M2", holds, rng.choice((2, 4, 8, 32)), 0.0) | cheap]})
    if rng.random() < 0.15:
        clusters.append({"name": "c3", "memories": [_memory(rng, "M3", ["input"], rng.choice((1, 2, 4)), 0.0)]})
    if rng.random() < 0.2:
        clusters[-1]["fanout"] = {"size": rng.choice((2, 3)), "axis": "X"}
    return clusters


def words_of(problem: Document, tensor: Document) -> int:
    """Count the words of a tensor's bounding box."""
    words = 1
    for coordinate in tensor["projection"]:
        side = 1
        for term in coordinate.split(" + "):
            factor, _, dimension = term.rpartition("*")
            side += int(factor or 1) * (problem["dimensions"][dimension] - 1)
        words *= side
    return words


def draw_architecture(rng: Random, problem: Document, kind: Kind) -> Document:
    """Draw a chain of clusters, plain ones more often than those with every feature."""
    rare = rng.choice((0.0, 0.1, 0.25))
    total = sum(words_of(problem, tensor) for tensor in problem["tensors"])
    roles = sorted({tensor["role"] for tensor in problem["tensors"]})
    clusters: list[Document] = [{"name": "c0", "memories": [_memory(rng, "D0", roles, None, rare)]}]
    if rng.random() < rare and len(roles) > 1:
        clusters[0]["memories"] = [_memory(rng, f"D{role}", [role], None, rare) for role in roles]
    for number in range(1, rng.choice((2, 2, 3, 3, 4))):
        capacity = max(1, int(total * rng.choice((0.05, 0.1, 0.2, 0.5, 1.0)))) + rng.randint(0, 3)
        chosen: list[list[str]] = [[]]
        plain = kind == "batch" and rng.random() < 0.7
        if not plain and rng.random() < 0.2 and len(roles) > 1:  # one memory a role
            chosen = [[role] for role in rng.sample(roles, rng.randint(1, len(roles)))]
        elif not plain and rng.random() < 0.3:
            chosen = [sorted(rng.sample(roles, rng.randint(1, len(roles))))]
        memories = [_memory(rng, f"M{number}{k}", holds, capacity, rare) for k, holds in enumerate(chosen)]
        clusters.append({"name": f"c{number}", "memories": memories})
    if kind == "window" or rng.random() < 0.3:
        clusters.insert(rng.randint(1, len(clusters)), {"name": "v"})
    fanouts = 3
    for cluster in clusters:
        if fanouts and rng.random() < (0.8 if kind in ("window", "batch") else 0.5):
            fanouts -= 1
            cluster["fanout"] = _fanout(rng, kind, rare)
    names = [memory["name"] for cluster in clusters for memory in cluster.get("memories", ())]
    for cluster in clusters:
        for memory in cluster.get("memories", ()):
            if "leakage_pj_per_cycle" in memory and rng.random() < 0.4:
                memory["power_gated_at"] = rng.choice(names)
    compute: Document = {"energy_per_operation_pj": _energy(rng, 0.05, 3)}
    if rng.random() < rare:
        compute["cycles_per_operation"] = rng.choice((2, 3))
        compute["operands"] = rng.choice((1, 2, 3))
    return {"kind": "architecture", "name": kind, "clusters": clusters, "compute": compute}


def _memory(rng: Random, name: str, holds: list[str], capacity: int | None, rare: float) -> Document:
    """Draw a memory; the outermost ones, without a capacity, cost most."""
    low, high = (50.0, 250.0) if capacity is None else (0.2, 20.0)
    memory: Document = {
        "name": name,
        "technology": "dram" if capacity is None else "sram",
        "read_energy_pj": 0.0 if rng.random() < 0.05 else _energy(rng, low, high),
        "write_energy_pj": _energy(rng, low, high),
    }
    if capacity is not None and rng.random() < 0.9:
        memory["capacity_words"] = capacity
    if holds:
        memory["holds"] = holds
    for way in ("read", "write"):
        if rng.random() < 0.5:
            memory[f"{way}_bandwidth_words_per_cycle"] = rng.choice(BANDWIDTHS)
    if rng.random() < rare:
        memory["shared_bandwidth_words_per_cycle"] = rng.choice(BANDWIDTHS)
    if rng.random() < rare:
        memory["update_energy_pj"] = _energy(rng, low, high)
    if rng.random() < rare / 2:
        memory["block_words"] = rng.choice((2, 4))
    if rng.random() < rare / 2:
        memory["instances_per_macro"] = rng.choice((2, 3))
    if rng.random() < rare and capacity is not None:
        memory["multiple_buffering"] = rng.choice((1.5, 2.0))
    if rng.random() < rare:
        memory["leakage_pj_per_cycle"] = _energy(rng, 0.05, 5)
    if rng.random() < rare:
        memory["word_bits"] = rng.choice((8, 16, 32))
        memory["bits_per_value"] = {rng.choice(("input", "weight", "output")): rng.choice((4, 8, 12, 24, 32))}
    return memory


def _fanout(rng: Random, kind: Kind, rare: float) -> Document:
    fanout: Document = {"size": rng.choice(FANOUTS[kind]), "axis": rng.choice("XY")}
    for way in ("multicast", "reduction"):
        if rng.random() < rare:
            fanout[way] = False
    if rng.random() < rare / 2:
        some = [f"energy_per_{what}_pj" for what in ("hop", "router", "ingress") if rng.random() < 0.6]
        fanout["network"] = {name: _energy(rng, 0.05, 2) for name in some}
    return fanout


def draw_constraints(rng: Random, problem: Document, architecture: Document) -> Document:
    """Draw rules, or none: for temporal loops, for unrollings, and for what memories keep. A memory has one rule of a kind."""
    rules: Document = {}
    if problem["name"] == "batch" and rng.random() < 0.5:
        return {"kind": "constraints", "name": "rules", "variants": [rules]}
    clusters = architecture["clusters"]
    blocks = [clusters[0]["memories"][-1]["name"]]
    blocks += [memory["name"] for cluster in clusters[1:] for memory in cluster.get("memories", ())]
    fanouts = [cluster["name"] for cluster in clusters if "fanout" in cluster]
    if rng.random() < 0.35:
        some = rng.sample(blocks, rng.randint(1, min(2, len(blocks))))
        rules["temporal"] = [{"memory": name, **_steps(rng, problem, ordered=True)} for name in some]
    if rng.random() < 0.35 and fanouts:
        limits = rng.choice(({}, {}, {"min_utilization": 0.5}, {"max_utilization": 0.7}, {"min_utilization": 1.0}))
        rules["spatial"] = [{"cluster": rng.choice(fanouts), **_steps(rng, problem, ordered=False), **limits}]
    if rng.random() < 0.45 and len(blocks) > 1:
        tensors = [tensor["name"] for tensor in problem["tensors"]]
        rules["keep"] = []
        for name in rng.sample(blocks[1:], rng.randint(1, len(blocks) - 1)):
            chosen = {tensor: rng.choice(("keep", "bypass", "free", "free", None)) for tensor in tensors}
            ways = {way: [tensor for tensor in tensors if chosen[tensor] == way] for way in ("keep", "bypass", "free")}
            rules["keep"].append({"memory": name, **{way: names for way, names in ways.items() if names}})
    inner = [cluster for cluster in clusters[1:] if "memories" in cluster]
    if rng.random() < 0.3 and inner:
        orders = storage_orders(problem, rng.choice(inner), {})
        rules["storage"] = [rng.choice(orders)] if orders else []
    return {"kind": "constraints", "name": "rules", "variants": [rules]}


def storage_orders(problem: Document, cluster: Document, rules: Document) -> list[Document]:
    """Return a rule for each order of the storage entries of a cluster.

    A tensor has no entry in a memory that cannot hold it, or that has to be bypassed by `rules`.
    """
    bypassed = {(rule["memory"], name) for rule in rules.get("keep", ()) for name in rule.get("bypass", ())}
    pairs = [
        {"memory": memory["name"], "tensors": [tensor["name"]]}
        for memory in cluster["memories"]
        for tensor in problem["tensors"]
        if ("holds" not in memory or tensor["role"] in memory["holds"])
        and not {(memory["name"], tensor["name"]), (memory["name"], tensor["role"])} & bypassed
    ]
    return [{"cluster": cluster["name"], "entries": list(order)} for order in itertools.permutations(pairs) if order]


def _steps(rng: Random, problem: Document, *, ordered: bool) -> Document:
    """Draw which dimensions may step, how far, and in which order."""
    names = list(problem["dimensions"])
    rule: Document = {}
    if rng.random() < 0.4:
        rule["only"] = [name for name in names if rng.random() < 0.7]
    if rng.random() < 0.35:
        bounds = ({"max": 2}, {"max": 4}, {"min": 2}, 1, 2)
        rule["factors"] = {rng.choice(names): rng.choice(bounds)}
    if ordered and rng.random() < 0.5:
        drawn = rng.sample(names, rng.randint(1, len(names)))
        more = Random(f"{names} {drawn}")  # its own, so that a seed's other draws stay the same
        first, last = sorted(more.choice((0, len(drawn), more.randint(0, len(drawn)))) for _ in range(2))
        parts = {"outermost": drawn[:first], "order": drawn[first:last], "innermost": drawn[last:]}
        rule |= {part: some for part, some in parts.items() if some}
    return rule


def _energy(rng: Random, low: float, high: float) -> float:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))), 3)


def _times(factor: int, dimension: str) -> str:
    return dimension if factor == 1 else f"{factor}*{dimension}"

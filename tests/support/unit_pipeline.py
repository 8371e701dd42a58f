"""Random groups of layers and vector layers on an array and a vector unit, judged by a simulation of events.

`python -m support.unit_pipeline 2000` compares the cycles of units that overlap with those of the simulation.
"""

import heapq
import math
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright.application.run.evaluation import build_model, evaluate_group
from tilewright.application.run.group_vectors import GroupVectors, joined_vectors
from tilewright.schema.group import GroupMapping

MODEL = build_model("timeloop")
WORDWISE = ["Relu", "Swish", "Gelu", "Mul", "Add"]


def machine(draw: random.Random) -> dict[str, Any]:
    """Return DRAM and a buffer with a vector unit; ports may bind."""

    def rate() -> int | None:
        return draw.choice([None, 1, 4, 16])

    kinds = ("add", "multiply", "exponential", "compare", "divide", "convert")
    buffer = {
        "name": "B", "capacity_words": draw.choice([20, 40, 80, 5000]), "read_energy_pj": 2, "write_energy_pj": 2,
        "read_bandwidth_words_per_cycle": rate(), "write_bandwidth_words_per_cycle": rate(),
    }  # fmt: skip
    outer = {"name": "D", "read_energy_pj": 64, "write_energy_pj": 64, "shared_bandwidth_words_per_cycle": rate()}
    unit: dict[str, Any] = {
        "name": "V", "lanes": draw.choice([1, 2, 8, 32]), "memory": "B", "energy_pj": dict.fromkeys(kinds, 1),
        "cycles": {"exponential": draw.choice([1, 4])},
    }  # fmt: skip
    other = unit | {"name": "W", "lanes": 4, "energy_pj": {"multiply": 1}, "cycles": {}}
    units = draw.choice([[unit], [unit, other]])
    clusters = [{"name": "D", "memories": [outer]}, {"name": "B", "memories": [buffer]}]
    return {"name": "m", "clusters": clusters, "compute": {"energy_per_operation_pj": 1}, "units": units}


def tensor(name: str, role: str, *projection: str) -> dict[str, Any]:
    return {"name": name, "role": role, "projection": list(projection)}


def branch(layer: str, dimensions: dict[str, int]) -> dict[str, Any]:
    entry = {
        "target": "B",
        "keep": [],
        "temporal_tile_sizes": dict.fromkeys(dimensions, 1),
        "temporal_order": [*dimensions],
    }
    return {"layer": layer, "entries": [entry]}


def attention(draw: random.Random) -> dict[str, Any]:
    """Return scores, softmax and context, with loops over rows, and over the words of a row in half of the groups."""
    t, s, d, e = (draw.choice([2, 4, 6]) for _ in range(4))
    rows, words = draw.choice([1, 2]), draw.choice([1, 2])
    scores, context = {"T": t, "S": s, "D": d}, {"T": t, "S": s, "E": e}
    loops: list[dict[str, Any]] = [
        {"target": "B", "keep": ["scores.Q", "context.Z"], "temporal_tile_sizes": {"T": rows, "S": s}}
    ]
    if draw.random() < 0.5:
        loops.append({"target": "B", "keep": ["P"], "temporal_tile_sizes": {"T": rows, "S": words}})
    else:
        loops[0]["keep"] += ["P"]
    between = [
        {"name": "scaled", "operator": "Mul", "tensor": "P", "operands": [{"name": "Y", "words": 1, "shared": True}]}
    ]
    return {
        "axes": {axis: {"scores": axis, "context": axis} for axis in ("T", "S")},
        "edges": [{"tensor": "P", "layers": {"scores": "P", "context": "P"}}],
        "tree": {
            "entries": [{"target": "D", "keep": ["scores.Q", "scores.K", "context.V", "context.Z"]}, *loops],
            "branches": [branch("scores", scores), branch("context", context)],
        },
        "layers": [
            {"name": "scores", "dimensions": scores, "tensors": [
                tensor("Q", "input", "T", "D"), tensor("K", "weight", "S", "D"), tensor("P", "output", "T", "S")]},
            {"name": "context", "dimensions": context, "tensors": [
                tensor("P", "input", "T", "S"), tensor("V", "weight", "S", "E"), tensor("Z", "output", "T", "E")]},
        ],
        "vectors": [*draw.choice([[], between]), {"name": "softmax", "operator": "Softmax", "tensor": "P", "row": ["S"]}],
    }  # fmt: skip


def chain(draw: random.Random) -> dict[str, Any]:
    """Return two to four products in a loop over rows, with up to two vector layers behind each."""
    count, rows, tile = draw.randint(2, 4), draw.choice([2, 4, 6, 12]), draw.choice([1, 2])
    columns = [draw.choice([1, 2, 4]) for _ in range(count + 1)]
    names, layers, vectors = [f"l{number}" for number in range(count)], list[dict[str, Any]](), list[dict[str, Any]]()
    for number, name in enumerate(names):
        sizes = {"M": rows, "K": columns[number], "N": columns[number + 1]}
        tensors = [tensor("I", "input", "M", "K"), tensor("W", "weight", "K", "N"), tensor("O", "output", "M", "N")]
        layers.append({"name": name, "dimensions": sizes, "tensors": tensors})
        for place in range(draw.randint(0, 2) if number + 1 < count else 0):
            operator = draw.choice([*WORDWISE, "LayerNormalization"])
            whole = rows * columns[number + 1]
            vector: dict[str, Any] = {"name": f"v{number}.{place}", "operator": operator, "tensor": f"T{number}"}
            vector["operands"] = [{"name": "Y", "words": whole}] if operator in ("Mul", "Add") else []
            vector["row"] = ["N"] if operator == "LayerNormalization" else []
            vectors.append(vector)
    edges = [
        {"tensor": f"T{number}", "layers": {names[number]: "O", names[number + 1]: "I"}} for number in range(count - 1)
    ]
    ends = ["l0.I", *(f"{name}.W" for name in names), f"l{count - 1}.O"]
    kept = draw.choice([[], [f"{name}.W" for name in names]])
    homes = {"target": "B", "keep": [edge["tensor"] for edge in edges], "temporal_tile_sizes": {"M": tile}}
    return {
        "axes": {"M": dict.fromkeys(names, "M")},
        "edges": edges,
        "tree": {
            "entries": [{"target": "D", "keep": ends}, {"target": "B", "keep": kept}, homes],
            "branches": [branch(layer["name"], layer["dimensions"]) for layer in layers],
        },
        "layers": layers,
        "vectors": vectors,
    }


def random_group(draw: random.Random) -> GroupMapping:
    data = draw.choice([attention, chain])(draw)
    return GroupMapping.model_validate({"name": "random", "architecture": machine(draw)} | data)


@dataclass
class Task:
    """Work on a tile: it starts after `needs`, and takes a unit and the ports."""

    name: str
    unit: str
    cycles: Fraction
    ports: Mapping[Any, Fraction]
    needs: list["Task"]
    done: Fraction | None = None


def tasks_of(made: GroupVectors, steps: int, tile: int, last: list[Task]) -> list[list[Task]]:
    """Return the stages of one tile: neighbours on one unit are a stage. `last` has the tasks of the tile before."""
    stages, before = list[list[Task]](), list[Task]()
    for name, limits in made.report.layer_limits.items():
        ports = {(one.name, one.action): Fraction(one.cycles, steps) for one in limits if one.action != "compute"}
        todo = [
            Task(
                name,
                made.architecture.compute.name,
                Fraction(max(one.cycles for one in limits), steps),
                ports,
                [*before],
            )
        ]
        for vector in made.vectors:
            if made.group.maker(vector.vector.tensor) != name:
                continue
            for part in vector.parts:
                if part.role == "end":
                    continue
                words = {
                    (one.name, one.action): Fraction(one.cycles)
                    for one in part.report.limits
                    if one.action != "compute"
                }
                job = Task(vector.vector.name, part.unit, Fraction(part.report.cycles or 0), words, [todo[-1]])
                if part.role == "late":  # the results of the tile before, which it rescales, are complete
                    job.needs += [task for task in last if task.name in made.group.users[vector.vector.tensor]][-1:]
                todo.append(job)
        for task in todo:
            if stages and stages[-1][-1].unit == task.unit:
                stages[-1].append(task)
            else:
                stages.append([task])
        before = [todo[-1]]
    return stages


def simulated(made: GroupVectors) -> tuple[Fraction, int]:
    """Return the cycles of a run of tiles by events, and the tiles of which some words are alive, at most."""
    tiles, steps = made.tiles, made.tiles * made.runs
    programs, last = list[list[list[Task]]](), list[Task]()
    for tile in range(tiles):
        programs.append(tasks_of(made, steps, tile, last))
        last = [task for stage in programs[-1] for task in stage]
    clock, waiting, flight, most = Fraction(0), list(programs), list[list[list[Task]]](), 0
    while waiting or flight:
        if waiting:
            flight.append(waiting.pop(0))
        most = max(most, len(flight))
        queues, ports = dict[str, list[Task]](), dict[Any, Fraction]()
        for program in flight:  # the oldest tile first
            for task in program[0]:
                queues.setdefault(task.unit, []).append(task)
                for port, cycles in task.ports.items():
                    ports[port] = ports.get(port, Fraction(0)) + cycles
        ends = [clock + cycles for cycles in ports.values()]
        events, busy = [(clock, "")], dict[str, Task]()
        while events:
            now, unit = heapq.heappop(events)
            if unit:
                busy.pop(unit).done = now
                ends.append(now)
            for free, queue in queues.items():
                if free not in busy and queue and all(task.done is not None for task in queue[0].needs):
                    busy[free] = queue.pop(0)
                    heapq.heappush(events, (now + busy[free].cycles, free))
        assert not any(queues.values()), "a task waits for a later one"
        clock = max(ends)
        flight = [program[1:] for program in flight if program[1:]]
    return clock, most


def judged(seed: int) -> str:
    """Return `equal`, `alone` with the reason if units do not overlap, `illegal`, or the difference."""
    group = random_group(random.Random(seed))
    report = evaluate_group(MODEL, group)
    if not report.valid:
        return "illegal"
    made = joined_vectors(MODEL, group, report)
    if made is None:
        return "no vector layer"
    if made.refused or made.alone:
        assert made.overlapped_cycles == made.sequential_cycles
        return f"alone: {made.alone}"
    clock, _ = simulated(made)
    ends = sum(
        part.times * (part.report.cycles or 0) for one in made.vectors for part in one.parts if part.role == "end"
    )
    took = math.ceil(made.runs * clock + ends)
    return "equal" if took == made.overlapped_cycles <= made.sequential_cycles else f"{seed}: {took}, {made}"


if __name__ == "__main__":
    answers = [judged(seed) for seed in range(int(sys.argv[1]))]
    for answer in sorted(set(answers)):
        print(answers.count(answer), answer)

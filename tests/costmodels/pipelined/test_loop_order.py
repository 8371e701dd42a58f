"""The order of loops that do not matter (Lemma 2 of docs/optimal_proof.md) under `pipelined`."""

from collections.abc import Iterator
from random import Random

import numpy as np

import tilewright as tw
from tilewright.mapspace.batch import MappingBatch
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Loop, Mapping
from tilewright.schema.problem import Problem
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.pipelined.model import PipelinedModel

MODEL = PipelinedModel(TimeloopOptions(link_transfers=False))


def windows(problem: Problem, tensor: str) -> set[str]:
    """Return the dimensions of a tensor's window, of which it has at most one."""
    found = next(each for each in problem.tensors if each.name == tensor)
    return {name for rank in found.projection if len(rank.terms) > 1 for name in rank.terms}


def moved_outside(problem: Problem, mapping: Mapping) -> Iterator[Mapping]:
    """Yield mappings in which the innermost loop of a block that does not matter is outermost."""
    loops = [loop for loop in mapping.loops() if not loop.spatial]
    for number, entry in enumerate(mapping.entries):
        block = [loop.dimension for loop in loops if loop.entry == number]
        for name in reversed(block[1:]):
            inside = [loop for loop in loops if loop.entry > number]
            inside += [
                loop for loop in loops if loop.entry == number and block.index(loop.dimension) > block.index(name)
            ]
            inside.sort(key=lambda loop: (-loop.entry, -block.index(loop.dimension) if loop.entry == number else 0))
            if not any(matters(problem, mapping, tensor, name, number, inside) for tensor in problem.tensor_names):
                order = [name, *(each for each in entry.temporal_order if each != name)]
                changed = entry.model_copy(update={"temporal_order": tuple(order)})
                yield mapping.model_copy(
                    update={"entries": (*mapping.entries[:number], changed, *mapping.entries[number + 1 :])}
                )
                break


def matters(problem: Problem, mapping: Mapping, tensor: str, name: str, entry: int, inside: list[Loop]) -> bool:
    """Return whether a loop changes how a tensor is reused: it is stationary, or slides along the loop's window."""
    keepers = [n for n, each in enumerate(mapping.entries) if n >= entry and (each.keep is None or tensor in each.keep)]
    if not keepers:
        return False
    relevant = next(each for each in problem.tensors if each.name == tensor).dimensions
    between = [loop for loop in inside if loop.entry <= keepers[0] and loop.dimension in relevant]
    if not between:
        return name not in relevant or name in windows(problem, tensor)
    return name in windows(problem, tensor)


def machine(rng: Random) -> Architecture:
    """Three memories around four units, with random timings."""
    clusters = list[dict[str, object]]()
    for name, capacity in (("Far", None), ("Middle", 96), ("Near", 24)):
        timing = {
            "prefetch": rng.choice(["any", "next", "none"]),
            "burst_words": rng.choice([1, 3, 8]),
            "latency_cycles": rng.choice([0, 5]),
            "reload": rng.random() < 0.2,
            "step_cycles": rng.choice([0, 0, 7]),
        }
        memory = {"name": name, "read_energy_pj": 1, "write_energy_pj": 1, "timing": timing}
        memory |= {"capacity_words": capacity} if capacity else {}
        memory |= {"read_bandwidth_words_per_cycle": rng.choice([1, 2, 4])}
        clusters.append({"name": f"{name}Cluster", "memories": [memory]})
    clusters[-1]["fanout"] = {"size": rng.choice([1, 4])}
    compute = {"energy_per_operation_pj": 1, "fill_drain_cycles": rng.choice([0, 3])}
    return Architecture.model_validate({"name": "timed", "clusters": clusters, "compute": compute})


PROBLEMS = (
    "mk,kn->mn; m=4 k=6 n=4",
    "abk,kcd->abcd; a=2 b=3 c=2 d=2 k=4",
    "O[k,p] += I[c,p+r] * W[k,c,r]; k=4 c=4 p=4 r=3",
)


def moves(seed: int, drawn: int) -> Iterator[tuple[float, float]]:
    """Yield the cycles before and after each move, for random mappings on a random machine."""
    rng = Random(seed)
    space = tw.space(rng.choice(PROBLEMS), machine(rng), constraints="none")
    bound = MODEL.bind(space.problem, space.architecture)
    before, after = list[Mapping](), list[Mapping]()
    for mapping in space.sample(np.random.default_rng(seed), drawn).batch():
        for changed in moved_outside(space.problem, mapping):
            before.append(mapping)
            after.append(changed)
    costs = [bound.evaluate_batch(MappingBatch.pack(space.problem, each)) for each in (before, after)]
    valid = costs[0].valid
    assert (costs[1].valid == valid).all()
    yield from zip(costs[0].cycles[valid].tolist(), costs[1].cycles[valid].tolist(), strict=True)


def test_a_loop_that_does_not_matter_is_outermost_at_no_cost() -> None:
    """The proof in docs/optimal_proof.md: no step gets a transfer that it lacked, and no transfer gets more words."""
    pairs = [pair for seed in range(12) for pair in moves(seed, 50)]
    assert all(after <= before for before, after in pairs)
    assert len(pairs) > 200 and any(after < before for before, after in pairs)

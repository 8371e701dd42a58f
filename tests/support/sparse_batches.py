"""Judge of sparse batches: drawn mappings of drawn sparse hardware cost in a batch what the model of one mapping says.

python -m support.sparse_batches 20000    # in tests/
"""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.mapspace.batch import MappingBatch
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel

MAPPINGS = 40
"""Mappings of each drawn problem and architecture."""
SHAPES: tuple[tuple[tuple[str, ...], dict[str, list[Any]]], ...] = (
    (("M", "K", "N"), {"A": ["M", "K"], "B": ["K", "N"], "Z": ["M", "N"]}),
    (("K", "C", "P", "R"), {"A": ["C", "P + R"], "B": ["K", "C", "R"], "Z": ["K", "P"]}),
    (("G", "M", "K"), {"A": ["G", "K"], "B": ["G", "M", "K"], "Z": ["G", "M"]}),
)
ROLES = {"A": "input", "B": "weight", "Z": "output"}
FORMATS = ["UOP", "UB", "CP", "B", "RLE"]


def draw_problem(rng: Random) -> tw.Problem:
    """Return a problem with densities."""
    names, projections = rng.choice(SHAPES)
    sizes = {name: rng.choice([1, 2, 3, 4, 6, 8, 12, 16]) for name in names}
    square = names == SHAPES[0][0] and rng.random() < 0.3
    if square:
        sizes["K"] = sizes["M"]
    tensors = []
    for name, projection in projections.items():
        kind = rng.choice([None, "structured", "uniform", "uniform"])
        density: dict[str, Any] | None = {"distribution": kind, "density": rng.choice([0.1, 0.25, 0.37, 0.5, 0.9])}
        if square and name == "A" and rng.random() < 0.7:
            density = {"distribution": "banded", "band_width": rng.randrange(min(sizes["M"], 3))}
        elif kind is None or name == "Z" and rng.random() < 0.5:
            density = None
        tensors.append({"name": name, "role": ROLES[name], "projection": projection, "density": density})
    return tw.Problem.model_validate({"name": "drawn", "dimensions": sizes, "tensors": tensors})


def draw_architecture(rng: Random, problem: tw.Problem) -> tw.Architecture:
    """Return an architecture with formats, gating and skipping."""
    clusters: list[dict[str, Any]] = [_cluster(rng, problem, "DRAM", None)]
    for name in ("L2", "L1", "L0")[: rng.randrange(1, 4)]:
        clusters[-1]["fanout"] = {"size": rng.choice([1, 1, 2, 4]), "axis": rng.choice("XY")}
        if rng.random() < 0.3:
            clusters.append({"name": f"{name}_rows", "fanout": {"size": rng.choice([2, 3]), "axis": rng.choice("XY")}})
        clusters.append(_cluster(rng, problem, name, rng.choice([16, 64, 400, None])))
    if rng.random() < 0.3:
        clusters[-1]["fanout"] = {"size": rng.choice([2, 4]), "axis": "X"}
    compute = {"energy_per_operation_pj": 1.0}
    if rng.random() < 0.5:
        compute["sparse"] = {"gate": rng.random() < 0.6, "skip": rng.random() < 0.6, "gated_pj": 0.3, "skipped_pj": 0.1}  # type: ignore[assignment]
    return tw.Architecture.model_validate({"name": "drawn", "clusters": clusters, "compute": compute})


def _cluster(rng: Random, problem: tw.Problem, name: str, capacity: int | None) -> dict[str, Any]:
    memory: dict[str, Any] = {
        "name": name,
        "capacity_words": capacity,
        "read_energy_pj": rng.choice([1.0, 3.5, 20.0]),
        "write_energy_pj": rng.choice([1.0, 2.5]),
        "block_words": rng.choice([1, 1, 2, 4]),
        "leakage_pj_per_cycle": rng.choice([0.0, 0.01]),
        "read_bandwidth_words_per_cycle": rng.choice([None, None, 0.5, 4]),
        "write_bandwidth_words_per_cycle": rng.choice([None, None, 1]),
        "shared_bandwidth_words_per_cycle": rng.choice([None, None, None, 2]),
        "sparse": _sparse(rng, problem, top=name == "DRAM"),
    }
    if name == "DRAM":
        memory["technology"] = "dram"
    return {"name": name, "memories": [memory]}


def _sparse(rng: Random, problem: tw.Problem, *, top: bool) -> dict[str, Any]:
    tensors = problem.tensor_names
    formats = {name: _format(rng, problem) for name in tensors if rng.random() < (0.6 if top else 0.1)}
    actions: list[dict[str, Any]] = []
    while rng.random() < 0.4:
        kind, several = rng.choice(["gate", "skip"]), rng.random() < 0.3
        options = [_action(rng, kind, tensors) for _ in range(2 if several else 1)]
        actions.append({"best_of": options} if several else options[0])
    if rng.random() < 0.15:
        actions.append(_action(rng, "skip_units", tensors))
    energies = {name: rng.choice([0.1, 0.5]) for name in ("gated_read", "skipped_read", "metadata_read", "metadata_fill", "decompression", "gated_metadata_read") if rng.random() < 0.5}  # fmt: skip
    return {
        "formats": formats,
        "actions": actions,
        "metadata": {"width_bits": 8, "depth": 2**20, "default_bits": rng.choice([0, 4, 8])},
        "decompresses": rng.random() < 0.9,
        "compresses": rng.random() < 0.9,
        "energies_pj": energies,
    }


def _format(rng: Random, problem: tw.Problem) -> dict[str, Any]:
    """Return a format; most of them take all loops."""
    kinds = sorted(rng.choices(FORMATS, k=rng.choice([1, 2, 2, 3])), key=lambda kind: kind not in ("UOP", "UB"))
    ranks = []
    for kind in kinds:
        dimensions = rng.sample(problem.dimension_names, len(problem.dimension_names))
        groups = rng.choice([None, "all", [dimensions[:2], dimensions[2:]]])
        if rng.random() < 0.7:
            groups = "all"
        rank: dict[str, Any] = {"format": kind, "flatten": groups}
        if kind != "UB" and rng.random() < 0.6:
            rank |= {"metadata_bits": rng.choice([1, 4]), "payload_bits": rng.choice([1, 4])}
        ranks.append(rank)
    return {"ranks": ranks, "fill": rng.choice(["outer", "outer", "inner"])}


def _action(rng: Random, kind: str, tensors: tuple[str, ...]) -> dict[str, Any]:
    target, *others = rng.sample(tensors, 3)
    return {kind: target, "when_empty": others[: 1 if kind == "skip_units" else rng.choice([1, 1, 2])]}


def compared(seed: int) -> tuple[int, int]:
    """Compare one drawn pair. Return how many mappings were compared, and how many of them are valid.

    Raises:
        AssertionError: a figure differs.
    """
    rng = Random(seed)
    problem = draw_problem(rng)
    architecture = draw_architecture(rng, problem)
    if not architecture.sparse_parts:
        return 0, 0
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=rng.random() < 0.3)).bind(problem, architecture)
    roomy = architecture.with_memories(lambda memory: memory.model_copy(update={"capacity_words": None}))
    wider = rng.random() < 0.4
    if wider:  # units that are skipped, or another fanout along the same axis, may make room for them
        sizes = {
            f"{cluster.name}.fanout.size": cluster.fanout.size * rng.choice([1, 2, 4]) for cluster in roomy.clusters
        }
        roomy = roomy.replace(sizes)
    generator = np.random.default_rng(seed)
    candidates = tw.space(problem, roomy, factors=rng.choice(["perfect", "perfect", "ragged"])).sample(
        generator, MAPPINGS
    )
    batch = candidates.batch()
    placed = np.array([[rng.sample(range(batch.order.shape[2]), batch.order.shape[2]) for _ in range(batch.order.shape[1])] for _ in range(len(batch))], np.int8)  # fmt: skip
    stated = generator.random(batch.order.shape[:2]) < 0.1
    placed[stated] = np.arange(batch.order.shape[2])
    permuted = MappingBatch(
        problem, batch.skeleton, batch.temporal, batch.spatial, batch.order, batch.keep, placed, None, stated
    )
    assert list(MappingBatch.pack(problem, list(permuted))) == list(permuted)
    valid = 0
    for costs, mappings in (
        (evaluator.evaluate_batch(batch) if wider else evaluator.evaluate_candidates(candidates), batch),
        (evaluator.evaluate_batch(permuted), permuted),
    ):
        for index, mapping in enumerate(mappings):
            report = evaluator.explain(mapping)
            assert report.valid == costs.valid[index], (seed, index, report.reasons)
            if report.energy_pj is not None:
                valid += 1
                assert report.cycles == costs.cycles[index], (seed, index, report.cycles, costs.cycles[index])
                np.testing.assert_allclose(
                    costs.energy_pj[index], report.energy_pj, rtol=1e-12, err_msg=f"{seed} {index}"
                )
    return 2 * len(batch), valid


def main(count: int) -> None:
    """Compare at least so many mappings."""
    seed = mappings = valid = 0
    while mappings < count:
        counts = compared(seed)
        seed, mappings, valid = seed + 1, mappings + counts[0], valid + counts[1]
        if seed % 20 == 0:
            print(f"{seed} pairs, {mappings} mappings, {valid} valid: equal", flush=True)
    print(f"{seed} pairs, {mappings} mappings, {valid} valid: equal")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)

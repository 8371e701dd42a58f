"""The examples at the head of the kernels are what the kernels count."""

from dataclasses import replace

import numpy as np

import tilewright as tw
from tilewright.mapspace.batch import Ints, Positions
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import SkeletonKernel, TimeloopModel

MEMORY = "read_energy_pj: 1, write_energy_pj: 1"
ARCHITECTURE = (
    f"{{name: two, clusters: [{{name: DRAM, memories: [{{name: DRAM, {MEMORY}}}], fanout: {{size: 2, axis: X}}}}, "
    f"{{name: PE, memories: [{{name: L1, {MEMORY}}}]}}], compute: {{energy_per_operation_pj: 1}}}}"
)


def counted(problem: str, trips: Ints, order: Positions) -> tuple[SkeletonKernel, float]:
    """Return the kernel after it has counted one candidate, and the energy of the candidate."""
    space = tw.space(problem, tw.Architecture.from_yaml(ARCHITECTURE))
    candidate = replace(space.sample(np.random.default_rng(0), 1), trips=trips[None], order=order[None])
    evaluator = TimeloopModel(TimeloopOptions()).dense(space.problem, space.architecture)
    costs = evaluator.evaluate_candidates(candidate)
    kernel = evaluator.kernel(space.skeleton, space.slots)
    assert kernel is not None and costs.valid.all()
    return kernel, float(costs.energy_pj[0])


def test_the_matrix_product() -> None:
    orders = np.array([[0, 1, 2], [0, 1, 2]], np.int8)
    trips = np.array([[2, 4, 1], [1, 1, 2], [2, 1, 2], [1, 1, 1]])
    kernel, energy = counted("mk,kn->mn; m=4 n=4 k=4", trips, orders)
    scratch, nest, counts = kernel.scratch, kernel.nest, kernel.last_counts
    assert scratch.inside[:, :, 0].tolist() == [[4, 4, 4], [2, 1, 4], [2, 1, 2], [1, 1, 1], [1, 1, 1]]
    assert scratch.need[:, 0].tolist() == [0, 8]  # the DRAM has no limit
    assert nest.dimension[:4, 0].tolist() == [1, 2, 1, 4]
    assert nest.trips_outside[:5, 0].tolist() == [1, 2, 8, 16, 32]
    assert nest.visits[0, 0] == 8  # of the last tensor, the output
    assert counts.reads[0, :, :, 0].tolist() == [[16, 32, 0], [32, 32, 16]]
    assert counts.fills[0, :, :, 0].tolist() == [[0, 0, 0], [8, 16, 0]]
    assert counts.updates[0, :, :, 0].tolist() == [[0, 0, 16], [0, 0, 32]]
    assert energy == 64 + 272 + 64


def test_the_convolution() -> None:
    problem = "O[p] += I[p+r] * W[r]; p=8 r=3"
    order = np.array([[0, 1], [0, 1]], np.int8)
    kernel, _ = counted(problem, np.array([[4, 1], [1, 1], [2, 3], [1, 1]]), order)
    assert kernel.last_counts.fills[0, 1, 0, 0] == 10

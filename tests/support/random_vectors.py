"""Random vector layers and small networks on units, judged twice.

`python -m support.random_vectors layers 5000` compares the formula with executions on numbers, count by count.
`python -m support.random_vectors networks 2000` compares the schedule of units with a simulation of events.
"""

import heapq
import random
import sys
from itertools import groupby

import numpy as np

from tilewright.application.run.vector_network import UnitTask, length, schedule
from tilewright.errors import NotConformableError, Reason
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.problem import Role
from tilewright.schema.vector import OPERATORS, Operand, VectorLayer
from tilewright_costmodels.vector.counts import Placement, counts_of
from tilewright_costmodels.vector.execution import ROWS, TAKEN, execute
from tilewright_costmodels.vector.report import report_of

KINDS = ("add", "multiply", "exponential", "compare", "divide", "convert")
OPERANDS = (
    dict.fromkeys(
        "Add Sub Sum Mean Mul Div Mod Max Min Equal Greater Less GreaterOrEqual LessOrEqual And Or Xor Pow PRelu SwiGLU GeGLU RNN "
        "BitShift BitwiseAnd BitwiseOr BitwiseXor".split(),
        2,
    )
    | dict.fromkeys("Where BatchNormalization RotaryEmbedding".split(), 3)
    | {"LSTM": 9, "GRU": 7}
)
WIDE = ("max", "Normalization", "CumSum", "CumProd", "DynamicQuantizeLinear")
"""Ends of the names of operators along rows with a result per element."""


NETWORKS = [
    {},
    {"energy_per_hop_pj": 2, "energy_per_router_pj": 1},
    {"bandwidth_words_per_cycle": 0.5, "energy_per_ingress_pj": 3},
]
CUT = ["Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "ReduceLogSumExp", "DynamicQuantizeLinear"]


def machine(draw: random.Random) -> Architecture:
    """Return a machine with up to three memories, and a unit at one of them."""
    sizes = [None, draw.choice([None, draw.randint(1, 60)]), draw.choice([None, draw.randint(2, 20)])]
    depth = draw.choice([1, 2, 3, 3])
    memories = [
        {
            "name": f"M{number}",
            "read_energy_pj": draw.randint(1, 9),
            "write_energy_pj": draw.randint(1, 9),
            "word_bits": 16,
            "block_words": draw.choice([1, 1, 2]),
            "bits_per_value": draw.choice([{}, {"output": 32}, {"weight": 8}]),
            "holds": draw.choice([None, ["input", "output"], ["output"], ["weight", "input"]]) if number == 1 else None,
            "leakage_pj_per_cycle": draw.choice([0, 2]),
            "read_bandwidth_words_per_cycle": draw.choice([None, 1, 3]),
            "shared_bandwidth_words_per_cycle": draw.choice([None, 2]),
        }
        | ({} if sizes[number] is None else {"capacity_words": sizes[number]})
        for number in range(depth)
    ]
    clusters = [
        {
            "name": f"C{n}",
            "memories": [memory],
            "fanout": {"size": draw.randint(1, 3), "axis": draw.choice("XY"), "network": draw.choice(NETWORKS)},
        }
        for n, memory in enumerate(memories)
    ]
    unit = {
        "name": "Vector",
        "lanes": draw.randint(1, 4),
        "memory": f"M{draw.choice([depth - 1, draw.randrange(depth)])}",
        "energy_pj": {kind: draw.randint(0, 5) for kind in KINDS},
        "cycles": {kind: draw.choice([0.5, 1, 3]) for kind in KINDS if draw.random() < 0.5},
    }
    data = {"name": "random", "clusters": clusters, "compute": {"energy_per_operation_pj": 1}, "units": [unit]}
    return Architecture.model_validate(data)


def layer(draw: random.Random) -> VectorLayer:
    """Return a layer of any operator of the table; those that cut rows change are drawn more often."""
    operator = draw.choice(CUT if draw.random() < 0.3 else sorted(OPERATORS))
    rows, row = draw.randint(1, 7), draw.randint(1, 12)
    most = TAKEN.get(operator, 1) if operator in ROWS else OPERANDS.get(operator, 1)
    operands = [Operand(name="X0", words=draw.choice([rows * row, draw.randint(1, 2 * rows * row)]))]
    for place in range(1, most if operator in OPERANDS else draw.randint(1, most)):
        shared = operator in ROWS or draw.random() < 0.5
        role: Role = "weight" if draw.random() < 0.5 else "input"
        operands.append(Operand(name=f"X{place}", words=row if shared else rows * row, role=role, shared=shared))
    result = (
        rows if operator in ROWS and not operator.endswith(WIDE) and not operator.startswith("Softmax") else rows * row
    )
    return VectorLayer(name="v", operator=operator, rows=rows, row=row, operands=tuple(operands), result=result)


def judged(seed: int) -> str:
    """Return how formula and execution of one random layer differ: `equal`, `refused` by both, or the difference."""
    draw = random.Random(seed)
    architecture, one = machine(draw), layer(draw)
    answers = list[Report | tuple[Reason, ...]]()
    for count in (counts_of, lambda placed: execute(placed, seed).counts):
        placed = Placement(one, architecture, architecture.units[0], "timeloop")
        try:
            answers.append(report_of(placed, count(placed)))
        except NotConformableError as error:
            answers.append(error.reasons)
    if answers[0] != answers[1]:
        return f"{seed}: {answers[0]!r}\n{answers[1]!r}"
    return "refused" if type(answers[0]) is tuple else "equal"


REFERENCES = {
    "Softmax": lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(),
    "LogSoftmax": lambda x: x - x.max() - np.log(np.exp(x - x.max()).sum()),
}


def network(draw: random.Random) -> list[UnitTask]:
    """Return tasks of two or three units in order of execution."""
    tasks: list[UnitTask] = []
    for number in range(draw.randint(1, 9)):
        reads = tuple(task.name for task in tasks if draw.random() < 0.3)
        count = tasks[-1].count if tasks and draw.random() < 0.7 else draw.randint(1, 3)
        unit = draw.choice(["array", "array", "vector", "vector", "other"])
        tasks.append(UnitTask(f"t{number}", unit, draw.randint(0, 9), count, reads))
    return tasks


def simulated(tasks: list[UnitTask]) -> int:
    """Return the cycles of a network by events: each execution of a segment puts its tasks into queues of the units."""
    clock = 0
    for count, group in groupby(tasks, key=lambda task: task.count):
        segment = list(group)
        inside = {task.name for task in segment}
        for _ in range(count):
            queues = {task.unit: [one for one in segment if one.unit == task.unit] for task in segment}
            done, events, busy = set[str](), [(clock, -1, "")], dict[str, UnitTask]()
            while events:
                clock, _, finished = heapq.heappop(events)
                if finished:
                    task = busy.pop(finished)
                    done.add(task.name)
                for number, (unit, queue) in enumerate(queues.items()):
                    if unit not in busy and queue and all(name in done for name in queue[0].reads if name in inside):
                        busy[unit] = queue.pop(0)
                        heapq.heappush(events, (clock + busy[unit].cycles, number, unit))
            assert len(done) == len(segment)
    return clock


def agrees(seed: int) -> bool:
    """Return whether the schedule of a random network takes the cycles of the simulation."""
    tasks = network(random.Random(seed))
    return length(schedule(tasks)) == simulated(tasks)


if __name__ == "__main__":
    what, number = sys.argv[1], int(sys.argv[2])
    if what == "layers":
        answers = [judged(seed) for seed in range(number)]
        for answer in answers:
            if answer not in ("equal", "refused"):
                print(answer)
        print(f"{answers.count('equal')} equal, {answers.count('refused')} refused by both, of {number}")
    else:
        print(f"{sum(map(agrees, range(number)))} equal of {number}")

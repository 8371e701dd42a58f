import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.random_vectors import REFERENCES, judged
from tilewright.errors import NotConformableError
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.timing import Timing
from tilewright.schema.vector import OPERATORS, Operand, VectorLayer
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.pipelined.model import PipelinedModel
from tilewright_costmodels.vector.counts import Placement, VectorCounts, counts_of
from tilewright_costmodels.vector.execution import PROGRAMS, execute
from tilewright_costmodels.vector.report import report_of


def machine(words: int | None = None, units: int = 1, lanes: int = 2, **unit: Any) -> Architecture:
    size = "" if words is None else f"capacity_words: {words}, "
    energies = "add: 1, multiply: 2, exponential: 8, compare: 1, divide: 4, convert: 1"
    made = Architecture.from_yaml(
        f"""
name: small
clock_ghz: 1
clusters:
- {{name: D, memories: [{{name: DRAM, read_energy_pj: 100, write_energy_pj: 50, shared_bandwidth_words_per_cycle: 4}}],
   fanout: {{size: {units}}}}}
- {{name: B, memories: [{{name: Buffer, {size}read_energy_pj: 3, write_energy_pj: 2}}]}}
compute: {{energy_per_operation_pj: 1}}
units: [{{name: VectorUnit, lanes: {lanes}, memory: Buffer, energy_pj: {{{energies}}}}}]
"""
    )
    return made.model_copy(update={"units": (made.units[0].model_copy(update=unit),)})


def softmax(rows: int = 4, row: int = 8) -> VectorLayer:
    operand = Operand(name="X", words=rows * row)
    return VectorLayer(name="s", operator="Softmax", rows=rows, row=row, operands=(operand,), result=rows * row)


def words(counts: VectorCounts, memory: str, tensor: str) -> tuple[int, int, int]:
    moved = counts.moved[memory, tensor]
    return moved.reads, moved.fills, moved.updates


def test_whole_rows_come_once() -> None:
    """The example of the module: a row of 8, its result and its 8 intermediate values have room in 24 words."""
    placed = Placement(softmax(), machine(24), machine().units[0], "timeloop")
    counts = counts_of(placed)
    assert dict(counts.operations) == {"compare": 32, "add": 64, "exponential": 32, "multiply": 32, "divide": 4}
    assert (words(counts, "DRAM", "X"), words(counts, "DRAM", "Outputs")) == ((32, 0, 0), (0, 0, 32))
    assert (words(counts, "Buffer", "X"), words(counts, "Buffer", "Outputs")) == ((96, 32, 0), (32, 0, 64))
    report = report_of(placed, counts)
    assert report.cycles == 82 and [limit.cycles for limit in report.limits] == [
        82,
        16,
    ]  # DRAM moves 64 words, 4 a cycle
    energy = 32 * (1 + 2 + 8 + 2) + 4 * 4 + 32 * 150 + (96 + 32) * 3 + (32 + 64) * 2
    assert report.energy_pj == energy and report.macs == 164


def test_rows_without_room_are_online() -> None:
    """Blocks of two words: four rescale each row's sum, exponentials are computed twice, and DRAM is read twice."""
    placed = Placement(softmax(), machine(5), machine().units[0], "timeloop")
    counts = counts_of(placed)
    assert placed.blocks == 4
    assert dict(counts.operations) == {
        "compare": 32, "add": 96 + 16, "exponential": 64 + 16, "multiply": 32 + 16, "divide": 4,
    }  # fmt: skip
    assert words(counts, "DRAM", "X") == (64, 0, 0) and words(counts, "Buffer", "Outputs") == (32, 0, 32)


@pytest.mark.parametrize("operator", sorted(REFERENCES))
@pytest.mark.parametrize("room", [None, 24, 7, 2])
def test_softmax_equals_numpy(operator: str, room: int | None) -> None:
    layer = softmax(5, 11).model_copy(update={"operator": operator})
    placed = Placement(layer, machine(room, 2), machine().units[0], "oracle")
    executed = execute(placed)
    for (x, *_), result in zip(executed.operands, executed.results, strict=True):
        np.testing.assert_allclose(result, REFERENCES[operator](x), rtol=1e-12)
    assert executed.counts == counts_of(placed)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _norm(x: Any, y: Any, z: Any) -> Any:
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * y + z


def _lstm_cell(*x: Any) -> Any:
    return _sigmoid(x[2] + x[6]) * x[8] + _sigmoid(x[0] + x[4]) * np.tanh(x[3] + x[7])


def _gru(*x: Any) -> Any:
    z = _sigmoid(x[0] + x[3])
    return (1 - z) * np.tanh(x[2] + _sigmoid(x[1] + x[4]) * x[5]) + z * x[6]


@pytest.mark.parametrize(
    ("operator", "operands", "value"),
    [
        ("LayerNormalization", 3, _norm),
        ("RMSNormalization", 2, lambda x, y: x / np.sqrt((x * x).mean() + 1e-5) * y),
        ("Sigmoid", 1, _sigmoid),
        ("Swish", 1, lambda x: x * _sigmoid(x)),
        ("SwiGLU", 2, lambda x, y: x * _sigmoid(x) * y),
        ("Gelu", 1, lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
        ("Tanh", 1, np.tanh),
        ("Mish", 1, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
        ("Softplus", 1, lambda x: np.log1p(np.exp(x))),
        ("HardSwish", 1, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
        ("Pow", 2, lambda x, y: x**y),
        ("Relu", 1, lambda x: np.maximum(x, 0)),
        ("RotaryEmbedding", 3, lambda x, y, z: x * y + np.roll(x, 1) * z),
        ("ReduceL2", 1, lambda x: [np.linalg.norm(x)]),
        ("GlobalAveragePool", 1, lambda x: [x.mean()]),
        ("ReduceMin", 1, lambda x: [x.min()]),
        ("ReduceVariance", 1, lambda x: [x.var()]),
        ("ReduceLogSumExp", 1, lambda x: [np.log(np.exp(x).sum())]),
        ("LpNormalization", 1, lambda x: x / np.linalg.norm(x)),
        ("MeanVarianceNormalization", 1, lambda x: (x - x.mean()) / np.sqrt(x.var() + 1e-5)),
        ("Hardmax", 1, lambda x: x == x.max()),
        ("LRN", 1, lambda x: [x[3] / (1 + 1e-4 / 7 * (x * x).sum()) ** 0.75]),
        ("CumSum", 1, np.cumsum),
        ("Sinh", 1, np.sinh),
        ("Cosh", 1, np.cosh),
        ("Asinh", 1, np.arcsinh),
        ("Softsign", 1, lambda x: x / (1 + abs(x))),
        ("Selu", 1, lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(x))),
        ("Celu", 1, lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
        ("Mod", 2, lambda x, y: x - y * np.floor(x / y)),
        ("Mean", 3, lambda x, y, z: (x + y + z) / 3),
        ("RNN", 2, lambda x, y: np.tanh(x + y)),
        ("LSTM", 9, lambda *x: _sigmoid(x[1] + x[5]) * np.tanh(_lstm_cell(*x))),
        ("GRU", 7, lambda *x: _gru(*x)),
    ],
)
def test_programs_compute_their_operators(operator: str, operands: int, value: Any) -> None:
    rows, row = 3, 7
    given = tuple(
        Operand(name=f"X{place}", words=row if place else rows * row, shared=place > 0) for place in range(operands)
    )
    work = OPERATORS[operator]
    if operator == "Mean":
        work = work.model_copy(update={"element": FrozenDict({"add": operands - 1, "multiply": 1})})
    layer = VectorLayer(name="v", operator=operator, work=work, rows=rows, row=row, operands=given, result=rows * row)
    executed = execute(Placement(layer, machine(), machine().units[0], "oracle"))
    for xs, result in zip(executed.operands, executed.results, strict=True):
        np.testing.assert_allclose(result, value(*xs), rtol=1e-9)


def test_erf_is_that_of_the_table() -> None:
    layer = softmax(2, 9).model_copy(update={"operator": "Erf"})
    executed = execute(Placement(layer, machine(), machine().units[0], "oracle"))
    for (x, *_), result in zip(executed.operands, executed.results, strict=True):
        np.testing.assert_allclose(result, np.array([math.erf(one) for one in x]), atol=2e-7)


def test_every_operator_has_a_program() -> None:
    assert PROGRAMS.keys() == OPERATORS.keys()


@given(st.integers(0, 10**9))
def test_formula_equals_execution(seed: int) -> None:
    assert judged(seed) in ("equal", "refused")


@pytest.mark.exhaustive
def test_formula_equals_execution_often() -> None:
    answers = [judged(seed) for seed in range(1500)]
    assert {*answers} == {"equal", "refused"} and answers.count("equal") > 1000


def test_units_take_whole_rows() -> None:
    """Five rows on three units: the busiest has two, so it takes as long as two rows."""
    layer = softmax(5, 8)
    placed = Placement(layer, machine(24, 3), machine().units[0], "timeloop")
    assert report_of(placed, counts_of(placed)).limits[0].cycles == 2 * 41 // 2


@pytest.mark.parametrize(
    ("unit", "code", "told"),
    [
        ({"energy_pj": {"add": 1.0}}, "operation", "VectorUnit has no compare, divide, exponential, multiply"),
        ({"memory": "DRAM"}, "", ""),
    ],
)
def test_a_unit_has_the_operations_that_it_has_energies_of(unit: dict[str, Any], code: str, told: str) -> None:
    architecture = machine(24, **unit)
    placed = Placement(softmax(), architecture, architecture.units[0], "timeloop")
    if code:
        with pytest.raises(NotConformableError, match=told) as caught:
            counts_of(placed)
        assert caught.value.reasons[0].code == code
    else:
        assert counts_of(placed).moved.keys() == {("DRAM", "X"), ("DRAM", "Outputs")}


def test_networks_take_energy_and_limit_the_speed() -> None:
    """64 words enter, and half of them travel one hop to the second of two units. The results, 32 words, come back at 1 in 4 cycles."""
    plain = machine(24, 2)
    network = {
        "energy_per_ingress_pj": 3,
        "energy_per_hop_pj": 2,
        "energy_per_router_pj": 1,
        "bandwidth_words_per_cycle": 0.25,
    }
    costly = plain.replace({f"D.fanout.network.{name}": value for name, value in network.items()})
    reports = [
        report_of(placed, counts_of(placed))
        for placed in (Placement(softmax(), one, one.units[0], "timeloop") for one in (plain, costly))
    ]
    assert (reports[1].energy_pj or 0) - (reports[0].energy_pj or 0) == 64 * (3 + 0.5 * 2 + 1.5 * 1)
    assert [part.ingresses for part in reports[1].networks] == [32, 32]
    assert {(limit.name, limit.action, limit.cycles) for limit in reports[1].limits} >= {
        ("D", "send", 128),
        ("D", "collect", 128),
    }


def test_no_room_and_meshes_are_refused() -> None:
    with pytest.raises(NotConformableError, match="no room for an element"):
        counts_of(Placement(softmax(), machine(1), machine().units[0], "timeloop"))
    costly = machine(24, 2).replace({"D.fanout.network.meshes": [{}]})
    with pytest.raises(NotConformableError, match="the network below D has meshes"):
        counts_of(Placement(softmax(), costly, costly.units[0], "timeloop"))


def test_operations_of_a_file_have_no_program() -> None:
    own = machine(24, operators={"Softmax": OPERATORS["Exp"]})
    placed = Placement(softmax(), own, own.units[0], "oracle")
    assert dict(counts_of(placed).operations) == {"exponential": 32}
    with pytest.raises(NotConformableError, match="only those of the table have a program"):
        execute(placed)


def test_attention_of_gpt_3_takes_as_long_as_in_accelforge() -> None:
    """32 heads of 2,048 tokens on four units of 128 lanes, with one operation an element: 0.250 ms at 1.05 GHz."""
    architecture = Architecture.from_file(Path(__file__).parents[3] / "examples" / "tpu_v4i.yaml")
    layer, unit = softmax(32 * 2048, 2048), architecture.units[0]
    single = unit.model_copy(update={"operators": {"Softmax": OPERATORS["Exp"]}})
    lanes = []
    for chosen in (single, unit):
        placed = Placement(layer, architecture, chosen, "timeloop")
        lanes.append(report_of(placed, counts_of(placed)).limits[0].cycles / 1.05e6)
    assert [round(milliseconds, 3) for milliseconds in lanes] == [0.25, 1.248]


def test_counts_that_could_be_rounded_are_refused() -> None:
    huge = softmax().model_copy(update={"rows": 2**40, "row": 2**12, "operands": (Operand(name="X", words=2**40),)})
    placed = Placement(huge, machine(), machine().units[0], "timeloop")
    with pytest.raises(NotConformableError, match="expected less than 2\\*\\*53"):
        report_of(placed, counts_of(placed))


@pytest.mark.parametrize(
    ("prefetch", "latency", "cycles"),
    [("any", 10, 82), ("none", 0, 4 * (2 + 20.5 + 2)), ("none", 10, 4 * (12 + 20.5 + 2)), ("next", 10, 12 + 82 + 2)],
)
def test_rows_wait_under_pipelined(prefetch: str, latency: int, cycles: float) -> None:
    """A row takes 20.5 cycles, and its eight words two of DRAM, in both directions; with `next` they arrive in the row before."""
    small = machine(24)
    dram, buffer = small.memories
    timings: dict[str, Any] = {dram.name: {"latency_cycles": latency}, buffer.name: {"prefetch": prefetch}}
    slow = small.with_memories(lambda memory: memory.model_copy(update={"timing": Timing(**timings[memory.name])}))
    model = PipelinedModel(TimeloopOptions())
    report = model.explain_vector(softmax(), slow, slow.units[0])
    plain = report_of(
        *(lambda placed: (placed, counts_of(placed)))(Placement(softmax(), small, small.units[0], "pipelined"))
    )
    assert report.cycles == math.ceil(cycles) and report.energy_pj == plain.energy_pj


def test_pipelined_refuses_requests() -> None:
    small = machine(24)
    timing = Timing.model_validate({"requests": {"along": ["x"], "words": 4, "cycles": 1}})
    asked = small.with_memories(lambda memory: memory.model_copy(update={"timing": timing}))
    with pytest.raises(NotConformableError, match="requests, rows and words that pass through DRAM are not counted"):
        PipelinedModel(TimeloopOptions()).explain_vector(softmax(), asked, asked.units[0])

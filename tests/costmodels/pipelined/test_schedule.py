"""The closed form of `pipelined` equals events that are simulated one by one, and `timeloop` if nothing is timed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.pipelined import MODEL, TIMELOOP, Case, cases, check, untimed
from tilewright.application.run.evaluation import build_model
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.skeleton import Skeleton
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.timing import Timing

RATES = "read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle"


@given(cases(timed=True))
def test_the_closed_form_equals_the_events(case: Case) -> None:
    check(*case)


@given(cases(timed=False))
def test_without_timing_all_equals_timeloop(case: Case) -> None:
    problem, architecture, mapping = case
    report, expected = (model.bind(problem, architecture).explain(mapping) for model in (MODEL, TIMELOOP))
    assert report.cycles == expected.cycles and report.energy_pj == expected.energy_pj
    assert report.levels == expected.levels and report.reasons == expected.reasons


def test_a_slow_first_transfer_is_hidden_behind_later_steps() -> None:
    """Without timing, a word that takes 4 / 3 cycles may arrive during any of the 3 cycles of the run."""
    problem = Problem.from_yaml("""
name: scaled
dimensions: {B: 3}
tensors:
- {name: X, role: input, projection: [B]}
- {name: W, role: weight, projection: []}
- {name: Y, role: output, projection: [B]}
""")
    architecture = Architecture.from_yaml("""
name: three
clusters:
- name: Main
  memories: [{name: Main, technology: dram, read_energy_pj: 1, write_energy_pj: 1}]
- name: Middle
  memories: [{name: Middle, read_energy_pj: 1, write_energy_pj: 1}]
- name: Element
  memories: [{name: Register, read_energy_pj: 1, write_energy_pj: 1, write_bandwidth_words_per_cycle: 0.75}]
compute: {energy_per_operation_pj: 1}
""")
    mapping = Mapping.from_yaml("""
entries:
- {target: Main, keep: [X, W, Y], temporal_order: [B], temporal_tile_sizes: {B: 3}, spatial_tile_sizes: {B: 3}}
- {target: Middle, keep: [], temporal_order: [B], temporal_tile_sizes: {B: 1}, spatial_tile_sizes: {B: 1}}
- {target: Element, keep: [W], temporal_order: [B], temporal_tile_sizes: {B: 1}, spatial_tile_sizes: {B: 1}}
""")
    reports = [model.bind(problem, architecture).explain(mapping) for model in (MODEL, TIMELOOP)]
    assert [report.cycles for report in reports] == [3, 3]


@given(cases(timed=True), st.data())
def test_a_batch_equals_its_reports(case: Case, data: st.DataObject) -> None:
    problem, architecture, mapping = case
    shuffled = [
        entry.model_copy(update={"temporal_order": tuple(data.draw(st.permutations(entry.temporal_order)))})
        for entry in mapping.entries
    ]
    both = [mapping, Mapping(entries=tuple(shuffled))]
    evaluator = MODEL.bind(problem, architecture)
    costs, reports = evaluator.evaluate_batch(MappingBatch.pack(problem, both)), [*map(evaluator.explain, both)]
    assert [*costs.valid] == [report.valid for report in reports]
    for report, cycles, energy in zip(reports, costs.cycles, costs.energy_pj, strict=True):
        assert not report.valid or (report.cycles == cycles and np.isclose(report.energy_pj or 0, energy, rtol=1e-12))


@given(cases(timed=True))
def test_waiting_costs_cycles_and_leakage_alone(case: Case) -> None:
    problem, architecture, mapping = case
    report = MODEL.bind(problem, architecture).explain(mapping)
    faster = MODEL.bind(problem, untimed(architecture)).explain(mapping)
    if report.cycles is not None and faster.cycles is not None:
        assert report.cycles >= faster.cycles
        leaked = [sum(level.leakage_pj for level in each.levels) for each in (report, faster)]
        spent = [(each.energy_pj or 0) - lost for each, lost in zip((report, faster), leaked, strict=True)]
        assert spent[0] == pytest.approx(spent[1])


@pytest.mark.parametrize(
    ("timing", "cycles"),
    [
        ({}, 64),
        ({"prefetch": "next"}, 4 + 7 * 8 + 8 + 4),
        ({"prefetch": "none"}, 8 * (4 + 8 + 4)),
        ({"step_cycles": 10}, 8 * 10),
        ({"prefetch": "none", "step_cycles": 18}, 8 * 18),
        # four words along P are two requests each way, of three cycles; a step has one word along K
        ({"prefetch": "none", "requests": {"along": ["P"], "words": 3, "cycles": 3}}, 8 * (10 + 8 + 10)),
        ({"prefetch": "none", "requests": {"along": ["C", "K"], "words": 3, "cycles": 3}}, 8 * (16 + 8 + 16)),
        # requests that return a tile take five
        ({"prefetch": "none", "requests": {"along": ["P"], "words": 3, "cycles": 3, "return_cycles": 5}}, 8 * 32),
    ],
)
def test_eight_steps_of_eight_cycles(timing: dict[str, object], cycles: int) -> None:
    """Copying: each step loads four words, works on them for eight cycles, and stores four."""
    memory = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}
    architecture = Architecture.model_validate(
        {
            "name": "one",
            "clusters": [
                {"name": "chip", "memories": [{"name": "DRAM", **memory, **dict.fromkeys(RATES, 1.0)}]},
                {"name": "core", "memories": [{"name": "Buffer", **memory, "timing": timing}]},
            ],
            "compute": {"energy_per_operation_pj": 1.0},
        }
    )
    mapping = Mapping.model_validate(
        {
            "entries": [
                {"target": "chip", "keep": ["I", "O"], "temporal_tile_sizes": {"K": 8, "C": 2, "P": 4}},
                {"target": "core", "keep": ["I", "O"], "temporal_tile_sizes": {"K": 1}},
                {"target": "core", "temporal_order": ["P", "C"], "temporal_tile_sizes": {"C": 1, "P": 1}},
            ]
        }
    )
    report = MODEL.bind(copying(), architecture).explain(mapping)
    assert (report.reasons, report.cycles) == ((), cycles)


def test_a_model_without_waits_refuses_them_by_name() -> None:
    problem = build_problem()
    architecture = Architecture.model_validate(
        {
            "name": "timed",
            "clusters": [
                {
                    "name": "chip",
                    "memories": [
                        {"name": "DRAM", "read_energy_pj": 1, "write_energy_pj": 1, "timing": {"latency_cycles": 9}}
                    ],
                }
            ],
            "compute": {"energy_per_operation_pj": 1, "fill_drain_cycles": 4},
        }
    )
    for name in ("timeloop", "oracle", "maestro", "zigzag"):
        verdict = build_model(name).capabilities.judge_hardware(problem, architecture)
        assert [reason.where for reason in verdict.reasons if reason.code == "timing"] == ["DRAM", "MAC"]
    assert build_model("pipelined").capabilities.judge_hardware(problem, architecture)


def copying() -> Problem:
    return Problem.model_validate(
        {
            "name": "copy",
            "dimensions": {"K": 8, "C": 2, "P": 4},
            "tensors": [
                {"name": "I", "role": "input", "projection": ["K", "P"]},
                {"name": "O", "role": "output", "projection": ["K", "P"]},
            ],
        }
    )


def build_problem() -> Problem:
    return Problem.model_validate(
        {
            "name": "dot",
            "dimensions": {"C": 4},
            "tensors": [
                {"name": "A", "role": "input", "projection": ["C"]},
                {"name": "O", "role": "output", "projection": []},
            ],
        }
    )


@pytest.mark.parametrize("cached", [1, 2, 8])
def test_words_that_pass_through_a_cache_arrive_with_the_inner_tiles(cached: int) -> None:
    """Each of eight steps waits 2 cycles for the cache and then 4 for DRAM, whatever tile the cache keeps."""
    memory = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}
    rate = "shared_bandwidth_words_per_cycle"
    clusters = [
        {"name": "board", "memories": [{"name": "DRAM", **memory, **dict.fromkeys(RATES, 1.0)}]},
        {"name": "chip", "memories": [{"name": "Cache", **memory, rate: 2.0, "timing": {"prefetch": "through"}}]},
        {"name": "core", "memories": [{"name": "Buffer", **memory, "timing": {"prefetch": "next"}}]},
    ]
    compute = {"energy_per_operation_pj": 1.0}
    architecture = Architecture.model_validate({"name": "cached", "clusters": clusters, "compute": compute})
    entries = [
        {"target": "board", "keep": ["I", "O"], "temporal_tile_sizes": {"K": 8, "C": 2, "P": 4}},
        {"target": "chip", "keep": ["I", "O"], "temporal_tile_sizes": {"K": cached}},
        {"target": "core", "keep": ["I", "O"], "temporal_tile_sizes": {"K": 1}},
        {"target": "core", "temporal_order": ["P", "C"], "temporal_tile_sizes": {"C": 1, "P": 1}},
    ]
    mapping = Mapping.model_validate({"entries": entries})
    evaluator = MODEL.bind(copying(), architecture)
    report, relaxation = evaluator.explain(mapping), evaluator.relaxation(Skeleton.of(mapping))
    assert (report.reasons, report.cycles) == ((), 6 + 8 * 8 + 6)
    assert relaxation is not None and relaxation.order_matters


def test_a_memory_that_words_pass_has_no_steps() -> None:
    with pytest.raises(ValueError, match="take reload and step_cycles away"):
        Timing(prefetch="through", step_cycles=5)


@pytest.mark.parametrize(
    ("positions", "rows", "cycles"),
    [
        (20, 3, 3 * 20 + 16 - 4),  # the last instruction has 4 iterations, and loads for 16 cycles
        (4, 8, 8 * 8),  # eight instructions are issued in 64 cycles; they work for 32, and load for 12 more
        (16, 1, 16),
    ],
)
def test_instructions_are_issued_and_load_the_next_weights(positions: int, rows: int, cycles: int) -> None:
    sizes = {"K": 5, "P": positions, "Q": rows}
    tensors = [
        {"name": "W", "role": "weight", "projection": ["K"]},
        {"name": "O", "role": "output", "projection": ["K", "P", "Q"]},
    ]
    problem = Problem.model_validate({"name": "scaled", "dimensions": sizes, "tensors": tensors})
    memory = {"read_energy_pj": 1.0, "write_energy_pj": 1.0}
    registers = {"name": "Registers", "holds": ["weight"], **memory}
    instruction = {"memory": "Buffer", "dimensions": ["P"], "iterations": 16, "cycles": 4}
    instruction |= {"load_cycles": 16, "issue_cycles": 8}
    clusters = [{"name": "chip", "memories": [{"name": "Buffer", **memory}]}, {"name": "core", "memories": [registers]}]
    compute = {"energy_per_operation_pj": 1.0, "instruction": instruction}
    architecture = Architecture.model_validate({"name": "array", "clusters": clusters, "compute": compute})
    entries = [
        {"target": "chip", "keep": ["W", "O"], "temporal_tile_sizes": sizes},
        {"target": "core", "keep": ["W"], "temporal_tile_sizes": sizes | {"K": 1}},
        {"target": "core", "temporal_order": ["Q", "P"], "temporal_tile_sizes": dict.fromkeys(sizes, 1)},
    ]
    report = MODEL.bind(problem, architecture).explain(Mapping.model_validate({"entries": entries}))
    assert (report.reasons, report.cycles) == ((), 5 * cycles)

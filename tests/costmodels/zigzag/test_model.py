"""`zigzag`: ZigZag's own cost model, and every count in which it differs from `timeloop`."""

import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from support.problems import products
from tilewright import library
from tilewright.application.run.evaluation import build_model, evaluate
from tilewright.child import ChildFailed, shared_child
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report, TensorCounts
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.strategies import architectures, mappings
from tilewright_costmodels import ZigZagOptions
from tilewright_costmodels.zigzag import request as asked
from tilewright_costmodels.zigzag.model import ZigZagModel
from tilewright_costmodels.zigzag.worker import answer_request, evaluate_request
from tilewright_notations import operand_loops as layers


@st.composite
def cases(draw: st.DrawFn) -> tuple[Problem, Architecture, Mapping]:
    problem, architecture = draw(products()), draw(architectures())
    return problem, architecture, draw(mappings(problem, architecture))


def explain(
    model: str, problem: Problem, architecture: Architecture, mapping: Mapping, options: dict[str, object] | None = None
) -> Report:
    return installed().make(CostModelSpec, model, options or {}).bind(problem, architecture).explain(mapping)


def counts(report: Report) -> Iterator[tuple[str, str, TensorCounts]]:
    for level in report.levels:
        for tensor, row in level.tensors.items():
            yield level.name, tensor, row


@dataclass(frozen=True)
class Account:
    """Counts expected of ZigZag, from the mapping and Timeloop's counts; every difference has a name."""

    problem: Problem
    architecture: Architecture
    mapping: Mapping

    def of(self, memory: str, tensor: str, timeloop: TensorCounts) -> tuple[int, int, int]:
        """Reads, fills, updates per instance."""
        operand = next(key for key, each in layers.operands(self.problem).items() if each.name == tensor)
        places = layers.held(self.problem, self.architecture, self.mapping)[operand]
        level = next(place.level for place in places if place.memory.name == memory)
        if operand != "O":
            reads = timeloop.reads // (self.still(tensor, places[0].entry) if level == 0 else 1)
            return reads, timeloop.fills, timeloop.updates
        outermost = level == len(places) - 1
        sent = 0 if outermost else timeloop.tile_words * self.visits(places[level].entry)
        again = timeloop.updates if self.partial(level, places) else 0
        back = sent if not outermost and self.partial(level + 1, places) else 0
        return again + sent, back, timeloop.updates

    def still(self, tensor: str, entry: int) -> int:
        """`stationary`: trips of the innermost loops in which a multiplier keeps its value."""
        trips = 1
        for loop in reversed([loop for loop in self.mapping.loops() if not loop.spatial]):
            if loop.dimension in self.problem.tensor(tensor).dimensions:
                break
            trips *= loop.trips
        return trips

    def visits(self, entry: int) -> int:
        """Return how often a memory receives a tile of the result: in outer loops in which it is not stationary."""
        outside = [loop for loop in self.mapping.loops() if not loop.spatial and loop.entry <= entry]
        while outside and outside[-1].dimension not in self.problem.output.dimensions:
            outside.pop()
        return math.prod(loop.trips for loop in outside)

    def partial(self, level: int, places: list[layers.Held]) -> bool:
        """`partial sums`: results that come to a memory are not final, by loops outside that sum, spatial ones too."""
        place = places[level]
        inner = places[level - 1].entry if level else None
        loops = list(self.mapping.loops())
        temporal = [loop for loop in loops if not loop.spatial]
        arriving = [loop for loop in temporal if inner is None or loop.entry <= inner]
        while arriving and inner is not None and arriving[-1].dimension not in self.problem.output.dimensions:
            arriving.pop()  # the tile inside stays
        spatial = [loop for loop in loops if loop.spatial and loop.entry < place.entry]
        return any(loop.dimension not in self.problem.output.dimensions for loop in (*arriving, *spatial))


@given(cases())
def test_every_count_is_timeloops_or_differs_for_a_named_cause(case: tuple[Problem, Architecture, Mapping]) -> None:
    problem, architecture, mapping = case
    reasons = list(layers.inexpressible(problem, architecture, mapping))
    zigzag = explain("zigzag", *case)
    assert zigzag.valid == (not reasons), zigzag.reasons
    if reasons:
        assert zigzag.reasons == tuple(reasons)
        return
    # `link transfers` is another named cause: ZigZag knows none
    timeloop = {
        (level, tensor): row for level, tensor, row in counts(explain("timeloop", *case, {"link_transfers": False}))
    }
    account = Account(*case)
    for level, tensor, row in counts(zigzag):
        expected = timeloop[level, tensor]
        assert (row.reads, row.fills, row.updates) == account.of(level, tensor, expected), (level, tensor)
        assert (row.instances, row.tile_words) == (expected.instances, expected.tile_words)


@settings(suppress_health_check=[HealthCheck.filter_too_much])  # ZigZag takes few of them
@given(cases())
def test_energies_are_counts_times_energies_where_blocks_are_words(
    case: tuple[Problem, Architecture, Mapping],
) -> None:
    problem, architecture, mapping = case
    report = explain("zigzag", *case)
    assume(report.valid)
    total = report.compute_energy_pj or 0.0
    memories = {memory.name: memory for memory in architecture.memories}
    for level, _, row in counts(report):
        memory = memories[level]
        total += row.energy_pj
        if memory.block_words == 1:
            energy = row.reads * memory.read_energy_pj + (row.fills + row.updates) * memory.write_energy_pj
            assert row.energy_pj == pytest.approx(energy * row.instances)
    assert report.energy_pj == pytest.approx(total)


def test_a_shipped_network_layer_is_evaluated_and_its_cycles_are_accounted_for() -> None:
    layer = library.workload("quickflow_convs/V").layers[0].problem
    architecture = library.architecture("eyeriss")
    from tilewright.application.run.search import search
    from tilewright.mapspace.space import MapSpace
    from tilewright.plugin.mapper import Budget, Task
    from tilewright.plugin.specs import MapperSpec

    space = MapSpace.of(layer, architecture, rules=None)
    model = installed().make(CostModelSpec, "timeloop").bind(layer, architecture)
    best = search(installed().make(MapperSpec, "local"), Task(space), model, Budget()).best
    assert best is not None
    report = explain("zigzag", layer, architecture, best)
    assert report.valid and report.cycles is not None
    computing = math.prod(loop.trips for loop in best.loops() if not loop.spatial)
    assert f"{computing:,} computing" in report.warnings[0] and report.cycles >= computing


def test_whole_windows_are_fetched_again() -> None:
    """ZigZag fetches whole tiles, Timeloop what is new of them; where a stride leaves holes they disagree on tiles."""
    compared = 0
    for sample in SAMPLES[3:5]:
        for mapping in sample.batch(12, seed=5):
            pair = [explain(model, sample.problem, sample.architecture, mapping) for model in ("zigzag", "timeloop")]
            if all(report.valid for report in pair):
                ours = {(level, tensor): row for level, tensor, row in counts(pair[1])}
                for level, tensor, row in counts(pair[0]):
                    if row.tile_words == ours[level, tensor].tile_words:
                        compared += 1
                        assert row.fills >= ours[level, tensor].fills, (level, tensor)
    assert compared > 20


def test_what_zigzag_cannot_be_is_refused_with_the_construct() -> None:
    def codes(*projections: list[str]) -> list[str]:
        roles = ["weight"] * (len(projections) - 2)
        tensors = [
            {"name": f"T{index}", "role": role, "projection": projection}
            for index, (role, projection) in enumerate(zip(["input", *roles, "output"], projections, strict=True))
        ]
        sizes = dict.fromkeys("ABC", 2)
        data = {"name": "p", "dimensions": sizes, "tensors": tensors}
        return [reason.code for reason in layers.unsuited(Problem.model_validate(data))]

    assert codes(["A"], ["B"], ["C"], ["A"]) == ["operands"]
    assert codes(["A + B + C"], ["B"], ["A"]) == ["windows"]
    assert codes(["A"], ["B"], ["A + B"]) == ["windows"]
    assert codes(["A + B"], ["B + C"], ["A"]) == ["windows", "windows"]
    assert codes(["A", "A"], ["B"], ["A"]) == ["repeated"]
    assert codes(["2*A + B", "C"], ["B"], ["A"]) == []


def test_an_error_of_zigzag_a_time_out_and_an_end_are_reasons() -> None:
    sample = SAMPLES[1]
    mapping = sample.batch(1)[0]
    child = shared_child(quiet=True)
    requests: list[dict[str, Any]] = [{}, {"layer": {}}]
    for wrong in requests:
        with pytest.raises(ChildFailed, match="Error"):
            child.ask(answer_request, wrong, seconds=60)
    running = child.run
    assert running is not None
    running.send_signal(signal.SIGSTOP)  # so that it cannot be in time
    late = ZigZagModel(ZigZagOptions(seconds=0.05)).bind(sample.problem, sample.architecture).explain(mapping)
    assert [reason.code for reason in late.reasons] == ["timeout"]
    with pytest.raises(ChildFailed, match="exit code 7"):
        child.ask(os._exit, 7, seconds=60)
    assert explain("zigzag", sample.problem, sample.architecture, mapping).valid


def test_the_process_gives_what_a_call_gives() -> None:
    sample = SAMPLES[1]
    request = asked.request(sample.problem, sample.architecture, sample.batch(1)[0])
    assert shared_child(quiet=True).ask(answer_request, request, seconds=60) == evaluate_request(request)


def test_nothing_in_the_current_folder_is_run(tmp_path: Path) -> None:
    for name in ("random", "json", "queue", "numpy", "zigzag"):
        (tmp_path / f"{name}.py").write_text(f"open('{name}.ran', 'w')")
    program = shutil.which("tilewright", path=Path(sys.executable).parent)
    assert program is not None
    words = [
        "map",
        "nk,km->nm; n=4 k=4 m=4",
        "--arch",
        "eyeriss",
        "--model",
        "zigzag",
        "--evaluations",
        "1",
        "--no-cache",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    ran = subprocess.run([program, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in ran.stderr and "mappings evaluated" in ran.stdout
    assert not list(tmp_path.glob("*.ran"))


@settings(suppress_health_check=[HealthCheck.filter_too_much])  # ZigZag takes few of them
@given(cases())
def test_its_limits_share_the_cycles(case: tuple[Problem, Architecture, Mapping]) -> None:
    report = evaluate(build_model("zigzag"), *case)
    assume(report.valid)

    assert report.contradiction() is None and {limit.action for limit in report.limits} >= {"compute", "load", "unload"}
    assert 0 < (report.busy_units or 0) <= (report.compute_units or 0)
    assert report.energy_pj == pytest.approx(
        sum(level.energy_pj for level in report.levels) + (report.compute_energy_pj or 0)
    )
    computing, stalled = (
        int(re.findall(rf"([\d,]+) {word}", report.warnings[0])[0].replace(",", ""))
        for word in ("computing", "stalled")
    )
    binding = {limit.action: limit.binding_cycles for limit in report.limits if limit.binding_cycles}
    assert ("compute" in binding) == (stalled == 0) and report.limits[0].cycles == computing

"""What explains a count: the approximations that a model declares, each with a detector of its own."""

from tilewright.application.run.differences import cost_differences, differences
from tilewright.plugin.route import Route
from tilewright.plugin.specs import Approximation
from tilewright.reports import LevelReport, Report, TensorCounts
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem

PROBLEM = Problem.from_yaml(
    """
    name: line
    dimensions: {P: 4, R: 3}
    tensors:
    - {name: I, role: input, projection: [P + R]}
    - {name: O, role: output, projection: [P]}
    """
)
ARCHITECTURE = Architecture.from_yaml(
    """
    name: pair
    clusters:
    - {name: D, memories: [{name: D, read_energy_pj: 8, write_energy_pj: 8}], fanout: {size: 2}}
    - {name: B, memories: [{name: B, read_energy_pj: 1, write_energy_pj: 1}]}
    compute: {energy_per_operation_pj: 0.5}
    """
)
MAPPING = Mapping.from_yaml(
    """
    entries:
    - {target: D, keep: [I, O], temporal_tile_sizes: {P: 4, R: 3}, spatial_tile_sizes: {P: 2}}
    - {target: B, keep: [I, O]}
    - {target: B, temporal_tile_sizes: {P: 1, R: 1}, temporal_order: [R, P]}
    """
)


def report(reads: int, fills: int) -> Report:
    counts = {"I": TensorCounts(reads=reads, fills=0, updates=0, instances=1, tile_words=6, energy_pj=1.0)}
    inner = {"I": TensorCounts(reads=12, fills=fills, updates=0, instances=2, tile_words=4, energy_pj=1.0)}
    levels = (
        LevelReport(name="D", instances=1, cycles=1, energy_pj=1.0, tensors=FrozenDict(counts)),
        LevelReport(name="B", instances=2, cycles=1, energy_pj=1.0, tensors=FrozenDict(inner)),
    )
    return Report(model="m", problem="line", valid=True, macs=12, cycles=1, energy_pj=1.0, levels=levels)


def explained(*declared: Approximation, reads: int = 8, fills: int = 4) -> list[tuple[str, str, list[str]]]:
    found = differences(PROBLEM, ARCHITECTURE, MAPPING, report(6, 4), report(reads, fills), declared)
    return [(each.level, each.action, [cause.message for cause in each.causes]) for each in found]


def test_only_what_a_model_declares_explains_its_counts() -> None:
    assert explained(reads=6) == []
    assert explained() == [("D", "reads", [])]


def test_a_detector_sees_the_way_of_the_words() -> None:
    """The same tile moves at both ends, and neighbours' tiles of inputs 0-3 and 2-5 overlap along P."""

    def detect(route: Route) -> str | None:
        seen = (route.tensor.name, route.outer, route.inner, route.tile, route.report.model)
        assert seen == ("I", 0, 1, {"P": 2, "R": 3}, "m")
        assert len(route.words()) == 4 and not route.holes and not route.is_plain and not route.bypassed
        return f"{route.action} along {route.neighbour_overlaps}" if route.neighbour_overlaps else None

    mine = Approximation("mine", "tiles like these", detect)
    assert explained(mine, fills=9) == [
        ("D", "reads", ["reads along ('P',)"]),
        ("B", "fills", ["fills along ('P',)"]),
    ]


def test_a_detector_that_finds_nothing_or_breaks_hides_no_difference() -> None:
    def broken(route: Route) -> str | None:
        raise ZeroDivisionError("oh")

    silent = Approximation("silent", "nothing", lambda route: None)
    said = explained(silent, Approximation("broken", "odd tiles", broken))
    line = f' at {__file__}:{broken.__code__.co_firstlineno + 1}: raise ZeroDivisionError("oh")'
    failed = f"odd tiles? approximation 'broken' failed: detect raised ZeroDivisionError: oh{line}"
    assert said == [("D", "reads", [failed])]


def test_neighbours_overlap_that_do_not_lie_side_by_side() -> None:
    """Words 0, 2 and 4 of one unit, 1, 3 and 5 of the next, 2, 4 and 6 of the next but one."""
    tensors = [{"name": "I", "role": "input", "projection": ["P + 2*R"]}, *PROBLEM.model_dump()["tensors"][1:]]
    problem = Problem.model_validate({"name": "line", "dimensions": {"P": 3, "R": 3}, "tensors": tensors})

    def overlaps(units: int) -> tuple[str, ...]:
        sizes = f"{{P: {units}, R: 3}}"
        mapping = Mapping.from_yaml(
            f"{{entries: [{{target: D, keep: [I, O], temporal_tile_sizes: {sizes}, spatial_tile_sizes: {{P: 1, R: 3}}}}, "
            "{target: B, keep: [I, O], temporal_order: [P, R], temporal_tile_sizes: {P: 1, R: 3}, "
            "spatial_tile_sizes: {P: 1, R: 1}}]}"
        )
        return Route.of(problem, ARCHITECTURE, mapping, report(6, 4), "I", "D", "reads").neighbour_overlaps

    assert (overlaps(2), overlaps(3)) == ((), ("P",))


def test_holes_of_short_last_tiles_are_seen() -> None:
    """Tiles of P are 2, 2 and 1: with 2 R, whole tiles touch all from 0 to 5, the last one only 0, 2 and 4."""
    tensors = [{"name": "I", "role": "input", "projection": ["P + 2*R"]}, *PROBLEM.model_dump()["tensors"][1:]]
    problem = Problem.model_validate({"name": "line", "dimensions": {"P": 5, "R": 3}, "tensors": tensors})
    mapping = Mapping.from_yaml(MAPPING.to_yaml().replace("P: 4", "P: 5"))
    route = Route.of(problem, ARCHITECTURE, mapping, report(6, 4), "I", "D", "reads")
    assert route.pieces == {"P": (2, 1), "R": (3,)} and route.holes == (5, 3)


def costs(architecture: Architecture = ARCHITECTURE, **figures: float) -> list[tuple[str, list[str]]]:
    executed, other = report(6, 4), report(6, 4).model_copy(update=figures)
    counts = differences(PROBLEM, architecture, MAPPING, executed, other, ())
    found = cost_differences(PROBLEM, architecture, executed, other, counts)
    assert all((each.executed, each.counted) == (1, getattr(other, each.figure)) for each in found)
    return [(each.figure, [cause.code for cause in each.causes]) for each in found]


def with_memory(**changes: object) -> Architecture:
    """The architecture with another inner memory."""
    data = ARCHITECTURE.model_dump(mode="json")
    data["clusters"][1]["memories"][0] |= changes
    return Architecture.model_validate(data)


def test_energy_and_cycles_are_compared_where_no_count_differs() -> None:
    assert costs() == costs(energy_pj=1.0 + 1e-9) == []
    assert costs(energy_pj=2.0) == [("energy_pj", [])]
    assert costs(cycles=3) == [("cycles", [])]
    assert costs(cycles=2) == [("cycles", ["rounding"])]


def test_causes_of_other_energies_are_named() -> None:
    assert costs(with_memory(block_words=2), energy_pj=2.0) == [("energy_pj", ["blocks"])]
    narrow = with_memory(word_bits=16, bits_per_value={"I": 12})
    assert costs(narrow, energy_pj=2.0) == [("energy_pj", ["fractions"])]
    assert costs(with_memory(word_bits=16, bits_per_value={"I": 32}), energy_pj=2.0) == [("energy_pj", [])]
    leaking = with_memory(leakage_pj_per_cycle=1.0)
    assert costs(leaking, energy_pj=4.0, cycles=4) == [("energy_pj", ["leakage"]), ("cycles", [])]
    sparse = with_memory(sparse={"actions": [{"skip": "I", "when_empty": ["O"]}]})
    assert costs(sparse, cycles=4) == [("cycles", ["zeros"])]

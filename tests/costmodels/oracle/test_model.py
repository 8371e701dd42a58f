"""`oracle` is right about results, and holds `timeloop` to what really happens."""

import math
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilewright.application.run.differences import cost_differences, differences
from tilewright.application.run.evaluation import build_model
from tilewright.errors import NotConformableError
from tilewright.mapspace.legality import legality
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem, Tensor
from tilewright.testing.strategies import architectures, mappings, problems
from tilewright_costmodels import OracleOptions, TimeloopOptions
from tilewright_costmodels.approximations import HOLES, OF_TIMELOOP
from tilewright_costmodels.oracle.model import OracleModel
from tilewright_costmodels.timeloop.model import TimeloopModel

Case = tuple[Problem, Architecture, Mapping]
MACS = 400
"""Random triples of problem, architecture and mapping per property."""
CONVOLUTION = {"K": (1, 2), "C": (1, 2), "P": (2, 3, 4, 6), "Q": (1, 2, 3), "R": (1, 2, 3), "S": (1, 2)}


def untangled(problem: Problem) -> Problem:
    """Return the problem with one dimension per coordinate, and no dimension twice in a tensor."""
    data = problem.model_dump(mode="json")
    for tensor, row in zip(problem.tensors, data["tensors"], strict=True):
        row["projection"] = sorted(tensor.dimensions)
    return Problem.model_validate(data)


@st.composite
def cases(draw: st.DrawFn, plain: bool = False) -> Case:
    """Legal perfect mappings; `plain`: tiles are equal or disjoint."""
    problem, architecture = (
        draw(problems(max_dimensions=7, max_macs=MACS, max_operands=4)),
        draw(architectures(widths=True)),
    )
    problem = untangled(problem) if plain else problem
    mapping = draw(mappings(problem, architecture))
    assume(bool(legality(problem, architecture, mapping)))
    return problem, architecture, mapping


@st.composite
def ragged(draw: st.DrawFn) -> Case:
    """Draw legal mappings with tiles that need not divide: the entries of a perfect one, with new sizes."""
    problem, architecture, perfect = draw(cases())
    tile = dict(problem.dimensions)
    entries = []
    for index, entry in enumerate(perfect.entries):
        last = index == len(perfect.entries) - 1
        again = any(later.target == entry.target for later in perfect.entries[index + 1 :])
        room = 1 if again else architecture.cluster(entry.target).fanout.size
        temporal, spatial = {}, {}
        for name, size in tile.items():
            held = size if index == 0 else draw(st.integers(1, size))
            temporal[name] = held
            least = -(-held // room)
            spatial[name] = held if again else draw(st.integers(least, held))
            if last:
                spatial[name] = 1 if held <= room else spatial[name]
            room //= -(-held // spatial[name])
        if last:
            temporal = {name: (1 if spatial[name] > 1 else held) for name, held in temporal.items()}
            spatial = dict.fromkeys(spatial, 1)
        entries.append(
            entry.model_copy(
                update={"temporal_tile_sizes": FrozenDict(temporal), "spatial_tile_sizes": FrozenDict(spatial)}
            )
        )
        tile = spatial
    mapping = Mapping(entries=tuple(entries))
    assume(bool(legality(problem, architecture, mapping)))
    return problem, architecture, mapping


@st.composite
def convolutions(draw: st.DrawFn) -> Case:
    """Legal perfect mappings of small convolutions, whose inputs slide."""
    sizes = {name: draw(st.sampled_from(choice)) for name, choice in CONVOLUTION.items()}
    stride, dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2)]))
    tensors = [
        {"name": "I", "role": "input", "projection": ["C", f"{stride}*P + {dilation}*R", "Q + S"]},
        {"name": "W", "role": "weight", "projection": ["K", "C", "R", "S"]},
        {"name": "O", "role": "output", "projection": ["K", "P", "Q"]},
    ]
    problem = Problem.model_validate({"name": "conv", "dimensions": sizes, "tensors": tensors})
    architecture = draw(architectures(widths=True))
    mapping = draw(mappings(problem, architecture))
    assume(bool(legality(problem, architecture, mapping)))
    return problem, architecture, mapping


def oracle(case: Case) -> Report:
    problem, architecture, mapping = case
    return OracleModel(OracleOptions()).bind(problem, architecture).explain(mapping)


def timeloop(case: Case) -> Report:
    """Without link transfers: in the oracle no word comes from a neighbour."""
    problem, architecture, mapping = case
    return TimeloopModel(TimeloopOptions(link_transfers=False)).bind(problem, architecture).explain(mapping)


def is_plain(tensor: Tensor) -> bool:
    """Return whether every coordinate is one dimension with coefficient 1, and no dimension occurs twice.

    Then tiles are boxes without holes, and two tiles are equal or disjoint.
    """
    terms = [item for rank in tensor.projection for item in rank.terms.items()]
    names = [name for name, _ in terms]
    return all(c == 1 for _, c in terms) and len(names) == len(tensor.projection) == len(set(names))


def counts(report: Report, tensor: str) -> dict[str, tuple[int, int, int, int]]:
    return {
        level.name: (row.reads, row.fills, row.updates, row.instances)
        for level in report.levels
        for name, row in level.tensors.items()
        if name == tensor
    }


@given(cases() | ragged())
def test_a_legal_mapping_computes_the_right_result(case: Case) -> None:
    report = oracle(case)
    assert report.valid, report.reasons
    assert report.execution is not None and report.execution.complete
    assert report.execution.operations == case[0].macs
    assert report.execution.wrong_words == 0


@given(cases() | ragged())
def test_words_are_neither_made_nor_lost(case: Case) -> None:
    """A memory serves exactly the fills of the next inner one or the reads of compute, and all of these are counted."""
    report = oracle(case)
    assert report.execution is not None
    for tensor in case[0].tensors:
        rows = [row for row in report.execution.accesses if row.tensor == tensor.name]
        delivered = [sum(each.children * each.words for each in row.served) for row in rows]
        assert delivered[-1] == case[0].macs
        assert rows[0].fills.total == 0
        for row, inner, words in zip(rows, rows[1:], delivered, strict=False):
            served = sum(each.words for each in row.served)
            assert served == (row.updates.total if tensor.is_output else row.reads.total)
            if tensor.is_output:  # what leaves had come back, or was new to its instance
                assert inner.fills.total <= words <= inner.updates.total
            else:
                assert inner.fills.total == words


@given(cases() | cases(plain=True))
def test_timeloop_is_exact_where_tiles_are_equal_or_disjoint(case: Case) -> None:
    found, really = timeloop(case), oracle(case)
    for tensor in case[0].tensors:
        if is_plain(tensor):
            assert counts(found, tensor.name) == counts(really, tensor.name), tensor


@given(cases(plain=True) | ragged())
def test_first_fills_are_the_first_writes_of_outputs(case: Case) -> None:
    """`timeloop` and `oracle` agree about them, and everything else stays."""
    problem, architecture, mapping = case
    options = TimeloopOptions(link_transfers=False, first_fills=True)
    report = TimeloopModel(options).bind(problem, architecture).explain(mapping)
    really = OracleModel(OracleOptions(first_fills=True)).bind(problem, architecture).explain(mapping)
    for tensor in problem.tensors:
        with_fills, without = counts(report, tensor.name), counts(timeloop(case), tensor.name)
        if is_plain(tensor):
            assert with_fills == counts(really, tensor.name)
        outermost = next(iter(without))
        for level, (reads, fills, updates, instances) in without.items():
            more = with_fills[level][1] - fills
            assert with_fills[level] == (reads, fills + more, updates, instances)
            assert more > 0 if tensor.is_output and level != outermost else more == 0


def test_first_fills_are_refused_where_they_are_not_counted() -> None:
    for name, sparse in (("timeloop", True), ("oracle", False)):
        every, fewer = (build_model(name, {"first_fills": each}).capabilities for each in (False, True))
        assert (every.sparse, every.groups, fewer.sparse, fewer.groups) == (True, True, sparse, False)
        assert every == fewer.model_copy(update={"sparse": True, "groups": True})


@given(cases(plain=True))
def test_cycles_and_energy_are_timeloops_where_all_counts_are(case: Case) -> None:
    """Cycles within one where a bandwidth sets them: Timeloop rounds a quotient of quotients. Leakage goes with them."""
    assert all(is_plain(tensor) for tensor in case[0].tensors)
    found, really = timeloop(case), oracle(case)
    assert found.cycles is not None and really.cycles is not None
    assert abs(found.cycles - really.cycles) <= 1
    assert found.energy_pj is not None and really.energy_pj is not None
    leaked = [sum(level.leakage_pj for level in report.levels) for report in (found, really)]
    assert found.energy_pj - leaked[0] == pytest.approx(really.energy_pj - leaked[1], rel=1e-9)
    for one, other in zip(found.levels, really.levels, strict=True):
        assert (one.name, one.instances) == (other.name, other.instances)
        assert one.leakage_pj * really.cycles == pytest.approx(other.leakage_pj * found.cycles)
        assert abs(one.cycles - other.cycles) <= 1


@given(cases(plain=True), st.integers(2, 4))
def test_blocks_are_why_energies_differ_where_all_counts_are_timeloops(case: Case, words: int) -> None:
    problem, plain, mapping = case
    architecture = plain.with_memories(lambda memory: memory.model_copy(update={"block_words": words}))
    blocked = problem, architecture, mapping
    found, really = timeloop(blocked), oracle(blocked)
    assert not differences(*blocked, really, found, ())
    for difference in cost_differences(problem, architecture, really, found, ()):
        assert "blocks" in {cause.code for cause in difference.causes}


def test_the_mean_over_instances_is_rounded_up_to_blocks() -> None:
    """One instance has 5 words and the other 1: blocks of 4 are 2 and 1 accesses, and the mean of 3 words is 1 for each."""
    problem = Problem.from_yaml(
        """
        name: copy
        dimensions: {P: 6}
        tensors: [{name: I, role: input, projection: [P]}, {name: O, role: output, projection: [P]}]
        """
    )
    mapping = Mapping.from_yaml(
        """
        entries:
        - {target: D, keep: [I, O], temporal_tile_sizes: {P: 6}, spatial_tile_sizes: {P: 5}}
        - {target: B, keep: [I, O]}
        - {target: B, temporal_tile_sizes: {P: 1}}
        """
    )
    found: dict[int, list[float | None]] = {}
    for words in (1, 4):
        architecture = Architecture.from_yaml(
            f"""
            name: pair
            clusters:
            - {{name: D, memories: [{{name: D, read_energy_pj: 8, write_energy_pj: 8}}], fanout: {{size: 2}}}}
            - {{name: B, memories: [{{name: B, read_energy_pj: 4, write_energy_pj: 4, block_words: {words}}}]}}
            compute: {{energy_per_operation_pj: 0.5}}
            """
        )
        case = problem, architecture, mapping
        both = timeloop(case), oracle(case)
        assert not differences(*case, both[1], both[0], ())
        found[words] = [report.energy_pj for report in both]
    rest = 8 * 12 + 0.5 * 6
    # fills and reads of I, updates of O: no sum is read again
    assert found == {1: [rest + 4 * 18, rest + 4 * 18], 4: [rest + 4 * 3 * 2, rest + 4 * 3 * 3]}


def moving(problem: Problem, mapping: Mapping, tensor: Tensor) -> list[tuple[str, ...]]:
    """Return, per rank, the dimensions of the temporal loops that move a tile along it."""
    stepping = [loop.dimension for loop in mapping.loops() if not loop.spatial]
    return [tuple(name for name in stepping if name in rank.terms) for rank in tensor.projection]


def is_bounded(problem: Problem, mapping: Mapping, tensor: Tensor) -> bool:
    """Return whether Timeloop's reuse credit is exact.

    Then no two temporal loops move a tile along one coordinate, no loop moves it along two, and no
    tile has holes.
    """
    ranks = moving(problem, mapping, tensor)
    named = [name for names in ranks for name in names]
    if any(len(names) > 1 for names in ranks) or len(set(named)) != len(named):
        return False
    tiles = [size for entry in mapping.entries for size in (entry.temporal_tile_sizes, entry.spatial_tile_sizes)]
    return all(_solid(tensor, extents) for extents in tiles)


def _solid(tensor: Tensor, extents: FrozenDict[str, int]) -> bool:
    """Whether a tile touches every word of its bounding box."""
    names = sorted(tensor.dimensions)
    points = [dict(zip(names, at, strict=True)) for at in product(*(range(extents[name]) for name in names))]
    words = {tuple(sum(c * at[name] for name, c in rank.terms.items()) for rank in tensor.projection) for at in points}
    spans = [1 + sum(c * (extents[name] - 1) for name, c in rank.terms.items()) for rank in tensor.projection]
    return len(words) == math.prod(spans)


@given(convolutions() | cases())
def test_timeloop_never_counts_less_where_one_loop_moves_a_coordinate(case: Case) -> None:
    problem, _, mapping = case
    found, really = timeloop(case), oracle(case)
    for tensor in problem.tensors:
        if not is_plain(tensor) and is_bounded(problem, mapping, tensor):
            most, least = counts(found, tensor.name), counts(really, tensor.name)
            for level, (reads, fills, updates, _) in least.items():
                assert most[level][2] >= updates, (tensor, level)
                if not tensor.is_output:
                    assert most[level][0] >= reads and most[level][1] + 1 >= fills, (tensor, level)


@given(convolutions() | cases(), st.booleans())
def test_every_difference_has_a_cause(case: Case, links: bool) -> None:
    problem, architecture, mapping = case
    report = TimeloopModel(TimeloopOptions(link_transfers=links)).bind(problem, architecture).explain(mapping)
    for difference in differences(problem, architecture, mapping, oracle(case), report, OF_TIMELOOP):
        assert difference.causes, difference
        if not links and is_plain(problem.tensor(difference.tensor)):
            pytest.fail(f"two tiles are equal or disjoint, and yet {difference}")


LINE = """
name: line
dimensions: {P: 5, R: 3}
tensors:
- {name: I, role: input, projection: [P + R]}
- {name: W, role: weight, projection: [R]}
- {name: O, role: output, projection: [P]}
"""
THREE = """
name: three
clusters:
- {name: D, memories: [{name: D, technology: dram, read_energy_pj: 8, write_energy_pj: 8}]}
- {name: B, memories: [{name: B, read_energy_pj: 1, write_energy_pj: 1, read_bandwidth_words_per_cycle: 2}], fanout: {size: 2}}
compute: {energy_per_operation_pj: 0.5}
"""


def line(entries: str) -> Case:
    return Problem.from_yaml(LINE), Architecture.from_yaml(THREE), Mapping.from_yaml(f"entries:\n{entries}")


def test_short_tiles_count_what_they_are() -> None:
    """P of 5 in tiles of 2, 2 and 1; the buffer's inputs are words 0-3, 2-5 and 4-6: 4 + 2 + 1 fetched, of 7.

    Two lanes do P = 0 and 1 at once for R = 0, 1, 2; the last tile leaves one idle. In 9 cycles, 6
    have two lanes busy.
    """
    report = oracle(
        line(
            """
- {target: D, keep: [I, W, O], temporal_tile_sizes: {P: 5, R: 3}}
- {target: B, keep: [I, W, O], temporal_tile_sizes: {P: 2}}
- {target: B, temporal_tile_sizes: {R: 1}, spatial_tile_sizes: {P: 1}}
"""
        )
    )
    assert report.valid and report.execution is not None
    assert counts(report, "I") == {"D": (7, 0, 0, 1), "B": (15, 7, 0, 1)}
    assert counts(report, "W") == {"D": (3, 0, 0, 1), "B": (9, 3, 0, 1)}  # each read serves both lanes, or the one
    assert counts(report, "O") == {"D": (0, 0, 5, 1), "B": (10, 0, 15, 1)}
    served = {row.tensor: {each.children: each.words for each in row.served} for row in report.execution.accesses[1::2]}
    assert served == {"I": {1: 15}, "W": {1: 3, 2: 6}, "O": {1: 15}}
    assert report.cycles == 17  # 15 + 9 + 10 reads at 2 words a cycle, where compute needs 9 cycles
    assert report.energy_pj == 8 * (7 + 3 + 5) + (15 + 7) + (9 + 3) + (10 + 15) + 0.5 * 15


def test_partial_sums_come_back() -> None:
    """R is outside P: every output leaves for each R, and comes back except for the first time."""
    report = oracle(
        line(
            """
- {target: D, keep: [I, W, O], temporal_tile_sizes: {P: 5, R: 3}}
- {target: B, keep: [I, W, O], temporal_tile_sizes: {P: 1, R: 1}, temporal_order: [R, P]}
- {target: B}
"""
        )
    )
    assert counts(report, "O") == {"D": (10, 0, 15, 1), "B": (10, 10, 15, 1)}
    assert counts(report, "W") == {"D": (3, 0, 0, 1), "B": (15, 3, 0, 1)}
    assert counts(report, "I")["D"][0] == 15  # never twice the same word in a row


def test_neighbours_share_their_halo() -> None:
    """Two tiles of two outputs need words 0-3 and 2-5 at once: six reads where each alone would need four."""
    problem = Problem.from_yaml(LINE.replace("P: 5", "P: 4"))
    architecture = Architecture.from_yaml(
        """
        name: pair
        clusters:
        - {name: D, memories: [{name: D, read_energy_pj: 8, write_energy_pj: 8}], fanout: {size: 2}}
        - {name: B, memories: [{name: B, read_energy_pj: 1, write_energy_pj: 1}]}
        compute: {energy_per_operation_pj: 0.5}
        """
    )
    text = """
entries:
- {target: D, keep: [I, W, O], temporal_tile_sizes: {P: 4, R: 3}, spatial_tile_sizes: {P: 2}}
- {target: B, keep: [I, W, O]}
- {target: B, temporal_tile_sizes: {P: 1, R: 1}, temporal_order: [R, P]}
"""
    case = (problem, architecture, Mapping.from_yaml(text))
    assert counts(oracle(case), "I")["D"][0] == 6
    assert counts(timeloop(case), "I")["D"][0] == 8
    (found,) = differences(*case, oracle(case), timeloop(case), OF_TIMELOOP)
    assert (found.level, found.tensor, found.action, found.executed, found.counted) == ("D", "I", "reads", 6, 8)
    assert [cause.code for cause in found.causes] == ["halo"]
    (found,) = differences(*case, oracle(case), timeloop(case), [HOLES])
    assert found.causes == ()  # nothing is blamed on what a model does not declare
    alone = (*case[:2], Mapping.from_yaml(text.replace("{P: 2}}", "{P: 2}, unicast: [I]}")))
    assert counts(oracle(alone), "I")["D"][0] == 8


def test_compute_units_read_every_operand() -> None:
    """Two units do K = 0, 1 at once, and N steps.

    Timeloop lets a unit have from its neighbour what both had a step before; but there is no
    register to keep it in, so it is read for every operation.
    """
    problem = Problem.from_yaml(
        """
        name: outer
        dimensions: {M: 2, N: 4, K: 2}
        tensors:
        - {name: I, role: input, projection: [M]}
        - {name: W, role: weight, projection: [N, K]}
        - {name: O, role: output, projection: [M, N]}
        """
    )
    text = """
entries:
- {target: D, keep: [I, W, O], temporal_tile_sizes: {M: 2, N: 4, K: 2}}
- {target: B, keep: [I, W, O]}
- {target: B, temporal_tile_sizes: {M: 1, N: 1, K: 2}, spatial_tile_sizes: {K: 1}, temporal_order: [M, N, K]}
"""
    case = (problem, Architecture.from_yaml(THREE), Mapping.from_yaml(text))
    linked = TimeloopModel(TimeloopOptions()).bind(*case[:2]).explain(case[2])
    assert counts(linked, "I")["B"] == (2, 2, 0, 1)
    assert counts(oracle(case), "I")["B"] == counts(timeloop(case), "I")["B"] == (8, 2, 0, 1)
    (found,) = differences(*case, oracle(case), linked, OF_TIMELOOP)
    assert (found.level, found.tensor, found.action, found.executed, found.counted) == ("B", "I", "reads", 8, 2)
    assert [cause.code for cause in found.causes] == ["link_transfers"]


def test_iterations_left_out_are_counted() -> None:
    problem, architecture, mapping = line(
        """
- {target: D, keep: [I, W, O], temporal_tile_sizes: {P: 5, R: 3}}
- {target: B, temporal_tile_sizes: {P: 1}}
"""
    )
    report = oracle((problem, architecture, mapping))
    messages = {reason.code: reason.message for reason in report.reasons}
    assert not report.valid and report.cycles is None
    assert messages["uncovered"] == "10 of 15 iterations are never executed, P=0 R=1 for one"
    assert messages["result"].startswith("5 of 5 words of the result are wrong, O[0] is ")
    assert "coverage" in messages
    assert report.execution is not None and report.execution.missing == 10 and report.execution.wrong_words == 5


def test_tiles_that_overlap_are_counted() -> None:
    """R in tiles of 1, each said to hold 2: R = 1 and 2 are done twice, and R = 3 does not exist."""
    report = oracle(
        line(
            """
- {target: D, keep: [I, W, O], temporal_tile_sizes: {P: 5, R: 3}}
- {target: B, temporal_tile_sizes: {P: 1, R: 1}, temporal_order: [P, R]}
- {target: B, temporal_tile_sizes: {R: 2}, spatial_tile_sizes: {R: 1}}
"""
        )
    )
    messages = {reason.code: reason.message for reason in report.reasons}
    assert messages["overlap"] == "10 of 15 iterations are executed more than once, P=0 R=1 2 times"
    assert messages["outside"] == "5 operations are on iterations that the problem does not have"
    assert {"nesting", "fanout", "result"} & set(messages) == {"nesting", "result"}


def test_large_problems_are_refused_with_their_size() -> None:
    problem, architecture, _ = line("- {target: D, keep: [I, W, O], temporal_tile_sizes: {P: 5, R: 3}}")
    with pytest.raises(NotConformableError, match="15 operations; expected at most 14") as caught:
        OracleModel(OracleOptions(max_operations=14)).bind(problem, architecture)
    assert [reason.code for reason in caught.value.reasons] == ["too_large"]
    OracleModel(OracleOptions(max_operations=15)).bind(problem, architecture)

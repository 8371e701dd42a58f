"""Declared capabilities: what of a space is left for a plugin, and what is refused before a search begins."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilewright.application.run.accepted import accepted
from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.evaluation import bind, build_model, evaluate
from tilewright.application.run.network import MappedLayer, map_problem
from tilewright.application.run.search import search
from tilewright.errors import NotConformableError
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.mapper import Budget, Proposals, Run, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, Variant
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import EDP
from tilewright.schema.problem import Problem
from tilewright.schema.workload import DistinctProblem

PROBLEM = Problem.from_yaml(
    """
    name: gemm
    operation: gemm
    dimensions: {M: 2, N: 4, K: 2}
    tensors:
    - {name: A, role: input, projection: [M, K]}
    - {name: B, role: weight, projection: [K, N]}
    - {name: Z, role: output, projection: [M, N]}
    """
)
CHIP = """
    name: chip
    clusters:
    - {name: D, memories: [{name: D, technology: dram, read_energy_pj: 64, write_energy_pj: 64}]}
    - {name: L, memories: [{name: L, capacity_words: %s, read_energy_pj: 4, write_energy_pj: 4}], fanout: {size: 2}}
    - name: P
      memories:
      - {name: PA, holds: [input], read_energy_pj: 1, write_energy_pj: 1}
      - {name: PB, holds: [%s], read_energy_pj: 1, write_energy_pj: 1}
      - {name: PZ, holds: [output], read_energy_pj: 1, write_energy_pj: 1}
    compute: {energy_per_operation_pj: 1}
    """
CONV = Problem.from_yaml(
    """
    name: conv
    operation: conv1d
    dimensions: {K: 2, P: 2, R: 2}
    tensors:
    - {name: A, role: input, projection: [2*P + R]}
    - {name: B, role: weight, projection: [K, R]}
    - {name: Z, role: output, projection: [K, P]}
    """
)
EVEN = Capabilities(uneven_mappings=False)
WHOLE = Capabilities(bypassing_mappings=False)
STILL = Capabilities(window_loops=False)


def space(
    rules: dict[str, Any] | None = None, words: int = 99, holds: str = "weight", problem: Problem = PROBLEM
) -> MapSpace:
    return MapSpace.of(problem, Architecture.from_yaml(CHIP % (words, holds)), Variant.model_validate(rules or {}))


def test_a_plugin_that_accepts_everything_is_given_the_space_itself() -> None:
    whole = space()
    assert accepted(whole, Capabilities(), "p") is whole


@pytest.mark.parametrize(
    ("capabilities", "words", "problem"),
    [
        (EVEN, 99, PROBLEM),
        (WHOLE, 2, PROBLEM),
        (EVEN.model_copy(update={"bypassing_mappings": False}), 2, PROBLEM),
        (STILL, 99, CONV),
        (EVEN.model_copy(update={"window_loops": False}), 99, CONV),
    ],
)
def test_what_is_left_is_exactly_what_is_accepted(capabilities: Capabilities, words: int, problem: Problem) -> None:
    """Of all mappings of a small space those that are accepted one by one, and no other."""
    inner = {"memory": "PZ", "only": ["M", "R"]}
    whole = space({"temporal": [{"memory": "D", "only": []}, inner]}, words, problem=problem)
    narrow = accepted(whole, capabilities, "p")

    def said(mapping: Mapping) -> bool:
        return bool(capabilities.judge_mapping(whole.problem, whole.architecture, mapping))

    everything = [mapping for batch in whole.enumerate() for mapping in batch]
    left = {mapping.model_dump_json() for batch in narrow.enumerate() for mapping in batch}
    assert {mapping.model_dump_json() for mapping in everything if said(mapping)} == left
    assert 0 < len(left) == narrow.size < len(everything) == whole.size


def test_a_ragged_space_is_refused_where_tiles_have_to_divide() -> None:
    perfect = space()
    ragged = replace(perfect, factors="ragged")
    with pytest.raises(NotConformableError, match=r"ragged tiles are not accepted.*\n.*--factors perfect"):
        accepted(ragged, Capabilities(imperfect_factors=False), "mapper m")
    assert accepted(ragged, Capabilities(), "mapper m") is ragged
    assert accepted(perfect, Capabilities(imperfect_factors=False), "mapper m") is perfect


def test_a_space_of_nothing_but_uneven_mappings_is_refused() -> None:
    rules = {"temporal": [{"memory": "PA", "factors": {"M": 2}}]}
    with pytest.raises(NotConformableError, match="p does not support this") as caught:
        accepted(space(rules), EVEN, "p")
    (reason,) = caught.value.reasons
    assert (reason.code, reason.where) == ("uneven", "cluster P")
    assert "the loops inside PA must step M" in reason.message and "--constraints" in str(caught.value)
    assert accepted(space(rules), WHOLE, "p").size == space(rules).size


def test_rules_that_demand_loops_over_windows_are_refused() -> None:
    """Inside the innermost storage level they may stand; a problem without windows has none."""
    outside = {"temporal": [{"memory": "L", "factors": {"R": 2}}]}
    with pytest.raises(
        NotConformableError, match=r"p does not support this.*the loops inside L must step R.*\[window\]"
    ):
        accepted(space(outside, problem=CONV), STILL, "p")
    inside = space({"temporal": [{"memory": "PZ", "factors": {"R": 2}}]}, problem=CONV)
    assert accepted(inside, STILL, "p").size == inside.size
    assert accepted(space(), STILL, "p") == space()


def test_maestro_takes_filters_whole_in_time() -> None:
    """Of what is left for it no mapping is refused for a filter's loop in time; of the whole space most are."""
    maestro, whole = build_model("maestro"), MapSpace.of(CONV, Architecture.from_yaml(CHIP % (99, "weight")), None)
    narrow = accepted(whole, maestro.capabilities, "p")
    said = [
        sum(
            "steps outside" in str(verdict.reasons)
            for mapping in each.sample(np.random.default_rng(0), 200)
            for verdict in [evaluate(maestro, CONV, whole.architecture, mapping)]
        )
        for each in (whole, narrow)
    ]
    assert said[0] > 50 and said[1] == 0


def test_rules_that_make_a_tensor_bypass_a_level_are_refused() -> None:
    rules = {"keep": [{"memory": "L", "bypass": ["weight"]}]}
    with pytest.raises(NotConformableError, match="cluster L: the constraints let B bypass it"):
        accepted(space(rules), WHOLE, "p")


def test_a_level_that_cannot_hold_a_tensor_is_refused_whatever_the_rules() -> None:
    odd = space(holds="nothing")
    with pytest.raises(NotConformableError, match="cluster P: no memory there may hold B.*\\[bypass\\]"):
        accepted(odd, WHOLE, "p")
    maestro = build_model("maestro")
    with pytest.raises(NotConformableError, match="no memory there may hold B"):
        bind(maestro, odd.problem, odd.architecture)


def test_maestro_takes_partitioned_scratchpads_held_at_once() -> None:
    """Drawn from the whole space most mappings are refused, from what is left for it none for being uneven."""
    maestro, whole = build_model("maestro"), space()
    narrow = accepted(whole, maestro.capabilities, "p")
    codes = [
        {reason.code for mapping in each.sample(np.random.default_rng(0), 200) for reason in _reasons(mapping)}
        for each in (whole, narrow)
    ]
    assert "uneven" in codes[0] and not codes[1] & {"uneven", "bypass"}
    task = Task(narrow)
    mapper = installed().make(MapperSpec, "random", {})
    result = search(mapper, task, bind(maestro, whole.problem, whole.architecture), Budget(evaluations=500))
    assert result.best is not None and evaluate(maestro, whole.problem, whole.architecture, result.best).valid


def _reasons(mapping: Mapping) -> Any:
    whole = space()
    return evaluate(build_model("maestro"), whole.problem, whole.architecture, mapping).reasons


def test_a_mapper_is_given_what_it_declares_to_take() -> None:
    """Its limits are a refusal that names it, and its task has no mapping that it does not accept."""
    seen: list[MapSpace] = []

    class Watching:
        def search(self, task: Task, run: Run) -> Proposals:
            seen.append(task.space)
            yield task.space.sample(run.rng, 5)

    whole = space()

    def mapped(capabilities: Capabilities) -> MappedLayer:
        configuration = RunConfiguration(
            architecture=whole.architecture,
            constraints=Constraints(name="none", variants=()),
            mapper=Watching(),
            mapper_record=PluginRecord(name="watching"),
            model=build_model("timeloop"),
            objective=EDP,
            budget=Budget(),
            seed=0,
            mapper_capabilities=capabilities,
        )
        return map_problem(DistinctProblem(PROBLEM, ("gemm",), 1), configuration)

    assert mapped(EVEN).error is None and seen == [accepted(whole, EVEN, "p")]
    error = mapped(Capabilities(max_dimensions=2)).error
    assert str(error).startswith(
        "mapper watching does not support this: dimensions of gemm: 3 given, at most 2 accepted"
    )


LOOPS = """
    name: loops
    clusters:
    - {name: D, memories: [{name: D, technology: dram, read_energy_pj: 64, write_energy_pj: 64}]}
    - {name: L, memories: [{name: L, capacity_words: 24, read_energy_pj: 4, write_energy_pj: 4}], fanout: {size: 2}}
    - {name: C, fanout: {size: 4}}
    - {name: P, memories: [{name: P, capacity_words: 12, read_energy_pj: 1, write_energy_pj: 1}]}
    compute: {energy_per_operation_pj: 1}
    """
STRIDED = CONV.model_copy(update={"tensors": Problem.from_yaml(CONV.to_yaml().replace("2*P + R", "3*P + R")).tensors})
ONCE = Capabilities(repeated_loops=False)


def on_loops(problem: Problem = PROBLEM, rules: dict[str, Any] | None = None) -> MapSpace:
    return MapSpace.of(problem, Architecture.from_yaml(LOOPS), Variant.model_validate(rules or {}))


def test_a_dimension_steps_in_the_outermost_memory_that_the_rules_leave_free() -> None:
    drawn = accepted(on_loops(), ONCE, "p").sample(np.random.default_rng(0), 500)
    outer, inner, _ = drawn.space.temporal_slots
    assert (drawn.trips[:, outer] > 1).any(axis=0).all() and (drawn.trips[:, inner] == 1).all()
    bound = accepted(on_loops(rules={"temporal": [{"memory": "L", "factors": {"N": {"min": 2}}}]}), ONCE, "p")
    trips = bound.sample(np.random.default_rng(0), 500).trips
    assert (trips[:, outer, 1] == 1).all() and (trips[:, inner, 1] > 1).all() and (trips[:, inner, [0, 2]] == 1).all()


def test_rules_that_demand_two_loops_of_a_dimension_are_refused() -> None:
    both = [{"memory": name, "factors": {"N": {"min": 2}}} for name in ("D", "L")]
    with pytest.raises(
        NotConformableError, match=r"the loops inside L must step N, which already has an outer loop.*\[repeated\]"
    ):
        accepted(on_loops(rules={"temporal": both}), ONCE, "p")
    between = {"temporal": both, "spatial": [{"cluster": "L", "factors": {"M": 2}}]}
    assert accepted(space({"temporal": both[:1]}), Capabilities(), "p").size
    with pytest.raises(NotConformableError, match="repeated"):
        accepted(on_loops(rules=between), ONCE, "p")  # it is unrolled inside both


def test_strided_windows_are_not_unrolled() -> None:
    still = Capabilities(strided_window_unrolling=False)
    assert STRIDED.strided_windows == ("R",) and PROBLEM.strided_windows == ()
    narrow = accepted(on_loops(STRIDED), still, "p")
    r = STRIDED.dimension_names.index("R")
    assert all(narrow.slots[slot].highest[r] == 1 for slot in narrow.unrolled_slots)
    with pytest.raises(NotConformableError, match=r"must unroll R, a window that slides by more than one \[window\]"):
        accepted(on_loops(STRIDED, {"spatial": [{"cluster": "L", "factors": {"R": 2}}]}), still, "p")


def test_so_many_loops_are_unrolled_at_most() -> None:
    narrow = accepted(on_loops(CONV), Capabilities(max_unrolled_loops=2), "p")
    drawn = narrow.sample(np.random.default_rng(0), 2000)
    unrolled = drawn.trips[:, narrow.unrolled_slots] > 1
    count = unrolled.sum(axis=(1, 2)) + unrolled[..., CONV.dimension_names.index("R")].sum(axis=1)
    assert count.max() > 2 and not drawn.fits()[count > 2].any() and drawn.fits()[count <= 2].any()
    forced = [{"cluster": name, "factors": {"K": 2}} for name in ("L", "C")]
    four = Problem.from_yaml(CONV.to_yaml().replace("K: 2", "K: 4"))
    with pytest.raises(NotConformableError, match=r"the constraints unroll 2 loops, at most 1 accepted \[unrolled\]"):
        accepted(on_loops(four, {"spatial": forced}), Capabilities(max_unrolled_loops=1), "p")


def test_memories_have_room_for_copies_and_for_outputs_as_wide_as_inputs() -> None:
    """A conv of 2 outputs with stride 2 and a window of 2: the input tile has 4 rows, so the output counts 2 x 4 words."""
    whole = on_loops(CONV)
    memory = whole.architecture.memories[2]
    copies = accepted(whole, Capabilities(tile_copies=2), "p")
    assert [copies.usable_words(each) for each in whole.architecture.memories] == [None, 12, 6]
    spanning = accepted(whole, Capabilities(outputs_span_windows=True), "p")
    everything_inside = np.ones((1, len(whole.slots), 3), dtype=np.int64)
    everything_inside[0, whole.temporal_slots[-1]] = whole.problem.sizes
    words = [float(Candidates(each, everything_inside).words(memory)[0]) for each in (whole, spanning)]
    assert words == [4 + 2 * 2 + 2 * 2, 4 + 2 * 2 + 2 * 4]


def test_all_that_fits_in_what_is_left_for_maestro_is_valid() -> None:
    maestro = build_model("maestro")
    for problem in (PROBLEM, CONV, STRIDED):
        narrow = accepted(on_loops(problem), maestro.capabilities, "p")
        drawn = narrow.sample(np.random.default_rng(0), 2000)
        fitting = drawn.take(drawn.fits())
        costs = bind(maestro, problem, narrow.architecture).evaluate_batch(fitting.batch())
        assert len(fitting) and costs.valid.all()

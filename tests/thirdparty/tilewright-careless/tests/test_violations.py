"""Each violation is caught by the checks made for it, and by no others; the host survives what does not load."""

import importlib.metadata
from functools import cache

import pytest

from tilewright.errors import PluginError
from tilewright.plugin import (
    AdapterSpec,
    AlgorithmSpec,
    CostModelSpec,
    EstimatorSpec,
    FrontendSpec,
    GroupMapperSpec,
    MapperSpec,
    Registry,
    StrategySpec,
    discover,
)
from tilewright.plugin.registry import GROUP
from tilewright.testing import check_plugin, registrations_of
from tilewright.testing.kit import CHECKS

BROKEN = {"brokenimport": "import", "brokenhook": "specs"}

# one check is of mappers alone that say that they end
MAPPERS = {name for name in CHECKS if name.startswith("check_mapper")} - {"check_mapper_ends_if_it_says_so"}
STRATEGIES = {name for name in CHECKS if name.startswith("check_strategy")}
# some are of models alone that declare something, or that accept a bypassed memory
COSTMODELS = {name for name in CHECKS if name.startswith("check_costmodel")} - {
    "check_costmodel_accepts_a_group_if_it_declares_groups",
    "check_costmodel_charges_no_bypassed_memory",
    "check_costmodel_counts_a_vector_layer_if_it_declares_them",
    "check_costmodel_counts_what_it_declares",
}

VIOLATIONS: dict[tuple[type, str], set[str]] = {
    (MapperSpec, "good"): set(),
    (CostModelSpec, "good"): set(),
    (FrontendSpec, "good"): set(),
    # the simplest examples have no place for constraints, the same figures at every node, and a fixed group
    (AdapterSpec, "good"): {"check_adapter_drops_nothing_silently"},
    (EstimatorSpec, "good"): {"check_estimator_survives_odd_sizes", "check_estimator_depends_on_the_node"},
    (AlgorithmSpec, "good"): set(),
    (StrategySpec, "good"): set(),
    (GroupMapperSpec, "good"): {"check_group_mapper_takes_any_group"},
    (MapperSpec, "talkative"): {"check_summary_is_one_line"},
    (MapperSpec, "lax-options"): {"check_options_refuse_the_unknown"},
    (MapperSpec, "odd-options"): {"check_options_round_trip"},
    (MapperSpec, "heavy"): {"check_import_is_light"},
    (MapperSpec, "other-arguments"): {"check_interface"} | MAPPERS,
    (MapperSpec, "uncovered"): {"check_mapper_proposes_mappings_of_the_task"},
    (MapperSpec, "idle"): {"check_mapper_finds_a_valid_mapping"},
    # the second search of one object draws on, too
    (MapperSpec, "unseeded"): {"check_mapper_same_seed_same_proposals", "check_mapper_keeps_no_state"},
    (MapperSpec, "remembering"): {"check_mapper_keeps_no_state"},
    (MapperSpec, "overwriting"): {"check_mapper_leaves_proposals_alone"},
    # the driver closes every mapper, and reports one that goes on
    (MapperSpec, "unstoppable"): {
        "check_mapper_can_be_stopped_anywhere",
        "check_mapper_finds_a_valid_mapping",
        "check_mapper_survives_a_hopeless_task",
    },
    (MapperSpec, "hopeful"): {"check_mapper_survives_a_hopeless_task"},
    # the driver refuses a bound above what was found
    (MapperSpec, "boasting"): {"check_mapper_proves_true_bounds", "check_mapper_finds_a_valid_mapping"},
    (MapperSpec, "talking"): {"check_prints_nothing"},
    (MapperSpec, "oversleeping"): {"check_mapper_keeps_its_deadline"},
    (MapperSpec, "lawless"): {"check_mapper_keeps_to_the_constraints"},
    # bind() raises, so that nothing else can be seen
    (CostModelSpec, "refusing"): COSTMODELS,
    (CostModelSpec, "counts-for-truth"): {"check_costmodel_costs_are_sound"},
    (CostModelSpec, "two-minds"): {"check_costmodel_batch_equals_one_by_one"},
    # alone, a mapping is always the first
    (CostModelSpec, "neighbourly"): {
        "check_costmodel_order_is_irrelevant",
        "check_costmodel_batch_equals_one_by_one",
    },
    (CostModelSpec, "needs-something"): {"check_costmodel_takes_an_empty_batch"},
    (CostModelSpec, "uncovering"): {"check_costmodel_rejects_what_does_not_cover"},
    (CostModelSpec, "unfitting"): {"check_costmodel_rejects_what_does_not_fit"},
    (CostModelSpec, "no-edp"): {"check_costmodel_reports_add_up"},
    (CostModelSpec, "last-bound"): {"check_costmodel_leaves_no_trace"},
    (CostModelSpec, "overbound"): {"check_costmodel_bounds_hold"},
    (CostModelSpec, "boastful"): {"check_costmodel_relaxation_holds"},
    (CostModelSpec, "unpicklable"): {"check_costmodel_can_be_pickled"},
    (CostModelSpec, "estimating"): {"check_costmodel_candidates_cost_what_their_batch_does"},
    (CostModelSpec, "unsummed"): {"check_costmodel_energy_is_the_sum_of_its_parts"},
    (CostModelSpec, "overused"): {"check_costmodel_utilization_is_a_fraction"},
    # its relaxation knows how many cycles there have to be
    (CostModelSpec, "hasty"): {"check_costmodel_cycles_suffice_for_the_work", "check_costmodel_relaxation_holds"},
    (FrontendSpec, "startled"): {"check_frontend_recognises_without_raising"},
    (FrontendSpec, "deaf"): {"check_frontend_recognises_its_sources"},
    (FrontendSpec, "lists-only"): {"check_frontend_loads_its_sources", "check_frontend_workloads_can_be_written"},
    (FrontendSpec, "dreaming"): {"check_frontend_loads_the_same_twice"},
    (FrontendSpec, "unwritable"): {"check_frontend_workloads_can_be_written"},
    (FrontendSpec, "rude"): {"check_frontend_refuses_clearly"},
    (FrontendSpec, "grasping"): {"check_frontend_leaves_others_sources"},
    (AdapterSpec, "forgetful"): {"check_adapter_round_trip"},
    (AdapterSpec, "dated"): {"check_adapter_renders_the_same_twice"},
    # what strays is not read again
    (AdapterSpec, "straying"): {"check_adapter_stays_in_its_folder", "check_adapter_round_trip"},
    (AdapterSpec, "silent"): {"check_adapter_refuses_what_it_cannot_express"},
    (AdapterSpec, "rude"): {"check_adapter_refuses_clearly"},
    (AdapterSpec, "grasping"): {"check_adapter_leaves_others_files"},
    (EstimatorSpec, "mute"): {"check_estimator_answers_its_examples"},
    (EstimatorSpec, "moody"): {"check_estimator_answers_the_same_twice"},
    (EstimatorSpec, "shifting"): {"check_estimator_area_and_leakage_are_of_the_component"},
    (EstimatorSpec, "lenient"): {"check_estimator_refuses_the_unknown"},
    (EstimatorSpec, "fragile"): {"check_estimator_survives_odd_sizes"},
    # what is not whole can neither be executed nor be written
    (AlgorithmSpec, "untold"): {
        "check_algorithm_alternatives_are_whole",
        "check_algorithm_computes_the_same_tensor",
        "check_algorithm_moves_what_does_not_lie_right",
        "check_algorithm_alternatives_can_be_written",
    },
    (AlgorithmSpec, "mistaken"): {"check_algorithm_computes_the_same_tensor"},
    (AlgorithmSpec, "unmoved"): {"check_algorithm_moves_what_does_not_lie_right"},
    (AlgorithmSpec, "moody"): {"check_algorithm_answers_the_same_twice"},
    (AlgorithmSpec, "unwritable"): {"check_algorithm_alternatives_can_be_written"},
    # every exploration leaves the space
    (GroupMapperSpec, "illegal"): {name for name in CHECKS if name.startswith("check_group_mapper")},
    (GroupMapperSpec, "boundless"): {"check_group_mapper_names_the_space_of_its_proofs"},
    (GroupMapperSpec, "moody"): {"check_group_mapper_answers_the_same_twice"},
    (GroupMapperSpec, "hasty"): {"check_group_mapper_gives_its_best_at_the_limit"},
    (StrategySpec, "straying"): STRATEGIES,
    (StrategySpec, "idle"): {"check_strategy_searches_a_point"},
    # the second exploration of one object draws on, too
    (StrategySpec, "unseeded"): {"check_strategy_same_seed_same_points", "check_strategy_keeps_no_state"},
    (StrategySpec, "remembering"): {"check_strategy_keeps_no_state"},
    (StrategySpec, "touchy"): {"check_strategy_survives_failures"},
}


@cache
def registry() -> Registry:
    """Return the plugins that load from this distribution."""
    return discover(importlib.metadata.distribution("tilewright-careless").entry_points.select(group=GROUP))


@pytest.mark.parametrize(("kind", "name"), VIOLATIONS, ids=[f"{kind.__name__}-{name}" for kind, name in VIOLATIONS])
def test_a_violation_is_caught_by_the_check_made_for_it(kind: type[MapperSpec], name: str) -> None:
    outcomes = check_plugin(registry().find(kind, name), sources=["4x5x6", "1x1x1"])

    caught, made_for_it = {outcome.check for outcome in outcomes if not outcome.ok}, VIOLATIONS[kind, name]
    assert made_for_it <= caught, outcomes
    assert name != "good" or caught == made_for_it, outcomes  # a careless plugin may violate further contracts


def test_every_check_that_is_named_exists() -> None:
    """Faults for all checks are in the tests of the kit."""
    assert set(CHECKS) >= set().union(*VIOLATIONS.values())


def test_every_plugin_here_is_tried() -> None:
    assert {(type(each.spec), each.spec.name) for each in registry().registrations} == set(VIOLATIONS)


def test_the_host_survives_and_says_what_is_broken() -> None:
    host = discover()
    broken = {each.entry_point: each.stage for each in host.broken if each.distribution == "tilewright-careless"}

    assert broken == BROKEN
    assert host.find(MapperSpec, "random").distribution == "tilewright"
    assert host.find(MapperSpec, "tilewright-careless/idle").version == "0.1.0"


def test_the_broken_are_no_empty_test_run() -> None:
    with pytest.raises(
        PluginError, match="brokenhook 0.1.0 failed at specs: OSError: the licence server does not answer"
    ):
        registrations_of("tilewright-careless")
    assert {each.spec.name for each in registrations_of("tilewright-careless/idle")} == {
        "idle"
    }  # a mapper and a strategy

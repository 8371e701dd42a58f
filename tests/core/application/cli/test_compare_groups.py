"""`tilewright compare` of group files: the table of mappers and models, claims of third parties, and refuted ones."""

from collections.abc import Iterator

import pytest

from support import ROOT
from support.command import Command
from tilewright.plugin import GroupMapperSpec, GroupMapping, GroupResult, GroupTask, Registry, installed

GROUP = ROOT / "examples" / "two_products.yaml"
WORDS = ("compare", GROUP, "--models", "timeloop,maestro", "--mappers")


def test_each_mapper_under_each_model_is_a_row_with_the_models_that_refuse(tilewright: Command) -> None:
    data = tilewright(*WORDS, "loop_trees", "--json").data
    assert [(row["mapper"], row["guide"], row["proved"]) for row in data["rows"]] == [
        ("loop_trees", "timeloop", "yes"),
        ("loop_trees", "maestro", "no"),
    ]
    best = tilewright("map", GROUP, "--fuse", "--json").data["fused"]["edp"]
    for row in data["rows"]:
        own, other = row["prices"]
        assert own["edp"] == pytest.approx(best) and [reason["code"] for reason in other["reasons"]] == ["groups"]
    ran = tilewright(*WORDS, "loop_trees")
    assert ran.code == 0 and "x optimum" in ran.out and "group mappings are not accepted" in ran.out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--mappers", "random"), "no group mapper is called 'random'"),
        (("--mappers", "loop_trees", "--seed", 3), "a group is compared alone"),
        (("--mappers", "loop_trees,loop_trees"), "a list of distinct names"),
        (("--mappers", "loop_trees", "--arch", "eyeriss", "--arch", "tpu_v1"), "at most one architecture"),
    ],
)
def test_what_groups_do_not_take_is_refused(tilewright: Command, more: tuple[object, ...], told: str) -> None:
    ran = tilewright("compare", GROUP, *more)
    assert ran.code == 2 and told in ran.err and ran.out == ""


def test_a_comparison_of_layers_still_needs_an_architecture(tilewright: Command) -> None:
    ran = tilewright("compare", "nk,km->nm; n=4 k=4 m=4", "--mappers", "random")
    assert ran.code == 2 and "missing option '--arch'" in ran.err


class Worse:
    """Returns the file's mapping without the buffer for some weights, with a bound of so many times its value."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def search_group(self, task: GroupTask) -> GroupResult:
        data = task.group.to_data()
        data["tree"]["entries"][1]["keep"] = ["up.Weights"]
        group = GroupMapping.model_validate(data)
        report = task.evaluate(group)
        energy, cycles = float(report.energy_pj or 0.0), float(report.cycles or 0)
        bound = self.factor * task.objective.value(energy, cycles)
        return GroupResult(group, energy, cycles, group, bound, proved=self.factor == 1, unfused_proved=False)


def boastful(options: object) -> Worse:
    return Worse(1.0)


def modest(options: object) -> Worse:
    return Worse(0.25)


@pytest.fixture
def others() -> Iterator[Registry]:
    """Two group mappers of a third party, whose space is that of the built-in one."""
    registry = installed()
    space = registry.find(GroupMapperSpec, "loop_trees").spec
    assert isinstance(space, GroupMapperSpec)
    for factory in (boastful, modest):
        spec = GroupMapperSpec(name=factory.__name__, summary="x", factory=factory, space=space.space, interface=1)
        registry.add(spec, "tilewright-odd", "1.5")
    yield registry
    del registry.registrations[-2:]


@pytest.mark.process
def test_claims_are_named_and_a_contradicted_one_is_dropped(tilewright: Command, others: Registry) -> None:
    words = ("compare", GROUP, "--models", "timeloop", "--mappers", "boastful,loop_trees,modest")
    rows = {row["mapper"]: row for row in tilewright(*words, "--json").data["rows"]}
    assert rows["boastful"]["proved"] == "refuted" and rows["boastful"]["bound"] is None
    assert rows["loop_trees"]["proved"] == "yes"
    assert rows["modest"]["proved"].startswith("claimed by modest: to ") and rows["modest"]["bound"] > 0
    ran = tilewright(*words)
    assert ran.code == 0 and "which loop_trees found; the bound is dropped" in ran.err
    lines = {line.split()[1]: line.split() for line in ran.out.splitlines() if line.startswith("timeloop ")}
    optimum = {mapper: float(words[4]) for mapper, words in lines.items()}
    assert optimum["loop_trees"] == 1.0 < optimum["boastful"] == optimum["modest"]

"""The conformance kit itself: its public functions, its declared failures, and its messages on wrong use."""

from typing import Any

import numpy as np
import pytest

from tilewright.errors import InputError, UnknownPluginError
from tilewright.mapspace.legality import legal, legality
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.testing import CheckFailure, cases, check_plugin, checks_for, parametrize_conformance, registrations_of
from tilewright.testing.corpus import SAMPLES, Sample, cramped
from tilewright.testing.reference import PlainModel

pytestmark = pytest.mark.exhaustive


class Drawing:
    """A mapper that draws."""

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield task.space.sample(run.rng, 64)


class Unseeded:
    """A mapper whose chance is its own."""

    def search(self, task: Task, run: Run) -> Proposals:
        while True:
            yield task.space.sample(np.random.default_rng(), 64)


def _drawing(options: Any) -> Drawing:
    return Drawing()


def _unseeded(options: Any) -> Unseeded:
    return Unseeded()


def _plain(options: Any) -> PlainModel:
    return PlainModel()


GOOD = MapperSpec(name="drawing", summary="Draws.", factory=_drawing)
BAD = MapperSpec(name="unseeded", summary="Draws as it likes.", factory=_unseeded)
VIOLATIONS = {"check_mapper_same_seed_same_proposals", "check_mapper_keeps_no_state"}


def test_a_good_mapper_passes_every_check_of_its_kind() -> None:
    # this module imports arrays, and so is not light: what is imported to make a spec is part of the plugin
    outcomes = check_plugin(GOOD, expected_failures={"check_import_is_light": "the spec lives in a test module"})

    assert [outcome for outcome in outcomes if not outcome.ok] == []
    assert [outcome.check for outcome in outcomes] == [check.name for check in checks_for(GOOD)]
    assert not any("costmodel" in outcome.check for outcome in outcomes)


def test_the_plain_model_keeps_the_promises_of_cost_models() -> None:
    spec = CostModelSpec(name="plain", summary="Crude.", factory=_plain)
    outcomes = check_plugin(spec, expected_failures={"check_import_is_light": "the spec lives in a test module"})

    assert [outcome for outcome in outcomes if not outcome.ok] == []


def test_a_violation_is_caught_and_named() -> None:
    failed = {outcome.check: outcome for outcome in check_plugin(BAD) if outcome.status == "failed"}

    assert set(failed) == {*VIOLATIONS, "check_import_is_light"}
    assert "propose different mappings" in failed["check_mapper_same_seed_same_proposals"].message


def test_expected_failures_are_strict() -> None:
    reasons = {name: "its chance is its own" for name in VIOLATIONS} | {"check_interface": "is said to be odd"}
    status = {outcome.check: outcome.status for outcome in check_plugin(BAD, expected_failures=reasons)}

    assert {status[name] for name in VIOLATIONS} == {"expected failure"}
    assert status["check_interface"] == "unexpected pass"


def test_a_case_says_which_promise_is_broken() -> None:
    registration = registrations_of("tilewright/random")[0]
    case = next(case for case in cases(registration, options={"batch": "many"}) if case.check.name == "check_interface")

    with pytest.raises(
        CheckFailure, match="tilewright/random violates check_interface: it raised OptionError"
    ) as caught:
        case.run()
    assert "contract: The factory's product has the methods of its kind" in str(caught.value)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"check_mapper_same_sed": "x"}, "no check of a mapper is called 'check_mapper_same_sed'; did you mean"),
        ({"check_costmodel_can_be_pickled": "x"}, "no check of a mapper is called 'check_costmodel_can_be_pickled'"),
        ({"check_interface": " "}, "check_interface is expected to fail without a reason"),
    ],
)
def test_wrong_expected_failures_are_refused(expected: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_plugin(GOOD, expected_failures=expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tilewright-nowhere", "no distribution 'tilewright-nowhere' is installed"),
        ("pluggy", "pluggy has no entry point in the group 'tilewright'"),
        ("tilewright/rndom", "tilewright registers no plugin 'rndom'; did you mean 'random'?"),
    ],
)
def test_what_is_not_there_is_an_error_and_not_an_empty_test_run(name: str, message: str) -> None:
    with pytest.raises(UnknownPluginError) as caught:
        parametrize_conformance(name)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [{"options": {"rndom": {}}}, {"sources": {"rndom": []}}, {"expected_failures": {"rndom:check_interface": "x"}}],
)
def test_arguments_for_nobody_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="none of these plugins is called 'rndom'; did you mean 'random'"):
        parametrize_conformance("tilewright", **given)


def test_an_expected_failure_of_no_check_is_refused() -> None:
    with pytest.raises(InputError, match="none of these checks is called 'random:check_interfac'; did you mean"):
        parametrize_conformance("tilewright", expected_failures={"random:check_interfac": "x"})
    with pytest.raises(InputError, match="none of these checks is called 'random:check_costmodel_can_be_pickled'"):
        parametrize_conformance("tilewright", expected_failures={"random:check_costmodel_can_be_pickled": "x"})


def test_nothing_to_test_is_refused() -> None:
    with pytest.raises(InputError, match="no plugin is named"):
        parametrize_conformance()


def test_ids_name_plugin_and_check() -> None:
    mark = parametrize_conformance("tilewright/random", expected_failures={"check_interface": "for the sake of it"})
    parameters = {each.id: each for each in mark.args[1]}

    assert "mapper-random-mapper_same_seed_same_proposals" in parameters
    (xfail,) = parameters["mapper-random-interface"].marks
    assert xfail.kwargs["strict"] and xfail.kwargs["reason"] == "for the sake of it"


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_the_corpus_has_legal_mappings_and_the_plain_model_evaluates_them(sample: Sample) -> None:
    batch = sample.batch(200)
    good = legal(sample.problem, sample.architecture, batch)
    costs = PlainModel().bind(sample.problem, sample.architecture).evaluate_batch(batch)

    assert good.mean() > 0.25
    assert costs.valid.tolist() == good.tolist() and np.isfinite(costs.edp[good]).all()
    assert len(np.unique(costs.edp[good])) > 2  # it tells mappings apart


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_in_the_cramped_corpus_nothing_fits(sample: Sample) -> None:
    tight = cramped(sample)

    for mapping in tight.batch(20):
        codes = [reason.code for reason in legality(tight.problem, tight.architecture, mapping).reasons]
        assert codes == ["capacity"]

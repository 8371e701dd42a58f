"""Words in calls: unknown ones are refused at once, with what would have been right."""

from collections.abc import Callable
from typing import Any

import pytest

import tilewright as tw
from tilewright import errors
from tilewright.application.api.call_arguments import at_least, names_of, options_by_name

GEMM = "nk,km->nm; n=4 k=4 m=4"
NEVER = "absent.yaml"
"""Would be an error if it were read; wrong words are told before."""


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        ({"objective": "latency"}, errors.InputError, "did you mean 'cycles'"),
        ({"objective": "edpp"}, errors.InputError, "did you mean 'edp'"),
        ({"objective": 3}, errors.InputError, "one of edp, ed2p, energy, cycles, not 3"),
        ({"mapper": "sunston"}, errors.UnknownPluginError, "did you mean 'sunstone'"),
        ({"mapper": 3}, errors.InputError, "3 is not a mapper"),
        ({"model": "timelop"}, errors.UnknownPluginError, "did you mean 'timeloop'"),
        ({"model": 3}, errors.InputError, "3 is no cost model"),
        ({"mapper": "random", "mapper_options": {"bach": 1}}, errors.InputError, "did you mean 'batch'"),
        ({"model_options": {"link_transfer": 1}}, errors.InputError, "did you mean 'link_transfers'"),
        ({"constraints": "row_stationry"}, errors.UnknownNameError, "did you mean 'row_stationary'"),
        ({"objectiv": "edp"}, errors.CallError, "did you mean 'objective'"),
        ({"seconds": -1}, errors.InputError, "seconds must be a number of at least 0, not -1"),
        ({"seconds": "1"}, errors.InputError, "seconds must be a number"),
        ({"seconds": float("nan")}, errors.InputError, "seconds must be a number"),
        ({"evaluations": 0}, errors.InputError, "evaluations must be a number of at least 1"),
        ({"patience": True}, errors.InputError, "patience must be a number"),
        ({"seed": -1}, errors.InputError, "seed must be a number of at least 0"),
        ({"seed": 1.0}, errors.InputError, "seed must be a whole number, not 1.0"),
        ({"jobs": None}, errors.InputError, "jobs must be a whole number, not None"),
        ({"evaluations": 1e3}, errors.InputError, "evaluations must be a whole number, not 1000.0"),
        ({"jobs": 0}, errors.InputError, "jobs must be a number of at least 1"),
        ({"progress": "yes"}, errors.CallError, "progress must be True or False or None"),
    ],
)
def test_map_refuses_wrong_words_before_it_reads_the_work(words: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        tw.map(NEVER, "eyeriss", **words)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"mappers": ["random", "randm"]}, "did you mean 'random'"),
        ({"mappers": []}, "distinct names"),
        ({"mappers": "random,random"}, "distinct names"),
        ({"models": ["timeloop", "timelop"]}, "did you mean 'timeloop'"),
        ({"model_options": {"oracle.max_operations": 1}}, "'oracle' is not one of timeloop"),
        ({"objective": "latency"}, "did you mean 'cycles'"),
        ({"mapper": "random"}, "did you mean 'mappers'"),
    ],
)
def test_compare_refuses_wrong_words(words: Any, said: str) -> None:
    with pytest.raises(errors.TilewrightError) as raised:
        tw.compare(GEMM, "eyeriss", **({"mappers": "random", "models": "timeloop"} | words))
    assert said in str(raised.value)


@pytest.mark.parametrize("function", [tw.evaluate, tw.verify, tw.convert, tw.space, tw.compare, tw.map])
def test_every_function_names_the_keywords_it_takes(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="has no parameter 'nonsense'; parameters: "):
        function(nonsense=1)


def test_names_as_text_or_list() -> None:
    assert names_of("models", "a, b") == names_of("models", ["a", "b"]) == ["a", "b"]


def test_options_of_several() -> None:
    given = {"a": 1, "x.b": 2, "y": {"c": 3}}

    assert options_by_name(given, ["x", "y"]) == {"x": {"a": 1, "b": 2}, "y": {"a": 1, "c": 3}}


def test_no_limit_is_none() -> None:
    at_least(1, evaluations=None)


@pytest.mark.parametrize("value", [5, ["narrow_gap=5%"], {1: 2}, b"x", 1.5])
@pytest.mark.parametrize(
    "name", ["mapper_options", "model_options", "folder", "cache", "expressible", "notation", "force"]
)
def test_an_argument_of_another_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(errors.CallError, match=rf"map\(\): {name} must be "):
        tw.map(GEMM, "eyeriss", **{name: value})


def test_names_and_spaces_of_another_type_are_refused() -> None:
    with pytest.raises(errors.TilewrightError, match="has a name, not 5"):
        tw.map(GEMM, "eyeriss", algorithms=[5])  # type: ignore[list-item]
    with pytest.raises(errors.InputError, match="is a name, a file"):
        tw.architecture_space(5)  # type: ignore[arg-type]

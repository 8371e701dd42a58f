"""Permitted names of new plugins; the message for a refused name suggests one that is permitted."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tilewright.application.scaffold import Kind
from tilewright.application.scaffold.names import SPECS, check_name, class_of, distribution_of, module_of
from tilewright.errors import InputError
from tilewright.plugin import Registry, installed
from tilewright.plugin.guard.calls import BUILTIN
from tilewright.plugin.guard.specs import NAME as PLUGIN_NAME

LIKE_NAMES = st.text("abcxyzABC019-_. äß", min_size=1, max_size=60)


def refusal(kind: Kind, name: str, registry: Registry | None = None) -> InputError | None:
    try:
        check_name(kind, name, registry or Registry())
    except InputError as error:
        return error
    return None


@given(LIKE_NAMES)
@example("none")
@example("class")
@example("tilewright-")
@example("9" * 60)
@example("x" * 51)
def test_a_name_is_one_of_a_plugin_a_distribution_and_a_class_or_the_hint_has_one(name: str) -> None:
    error = refusal(Kind.mapper, name)
    if error is not None:
        assert error.hint is not None
        name = error.hint.rpartition(" ")[2].replace("NAME", "name")
        assert refusal(Kind.mapper, name) is None

    assert PLUGIN_NAME.fullmatch(name)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", distribution_of(name))
    assert module_of(name).isidentifier() and class_of(name).isidentifier()


@pytest.mark.parametrize("kind", Kind)
def test_names_of_built_in_plugins_are_taken(kind: Kind) -> None:
    for entry in installed().of_kind(SPECS[kind]):
        if entry.distribution == BUILTIN:
            error = refusal(kind, entry.spec.name, installed())
            assert "is built in" in str(error) or "name of a distribution" in str(error)


def test_names_of_third_parties_are_taken_whichever_way_they_are_written() -> None:
    registry = Registry()
    registry.add(SPECS[Kind.mapper](name="deep_search", summary="Searches.", factory=lambda options: None), "theirs")

    assert "already exists in theirs" in str(refusal(Kind.mapper, "deep-search", registry))


def test_packages_that_are_there_are_taken() -> None:
    assert "the package tilewright_mappers, which already exists" in str(refusal(Kind.mapper, "mappers"))

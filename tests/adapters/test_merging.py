"""Merge keys: what counts of two values, and where it stands."""

import pytest

from tilewright.errors import InputError
from tilewright.schema.document import parse_document
from tilewright_adapters.merging import merged

BASE = """\
one: &one {a: 1, b: {x: 1, y: 2}, list: [4, 5], kept: [6]}
two: &two {a: 2, c: 3}
"""


def found(text: str) -> object:
    return merged(parse_document(BASE + text, source="f.yaml")).data["result"]


def test_own_values_count_more_then_those_merged_first() -> None:
    assert found("result: {<<: [*one, *two], b: 7}") == {"a": 1, "b": 7, "list": [4, 5], "kept": [6], "c": 3}


def test_deep_merges_go_inside_and_join_lists() -> None:
    text = "result: {<<<: *one, b: {x: 9}, list: [1], kept: !nomerge [2]}"
    assert found(text) == {"a": 1, "b": {"x": 9, "y": 2}, "list": [1, 4, 5], "kept": [2]}


def test_merges_inside_merges() -> None:
    assert found("three: &three {<<: *two, d: 4}\nresult: [{<<: *three}]") == [{"a": 2, "c": 3, "d": 4}]


def test_what_is_merged_keeps_its_place() -> None:
    document = merged(parse_document(BASE + "result: !Component {<<<: *one, b: {x: 9}}", source="f.yaml"))
    assert str(document.locate(("result", "a"))).startswith("f.yaml:1:")
    assert str(document.locate(("result", "b", "y"))).startswith("f.yaml:1:")
    assert str(document.locate(("result", "b", "x"))).startswith("f.yaml:3:")
    assert document.tags[("result",)] == "!Component"


def test_only_mappings_are_merged() -> None:
    with pytest.raises(InputError, match=r"f.yaml:3:\d+: << can merge mappings only"):
        found("result: {<<: [1]}")

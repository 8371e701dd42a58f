"""Documents remember their lines, read YAML 1.2 scalars, execute nothing, and give every schema back."""

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from support import EXAMPLE_FILES
from support.problems import triples
from tilewright.errors import InputError
from tilewright.files import MAX_BYTES
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import (
    MAX_NODES,
    FileModel,
    dump_yaml,
    parse_document,
    read_document,
    reading,
    suggestion,
)
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload

TEXT = st.text(st.characters(codec="utf-8"))
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), TEXT
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(DATA.filter(lambda data: data is not None))
def test_what_is_dumped_is_read_back(data: object) -> None:
    assert parse_document(dump_yaml(data)).data == data


@given(DATA.filter(lambda data: data is not None))
def test_json_with_escapes_is_read_back(data: object) -> None:
    assert parse_document(json.dumps(data)).data == data


@given(TEXT)
def test_any_name_is_read_back_from_both_forms(name: str) -> None:
    tensors = [{"name": each, "role": each, "projection": ["m"]} for each in ("input", "output")]
    named = Problem.model_validate({"name": name or "x", "dimensions": {"m": 1}, "tensors": tensors})
    assert Problem.from_yaml(named.to_json()) == named == Problem.from_yaml(named.to_yaml())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"), (r'"a\uD83D\uDE00\ud83d\ude00"', "a\U0001f600\U0001f600"),
        (r"'\ud83d\ude00'", r"\ud83d\ude00"), (r"\ud83d\ude00", r"\ud83d\ude00"), (r'"\\ud83d\ude00"', None),
        (r'"\ud83d\ude00 \ud83d"', None),
    ],
)  # fmt: skip
def test_halves_of_a_character_are_joined_in_double_quotes_only(text: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(InputError, match="half a character|escape"):
            parse_document(f"x: {text}")
    else:
        assert parse_document(f"{{x: {text}}}").data == {"x": value}
        assert parse_document(f"{text}: 1").data == {value: 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("N", "N"), ("y", "y"), ("no", "no"), ("on", "on"), ("true", True), ("~", None), ("1e-3", 1e-3), ("0x10", 16),
        ("010", 10), ("1_000", "1_000"), ("2001-01-01", "2001-01-01"), ("1:30", "1:30"), (".5", 0.5), ("'1'", "1"),
    ],
)  # fmt: skip
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    data = parse_document(f"x: {text}").data["x"]
    assert data == value and type(data) is type(value)


def test_every_value_has_its_place() -> None:
    document = parse_document("a:\n  - 1\n  - b: 2\n", source="f")
    assert str(document.locate(("a", 1, "b"))) == "f:3:8"
    assert str(document.locate(("a", 1, "absent"))) == "f:3:5"  # the nearest there is
    assert document.at("a", 1).data == {"b": 2}


def test_keys_may_stand_twice_where_a_tool_lets_them() -> None:
    document = parse_document("a:\n  b: 1\n  b: {c: 2}\n", source="f", repeated_keys=True)
    assert document.data == {"a": {"b": {"c": 2}}}
    assert {path: str(place) for path, place in document.repeated.items()} == {("a", "b"): "f:3:3"}
    assert not parse_document("a: 1\nb: 1").repeated


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: the document is empty"),
        ("x: 2\na: [1", "while parsing a flow sequence that begins in line 2"),
        ("a: 1\na: 2", "f:2:1: key 'a' is repeated"),
        ("? [1]\n: 2", "f:1:3: a key is not a scalar; expected a plain word"),
        ("a: 1\n---\nb: 2", "f:2:1"),
        ("!!python/object/apply:os.system ['true']", "could not determine a constructor"),
        ("a: !!int word", "invalid literal"),
        ("a: 1\nb: \0", "f:2: character 0x0 is not allowed in YAML"),
    ],
)
def test_faults_are_told_with_line_and_column(text: str, message: str) -> None:
    if "python/object" in text:  # an unknown tag is plain data: nothing is built from it
        assert parse_document(text).data == ["true"]
        return
    with pytest.raises(InputError) as caught:
        parse_document(text, source="f")
    assert message in str(caught.value)


class PlainLoader(yaml.SafeLoader):
    """YAML loader that is available without libyaml."""

    yaml_implicit_resolvers = reading.Loader.yaml_implicit_resolvers


def test_pyyamls_own_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted(EXAMPLE_FILES.glob("*.yaml"))
    found = [parse_document(file.read_text()) for file in files]
    monkeypatch.setattr(reading, "Loader", PlainLoader)
    assert files and found == [parse_document(file.read_text()) for file in files]


def test_bombs_do_not_go_off() -> None:
    laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        laughs += f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for text in (laughs, f"[{'1,' * (MAX_NODES + 1)}]"):
        with pytest.raises(InputError, match="too large: it has more than 100,000 values"):
            parse_document(text)
    for text in ("[" * 5000, "{a: " * 5000, "- " * 5000, "? " * 5000):
        with pytest.raises(InputError, match="too deep|nesting depth|plain word"):
            parse_document(text)


def test_aliases_repeat_what_stands_before_with_its_places_and_tags() -> None:
    document = parse_document("a: &x !T [1, {b: &y 2}]\nc: *x\n*y : &k 3\n&n d: *k\ne: *n\n", source="f")
    assert document.data == {"a": [1, {"b": 2}], "c": [1, {"b": 2}], "2": 3, "d": 3, "e": "d"}
    assert document.data["a"] is not document.data["c"]
    assert str(document.locate(("c", 1, "b"))) == "f:1:18" and document.tags["c",] == "!T"
    for text, message in (("a: *b", "has no anchor"), ("a: &a [*a]", "is inside the value that it repeats")):
        with pytest.raises(InputError, match=message):
            parse_document(text)


def test_a_message_is_short_whatever_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text("kind: problem\n" + "".join(f"unknown{index}: 1\n" for index in range(20_000)))
    with pytest.raises(InputError, match="and 19,99[0-9] more") as caught:
        Problem.from_file(path)
    assert len(str(caught.value)) < 3_000
    path.write_text(f"kind: problem\n? {'k' * 9_000}\n: 1\n")
    with pytest.raises(InputError, match="unknown key 'kkk") as caught:
        Problem.from_file(path)
    assert len(str(caught.value)) < 3_000


@pytest.mark.parametrize(
    ("compute", "memory", "message"),
    [
        ("energy_pj: 1", "", "'energy_pj'; did you mean 'energy_per_operation_pj'?"),
        ("mac_energy_pj: 1", "", "'mac_energy_pj'; expected one of energy_per_operation_pj, operands, "),
        ("", "energy_pj: 1", "'energy_pj'; did you mean 'read_energy_pj', 'write_energy_pj' or 'update_energy_pj'?"),
        ("", "component: {siz: 1}", "'siz'; expected one of name, attributes, technology_nm, estimator"),
        ("", "capasity_words: 1", "'capasity_words'; did you mean 'capacity_words'?"),
        ("", "sparse: {formats: {input: [{form: UOP}]}}", "'form'; did you mean 'format'?"),
    ],
)
def test_suggested_keys_are_those_of_the_place(compute: str, memory: str, message: str) -> None:
    text = f"{{name: a, clusters: [{{name: D, memories: [{{name: M, {memory}}}]}}], compute: {{name: MAC, {compute}}}}}"
    with pytest.raises(InputError) as caught:
        Architecture.from_yaml(text)
    assert f"unknown key {message}" in str(caught.value)


def test_nothing_that_a_file_says_steers_the_terminal() -> None:
    with pytest.raises(InputError) as caught:
        Problem.from_yaml('"a\\e[31m\\u202e\\r": 1')
    assert "a\\x1b[31m\\u202e\\r" in str(caught.value)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)], ids=["pipe", "device"])
def test_only_regular_files_are_read_and_nothing_is_waited_for(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "odd.yaml")
    with pytest.raises(InputError, match="expected a file"):
        read_document(tmp_path / "odd.yaml")


@pytest.mark.parametrize("name", ["x" * 300 + ".yaml", "a\0b.yaml", "x/" * 3000 + ".yaml", "\udcff.yaml"])
def test_names_of_any_length_and_content(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_document(name)
    assert str(caught.value).isprintable() or "hint" in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_document(tmp_path / "absent.yaml")
    with pytest.raises(InputError, match="is a folder"):
        read_document(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is a folder; expected a file, such as '.*binary'"):
        read_document(tmp_path)
    with pytest.raises(InputError, match="cannot read"):
        read_document(tmp_path / "binary")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(InputError, match="the limit is"):
        read_document(tmp_path / "huge")


def test_suggestions_are_made_only_when_near() -> None:
    assert suggestion("capcity", ["capacity", "name"]) == "; did you mean 'capacity'?"
    assert suggestion("zebra", ["capacity", "name"]) == ""


def test_tags_of_applications_are_remembered_and_change_nothing() -> None:
    document = parse_document("nodes:\n- !Container {name: chip}\n- !Nothing\nplain: !!str 1\n")
    assert document.data == {"nodes": [{"name": "chip"}, ""], "plain": "1"}
    assert document.tags == {("nodes", 0): "!Container", ("nodes", 1): "!Nothing"}
    assert document.at("nodes").tags == {(0,): "!Container", (1,): "!Nothing"}


@given(triples())
def test_yaml_json_and_pickle_round_trip(triple: tuple[Problem, Architecture, Mapping]) -> None:
    for each in triple:
        assert type(each).from_yaml(each.to_yaml()) == each
        assert type(each).from_yaml(each.to_json()) == each
        assert pickle.loads(pickle.dumps(each)) == each
        assert hash(each) == hash(type(each).from_yaml(each.to_yaml()))


@pytest.mark.parametrize("model", [Problem, Workload, Architecture, Mapping])
def test_schemas_can_be_printed(model: type[Problem]) -> None:
    schema = model.model_json_schema()
    assert schema["additionalProperties"] is False and json.dumps(schema)


@pytest.mark.parametrize(
    ("schema", "text", "message"),
    [
        (
            Architecture,
            "clusters:\n- {name: A, memories: [{name: M, read_energy_pj: 1, write_energy_pj: 1}]}\n- {name: A}\n",
            "<text>:4:10: cluster names repeat: A",
        ),
        (
            Problem,
            "dimensions: {M: 4}\ntensors:\n- {name: A, role: input, projection: [M]}\n- {name: A, role: output, projection: [M]}\n",
            "<text>:5:10: tensor names repeat",
        ),
        (
            Problem,
            "dimensions: {M: 4}\ntensors:\n- {name: A, role: input, projection: [M, K]}\n- {name: B, role: output, projection: [M]}\n",
            "<text>:4:42: tensor A uses dimension K",
        ),
    ],
)
def test_a_fault_of_several_parts_has_the_place_of_the_wrong_one(
    schema: type[FileModel], text: str, message: str
) -> None:
    rest = "compute: {energy_per_operation_pj: 1}\n" if schema is Architecture else ""
    with pytest.raises(InputError) as caught:
        schema.from_yaml(f"name: x\n{text}{rest}")
    assert str(caught.value).startswith(message)

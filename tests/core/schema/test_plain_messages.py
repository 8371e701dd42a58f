"""No message about a wrong file has a text of pydantic: each is in the words of files."""

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from support import EXAMPLE_FILES, ROOT
from support.messages import RAW
from support.profiles import scaled
from tilewright.application.api.load.kinds import SCHEMAS
from tilewright.application.exploration.space import ArchitectureSpace
from tilewright.errors import InputError
from tilewright.schema.document import Document, FileModel, read_document, validate
from tilewright.values import plain_fault, worded

MODELS: dict[str, type[FileModel]] = {**SCHEMAS, "space": ArchitectureSpace}
FILES = [
    *(
        EXAMPLE_FILES / f"{name}.yaml"
        for name in ("gemm.problem", "gemm.mapping", "small.arch", "three_layers.workload")
    ),
    *(EXAMPLE_FILES / f"{name}.yaml" for name in ("two_products", "thousand_machines")),
    *sorted((ROOT / "core/tilewright/library/constraints").glob("gemmini*.yaml")),
    *sorted((ROOT / "core/tilewright/library/architectures").glob("extensor*.yaml")),
]
OTHERS: tuple[Any, ...] = (None, True, -1, 0, 2.5, 10**400, float("nan"), "", "x y", "16x16", [], [1], {}, {"a": 1})
"""Values that replace others."""


def wrong(data: Any, draw: Any) -> Any:
    """Return a document with one value replaced, removed, or joined by an unknown key."""
    if isinstance(data, dict) and data and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(data)))
        return data | {key: wrong(data[key], draw)}
    if isinstance(data, list) and data and draw(st.integers(0, 5)):
        at = draw(st.integers(0, len(data) - 1))
        return [*data[:at], wrong(data[at], draw), *data[at + 1 :]]
    if isinstance(data, dict) and data and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(data)))
        return data | {"colour": 1} if draw(st.booleans()) else {name: data[name] for name in data if name != key}
    return draw(st.sampled_from(OTHERS))


@scaled(30)
@given(st.data())
def test_messages_of_wrong_files_are_in_plain_words(data: st.DataObject) -> None:
    document = read_document(data.draw(st.sampled_from(FILES)))
    other = wrong(document.data, data.draw)
    if not isinstance(other, dict):
        return
    try:
        validate(MODELS[document.data["kind"]], Document(other, "f.yaml"))
    except InputError as error:
        assert not RAW.search(str(error)), str(error)


class Other(BaseModel):
    a: int


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (int, "x", "expected a whole number"),
        (int, [16, 16], "expected a whole number"),
        (int, 2.5, "expected a whole number"),
        (int, "1" * 5000, "expected a whole number with fewer digits"),
        (float, {}, "expected a number"),
        (Annotated[float, Field(allow_inf_nan=False)], float("inf"), "expected a finite number"),
        (str, 3, "expected text"),
        (bool, "maybe", "expected true or false"),
        (Annotated[bool, Field(strict=True)], 1, "expected true or false"),
        (tuple[int, ...], 3, "expected a list"),
        (list[int], "ab", "expected a list"),
        (frozenset[int], {"a": 1}, "expected a list"),
        (dict[str, int], [], "expected keys and values"),
        (Other, 3, "expected keys and values"),
        (Other, {}, "a value is missing"),
        (None, 3, "expected no value"),
        (Literal["a", "b"], "c", "expected 'a' or 'b'"),
        (Annotated[int, Field(gt=0)], 0, "expected a value greater than 0"),
        (Annotated[int, Field(ge=1)], 0, "expected a value greater than or equal to 1"),
        (Annotated[int, Field(lt=9)], 9, "expected a value less than 9"),
        (Annotated[int, Field(le=9)], 10, "expected a value less than or equal to 9"),
        (Annotated[int, Field(multiple_of=4)], 3, "expected a multiple of 4"),
        (Annotated[tuple[int, ...], Field(min_length=1)], [], "expected at least 1 item; it is empty"),
        (Annotated[tuple[int, ...], Field(min_length=2)], [1], "expected at least 2 items"),
        (Annotated[list[int], Field(max_length=1)], [1, 2], "expected at most 1 item, not 2"),
        (Annotated[dict[str, int], Field(min_length=1)], {}, "expected at least 1 key; it is empty"),
        (Annotated[str, Field(min_length=1)], "", "expected at least 1 character; it is empty"),
        (Annotated[str, Field(max_length=2)], "abc", "expected at most 2 characters, not 3"),
        (Annotated[str, worded("^Z+$", "some Z")], "a", "expected some Z"),
        (Annotated[str, Field(pattern="^Y+$")], "a", "expected text of the form ^Y+$"),
    ],
)
def test_each_kind_of_fault_has_plain_words(kind: Any, value: Any, told: str) -> None:
    with pytest.raises(ValidationError) as error:
        TypeAdapter(kind).validate_python(value)
    (fault,) = error.value.errors()
    assert plain_fault(fault) == told


ENERGIES = "read_energy_pj: 1, write_energy_pj: 1"
MACHINE = f"""
kind: architecture
name: small
clusters:
  - {{name: DRAM, memories: [{{name: DRAM, {ENERGIES}}}], fanout: {{size: 16, axis: Y}}}}
compute: {{energy_per_operation_pj: 1}}
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "size: 16",
            "size: [16, 16]",
            "5:98: clusters[0].fanout.size: a fanout has one axis (found [16, 16]); 2 axes are 2 nested clusters",
        ),
        (
            "size: 16",
            "size: 16x16",
            "a fanout has one axis (found '16x16'); 2 axes are 2 nested clusters, a fanout each",
        ),
        ("size: 16", "size: [16]", "clusters[0].fanout.size: expected a whole number (found a list)"),
        ("size: 16", "size: {x: 16}", "clusters[0].fanout.size: expected a whole number (found keys and values)"),
        (
            "name: small",
            "name: two words",
            "name: expected a letter or _, then letters, digits, or any of _ . -",
        ),
        ("axis: Y", "axis: q", "expected a name that begins with a capital letter, such as X (found 'q')"),
        ("memories: [{", "memories: 3, fanouts: [{", "clusters[0].memories: expected a list (found 3)"),
    ],
)
def test_machines(old: str, new: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        MODELS["architecture"].from_yaml(MACHINE.replace(old, new))
    assert told in str(error.value)


def test_an_empty_list() -> None:
    text = json.dumps({"name": "e", "clusters": [], "compute": {"energy_per_operation_pj": 1}})
    with pytest.raises(InputError, match="clusters: expected at least 1 item; it is empty"):
        MODELS["architecture"].from_yaml(text)

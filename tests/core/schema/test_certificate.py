"""Certificates: one envelope, three claims; files of version 1 are read."""

import re
from typing import Any

import pytest
import yaml

import tilewright as tw
from support import DATA
from tilewright.errors import InputError
from tilewright.schema.mapped.certificate import Certificate

FORMER = {"layer": "layer", "halo": "fused_group", "array": "fused_group", "wide": "fused_network"}


def text_of(name: str) -> str:
    file = "layer.yaml" if name == "layer" else f"false_{name}.yaml"
    return (DATA / "certificates" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FORMER)
def test_a_file_of_version_1_is_read_with_its_digests(name: str) -> None:
    text = text_of(name)
    read: Certificate[Any] = Certificate.from_yaml(text)
    assert (read.claim.of, read.to_data()["schema_version"]) == (FORMER[name], 2)
    assert read.digests == read.part_digests() and read == read.sealed()
    assert text.startswith("".join(f"# {line}\n" for line in str(read).splitlines()))
    assert Certificate.from_yaml(read.to_yaml()) == read == Certificate.from_yaml(read.to_json())
    assert yaml.safe_load(read.to_yaml())["claim"]["of"] == FORMER[name]


@pytest.mark.parametrize("name", FORMER)
@pytest.mark.parametrize("form", ["version 1", "version 2"])
def test_a_changed_part_of_either_form_has_another_digest(name: str, form: str) -> None:
    """Version 1 had no digest of a layer's versions."""
    read: Certificate[Any] = Certificate.from_yaml(text_of(name))
    data = yaml.safe_load(text_of(name) if form == "version 1" else read.to_yaml())
    claim = data.get("claim", data)
    part = {"layer": "problem", "wide": "workload"}.get(name, "group")
    (claim["incumbent"] if name == "layer" else claim)[part]["name"] = "other"
    data["versions"] = {"python": "2.7"}
    read = Certificate.model_validate(data)
    changed = {name for name, digest in read.part_digests().items() if read.digests.get(name) != digest}
    assert changed == {part} | (set() if (name, form) == ("layer", "version 1") else {"versions"})


def test_a_layer_of_version_1_is_proved_again() -> None:
    checked = tw.verify_certificate(DATA / "certificates" / "layer.yaml", samples=100)
    assert checked.right and [check.name for check in checked.checks[:3]] == ["contents", "prover", "gap"]
    assert all(check.passed for check in checked.checks), checked


@pytest.mark.parametrize("form", ["version 1", "version 2"])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mappings: 1068", "mappings: many", r"space.mappings: expected a whole number \(found 'many'\)"),
        ("mappings: 1068", "mapping: 1068", r"unknown key 'mapping'|'mapping' is unknown"),
        ("objective: energy", "objective: taste", "taste"),
        ("kind: mapped", "kind: eaten", "incumbent.kind: expected 'mapped'"),
    ],
)
def test_a_wrong_value_is_told_where_it_stands(form: str, old: str, new: str, message: str) -> None:
    text = text_of("layer") if form == "version 1" else Certificate.from_yaml(text_of("layer")).to_yaml()
    assert old in text
    changed = text.replace(old, new, 1)
    with pytest.raises(InputError, match=message) as error:
        Certificate.from_yaml(changed, source="c.yaml")
    line = next(number for number, line in enumerate(changed.splitlines(), 1) if new in line)
    assert f"c.yaml:{line}" in str(error.value), error.value


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({}, "claim: 'of' is missing"),
        ({"of": "nothing"}, "claim: 'of': expected one of 'layer', 'fused_group', 'fused_network' (found 'nothing')"),
        (None, "claim: expected keys and values (found None)"),
        ([], "claim: expected keys and values (found a list)"),
        ({"of": "layer"}, "claim: 'incumbent' is missing"),
        ({"of": "fused_group", "proof": 1}, "unknown key 'proof'"),
    ],
)
def test_what_is_no_claim_is_told(claim: Any, message: str) -> None:
    data = {name: part for name, part in Certificate.from_yaml(text_of("layer")).to_data().items() if name != "claim"}
    with pytest.raises(InputError, match=re.escape(message)):
        tw.verify_certificate(data | {"claim": claim})

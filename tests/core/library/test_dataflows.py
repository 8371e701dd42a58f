"""Dataflows of copies: an architecture under another name keeps the published dataflow that its file names."""

import logging
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright import library
from tilewright.application.api.load import load_constraints
from tilewright.errors import InputError, UnknownNameError

DEFAULTS = {
    name: found.name
    for name in library.names("architectures")
    if (found := library.default_constraints(name)) is not None
}


def copy(name: str, folder: Path, **changes: Any) -> tw.Architecture:
    text = library.text(name)
    assert text is not None
    (folder / "copy.yaml").write_text(text.replace(f"\nname: {name}\n", "\nname: mine\n"), "utf-8")
    found: tw.Architecture = tw.load(folder / "copy.yaml", "architecture")
    return found.model_copy(update=changes)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_copy_with_another_name_keeps_the_dataflow(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mine = copy(name, tmp_path)
    assert (mine.name, mine.dataflow, mine.family) == ("mine", f"{name}.{DEFAULTS[name]}", name)
    with caplog.at_level(logging.WARNING, "tilewright"):
        for asked in (None, DEFAULTS[name], f"{name}.{DEFAULTS[name]}"):
            assert load_constraints(asked, mine) == library.default_constraints(name)
        assert load_constraints("none", mine).name == "none"
    assert not caplog.messages
    assert tw.Architecture.from_yaml(mine.to_yaml()) == mine


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_copy_without_its_dataflow_has_a_note(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bare, full = copy(name, tmp_path, dataflow=None), f"{name}.{DEFAULTS[name]}"
    assert library.twin(bare) == full and library.twin(library.architecture(name)) is None
    with caplog.at_level(logging.WARNING, "tilewright"):
        assert load_constraints(None, bare).name == "none"
    (note,) = caplog.messages
    assert f"mine is the library's {name} under another name" in note and f"`dataflow: {full}`" in note
    caplog.clear()
    assert load_constraints(full, bare) == library.default_constraints(name)
    other = bare.model_copy(update={"compute": bare.compute.model_copy(update={"word_bits": 17})})
    assert library.twin(other) is None and load_constraints(None, other).name == "none"
    assert not caplog.messages


def test_dataflows_that_do_not_exist_or_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="eyeriss has no constraints called 'row_station'; did you mean"):
        load_constraints(None, copy("eyeriss", tmp_path, dataflow="eyeriss.row_station"))
    with pytest.raises(InputError):
        load_constraints(None, copy("eyeriss", tmp_path, dataflow="tpu_v1.weight_stationary"))
    with pytest.raises(InputError, match="dataflow"):
        tw.load({**library.architecture("eyeriss").to_data(), "dataflow": "row"}, "architecture")


def test_machines_without_a_published_dataflow_are_shown_as_they_are() -> None:
    for name in set(library.names("architectures")) - set(DEFAULTS):
        assert "\ndataflow:" not in (library.text(name) or "")

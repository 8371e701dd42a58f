"""What ended a start without a word is told by the next, once; what goes on is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.plugin.guard.marker import left_behind, unfinished


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_end_without_a_word_is_told_once() -> None:
    code = "from tilewright.plugin.guard.marker import unfinished\nimport os\nwith unfinished('at it'): os._exit(0)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert left_behind() == ["at it"]
    assert left_behind() == []


def test_what_goes_on_or_ended_well_is_not_told(folder: Path) -> None:
    with unfinished("at it"):
        assert left_behind() == [] and (folder / f"unfinished-{os.getpid()}").is_file()
    with pytest.raises(ZeroDivisionError), unfinished("at it"):
        raise ZeroDivisionError
    assert list(folder.iterdir()) == []


def test_no_place_for_a_note_is_no_reason_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "file" / "cache"))
    with unfinished("at it"):
        assert left_behind() == []

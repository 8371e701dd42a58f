"""`tilewright plugins new`: its messages, and that it overwrites nothing."""

from pathlib import Path

import pytest

from support.command import Command


def test_the_command_says_what_to_type_next(tilewright: Command, tmp_path: Path) -> None:
    done = tilewright("plugins", "new", "mapper", "greedy", "-o", tmp_path / "here")

    assert done.code == 0
    assert done.err.startswith(f"written to {tmp_path / 'here'}: ") and "pyproject.toml" in done.err
    assert done.out.splitlines()[0] == f"cd {tmp_path / 'here'}"
    assert "tilewright plugins check tilewright-greedy/greedy" in done.out


def test_json(tilewright: Command, tmp_path: Path) -> None:
    data = tilewright("plugins", "new", "mapper", "greedy", "-o", tmp_path / "here", "--json").data

    assert (data["distribution"], data["folder"]) == ("tilewright-greedy", str(tmp_path / "here"))
    assert all((tmp_path / "here" / name).is_file() for name in data["files"])


def test_by_default_the_folder_is_named_after_the_distribution(
    tilewright: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert tilewright("plugins", "new", "mapper", "greedy").code == 0
    assert (tmp_path / "tilewright-greedy" / "pyproject.toml").is_file()


@pytest.mark.parametrize("there", ["file", "folder", "parent"])
def test_nothing_is_overwritten(there: str, tilewright: Command, tmp_path: Path) -> None:
    target = tmp_path / "here"
    if there == "folder":
        target.mkdir()
        (target / "mine.txt").write_text("mine", encoding="utf-8")
    else:
        target.write_text("mine", encoding="utf-8")
    done = tilewright("plugins", "new", "mapper", "greedy", "-o", target / "below" if there == "parent" else target)

    expected = (
        "cannot create the folder" if there == "parent" else "hint: tilewright plugins new mapper greedy -o FOLDER"
    )
    assert done.code == 2 and expected in done.err
    assert [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()] == ["mine"]

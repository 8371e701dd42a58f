"""Digests of code and of data."""

from pathlib import Path

from tilewright.digests import of_code, of_data


def test_the_same_code_has_one_digest_wherever_it_lies(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        for name in ("a.py", "b.py"):
            (folder / name).write_text(f"# {name}\n")
    one, two = (of_code(folder.glob("*.py")) for folder in folders)
    assert one == two == of_code(sorted(folders[0].iterdir(), reverse=True))

    (folders[1] / "b.py").write_text("# changed\n")
    assert of_code(folders[1].iterdir()) != one
    assert of_code([folders[0] / "a.py"]) != one


def test_the_same_data_has_one_digest_in_whatever_order() -> None:
    assert of_data({"a": 1, "b": [1, 2]}) == of_data({"b": [1, 2], "a": 1}) != of_data({"a": 1, "b": [2, 1]})

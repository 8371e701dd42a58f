"""Digests of code."""

from pathlib import Path

from tilewright.code import digest


def test_the_same_code_has_one_digest_wherever_it_lies(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        for name in ("a.py", "b.py"):
            (folder / name).write_text(f"# {name}\n")
    one, two = (digest(folder.glob("*.py")) for folder in folders)
    assert one == two == digest(sorted(folders[0].iterdir(), reverse=True))

    (folders[1] / "b.py").write_text("# changed\n")
    assert digest(folders[1].iterdir()) != one
    assert digest([folders[0] / "a.py"]) != one

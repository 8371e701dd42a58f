"""The commands of README and manual, page by page, and a clone in which they run with short searches."""

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from support import ROOT
from tilewright.application.api import plan
from tilewright.application.run import search
from tilewright.plugin import MapperSpec
from tilewright.plugin.mapper import Budget

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        *sorted((*(ROOT / "docs").glob("*.md"), ROOT / "benchmarks/sunstone.md"), key=lambda path: path.name),
        *sorted((ROOT / "docs/from").glob("*.md")),
    )
}
"""Those in `docs/plugins` speak of a plugin that is not installed: `test_plugin_pages`."""
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
INSTALLING = ("python3.11", ".venv/bin/pip", ".venv-test/bin/pip", ".venv-test/bin/python", "pip", ".")
"""What begins a command that is not for a test to run."""


def blocks(page: str, mark: str) -> list[str]:
    return [text for sign, text in FENCE.findall(PAGES[page]) if sign == mark]


def commands(block: str) -> list[list[str]]:
    """The commands of Tilewright in it, word by word, file names written out."""
    lines = []
    for line in block.replace("\\\n", " ").splitlines():
        for part in line.split(" && "):
            words = shlex.split(part, comments=True)
            if words and words[0] not in INSTALLING:
                program, *rest = words
                assert program.removeprefix(".venv/bin/") == "tilewright", line
                lines.append(rest)
    return lines


def clone_of_the_manual(
    folder: Path, monkeypatch: pytest.MonkeyPatch, evaluations: int = 100, seconds: float | None = 0.3
) -> None:
    """Go to a folder with what a clone has for users; searches are short. Without seconds, they do the same again."""
    for name in ("examples", "docs"):
        shutil.copytree(ROOT / name, folder / name)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(folder.with_name(f"{folder.name}-cache")))

    def short(budget: Budget, mapper: MapperSpec | None) -> Budget:
        most = None if budget.seconds is None or seconds is None else min(seconds, budget.seconds)
        return replace(budget, evaluations=min(evaluations, budget.evaluations or evaluations), seconds=most)

    monkeypatch.setattr(plan, "with_default", short)
    monkeypatch.setattr(search, "FIRST_PIECE", 1)

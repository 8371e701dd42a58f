"""Plugins of third parties change no output in which they are not named, whichever of them are installed."""

import difflib
import glob
import json
import random
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.command import Ran, command
from support.crowd import HOME, SPECS, present
from support.manual_commands import PAGES, blocks, clone_of_the_manual, commands
from support.profiles import first
from tilewright.plugin import installed
from tilewright.plugin.specs import PluginSpec

Run = Callable[..., Ran]
FILES = {
    "broken.yaml": "architecture:\n  version: 0.3\n  subtree:\n  - {name: system, local: [{name: DRAM, class: nothing, x: 1}]}\n",
    "invalid.yaml": "architecture: [1, 2\nproblem: {\n",
    "unknown.yaml": "rows:\n- 1\n- 2\n",
    "unknown.csv": "a,b\n1,2\n",
    "words.txt": "for k in 0..4 step nothing\n",
    "part.arch.yaml": "kind: architecture\nname: part\ntechnology_nm: 45\nclusters:\n- name: DRAM\n  memories: [{name: DRAM, read_energy_pj: 1, "
    "write_energy_pj: 1}]\n- name: Buffer\n  memories: [{name: Buffer, capacity_words: 16, component: {name: register}}]\ncompute:\n"
    "  component: {name: mac}\n",
}
"""Files of which readers complain, and an architecture whose energies are estimated."""
SMALL = "--evaluations 20 --seed 1 --no-cache --mapper random"
COMMANDS = tuple(
    line.strip()
    for line in f"""
    evaluate --from timeloop examples/timeloop/arch.yaml examples/timeloop/map.yaml examples/timeloop/problem.yaml --model timeloop
    evaluate examples/timeloop/arch.yaml examples/timeloop/map.yaml examples/timeloop/problem.yaml
    evaluate --from timeloop examples/timeloop/arch.yaml --json
    evaluate examples/zigzag/accelerator.yaml examples/zigzag/workload.yaml/conv1 examples/zigzag/mapping.yaml
    evaluate examples/zigzag/accelerator.yaml examples/zigzag/workload.yaml examples/zigzag/mapping.yaml
    evaluate examples/accelforge/arch.yaml examples/accelforge/workload.yaml examples/accelforge/mapping.yaml
    evaluate --from maestro examples/maestro/mapping.m examples/maestro/hardware.m --json
    evaluate examples/maestro/mapping.m
    evaluate broken.yaml
    evaluate --from timeloop broken.yaml
    evaluate --from tilewright broken.yaml
    evaluate invalid.yaml
    evaluate examples/timeloop/arch.yaml absent.yaml
    convert examples/nest.txt --from loopnest --to timeloop
    convert examples/nest.txt --to union
    convert broken.yaml --to union
    convert words.txt --from loopnest --to union
    library layers examples/zigzag/workload.yaml
    library show eyeriss
    library show resnet5
    map 'nk,km->nm; n=4 k=5 m=6' --arch eyeriss {SMALL}
    map 'nk,km->nm; n=4 k=5' --arch eyeriss {SMALL}
    map alexnet/n12 --arch eyeris {SMALL}
    map broken.yaml --arch eyeriss {SMALL}
    map invalid.yaml --arch eyeriss {SMALL}
    map absent.onnx --arch eyeriss {SMALL}
    map 'nk,km->nm; n=4 k=5 m=6' --arch broken.yaml {SMALL}
    map 'nk,km->nm; n=4 k=5 m=6' --arch part.arch.yaml {SMALL}
    map 'nk,km->nm; n=4 k=5 m=6' --arch eyeriss --mapper randm
    map 'nk,km->nm; n=4 k=5 m=6' --arch eyeriss --model timeloopp
    map examples/zigzag/workload.yaml --arch examples/zigzag/accelerator.yaml --from zigzag {SMALL}
    compare 'nk,km->nm; n=4 k=5 m=6' --arch eyeriss --mappers random,local --models timeloop,pipelined --evaluations 20 --no-cache
    plugins show timeloop
    plugins show optimal --json
    plugins show grid
    schema mapping
    map --help
    """.strip().splitlines()
)
"""Commands that read files and names, that fail, or that use defaults."""
THEIRS = [spec.name for spec in SPECS if spec.name not in {one.spec.name for one in installed().registrations}]
"""Names that only plugins of the crowd have."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`run(line)`: what a command prints in a clone, with its seconds taken out."""
    clone_of_the_manual(tmp_path / "clone", monkeypatch, evaluations=20, seconds=None)
    monkeypatch.setenv("TILEWRIGHT_PLUGIN_SECONDS", "3")
    for name, text in FILES.items():
        Path(name).write_text(text)
    call = command(monkeypatch, capsys)

    def timeless(text: str, columns: bool) -> str:
        """Without seconds, lines of progress, and (`columns`) columns of seconds."""
        text = re.sub(r"^[\d,.]+ s, .* of .* done.*\n?", "", text, flags=re.MULTILINE)
        text = re.sub(r" +<?\d+\.\d(?= |$)", " T", text, flags=re.MULTILINE) if columns else text
        return re.sub(
            r"(<?\d[\d.,]*)(?=( CPU)? s\b)|\"(cpu_|wall_)?seconds\": [\d.e-]+|[\d,.]+(?=/s\b| per second)", "T", text
        )

    def ran(line: str | list[str]) -> Ran:
        words = shlex.split(line) if isinstance(line, str) else line
        done, columns = (
            call(*(name for word in words for name in sorted(glob.glob(word)) or [word])),
            words[0] == "compare",
        )
        return replace(done, out=timeless(done.out, columns), err=timeless(done.err, columns))

    return ran


def fresh(folder: Path) -> None:
    """Remove what commands wrote in the clone, and their cache."""
    for path in Path().iterdir():
        if path.is_dir() and path.name not in ("examples", "docs"):
            shutil.rmtree(path)
        elif path.is_file() and path.name not in FILES:
            path.unlink()
    shutil.rmtree(folder / "clone-cache", ignore_errors=True)


def without_names(ran: Ran) -> Ran:
    """The same without lines and parts of lists that name a plugin of the crowd; columns are as wide as they need to be."""

    def kept(text: str) -> str:
        text = re.sub(rf", [\w.]+ \({HOME}[^)]*\)", "", text)
        text = re.sub(rf", ({'|'.join(THEIRS)})\b", "", text)
        text = re.split(rf"^{HOME}", text, maxsplit=1, flags=re.MULTILINE)[
            0
        ]  # `verify`: a part for each of their models
        lines = [line for line in text.splitlines() if HOME not in line]
        return "\n".join(re.sub(r"[ \u2500-]+", " ", line) for line in lines)

    return replace(ran, out=kept(ran.out), err=kept(ran.err))


_ALONE: dict[str, Ran] = {}
"""What commands print without plugins of third parties."""


def same(before: Ran, after: Ran) -> bool:
    """Whether two commands printed the same; what names a plugin of the crowd aside."""
    return after == before or without_names(after) == without_names(before)


def difference(before: Ran, after: Ran) -> list[str]:
    """The lines that differ, for a message."""
    old, new = (f"{ran.code}\n{ran.out}\n{ran.err}".splitlines() for ran in (before, after))
    return list(difflib.unified_diff(old, new, lineterm="", n=0))


def drawn(seed: int) -> tuple[list[PluginSpec[Any]], list[str]]:
    """A set of plugins, and commands of which each is drawn with many sets."""
    draw = random.Random(seed)
    start = 4 * seed % len(COMMANDS)
    return draw.sample(SPECS, draw.randint(1, len(SPECS))), [*COMMANDS, *COMMANDS][start : start + 4]


@pytest.mark.parametrize("seed", first(3, *range(100)))
def test_whoever_is_installed_changes_nothing(seed: int, run: Run) -> None:
    specs, lines = drawn(seed)
    for line in lines:
        if line not in _ALONE:
            _ALONE[line] = run(line)
    with present(specs):
        for line in lines:
            ran = run(line)
            names = ", ".join(spec.name for spec in specs)
            assert same(_ALONE[line], ran), "\n".join([line, names, *difference(_ALONE[line], ran)])


WITH_COMMANDS = [page for page in PAGES if blocks(page, "sh")]


@pytest.mark.manual
@pytest.mark.parametrize("page", dict.fromkeys([*WITH_COMMANDS[::3], "docs/background.md", "docs/oracle.md"]))
def test_the_commands_of_the_manual_print_the_same(page: str, run: Run, tmp_path: Path) -> None:
    """All plugins are installed. Every third page and two more, because the commands of all take minutes.

    The `compare` of one page takes a minute; a shorter one is among `COMMANDS`. `--sensitivity` needs registers that no built-in
    estimator knows: one of the crowd answers, and a note names it.
    """
    words = [command for block in blocks(page, "sh") for command in commands(block)]
    words = [
        line for line in words if (page, line[0]) != ("docs/background.md", "compare") and "--sensitivity" not in line
    ]
    alone = [run(line) for line in words]
    fresh(tmp_path)
    with present(SPECS):
        for line, before in zip(words, alone, strict=True):
            ran = run(line)
            assert same(before, ran), "\n".join([str(line), *difference(before, ran)])


def test_a_name_of_a_built_in_plugin_is_checked_alone(run: Run) -> None:
    """`plugins check` and `show` would concern third parties' plugins of that name, too."""
    with present(SPECS):
        shown, listed = run("plugins show grid --json"), run("plugins list --json")
        asked = run(f"plugins show {HOME}7-grid/grid --json")
    assert [one["distribution"] for one in json.loads(shown.out)["plugins"]] == ["tilewright"]
    assert [one["distribution"] for one in json.loads(asked.out)["plugins"]] == [f"{HOME}7-grid"]
    assert sum(one["distribution"].startswith(HOME) for one in json.loads(listed.out)["plugins"]) == len(SPECS) >= 26

"""The modules that the manual's page on hooks shows: installed one by one, they do what the page says."""

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from support import ROOT
from support.command import Command, command
from tilewright.plugin import MapperSpec, installed
from tilewright.plugin.guard.calls import Owner
from tilewright.testing import cases

PAGE = ROOT / "docs" / "plugins" / "hooks.md"
Install = Callable[..., ModuleType]
MAP = ("map", "nk,km->nm; n=8 k=8 m=8", "--arch", "eyeriss", "--mapper", "random", "--evaluations", 40, "--no-cache")


def modules() -> dict[str, str]:
    texts = re.findall(
        r"^```python\n# (\w+)\.py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return dict(texts)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Install]:
    """`install("sink")` installs the page's module as a plugin of the caller, which runs in this process."""
    manager, owners, added = installed().manager, installed().owners, list[ModuleType]()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))

    def add(name: str, owner: Owner | None = None) -> ModuleType:
        (tmp_path / f"page_{name}.py").write_text(modules()[name], encoding="utf-8")
        importlib.invalidate_caches()
        module = importlib.import_module(f"page_{name}")
        manager.register(module, name=name)
        monkeypatch.setitem(owners, name, owner or Owner("plugin", name))
        added.append(module)
        return module

    yield add
    for module in added:
        manager.unregister(module)
        del sys.modules[module.__name__]


@pytest.fixture
def tilewright(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command(monkeypatch, capsys)


def test_the_page_has_these_modules() -> None:
    assert list(modules()) == ["progress", "sink", "section", "command", "check", "around"]


def test_a_progress_logger_tells_of_the_run_and_of_evaluations(tilewright: Command, install: Install) -> None:
    install("progress")
    ran = tilewright(*MAP, "--quiet", "--json")
    lines = [line for line in ran.err.splitlines() if "mappings, best" in line or "layers on" in line]
    assert ran.code == 0 and lines[0] == "1 layers on eyeriss by random"
    assert lines[-1].startswith("einsum: 40 mappings, best ") and len(lines) <= 4
    assert ran.data["layers"][0]["search"]["evaluated"] == 40


def test_a_sink_writes_a_row_for_each_search(tilewright: Command, install: Install, tmp_path: Path) -> None:
    install("sink")
    best = tilewright(*MAP, "--json").data["layers"][0]["best"]["edp"]
    (row,) = (tmp_path / "searches.csv").read_text().splitlines()
    name, value, *rest = row.rsplit(",", 3)
    assert float(value) == pytest.approx(best) and rest == ["40", "evaluations"] and name == "einsum"


def test_a_section_is_printed_and_in_the_page(tilewright: Command, install: Install, tmp_path: Path) -> None:
    install("section")
    ran = tilewright(*MAP, "-o", "run")
    assert ran.code == 0 and ran.err.count("Work") == 0
    assert re.search(r"^Work \(section\)\nMACs of all executions\nlayer +MACs\neinsum +512$", ran.out, re.MULTILINE)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<h2>Work (section)</h2>" in page and "MACs of all executions" in page


def test_a_subcommand_has_the_name_of_its_entry_point(tilewright: Command, install: Install) -> None:
    install("command", Owner("plugin", "small-edp", "tilewright-small", "1.0"))
    ran, wrong = tilewright("small-edp", MAP[1]), tilewright("small-edp")
    assert ran.code == 0 and float(ran.out) > 0
    assert wrong.code == 2 and "tilewright small-edp: missing argument 'workload'" in wrong.err.lower()
    assert "Print the least EDP" in tilewright("small-edp", "--help").out
    assert "`tilewright small-edp` runs its command" in tilewright("plugins").out


def test_a_check_runs_on_its_own_distribution_and_on_request(tilewright: Command, install: Install) -> None:
    install("check", Owner("plugin", "rules", "tilewright-rules", "1.0"))
    random = installed().find(MapperSpec, "random")
    alone, asked = cases(random), cases(random, checks_of=["rules"])
    assert len(asked) == len(alone) + 1 and asked[-1].outcome().status == "passed"
    wordy = replace(random, spec=replace(random.spec, summary="many words " * 9), distribution="tilewright-rules")
    assert cases(wordy)[-1].outcome().message == "the summary has 99 characters; write at most 60"
    ran = tilewright("plugins", "check", "random", "--with", "rule")
    assert ran.code == 2 and "no plugin 'rule' adds checks; did you mean 'rules'?" in ran.err


def test_a_wrapper_surrounds_the_checks_of_its_distribution(
    install: Install, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases(installed().find(MapperSpec, "random"))[0]
    install("around", Owner("plugin", "around", "tilewright-other", "1.0"))
    case.run()
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(installed().owners, "around", Owner("plugin", "around", "tilewright", "1.0"))
    case.run()
    assert re.fullmatch(rf"{case.check.name}: [\d.]+ s\n", capsys.readouterr().err)

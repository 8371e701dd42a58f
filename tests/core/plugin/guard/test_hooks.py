"""Hooks of third parties: in their process, at their limits, and never in the way of others."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from support.command import Command, command
from tilewright.application.api import sections
from tilewright.application.api.page.parts import document
from tilewright.application.api.page.parts import sections as shown
from tilewright.application.run.observing import RunObserver
from tilewright.errors import CallError
from tilewright.plugin import Budget, ObservedRun, Progress, Result, Section, hookimpl, installed
from tilewright.plugin.guard.calls import Owner
from tilewright.plugin.guard.processes import SECONDS

Install = Callable[..., None]
MAP = ("map", "nk,km->nm; n=8 k=8 m=8", "--arch", "eyeriss", "--mapper", "random", "--evaluations", 40, "--no-cache")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """`install(plugin, "map")` installs one as the entry point `map`, by default of a third party."""
    manager, added = installed().manager, list[object]()
    monkeypatch.setattr(sections, "_silenced", set())

    def add(plugin: object, name: str, distribution: str | None = "tilewright-odd") -> None:
        manager.register(plugin, name=f"{distribution}/{name}")
        monkeypatch.setitem(installed().owners, f"{distribution}/{name}", Owner("plugin", name, distribution, "1.5"))
        added.append(plugin)

    yield add
    for plugin in added:
        manager.unregister(plugin)


@pytest.fixture
def tilewright(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command(monkeypatch, capsys)


# -- hooks that observe ------------------------------------------------------------------------------------------------


@dataclass
class Diary:
    """Writes each note with the process that got it."""

    file: str

    def note(self, *words: object) -> None:
        with Path(self.file).open("a", encoding="utf-8") as file:
            print(os.getpid(), *words, file=file)

    @hookimpl
    def tilewright_run_started(self, run: ObservedRun) -> None:
        self.note("run", *run.layers, run.architecture, run.mapper, run.model, run.objective, run.budget.evaluations)

    @hookimpl
    def tilewright_layer_started(self, layer: str) -> None:
        self.note("layer", layer)

    @hookimpl
    def tilewright_evaluated(self, layer: str, progress: Progress) -> None:
        self.note("evaluated", layer, progress.evaluated)

    @hookimpl
    def tilewright_search_done(self, layer: str, result: Result) -> None:
        self.note("search", layer, result.evaluated)

    @hookimpl
    def tilewright_run_done(self, layers: tuple[str, ...]) -> None:
        self.note("done", *layers)


@pytest.mark.process
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_observer_hears_of_a_run_in_one_other_process(
    tilewright: Command, install: Install, tmp_path: Path, jobs: int
) -> None:
    install(Diary(str(tmp_path / "diary")), "diary")
    words = ("map", "union_dnn_layers", "--arch", "eyeriss", "--mapper", "random", "--evaluations", 60, "--no-cache")
    ran = tilewright(*words, "--jobs", jobs, "--json")
    lines = [line.split() for line in (tmp_path / "diary").read_text().splitlines()]
    names = [layer["name"] for layer in ran.data["layers"]]
    assert ran.code == 0 and len({process for process, *_ in lines}) == 1 and lines[0][0] != str(os.getpid())
    notes = [tuple(words) for _, *words in lines]
    assert notes[0] == ("run", *names, "eyeriss", "random", "timeloop", "edp", "60")
    assert notes[-1][0] == "done" and sorted(notes[-1][1:]) == sorted(names)
    for name in names:
        told = [words for words in notes if words[1:2] == (name,) and words[0] != "run" and words[0] != "done"]
        assert told[0] == ("layer", name) and told[-2:] == [("evaluated", name, "60"), ("search", name, "60")]


class Slow:
    @hookimpl
    def tilewright_evaluated(self) -> None:
        time.sleep(600)

    @hookimpl
    def tilewright_run_done(self) -> None:
        raise AssertionError("a plugin that failed is not called again")


@pytest.mark.process
def test_a_slow_hook_is_ended_named_once_and_changes_no_result(
    tilewright: Command, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tilewright(*MAP, "--json").data["layers"][0]["best"]
    monkeypatch.setenv(SECONDS, "0.5")
    install(Slow(), "slow")
    ran = tilewright(*MAP, "--json")
    assert ran.code == 0 and ran.data["layers"][0]["best"] == before
    assert ran.err.count("plugin 'slow' of tilewright-odd 1.5 failed: tilewright_evaluated took too long") == 1
    assert "AssertionError" not in ran.err


def test_without_an_observer_of_evaluations_searches_are_not_watched(install: Install, tmp_path: Path) -> None:
    run = ObservedRun(("layer",), "arch", "mapper", "model", "edp", Budget(1), 0)
    assert RunObserver(run).watching(None) is None
    install(Diary(str(tmp_path / "diary")), "diary")
    assert RunObserver(run).watching(None) is not None


class Failing:
    @hookimpl
    def tilewright_run_started(self) -> None:
        raise ZeroDivisionError("of no use")


def test_a_failure_at_the_start_is_a_warning_of_the_first_layer(tilewright: Command, install: Install) -> None:
    install(Failing(), "failing", None)
    ran = tilewright(*MAP, "--json")
    assert ran.code == 0
    assert ran.err.count("tilewright_run_started raised ZeroDivisionError: of no use") == 1


# -- sections ----------------------------------------------------------------------------------------------------------


class Sections:
    def __init__(self, *answer: Any) -> None:
        self.answer = list(answer)

    @hookimpl
    def tilewright_sections(self, kind: str, data: Mapping[str, Any]) -> list[Any]:
        assert kind == "network"
        return self.answer


def page(added: list[sections.AddedSection]) -> str:
    parts: dict[str, Any] = dict.fromkeys(("energy", "latency", "roofline", "convergence"))
    empty: dict[str, Any] = dict.fromkeys(("layers", "unmapped", "mapper_figures", "sensitivity"))
    return document(
        "network.html.jinja",
        "title",
        figures=[],
        charts=parts,
        mappings=[],
        provenance=[],
        sections=shown(added),
        **empty,
    )


def test_texts_and_cells_are_escaped_unless_the_plugin_says_html(install: Install) -> None:
    bold, rows = "<b>bold</b>", (("<i>x</i>", 1.5), ("y", None))
    install(
        Sections(
            Section(title="A <title>", text=bold, columns=("name", "value"), rows=rows),
            Section(title="Safe", text="<em>told</em>", safe=True),
        ),
        "odd",
        None,
    )
    added = sections.added_sections("network", {})
    text = page(added)
    assert "&lt;b&gt;bold&lt;/b&gt;" in text and bold not in text and "&lt;i&gt;x" in text and "A &lt;title&gt;" in text
    assert "<em>told</em>" in text
    printed = [part if isinstance(part, str) else part.lines(None) for part in added[0].printed()]
    assert printed == ["", "A <title> (odd)", bold, ["name      value", "<i>x</i>  1.500", "y             -"]]
    assert added[1].printed() == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (["text"], "tilewright_sections raised ValidationError: "),
        ([Section(title="t", columns=("a", "b"), rows=(("x",),))], "section 't' has 2 columns and a row of 1"),
        ([Section(title="t")] * 101, "returned 101 sections; at most 100 are shown"),
        ([{"title": "t", "text": "x" * 200_001}], "such as 0.text: expected at most 200,000 characters, not 200,001"),
        ([{"title": "", "text": "x"}], "such as 0.title: expected at least 1 character; it is empty"),
    ],
)
def test_what_is_no_section_is_named_and_left_out(
    install: Install, caplog: pytest.LogCaptureFixture, answer: list[Any], message: str
) -> None:
    name = f"odd-{len(message)}"
    install(Sections(*answer), name, None)
    install(Sections(Section(title="fine")), "well", None)
    assert [one.title for one in sections.added_sections("network", {})] == ["fine (well)"]
    assert [one.title for one in sections.added_sections("network", {})] == ["fine (well)"]
    told = [record.message for record in caplog.records if name in record.message]
    assert len(told) == 1 and message in told[0]


@pytest.mark.parametrize("answer", [5, "text", {"title": "t"}])
def test_no_list_of_sections_is_named(install: Install, caplog: pytest.LogCaptureFixture, answer: object) -> None:
    odd = Sections()
    odd.answer = answer  # type: ignore[assignment]
    install(odd, f"no-list-{answer}", None)
    assert sections.added_sections("network", {}) == []
    assert f"tilewright_sections returned a {type(answer).__name__}; expected a list of Section" in caplog.text


# -- subcommands -------------------------------------------------------------------------------------------------------


class Commands:
    def __init__(self, made: object) -> None:
        self.made = made

    @hookimpl
    def tilewright_command(self) -> object:
        return self.made


def several() -> typer.Typer:
    app = typer.Typer(help="Two commands.")

    @app.command()
    def one(code: int = 0) -> str:
        """Exit with a code."""
        if code:
            raise typer.Exit(code)
        print("one")
        return "no exit code"

    @app.command()
    def two(how: str) -> None:
        """Fail."""
        if how == "call":
            raise CallError("not so", hint="otherwise")
        raise KeyError(how)

    return app


def test_a_typer_app_is_a_group_of_commands_with_their_exit_codes(tilewright: Command, install: Install) -> None:
    install(Commands(several()), "mine")
    assert tilewright("mine", "one").out == "one\n" and tilewright("mine", "one", "--code", 7).code == 7
    text = tilewright("mine", "--help").out
    assert "Two commands." in text and "two" in text and "--install-completion" not in text
    assert "Two commands." in tilewright("tilewright-odd/mine", "--help").out
    refused, failed = tilewright("mine", "two", "call"), tilewright("mine", "two", "x")
    assert refused.code == 2 and refused.err == "error: not so\n  hint: otherwise\n"
    assert failed.code == 3
    assert "plugin 'mine' of tilewright-odd 1.5 failed: its command raised KeyError: 'x' at " in failed.err
    assert "no such command 'three'" in tilewright("mine", "three").err


def test_built_in_commands_stay_and_clashes_are_told_by_name(tilewright: Command, install: Install) -> None:
    install(Commands(several()), "map")
    install(Commands(several()), "both")
    install(Commands(several()), "both", "tilewright-other")
    assert "Map every distinct layer" in tilewright("map", "--help").out
    assert "Two commands." in tilewright("tilewright-odd/map", "--help").out
    clash = tilewright("both", "one")
    assert clash.code == 2
    assert "several plugins have a command 'both': tilewright-odd/both, tilewright-other/both" in clash.err
    hooks = {(row["distribution"], row["name"]): row["does"] for row in tilewright("plugins", "--json").data["hooks"]}
    assert hooks["tilewright-odd", "map"] == ["`tilewright tilewright-odd/map` runs its command (`map` is built in)"]
    told = "`tilewright tilewright-odd/both` runs its command (tilewright-other has `both`, too)"
    assert hooks["tilewright-odd", "both"] == [told]


@pytest.mark.parametrize("made", [None, 7])
def test_what_is_no_command_is_named(tilewright: Command, install: Install, made: object) -> None:
    install(Commands(made), "mine")
    ran = tilewright("mine")
    what = "None" if made is None else "a int"
    assert ran.code == 3
    assert f"tilewright_command returned {what}; expected a typer.Typer or a function" in ran.err


def test_other_commands_do_not_ask_for_a_command(tilewright: Command, install: Install) -> None:
    class Heavy:
        @hookimpl
        def tilewright_command(self) -> object:
            raise AssertionError("only a call of the command needs it")

    install(Heavy(), "heavy")
    assert tilewright("library", "archs").code == tilewright("plugins").code == 0
    assert re.search("its command|tilewright_command", tilewright("heavy").err)

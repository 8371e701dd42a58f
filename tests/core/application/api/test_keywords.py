"""Each setting is defined once: signatures, docstrings, options and the manual agree."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
import typer

import tilewright as tw
from support import ROOT
from support.command import command
from tilewright.application.api.keywords import REQUIRED, Setting, settings_of
from tilewright.application.api.settings import (
    CompareSettings,
    CorrelateSettings,
    ExploreSettings,
    FrontSettings,
    GenerateSettings,
    MapSettings,
)
from tilewright.application.cli import app

FUNCTIONS: dict[str, tuple[Callable[..., Any], type]] = {
    "map": (tw.map, MapSettings),
    "front": (tw.front, FrontSettings),
    "generate": (tw.generate, GenerateSettings),
    "compare": (tw.compare, CompareSettings),
    "correlate": (tw.correlate, CorrelateSettings),
    "explore": (tw.explore, ExploreSettings),
}
COMMANDS = ("map", "compare", "correlate", "explore")
HEAD = "| setting | default | effect |\n| --- | --- | --- |\n"


def options(command: str) -> dict[str, Any]:
    """The options of a command by each of their spellings."""
    found: Any = typer.main.get_command(app)
    return {spelled: parameter for parameter in found.commands[command].params for spelled in parameter.opts}


def row(setting: Setting) -> str:
    first, *others = setting.spelled
    spelled = " ".join(
        f"`{each}`"
        for each in (f"{first} {setting.metavar}".strip().replace("|", "\\|"), *others, *filter(None, [setting.off]))
    )
    name = "" if first == "--" + setting.name.replace("_", "-") else f"`{setting.name}`: "
    stated = "required" if setting.default is REQUIRED else f"`{setting.default}`"
    default = setting.unset or ("" if setting.default is None else stated)
    return f"| {name}{spelled} | {default} | {setting.help} |\n"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature_and_docstring_have_the_settings(name: str) -> None:
    function, kind = FUNCTIONS[name]
    settings = settings_of(kind)
    parameters = inspect.signature(function).parameters
    keywords = {each.name: each for each in parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert {each: keywords[each].default for each in keywords} == {each: settings[each].default for each in settings}
    assert all(keywords[each].annotation == settings[each].annotation for each in settings)

    documentation = " ".join((function.__doc__ or "").split())
    assert all(f" {each.name}: {each.help[:1].upper()}{each.help[1:]}." in documentation for each in settings.values())
    assert "**settings" not in documentation


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_has_an_option_for_each_setting(name: str) -> None:
    known = options(name)
    for setting in settings_of(FUNCTIONS[name][1]).values():
        for spelled in setting.spelled:
            assert spelled in known, (name, setting.name)
        option = known[setting.spelled[0]]
        if len(setting.spelled) == 1 and setting.name != "progress":
            assert (setting.option_help or setting.help) in option.help
            assert setting.negated or setting.default is REQUIRED or option.default == setting.default
            assert option.required == (setting.default is REQUIRED)


def test_the_manual_has_all_settings() -> None:
    takers: dict[Setting, list[str]] = {}
    for name, (_, kind) in FUNCTIONS.items():
        for setting in settings_of(kind).values():
            takers.setdefault(setting, []).append(name)
    groups: dict[str, str] = {}
    for setting, functions in takers.items():
        taken = "all" if len(functions) == len(FUNCTIONS) else ", ".join(functions)
        groups[taken] = groups.get(taken, f"| **{taken}** | | |\n") + row(setting)
    table = HEAD + "".join(groups.values())
    assert table in (ROOT / "docs/commands.md").read_text(encoding="utf-8"), f"docs/commands.md lacks:\n{table}"


def test_explore_takes_factors_and_patience(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tilewright = command(monkeypatch, capsys)
    words = ("explore", "nk,km->nm; n=17 k=17 m=17", "--space", "union_edge_aspects", "--points", "2", "--no-cache")
    search = ("--mapper", "random", "--evaluations", "400", "--objective", "cycles", "--json")
    perfect, ragged = (
        tilewright(*words, *search, "--factors", factors).data["points"][0]["cycles"]
        for factors in ("perfect", "ragged")
    )
    assert ragged < perfect
    short = tilewright(*words, "--mapper", "random", "--evaluations", "400", "--patience", "1", "--json").data
    assert short["points"][0]["edp"] > 0


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(tw.errors.CallError, match=r"compare\(\): missing a required argument: 'mappers'"):
        tw.compare("nk,km->nm; n=4 k=4 m=4", "eyeriss")  # type: ignore[call-arg]


def test_texts_are_one_line_each() -> None:
    for _, kind in FUNCTIONS.values():
        for setting in settings_of(kind).values():
            assert setting.help and not re.search(r"[.|\n]$|\n", setting.help)

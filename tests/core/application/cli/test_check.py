"""`tilewright plugins check`: the conformance kit from the command line."""

from support.command import Command
from tilewright.testing import checks_for, registrations_of


def test_a_plugin_that_keeps_its_promises(tilewright: Command) -> None:
    done = tilewright("plugins", "check", "exhaustive")

    assert done.code == 0
    assert "mapper tilewright/exhaustive  check_interface " in done.out and "failed" not in done.out
    number = len(checks_for(registrations_of("tilewright/exhaustive")[0].spec))
    assert number >= 22
    assert done.out.endswith(f"{number} of {number} checks passed\n")


def test_a_broken_promise_ends_with_3_and_says_which(tilewright: Command) -> None:
    done = tilewright("plugins", "check", "einsum")

    assert done.code == 3
    (line,) = [line for line in done.out.splitlines() if "check_frontend_loads_its_sources" in line]
    assert "failed" in line and "there is nothing to load" in line


def test_sources_and_json(tilewright: Command) -> None:
    done = tilewright("plugins", "check", "einsum", "--source", "nk,km->nm; n=4 k=5 m=6", "--json")

    assert done.code == 0
    assert {row["status"] for row in done.data["checks"]} == {"passed"}
    assert {row["plugin"] for row in done.data["checks"]} == {"tilewright/einsum"}


def test_options_reach_the_plugin(tilewright: Command) -> None:
    done = tilewright("plugins", "check", "random", "--option", "batch=0")

    assert done.code == 3
    assert "options of mapper 'random': batch: expected a value greater than or equal to 1" in done.out


def test_the_list_says_what_to_type_for_what_is_missing(tilewright: Command) -> None:
    rows = {row["name"]: row for row in tilewright("plugins", "--json").data["plugins"] if row["kind"] == "cost model"}
    assert (
        rows["timeloop_binary"]["missing"] == ["timeloop-model"]
        and "--model-option path=PATH" in rows["timeloop_binary"]["hint"]
    )
    shown = tilewright("plugins").out
    assert "quickflow" in shown and "Needs timeloop-model: install Timeloop" in shown


def test_one_plugin_is_shown_with_its_options(tilewright: Command) -> None:
    lines = tilewright("plugins", "show", "gamma").out.splitlines()
    assert lines[0].startswith("mapper gamma (tilewright ") and lines[2] == "  limits: none declared"
    assert lines[3] == "  interface: 1"
    assert [line.split()[:2] for line in lines[6:]] == [
        ["population", "500"], ["generations", "200"], ["elite", "0.1"], ["mutation", "0.5"],
    ]  # fmt: skip

"""`tilewright plugins check`: the conformance kit from the command line."""

from support.command import Command


def test_a_plugin_that_keeps_its_promises(tilewright: Command) -> None:
    done = tilewright("plugins", "check", "exhaustive")

    assert done.code == 0
    assert "mapper tilewright/exhaustive  check_interface  passed" in done.out
    assert done.out.endswith("13 of 13 promises kept\n")


def test_a_broken_promise_ends_with_3_and_says_which(tilewright: Command) -> None:
    done = tilewright("plugins", "check", "einsum")

    assert done.code == 3
    assert "check_frontend_loads_its_sources  failed: there is nothing to load" in done.out


def test_sources_and_json(tilewright: Command) -> None:
    done = tilewright("plugins", "check", "einsum", "--source", "nk,km->nm; n=4 k=5 m=6", "--json")

    assert done.code == 0
    assert {row["status"] for row in done.data["checks"]} == {"passed"}
    assert {row["plugin"] for row in done.data["checks"]} == {"tilewright/einsum"}


def test_options_reach_the_plugin(tilewright: Command) -> None:
    done = tilewright("plugins", "check", "random", "--option", "batch=0")

    assert done.code == 3
    assert "options of mapper 'random': batch: Input should be greater than or equal to 1" in done.out

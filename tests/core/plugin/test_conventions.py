"""Conventions: declared by topic, shown, and named where they may explain a count."""

import pytest

import tilewright as tw
from support.command import Command, command
from tilewright.plugin import TOPICS, CostModelSpec, lazy
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.conventions import conventions_of, differing
from tilewright.plugin.guard.specs import whole_spec

PROBLEM = """
name: line
operation: conv1d
dimensions: {P: 4, R: 3, C: 4}
tensors:
- {name: I, role: input, projection: [C, P + R]}
- {name: W, role: weight, projection: [C, R]}
- {name: O, role: output, projection: [P]}
"""
ARCH = """
name: pair
clusters:
- {name: D, memories: [{name: D, read_energy_pj: 8, write_energy_pj: 8, read_bandwidth_words_per_cycle: 1, write_bandwidth_words_per_cycle: 1}]}
- {name: G, memories: [{name: G, capacity_words: 64, read_energy_pj: 2, write_energy_pj: 2}], fanout: {size: 2}}
- {name: B, memories: [{name: B, capacity_words: 32, read_energy_pj: 1, write_energy_pj: 1}]}
compute: {energy_per_operation_pj: 0.5}
"""
MAPPING = """
entries:
- {target: D, keep: [I, W, O], temporal_tile_sizes: {P: 4, R: 3, C: 4}}
- {target: D, temporal_tile_sizes: {P: 2, R: 3, C: 2}, temporal_order: [C, P, R]}
- {target: G, keep: [I, W, O], temporal_tile_sizes: {P: 2, R: 3, C: 2}}
- {target: G, temporal_tile_sizes: {P: 2, R: 3, C: 2}, spatial_tile_sizes: {P: 1}}
- {target: B, keep: [I, W, O]}
- {target: B, temporal_tile_sizes: {P: 1, R: 1, C: 1}, temporal_order: [P, R, C]}
"""


def evaluated(*models: str) -> tw.EvaluationReport:
    parts = tw.Mapping.from_yaml(MAPPING), tw.Problem.from_yaml(PROBLEM), tw.Architecture.from_yaml(ARCH)
    return tw.evaluate(*parts, models=list(models))


def spec(conventions: object, **capabilities: int) -> CostModelSpec:
    able = Capabilities(**capabilities)  # type: ignore[arg-type]
    return CostModelSpec("m", "a model", lazy("a.b", "C"), capabilities=able, conventions=conventions)  # type: ignore[arg-type]


def test_only_known_topics_with_a_rule_are_accepted() -> None:
    good = spec({"halos": "each gets a copy"})
    assert whole_spec(good) == good
    for odd in ({"halo": "x"}, {"halos": ""}, {"halos": 3}, ["halos"]):
        with pytest.raises(ValueError, match="conventions of 'm' is .* partial sums, multicast, halos"):
            whole_spec(spec(odd))


def test_capabilities_state_the_copies_of_a_tile() -> None:
    assert conventions_of(spec({})) == {"buffers": "one copy of each tile below the outermost memory"}
    assert conventions_of(spec({}, tile_copies=2))["buffers"].startswith("2 copies")


def test_every_built_in_model_has_a_rule_for_every_topic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    for name in ("timeloop", "pipelined", "maestro", "oracle", "zigzag", "timeloop_binary"):
        (shown, *_) = run("plugins", "show", name, "--json").data["plugins"]
        assert list(shown["conventions"]) == list(TOPICS)
    text = run("plugins", "show", "maestro").out
    assert "every step sends its output tile" in text and "2 copies of each tile" in text


def test_models_differ_where_a_rule_does() -> None:
    assert differing({"a": {"halos": "x", "DRAM": "y"}, "b": {"DRAM": "y"}}) == ["halos"]


def test_evaluate_names_what_may_explain_a_count() -> None:
    """The sliding window costs `timeloop` 40 words of I, one copy per neighbour; an execution reads 28."""
    report = evaluated("timeloop", "oracle", "maestro")
    rows = {(row["level"], row["tensor"], row["action"]): row["causes"] for row in report.differences()}
    causes = {count: {cause["code"]: cause["message"] for cause in listed} for count, listed in rows.items()}
    halo = causes["G", "I", "reads"]
    shared, first = (cause["message"] for cause in rows["G", "I", "reads"] if cause["code"] == "halo")
    assert shared.startswith("timeloop: neighbours' tiles overlap along P (halo): each gets a copy;")
    assert first.startswith("maestro: neighbours' tiles overlap along P (halo): each gets a copy in the first step")
    assert halo["halos"] == "convention on halos: timeloop | oracle | maestro"
    assert causes["G", "O", "fills"] == {"partial sums": "convention on partial sums: timeloop, oracle | maestro"}
    assert causes["D", "I", "reads"] == {"no_count": "no such count by maestro"}
    assert causes["B", "W", "reads"] == {}
    text = str(report)
    assert text.count("not explained by a declared convention") == sum(not listed for listed in causes.values())


def test_what_both_models_approximate_alike_explains_nothing() -> None:
    rows = evaluated("timeloop", "pipelined").differences()
    assert rows == [] and "declared conventions" not in str(evaluated("timeloop", "pipelined"))


def test_evaluate_says_what_binds_the_cycles() -> None:
    report = evaluated("timeloop", "maestro")
    (timeloop, maestro) = report.data()["limits"]
    assert (timeloop["limit"], timeloop["binding_cycles"], timeloop["words"]) == ("D reads", 40, 40)
    assert (maestro["limit"], maestro["binding_cycles"], maestro["others"]) == (
        "off-chip reads",
        72,
        {"timeloop": None},
    )
    assert "what sets the cycles of line" in str(report) and "timeloop: no such limit" in str(report)
    assert evaluated("timeloop", "oracle").data()["limits"] == []  # 40 cycles under both
    assert "conventions" not in evaluated("timeloop").data()

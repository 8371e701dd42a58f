"""One rule for failure: a refusal and a crash are reports, also where the best mapping of a search is explained."""

from dataclasses import replace
from typing import Any

import pytest

import tilewright as tw
from tilewright.application.run.evaluation import (
    bind,
    build_model,
    evaluate,
    evaluate_directives,
    evaluate_group,
    reasons_of,
)
from tilewright.errors import InputError, InvalidMappingError, NotConformableError, PluginError, Reason
from tilewright.plugin import Costs
from tilewright.plugin.program import Program, ProgramLayer, Tiles
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.density import Density
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.sparse import Saving, SparseMemory

PROBLEM = tw.load("nk,km->nm; n=4 k=4 m=4", "problem")
ARCHITECTURE = tw.library.architecture("union_edge")
MAPPING = tw.space(PROBLEM, ARCHITECTURE).enumerate(1).__next__()[0]
REASON = Reason(code="c", where="w", message="m")


class Failing:
    """A cost model that raises in one of its methods."""

    def __init__(self, where: str, error: Exception) -> None:
        self.where, self.error = where, error

    def bind(self, problem: object, architecture: object) -> "Failing":
        if self.where == "bind":
            raise self.error
        return self

    def explain(self, mapping: object) -> tw.Report:
        raise self.error

    def evaluate_batch(self, batch: Any) -> Costs:
        import numpy as np

        return Costs(np.ones(len(batch), np.bool_), np.ones(len(batch)), np.ones(len(batch)))


@pytest.mark.parametrize("where", ["bind", "explain"])
@pytest.mark.parametrize(
    ("error", "codes"),
    [
        (RuntimeError("boom"), ["plugin_failed"]),
        (PluginError("boom", hint="type this"), ["plugin_failed"]),
        (NotConformableError("x", [REASON, REASON]), ["c", "c"]),
        (InvalidMappingError([REASON]), ["c"]),
        (InputError("boom"), ["input"]),
    ],
)
def test_every_failure_is_a_report(where: str, error: Exception, codes: list[str]) -> None:
    report = evaluate(build_model(Failing(where, error)), PROBLEM, ARCHITECTURE, MAPPING)  # type: ignore[arg-type]

    assert not report.valid and report.macs == 64 and report.edp is None and report.model == "Failing"
    assert [reason.code for reason in report.reasons] == codes


def test_what_is_not_installed_is_a_report_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    model = build_model("timeloop_binary")
    report = evaluate(model, PROBLEM, ARCHITECTURE, MAPPING)

    assert model.model is None and [reason.code for reason in report.reasons] == ["plugin_failed"]
    with pytest.raises(PluginError):
        bind(model, PROBLEM, ARCHITECTURE)


def test_a_hint_is_kept() -> None:
    assert "boom; type this" in str(reasons_of(PluginError("boom", hint="type this"))[0])


def test_a_best_mapping_that_is_not_explained_is_the_layers_error() -> None:
    report = tw.map(PROBLEM, ARCHITECTURE, model=Failing("explain", ValueError("oh")), evaluations=20)  # type: ignore[arg-type]
    (layer,) = report.layers

    assert layer.result is not None and layer.report is None and isinstance(layer.error, PluginError)
    assert "does not explain the best mapping found" in str(layer.error) and "ValueError: oh" in str(layer.error)


class OtherProgram:
    """A program of one layer in a notation that no cost model knows."""

    name = "other"
    layers: tuple[ProgramLayer, ...] = (PROBLEM,)

    def __init__(self, tiles: object) -> None:
        self.found = tiles

    def architecture(self) -> tw.Architecture:
        return ARCHITECTURE

    def problem(self, layer: int) -> tw.Problem:
        return PROBLEM

    def tiles(self, layer: int) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def test_models_of_mappings_evaluate_the_tiles_of_any_program() -> None:
    program = OtherProgram(Tiles(PROBLEM, ARCHITECTURE, MAPPING, ("rows are left out",)))
    (report,) = evaluate_directives(build_model("timeloop"), program)

    plain = evaluate(build_model("timeloop"), PROBLEM, ARCHITECTURE, MAPPING)
    assert isinstance(program, Program) and plain.valid
    assert report == plain.model_copy(update={"warnings": ("rows are left out", *plain.warnings)})


def test_a_model_refuses_a_program_in_another_notation() -> None:
    (report,) = evaluate_directives(build_model("maestro"), OtherProgram(None))

    assert not report.valid and report.macs == 64 and [reason.code for reason in report.reasons] == ["notation"]


@pytest.mark.parametrize(
    ("tiles", "code", "words"),
    [
        (None, "plugin_failed", "program 'other' failed: its Tiles is None"),
        (KeyError("K"), "plugin_failed", "program 'other' failed: its Tiles raised KeyError: 'K'"),
        (NotConformableError("x", [REASON]), "c", "m"),
    ],
)
def test_a_program_without_tiles_is_a_report_too(tiles: object, code: str, words: str) -> None:
    (report,) = evaluate_directives(build_model("timeloop"), OtherProgram(tiles))

    assert not report.valid and [reason.code for reason in report.reasons] == [code]
    assert words in report.reasons[0].message


SPARSE_MEMORY = SparseMemory(actions=(Saving(skip="weight", when_empty=("input",)),))


@pytest.mark.parametrize("name", sorted(each.spec.name for each in installed().of_kind(CostModelSpec)))
def test_a_model_that_does_not_count_sparse_hardware_refuses_it(name: str) -> None:
    sparse = ARCHITECTURE.with_memories(lambda memory: memory.model_copy(update={"sparse": SPARSE_MEMORY}))
    model = build_model(name)
    if model.capabilities.sparse or model.model is None:
        return
    with pytest.raises(NotConformableError, match=r"--dense.*\[sparse\]") as refused:
        bind(model, PROBLEM, sparse)
    (reason,) = [each for each in refused.value.reasons if each.code == "sparse"]
    assert reason.where == ", ".join(sparse.sparse_parts)


def test_densities_alone_change_nothing_and_a_warning_says_so() -> None:
    tensors = tuple(tensor.model_copy(update={"density": Density(density=0.5)}) for tensor in PROBLEM.tensors)
    dense = evaluate(build_model("timeloop"), PROBLEM, ARCHITECTURE, MAPPING)
    sparse = evaluate(build_model("timeloop"), PROBLEM.model_copy(update={"tensors": tensors}), ARCHITECTURE, MAPPING)
    assert dense.valid and (sparse.energy_pj, sparse.cycles) == (dense.energy_pj, dense.cycles)
    (told,) = set(sparse.warnings) - set(dense.warnings)
    assert told.startswith("densities of ") and "no part of" in told


DIAGONAL = """
name: three
dimensions: {m: 6, k: 3}
tensors:
- {name: A, role: input, projection: [m, k]}
- {name: D, role: output, projection: [m, m]}
"""


@pytest.mark.parametrize(("model", "count"), [("timeloop", 1), ("oracle", 0)])
def test_layers_and_groups_have_one_warning_on_a_dimension_of_two_coordinates(model: str, count: int) -> None:
    problem = tw.Problem.from_yaml(DIAGONAL)
    memories = [{"name": name, "read_energy_pj": 1, "write_energy_pj": 1} for name in ("DRAM", "Buffer")]
    clusters = [{"name": memory["name"], "memories": [memory]} for memory in memories]
    architecture = tw.Architecture.model_validate(
        {"name": "two", "clusters": clusters, "compute": {"energy_per_operation_pj": 1}}
    )
    mapping = next(tw.space(problem, architecture).enumerate(1))[0]
    group = tw.GroupMapping.of(problem, architecture, mapping)
    one, several = (
        tw.evaluate(mapping, problem, architecture, models=model),
        tw.evaluate(group, models=model),
    )
    warnings = [[text for text in each.reports[0].warnings if "diagonal" in text] for each in (one, several)]

    assert all(each.reports[0].valid for each in (one, several)) and warnings[0] == warnings[1]
    assert [f"{problem.name}: m moves several coordinates of D"] * count == [text.split(",")[0] for text in warnings[0]]


@pytest.mark.parametrize("home", ["others", None])
def test_a_report_has_the_name_of_its_plugin(home: str | None) -> None:
    """Another package's model cannot call itself as a built-in one. An object from the caller may have any name."""
    timeloop = build_model("timeloop")
    record = PluginRecord(name="timeloop", distribution=home, version="1")
    other = replace(timeloop, name="others/timeloop", record=record)
    group = tw.GroupMapping.of(PROBLEM, ARCHITECTURE, MAPPING)
    reports = [evaluate(other, PROBLEM, ARCHITECTURE, MAPPING), evaluate_group(replace(other, model=None), group)]
    assert [report.model for report in reports] == ["others/timeloop" if home else "timeloop", "others/timeloop"]

"""`evaluate`: every form of a mapping, several models, and failures that are reports."""

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright import errors

EXAMPLES = Path(__file__).parents[4] / "examples"
GEMM = "nk,km->nm; n=4 k=4 m=4"


@pytest.fixture(scope="module")
def layer() -> tw.MappedLayer:
    return tw.map(GEMM, arch="union_edge", evaluations=100, cache=False).layers[0]


def test_every_form_of_a_mapping_has_the_same_figures(layer: tw.MappedLayer, tmp_path: Path) -> None:
    assert layer.mapping is not None and layer.architecture is not None
    whole = tw.MappedProblem(mapping=layer.mapping, problem=layer.problem, architecture=layer.architecture)
    plain = tw.Mapping.from_yaml(layer.mapping.to_yaml())
    (tmp_path / "whole.yaml").write_text(whole.to_yaml())
    (tmp_path / "plain.yaml").write_text(plain.to_yaml())
    found = [
        tw.evaluate(layer),
        tw.evaluate(layer.mapping),
        tw.evaluate(whole),
        tw.evaluate(whole.to_data()),
        tw.evaluate(tmp_path / "whole.yaml"),
        tw.evaluate(plain, GEMM, "union_edge"),
        tw.evaluate(plain.to_data(), problem=layer.problem, arch=layer.architecture),
        tw.evaluate(str(tmp_path / "plain.yaml"), GEMM, arch="union_edge"),
    ]

    assert [each.reports[0].edp for each in found] == [layer.edp] * len(found)


def test_another_architecture_may_be_given(layer: tw.MappedLayer) -> None:
    assert layer.architecture is not None
    doubled = layer.architecture.replace({"DRAM.read_energy_pj": 2 * layer.architecture.memories[0].read_energy_pj})

    assert (tw.evaluate(layer, arch=doubled).reports[0].energy_pj or 0) > (layer.energy_pj or 0)


def test_several_models_stand_side_by_side(layer: tw.MappedLayer) -> None:
    report = tw.evaluate(layer, models=["timeloop", "oracle"])
    assert [each.model for each in report.reports] == ["timeloop", "oracle"]
    assert report["oracle"] is report.reports[1] and report.data()["differences"] == report.differences()
    assert "agree on every count" in str(report) or "where they differ" in str(report)
    assert list(report.to_frame()["model"]) == ["timeloop", "oracle"]
    assert "<td" in report._repr_html_() and repr(report) == "<EvaluationReport: timeloop on einsum, oracle on einsum>"
    with pytest.raises(KeyError):
        report["maestro"]


def test_one_model_gives_its_account(layer: tw.MappedLayer) -> None:
    text = str(tw.evaluate(layer))
    assert "einsum on union_edge by timeloop: 64 MACs" in text and "limited by" in text and str(layer.mapping) in text
    assert "words per instance" not in text and "words per instance" in str(tw.evaluate(layer).explained())
    (report,) = tw.evaluate(layer).reports
    assert {"level", "tensor", "reads"} <= set(report.to_frame().columns)


def test_files_of_another_tool() -> None:
    found = tw.evaluate(EXAMPLES / "union_figure_5.yaml", notation="union", models=["timeloop", "oracle"])
    assert all(report.valid for report in found.reports)


class Broken:
    def bind(self, problem: object, architecture: object) -> "Broken":
        return self

    def explain(self, mapping: object) -> tw.Report:
        raise RuntimeError("splash")

    evaluate_batch = explain


class Unwilling(Broken):
    def bind(self, problem: object, architecture: object) -> "Broken":
        raise RuntimeError("no wish")


@pytest.mark.parametrize(
    ("model", "said"),
    [(Broken(), "explain raised RuntimeError: splash"), (Unwilling(), "bind raised RuntimeError: no wish")],
)
def test_a_crash_is_a_report_that_names_the_model(layer: tw.MappedLayer, model: Any, said: str) -> None:
    report = tw.evaluate(layer, models=[model, "timeloop"])
    (reason,) = report.reports[0].reasons
    assert not report.reports[0].valid and report.reports[1].valid and report.failures == ()
    assert reason.code == "plugin_failed" and f"'{type(model).__name__}' failed: {said}" in str(reason)
    assert len(tw.evaluate(layer, models=model).failures) == 1


def test_a_refusal_is_a_report_with_its_reasons(layer: tw.MappedLayer) -> None:
    report = tw.evaluate(layer, models="oracle", model_options={"max_operations": 10})
    assert not report.reports[0].valid and "expected at most 10" in str(report) and report.failures == ()


@pytest.mark.parametrize(
    ("mapping", "words", "said"),
    [
        (EXAMPLES / "gemm.mapping.yaml", {}, "contains only a mapping\n  hint: add problem="),
        (EXAMPLES / "gemm.mapping.yaml", {"problem": GEMM}, "add arch="),
        ("absent.yaml", {}, "there is no file absent.yaml"),
        (["a.yaml", "b.yaml"], {}, "there is no file a.yaml"),
        ([], {"notation": "timeloop"}, "no files to read are given"),
        ("a.yaml", {"notation": "timelop"}, "did you mean 'timeloop'"),
        (tw.library.architecture("eyeriss"), {}, "expected mapping, not an object of type Architecture"),
    ],
)
def test_what_is_missing_is_told(mapping: Any, words: Any, said: str) -> None:
    with pytest.raises(errors.TilewrightError) as raised:
        tw.evaluate(mapping, **words)
    assert said in str(raised.value)


def test_a_layer_without_mapping_is_told() -> None:
    layer = tw.map("nk,kj,jm->nm; n=2 k=2 j=2 m=2", arch="eyeriss", model="maestro", evaluations=10).layers[0]
    with pytest.raises(errors.InputError, match="einsum has no mapping"):
        tw.evaluate(layer)


def test_a_file_of_another_tool_without_a_mapping_is_no_mapping_of_ours() -> None:
    with pytest.raises(errors.InputError, match="arch.yaml: no problem in these files"):
        tw.evaluate(EXAMPLES / "timeloop" / "arch.yaml")

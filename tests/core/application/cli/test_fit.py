"""`fit`: which cost models fit an architecture, before any search."""

import pytest

import tilewright as tw
from support.command import Command


def test_models_that_fit_and_those_that_do_not_with_what_to_do() -> None:
    report = tw.fit("tpu_v1", models=["timeloop", "maestro"])
    assert report.fitting == ["timeloop"]
    rows = {(row["model"], row["problem"]): row for row in report.rows()}
    assert rows["timeloop", "convolution"]["fits"] and rows["timeloop", "convolution"]["hint"] is None
    refused = rows["maestro", "matrix product"]
    assert not refused["fits"] and refused["reasons"][0]["code"] == "bypass" and refused["hint"] == "use timeloop"
    assert tw.fit("union_edge", models="timeloop,maestro").fitting == ["timeloop", "maestro"]


def test_layers_of_a_workload_are_asked_one_by_one() -> None:
    report = tw.fit("union_edge", "quickflow_convs", models=["maestro"])
    fits = {each.problem: each.fits for each in report.fits}
    assert len(fits) == 20 and fits["I"] and not fits["XVI"]
    assert "XVI, XVII" in str(report) and "choose another model or another architecture" in str(report)


def test_a_plugin_that_is_not_installed_says_what_to_install(tilewright: Command) -> None:
    done = tilewright("plugins", "fit", "tpu_v1", "--models", "timeloop_binary")
    assert done.code == 3 and "install Timeloop" in done.out
    assert tilewright("plugins", "fit", "tpu_v1", "--json").data["fitting"] == ["oracle", "pipelined", "timeloop"]


def test_compare_names_models_that_fit_no_layer_before_the_search(
    tilewright: Command, caplog: pytest.LogCaptureFixture
) -> None:
    line = ("compare", "nk,km->nm; n=4 k=4 m=4", "--arch", "tpu_v1", "--mappers", "local", "--models")
    done = tilewright(*line, "timeloop,maestro")
    assert done.code == 0 and "left out: cost models that do not fit on tpu_v1" in done.out
    table, left_out = done.out.split("left out")
    assert "maestro" not in table and "bypass" in left_out and "use timeloop" in left_out
    assert "cost model maestro does not fit tpu_v1" in caplog.text


def test_compare_names_a_model_that_does_not_fit_a_layer_once(tilewright: Command) -> None:
    layers = "bert_base/encoder.attention.scores", "bert_base/pooler"
    line = ("compare", *layers, "--arch", "union_edge", "--mappers", "random,local", "--models", "timeloop,maestro")
    table, left_out = tilewright(*line, "--evaluations", 50).out.split("left out")
    searches = [row.split() for row in table.splitlines() if " random " in row or " local " in row]

    assert len(searches) == 6 and sum("maestro" in row for row in searches) == 2
    assert "batched" not in table and left_out.count("batched") == 1

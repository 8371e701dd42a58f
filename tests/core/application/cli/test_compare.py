"""`tilewright compare`: every mapper by every model; every failure is a row with a reason."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import EXAMPLE_FILES, interrupts
from support.command import Command
from tilewright.plugin.costmodel import ScalarEvaluator
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright.plugin.registry import Registry, installed
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.reports import Report
from tilewright.schema.mapping import Mapping

pytestmark = pytest.mark.process

LAYERS = """
kind: workload
name: two
layers:
  - problem: &gemm
      name: first
      operation: gemm
      dimensions: {M: 4, N: 2, K: 4}
      tensors:
        - {name: A, role: input, projection: [M, K]}
        - {name: B, role: weight, projection: [K, N]}
        - {name: Z, role: output, projection: [M, N]}
  - problem:
      name: second
      operation: contraction
      dimensions: {M: 2, N: 2, K: 2}
      tensors:
        - {name: A, role: input, projection: [M, K]}
        - {name: B, role: weight, projection: [K, N]}
        - {name: Z, role: output, projection: [M, N]}
"""


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    path = tmp_path / "layers.yaml"
    path.write_text(LAYERS)
    return path


class Interrupting:
    """Mapper that proposes one good batch, followed by Ctrl-C."""

    def search(self, task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 50)
        interrupts.press()


class Crashing:
    def search(self, task: Task, run: Run) -> Proposals:
        yield from self.crash()

    def crash(self) -> Proposals:
        raise RuntimeError("boom")


class Unwilling(ScalarEvaluator):
    """A model that is asked, and crashes on every explanation of another's mapping."""

    def bind(self, problem: object, architecture: object) -> "Unwilling":
        return self

    def explain(self, mapping: Mapping) -> Report:
        raise RuntimeError("splash")


class Slow(Unwilling):
    """Cost model with a Ctrl-C during its evaluation."""

    def explain(self, mapping: Mapping) -> Report:
        interrupts.press()
        raise AssertionError("nobody hears")


@pytest.fixture
def third_parties() -> Iterator[Registry]:
    registry = installed()
    before = list(registry.registrations)
    for spec in (
        MapperSpec(name="interrupting", summary="", factory=lambda options: Interrupting()),
        MapperSpec(name="crashing", summary="", factory=lambda options: Crashing()),
        MapperSpec(name="needy", summary="", factory=lambda options: Crashing(), needs=("no_such_module",), hint="no"),
        CostModelSpec(name="unwilling", summary="", factory=lambda options: Unwilling()),
        CostModelSpec(name="slow", summary="", factory=lambda options: Slow()),
        CostModelSpec(name="absent", summary="", factory=lambda options: Unwilling(), needs=("no_such_module",)),
    ):
        registry.add(spec, "tilewright")  # which searches in this process, where Ctrl-C is pressed
    with interrupts.heard():
        yield registry
    registry.registrations = before


def rows(ran: Any) -> dict[tuple[str, str, str], Any]:
    return {(row["layer"], row["mapper"], row["guide"]): row for row in ran.data["rows"]}


WORDS = ("--arch", "union_edge", "--evaluations", "300", "--no-cache")


def test_every_mapper_by_every_model_evaluated_by_all(tilewright: Command, layers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ran = tilewright(
        "compare", layers, *WORDS, "--mappers", "random,local", "--models", "timeloop,oracle", "-o", folder, "--json"
    )  # fmt: skip
    assert ran.code == 0, ran.err
    found = rows(ran)
    assert set(found) == {
        (layer, mapper, model)
        for layer in ("first", "second")
        for mapper in ("random", "local")
        for model in ("timeloop", "oracle")
    }
    for row in found.values():
        assert row["valid"] and [price["model"] for price in row["prices"]] == ["timeloop", "oracle"]
        again = tilewright("evaluate", "--mapping", folder / row["mapping_file"], "--model", "oracle", "--json")
        assert again.data["results"][0]["edp"] == row["prices"][1]["edp"]
    for layer in ("first", "second"):  # the same samples: no model beats another by its own measure
        for number, model in enumerate(("timeloop", "oracle")):
            own = found[layer, "random", model]["prices"][number]["edp"]
            assert own <= min(
                found[layer, "random", other]["prices"][number]["edp"] for other in ("timeloop", "oracle")
            )
    assert json.loads((folder / "compare.json").read_text()) == ran.data
    with (folder / "compare.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 16 and all(line["valid"] == "True" and float(line["edp"]) > 0 for line in lines)


def test_refusals_are_rows_with_reasons(tilewright: Command, layers: Path) -> None:
    ran = tilewright("compare", layers, *WORDS, "--mappers", "local", "--models", "timeloop,maestro", "--json")
    assert ran.code == 0, ran.err
    second = rows(ran)["second", "local", "timeloop"]
    assert second["valid"] and not second["prices"][1]["valid"]
    assert second["prices"][1]["reasons"][0]["code"] == "operation"
    assert rows(ran)["second", "local", "maestro"]["reasons"]


def test_the_table_names_the_best(tilewright: Command, layers: Path) -> None:
    ran = tilewright("compare", layers, *WORDS, "--mappers", "random,local", "--models", "timeloop")
    assert ran.code == 0 and " 1.00 " in ran.out and "EDP by each model" in ran.out


@pytest.mark.parametrize(
    ("mapper", "said"), [("crashing", "boom"), ("needy", "needs no_such_module, which is not installed")]
)
def test_broken_mappers_are_rows(
    tilewright: Command, layers: Path, third_parties: Registry, mapper: str, said: str
) -> None:
    ran = tilewright("compare", layers, *WORDS, "--mappers", f"{mapper},local", "--models", "timeloop", "--json")
    assert ran.code == 0, ran.err
    row = rows(ran)["first", mapper, "timeloop"]
    assert not row["valid"] and said in row["reasons"][0]["message"]
    assert rows(ran)["first", "local", "timeloop"]["valid"]


@pytest.mark.parametrize(("mappers", "model"), [("crashing,needy", "timeloop"), ("local", "unwilling")])
def test_where_all_rows_are_failures_the_code_is_theirs(
    tilewright: Command, layers: Path, third_parties: Registry, mappers: str, model: str
) -> None:
    ran = tilewright("compare", layers, *WORDS, "--mappers", mappers, "--models", model, "--json")
    assert ran.code == 3 and len(ran.data["rows"]) == 2 * len(mappers.split(","))


@pytest.mark.parametrize(("model", "said"), [("unwilling", "splash"), ("absent", "no_such_module")])
def test_broken_models_are_rows(
    tilewright: Command, layers: Path, third_parties: Registry, tmp_path: Path, model: str, said: str
) -> None:
    ran = tilewright(
        "compare", layers, *WORDS, "--mappers", "local", "--models", f"timeloop,{model}", "--json", "-o", tmp_path / "o"
    )  # fmt: skip
    assert ran.code == 0, ran.err
    own, costs = rows(ran)["first", "local", model], rows(ran)["first", "local", "timeloop"]
    assert not own["valid"] and said in own["reasons"][0]["message"]
    assert costs["prices"][0]["valid"] and said in costs["prices"][1]["reasons"][0]["message"]
    assert said in (tmp_path / "o" / "compare.csv").read_text()


def test_an_interruption_keeps_what_is_done(
    tilewright: Command, layers: Path, third_parties: Registry, tmp_path: Path
) -> None:
    ran = tilewright(
        "compare", layers, *WORDS, "--mappers", "local,interrupting,random", "--models", "timeloop", "--json", "-o", tmp_path
    )  # fmt: skip
    assert ran.code == 130 and "interrupted: 3 of 6 searches were not run" in ran.err
    assert not ran.data["complete"]
    assert list(rows(ran)) == [
        ("first", "local", "timeloop"),
        ("second", "local", "timeloop"),
        ("first", "interrupting", "timeloop"),
    ]
    assert rows(ran)["first", "interrupting", "timeloop"]["valid"]
    assert len(list(tmp_path.glob("*_timeloop.yaml"))) == 3 and (tmp_path / "compare.csv").is_file()


def test_an_interruption_of_the_last_search_is_one(tilewright: Command, layers: Path, third_parties: Registry) -> None:
    ran = tilewright(
        "compare", f"{layers}/first", *WORDS, "--mappers", "interrupting", "--models", "timeloop", "--json"
    )
    assert ran.code == 130 and not ran.data["complete"] and ran.data["rows"][0]["valid"]
    assert "interrupted: the best mapping so far is shown for first by interrupting" in ran.err


def test_an_interruption_while_evaluating_keeps_the_mapping(
    tilewright: Command, layers: Path, third_parties: Registry, tmp_path: Path
) -> None:
    ran = tilewright(
        "compare", layers, *WORDS, "--mappers", "local", "--models", "timeloop,slow", "--json", "-o", tmp_path
    )  # fmt: skip
    assert ran.code == 130 and not ran.data["complete"]
    (row,) = ran.data["rows"]
    assert row["prices"][0]["valid"] and "interrupted" in row["prices"][1]["reasons"][0]["message"]
    assert (tmp_path / row["mapping_file"]).is_file()


@pytest.mark.parametrize(
    ("mappers", "models", "said"),
    [
        ("randm", "timeloop", "did you mean 'random'"),
        ("random", "timelop", "did you mean 'timeloop'"),
        ("random,random", "timeloop", "distinct names"),
        (",", "timeloop", "names separated by commas"),
    ],
)
def test_wrong_calls_say_what_is_wrong(tilewright: Command, layers: Path, mappers: str, models: str, said: str) -> None:
    ran = tilewright("compare", layers, *WORDS, "--mappers", mappers, "--models", models)
    assert ran.code == 2 and said in ran.err and "Traceback" not in ran.err


def test_the_manuals_example_is_accepted_by_all_its_models(tilewright: Command) -> None:
    example = EXAMPLE_FILES / "three_layers.workload.yaml"
    ran = tilewright(
        "compare", example, "--arch", "union_edge", "--evaluations", "500", "--no-cache",
        "--mappers", "gamma", "--models", "maestro,timeloop", "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    for layer in ("conv_3x3", "conv_1x1", "gemm"):
        assert all(price["valid"] for price in rows(ran)[layer, "gamma", "maestro"]["prices"])


def test_options_are_for_all_or_for_one(tilewright: Command, layers: Path) -> None:
    words = ("compare", layers, "--arch", "union_edge", "--mappers", "gamma,random", "--evaluations", 90, "--no-cache")
    ran = tilewright(
        *words, "--mapper-option", "gamma.population=4", "--mapper-option", "gamma.generations=1", "--json"
    )
    assert rows(ran)["first", "gamma", "timeloop"]["search"]["evaluated"] < 20
    assert rows(ran)["first", "random", "timeloop"]["search"]["evaluated"] == 90
    told = tilewright(*words, "--mapper-option", "population=4")
    assert told.code == 2 and "options of mapper 'random': population: unknown option" in told.err
    assert "NAME.KEY=VALUE" in told.err
    absent = tilewright(*words, "--mapper-option", "local.width=4")
    assert absent.code == 2 and "'local' is not one of gamma, random" in absent.err and "the mappers" in absent.err


def test_a_network_may_be_given_its_sizes(tilewright: Command) -> None:
    words = ("--arch", "eyeriss", "--mappers", "local", "--batch", 2, "--json", "--quiet")
    ran = tilewright("compare", "squeezenet", *words)
    assert ran.code == 0 and ran.err == "" and ran.data["rows"][0]["macs"] == 2 * 21_290_688

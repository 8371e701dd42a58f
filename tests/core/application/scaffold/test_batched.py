"""The cost model in batches that `plugins new costmodel --batch` writes: right in every check, and optima are proved under it."""

import importlib
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.command import Command, command
from tilewright.application.scaffold import Kind
from tilewright.application.scaffold.package import new_package
from tilewright.plugin import CostModelSpec, Registry, installed
from tilewright.schema.objective import ObjectiveName
from tilewright.testing import check_plugin

MODULE = "tilewright_fast_roof"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """`written("model")` imports a module of the package."""
    new_package(Kind.costmodel, "fast-roof", Registry(), batch=True).save(tmp_path / "package")
    monkeypatch.syspath_prepend(tmp_path / "package" / "src")
    importlib.invalidate_caches()
    metadata = tmp_path / "package" / "src" / "tilewright_fast_roof-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: tilewright-fast-roof\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text(f"[tilewright]\nfast-roof = {MODULE}\n")
    importlib.invalidate_caches()
    installed.cache_clear()
    yield lambda name: importlib.import_module(f"{MODULE}.{name}" if name else MODULE)
    for module in [name for name in sys.modules if name.partition(".")[0] == MODULE]:
        del sys.modules[module]
    installed.cache_clear()


def test_its_own_test_of_batches_passes(written: Callable[[str], Any], tmp_path: Path) -> None:
    names = runpy.run_path(str(tmp_path / "package" / "tests" / "test_fast_roof.py"))
    names["test_a_batch_has_the_costs_of_the_reports"]()
    names["test_optimal_proves_the_optimum_that_enumeration_finds"]("edp")


@pytest.mark.exhaustive
def test_it_passes_the_kit(written: Callable[[str], Any]) -> None:
    (spec,) = written("").tilewright_plugins()
    assert isinstance(spec, CostModelSpec)
    outcomes = check_plugin(spec)
    assert [str(outcome) for outcome in outcomes if not outcome.ok] == []


@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
@pytest.mark.parametrize("work", ["nk,km->nm; n=2 k=4 m=2", "kcr,ncpr->nkp; n=1 k=2 c=2 p=2 r=1"])
def test_optimal_proves_what_enumeration_finds(
    written: Callable[[str], Any], work: str, objective: ObjectiveName
) -> None:
    model = written("model").FastRoofModel()
    proved, least = (
        tw.map(work, "eyeriss", mapper=mapper, model=model, objective=objective, cache=False).layers[0].result
        for mapper in ("optimal", "exhaustive")
    )
    assert proved is not None and least is not None and proved.proved == "yes"
    assert proved.value == pytest.approx(least.value, rel=1e-9)


def test_only_cost_models_have_a_form_for_batches(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    tilewright: Command = command(monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    refused = tilewright("plugins", "new", "mapper", "x", "--batch")
    assert refused.code == 2 and "--batch is for cost models, not for a mapper" in refused.err
    assert tilewright("plugins", "new", "costmodel", "fast-roof", "--batch").code == 0
    assert "count_accesses" in (tmp_path / "tilewright-fast-roof/src" / MODULE / "model.py").read_text()

"""`mindmappings`: projections are legal and near, a surrogate learns and is found again, searches repeat and keep budgets."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.application.run.search import search
from tilewright.errors import PluginError
from tilewright.files import cache_folder
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import CostModel
from tilewright.plugin.mapper import Budget, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import CostModelSpec, MapperSpec
from tilewright.schema.constraints import TemporalRule
from tilewright.schema.objective import CYCLES, ED2P, EDP, ENERGY, Objective
from tilewright.schema.problem import Problem
from tilewright.testing.corpus import SAMPLES, Sample
from tilewright_mappers import MindMappingsOptions
from tilewright_mappers.mindmappings.dataset import random_sizes, size_ranges, training_set
from tilewright_mappers.mindmappings.mapper import descent_of, starts
from tilewright_mappers.mindmappings.relaxed import RelaxedSpace
from tilewright_mappers.mindmappings.store import key_of
from tilewright_mappers.mindmappings.surrogate import train

SMALL = {"mappings": 2000, "epochs": 2, "width": 16, "starts": 32, "rounds": 4}
GEMM = next(sample for sample in SAMPLES if str(sample).startswith("gemm") and "array" in str(sample))
CONV = next(sample for sample in SAMPLES if str(sample).startswith("conv"))


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))


def timeloop() -> CostModel:
    return installed().make(CostModelSpec, "timeloop")


def run(space: MapSpace, budget: Budget | None = None, objective: Objective = EDP, **options: object) -> Result:
    mapper = installed().make(MapperSpec, "mindmappings", {**SMALL, **options})
    evaluator = timeloop().bind(space.problem, space.architecture)
    return search(mapper, Task(space, objective), evaluator, budget or Budget(), seed=3)


def kept() -> list[Path]:
    return list((cache_folder() / "mindmappings").glob("*"))


def constrained(sample: Sample) -> MapSpace:
    names = sample.problem.dimension_names
    rule = TemporalRule(memory=sample.architecture.memories[0].name, order=names[::-1])
    return replace(sample.space, rules=sample.rules.model_copy(update={"temporal": (*sample.rules.temporal, rule)}))


@pytest.mark.parametrize("space", [*(each.space for each in SAMPLES), constrained(CONV)], ids=lambda s: s.problem.name)
def test_projections_are_legal_and_nearer_than_where_they_began(space: MapSpace) -> None:
    relaxed, rng = RelaxedSpace(space), np.random.default_rng(1)
    rows, others = starts(space, rng, 50), starts(space, rng, 50)
    targets = relaxed.vectors(others) + rng.normal(0, 0.2, (len(others), relaxed.length))
    near = relaxed.project(rows, targets)
    assert space.within(near.trips).all() and near.fits().all()
    assert (near.trips.prod(axis=1) == space.problem.sizes).all()
    assert all(space.obeyed(mapping) for mapping in near)
    assert (near.keeps == rows.keeps).all()

    trips, priorities, _ = relaxed.parts
    before, after = (((relaxed.vectors(each) - targets)[:, trips] ** 2).sum(axis=1) for each in (rows, near))
    assert (after <= before + 1e-9).all() and after.mean() < before.mean() / 2
    same = relaxed.project(others, relaxed.vectors(others))
    assert (same.trips == others.trips).all() and (same.orders == space.lawful(others.orders)).all()


def test_problems_of_a_class_have_the_sizes_of_the_class() -> None:
    conv = Problem.model_validate({**CONV.problem.model_dump(), "dimensions": {**CONV.problem.dimensions, "K": 300}})
    ranges = size_ranges(conv)
    drawn = random_sizes(conv, np.random.default_rng(0))
    sizes = np.array([next(drawn) for _ in range(200)])
    for (least, most), column, size in zip(ranges, sizes.T, conv.sizes, strict=True):
        assert least <= size <= most and column.min() >= least and column.max() <= most
        assert len(set(column.tolist())) > 1 or least == most
    assert not any((sizes % prime == 0).any() for prime in (11, 13, 17, 19))


def test_a_surrogate_learns_and_descends() -> None:
    """Most of the variance is explained for problems that it was not trained on; a descent lowers what it predicts."""
    space = GEMM.space
    data = training_set(space, timeloop(), 8000, np.random.default_rng(0), lambda: False)
    assert data is not None and len(data.vectors) >= 8000 and data.problems >= 30
    assert (data.targets >= -1e-6).all(), "a cost is below its lower bound"
    last = len(data.vectors) * 4 // 5
    surrogate = train(data.vectors[:last], data.targets[:last], 32, 20, np.random.default_rng(0), lambda: False)
    assert surrogate is not None
    errors = surrogate.predict(data.vectors[last:]) - data.targets[last:]
    assert (errors.var(axis=0) < 0.3 * data.targets[last:].var(axis=0)).all()

    relaxed, descent = RelaxedSpace(space), descent_of(RelaxedSpace(space), EDP)
    vectors = relaxed.vectors(starts(space, np.random.default_rng(0), 32)).astype(np.float32)
    lower = surrogate.descend(vectors, descent, 20, 0.1)
    before, after = (surrogate.predict(each).sum(axis=1) for each in (vectors, lower))
    assert (after <= before).mean() > 0.9 and after.mean() < before.mean() - 0.5
    fixed = descent.lowest == descent.highest
    assert (lower[:, fixed] == vectors[:, fixed]).all()
    assert (lower >= descent.lowest - 1e-5)[:, ~fixed].all() and (lower <= descent.highest + 1e-5)[:, ~fixed].all()
    trips, _, _ = relaxed.parts
    sums = [each[:, trips].reshape(len(each), -1, len(space.problem.sizes)).sum(axis=1) for each in (vectors, lower)]
    assert np.abs(sums[0] - sums[1]).max() < 0.2, "the trips of a dimension keep their product"


def test_a_search_repeats_and_reports_its_figures() -> None:
    first, again = run(CONV.space), run(CONV.space)
    alone = run(CONV.space, keep=False)
    assert len(kept()) == 1
    for each in (again, alone):
        assert (each.best, each.value, each.history) == (first.best, first.value, first.history)
    assert first.stop == "finished" and first.evaluated <= 32 * 5
    figures = first.figures
    assert figures["training_mappings"] >= 2000 and figures["training_error"] > 0
    assert figures["training_cpu_seconds"] == again.figures["training_cpu_seconds"] > 0
    assert figures["moved"] > 0 and figures["improvement"] >= 1 and figures["search_cpu_seconds"] > 0


def test_one_surrogate_serves_a_class_and_all_objectives() -> None:
    known = CONV.problem.model_dump()
    other = {
        **known,
        "name": "other",
        "dimensions": {name: min(size * size, 16) for name, size in CONV.problem.dimensions.items()},
    }
    assert other["dimensions"] != known["dimensions"]
    space = replace(CONV.space, problem=Problem.model_validate(other))
    options = MindMappingsOptions()
    assert key_of(space, options) == key_of(CONV.space, options)
    assert key_of(space, options) != key_of(constrained(CONV), options)
    assert key_of(space, options) != key_of(space, options.model_copy(update={"epochs": 3}))
    assert key_of(space, options) == key_of(space, options.model_copy(update={"rounds": 3}))
    for objective in (EDP, ED2P, ENERGY, CYCLES):
        assert run(CONV.space, objective=objective).best is not None
    assert len(kept()) == 1


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY", None], ids=["empty", "zip", "npy", "cut"])
def test_a_damaged_surrogate_is_trained_again(content: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    first = run(CONV.space)
    (path,) = kept()
    path.write_bytes(path.read_bytes()[:-2000] if content is None else content)
    caplog.clear()
    assert run(CONV.space).value == first.value
    assert "is damaged and trained again" in caplog.text
    caplog.clear()
    assert run(CONV.space).value == first.value and not caplog.text


def test_budgets_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    result = run(CONV.space, Budget(evaluations=10))
    assert result.evaluated == 10 and result.stop == "evaluations" and not kept()
    result = run(CONV.space, Budget(evaluations=900), starts=300)
    assert 600 < result.evaluated <= 900 and len(kept()) == 1
    result = run(CONV.space, Budget(evaluations=70))
    assert result.evaluated == 70 and result.stop == "evaluations" and result.best is not None

    result = run(CONV.space, Budget(seconds=0.3), mappings=10_000_000)
    assert result.stop == "deadline" and result.best is not None and result.evaluated == 32
    assert "the deadline ended the training" in caplog.text and "training_error" not in result.figures


def test_without_jax_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "jax" else there(name, *rest))
    with pytest.raises(PluginError, match="needs jax, which is not installed") as caught:
        installed().make(MapperSpec, "mindmappings")
    assert caught.value.hint == "pip install jax"


@pytest.mark.exhaustive
def test_better_than_random_with_the_same_evaluations() -> None:
    """A layer of ResNet-18, with the default training."""
    import tilewright as tw

    space = tw.space("quickflow_convs/V", arch="eyeriss")
    result = run(space, **MindMappingsOptions().model_dump(include=set(SMALL)))
    evaluator = timeloop().bind(space.problem, space.architecture)
    drawn = search(installed().make(MapperSpec, "random"), Task(space), evaluator, Budget(result.evaluated), seed=3)
    assert result.evaluated == 2048 and result.value < drawn.value
    assert result.figures["training_error"] < 0.5

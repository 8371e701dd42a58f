"""The mapper keeps the promises of mappers, and is worth its name."""

import numpy as np
import pytest
from tilewright_genetic import GeneticOptions
from tilewright_genetic.search import Genetic

from tilewright import MapSpace
from tilewright.application.run.search import search
from tilewright.plugin import Budget, Candidates, MapperSpec, Run, Task, discover
from tilewright.schema.constraints import Variant
from tilewright.testing import Case, parametrize_conformance
from tilewright.testing.corpus import SAMPLES, Sample
from tilewright.testing.reference import PlainModel


@parametrize_conformance("tilewright-genetic")
def test_conformance(case: Case) -> None:
    case.run()


def test_the_host_finds_it() -> None:
    found = discover().find(MapperSpec, "genetic")

    assert (found.distribution, found.version) == ("tilewright-genetic", "0.1.0")


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_children_stay_in_the_space(sample: Sample) -> None:
    """Under rules of every kind that the space knows."""
    names, outer = sample.problem.dimension_names, sample.architecture.memories[0].name
    rules = Variant.model_validate({"temporal": [{"memory": outer, "order": names[-2:], "only": names[1:]}]})
    space = MapSpace.of(sample.problem, sample.architecture, rules)
    proposals = Genetic(GeneticOptions(population=16)).search(Task(space), Run(np.random.default_rng(3), Budget()))
    evaluator = PlainModel().bind(sample.problem, sample.architecture)
    batch = next(proposals)
    for _ in range(8):
        assert isinstance(batch, Candidates)
        batch = proposals.send(evaluator.evaluate_batch(batch.batch()))
        assert [str(space.contains(mapping).reasons) for mapping in batch] == ["()"] * 16


def test_it_beats_chance() -> None:
    """On the largest space of the corpus, over some seeds, with equal evaluations."""
    sample = max(SAMPLES, key=lambda each: each.space.size)
    evaluator = PlainModel().bind(sample.problem, sample.architecture)
    registry = discover()
    means = {}
    for name in ("genetic", "random"):
        mapper = registry.make(MapperSpec, name)
        values = [search(mapper, Task(sample.space), evaluator, Budget(3000), seed=seed).value for seed in range(5)]
        means[name] = float(np.mean(np.log(values)))

    assert means["genetic"] < means["random"]

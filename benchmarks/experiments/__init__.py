"""The papers' experiments, one module per paper; `python benchmarks/papers.py` runs them."""

from benchmarks.experiments import authors, cosa, others, quickflow, sunstone, thesis, union
from benchmarks.experiments.framework import Experiment

_MODULES = (sunstone, thesis, authors, union, cosa, quickflow, others)
_PAPERS = list(dict.fromkeys(experiment.paper for module in _MODULES for experiment in module.EXPERIMENTS))
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for paper in _PAPERS
    for module in _MODULES
    for experiment in module.EXPERIMENTS
    if experiment.paper == paper
}

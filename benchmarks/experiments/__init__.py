"""The papers' experiments, one module per paper; `python benchmarks/papers.py` runs them."""

from benchmarks.experiments import cosa, others, quickflow, sunstone, thesis, union
from benchmarks.experiments.framework import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each for module in (sunstone, thesis, union, cosa, quickflow, others) for each in module.EXPERIMENTS
}

from benchmarks.experiments import others, sunstone, thesis
from benchmarks.experiments.framework import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each for module in (sunstone, thesis, others) for each in module.EXPERIMENTS
}

"""Profiles of random tests, markers of long tests, and one compilation of the kernels for all worker processes.

Tests of plugins whose packages have an environment of their own are collected where those are installed.
"""

import importlib.util
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("dev", max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# always the same examples: a commit passes, or it does not
settings.register_profile("ci", settings.get_profile("dev"), max_examples=10, derandomize=True)
settings.register_profile("few", settings.get_profile("ci"), max_examples=5)  # of what ran elsewhere, on another Python
settings.register_profile("thorough", settings.get_profile("dev"), max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

LONG_TESTS = ("process", "manual", "exhaustive", "hostile")
"""Markers of tests that only run if `-m` names them."""
LONG = " or ".join(LONG_TESTS)
"""Marker expression of the long tests; pyproject.toml has its negation as the default."""
ZIGZAG = importlib.util.find_spec("zigzag") is not None
WARM_UP = (
    (("eyeriss",), ("union_edge", "--model", "maestro", "--mapper", "random")),
    (("eyeriss", "--mapper", "random", "--factors", "ragged"), ("extensor_like", "--mapper", "random")),
)
"""Searches that compile the most used kernels, two at a time: the second two need what the first compiles."""
collect_ignore = [] if ZIGZAG else ["costmodels/zigzag", "adapters/zigzag/test_program.py"]
if importlib.util.find_spec("jax") is None:
    collect_ignore += ["frontends/jax", "mappers/test_mindmappings.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases", default=None, type=int, help="most cases of each test, spread evenly; the others are left out"
    )
    parser.addoption("--mutations", default=300, type=int, help="mutated inputs for each reader (tests/hostile)")
    parser.addoption(
        "--store-faults", default=20, type=int, help="flipped bits, and changed values, of a store (tests/hostile)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Compile the most used kernels before pytest-xdist starts its workers, which would compile them each."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        limits = ("--evaluations", "10", "--no-cache")
        search = (sys.executable, "-m", "tilewright", "map", "nk,km->nm; n=4 k=4 m=4", *limits, "--arch")
        for searches in WARM_UP:
            processes = [subprocess.Popen((*search, *words), stdout=subprocess.DEVNULL) for words in searches]
            for words, process in zip(searches, processes, strict=True):
                assert process.wait() == 0, words


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say at the end which tests the markers left out, and how to run them."""
    if config.option.markexpr == f"sample or not ({LONG})" and not hasattr(config, "workerinput"):
        print(f"Not run: most long tests ({', '.join(LONG_TESTS)}). To run them: python -m pytest -n auto -m '{LONG}'")


def pytest_report_header() -> str:
    return (
        "zigzag: installed" if ZIGZAG else "zigzag: not installed, so not tested here; `tox run -e py311-zigzag` does"
    )


SAMPLE = 2
"""Cases that the default run tries of a module whose tests are all long; a module with cheap ones states a `SHORT_SAMPLE`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases beyond `--cases`, and mark the samples, before pytest selects by markers.

    What a test sends to a child process travels whole: with a safe path the child does not find the tests.
    """
    if config.option.cases is not None:
        cases = dict[str, list[pytest.Item]]()
        for item in items:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        kept = {item for some in cases.values() for item in some[:: math.ceil(len(some) / config.option.cases)]}
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    for item in _samples(items):
        item.add_marker("sample")
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        if sys.modules.get(module.__name__) is module:
            cloudpickle.register_pickle_by_value(module)


def _samples(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield a few cases, spread evenly, of each module whose tests are all long."""
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    for cases in modules.values():
        if all(any(item.get_closest_marker(name) for name in LONG_TESTS) for item in cases):
            count = getattr(getattr(cases[0], "module", None), "SHORT_SAMPLE", SAMPLE)
            yield from cases[:: math.ceil(len(cases) / count)]

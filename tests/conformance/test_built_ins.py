"""The built-in plugins keep the promises that third parties' plugins have to keep."""

import importlib.util
from pathlib import Path

import pytest

from support import EXAMPLE_FILES, fake_cacti, fake_timeloop
from support.grid import OPTIONS
from tilewright.testing import Case, parametrize_conformance

pytestmark = pytest.mark.exhaustive
SHORT_SAMPLE = 20

ELSEWHERE = {"cost model zigzag": "zigzag", "estimator hwcomponents": "hwcomponents", "mapper mindmappings": "jax"}
"""Plugins that need a package which is not installed for every test -> the package."""
MISSING = [name for name, module in ELSEWHERE.items() if importlib.util.find_spec(module) is None]
DATA = Path(__file__).parents[1] / "data"
MODULES = DATA / "mlir"


@parametrize_conformance(
    "tilewright",
    sources={
        "einsum": [
            "nk,km->nm; n=4 k=5 m=6",
            "O[n,k,p,q] += I[n,c,2p+r,2q+s] * W[k,c,r,s]; n=1 k=4 c=3 p=5 q=5 r=3 s=3",
        ],
        "scalesim": [str(path) for path in sorted((DATA / "scalesim").glob("*.csv"))],
        "comet": [str(path) for path in sorted((EXAMPLE_FILES / "comet").glob("*.ta"))],
        "dmazerunner": [str(DATA / "dmazerunner" / "net.json")],
        "interstellar": [str(DATA / "interstellar" / "conv.json")],
        "pt2": [str(DATA / "pt2" / "net.pt2")],
        "mlir": [str(MODULES / "ops_tosa.generic.mlir"), str(MODULES / "calls.stablehlo.generic.mlir")],
    },
    options={
        "timeloop_binary": {"path": fake_timeloop.program("cheap")},
        "cacti": {"program": fake_cacti.program()},
    }
    | ({} if "mapper mindmappings" in MISSING else {"mindmappings": OPTIONS["mindmappings"]}),
    expected_failures={
        "timeloop_binary:check_costmodel_counts_what_it_declares": "the program of the test has figures of its own"
    },
    # needs a package that has an environment of its own in tox.ini
    without=MISSING,
)
def test_conformance(case: Case) -> None:
    case.run()

"""Faults in plugins that are right without them: the check named for each fails."""

from pathlib import Path
from typing import Any

import pytest

from support import faulty, faulty_models
from support.faulty import FILES, Fault
from support.profiles import first
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.registry import Registration
from tilewright.plugin.specs import CostModelSpec
from tilewright.testing import Case, cases
from tilewright.testing.reference import PlainModel

MISSED = {
    "mapper: the order of a set of texts": "it differs between processes only, and a second process is slow",
    "mapper: keeps the mapping beside the best one": "its search is as good as chance",
    "mapper: takes invalid mappings for the best": "its search is as good as chance",
    "cost model: bandwidth of one instance for all": "a model may add cycles, for conflicts of banks",
    "estimator: leakage of one node only": "a figure may be unknown",
    "frontend: no layer reads another": "layers may be independent",
    "frontend: weights are inputs": "nothing else states the roles",
    "frontend: strides on the window": "neither layers nor multiplications change",
    "strategy: leaves points out by a rule of its own": "published strategies do so",
    "strategy: never varies a choice": "a strategy may end early",
    "group mapper: ignores the objective": "no group has known optima that differ",
}
"""Further kinds of faults that no check finds, with the reason."""
KNOWN = (
    faulty.KNOWN_MAPPERS
    | faulty.KNOWN_ADAPTERS
    | faulty.KNOWN_ESTIMATORS
    | faulty.KNOWN_STRATEGIES
    | faulty.KNOWN_FRONTENDS
    | faulty_models.KNOWN_MODELS
)
OTHERS = (
    faulty.OTHER_MAPPERS
    | faulty.OTHER_ADAPTERS
    | faulty.OTHER_ESTIMATORS
    | faulty.OTHER_STRATEGIES
    | faulty.OTHER_FRONTENDS
    | faulty.OTHER_ALGORITHMS
    | faulty_models.OTHER_MODELS
)
RIGHT = (
    faulty.mapper(""), faulty.adapter(""), faulty.estimator(""), faulty.estimator("", "sram"), faulty.strategy(""), faulty.frontend("", faulty.Products), faulty.rows("", ""),
    faulty.algorithm(""), faulty_models.model(""), faulty_models.model("", energy=faulty_models.energies), faulty_models.model("", unrelaxed=1),
)  # fmt: skip
"""The plugins without a fault."""
FIRST = [name for name in KNOWN if name.startswith(("adapter", "estimator", "frontend", "strategy"))][::3]


def cases_of(fault: Fault, folder: Path) -> list[Case]:
    given: dict[str, Any] = dict(fault.given)
    if given.get("sources") == list(FILES):
        for name, text in FILES.items():
            (folder / "data").mkdir(exist_ok=True)
            (folder / "data" / name).write_text(text, encoding="utf-8")
        given["sources"] = [str(folder / "data" / name) for name in FILES]
    return list(cases(Registration(fault.spec, "faulty", "1.0"), **given))


def fails(fault: Fault, folder: Path) -> bool:
    (case,) = [case for case in cases_of(fault, folder) if case.check.name == fault.check]
    return not case.outcome().ok


def test_all_of_the_fifty_four_known_faults_are_caught() -> None:
    """Each fault in `KNOWN` is caught by the tests below."""
    assert len(KNOWN) == 54
    assert not set(MISSED) & set(KNOWN)


@pytest.mark.parametrize("fault", first(len(FIRST), *FIRST, *(name for name in KNOWN if name not in FIRST)))
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a generator that ignores its end
def test_a_known_fault_is_caught(fault: str, tmp_path: Path) -> None:
    assert fails(KNOWN[fault], tmp_path)


@pytest.mark.parametrize("fault", first(0, *OTHERS))
def test_another_fault_is_caught(fault: str, tmp_path: Path) -> None:
    assert fails(OTHERS[fault], tmp_path)


@pytest.mark.parametrize("number", first(0, *range(len(RIGHT))))
def test_a_right_plugin_passes_all_checks(number: int, tmp_path: Path) -> None:
    outcomes = [
        case.outcome() for case in cases_of(RIGHT[number], tmp_path) if case.check.name != "check_import_is_light"
    ]
    assert [outcome for outcome in outcomes if not outcome.ok] == []


def test_a_model_of_groups_that_accepts_none_is_caught(tmp_path: Path) -> None:
    able = Capabilities(groups=True)
    spec = CostModelSpec(name="faulty", summary="Plain.", factory=lambda options: PlainModel(), capabilities=able)
    assert fails(Fault(spec, "check_costmodel_accepts_a_group_if_it_declares_groups"), tmp_path)


def test_a_model_of_vector_layers_that_counts_none_is_caught(tmp_path: Path) -> None:
    able = Capabilities(vector_layers=True)
    spec = CostModelSpec(name="faulty", summary="Plain.", factory=lambda options: PlainModel(), capabilities=able)
    assert fails(Fault(spec, "check_costmodel_counts_a_vector_layer_if_it_declares_them"), tmp_path)

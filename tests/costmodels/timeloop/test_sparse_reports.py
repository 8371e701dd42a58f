"""Reports of drawn mappings on sparse hardware, as a separate statement of the model for single mappings wrote them.

`tests/data/sparse_timeloop/reports.json.gz` has figures, refusals and warnings of that statement, which reports no longer use.
"""

import gzip
import json
from typing import Any

import pytest

import tilewright as tw
from support import DATA
from tilewright.schema.mapping import Mapping
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel
from tilewright_costmodels.timeloop.sparse.batch import evaluator

CASES = json.loads(gzip.decompress((DATA / "sparse_timeloop" / "reports.json.gz").read_bytes()))


def test_every_refusal_and_quirk_is_here() -> None:
    reasons = {reason["code"] for case in CASES for reason in case["report"]["reasons"]}
    assert reasons >= {"format", "compression", "decompression", "sparse_target", "spatial_tiles", "no_units"}
    assert reasons >= {"spatial_and_temporal", "negative_saf", "sparse_conditions", "fanout", "capacity", "metadata"}
    warnings = " ".join(warning for case in CASES for warning in case["report"]["warnings"])
    quirks = "no_instance first_occupancy uncompressed_scaled metadata_not_scaled metadata_reads_lost rank_shift flattened_subtile"
    assert all(f"[{quirk}]" in warnings for quirk in [*quirks.split(), "second_coiteration"])


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_a_report_says_what_the_separate_statement_said(case: dict[str, Any]) -> None:
    problem = tw.Problem.model_validate(case["problem"])
    architecture = tw.Architecture.model_validate(case["architecture"])
    evaluator = TimeloopModel(TimeloopOptions(link_transfers=case["link_transfers"])).bind(problem, architecture)
    report = evaluator.explain(Mapping.model_validate(case["mapping"])).model_dump(mode="json")
    assert_same(report, case["report"])


def test_a_report_compiles_no_sparse_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in CASES if case["report"]["valid"])
    problem = tw.Problem.model_validate(case["problem"])
    architecture = tw.Architecture.model_validate(case["architecture"])
    sparse = TimeloopModel(TimeloopOptions(link_transfers=case["link_transfers"])).bind(problem, architecture)

    def refuse(*arguments: object) -> bool:
        raise AssertionError("the compiled kernel was called")

    refuse.py_func = evaluator.evaluate_sparse.py_func  # type: ignore[attr-defined]
    monkeypatch.setattr(evaluator, "evaluate_sparse", refuse)
    evaluator._evaluate_interpreted.cache_clear()
    assert sparse.explain(Mapping.model_validate(case["mapping"])).valid


def assert_same(found: Any, expected: Any) -> None:
    """Compare data; floats may differ in the last digits."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            assert_same(mine, theirs)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=0)
    else:
        assert found == expected

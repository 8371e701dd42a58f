"""`verify`: execution as an object."""

import pytest

import tilewright as tw
from tilewright import errors

CONV = "O[p] += I[p+r] * W[r]; p=4 r=3"


@pytest.fixture(scope="module")
def layer() -> tw.MappedLayer:
    return tw.map(CONV, arch="union_edge", evaluations=100, cache=False).layers[0]


def test_a_right_mapping_is_compared_with_the_models(layer: tw.MappedLayer) -> None:
    report = tw.verify(layer)
    assert (report.right, report.legal, report.complete, report.result) == (True, True, True, True)
    timeloop = next(model for model in report.models if model.report.model == "timeloop")
    assert timeloop.compared > 0 and report.data()["right"] is True
    assert "complete  yes" in str(report) and "complete  yes" in report._repr_html_()
    assert repr(report) == "<Verification of einsum: right>"
    assert len(report.to_frame()) == sum(len(model.differences) for model in report.models)


def test_a_wrong_mapping_is_told(layer: tw.MappedLayer) -> None:
    longer = layer.problem.replace({"dimensions.p": 8})
    report = tw.verify(layer.mapping, problem=longer)  # type: ignore[arg-type]
    assert (report.right, report.legal, report.complete) == (False, False, False)
    assert report.models == () and "coverage" in str(report)


def test_what_is_too_large_is_refused(layer: tw.MappedLayer) -> None:
    with pytest.raises(errors.NotConformableError, match="expected at most 11"):
        tw.verify(layer, options={"max_operations": 11})
    with pytest.raises(errors.InputError, match="did you mean 'max_operations'"):
        tw.verify(layer, options={"max_operation": 11})
    with pytest.raises(errors.InputError, match="does not execute mappings"):
        tw.verify(layer, by="timeloop")

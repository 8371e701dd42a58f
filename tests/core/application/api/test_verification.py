"""`verify`: execution as an object."""

import pytest

import tilewright as tw
from tilewright import errors

CONV = "O[p] += I[p+r] * W[r]; p=4 r=3"


@pytest.fixture(scope="module")
def layer() -> tw.MappedLayer:
    return tw.map(CONV, arch="union_edge", evaluations=100, cache=False).layers[0]


def test_a_right_mapping_is_compared_with_the_models(layer: tw.MappedLayer) -> None:
    found = tw.verify(layer)
    assert (found.right, found.legal, found.complete, found.result) == (True, True, True, True)
    timeloop = next(each for each in found.models if each.report.model == "timeloop")
    assert timeloop.compared > 0 and found.data()["right"] is True
    assert "complete  yes" in str(found) and "complete  yes" in found._repr_html_()
    assert repr(found) == "<Verification of einsum: right>"
    assert len(found.to_frame()) == sum(len(each.differences) for each in found.models)


def test_a_wrong_mapping_is_told(layer: tw.MappedLayer) -> None:
    longer = layer.problem.replace({"dimensions.p": 8})
    found = tw.verify(layer.mapping, problem=longer)  # type: ignore[arg-type]
    assert (found.right, found.legal, found.complete) == (False, False, False)
    assert found.models == () and "coverage" in str(found)


def test_what_is_too_large_is_refused(layer: tw.MappedLayer) -> None:
    with pytest.raises(errors.NotConformableError, match="expected at most 11"):
        tw.verify(layer, options={"max_operations": 11})
    with pytest.raises(errors.InputError, match="did you mean 'max_operations'"):
        tw.verify(layer, options={"max_operation": 11})
    with pytest.raises(errors.InputError, match="does not execute mappings"):
        tw.verify(layer, by="timeloop")

"""`fuse_network` and `fusion_gain`: results that stay on chip, and the bound on what they save."""

import pytest

import tilewright as tw
from support.products import products
from tilewright.errors import CallError, NotConformableError

M, SIZES = 16, (8, 32, 8)


def test_a_result_that_fits_stays_and_the_saving_is_at_most_the_gain() -> None:
    found = tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", progress=False)
    assert [each.maker for each in found.residents] == ["L0"] and found.proved
    words = M * SIZES[1]
    assert found.gain.unfused - found.value >= 2 * 64 * words  # DRAM neither takes the result nor gives it back
    assert 0 < found.saved <= found.gain.gain
    assert found.group is not None
    (report,) = tw.evaluate(found.group, models="timeloop").reports
    assert report.energy_pj == pytest.approx(found.energy_pj, rel=1e-9)
    gain = tw.fusion_gain(products(M, SIZES), "eyeriss", objective="energy", progress=False)
    assert gain == found.gain and gain.rows()[0]["gain"] == gain.gain


def test_results_that_do_not_fit_go_out() -> None:
    arch = tw.load("eyeriss").replace({"GlobalBuffer.capacity_words": M * SIZES[1] - 1})
    found = tw.fuse_network(products(M, SIZES), arch, objective="energy", progress=False)
    assert not found.residents and found.saved == 0 and found.proved and found.gain.gain > 0


def test_workloads_without_reads_and_hardware_without_a_home_say_so() -> None:
    unknown = tw.fusion_gain(products(M, SIZES, reads=False), "eyeriss", objective="energy", progress=False)
    assert unknown.gain == 0 and "states none that layers read whole" in str(unknown)
    homeless = tw.fusion_gain(products(M, SIZES), "tpu_v1", objective="energy", progress=False)
    assert homeless.home is None and homeless.gain == 0 and "none can stay" in str(homeless)


def test_what_is_not_covered_is_refused() -> None:
    with pytest.raises(NotConformableError, match="EDP of a network"):
        tw.fuse_network(products(M, SIZES), "eyeriss", progress=False)
    with pytest.raises(NotConformableError, match="cost model maestro"):
        tw.fusion_gain(products(M, SIZES), "union_edge", objective="energy", model="maestro", progress=False)
    with pytest.raises(CallError, match="--algorithms"):
        tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", algorithms="native", progress=False)


def test_a_result_that_is_read_as_a_weight_does_not_stay_where_weights_cannot() -> None:
    data = products(M, SIZES)
    for tensor, role in zip(data["layers"][1]["problem"]["tensors"], ("weight", "input"), strict=False):
        tensor["role"] = role
    assert tw.fusion_gain(data, "eyeriss", objective="energy", progress=False).may_stay == ()

"""`fuse_network` and `fusion_gain`: results that stay on chip, and the bound on what they save."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tilewright as tw
from support.certificates import with_parts
from support.products import products
from support.schemas import faults
from tilewright.application.api.gain import gain_of
from tilewright.errors import CallError, InputError, NotConformableError

M, SIZES = 16, (8, 32, 8)


def test_a_result_that_fits_stays_and_the_saving_is_at_most_the_gain() -> None:
    found = tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", progress=False)
    assert [resident.maker for resident in found.residents] == ["L0"] and found.proved
    words = M * SIZES[1]
    # the buffer takes the result and gives it back, instead of DRAM
    assert found.gain.unfused - found.value == pytest.approx(2 * (64 - 2.02) * words)
    assert found.gain.gain is not None and 0 < found.saved <= found.gain.gain
    assert faults(found.gain.data()) == [] and found.gain.data()["kind"] == "fusion_gain_output"
    assert faults(found.data()) == []
    assert found.group is not None
    (report,) = tw.evaluate(found.group, models="timeloop").reports
    assert report.energy_pj == pytest.approx(found.energy_pj, rel=1e-9)
    gain = tw.fusion_gain(products(M, SIZES), "eyeriss", objective="energy", progress=False)
    assert gain == found.gain and gain.rows()[0]["gain"] == gain.gain


def test_a_folder_of_the_unfused_network_is_refused(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"progress": False, "folder": tmp_path, "objective": "energy"}
    tw.map(products(M, SIZES), "eyeriss", mapper="random", evaluations=20, cache=False, **settings)
    files = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(InputError, match="contains files of another run"):
        tw.fuse_network(products(M, SIZES), "eyeriss", **settings)
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    tw.fuse_network(products(M, SIZES), "eyeriss", force=True, **settings)
    assert (tmp_path / "network.json").exists() and not (tmp_path / "summary.json").exists()


def test_a_new_run_removes_the_groups_of_the_former_one(tmp_path: Path) -> None:
    arch = tw.load("eyeriss", "architecture").replace({"GlobalBuffer.capacity_words": M * SIZES[1] - 1})
    settings: dict[str, Any] = {"progress": False, "folder": tmp_path, "objective": "energy"}
    tw.fuse_network(products(M, SIZES), arch, **settings)
    assert (tmp_path / "group_1.yaml").exists()
    tw.fuse_network(products(M, SIZES), "eyeriss", force=True, **settings)
    assert not (tmp_path / "group_1.yaml").exists() and (tmp_path / "group.yaml").exists()


def test_an_interrupt_before_all_layers_have_mappings_is_no_refusal() -> None:
    """Nothing is said to be unsupported: no layer failed."""
    stopped: Any = SimpleNamespace(gain=lambda: (math.inf, 0.0), costs={})
    with pytest.raises(KeyboardInterrupt):
        gain_of(stopped)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_product_takes_the_best_of_the_networks_by_energy_and_by_cycles(tmp_path: Path, missing: int) -> None:
    """The result stays whole, or in tiles if a word of room is missing."""
    arch = tw.load("eyeriss", "architecture").replace(
        {"GlobalBuffer.capacity_words": M * SIZES[1] - missing, "DRAM.shared_bandwidth_words_per_cycle": 4}
    )
    settings: dict[str, Any] = {"progress": False, "folder": tmp_path, "force": True}
    energy, cycles, product = (
        tw.fuse_network(products(M, SIZES), arch, objective=name, **settings) for name in ("energy", "cycles", "edp")
    )
    value = product.energy_pj * product.cycles
    assert product.value == value <= min(one.energy_pj * one.cycles for one in (energy, cycles)) * (1 + 1e-9)
    assert value <= product.gain.unfused and bool(product.parts) == bool(missing)
    assert energy.gain.least is not None and cycles.gain.least is not None
    least = [one.gain.least if missing else one.bound for one in (energy, cycles)]
    assert product.bound == pytest.approx(least[0] * least[1]) and 0 <= (product.gap or 0) < 1  # type: ignore[operator]
    assert product.gain.least == pytest.approx(energy.gain.least * cycles.gain.least)
    assert faults(product.data()) == [] and product.certificate is None and "EDP" in str(product)
    assert (tmp_path / "group_1.yaml").exists() == bool(missing)


def test_results_that_do_not_fit_stay_in_tiles(tmp_path: Path) -> None:
    arch = tw.load("eyeriss", "architecture").replace({"GlobalBuffer.capacity_words": M * SIZES[1] - 1})
    found = tw.fuse_network(products(M, SIZES), arch, objective="energy", progress=False, folder=tmp_path)
    (part,) = found.parts
    assert not found.residents and part.layers == ("L0", "L1") and part.keeps("L0", "L1")
    assert found.gain.gain is not None and 0 < found.saved <= found.gain.gain + 1e-9
    assert found.bound == pytest.approx(found.gain.least, rel=1e-9) and "share loops" in str(found)
    (report,) = tw.evaluate(tmp_path / "group_1.yaml", models="timeloop").reports
    assert report.energy_pj == pytest.approx(found.energy_pj, rel=1e-9)
    told = found.data()
    assert [group["layers"] for group in told["groups"]] == [["L0", "L1"]] and told["gap"] == found.gap
    assert [row["layer"] for row in found.rows()] == ["L0 + L1"]


def test_layers_beside_those_that_share_loops_are_mapped_on_their_own(tmp_path: Path) -> None:
    arch = tw.load("eyeriss", "architecture").replace({"GlobalBuffer.capacity_words": M * SIZES[1] - 1})
    network = products(M, (8, *SIZES, 8))
    for layer, maker in ((network["layers"][1], "L0"), (network["layers"][3], "L2")):
        layer["reads"] = {"A": [{"maker": maker, "cut": "a pooling"}]}
    found = tw.fuse_network(network, arch, objective="energy", progress=False, folder=tmp_path)
    assert [part.layers for part in found.parts] == [("L1", "L2")] and not found.parts[0].left_out
    assert [row["layer"] for row in found.rows()] == ["L0", "L1 + L2", "L3"]
    assert sum(row["energy_pj"] for row in found.rows()) == pytest.approx(found.energy_pj)
    (report,) = tw.evaluate(tmp_path / "group_1.yaml", models="timeloop").reports
    assert report.energy_pj == pytest.approx(found.rows()[1]["energy_pj"], rel=1e-9)


def test_results_that_fit_no_tile_go_out() -> None:
    arch = tw.load("eyeriss", "architecture").replace({"GlobalBuffer.capacity_words": 1})
    found = tw.fuse_network(products(M, SIZES), arch, objective="energy", progress=False)
    assert not found.residents and not found.parts and found.saved == 0 and (found.gain.gain or 0) >= 0


def test_without_known_makers_nothing_is_bounded_or_proved() -> None:
    """A workload that does not state whose results it reads gives no bound, whatever layers it has."""
    data = products(M, SIZES)
    for layer in data["layers"]:
        layer.pop("after", None)
        layer.pop("reads", None)
    found = tw.fuse_network(data, "eyeriss", objective="energy", progress=False)
    assert found.gain.unknown == ("L1",) and found.gain.least is None and found.gain.gain is None
    assert not found.residents and not found.proved and found.gap is None and found.certificate is None
    assert "nothing is known of what fusion can save" in str(found) and "at least" not in str(found)
    assert "proved" not in str(found) and "nothing is known" in str(found.gain) and "unknown" in repr(found.gain)
    told = found.data()
    assert [told[key] for key in ("least", "gain", "bound", "gap", "proved")] == [None, None, None, None, False]
    assert told["unknown"] == ["L1"]


def test_makers_that_are_known_to_be_absent_save_nothing() -> None:
    data = products(M, SIZES)
    data["layers"][1] |= {"after": [], "reads": {}}
    found = tw.fuse_network(data, "eyeriss", objective="energy", progress=False)
    assert found.gain.unknown == () and found.gain.gain == 0 and found.proved and found.certificate is not None
    assert found.gain.least == pytest.approx(found.value, rel=1e-8) and found.value == found.gain.unfused


@pytest.mark.exhaustive
def test_a_choice_among_known_results_is_proved_next_to_unknown_ones() -> None:
    """L0 may be read by the last layer, of which nothing is known, so it may not stay; L2 may."""
    data = products(M, (8, 32, 8, 32, 8))
    del data["layers"][1]["after"], data["layers"][1]["reads"]
    found = tw.fuse_network(data, "eyeriss", objective="energy", progress=False)
    assert found.gain.unknown == ("L1",) and "L0" not in found.gain.may_stay and found.gain.least is None
    assert [resident.maker for resident in found.residents] == ["L1", "L2"] and found.proved
    assert "proved among choices of the 2 results that may stay whole" in str(found)
    assert found.certificate is not None and "one layer does not state" in str(found.certificate)
    checks = {check.name: check.passed for check in tw.verify_certificate(found.certificate).checks}
    assert all(checks.values())
    forged = with_parts(found.certificate, least=found.value)
    assert not tw.verify_certificate(forged.sealed()).right


def test_a_certificate_of_a_network_without_known_makers_is_wrong() -> None:
    """Versions before this one proved a bound on any fusion of such networks."""
    found = tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", progress=False)
    assert found.certificate is not None
    data = found.certificate.to_data()
    claim = data["claim"]
    for layer in claim["workload"]["layers"]:
        layer.pop("after", None)
        layer.pop("reads", None)
    plain = tw.map(products(M, SIZES), "eyeriss", objective="energy", progress=False)
    best = {layer.name: layer.mapping.to_data() for layer in plain.layers if layer.mapping is not None}
    energy = plain.energy_pj
    data |= {"value": energy, "bound": energy, "gap": 0.0}
    claim |= {"residents": [], "least": energy, "energy_pj": energy, "cycles": plain.cycles, "mappings": best}
    checks = tw.verify_certificate(tw.Certificate.model_validate(data).sealed()).checks
    assert [check.name for check in checks if check.passed is False] == ["at least", "bound"]


@pytest.mark.parametrize("cut", [False, True])
def test_a_bound_covers_results_of_which_the_words_are_unknown(cut: bool) -> None:
    """What is read in an unknown way could stay, too, so the bound lies below the cost with known words."""
    known = tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", progress=False)
    data = products(M, SIZES, reads=False)
    if cut:
        data["layers"][1]["reads"] = {"A": [{"maker": "L0", "cut": "a window"}]}
    found = tw.fuse_network(data, "eyeriss", objective="energy", progress=False)
    assert found.gain.may_stay == () and not found.residents and found.gain.unknown == ()
    assert found.gain.least is not None and found.gain.least == pytest.approx(known.gain.least, rel=1e-9)
    assert found.gain.least <= known.value < found.value and "states none that layers read whole" in str(found)
    assert "proved among mappings without fusion: yes" in str(found)


def test_repeated_layers_may_read_their_own_results() -> None:
    """The results of a block may stay for its next repetition, but not the matrices, which no layer makes."""
    data = products(M, (8, 8))
    once = tw.fusion_gain(data, "eyeriss", objective="energy", progress=False)
    data["layers"][0] |= {"after": [], "count": 3, "reads": {"B": []}}
    thrice = tw.fusion_gain(data, "eyeriss", objective="energy", progress=False)
    assert once.gain == 0 and thrice.gain is not None and thrice.gain > 0
    held = {"GlobalBuffer.holds": None}
    arch = tw.load("eyeriss", "architecture").replace(held)
    gains = list[float]()
    for reads in dict[str, list[str]](B=[]), dict[str, list[str]]():
        data["layers"][0]["reads"] = reads
        gains.append(tw.fusion_gain(data, arch, objective="energy", progress=False).gain or 0.0)
    assert gains[0] < gains[1]  # without a statement, the matrix could be a result, too


def test_layers_that_are_picked_from_a_network_keep_their_edges(tmp_path: Path) -> None:
    """L1 reads the result of L0. L2 reads that of L1, and L3, which is not picked, reads that of L2."""
    (tmp_path / "mlp.json").write_text(json.dumps(products(M, (8, 32, 8, 32, 8), (0, 1, 2))), encoding="utf-8")
    words = [f"{tmp_path / 'mlp.json'}/L{number}" for number in range(3)]
    found = tw.fuse_network(words, "eyeriss", objective="energy", progress=False)
    assert found.gain.unknown == () and found.gain.may_stay == ("L0", "L1")
    apart = tw.fuse_network([words[0], words[2]], "eyeriss", objective="energy", progress=False)
    assert apart.gain.may_stay == ()
    names = ["bert_base/encoder.attention.scores", "bert_base/encoder.attention.context"]
    attention = tw.fusion_gain(names, "eyeriss", objective="energy", progress=False)
    assert attention.may_stay == ("encoder.attention.scores",) and attention.unknown == ()


def test_hardware_without_a_home_says_so() -> None:
    homeless = tw.fusion_gain(products(M, SIZES), "tpu_v1", objective="energy", progress=False)
    assert homeless.home is None and homeless.gain == 0 and "none can stay" in str(homeless)


def test_what_is_not_covered_is_refused() -> None:
    with pytest.raises(NotConformableError, match="EDP of a network"):
        tw.fusion_gain(products(M, SIZES), "eyeriss", progress=False)
    with pytest.raises(NotConformableError, match="cost model maestro"):
        tw.fusion_gain(products(M, SIZES), "union_edge", objective="energy", model="maestro", progress=False)
    with pytest.raises(CallError, match="--algorithms"):
        tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", algorithms="native", progress=False)


def test_a_result_that_is_read_as_a_weight_does_not_stay_where_weights_cannot() -> None:
    data = products(M, SIZES)
    for tensor, role in zip(data["layers"][1]["problem"]["tensors"], ("weight", "input"), strict=False):
        tensor["role"] = role
    assert tw.fusion_gain(data, "eyeriss", objective="energy", progress=False).may_stay == ()


def test_the_bound_names_its_space_and_free_rules_widen_it() -> None:
    """A group that bypasses registers costs less than the bound for mappings in which registers keep everything."""
    names = ("DRAM", "Buffer", "Registers")
    energies = {"DRAM": (100, 100), "Buffer": (1, 1), "Registers": (1, 200)}
    clusters: list[dict[str, Any]] = [
        {
            "name": name,
            "memories": [{"name": name, "read_energy_pj": energies[name][0], "write_energy_pj": energies[name][1]}],
        }
        for name in names
    ]
    clusters[1]["memories"][0]["capacity_words"] = 60
    clusters[2]["memories"][0]["capacity_words"] = 8
    arch = {"name": "dear", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}
    keep = [{"memory": "Registers", "free": ["input", "weight", "output"]}]
    free = {"kind": "constraints", "name": "free", "variants": [{"keep": keep}]}
    net = products(4, (4, 4, 4))
    plain = tw.fuse_network(net, arch, objective="energy", progress=False, cache=False)
    wide = tw.fuse_network(net, arch, objective="energy", constraints=free, progress=False, cache=False)
    assert wide.group is not None and wide.gain.least is not None and plain.gain.least is not None
    (report,) = tw.evaluate(wide.group, models="oracle").reports
    assert report.energy_pj == pytest.approx(wide.value, rel=1e-9)
    assert wide.gain.least <= wide.value * (1 + 1e-9) < plain.gain.least <= plain.value
    assert "in the layers' map spaces, proved among choices of the 1 results" in str(plain)
    for text in (str(plain), str(plain.gain)):
        assert "fused in Buffer, at least" in text and "layers' map spaces, where any tensor may bypass Buffer" in text

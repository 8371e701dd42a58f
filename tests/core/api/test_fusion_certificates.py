"""Certificates of fused groups and networks: what is true is confirmed, and what was changed is caught."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.command import Command, command
from support.fused_chains import Chain
from support.products import products
from tilewright.errors import CallError
from tilewright.schema.mapped.fusion import FusionCertificate, GroupCertificate, NetworkCertificate

pytestmark = pytest.mark.exhaustive

M, SIZES = 16, (8, 32, 8, 4)


@pytest.fixture(scope="module")
def group() -> GroupCertificate:
    found = tw.fuse(Chain(1).group(), objective="energy").certificate
    assert found is not None and found.value < found.unfused
    return found


@pytest.fixture(scope="module")
def network() -> NetworkCertificate:
    found = tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", progress=False, cache=False)
    assert found.certificate is not None and found.certificate.residents == ("L0", "L1")
    return found.certificate


def failed(certificate: FusionCertificate) -> set[str]:
    """Return the checks that fail, after the digests are made to fit like a careful forgery."""
    sealed = certificate.model_copy(update={"digests": certificate.part_digests()})
    found = tw.verify_certificate(type(certificate).from_yaml(sealed.to_yaml()))
    names = {each.name for each in found.checks if each.passed is False}
    assert found.right == (not names)
    return names


def test_what_is_true_is_right(group: GroupCertificate, network: NetworkCertificate) -> None:
    for each, count in ((group, 5), (network, 6)):
        found = tw.verify_certificate(each)
        assert found.right and len(found.checks) == count and "is the minimum" in str(each), str(found)
        assert type(each).from_yaml(each.to_yaml()) == each == type(each).from_yaml(each.to_json())
        assert found.data()["problem"] == each.subject and found.data()["mappings"] is None


def test_a_part_that_changed_since_is_named(group: GroupCertificate, network: NetworkCertificate) -> None:
    other = network.model_copy(update={"residents": ("L1",)})
    (contents, *_) = tw.verify_certificate(other).checks
    assert contents.passed is False and contents.message == "residents changed since"
    dearer = group.group.model_copy(
        update={"architecture": group.group.architecture.replace({"DRAM.read_energy_pj": 1})}
    )
    (contents, *_) = tw.verify_certificate(group.model_copy(update={"group": dearer})).checks
    assert contents.passed is False and contents.message == "group changed since"


def mapping_of(it: NetworkCertificate, layer: str, source: str) -> dict[str, Any]:
    return {"mappings": {**it.mappings, layer: it.mappings[source]}}


def machine(it: NetworkCertificate, words: int) -> dict[str, Any]:
    return {"architecture": it.architecture.replace({"GlobalBuffer.capacity_words": words})}


Change = Callable[[Any], dict[str, Any]]
BOTH: dict[str, tuple[Change, set[str]]] = {
    "a bound above the value": (lambda it: {"bound": it.value * 1.01}, {"gap", "bound"}),
    "a higher bound and value": (lambda it: {"bound": it.value * 1.01, "value": it.value * 1.01}, {"figures", "bound"}),
    "a lower value": (lambda it: {"value": it.value * 0.9, "bound": it.value * 0.9}, {"figures"}),
    "another gap": (lambda it: {"gap": 0.5}, {"gap"}),
    "dearer without fusion": (lambda it: {"unfused": it.unfused * 2}, {"unfused"}),
    "another objective": (lambda it: {"objective": "cycles"}, {"figures", "unfused"}),
}
NETWORK: dict[str, tuple[Change, set[str]]] = {
    "fewer cycles": (lambda it: {"cycles": it.cycles - 1}, {"figures"}),
    "a higher bound on any fusion": (lambda it: {"least": it.least * 1.01}, {"unfused"}),
    "a resident less": (lambda it: {"residents": ("L0",)}, {"figures"}),
    "a resident that may not stay": (lambda it: {"residents": ("L0", "L2")}, {"residents"}),
    "a mapping of another layer": (lambda it: mapping_of(it, "L1", "L0"), {"figures"}),
    "no mapping": (lambda it: {"mappings": {"L0": it.mappings["L0"]}}, {"figures"}),
    "a smaller memory": (lambda it: machine(it, M * 32 - 1), {"residents"}),
    "other hardware": (lambda it: {"architecture": it.architecture.replace({"DRAM.read_energy_pj": 1})}, {"figures"}),
    "unknown settings": (lambda it: {"settings": {**it.settings, "uneven": True}}, {"residents"}),
    "a wrong setting": (lambda it: {"settings": {**it.settings, "seed": "x"}}, {"residents"}),
    "other constraints": (lambda it: {"settings": {**it.settings, "constraints": "nowhere.yaml"}}, {"residents"}),
    "another model": (lambda it: {"settings": {**it.settings, "model": "maestro"}}, {"residents"}),
}


@pytest.mark.parametrize("change", BOTH)
def test_a_change_of_either_is_caught(change: str, group: GroupCertificate, network: NetworkCertificate) -> None:
    changed, expected = BOTH[change]
    for it in (group, network):
        assert expected <= failed(it.model_copy(update=changed(it)))


@pytest.mark.parametrize("change", NETWORK)
def test_a_change_of_a_network_is_caught(change: str, network: NetworkCertificate) -> None:
    changed, expected = NETWORK[change]
    assert expected <= failed(type(network).model_validate(network.model_copy(update=changed(network)).to_data()))


def test_another_group_mapping_is_caught(group: GroupCertificate) -> None:
    loops = group.group.tree.model_copy(update={"branches": group.group.tree.branches[::-1]})
    wrong = group.model_copy(update={"group": group.group.model_copy(update={"tree": loops})})
    assert "figures" in failed(wrong)


def test_files_are_written_and_checked_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tilewright: Command = command(monkeypatch, capsys)
    tw.fuse(Chain(1).group(), objective="energy", folder=tmp_path)
    tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", progress=False, folder=tmp_path)
    for name in ("group", "network"):
        file = tmp_path / f"{name}.certificate.yaml"
        ran = tilewright("verify", "--certificate", file)
        assert ran.code == 0 and "proved again" in ran.out
        text = file.read_text(encoding="utf-8")
        key = "unfused: "
        file.write_text(text.replace(key, f"{key}1"), encoding="utf-8")
        assert tilewright("verify", "--certificate", file).code == 1
    with pytest.raises(CallError, match="single layers"):
        tw.verify_certificate(file, samples=7)

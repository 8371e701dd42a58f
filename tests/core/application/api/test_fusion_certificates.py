"""Certificates of fused groups and networks: what is true is confirmed, and what was changed is caught."""

import copy
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.command import Command, command
from support.fused_graphs import random_graph
from support.group_searches import search_group
from support.products import products
from tilewright.application.api.fusion_certificates import fusion_checks
from tilewright.errors import InputError, UnknownPluginError
from tilewright.schema.document import Document, validate
from tilewright.schema.mapped.fusion import FUSION_PROOFS, FusionCertificate, GroupCertificate, NetworkCertificate
from tilewright.schema.objective import CYCLES

pytestmark = pytest.mark.exhaustive

M, SIZES = 16, (8, 32, 8, 4)


@pytest.fixture(scope="module")
def group() -> GroupCertificate:
    found = tw.fuse(random_graph(22).group(), objective="energy").certificate
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
    found = tw.verify_certificate(type(certificate).from_yaml(sealed.to_yaml()), samples=5, limit=0)
    names = {each.name for each in found.checks if each.passed is False}
    assert found.right == (not names)
    return names


def test_what_is_true_is_right(group: GroupCertificate, network: NetworkCertificate) -> None:
    for each, count in ((group, 8), (network, 11)):
        found = tw.verify_certificate(each, samples=50, limit=0)
        assert found.right and len(found.checks) == count and "is the minimum" in str(each), str(found)
        assert type(each).from_yaml(each.to_yaml()) == each == type(each).from_yaml(each.to_json())
        assert found.data()["problem"] == each.subject and found.data()["mappings"] is None


def test_a_part_that_changed_since_is_named(group: GroupCertificate, network: NetworkCertificate) -> None:
    other = network.model_copy(update={"residents": ("L1",)})
    (contents, *_) = tw.verify_certificate(other, samples=1, limit=0).checks
    assert contents.passed is False and contents.message == "residents changed since"
    dearer = group.group.model_copy(
        update={"architecture": group.group.architecture.replace({"DRAM.read_energy_pj": 1})}
    )
    (contents, *_) = tw.verify_certificate(group.model_copy(update={"group": dearer}), samples=1, limit=0).checks
    assert contents.passed is False and contents.message == "group changed since"


def mapping_of(it: NetworkCertificate, layer: str, source: str) -> dict[str, Any]:
    return {"mappings": {**it.mappings, layer: it.mappings[source]}}


def machine(it: NetworkCertificate, words: int) -> dict[str, Any]:
    return {"architecture": it.architecture.replace({"GlobalBuffer.capacity_words": words})}


def work(it: NetworkCertificate, change: Callable[[int, Any], dict[str, Any]]) -> Any:
    data = it.workload.to_data()
    changed = [each | change(at, each) for at, each in enumerate(data["layers"])]
    return type(it.workload).model_validate(data | {"layers": changed})


def larger(at: int, layer: Any) -> dict[str, Any]:
    sizes = {name: size * 2 for name, size in layer["problem"]["dimensions"].items()}
    return {"problem": layer["problem"] | {"dimensions": sizes}}


def hardware(it: GroupCertificate, path: str, value: float) -> dict[str, Any]:
    return {"group": it.group.model_copy(update={"architecture": it.group.architecture.replace({path: value})})}


def record(it: GroupCertificate, **changes: Any) -> Any:
    return it.model.model_copy(update=changes)


def exchanged(it: GroupCertificate) -> Any:
    tree = it.group.tree
    return it.group.model_copy(update={"tree": tree.model_copy(update={"branches": tree.branches[::-1]})})


def worse(it: GroupCertificate) -> dict[str, Any]:
    return {"group": search_group(it.group, it.objective).unfused, "value": it.unfused, "bound": it.unfused}


def leaves(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the keys of every value that is no list and no mapping."""
    if isinstance(data, dict | list):
        for key, each in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(each, (*at, key))
    else:
        yield at


def with_another_value(data: dict[str, Any], at: tuple[Any, ...]) -> dict[str, Any]:
    """Return data with another number, text or truth value at some keys."""
    data = copy.deepcopy(data)
    part: Any = data
    for key in at[:-1]:
        part = part[key]
    old = part[at[-1]]
    if isinstance(old, bool):
        part[at[-1]] = not old
    else:
        part[at[-1]] = old * 2 + 1 if isinstance(old, int | float) else 1 if old is None else f"{old}x"
    return data


Change = Callable[[Any], dict[str, Any]]
BOTH: dict[str, tuple[Change, set[str]]] = {
    "a bound above the value": (lambda it: {"bound": it.value * 1.01}, {"gap", "bound"}),
    "a higher bound and value": (lambda it: {"bound": it.value * 1.01, "value": it.value * 1.01}, {"figures", "bound"}),
    "cheaper without fusion": (lambda it: {"unfused": it.unfused * 0.9}, {"unfused"}),
    "a lower value": (lambda it: {"value": it.value * 0.9, "bound": it.value * 0.9}, {"figures"}),
    "another gap": (lambda it: {"gap": 0.5}, {"gap"}),
    "dearer without fusion": (lambda it: {"unfused": it.unfused * 2}, {"unfused"}),
    "another objective": (lambda it: {"objective": CYCLES}, {"figures", "unfused"}),
}
GROUP: dict[str, tuple[Change, set[str]]] = {
    "the mapping without fusion": (lambda it: worse(it), {"bound"}),
    "the layers exchanged": (lambda it: {"group": exchanged(it)}, {"figures"}),
    "a cheaper memory": (lambda it: hardware(it, "DRAM.read_energy_pj", 1), {"figures"}),
    "a smaller buffer": (lambda it: hardware(it, "Buffer.capacity_words", 1), {"figures"}),
    "a dearer unit": (lambda it: hardware(it, "compute.energy_per_operation_pj", 1), {"figures"}),
    "another model": (lambda it: {"model": record(it, name="maestro", options={})}, {"figures"}),
    "another version of the model": (lambda it: {"model": record(it, version="9")}, {"contents"}),
    "other versions": (lambda it: {"versions": {**it.versions, "tilewright": "9"}}, {"contents"}),
}
NETWORK: dict[str, tuple[Change, set[str]]] = {
    "less energy": (lambda it: {"energy_pj": it.energy_pj * 0.9}, {"figures"}),
    "a resident twice": (lambda it: {"residents": ("L0", "L0", "L1")}, {"residents"}),
    "no residents": (lambda it: {"residents": ()}, {"figures"}),
    "a layer more often": (lambda it: {"workload": work(it, lambda at, each: {"count": 2})}, {"figures"}),
    "other sizes": (lambda it: {"workload": work(it, larger)}, {"figures"}),
    "another mapper": (lambda it: {"settings": {**it.settings, "mapper": "quickflow"}}, {"bound"}),
    "fewer cycles": (lambda it: {"cycles": it.cycles - 1}, {"figures"}),
    "a higher bound on any fusion": (lambda it: {"least": it.least * 1.01}, {"at least"}),
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


@pytest.mark.parametrize("change", GROUP)
def test_a_change_of_a_group_is_caught(change: str, group: GroupCertificate) -> None:
    changed, expected = GROUP[change]
    assert expected <= failed(type(group).model_validate(group.model_copy(update=changed(group)).to_data()))


def test_a_model_that_is_not_installed_confirms_nothing(group: GroupCertificate) -> None:
    with pytest.raises(UnknownPluginError):
        failed(group.model_copy(update={"model": record(group, name="nowhere")}))


def test_every_value_of_the_files_counts(group: GroupCertificate, network: NetworkCertificate) -> None:
    for it in (group, network):
        data = it.to_data()
        for at in leaves(data):
            try:
                changed = validate(type(it), Document(with_another_value(data, at), "dict"))
            except InputError:
                continue
            assert any(each.passed is False for each in fusion_checks(changed, 1, 0, 0)), at


def test_what_passes_with_other_digests_is_true(group: GroupCertificate) -> None:
    """Only names, and figures that do not matter for the energy, may change. All is proved again."""
    data, passed = group.to_data(), set[str]()
    for at in leaves(data):
        try:
            changed = validate(type(group), Document(with_another_value(data, at), "dict"))
            if changed != group and not failed(changed):
                passed.add(str(at[-1]))
        except (InputError, UnknownPluginError):
            continue
    # each value is one word here, of any width
    free = {"name", "python", "link_transfers", "capacity_words", "word_bits", *group.digests}
    assert passed <= free | {"read_bandwidth_words_per_cycle", "write_bandwidth_words_per_cycle"}


def test_files_are_written_and_checked_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tilewright: Command = command(monkeypatch, capsys)
    folders = {name: tmp_path / name for name in ("group", "network")}  # a folder has one owner
    tw.fuse(random_graph(22).group(), objective="energy", folder=folders["group"])
    tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", progress=False, folder=folders["network"])
    for name, folder in folders.items():
        file = folder / f"{name}.certificate.yaml"
        ran = tilewright("verify", "--certificate", file, "--samples", "20", "--limit", "0")
        assert ran.code == 0 and "proved again" in ran.out
        text = file.read_text(encoding="utf-8")
        key = "unfused: "
        file.write_text(text.replace(key, f"{key}1"), encoding="utf-8")
        assert tilewright("verify", "--certificate", file, "--samples", "1", "--limit", "0").code == 1


def test_a_weaker_statement_is_true_and_says_so(group: GroupCertificate, network: NetworkCertificate) -> None:
    weaker: list[tuple[FusionCertificate, dict[str, Any], str]] = [
        (group, {"bound": group.value * 0.9, "gap": 0.1}, "bound"),
        (network, {"bound": network.value * 0.9, "gap": 0.1}, "bound"),
        (network, {"least": (network.least or 0.0) * 0.99}, "at least"),
    ]
    for it, changed, name in weaker:
        other = it.model_copy(update=changed)
        found = tw.verify_certificate(other.model_copy(update={"digests": other.part_digests()}), samples=5, limit=0)
        (check,) = (each for each in found.checks if each.name == name)
        assert found.right and "weaker than what is proved" in check.message


def test_a_newer_proof_cannot_be_judged(group: GroupCertificate, network: NetworkCertificate) -> None:
    for it in (group, network):
        checks = fusion_checks(it.model_copy(update={"proof_version": FUSION_PROOFS + 1}), 1, 0, 0)
        (prover,) = (each for each in itertools.islice(checks, 2) if each.name == "prover")
        assert prover.passed is False and "cannot be judged" in prover.message
        checks = fusion_checks(it.model_copy(update={"proof_version": None}), 1, 0, 0)
        (prover,) = (each for each in itertools.islice(checks, 2) if each.name == "prover")
        assert prover.passed is None and "an earlier version" in prover.message

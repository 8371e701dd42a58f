"""Certificates of fused groups and networks: what is true is confirmed, and what was changed is caught."""

import copy
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.certificates import with_parts
from support.command import Command, command
from support.fused_graphs import random_graph
from support.group_searches import search_group
from support.products import products
from tilewright.application.api.certificates import checks as checks_of
from tilewright.errors import InputError, UnknownPluginError
from tilewright.schema.document import Document, validate
from tilewright.schema.mapped.certificate import FUSION_PROOFS, Certificate, GroupClaim, NetworkClaim
from tilewright.schema.objective import CYCLES

pytestmark = pytest.mark.exhaustive

M, SIZES = 16, (8, 32, 8, 4)
Group = Certificate[GroupClaim]
Network = Certificate[NetworkClaim]


@pytest.fixture(scope="module")
def group() -> Group:
    found = tw.fuse(random_graph(22).group(), objective="energy").certificate
    assert found is not None and found.value < found.claim.unfused
    return found


@pytest.fixture(scope="module")
def network() -> Network:
    found = tw.fuse_network(products(M, SIZES), "eyeriss", objective="energy", progress=False, cache=False)
    assert found.certificate is not None and found.certificate.claim.residents == ("L0", "L1")
    return found.certificate


def failed(certificate: Certificate[Any]) -> set[str]:
    """Return the checks that fail, after the digests are made to fit like a careful forgery."""
    sealed = certificate.sealed()
    found = tw.verify_certificate(Certificate.from_yaml(sealed.to_yaml()), samples=5, limit=0)
    names = {check.name for check in found.checks if check.passed is False}
    proved = any(check.passed for check in found.checks if check.name == "bound")
    assert found.right == (proved and not names)
    return names


def test_what_is_true_is_right(group: Group, network: Network) -> None:
    for each, count in ((group, 8), (network, 11)):
        found = tw.verify_certificate(each, samples=50, limit=0)
        assert found.right and len(found.checks) == count and "is the minimum" in str(each), str(found)
        assert Certificate.from_yaml(each.to_yaml()) == each == Certificate.from_yaml(each.to_json())
        assert found.data()["problem"] == each.claim.names[0] and found.data()["mappings"] is None


def test_a_part_that_changed_since_is_named(group: Group, network: Network) -> None:
    other = with_parts(network, residents=("L1",))
    (contents, *_) = tw.verify_certificate(other, samples=1, limit=0).checks
    assert contents.passed is False and contents.message == "residents changed since"
    dearer = group.claim.group.model_copy(
        update={"architecture": group.claim.group.architecture.replace({"DRAM.read_energy_pj": 1})}
    )
    (contents, *_) = tw.verify_certificate(with_parts(group, group=dearer), samples=1, limit=0).checks
    assert contents.passed is False and contents.message == "group changed since"


def mapping_of(it: Network, layer: str, source: str) -> dict[str, Any]:
    return {"mappings": {**it.claim.mappings, layer: it.claim.mappings[source]}}


def machine(it: Network, words: int) -> dict[str, Any]:
    return {"architecture": it.claim.architecture.replace({"GlobalBuffer.capacity_words": words})}


def work(it: Network, change: Callable[[int, Any], dict[str, Any]]) -> Any:
    data = it.claim.workload.to_data()
    changed = [each | change(at, each) for at, each in enumerate(data["layers"])]
    return type(it.claim.workload).model_validate(data | {"layers": changed})


def larger(at: int, layer: Any) -> dict[str, Any]:
    sizes = {name: size * 2 for name, size in layer["problem"]["dimensions"].items()}
    return {"problem": layer["problem"] | {"dimensions": sizes}}


def hardware(it: Group, path: str, value: float) -> dict[str, Any]:
    return {
        "group": it.claim.group.model_copy(update={"architecture": it.claim.group.architecture.replace({path: value})})
    }


def record(it: Group, **changes: Any) -> Any:
    return it.claim.model.model_copy(update=changes)


def exchanged(it: Group) -> Any:
    tree = it.claim.group.tree
    return it.claim.group.model_copy(update={"tree": tree.model_copy(update={"branches": tree.branches[::-1]})})


def worse(it: Group) -> dict[str, Any]:
    return {
        "group": search_group(it.claim.group, it.objective).unfused,
        "value": it.claim.unfused,
        "bound": it.claim.unfused,
    }


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
    "cheaper without fusion": (lambda it: {"unfused": it.claim.unfused * 0.9}, {"unfused"}),
    "a lower value": (lambda it: {"value": it.value * 0.9, "bound": it.value * 0.9}, {"figures"}),
    "another gap": (lambda it: {"gap": 0.5}, {"gap"}),
    "dearer without fusion": (lambda it: {"unfused": it.claim.unfused * 2}, {"unfused"}),
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
    "less energy": (lambda it: {"energy_pj": it.claim.energy_pj * 0.9}, {"figures"}),
    "a resident twice": (lambda it: {"residents": ("L0", "L0", "L1")}, {"residents"}),
    "no residents": (lambda it: {"residents": ()}, {"figures"}),
    "a layer more often": (lambda it: {"workload": work(it, lambda at, each: {"count": 2})}, {"figures"}),
    "other sizes": (lambda it: {"workload": work(it, larger)}, {"figures"}),
    "another mapper": (lambda it: {"settings": {**it.claim.settings, "mapper": "quickflow"}}, {"bound"}),
    "fewer cycles": (lambda it: {"cycles": it.claim.cycles - 1}, {"figures"}),
    "a higher bound on any fusion": (lambda it: {"least": it.claim.least * 1.01}, {"at least"}),
    "a resident less": (lambda it: {"residents": ("L0",)}, {"figures"}),
    "a resident that may not stay": (lambda it: {"residents": ("L0", "L2")}, {"residents"}),
    "a mapping of another layer": (lambda it: mapping_of(it, "L1", "L0"), {"figures"}),
    "no mapping": (lambda it: {"mappings": {"L0": it.claim.mappings["L0"]}}, {"figures"}),
    "a smaller memory": (lambda it: machine(it, M * 32 - 1), {"residents"}),
    "other hardware": (
        lambda it: {"architecture": it.claim.architecture.replace({"DRAM.read_energy_pj": 1})},
        {"figures"},
    ),
    "unknown settings": (lambda it: {"settings": {**it.claim.settings, "uneven": True}}, {"residents"}),
    "a wrong setting": (lambda it: {"settings": {**it.claim.settings, "seed": "x"}}, {"residents"}),
    "other constraints": (lambda it: {"settings": {**it.claim.settings, "constraints": "nowhere.yaml"}}, {"residents"}),
    "another model": (lambda it: {"settings": {**it.claim.settings, "model": "maestro"}}, {"residents"}),
}


@pytest.mark.parametrize("change", BOTH)
def test_a_change_of_either_is_caught(change: str, group: Group, network: Network) -> None:
    changed, expected = BOTH[change]
    for it in (group, network):
        assert expected <= failed(with_parts(it, **changed(it)))


@pytest.mark.parametrize("change", NETWORK)
def test_a_change_of_a_network_is_caught(change: str, network: Network) -> None:
    changed, expected = NETWORK[change]
    assert expected <= failed(Certificate.model_validate(with_parts(network, **changed(network)).to_data()))


@pytest.mark.parametrize("change", GROUP)
def test_a_change_of_a_group_is_caught(change: str, group: Group) -> None:
    changed, expected = GROUP[change]
    assert expected <= failed(Certificate.model_validate(with_parts(group, **changed(group)).to_data()))


def test_a_model_that_is_not_installed_confirms_nothing(group: Group) -> None:
    with pytest.raises(UnknownPluginError):
        failed(with_parts(group, model=record(group, name="nowhere")))


def test_a_group_mapper_that_is_not_installed_is_not_asked(group: Group) -> None:
    """The other checks run; the bound is not confirmed."""
    assert group.claim.mapper is not None
    record = group.claim.mapper.model_copy(update={"name": "nowhere"})
    found = tw.verify_certificate(with_parts(group, mapper=record).sealed(), samples=5, limit=0)
    checks = {check.name: check for check in found.checks}
    assert not found.right and checks["figures"].passed and checks["rivals"].passed
    assert checks["prover"].passed is checks["bound"].passed is None
    assert "cannot be asked: no group mapper is called" in checks["bound"].message


def test_every_value_of_the_files_counts(group: Group, network: Network) -> None:
    for it in (group, network):
        data = it.to_data()
        for at in leaves(data):
            try:
                changed = validate(Certificate, Document(with_another_value(data, at), "dict"))
            except InputError:
                continue
            assert any(each.passed is False for each in checks_of(changed, 1, 0, 0)), at


def test_what_passes_with_other_digests_is_true(group: Group) -> None:
    """Only names, and figures that do not matter for the energy, may change. All is proved again."""
    data, passed = group.to_data(), set[str]()
    for at in leaves(data):
        try:
            changed = validate(Certificate, Document(with_another_value(data, at), "dict"))
            if changed != group and not failed(changed) and at[:2] != ("claim", "mapper"):
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


def test_a_weaker_statement_is_true_and_says_so(group: Group, network: Network) -> None:
    weaker: list[tuple[Certificate[Any], dict[str, Any], str]] = [
        (group, {"bound": group.value * 0.9, "gap": 0.1}, "bound"),
        (network, {"bound": network.value * 0.9, "gap": 0.1}, "bound"),
        (network, {"least": (network.claim.least or 0.0) * 0.99}, "at least"),
    ]
    for it, changed, name in weaker:
        other = with_parts(it, **changed)
        found = tw.verify_certificate(other.sealed(), samples=5, limit=0)
        (check,) = (each for each in found.checks if each.name == name)
        assert found.right and "weaker than what is proved" in check.message


def test_a_newer_proof_cannot_be_judged(group: Group, network: Network) -> None:
    for it in (group, network):
        checks = checks_of(it.model_copy(update={"proof_version": FUSION_PROOFS + 1}), 1, 0, 0)
        (prover,) = (each for each in itertools.islice(checks, 2) if each.name == "prover")
        assert prover.passed is False and "cannot be judged" in prover.message
        checks = checks_of(it.model_copy(update={"proof_version": None}), 1, 0, 0)
        (prover,) = (each for each in itertools.islice(checks, 2) if each.name == "prover")
        assert prover.passed is None and "an earlier version" in prover.message

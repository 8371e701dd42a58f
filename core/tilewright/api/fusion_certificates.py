"""Checks of the certificates of fused groups and networks. Nothing in them is trusted; the bound is proved again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tilewright.api.fusion import is_exact
from tilewright.api.network_fusion import fused_network, gain_of
from tilewright.errors import TilewrightError
from tilewright.run.artifacts.checks import Check, gap_check, same, value_message
from tilewright.run.evaluation import build_model, evaluate_group
from tilewright.run.fused_group import search_group
from tilewright.run.resident import ResidentNetwork
from tilewright.schema.mapped.fusion import FusionCertificate, GroupCertificate, NetworkCertificate


def fusion_checks(certificate: FusionCertificate) -> Iterator[Check]:
    """Yield the results of all checks in sequence, cheap ones first."""
    own, certified = certificate.part_digests(), certificate.digests
    changed = [name for name in sorted({*own, *certified}) if own.get(name) != certified.get(name)]
    if isinstance(certificate, GroupCertificate) and "model" not in changed:
        model = certificate.model
        changed += ["model"] if model.version != certificate.versions.get(model.distribution or "") else []
    told = f"{', '.join(changed)} changed since" if changed else "as they were certified"
    yield Check("contents", not changed, told)
    yield gap_check(certificate.value, certificate.bound, certificate.gap)
    if isinstance(certificate, GroupCertificate):
        yield from _group_checks(certificate)
    elif isinstance(certificate, NetworkCertificate):
        yield from _network_checks(certificate)


def _group_checks(it: GroupCertificate) -> Iterator[Check]:
    model = build_model(it.model.long_name, it.model.options)
    report = evaluate_group(model, it.group)
    if report.valid:
        yield _equal("figures", [(it.objective, report.of(it.objective), it.value)])
    else:
        yield Check("figures", False, f"{model.name} rejects it: {'; '.join(map(str, report.reasons))}", 1)
    try:
        found = search_group(it.group, it.objective)
    except TilewrightError as error:
        yield Check("bound", False, error.message)
        return
    plain, fused = (evaluate_group(model, each) for each in (found.unfused, found.group))
    yield _equal("unfused", [("without fusion", plain.of(it.objective), it.unfused)])
    if is_exact(found, fused):
        yield _proved_again(it.bound, fused.of(it.objective) or 0.0)
    else:
        yield Check("bound", False, "the model counts other costs than words, so nothing is proved")


def _network_checks(it: NetworkCertificate) -> Iterator[Check]:
    try:
        network = fused_network(it.workload, it.architecture, it.objective, dict(it.settings))
        lives = network.lives(it.residents)
    except TilewrightError as error:
        yield Check("residents", False, error.message)
        return
    yield Check("residents", True, f"{len(it.residents)} of {len(network.may_stay)} results stay, and fit")
    yield _figures(it, network, lives)
    gain = gain_of(network)
    yield _equal("unfused", [("without fusion", gain.unfused, it.unfused), ("fused, at least", gain.least, it.least)])
    if not gain.has_choice:
        yield Check("bound", False, gain.told)
        return
    yield _proved_again(it.bound, network.place().bound, exact=it.settings.get("seconds") is None)


def _figures(it: NetworkCertificate, network: ResidentNetwork, lives: list[frozenset[int]]) -> Check:
    """Check that the layers' mappings are legal, and have the recorded costs."""
    layers = it.workload.layers
    other = {layer.name for layer in layers} ^ it.mappings.keys()
    if other:
        return Check("figures", False, f"mappings and layers differ: {', '.join(sorted(other))}")
    try:
        costs = [network.priced(at, live, it.mappings[layers[at].name]) for at, live in enumerate(lives)]
    except TilewrightError as error:
        return Check("figures", False, str(error), len(layers))
    energy, cycles = (
        math.fsum(layer.count * cost[part] for layer, cost in zip(layers, costs, strict=True)) for part in (0, 1)
    )
    value = energy if it.objective == "energy" else cycles
    figures = [("energy", energy, it.energy_pj), ("cycles", cycles, it.cycles), (it.objective, value, it.value)]
    return _equal("figures", figures)


def _equal(name: str, figures: Sequence[tuple[str, float | None, float | None]]) -> Check:
    """Check that figures are the recorded ones."""
    return Check(
        name,
        all(same(now, told) for _, now, told in figures),
        "; ".join(value_message(*each) for each in figures),
        1,
    )


def _proved_again(bound: float, proved: float, exact: bool = True) -> Check:
    """Check the recorded bound. An exact search proves the same bound again; one that ends by time may prove more."""
    if same(proved, bound) or (not exact and proved > bound):
        return Check("bound", True, f"proved again: nothing costs less than {bound:.10g}")
    return Check("bound", False, f"{bound:.10g} is told, {proved:.10g} is proved")

"""Checks of the certificates of fused groups and networks. Nothing in them is trusted.

The bound is proved again by the search. Since a search repeats its own faults, two checks share nothing with it. The claimed
mapping is evaluated as a group mapping and executed, and rivals are listed or drawn that may cost less than the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tilewright.application.api.fusion import is_exact
from tilewright.application.api.gain import gain_of
from tilewright.application.api.network_fusion import fused_network
from tilewright.application.run.artifacts.checks import (
    Check,
    bound_check,
    claim_check,
    common_checks,
    rivals_check,
    same,
    value_message,
)
from tilewright.application.run.evaluation import BuiltModel, build_model, evaluate_group, executing_model
from tilewright.application.run.group_search import BuiltGroupMapper, build_group_mapper, search_group
from tilewright.application.run.resident import ResidentNetwork
from tilewright.application.run.rivals import Rivals
from tilewright.application.run.rivals.groups import GroupRivals
from tilewright.application.run.rivals.networks import NetworkRivals
from tilewright.errors import InputError, PluginError, TilewrightError, UnknownPluginError
from tilewright.mapspace.group_legality import is_padded
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped.certificate import FUSION_PROOFS, Certificate, GroupClaim, NetworkClaim
from tilewright.schema.mapped.claimants import claimant


def group_checks(it: Certificate[GroupClaim], samples: int, limit: int, seed: int) -> Iterator[Check]:
    """Yield the results of the checks of a group in sequence, cheap ones first.

    Args:
        samples: number of rivals that are drawn where there are more than `limit`.
        limit: largest number of rivals that are all tried.
        seed: seed of the random ones.
    """
    claim, record = it.claim, it.claim.mapper
    mapper: BuiltGroupMapper | TilewrightError
    try:
        mapper = build_group_mapper() if record is None else build_group_mapper(record.long_name, record.options)
    except (UnknownPluginError, InputError, PluginError) as error:
        mapper = error
    prover: tuple[str, int | None] = str(record), None
    if isinstance(mapper, BuiltGroupMapper):
        prover = mapper.record.name, mapper.spec.proof_version
    yield from common_checks(it, *prover)
    model = build_model(claim.model.long_name, claim.model.options)
    report = evaluate_group(model, claim.group)
    if report.valid:
        yield _equal("figures", [(it.objective.name, report.of(it.objective), it.value)])
    else:
        yield Check("figures", False, f"{model.name} rejects it: {'; '.join(map(str, report.reasons))}", 1)
    yield _executed(claim.group)
    rivals = GroupRivals(claim.group, it.objective, model, samples, limit, seed)
    yield Check("rivals", None, rivals.obstacle) if rivals.obstacle else _none_cheaper(it.bound, rivals.best())
    if isinstance(mapper, TilewrightError):
        yield Check("bound", None, f"mapper {record} cannot be asked: {mapper.message}")
    elif (by := claimant(mapper.record)) is not None:  # it would repeat its claim
        yield from (claim_check(part, by) for part in ("unfused", "bound"))
    else:
        yield from _proved_again(it, mapper, model)


def _proved_again(it: Certificate[GroupClaim], mapper: BuiltGroupMapper, model: BuiltModel) -> Iterator[Check]:
    """Search again, and compare the least costs."""
    claim = it.claim
    try:
        group = search_group(mapper, claim.group, model, it.objective)
    except TilewrightError as error:
        yield Check("bound", False, error.message)
        return
    plain, fused = (evaluate_group(model, mapping) for mapping in (group.unfused, group.group))
    yield _equal("unfused", [("without fusion", plain.of(it.objective), claim.unfused)])
    if is_exact(group, fused, model):
        yield bound_check(it.bound, fused.of(it.objective) or 0.0)
    else:
        yield Check("bound", False, "the model counts other costs than words, so nothing is proved")


def network_checks(it: Certificate[NetworkClaim], samples: int, limit: int, seed: int) -> Iterator[Check]:
    """Yield the results of the checks of a network in sequence, as `group_checks` does."""
    claim = it.claim
    yield from common_checks(it, "fused layers", FUSION_PROOFS)
    try:
        network = fused_network(claim.workload, claim.architecture, it.objective, dict(claim.settings))
        lives = network.lives(claim.residents)
    except TilewrightError as error:
        yield Check("residents", False, error.message)
        return
    yield Check("residents", True, f"{len(claim.residents)} of {len(network.may_stay)} results stay, and fit")
    costs = _costs(claim, network, lives)
    if isinstance(costs, Check):
        yield costs
    else:
        yield _figures(it, costs)
        yield from _second_path(it, network, costs, samples, limit, seed)
    gain = gain_of(network)
    yield _equal("unfused", [("without fusion", gain.unfused, claim.unfused)])
    yield _any_fusion(claim.least, gain.least) if gain.claimed_by is None else claim_check("at least", gain.claimed_by)
    if not gain.has_choice:
        yield Check("bound", False, gain.told)
        return
    bound = network.place().bound
    yield bound_check(it.bound, bound) if network.claimed_by is None else claim_check("bound", network.claimed_by)


Costs = list[tuple[float, float]]
"""Energy in pJ and cycles of each layer."""


def _costs(claim: NetworkClaim, network: ResidentNetwork, lives: list[frozenset[int]]) -> Costs | Check:
    """Return the costs of the layers' mappings, or the failed check if some are not legal."""
    layers = claim.workload.layers
    other = {layer.name for layer in layers} ^ claim.mappings.keys()
    if other:
        return Check("figures", False, f"mappings and layers differ: {', '.join(sorted(other))}")
    try:
        return [network.priced(at, live, claim.mappings[layers[at].name]) for at, live in enumerate(lives)]
    except TilewrightError as error:
        return Check("figures", False, str(error), len(layers))


def _figures(it: Certificate[NetworkClaim], costs: Costs) -> Check:
    """Check that the layers' mappings have the recorded costs."""
    energy, cycles = (
        math.fsum(layer.count * cost[part] for layer, cost in zip(it.claim.workload.layers, costs, strict=True))
        for part in (0, 1)
    )
    value = it.objective.value(energy, cycles)
    figures = [
        ("energy", energy, it.claim.energy_pj),
        ("cycles", cycles, it.claim.cycles),
        (it.objective.name, value, it.value),
    ]
    return _equal("figures", figures)


def _second_path(
    it: Certificate[NetworkClaim], network: ResidentNetwork, costs: Costs, samples: int, limit: int, seed: int
) -> Iterator[Check]:
    """Check the claim by group mappings alone: the claimed one, and its rivals."""
    rivals = NetworkRivals(network, it.claim.mappings, it.claim.residents, samples, limit, seed)
    group = rivals.group(it.claim.residents, it.claim.mappings)
    if group is None:
        yield from (Check(name, None, rivals.obstacle) for name in ("group", "execution"))
    else:
        yield _as_group(group, network.configuration.model, costs)
        yield _executed(group)
    yield Check("rivals", None, rivals.obstacle) if network.home is None else _none_cheaper(it.bound, rivals.best())


def _as_group(group: GroupMapping, model: BuiltModel, costs: Costs) -> Check:
    """Check that the group mapping costs the sum of its layers, each counted once.

    Each layer alone rounds its cycles up. A group does not move words of padding.
    """
    report = evaluate_group(model, group)
    if not report.valid or report.energy_pj is None or report.cycles is None:
        return Check("group", False, f"{model.name} rejects it: {'; '.join(map(str, report.reasons))}", 1)
    energy, cycles = (math.fsum(cost[part] for cost in costs) for part in (0, 1))
    padded = any(is_padded(group, tensor) for tensor in group.users)
    right = same(report.energy_pj, energy) and abs(report.cycles - cycles) <= len(costs)
    right |= padded and report.energy_pj <= energy and report.cycles <= cycles + len(costs)
    figures = f"{value_message('energy', energy, report.energy_pj)}; {value_message('cycles', cycles, cycles)}"
    return Check(
        "group", right, figures if right else f"as a group: {report.energy_pj:.10g} pJ; by layers: {figures}", 1
    )


def _executed(group: GroupMapping) -> Check:
    """Check that an execution finds every word whole and in its home, if a model executes so large a group."""
    try:
        report = evaluate_group(build_model(executing_model()), group)
    except TilewrightError as error:
        return Check("execution", None, error.message)
    if report.valid:
        return Check(
            "execution", True, f"every result is right; {report.energy_pj:.10g} pJ, {report.cycles:,} cycles", 1
        )
    ran = report.execution is not None
    return Check("execution", False if ran else None, "; ".join(map(str, report.reasons)), int(ran))


def _none_cheaper(bound: float, rivals: Rivals) -> Check:
    """Check that no rival costs less than the bound; an execution confirms one that does."""
    check = rivals_check(bound, rivals.value, rivals.legal, rivals.tried, rivals.every)
    if check.passed is not False or rivals.group is None or _executed(rivals.group).passed is not False:
        return check
    return Check("rivals", None, f"{check.message}; but an execution of it goes wrong", rivals.tried)


def _any_fusion(told: float | None, proved: float | None) -> Check:
    """Check the recorded bound on all mappings whose results stay, whole or in tiles; None: there is none."""
    if told is None or proved is None:
        return Check("at least", told is None, value_message("at least", proved, told))
    check = bound_check(told, proved)
    return Check("at least", check.passed, check.message)


def _equal(name: str, figures: Sequence[tuple[str, float | None, float]]) -> Check:
    """Check that figures are the recorded ones."""
    return Check(
        name,
        all(same(now, told) for _, now, told in figures),
        "; ".join(value_message(*figure) for figure in figures),
        1,
    )

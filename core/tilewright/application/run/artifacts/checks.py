"""Checks of a certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilewright.application.run.artifacts.layers import proof_version_of
from tilewright.application.run.evaluation import BuiltModel, bind, build_model, explain
from tilewright.application.run.search import search
from tilewright.errors import InputError, NotConformableError, PluginError, UnknownPluginError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.guard.mappers import guarded_mapper
from tilewright.plugin.mapper import Budget, Mapper, Proposals, Run, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import PROOF_TOLERANCE, Result
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.mapped import Provenance
from tilewright.schema.mapped.certificate import Certificate, Claim, LayerClaim
from tilewright.schema.mapping import Mapping
from tilewright.schema.unsearched import covers_files, statement

RELATIVE_TOLERANCE = 1e-9
"""Relative tolerance for equal figures."""
PIECE = 4096
"""Mappings proposed at once."""


@dataclass(frozen=True)
class Check:
    """Result of one check. `passed` is None if it could not run; `message` gives the reason."""

    name: str
    passed: bool | None
    message: str
    tried: int = 0
    """Number of mappings evaluated for it."""


def common_checks(certificate: Certificate[Claim], prover: str, version: int | None) -> Iterator[Check]:
    """Yield the results of the checks that need no search: parts, prover, and gap.

    Args:
        prover: Name of the installed prover.
        version: Version of its rules, or None.
    """
    digests, told = certificate.part_digests(), certificate.digests
    changed = [name for name in sorted({*digests, *told}) if digests.get(name) != told.get(name)]
    # a certificate that contradicts itself was changed; other versions that are installed now only give a warning
    plugins = [record for record in certificate.claim.plugins if record.distribution]
    changed += [
        record.name for record in plugins if record.version != certificate.versions.get(record.distribution or "")
    ]
    yield Check("contents", not changed, f"{', '.join(changed)} changed since" if changed else "as they were certified")
    yield _prover_check(certificate.proof_version, version, prover)
    yield _gap_check(certificate.value, certificate.bound, certificate.gap)


def layer_checks(certificate: Certificate[LayerClaim], samples: int, limit: int, seed: int) -> Iterator[Check]:
    """Yield the results of all checks of a layer in sequence, cheap ones first.

    Args:
        samples: Number of random mappings, and maximum number of neighbours of the incumbent.
        limit: Maximum size of spaces that are enumerated.
        seed: Seed of the samples.

    Raises:
        UnknownPluginError: The cost model is not installed.
        PluginError: The cost model or the mapper failed.
    """
    incumbent, covered, origin = certificate.claim.incumbent, certificate.claim.space, _provenance(certificate.claim)
    yield from common_checks(certificate, f"'{origin.mapper.name}'", proof_version_of(origin.mapper))
    model = build_model(origin.model.long_name, origin.model.options)
    try:
        space = MapSpace.of(incumbent.problem, incumbent.architecture, covered.rules, factors=covered.factors)
        size = space.size
        evaluator = bind(model, incumbent.problem, incumbent.architecture)
    except (InputError, NotConformableError) as error:
        yield Check("space", False, f"there is none such: {error}")
        return
    yield Check("space", size == covered.mappings, value_message("mappings", size, covered.mappings))
    if not size:
        return
    yield _incumbent(incumbent.mapping, space)
    yield from _unsearched(certificate)
    yield _figures(certificate, model, evaluator)
    yield from _Searches(certificate, space, evaluator).checks(samples, limit, seed)


@dataclass(frozen=True)
class _Searches:
    """Checks that evaluate mappings of the space."""

    certificate: Certificate[LayerClaim]
    space: MapSpace
    evaluator: Evaluator

    def checks(self, samples: int, limit: int, seed: int) -> Iterator[Check]:
        bound = self.certificate.bound
        yield self._none_below("random mappings", lambda run: self._drawn(run, samples), seed)
        if self.space.contains(self.certificate.claim.incumbent.mapping):
            yield self._none_below("neighbours", lambda run: self._near(samples), seed)
        else:
            yield Check("neighbours", None, "the incumbent is no mapping of the space")
        proofs: list[float] = []
        claimed_by = self.certificate.claimed_by
        if self.space.factorizations <= limit and self.space.size <= limit:
            every = self._none_below("all mappings", lambda run: self.space.enumerate(PIECE), seed)
            yield every
            proofs += [bound] if every.passed else []
        else:
            yield Check("all mappings", None, f"{self.space.size:,} mappings; the limit is {limit:,}")
        mapper = self._mapper()
        if isinstance(mapper, Mapper):
            start = _provenance(self.certificate.claim).seed
            alone = guarded_mapper(mapper).starting_with()
            other = self._search(alone, Budget(**dict(self.certificate.claim.limits)), start + 1)
            yield self._consistent(other)
            claimed_by = other.claimed_by or claimed_by
            proofs += [other.lower_bound or 0.0] if claimed_by is None else []
            if claimed_by is None and max(proofs) < bound * (1 - RELATIVE_TOLERANCE):
                again = self._search(mapper, Budget(**dict(self.certificate.claim.limits)), start)
                proofs += [again.lower_bound or 0.0]
        else:
            yield Check("another seed", None, mapper)
        if claimed_by is not None and not proofs:  # the search would repeat the claim
            yield claim_check("bound", claimed_by)
        else:
            yield self._proved_again(max(proofs, default=None))

    def _none_below(self, name: str, parts: Callable[[Run], Iterator[Candidates]], seed: int) -> Check:
        """Check that the mappings cost at least the bound."""
        result = self._search(_Proposing(parts), Budget(), seed)
        value = math.inf if result.best is None else result.value
        return _least_check(name, self.certificate.bound, value, f"{result.valid:,} valid ones", result.evaluated)

    def _consistent(self, other: Result) -> Check:
        """Check the mapper's result with another seed and without warm start."""
        name, bound, value = "another seed", self.certificate.bound, self.certificate.value
        proved = "nothing" if other.lower_bound is None else f"{other.lower_bound:.10g}"
        told = f"the mapper finds {other.value:.10g} and proves {proved}"
        if other.value < bound * (1 - RELATIVE_TOLERANCE):
            wrong = f"{told}: the certificate is wrong, a mapping costs less than its bound of {bound:.10g}; map the layer again"
            return Check(name, False, wrong, other.evaluated)
        if (other.lower_bound or 0.0) > value * (1 + RELATIVE_TOLERANCE):
            report = "please report it" if self.certificate == self.certificate.sealed() else "a part was changed"
            wrong = f"{told}: certificate and prover contradict each other, the incumbent costs {value:.10g}; {report}"
            return Check(name, False, wrong, other.evaluated)
        return Check(name, True, told, other.evaluated)

    def _proved_again(self, least: float | None) -> Check:
        """Check that the bound was proved again."""
        if least is None:
            return Check("bound", None, "nothing proves it again: neither the mapper nor an enumeration")
        late = ", in the seconds that it had" if self.certificate.claim.limits.seconds is not None else ""
        return bound_check(self.certificate.bound, least, late)

    def _mapper(self) -> Mapper | str:
        """Return the mapper of the proof, or the reason why it cannot be built."""
        record = _provenance(self.certificate.claim).mapper
        try:
            return installed().make(MapperSpec, record.long_name, record.options)
        except (UnknownPluginError, InputError, PluginError) as error:
            return f"mapper {record} cannot be asked: {error.message}"

    def _search(self, mapper: Mapper, budget: Budget, seed: int) -> Result:
        """Return the result of a search.

        Raises:
            PluginError: It failed.
            KeyboardInterrupt: It was interrupted.
        """
        most = self.certificate.claim.space.most_cycles
        task = Task(self.space, self.certificate.objective, math.inf if most is None else most)
        result = search(mapper, task, self.evaluator, budget, seed=seed)
        if result.error is not None:
            raise result.error
        if result.stop == "cancelled":
            raise KeyboardInterrupt
        return result

    def _drawn(self, run: Run, count: int) -> Iterator[Candidates]:
        for start in range(0, count, PIECE):
            yield self.space.sample(run.rng, min(PIECE, count - start))

    def _near(self, count: int) -> Iterator[Candidates]:
        """Yield the incumbent with other loop orders, and with one or two moved prime factors."""
        packed = MappingBatch.pack(self.space.problem, [self.certificate.claim.incumbent.mapping])
        here = Candidates.of(self.space, packed)
        yield self.space.reordered(here, min(PIECE, count))
        left, rows = count, here
        for _ in range(2):
            rows, _ = self.space.neighbours(rows, powers=True)
            rows = rows.take(rows.fits()).take(slice(0, left))
            left -= len(rows)
            for start in range(0, len(rows), PIECE):
                yield rows.take(slice(start, start + PIECE))


@dataclass(frozen=True)
class _Proposing:
    """Mapper that proposes given mappings; the driver keeps the best."""

    parts: Callable[[Run], Iterator[Candidates]]

    def search(self, task: Task, run: Run) -> Proposals:
        for part in self.parts(run):
            _ = yield part  # the driver uses the costs


def _prover_check(then: int | None, now: int | None, prover: str) -> Check:
    """Check that the installed prover knows the rules of a proof: newer ones it cannot judge.

    Args:
        then: version of the proof's rules; None: older than the field.
        now: the installed version; None: there is none.
    """
    if now is None:
        return Check("prover", None, f"no installed mapper {prover} states a version of its proofs")
    if then == now:
        return Check("prover", True, f"proved by version {now} of the proofs of {prover}, the installed one")
    if then is not None and then > now:
        return Check(
            "prover", False, f"version {then} of the proofs of {prover} cannot be judged by version {now}; update it"
        )
    made = "an earlier version" if then is None else f"version {then}"
    message = f"proved by {made} of the proofs of {prover}; version {now} is installed and proves the bound again below"
    return Check("prover", None, message)


def rivals_check(bound: float, value: float, legal: int, tried: int, every: bool) -> Check:
    """Check that group mappings cost at least the bound; `every`: they are all of their space."""
    return _least_check("rivals", bound, value, f"{'all ' if every else ''}{legal:,} legal ones", tried)


def _least_check(name: str, bound: float, value: float, which: str, tried: int) -> Check:
    """Check that the least cost of some mappings, inf if none is valid, is at least the bound."""
    if not math.isfinite(value):
        return Check(name, None, "none of them is valid", tried)
    least = f"the best of {which} costs {value:.10g}"
    if value >= bound * (1 - RELATIVE_TOLERANCE):
        return Check(name, True, least, tried)
    return Check(name, False, f"{least}, which is below the bound of {bound:.10g}", tried)


def claim_check(name: str, claimed_by: str) -> Check:
    """Return the check of what only the plugins that claim it would prove again: it is not asked."""
    return Check(name, None, f"claimed by {claimed_by}, and by nothing else")


def bound_check(bound: float, proved: float, late: str = "") -> Check:
    """Check that a bound was proved again. One below what is proved is true, and weaker."""
    if proved < bound * (1 - RELATIVE_TOLERANCE):
        return Check("bound", False, f"{bound:.10g} is told, {proved:.10g} is proved{late}")
    if proved > bound * (1 + RELATIVE_TOLERANCE):
        return Check("bound", True, f"true, but weaker than what is proved: nothing costs less than {proved:.10g}")
    return Check("bound", True, f"proved again: nothing costs less than {bound:.10g}")


def _incumbent(mapping: Mapping, space: MapSpace) -> Check:
    """Check that the incumbent is a legal mapping of the space."""
    broken = (*legality(space.problem, space.architecture, mapping).reasons, *space.contains(mapping).reasons)
    message = "; ".join(dict.fromkeys(map(str, broken))) or "legal, and a mapping of the space"
    return Check("incumbent", not broken, message, 1)


def _unsearched(certificate: Certificate[LayerClaim]) -> Iterator[Check]:
    """Yield whether the proof holds under the rules of other tools' files that the space does not have."""
    rules = certificate.claim.unsearched
    if rules:
        first, *more = statement(rules, certificate.gap < PROOF_TOLERANCE)
        yield Check(
            "rules", covers_files(rules) or None, f"{first} {'; '.join(line.strip() for line in more)}".strip(), 1
        )


def _figures(certificate: Certificate[LayerClaim], model: BuiltModel, evaluator: Evaluator) -> Check:
    """Check that the cost model still returns the recorded figures, and those of the objective of the search."""
    incumbent, figures = certificate.claim.incumbent, certificate.claim.incumbent.figures
    assert figures is not None  # required by the schema
    report = explain(model, evaluator, incumbent.problem, incumbent.architecture, incumbent.mapping)
    if not report.valid:
        return Check("figures", False, f"{model.name} rejects it: {'; '.join(map(str, report.reasons))}", 1)
    pairs = [
        (certificate.objective.name, report.of(certificate.objective), certificate.value),
        ("energy_pj", report.energy_pj, figures.energy_pj),
        ("cycles", report.cycles, figures.cycles),
        ("edp", report.edp, figures.edp),
    ]
    wrong = [value_message(name, now, told) for name, now, told in pairs if not same(now, told)]
    if certificate.objective.name != _provenance(certificate.claim).objective:
        wrong.append("the incumbent was searched for another objective")
    most = certificate.claim.space.most_cycles
    if most is not None and report.cycles is not None and report.cycles > most:
        wrong.append(f"it takes {report.cycles:,} cycles; the proof is of at most {most:,}")
    message = "; ".join(wrong) or f"evaluated again: {certificate.objective} {certificate.value:.10g}"
    return Check("figures", not wrong, message, 1)


def _gap_check(value: float, bound: float, told: float) -> Check:
    """Check that bound, value and gap are consistent."""
    gap = (value - bound) / value if value else 0.0
    if bound > value * (1 + RELATIVE_TOLERANCE):
        return Check("gap", False, f"the bound of {bound:.10g} is above the incumbent's {value:.10g}")
    return Check("gap", math.isclose(gap, told, abs_tol=RELATIVE_TOLERANCE), value_message("gap", gap, told))


def value_message(what: str, now: float | None, told: float | None) -> str:
    """Return the present figure, and the recorded one if that differs."""

    def text(value: float | None) -> str:
        return "nothing" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.10g}"

    return f"{what} {text(now)}" + ("" if same(now, told) else f", {text(told)} is told")


def same(one: float | None, other: float | None) -> bool:
    """Return whether two integers are equal, or two floats up to rounding."""
    if one is None or other is None or (isinstance(one, int) and isinstance(other, int)):
        return one == other
    return math.isclose(one, other, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12)


def _provenance(claim: LayerClaim) -> Provenance:
    assert claim.incumbent.provenance is not None  # required by the schema
    return claim.incumbent.provenance

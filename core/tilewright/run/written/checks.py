"""Checks of a certificate: what speaks for it, and what against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilewright.errors import InputError, NotConformableError, PluginError, UnknownPluginError
from tilewright.mapspace.batch import MappingBatch
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.legality import legality
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator
from tilewright.plugin.guard.mappers import guarded_mapper
from tilewright.plugin.mapper import Budget, Mapper, Proposals, Run, Task
from tilewright.plugin.registry import installed
from tilewright.plugin.result import Result
from tilewright.plugin.specs import MapperSpec
from tilewright.run.evaluation import BuiltModel, bind, build_model, explain
from tilewright.run.search import search
from tilewright.run.written.layers import digests_of, proof_version_of
from tilewright.schema.mapped import Provenance
from tilewright.schema.mapped.certificate import Certificate

CLOSE = 1e-9
"""Two figures are the same if they differ by less than one part in so many."""
PIECE = 4096
"""Mappings proposed at once."""


@dataclass(frozen=True)
class Check:
    """One thing that was asked of a certificate. `passed` is None where it could not be asked, and `message` says why."""

    name: str
    passed: bool | None
    message: str
    tried: int = 0
    """Mappings evaluated for it."""


def checks(certificate: Certificate, samples: int, limit: int, seed: int) -> Iterator[Check]:
    """One after another, the cheap ones first.

    Args:
        samples: mappings drawn at random, and at most so many neighbours of the incumbent.
        limit: spaces of so many mappings are enumerated.
        seed: of the draws.

    Raises:
        UnknownPluginError: the cost model is not installed.
        PluginError: the cost model or the mapper failed.
    """
    yield _contents(certificate)
    yield _prover(certificate)
    incumbent, covered = certificate.incumbent, certificate.space
    record = _provenance(certificate).model
    model = build_model(record.long_name, record.options)
    try:
        space = MapSpace.of(incumbent.problem, incumbent.architecture, covered.rules, factors=covered.factors)
        size = space.size
        evaluator = bind(model, incumbent.problem, incumbent.architecture)
    except (InputError, NotConformableError) as error:
        yield Check("space", False, f"there is none such: {error}")
        return
    yield Check("space", size == covered.mappings, _told("mappings", size, covered.mappings))
    if not size:
        return
    yield _incumbent(certificate, space)
    yield _figures(certificate, model, evaluator)
    yield _gap(certificate)
    yield from _Searches(certificate, space, evaluator).checks(samples, limit, seed)


@dataclass(frozen=True)
class _Searches:
    """Checks that evaluate mappings of the space."""

    certificate: Certificate
    space: MapSpace
    evaluator: Evaluator

    def checks(self, samples: int, limit: int, seed: int) -> Iterator[Check]:
        bound = self.certificate.bound
        yield self._none_below("random mappings", lambda run: self._drawn(run, samples), seed)
        if self.space.contains(self.certificate.incumbent.mapping):
            yield self._none_below("neighbours", lambda run: self._near(samples), seed)
        else:
            yield Check("neighbours", None, "the incumbent is no mapping of the space")
        proofs: list[float] = []
        if self.space.factorizations <= limit and self.space.size <= limit:
            every = self._none_below("all mappings", lambda run: self.space.enumerate(PIECE), seed)
            yield every
            proofs += [bound] if every.passed else []
        else:
            yield Check("all mappings", None, f"{self.space.size:,} mappings; the limit is {limit:,}")
        mapper = self._mapper()
        if isinstance(mapper, Mapper):
            own = _provenance(self.certificate).seed
            alone = guarded_mapper(mapper).starting_with()
            other = self._search(alone, Budget(**dict(self.certificate.limits)), own + 1)
            yield self._consistent(other)
            proofs += [other.lower_bound or 0.0]
            if max(proofs) < bound * (1 - CLOSE):
                again = self._search(mapper, Budget(**dict(self.certificate.limits)), own)
                proofs += [again.lower_bound or 0.0]
        else:
            yield Check("another seed", None, mapper)
        yield self._proved_again(max(proofs, default=None))

    def _none_below(self, name: str, parts: Callable[[Run], Iterator[Candidates]], seed: int) -> Check:
        """Whether some mappings all cost at least the bound."""
        found = self._search(_Proposing(parts), Budget(), seed)
        if found.best is None:
            return Check(name, None, "none of them is valid", found.evaluated)
        least = f"the best of {found.valid:,} valid ones costs {found.value:.10g}"
        if found.value >= self.certificate.bound * (1 - CLOSE):
            return Check(name, True, least, found.evaluated)
        return Check(
            name, False, f"{least}, which is below the bound of {self.certificate.bound:.10g}", found.evaluated
        )

    def _consistent(self, other: Result) -> Check:
        """What the mapper finds and proves with another seed, and without the mapper that it starts with."""
        name, bound, value = "another seed", self.certificate.bound, self.certificate.value
        proved = "nothing" if other.lower_bound is None else f"{other.lower_bound:.10g}"
        told = f"the mapper finds {other.value:.10g} and proves {proved}"
        if other.value < bound * (1 - CLOSE):
            wrong = f"{told}: the certificate is wrong, a mapping costs less than its bound of {bound:.10g}; map the layer again"
            return Check(name, False, wrong, other.evaluated)
        if (other.lower_bound or 0.0) > value * (1 + CLOSE):
            wrong = f"{told}: certificate and prover contradict each other, the incumbent costs {value:.10g}; please report it"
            return Check(name, False, wrong, other.evaluated)
        return Check(name, True, told, other.evaluated)

    def _proved_again(self, least: float | None) -> Check:
        """Whether the bound is more than a claim."""
        bound = self.certificate.bound
        if least is None:
            return Check("bound", None, "nothing proves it again: neither the mapper nor an enumeration")
        if least >= bound * (1 - CLOSE):
            return Check("bound", True, f"proved again: nothing costs less than {bound:.10g}")
        late = ", in the seconds that it had" if self.certificate.limits.seconds is not None else ""
        return Check("bound", False, f"{bound:.10g} is told, the mapper proves {least:.10g}{late}")

    def _mapper(self) -> Mapper | str:
        """The mapper that proved it; or why there is none."""
        record = _provenance(self.certificate).mapper
        try:
            return installed().make(MapperSpec, record.long_name, record.options)
        except (UnknownPluginError, InputError, PluginError) as error:
            return f"mapper {record} cannot be asked: {error.message}"

    def _search(self, mapper: Mapper, budget: Budget, seed: int) -> Result:
        """Raises PluginError, KeyboardInterrupt: it failed, it was interrupted."""
        most = self.certificate.space.most_cycles
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
        """The incumbent with other orders of its loops, and with one prime factor moved or two."""
        packed = MappingBatch.pack(self.space.problem, [self.certificate.incumbent.mapping])
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
    """Proposes what it is given: the driver counts, confirms and keeps the best."""

    parts: Callable[[Run], Iterator[Candidates]]

    def search(self, task: Task, run: Run) -> Proposals:
        for part in self.parts(run):
            _ = yield part  # what it costs does not matter here


def _contents(certificate: Certificate) -> Check:
    """Whether the parts are those that were certified."""
    now = digests_of(certificate.incumbent, certificate.space.rules)
    told = certificate.digests
    other = [name for name in type(now).model_fields if getattr(now, name) != getattr(told, name)]
    message = f"{', '.join(other)} changed since" if other else "as they were certified"
    return Check("contents", not other, message)


def _prover(certificate: Certificate) -> Check:
    """Compare the version of the proof's rules with the installed mapper's; only the check `bound` decides."""
    record = _provenance(certificate).mapper
    then, now = certificate.proof_version, proof_version_of(record)
    if now is None:
        return Check("prover", None, f"the installed mapper '{record.name}' states no version of its proofs")
    if then == now:
        return Check("prover", True, f"proved by version {now} of the proofs of '{record.name}', the installed one")
    made = "an earlier version" if then is None else f"version {then}"
    message = f"proved by {made} of the proofs of '{record.name}'; version {now} is installed and proves the bound again below"
    return Check("prover", None, message)


def _incumbent(certificate: Certificate, space: MapSpace) -> Check:
    """Whether it is a legal mapping of the space."""
    mapping = certificate.incumbent.mapping
    broken = (*legality(space.problem, space.architecture, mapping).reasons, *space.contains(mapping).reasons)
    message = "; ".join(dict.fromkeys(map(str, broken))) or "legal, and a mapping of the space"
    return Check("incumbent", not broken, message, 1)


def _figures(certificate: Certificate, model: BuiltModel, evaluator: Evaluator) -> Check:
    """Whether the cost model still says of the incumbent what is told."""
    incumbent, figures = certificate.incumbent, certificate.incumbent.figures
    assert figures is not None  # the schema asks for them
    report = explain(model, evaluator, incumbent.problem, incumbent.architecture, incumbent.mapping)
    if not report.valid:
        return Check("figures", False, f"{model.name} rejects it: {'; '.join(map(str, report.reasons))}", 1)
    pairs = [
        (certificate.objective, report.of(certificate.objective), certificate.value),
        ("energy_pj", report.energy_pj, figures.energy_pj),
        ("cycles", report.cycles, figures.cycles),
        ("edp", report.edp, figures.edp),
    ]
    wrong = [_told(name, now, told) for name, now, told in pairs if not _same(now, told)]
    most = certificate.space.most_cycles
    if most is not None and report.cycles is not None and report.cycles > most:
        wrong.append(f"it takes {report.cycles:,} cycles; the proof is of at most {most:,}")
    message = "; ".join(wrong) or f"evaluated again: {certificate.objective} {certificate.value:.10g}"
    return Check("figures", not wrong, message, 1)


def _gap(certificate: Certificate) -> Check:
    """Whether bound, value, gap and objective belong together."""
    value, bound = certificate.value, certificate.bound
    gap = (value - bound) / value if value else 0.0
    if bound > value * (1 + CLOSE):
        return Check("gap", False, f"the bound of {bound:.10g} is above the incumbent's {value:.10g}")
    if certificate.objective != _provenance(certificate).objective:
        return Check("gap", False, "the incumbent was searched for another objective")
    return Check("gap", math.isclose(gap, certificate.gap, abs_tol=CLOSE), _told("gap", gap, certificate.gap))


def _told(what: str, now: float | None, told: float | None) -> str:
    def text(value: float | None) -> str:
        return "nothing" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.10g}"

    return f"{what} {text(now)}" + ("" if _same(now, told) else f", {text(told)} is told")


def _same(one: float | None, other: float | None) -> bool:
    """Equal integers, or floats that differ by rounding only."""
    if one is None or other is None or (isinstance(one, int) and isinstance(other, int)):
        return one == other
    return math.isclose(one, other, rel_tol=CLOSE, abs_tol=1e-12)


def _provenance(certificate: Certificate) -> Provenance:
    assert certificate.incumbent.provenance is not None  # the schema asks for it
    return certificate.incumbent.provenance

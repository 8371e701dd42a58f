"""Contract checks for cost models: energies follow from prices and words, cycles from bandwidths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.errors import NotConformableError
from tilewright.mapspace.batch import Floats, MappingBatch
from tilewright.mapspace.counting import used_words
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Evaluator, Relaxable
from tilewright.plugin.relaxed import least_of, relaxed_costs
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import LevelReport
from tilewright.schema.architecture import Architecture
from tilewright.schema.mapping import Mapping
from tilewright.testing.corpus import Sample
from tilewright.testing.kit import CheckFailure, Subject, check, first_row, require
from tilewright.testing.reference import PlainEvaluator

COUNT = 8
"""Mappings of each sample that are priced."""
COMPUTE = "compute.energy_per_operation_pj"
KEPT = 0.75
"""Fraction of displaced words that is paid at least, since models may keep parts of tiles."""
NARROW = 1e-3
"""Words per cycle of a memory that everything waits for."""


@dataclass(frozen=True)
class _Priced:
    """A model bound to a sample with other prices; energies are those of its valid mappings, [n]."""

    subject: Subject
    sample: Sample

    def bound(self, architecture: Architecture) -> Evaluator:
        evaluator: Evaluator = self.subject.make().bind(self.sample.problem, architecture)
        return evaluator

    @cached_property
    def batch(self) -> MappingBatch:
        """Mappings that the model accepts."""
        drawn = self.sample.batch(COUNT)
        return drawn.take(self.bound(self.sample.architecture).evaluate_batch(drawn).valid)

    @cached_property
    def prices(self) -> dict[str, float]:
        machine = self.sample.architecture
        prices = {COMPUTE: machine.compute.energy_per_operation_pj}
        for memory in machine.memories:
            prices[f"{memory.name}.read_energy_pj"] = memory.read_energy_pj
            prices[f"{memory.name}.write_energy_pj"] = memory.write_energy_pj
            prices[f"{memory.name}.update_energy_pj"] = memory.accumulation_energy_pj
        return prices

    def energy(self, prices: MappingOf[str, float]) -> Floats:
        """Return energies with these prices in pJ, and 0 for all others."""
        machine = self.sample.architecture.replace({**dict.fromkeys(self.prices, 0.0), **prices})
        return self.bound(machine).evaluate_batch(self.batch).energy_pj

    @cached_property
    def words(self) -> dict[str, Floats]:
        """Price -> energies with that price of 1 pJ alone: words and operations that the model charges."""
        return {name: self.energy({name: 1.0}) for name in self.prices}

    @property
    def has_one_write_price(self) -> bool:
        """Whether the model has no price of updates, so that it pays them as fills."""
        return not any(words.any() for name, words in self.words.items() if name.endswith(".update_energy_pj"))


def _priced(subject: Subject) -> Iterator[_Priced]:
    """Yield the samples, unless the model has prices of its own."""
    if "priced" not in subject.kept:
        all_samples = [_Priced(subject, sample) for sample in subject.samples()]
        subject.kept["priced"] = [priced for priced in all_samples if len(priced.batch) and not priced.energy({}).any()]
    yield from subject.kept["priced"]


@check(CostModelSpec)
def check_costmodel_energy_is_words_times_prices(subject: Subject) -> None:
    """Energy is a sum over the prices of the architecture, each times what it pays; each operation is paid once.

    Models with prices of their own, which charge energy on free hardware, are exempt.
    """
    for priced in _priced(subject):
        sample, macs = priced.sample, priced.sample.problem.macs
        total = np.sum([price * priced.words[name] for name, price in priced.prices.items()], axis=0)
        whole = priced.energy(priced.prices)
        require(
            np.allclose(total, whole, rtol=1e-6, atol=1e-6),
            f"{sample}: with one price at a time, energies add up to {_few(total)} pJ; with all prices it is {_few(whole)} pJ; "
            "expected the same, since energies are words times prices",
        )
        require(
            np.allclose(priced.words[COMPUTE], macs, rtol=1e-6),
            f"{sample}: if only operations cost energy, 1 pJ each, {macs} operations take {_few(priced.words[COMPUTE])} pJ; "
            f"expected {macs} pJ; check the unit, which is pJ, and that all units are counted",
        )


@check(CostModelSpec)
def check_costmodel_pays_for_each_word(subject: Subject) -> None:
    """The outermost memory is read for each used word of the operands, and written for each of the result.

    If loop orders matter to the model, a tile that other loops displace is paid again.
    """
    for priced in _priced(subject):
        sample, problem = priced.sample, priced.sample.problem
        outermost = sample.architecture.memories[0]
        read, updated = (priced.words[f"{outermost.name}.{kind}_energy_pj"] for kind in ("read", "update"))
        if priced.has_one_write_price:
            updated = priced.words[f"{outermost.name}.write_energy_pj"]
        if not (read.any() or updated.any() or priced.words[f"{outermost.name}.write_energy_pj"].any()):
            if len(sample.architecture.memories) == 2:
                require(
                    False,
                    f"{sample}: no price of {outermost.name} has an effect on any energy, but all words come from it",
                )
            continue  # a model may begin below it
        for what, words, needed in (
            ("reads of operands", read, sum(used_words(problem, tensor) for tensor in problem.operands)),
            ("updates of the result", updated, used_words(problem, problem.output)),
        ):
            require(
                bool((words >= needed * (1 - 1e-6)).all()),
                f"{sample}: if only {what} of {outermost.name} cost energy, 1 pJ each, mappings take {_few(words)} pJ; expected at "
                f"least {needed:g} pJ, as many as there are words; check the unit, which is pJ, and that no access is forgotten",
            )
        if np.ptp(read + updated) > 0:  # others count each word once for all mappings
            _displaced_tiles_are_paid(priced, read + updated)


def _displaced_tiles_are_paid(priced: _Priced, words: Floats) -> None:
    sample = priced.sample
    plain = PlainEvaluator(sample.problem, sample.architecture).relaxation(sample.space.skeleton)
    first = np.zeros(len(sample.architecture.memories))
    first[0] = 1.0
    alone = replace(plain, read_pj=first, update_pj=first, fill_pj=0 * first, compute_pj=0.0)
    displaced = relaxed_costs(alone, sample.architecture, priced.batch).energy_pj
    for mapping, charged, least in zip(priced.batch, words, displaced, strict=True):
        require(
            charged >= KEPT * least,
            f"{sample}: {charged:g} words of {sample.architecture.memories[0].name} are paid, but at least {least:g} move, since loops "
            f"displace tiles that are needed again; count loop orders, or assume the worst one. The mapping:\n{mapping.to_yaml()}",
        )


PRICES_OF = (("read", "reads"), ("write", "fills"), ("update", "updates"))
"""Prices of a memory, and the counts of a report that they are paid for."""


@check(CostModelSpec)
def check_costmodel_energy_agrees_with_its_counts(subject: Subject) -> None:
    """1 pJ more per read, fill or update of a memory costs those of the report once more: words times instances times price."""
    for priced in _priced(subject):
        sample = priced.sample
        evaluator = priced.bound(sample.architecture)
        for index, mapping in enumerate(priced.batch.take(slice(0, 8))):
            levels = evaluator.explain(mapping).levels
            _all_words_are_read(sample, levels, mapping)
            for level in levels:
                if f"{level.name}.read_energy_pj" not in priced.words or not level.tensors:
                    continue
                memory = next(memory for memory in sample.architecture.memories if memory.name == level.name)
                for price, counted in PRICES_OF[: 2 if priced.has_one_write_price else 3]:
                    kinds = ("fills", "updates") if priced.has_one_write_price and price == "write" else (counted,)
                    words = sum(
                        getattr(counts, kind) * counts.instances * memory.words_of(sample.problem.tensor(tensor))
                        for tensor, counts in level.tensors.items()
                        for kind in kinds
                    )
                    words /= memory.block_words
                    paid = priced.words[f"{level.name}.{price}_energy_pj"][index]
                    require(
                        abs(paid - words) <= 0.01 * max(words, paid),
                        f"{sample}: the report has {words:g} {counted} of {level.name} over all its instances, but 1 pJ more for each "
                        f"costs {paid:g} pJ; expected {words:g} pJ; check that energies are of all instances, in pJ. The mapping:\n"
                        f"{mapping.to_yaml()}",
                    )


def _all_words_are_read(sample: Sample, levels: Sequence[LevelReport], mapping: Mapping) -> None:
    """Raise CheckFailure if the outermost memory delivers fewer words of an operand than are used."""
    outermost = sample.architecture.memories[0].name
    for level in levels:
        for tensor in sample.problem.operands if level.name == outermost else ():
            counts = level.tensors.get(tensor.name)
            used = used_words(sample.problem, tensor)
            require(
                counts is None or counts.reads * counts.instances >= used,
                f"{sample}: {outermost} delivers {0 if counts is None else counts.reads:g} words of {tensor.name}; expected at least {used}, "
                f"since operations use as many; check strides and halos of its tiles. The mapping:\n{mapping.to_yaml()}",
            )


@check(CostModelSpec)
def check_costmodel_cycles_follow_bandwidths(subject: Subject) -> None:
    """A lower bandwidth never takes fewer cycles, and does not change energies; if it is counted, all words take it.

    Models that count no bandwidth are exempt.
    """
    for sample in subject.samples():
        machine, batch = sample.architecture, sample.batch(COUNT // 2)
        before = subject.make().bind(sample.problem, machine).evaluate_batch(batch)
        for memory in machine.memories:
            for kind in ("read", "write"):
                field = f"{kind}_bandwidth_words_per_cycle"
                try:
                    narrow = machine.replace({f"{memory.name}.{field}": NARROW})
                    after = subject.make().bind(sample.problem, narrow).evaluate_batch(batch)
                except NotConformableError:
                    continue
                both = before.valid & after.valid
                if not both.any():
                    continue
                low, high = before.cycles[both], after.cycles[both]
                where = f"{sample}: with {NARROW:g} words per cycle as {field} of {memory.name}"
                require(
                    bool((high >= low).all()), f"{where}, mappings take {_few(high)} cycles; without it {_few(low)}"
                )
                same = memory.leakage_pj_per_cycle > 0 or np.allclose(before.energy_pj[both], after.energy_pj[both])
                require(bool(same), f"{where}, energies change, although the same words move")
                if memory is machine.memories[0] and (high > low).any():
                    tensors = sample.problem.operands if kind == "read" else (sample.problem.output,)
                    least = sum(used_words(sample.problem, tensor) for tensor in tensors) / NARROW
                    require(
                        bool((high >= least * (1 - 1e-6)).all()),
                        f"{where}, mappings take {_few(high)} cycles; expected at least {least:g}, since all words pass there",
                    )


def _few(figures: Floats) -> str:
    """Return the lowest and the highest of some figures."""
    low, high = float(np.min(figures)), float(np.max(figures))
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


@check(CostModelSpec)
def check_costmodel_relaxation_holds_for_each_price(subject: Subject) -> None:
    """If one price alone is not zero, no mapping costs less energy than the relaxation for those prices."""
    for priced in _priced(subject):
        sample = priced.sample
        for name in priced.prices:
            free = sample.architecture.replace({**dict.fromkeys(priced.prices, 0.0), name: 1.0})
            evaluator = priced.bound(free)
            if not isinstance(evaluator, Relaxable):
                continue
            space = MapSpace.of(sample.problem, free, sample.rules)
            relaxation = evaluator.relaxation(space.skeleton, space.keeps)
            if relaxation is not None:
                bounds = relaxed_costs(relaxation, free, priced.batch).energy_pj
                row = first_row(bounds > priced.words[name] * (1 + 1e-9) + 1e-9)
                if row is not None:
                    raise CheckFailure(
                        f"{sample}: if only {name} is not 0, but 1 pJ, the relaxation bounds a mapping by {bounds[row]:g} pJ, which takes "
                        f"{priced.words[name][row]:g} pJ; check memories and prices of the relaxation. The mapping:\n"
                        f"{priced.batch[row].to_yaml()}"
                    )
            least, _ = least_of(space, evaluator)
            energy = float(priced.words[name].min())
            require(
                least <= energy * (1 + 1e-9),
                f"{sample}: if only {name} is not 0, but 1 pJ, a mapping takes {energy:g} pJ, below the relaxation's bound of {least:g}; "
                "a relaxation has the lowest price of each word and operation",
            )

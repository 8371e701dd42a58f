"""Sampled mappings of one problem under several cost models: what `correlate` compares."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field

import numpy as np

from tilewright.application.run.accepted import accepted, narrowed_space
from tilewright.application.run.compilation_warm_up import compilation_notice
from tilewright.application.run.evaluation import BuiltModel, bind, reasons_of, unexplained
from tilewright.application.run.pieces import costs_of, next_size
from tilewright.application.run.rejections import RejectionSample
from tilewright.errors import NoValidMappingError, PluginError, Reason, TilewrightError
from tilewright.interrupts import mark_result_found, raising, stop_requested
from tilewright.mapspace.candidates import Candidates
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.costmodel import Costs, Evaluator
from tilewright.plugin.mapper import Task
from tilewright.plugin.result import Rejections
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import CYCLES, ENERGY
from tilewright.schema.problem import Problem

DRAWN_AT_ONCE = 4096
MAX_DRAWN = 2**22
"""Maximum number of mappings drawn per layer; most may be illegal."""
PIECE_SECONDS = 0.5
"""Time of a piece of mappings under all models, after which Ctrl-C and deadline are asked."""
EXPLAINED = 20
"""Maximum number of mappings per layer whose energies are split by memory."""


@dataclass(frozen=True, eq=False)
class LayerSample:
    """Mappings of one problem, and their costs under each model that accepts the problem.

    Attributes:
        mappings: The evaluated mappings; None if there is none.
        drawn: Number of drawn mappings, legal or not.
        costs: Model -> costs of all mappings.
        refused: Model -> reasons against mappings that it refuses.
        left_out: Model -> why it has no costs at all.
        parts: Model -> memory or other part -> mean energy in pJ, over `explained` mappings that all models accept.
        unsplit: Why energies by memory are not known; empty if they are.
        stopped: What ended the evaluation early: `deadline`, `cancelled` or an empty text.
    """

    problem: Problem
    architecture: Architecture
    mappings: Candidates | None = None
    drawn: int = 0
    costs: MappingOf[str, Costs] = field(default_factory=dict)
    refused: MappingOf[str, Rejections] = field(default_factory=dict)
    left_out: MappingOf[str, tuple[Reason, ...]] = field(default_factory=dict)
    parts: MappingOf[str, MappingOf[str, float]] = field(default_factory=dict)
    explained: int = 0
    unsplit: str = ""
    stopped: str = ""

    def __len__(self) -> int:
        return 0 if self.mappings is None else len(self.mappings)

    def mapping(self, index: int) -> Mapping:
        """Return one of the mappings."""
        assert self.mappings is not None
        return self.mappings[index]


def common_space(
    models: Sequence[BuiltModel], problem: Problem, architecture: Architecture, constraints: Constraints
) -> tuple[MapSpace | None, dict[str, Evaluator], dict[str, tuple[Reason, ...]]]:
    """Return the part of the map space that all models accept, the bound models, and why others are left out.

    A model that accepts no mapping of the part that is left by the models before it is left out, too.
    """
    space: MapSpace | None = None
    evaluators: dict[str, Evaluator] = {}
    left_out: dict[str, tuple[Reason, ...]] = {}
    for model in models:
        try:
            evaluator = bind(model, problem, constraints.shape(architecture))
            part, _ = narrowed_space(model, problem, architecture, constraints)
            space = part if space is None else accepted(space, model.capabilities, f"cost model {model.name}")
            evaluators[model.name] = evaluator
        except TilewrightError as error:
            left_out[model.name] = reasons_of(error)
    return space, evaluators, left_out


def sample_layer(
    models: Sequence[BuiltModel],
    problem: Problem,
    architecture: Architecture,
    constraints: Constraints,
    *,
    samples: int,
    seed: int,
    seconds: float | None = None,
    watch: Callable[[int], None] | None = None,
) -> LayerSample:
    """Draw legal mappings that all models may accept, and evaluate them under every model.

    Factorisations are equally likely, and so are the loop orders of one (`MapSpace.sample`); a mapping may occur twice.
    The mappings depend on the seed alone. A deadline and Ctrl-C leave out the last ones.

    Args:
        samples: Number of mappings.
        seconds: Time limit; None: no limit.
        watch: Called with the number of evaluated mappings.
    """
    until = np.inf if seconds is None else time.monotonic() + seconds
    with raising():
        space, evaluators, left_out = common_space(models, problem, architecture, constraints)
    if space is None or len(evaluators) < 2:
        return LayerSample(problem, architecture, left_out=left_out)
    shaped = space.architecture
    drawn, legal, reason = _draw(space, samples, seed, until if seconds is None else until - seconds / 2)
    if legal is None:
        reasons = {name: (reason,) for name in evaluators} if reason else {}
        return LayerSample(problem, shaped, drawn=drawn, left_out=left_out | reasons, stopped=_stop(until))
    cut = "deadline" if len(legal) < samples and drawn < MAX_DRAWN else ""  # half of the time is for evaluations
    costs: dict[str, list[Costs]] = {name: [] for name in evaluators}
    done, piece = 0, 4
    try:
        while done < len(legal) and not _stop(until):
            batch = legal.take(slice(done, done + piece))
            began = time.monotonic()
            priced = {}
            for name in list(costs):
                try:
                    with raising(), compilation_notice(name):
                        priced[name] = costs_of(evaluators[name], batch)
                except TilewrightError as error:  # it crashed: the others go on
                    left_out[name] = reasons_of(error)
                    del costs[name]
            for name, part in priced.items():
                costs[name].append(part)
            done += len(batch)
            mark_result_found()
            piece = next_size(piece, len(batch), time.monotonic() - began, PIECE_SECONDS)
            if watch is not None:
                watch(done)
    except KeyboardInterrupt:
        mark_result_found()
    kept = legal.take(slice(0, done))
    joined = {name: Costs.join(parts) for name, parts in costs.items() if parts}
    contradicted = dict(_contradictions(models, kept, joined, evaluators)) if done and not stop_requested() else {}
    left_out |= contradicted
    joined = {name: one for name, one in joined.items() if name not in contradicted}
    left = {name: evaluators[name] for name in joined}
    parts, explained, unsplit = _split(left, kept, joined, until)
    return LayerSample(
        problem=problem,
        architecture=shaped,
        mappings=kept if done else None,
        drawn=drawn,
        costs=joined,
        refused=dict(_refusals(space, left, kept, joined)),
        left_out=left_out,
        stopped=_stop(until) or (cut if done == len(legal) else "") if done < samples else "",
        parts=parts,
        explained=explained,
        unsplit=unsplit,
    )


def _stop(until: float) -> str:
    return "cancelled" if stop_requested() else "deadline" if time.monotonic() >= until else ""


def _draw(space: MapSpace, samples: int, seed: int, until: float) -> tuple[int, Candidates | None, Reason | None]:
    """Return how many mappings were drawn until then, the legal ones, and why there are none."""
    rng, parts, drawn, legal = np.random.default_rng(seed), list[Candidates](), 0, 0
    try:
        with raising():
            while legal < samples and drawn < MAX_DRAWN and not (drawn and _stop(until)):
                batch = space.sample(rng, DRAWN_AT_ONCE)
                drawn += len(batch)
                parts.append(batch.take(batch.legal() & batch.fits()))
                legal += len(parts[-1])
    except NoValidMappingError as error:
        return drawn, None, Reason(code="empty", where=space.problem.name, message=error.message)
    if not legal:
        text = f"none of {drawn:,} drawn mappings is legal"
        return drawn, None, Reason(code="illegal", where=space.problem.name, message=text)
    return drawn, Candidates.join(parts).take(slice(0, samples)), None


def _contradictions(
    models: Sequence[BuiltModel],
    mappings: Candidates,
    costs: MappingOf[str, Costs],
    evaluators: MappingOf[str, Evaluator],
) -> Iterator[tuple[str, tuple[Reason, ...]]]:
    """Yield models whose report on the first valid mapping, or on the last one, contradicts its costs."""
    for model in models:
        name = model.name
        valid = np.flatnonzero(costs[name].valid).tolist() if name in costs else []
        for index in {*valid[:1], *valid[-1:]}:
            try:
                report = evaluators[name].explain(mappings[index])
            except TilewrightError:
                continue  # its energies by memory are missing, for this reason
            for objective, values in ((ENERGY, costs[name].energy_pj), (CYCLES, costs[name].cycles)):
                wrong = unexplained(report, float(values[index]), objective)
                if wrong is not None:
                    yield name, reasons_of(PluginError(f"cost model {model.record} failed: {wrong}"))
                    break
            else:
                continue
            break


def _refusals(
    space: MapSpace, evaluators: MappingOf[str, Evaluator], mappings: Candidates, costs: MappingOf[str, Costs]
) -> Iterator[tuple[str, Rejections]]:
    """Yield models that refuse mappings, with reasons of a sample of these."""
    for name, evaluator in evaluators.items():
        if not costs[name].valid.all():
            sample = RejectionSample()
            sample.add(mappings.take(~costs[name].valid))
            reasons = sample.explained(Task(space), evaluator)
            if reasons is not None:
                yield name, reasons


def _split(
    evaluators: MappingOf[str, Evaluator], mappings: Candidates, costs: MappingOf[str, Costs], until: float
) -> tuple[dict[str, dict[str, float]], int, str]:
    """Return the mean energy by model and memory, the number of mappings that it covers, and why these are not more."""
    valid = np.logical_and.reduce([one.valid for one in costs.values()]) if costs else np.zeros(0, np.bool_)
    sums: dict[str, dict[str, float]] = {name: {} for name in evaluators}
    explained, unsplit = 0, ""
    for index in np.flatnonzero(valid)[:EXPLAINED].tolist():
        if explained and _stop(until):
            break
        mapping = mappings[index]
        try:
            reports = {name: evaluator.explain(mapping) for name, evaluator in evaluators.items()}
        except TilewrightError as error:
            unsplit = error.message
            break
        if not all(report.valid for report in reports.values()):
            continue
        for name, report in reports.items():
            for part in report.energy_parts():
                sums[name][part.place] = sums[name].get(part.place, 0.0) + part.energy_pj
        explained += 1
    if not explained:
        return {}, 0, unsplit
    means = {name: {place: pj / explained for place, pj in of.items()} for name, of in sums.items()}
    return means, explained, unsplit

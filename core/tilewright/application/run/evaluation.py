"""Evaluation of a mapping, or of a program of directives, by a cost model.

Every failure becomes an invalid report with reasons: a refusal of the model, a crash, or an error while it was built.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from typing import Any

from tilewright.application.run.compilation_warm_up import compilation_notice
from tilewright.errors import (
    InputError,
    InvalidMappingError,
    NotConformableError,
    PluginError,
    Reason,
    TilewrightError,
    UnknownPluginError,
)
from tilewright.mapspace.legality import legality
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.costmodel import CostModel, DirectiveModel, Evaluator, GroupModel, VectorModel
from tilewright.plugin.guard.answers import converted
from tilewright.plugin.guard.calls import calling, owner_of
from tilewright.plugin.guard.models import guarded_model
from tilewright.plugin.program import Program, Tiles
from tilewright.plugin.registry import Registration, check_options, installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.mapped.claimants import BUILTIN
from tilewright.schema.mapping import Mapping
from tilewright.schema.objective import Objective
from tilewright.schema.operands import operand_warnings
from tilewright.schema.problem import Problem
from tilewright.schema.vector import Unit, VectorLayer
from tilewright.values import attributes, grouped

FAILED = "plugin_failed"
"""Code of the reason if a plugin crashed or could not be built."""
BOXES = "holes"
"""Code of the approximation of a model that counts the box around the words of a tile."""


@dataclass(frozen=True)
class BuiltModel:
    """A cost model with its capabilities and its record.

    If it could not be built, `model` is None and `error` is the reason.
    """

    name: str
    record: PluginRecord
    model: CostModel | None
    capabilities: Capabilities = Capabilities()
    error: PluginError | None = None


def build_model(name: str | CostModel, options: MappingOf[str, Any] | None = None) -> BuiltModel:
    """Return an installed cost model by name, or a cost model object from the caller.

    Raises:
        UnknownPluginError, AmbiguousPluginError: No single cost model has this name.
        InputError: An option is unknown or invalid, or an object is not a cost model.
    """
    if not isinstance(name, str):
        if not callable(getattr(name, "bind", None)) or options:
            raise InputError(f"{name!r} is no cost model", hint="give a name, or an object with bind() and no options")
        kind = type(name).__name__
        able = Capabilities(groups=isinstance(name, GroupModel), vector_layers=isinstance(name, VectorModel))
        return BuiltModel(kind, PluginRecord(name=kind), guarded_model(name, owner_of(CostModelSpec.kind, name)), able)
    record, capabilities = PluginRecord(name=name), Capabilities()
    try:
        registration = installed().find(CostModelSpec, name)
        capabilities = registration.spec.capabilities
        record = record_of(registration, options or {})
        built = installed().make(CostModelSpec, name, options or {})
        capabilities = check_options(registration, options or {}).narrowed(capabilities)
        return BuiltModel(name, record, built, capabilities)
    except PluginError as error:
        return BuiltModel(name, record, None, capabilities, error)


def executing_model(name: str | None = None) -> str:
    """Return the name of the installed cost model that executes mappings, built-in ones first.

    Args:
        name: The requested one.

    Raises:
        UnknownPluginError, AmbiguousPluginError: No single cost model has this name, or none executes.
        InputError: The requested one does not execute mappings.
    """
    specs = {registration.name: registration.spec for registration in installed().of_kind(CostModelSpec)}
    able = [candidate for candidate, spec in specs.items() if isinstance(spec, CostModelSpec) and spec.executes]
    if name is None and able:
        return able[0]
    if name is None:
        raise UnknownPluginError("no installed cost model executes mappings", hint="tilewright plugins lists them")
    long_name = installed().find(CostModelSpec, name).name
    if long_name not in able:
        raise InputError(
            f"cost model '{name}' does not execute mappings", hint=f"these do: {', '.join(able) or 'none'}"
        )
    return long_name


def record_of(registration: Registration, options: MappingOf[str, Any]) -> PluginRecord:
    """Return the record of a plugin: name, version and options.

    Raises:
        InputError: An option is unknown or invalid.
    """
    checked = check_options(registration, options)
    with calling(registration.owner, "its options"):
        dumped = checked.model_dump(mode="json")
    named = {"name": registration.spec.name, "options": dumped}
    return PluginRecord.model_validate(named | attributes(registration, "distribution version"))


def bind(model: BuiltModel, problem: Problem, architecture: Architecture) -> Evaluator:
    """Return the model bound to one problem and one architecture.

    Raises:
        NotConformableError: It does not accept this pair.
        PluginError: It could not be built, or crashed.
    """
    if model.model is None:
        raise model.error or PluginError(f"cost model '{model.name}' was not built")
    _check_accepted(model, problem, architecture)
    return model.model.bind(problem, architecture)


def _check_accepted(model: BuiltModel, problem: Problem, architecture: Architecture) -> None:
    """Raise NotConformableError if the capabilities do not include this pair."""
    verdict = model.capabilities.judge(problem, architecture) + model.capabilities.judge_hardware(problem, architecture)
    if not verdict:
        raise NotConformableError(f"cost model {model.name}", verdict.reasons)


def evaluate(model: BuiltModel, problem: Problem, architecture: Architecture, mapping: Mapping) -> Report:
    """Return the model's report on one mapping. Failures are invalid reports."""
    try:
        evaluator = bind(model, problem, architecture)
        verdict = model.capabilities.judge_mapping(problem, architecture, mapping)
        if not verdict:
            broken = legality(problem, architecture, mapping) + verdict
            raise NotConformableError(f"cost model {model.name}", broken.reasons)
    except TilewrightError as error:
        return refusal(model, problem.name, problem.macs, error)
    return explain(model, evaluator, problem, architecture, mapping)


def explain(
    model: BuiltModel, evaluator: Evaluator, problem: Problem, architecture: Architecture, mapping: Mapping
) -> Report:
    """Return the report of a bound model, like `evaluate`."""
    try:
        with compilation_notice(model.name):
            report = _named(model, evaluator.explain(mapping).on(architecture, problem))
    except TilewrightError as error:
        return refusal(model, problem.name, problem.macs, error)
    if not report.valid:
        return report
    return report.model_copy(update={"warnings": (*report.warnings, *_uncounted(model, problem, architecture))})


def _named(model: BuiltModel, report: Report) -> Report:
    """Return a report that names its model: another package's plugin could call itself as another one."""
    is_builtin = model.record.distribution in (None, BUILTIN)
    return report if is_builtin else report.model_copy(update={"model": model.name})


def unexplained(report: Report, value: float, objective: Objective, which: str = "a valid mapping") -> str | None:
    """Return how the report on a mapping contradicts the objective at which the model evaluated it, or None."""
    if not report.valid:
        return f"it does not explain {which}: {'; '.join(str(reason) for reason in report.reasons)}"
    told = report.of(objective)
    if told is None or not math.isclose(told, value, rel_tol=1e-6):
        return f"it explains {objective} {told:g} of a mapping that it evaluated at {value:g}"
    return None


def _uncounted(model: BuiltModel, problem: Problem, architecture: Architecture) -> Iterator[str]:
    """Yield a warning for each part of the inputs that the figures leave out."""
    parts = grouped(
        ((stated.field, stated.attribute.warning), stated.part)
        for stated in model.capabilities.uncounted(problem, architecture)
        if stated.attribute.warning is not None
    )
    for (field, instead), memories in parts.items():
        yield f"{field} of {', '.join(memories)} are not counted: {instead}"
    if problem.sparse_tensors and not architecture.sparse_parts:
        names = ", ".join(problem.sparse_tensors)
        yield f"densities of {names} change nothing: no part of {architecture.name} is sparse"
    yield from operand_warnings([problem], architecture)
    yield from _boxes(model, [problem])


def _boxes(model: BuiltModel, problems: Sequence[Problem]) -> Iterator[str]:
    """Yield a warning for each tensor that repeats a dimension, if the model counts the box around its words."""
    for problem in problems:
        for tensor in problem.tensors:
            names = Counter(name for rank in tensor.projection for name in rank.terms)
            twice = [name for name, count in names.items() if count > 1]
            if twice and _has_approximation(model, BOXES):
                text = f"{', '.join(twice)} moves several coordinates of {tensor.name}, which is counted by its box"
                yield f"{problem.name}: {text}; an execution moves the words on the diagonal only"


def _has_approximation(model: BuiltModel, code: str) -> bool:
    specs = [
        registration.spec
        for registration in installed().of_kind(CostModelSpec)
        if registration.long_name == model.record.long_name
    ]
    return any(
        isinstance(spec, CostModelSpec) and code in {approximation.code for approximation in spec.approximations}
        for spec in specs
    )


def evaluate_group(model: BuiltModel, group: GroupMapping) -> Report:
    """Return the model's report on a group mapping. Failures are invalid reports."""
    macs = sum(problem.macs for problem in group.layers)
    try:
        if model.model is None:
            raise model.error or PluginError(f"cost model '{model.name}' was not built")
        if not model.capabilities.groups:
            able = [
                registration.name for registration in installed().of_kind(CostModelSpec) if _takes_groups(registration)
            ]
            text = f"group mappings are not accepted; these models accept them: {', '.join(able) or 'none'}"
            reason = Reason(code="groups", where=group.name, message=text)
            raise NotConformableError(f"cost model {model.name}", [reason])
        for problem in group.layers:
            _check_accepted(model, problem, group.architecture)
        if isinstance(model.model, GroupModel):
            return _with_warnings(model, _named(model, model.model.explain_group(group)), group)
        for path in group.paths.values():
            verdict = model.capabilities.judge_mapping(path.problem, group.architecture, path.mapping)
            if not verdict:
                raise NotConformableError(f"cost model {model.name}", verdict.reasons)
        from tilewright.application.run.branches import evaluate_branches  # single mappings need none of it

        with compilation_notice(model.name):
            return _with_warnings(model, evaluate_branches(model.name, model.model.bind, group), group)
    except TilewrightError as error:
        return refusal(model, group.name, macs, error)


def evaluate_vector(model: BuiltModel, layer: VectorLayer, architecture: Architecture) -> Report:
    """Return the model's report on a vector layer, on the fastest of the units that take it. Failures are invalid reports.

    Of two units that are equally fast, the one with less energy counts. The architecture has at least one unit.
    """
    try:
        if model.model is None:
            raise model.error or PluginError(f"cost model '{model.name}' was not built")
        able: object = model.model if model.capabilities.vector_layers else None
        if not isinstance(able, VectorModel):
            specs = [one.spec for one in installed().of_kind(CostModelSpec)]
            names = ", ".join(spec.name for spec in specs if spec.capabilities.vector_layers) or "none"
            told = f"vector layers are not accepted; these models accept them: {names}"
            raise NotConformableError(
                f"cost model {model.name}", [Reason(code="vector_layers", where=layer.name, message=told)]
            )
        reports = [_on_unit(model, able, layer, architecture, unit) for unit in architecture.units]
    except TilewrightError as error:
        return refusal(model, layer.name, layer.elements, error)
    valid = [report for report in reports if report.valid]
    return min(valid, key=lambda report: (report.cycles or 0, report.energy_pj or 0.0)) if valid else reports[0]


def _on_unit(
    model: BuiltModel, able: VectorModel, layer: VectorLayer, architecture: Architecture, unit: Unit
) -> Report:
    try:
        return _named(model, able.explain_vector(layer, architecture, unit))
    except NotConformableError as error:
        return refusal(model, layer.name, layer.elements, error)


def _with_warnings(model: BuiltModel, report: Report, group: GroupMapping) -> Report:
    """Return a report with the warnings on what the figures leave out, the same as those of single layers."""
    warnings = (*operand_warnings(group.layers, group.architecture), *_boxes(model, group.layers))
    return report.model_copy(update={"warnings": (*report.warnings, *warnings)}) if report.valid else report


def _takes_groups(registration: Registration) -> bool:
    return isinstance(registration.spec, CostModelSpec) and registration.spec.capabilities.groups


def evaluate_directives(model: BuiltModel, program: Program) -> tuple[Report, ...]:
    """Return one report per layer.

    A model that accepts only mappings evaluates the tiles, if the directives describe tiles.
    """
    if model.model is not None and not isinstance(model.model, DirectiveModel):
        return tuple(_evaluate_tiles(model, program, index) for index in range(len(program.layers)))
    try:
        if model.model is None:
            raise model.error or PluginError(f"cost model '{model.name}' was not built")
        with compilation_notice(model.name):
            return tuple(_named(model, report) for report in model.model.explain_directives(program))
    except TilewrightError as error:
        return tuple(refusal(model, layer.name, layer.macs, error) for layer in program.layers)


def _evaluate_tiles(model: BuiltModel, program: Program, index: int) -> Report:
    layer = program.layers[index]
    try:
        tiles = converted(program, Tiles, lambda: program.tiles(index))
    except TilewrightError as error:
        return refusal(model, layer.name, layer.macs, error)
    report = evaluate(model, tiles.problem, tiles.architecture, tiles.mapping)
    return report.model_copy(update={"warnings": (*tiles.warnings, *report.warnings)})


def refusal(model: BuiltModel, problem: str, macs: int, error: TilewrightError) -> Report:
    """Return the invalid report of a model that failed."""
    return Report(model=model.name, problem=problem, valid=False, reasons=reasons_of(error), macs=macs)


def reasons_of(error: TilewrightError) -> tuple[Reason, ...]:
    """Return an error as reasons."""
    if isinstance(error, NotConformableError | InvalidMappingError):
        return error.reasons
    message = f"{error.message}; {error.hint}" if error.hint else error.message
    return (Reason(code=FAILED if isinstance(error, PluginError) else error.code, where="", message=message),)

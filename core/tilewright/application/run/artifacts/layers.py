"""Files of a mapped layer: its mapping, and the certificate of its proof."""

from __future__ import annotations

import math
import platform

from tilewright.application.run.configuration import RunConfiguration
from tilewright.application.run.network import MappedLayer, space_of, spaces_of
from tilewright.errors import PluginError, UnknownPluginError
from tilewright.files import RunFolder, file_name
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import MapperSpec
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapped import AlternativeRecord, Figures, MappedProblem, PluginRecord, Provenance
from tilewright.schema.mapped.certificate import Certificate, CoveredSpace, LayerClaim, SearchLimits
from tilewright.version import __version__


def layer_file(number: int, layer: MappedLayer) -> str:
    """Return the name of a layer's mapping file; `number` counts from 1."""
    return file_name(f"{number:03d}", layer.name) + ".yaml"


def certificate_file(number: int, layer: MappedLayer) -> str | None:
    """Return the name of a layer's certificate; None without a proof."""
    return certificate_beside(layer_file(number, layer)) if _is_proved(layer) else None


def certificate_beside(mapping: str) -> str:
    """Return the name of the certificate for a mapping file."""
    return f"{mapping.removesuffix('.yaml')}.certificate.yaml"


def save_layer(
    folder: RunFolder,
    number: int,
    layer: MappedLayer,
    configuration: RunConfiguration,
    alternatives: tuple[AlternativeRecord, ...] = (),
) -> None:
    """Write the files of a layer that has a mapping."""
    if layer.report is None:
        return
    folder.write(layer_file(number, layer), mapping_file(layer, configuration, alternatives).to_yaml())
    certificate, name = certificate_of(layer, configuration, alternatives), certificate_file(number, layer)
    if certificate is not None and name is not None:
        folder.write(name, certificate.to_yaml())


def mapping_file(
    layer: MappedLayer, configuration: RunConfiguration, alternatives: tuple[AlternativeRecord, ...] = ()
) -> MappedProblem:
    """Return the contents of a mapping file: mapping, inputs, figures and provenance.

    `alternatives` are those with this layer as a step.
    """
    result, report = layer.result, layer.report
    if result is None or result.best is None or report is None or layer.architecture is None:
        raise ValueError(f"{layer.name} has no mapping")
    if report.cycles is None or report.energy_pj is None or report.edp is None:
        raise ValueError(f"{layer.name}: the best mapping has no figures")
    return MappedProblem(
        layers=layer.distinct.layers,
        origins=layer.distinct.origins,
        figures=Figures(
            cycles=report.cycles, energy_pj=report.energy_pj, edp=report.edp, utilization=report.utilization
        ),
        provenance=Provenance(
            tilewright=__version__,
            mapper=layer.instead or configuration.mapper_record,
            model=configuration.model.record,
            objective=configuration.objective.name,
            constraints=configuration.constraints.name,
            seed=configuration.seed,
            evaluated=result.evaluated,
            valid=result.valid,
            stop=result.stop,
        ),
        alternatives=alternatives,
        mapping=result.best,
        problem=layer.distinct.problem,
        architecture=layer.architecture,
    )


def certificate_of(
    layer: MappedLayer, configuration: RunConfiguration, alternatives: tuple[AlternativeRecord, ...] = ()
) -> Certificate[LayerClaim] | None:
    """Return the certificate of a layer; None if its mapper proved nothing, or the space is a union."""
    result = layer.result
    if result is None or result.lower_bound is None or result.gap is None or not _is_proved(layer):
        return None
    run = configuration.fallback if layer.instead is not None and configuration.fallback else configuration
    space, _ = space_of(layer.distinct, run)
    if run.expressible is not None or len(spaces_of(space, run)) > 1:
        return None
    records = (run.mapper_record, run.model.record)
    return Certificate(
        objective=run.objective,
        value=result.value,
        bound=result.lower_bound,
        gap=result.gap,
        proof_version=proof_version_of(run.mapper_record),
        claimed_by=result.claimed_by,
        versions=versions_of(*records),
        claim=LayerClaim(
            space=CoveredSpace(
                factors=space.factors,
                rules=space.rules,
                mappings=space.size,
                most_cycles=None if run.most_cycles == math.inf else int(run.most_cycles),
            ),
            counts=FrozenDict(result.figures),
            limits=SearchLimits(
                evaluations=run.budget.evaluations, seconds=run.budget.seconds, patience=run.budget.patience
            ),
            incumbent=mapping_file(layer, configuration, alternatives),
        ),
    ).sealed()


def versions_of(*records: PluginRecord) -> FrozenDict[str, str]:
    """Return the versions of Python, of Tilewright, and of the plugins' distributions."""
    plugins = {record.distribution: record.version for record in records if record.distribution and record.version}
    return FrozenDict({"python": platform.python_version(), "tilewright": __version__} | plugins)


def proof_version_of(mapper: PluginRecord) -> int | None:
    """Return the version of the installed mapper's proof rules.

    None if it has none, or is not installed.
    """
    spec = spec_of(mapper)
    return None if spec is None else spec.proof_version


def spec_of(mapper: PluginRecord) -> MapperSpec | None:
    """Return the declaration of a mapper, or None if it is not installed."""
    try:
        spec = installed().find(MapperSpec, mapper.long_name).spec
    except (UnknownPluginError, PluginError):
        return None
    return spec if isinstance(spec, MapperSpec) else None


def _is_proved(layer: MappedLayer) -> bool:
    result = layer.result
    return layer.report is not None and result is not None and result.proved is not None

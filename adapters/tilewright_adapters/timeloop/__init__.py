"""Timeloop's files, read and written: v0.2, v0.3 and v4, in YAML or (reading only) libconfig."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tilewright.errors import InputError, NotConformableError, Verdict
from tilewright.plugin.adapter import InputSet, RecordedFigure
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import Document, parse_document, validate
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem
from tilewright_adapters import TimeloopFiles, sidecar
from tilewright_adapters.timeloop.attributes import V3, V4
from tilewright_adapters.timeloop.cursor import Cursor, refuse_unknown
from tilewright_adapters.timeloop.reading import components
from tilewright_adapters.timeloop.reading.clusters import (
    build,
    estimated,
    stated_areas,
    warned_incomplete,
    with_areas,
    with_unlinked,
    with_widths,
    with_wires,
)
from tilewright_adapters.timeloop.reading.directives import Directives, listed, read_directives, unlinked
from tilewright_adapters.timeloop.reading.energies import one_for_all, read_areas, read_energies
from tilewright_adapters.timeloop.reading.files import listed_layers, read_files
from tilewright_adapters.timeloop.reading.hierarchy import read_hierarchy
from tilewright_adapters.timeloop.reading.mapping import build as build_mapping
from tilewright_adapters.timeloop.reading.mapping import unsplit
from tilewright_adapters.timeloop.reading.nodes import Nodes, read_nodes
from tilewright_adapters.timeloop.reading.rules import Notes, lists, read_rules, rules_in, unicast_of
from tilewright_adapters.timeloop.reading.sections import OURS, Sections
from tilewright_adapters.timeloop.reading.shape import read_problem, value_bits
from tilewright_adapters.timeloop.reading.sparse import with_sparse
from tilewright_adapters.timeloop.recorded import figures
from tilewright_adapters.timeloop.writing.axes import with_levels_between
from tilewright_adapters.timeloop.writing.limits import LevelConstraint, limits
from tilewright_adapters.timeloop.writing.outline import Outline, outline
from tilewright_adapters.timeloop.writing.sparse import refuse_sparse
from tilewright_adapters.timeloop.writing.v3 import write_v3
from tilewright_adapters.timeloop.writing.v4 import refuse_v4, write_v4

Version = Literal["v3", "v4"]


class TimeloopAdapter:
    """An adapter that reads Timeloop's files of any version and writes those of one."""

    def __init__(self, version: Version = "v3", options: TimeloopFiles | None = None) -> None:
        self.name = "timeloop" if version == "v3" else "timeloop_v4"
        self.version = version
        self.options = options or TimeloopFiles()

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Read all files as one input set.

        A storage level becomes a cluster with one memory of the same name. If a level fans out
        along X and Y, a virtual cluster `<level>_X` follows, which fans out along X.

        Raises:
            InputError: the files are invalid, or the schemas cannot express content that affects
                results; with file and line.
        """
        return self.read(*read_files(files, self.options.set, self.options.folders))

    def layers(self, file: Path) -> tuple[str, ...]:
        """Return the layers of a list of file names, as CoSA writes it; `parse` reads FILE/LAYER.

        Raises:
            InputError: the file cannot be read.
        """
        return listed_layers(file) if file.suffix in (".yaml", ".yml") else ()

    def read(self, documents: Sequence[Document], warnings: Sequence[str] = ()) -> InputSet:
        """Read documents like `parse`; `warnings` come first among its warnings. Raises InputError."""
        sections = Sections.of(documents, self.options.dense, self.options.set, warnings, self.options.one_energy)
        ours = sections.parts.pop(OURS, None)
        plain = replace(_read(sections), objective=sections.objective)
        if ours is None:
            return plain
        whole = _replaced(ours, plain)
        plan, files = _written(whole, "v4" if _is_v4(sections) else "v3")
        again = None if plan.reasons else _read_back(files)
        if again is None or sidecar.different(_without_places(again), _without_places(plain)):
            raise ours.error(
                "this section was written for other Timeloop files",
                hint="omit it to read Timeloop's files alone",
            )
        return whole

    def figures(self, recorded: Path, inputs: InputSet, ours: Report) -> tuple[RecordedFigure, ...]:
        """Compare a `stats.txt` with Tilewright's results, and name the causes of differences.

        Raises:
            InputError: the statistics do not belong to these inputs.
        """
        return figures(recorded, inputs, ours)

    def expressible(self, inputs: InputSet) -> Verdict:
        """Return every construct that Timeloop's files cannot express."""
        return Verdict(reasons=tuple(_planned(inputs, self.version)[0].reasons))

    def render(self, inputs: InputSet) -> dict[str, str]:
        """Return files of this version, and `tilewright.yaml` for names and notes that they lack."""
        plan, files = _written(inputs, self.version)
        if plan.reasons:
            raise NotConformableError(f"adapter {self.name}", plan.reasons)
        parts = sidecar.different(inputs, _read_back(files))
        return files | (sidecar.write(OURS, "Timeloop", parts, lost="Names, notes and roles") if parts else {})


def _without_places(inputs: InputSet) -> InputSet:
    """Return the inputs without the places of rules that are not searched: these name the folder of a file."""
    if inputs.constraints is None:
        return inputs
    variants = tuple(
        variant.model_copy(
            update={"unsearched": tuple(rule.model_copy(update={"where": ""}) for rule in variant.unsearched)}
        )
        for variant in inputs.constraints.variants
    )
    return replace(inputs, constraints=inputs.constraints.model_copy(update={"variants": variants}))


def _replaced(section: Cursor, plain: InputSet) -> InputSet:
    """Return `plain` with its parts replaced by those of Tilewright's section. Raises InputError."""
    fields = section.fields(f"the section {OURS}")
    refuse_unknown(fields, sidecar.ALL, f"the section {OURS}")
    parts: dict[str, Any] = {name: getattr(plain, name) for name in sidecar.ALL}
    for name, cursor in fields.items():
        parts[name] = None if cursor.value is None else validate(sidecar.ALL[name], cursor.document.at(*cursor.path))
    return InputSet(**parts, objective=plain.objective, warnings=plain.warnings, origin=plain.origin)


def _written(inputs: InputSet, version: Version) -> tuple[Outline, dict[str, str]]:
    """Return the outline and Timeloop's own files; no files if there are reasons against them."""
    plan, rules = _planned(inputs, version)
    if plan.reasons:
        return plan, {}
    return plan, {"v3": write_v3, "v4": write_v4}[version](plan, rules)


def _planned(inputs: InputSet, version: Version) -> tuple[Outline, list[LevelConstraint]]:
    """Return the outline and constraints to write, with the reasons against them."""
    inputs = with_levels_between(inputs)
    plan = outline(inputs, {"v3": V3, "v4": V4}[version])
    refuse_sparse(plan)
    rules = limits(inputs, plan, at_least=version == "v4")
    if version == "v4":
        refuse_v4(plan, rules)
    return plan, rules


def _read_back(files: dict[str, str]) -> InputSet:
    return _read(Sections.of(parse_document(text, source=name) for name, text in files.items()))


def _read(sections: Sections) -> InputSet:
    documents, warnings = sections.parts, sections.warnings
    if not documents:
        raise InputError("no architecture, problem or mapping in these files", hint="give Timeloop's files")
    problem, tree = _problem(sections), _tree(sections)
    mapping = documents.get("mapping")
    if mapping is not None and mapping.value and (tree is None or problem is None):
        missing = "architecture" if tree is None else "problem"
        raise mapping.error(f"a mapping needs its {missing}", hint=f"add the {missing}")
    if tree is None:
        return InputSet(problem=problem, warnings=tuple(warnings), origin=_origin(sections, problem))
    warnings += [*tree.warnings, *tree.levels.warnings]
    notes = Notes(warnings)
    rules = [rule for part in lists(sections, notes) for rule in rules_in(part, tree)]
    if problem is None:
        if rules or tree.rules:
            warnings.append("constraints are ignored, because these files have no problem")
        return InputSet(architecture=_architecture(tree, sections, None, None, warnings), warnings=tuple(warnings))
    directives, said = None, [*tree.said(), *rules]
    if mapping is not None and mapping.value:
        said = [*tree.said(), *(rules if _is_v4(sections) else ()), *listed(mapping, tree.levels, tree.unrolled_at)]
        directives = read_directives(mapping, said, problem, tree.levels, tree.parallel)
        warnings += directives.warnings
    architecture = _architecture(tree, sections, problem, directives, warnings)
    if directives is not None:
        warnings += unsplit(directives, architecture)
    architecture = with_unlinked(architecture, unlinked(said, problem))
    bits = value_bits(documents["problem"], problem)
    if bits:
        architecture = with_widths(architecture, bits)
        told = ", ".join(f"{name} {width}" for name, width in bits.items())
        warnings.append(f"bit widths ({told}): a word holds several values; partly filled words are not counted")
    constraints = None
    if rules or tree.rules:
        constraints = read_rules([*tree.said(), *rules], problem, tree, architecture, notes)
        if directives is None:
            architecture = unicast_of([*tree.said(), *rules], problem, architecture)
    return InputSet(
        problem=problem,
        architecture=architecture,
        mapping=build_mapping(directives, problem, tuple(architecture.cluster_index), bool(architecture.sparse_parts))
        if directives
        else None,
        constraints=constraints,
        warnings=tuple(warnings),
        origin=_origin(sections, problem),
    )


def _origin(sections: Sections, problem: Problem | None) -> Origin | None:
    """Return the place of the problem, with its name there."""
    if problem is None:
        return None
    section = sections.parts["problem"]
    return Origin.at(section.document.locate(section.path), problem.name)


def _problem(sections: Sections) -> Problem | None:
    if "problem" not in sections.parts:
        return None
    with sections.parts["problem"].checked():
        return read_problem(sections.parts["problem"], sections)


def _is_v4(sections: Sections) -> bool:
    section = sections.parts.get("architecture")
    return section is not None and "nodes" in section.fields("architecture")


def _tree(sections: Sections) -> Nodes | None:
    """Return the architecture, of any version."""
    section = sections.parts.get("architecture")
    if section is None:
        return None
    if _is_v4(sections):
        return read_nodes(section, sections)
    return Nodes(read_hierarchy(section))


def _architecture(
    tree: Nodes, sections: Sections, problem: Problem | None, directives: Directives | None, warnings: list[str]
) -> Architecture:
    energies = read_energies(sections.parts["ERT"]) if "ERT" in sections.parts else None
    if energies is not None and sections.one_energy:
        energies = one_for_all(energies)
    unrolled = {name: level.axes() for name, level in directives.levels.items()} if directives else {}
    areas = stated_areas(tree.levels) | (read_areas(sections.parts["ART"]) if "ART" in sections.parts else {})
    records = None
    if energies is None and components.asked():
        told = components.estimates(tree.levels)
        warnings += components.texts(told)
        energies, areas, records = told.energies, told.areas | areas, told.records
    guessed = estimated(tree.levels) if energies is None else ()
    if guessed:
        warnings.append(
            f"no energy table (ERT) is given: the energies of {', '.join(guessed)} are Timeloop's estimates. "
            "Add Accelergy's ERT, or name an estimator"
        )
    if energies is not None and records is None and (partial := warned_incomplete(tree.levels, energies)):
        warnings.append(partial)
    architecture = with_wires(build(tree.levels, energies, unrolled), tree.levels, energies, areas)
    architecture = with_areas(architecture, areas, records)
    return with_sparse(architecture, tree.levels, problem, energies, sections)

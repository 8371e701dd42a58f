"""AccelForge's notation: architecture, workload, and mapping of one dense einsum or of a group, read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tilewright.errors import InputError, NotConformableError, Reason, Verdict
from tilewright.expressions import resolved
from tilewright.files import file_and_member, read_bytes
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.edges import Edges, edges_by_name
from tilewright.schema.document import Document, parse_document, suggestion, validate
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem
from tilewright_adapters import AccelForgeFiles, members, sidecar
from tilewright_adapters.accelforge.expressions import Value
from tilewright_adapters.accelforge.files import RenamesData, WorkloadData
from tilewright_adapters.accelforge.group import read_group
from tilewright_adapters.accelforge.hardware import read_hardware
from tilewright_adapters.accelforge.mapping import read_mapping
from tilewright_adapters.accelforge.rules import constraints
from tilewright_adapters.accelforge.workload import (
    CLIPPED,
    DEFAULT_BITS,
    Einsum,
    name_of,
    operation,
    read_einsum,
    roles_alone,
)
from tilewright_adapters.accelforge.write import FILES, texts, written
from tilewright_adapters.accelforge.write_group import written_group
from tilewright_adapters.assembled import assembled
from tilewright_adapters.faults import placed
from tilewright_adapters.members import files_of
from tilewright_adapters.merging import merged
from tilewright_adapters.parts import Written
from tilewright_adapters.templates import folders_of

TOOL = ("accelforge", "AccelForge")
_SECTIONS = ("arch", "workload", "mapping", "renames", "variables", "config", "mapper", "model")
SUFFIXES = (".yaml", ".yml")


class AccelForgeAdapter:
    """An adapter for AccelForge's sections, in one file or several."""

    def __init__(self, options: AccelForgeFiles | None = None) -> None:
        self.options = options or AccelForgeFiles()
        self.known: dict[tuple[Path, tuple[str, ...], bytes], Document] = {}
        """Parsed files by path and content, because a network reads its files once per einsum."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Read architecture, workload and mapping, or some of them.

        `workload.yaml/EINSUM` selects an einsum. Without a mapping, the architecture's demands on
        mappings become constraints.

        Raises:
            InputError: the files are invalid; with file and line.
        """
        documents: dict[str, Document] = {}
        beside = None
        named = [file_and_member(path) for path in files]
        einsum = next((member for _, member in reversed(named) if member), None)
        paths = [Path(name) for name, _ in named]
        folders = folders_of(paths, self.options.folders)
        for path in files_of(paths, SUFFIXES, "AccelForge"):
            document = self._document(path, folders)
            sections = document.data if isinstance(document.data, dict) else {}
            if TOOL[0] in sections:
                beside = path
                continue
            unknown = sorted(set(map(str, sections)) - set(_SECTIONS))
            if unknown or not sections:
                word = suggestion(unknown[0], _SECTIONS) if unknown else ""
                raise InputError(
                    f"unknown section of AccelForge: {', '.join(unknown) or 'nothing'}{word}",
                    location=document.locate(()),
                    hint=f"known sections: {', '.join(_SECTIONS[:5])}",
                )
            for name in sections:
                section = document.at(name)
                if name in documents and (documents[name].data, documents[name].tags) != (section.data, section.tags):
                    raise InputError(f"a second section {name}", location=document.locate((name,)))
                documents.setdefault(name, section)
        if not documents.keys() & {"arch", "workload"}:
            raise InputError("no arch and no workload to read", hint="AccelForge's files have sections of these names")
        if beside is None:
            return _read(documents, einsum)
        inputs, document = sidecar.read(beside, *TOOL)
        said = _written(inputs)
        if said.reasons or _plain(_parts(texts(said))) != _plain(documents):
            raise sidecar.stale(document, *TOOL)
        return inputs

    def _document(self, path: Path, folders: tuple[str, ...]) -> Document:
        key = (path, folders, read_bytes(path))
        if key not in self.known:
            self.known[key] = merged(assembled(path, folders, self.options.set, inherits=True))
        return self.known[key]

    def layers(self, file: Path) -> tuple[str, ...]:
        """Return the names of a workload's einsums. Raises InputError."""
        document = self._document(file, folders_of([file], self.options.folders))
        if not isinstance(document.data, dict) or "workload" not in document.data:
            return ()
        return tuple(name_of(einsum) for einsum in validate(WorkloadData, document.at("workload")).einsums)

    def edges(self, file: Path, problems: Mapping[str, Problem]) -> Edges:
        """Return the edges between einsums: a tensor is read by its name. Raises InputError."""
        document = self._document(file, folders_of([file], self.options.folders))
        data = validate(WorkloadData, document.at("workload"))
        with placed(document.locate(("workload",))):
            return edges_by_name([operation(einsum, problems.get(name_of(einsum))) for einsum in data.einsums])

    def expressible(self, inputs: InputSet) -> Verdict:
        """Return every construct that AccelForge's files cannot express."""
        return Verdict(reasons=tuple(_written(inputs).reasons))

    def render(self, inputs: InputSet) -> dict[str, str]:
        """Return AccelForge's files, and a sidecar `tilewright.yaml` if they lose names or numbers."""
        said = _written(inputs)
        if said.reasons:
            raise NotConformableError("adapter accelforge", said.reasons)
        files = texts(said)
        return sidecar.beside(files, _read(_parts(files), None), inputs, *TOOL)


def _written(inputs: InputSet) -> Written:
    return written(inputs) if inputs.group is None else written_group(inputs, inputs.group)


def _parts(files: Mapping[str, str]) -> dict[str, Document]:
    """Return section -> document, from rendered files."""
    return {name: parse_document(files[file], source=file).at(name) for name, file in FILES.items() if file in files}


def _plain(sections: Mapping[str, Document]) -> dict[str, object]:
    """Return the contents of sections without locations."""
    return {name: (document.data, document.tags) for name, document in sections.items()}


def _read(sections: dict[str, Document], named: str | None) -> InputSet:
    numbers = _numbers(sections)
    if named is None and "arch" in sections and _is_group(sections):
        return _read_group(sections, numbers)
    einsum = _einsum(sections, named, numbers)
    problem = einsum.problem if einsum else None
    origin = None if problem is None else _origin(sections["workload"], problem.name)
    warnings = list(einsum.warnings) if einsum else []
    if "arch" not in sections:
        if "mapping" in sections:
            raise InputError("a mapping needs its arch", location=sections["mapping"].locate(()))
        return InputSet(problem=problem, warnings=tuple(warnings), origin=origin)
    nodes = _nodes(sections["arch"], "arch")
    scope = einsum.scope if einsum else roles_alone(numbers)
    if einsum is None:
        warnings.append(f"no workload is given: words are assumed to have {DEFAULT_BITS} bits")
    common = sections["arch"].data.get("extra_attributes_for_all_component_models")
    known = common if isinstance(common, dict) else {}
    hardware = read_hardware(nodes, "accelforge", scope, problem, known, _narrowest(sections, numbers, nodes, known))
    warnings += hardware.warnings
    inputs = InputSet(problem, hardware.architecture, warnings=tuple(warnings), origin=origin, uneven=True)
    if "mapping" not in sections:
        rules, told = constraints(hardware, problem)
        return replace(inputs, constraints=rules, warnings=(*inputs.warnings, *told))
    if problem is None:
        raise InputError("a mapping needs its workload", location=sections["mapping"].locate(()))
    nodes, told = _nodes(sections["mapping"], "mapping"), list[str]()
    mapping = read_mapping(nodes, problem, hardware, einsum.others if einsum else (), told)
    return replace(inputs, mapping=mapping, warnings=(*inputs.warnings, *told))


def _origin(workload: Document, name: str) -> Origin:
    """Return the place of an einsum."""
    names = [name_of(einsum) for einsum in validate(WorkloadData, workload).einsums]
    return Origin.at(workload.locate(("einsums", names.index(name))), name)


def _narrowest(
    sections: dict[str, Document], numbers: dict[str, Value], nodes: Document, common: Mapping[str, object]
) -> dict[str, int]:
    """Return the bits of the narrowest word of each node, over the einsums of a workload; empty if they are of one width."""
    einsums = list[Einsum]()
    for data in validate(WorkloadData, sections["workload"]).einsums if "workload" in sections else ():
        with suppress(InputError, NotConformableError):
            readable = _einsum(sections, name_of(data), numbers)
            einsums += [] if readable is None else [readable]
    if len({min(einsum.scope.bits.values()) for einsum in einsums}) < 2:
        return {}
    least = dict[str, int]()
    for einsum in einsums:
        with suppress(InputError, NotConformableError):
            machine = read_hardware(nodes, "accelforge", einsum.scope, einsum.problem, common).architecture
            words = {memory.name: memory.word_bits for memory in machine.memories}
            words[machine.compute.name] = machine.compute.word_bits
            least |= {name: min(bits, least.get(name, bits)) for name, bits in words.items()}
    return least


def _is_group(sections: Mapping[str, Document]) -> bool:
    """Return whether a mapping is of a workload of several einsums."""
    if not {"workload", "mapping"} <= sections.keys():
        return False
    return len(validate(WorkloadData, sections["workload"]).einsums) > 1


def _read_group(sections: dict[str, Document], numbers: dict[str, Value]) -> InputSet:
    """Return the group mapping of all einsums."""
    workload = sections["workload"]
    names = [name_of(einsum) for einsum in validate(WorkloadData, workload).einsums]
    einsums = [einsum for name in names if (einsum := _einsum(sections, name, numbers)) is not None]
    nodes = _nodes(sections["arch"], "arch")
    common = sections["arch"].data.get("extra_attributes_for_all_component_models")
    known = common if isinstance(common, dict) else {}
    hardware = [read_hardware(nodes, "accelforge", einsum.scope, einsum.problem, known) for einsum in einsums]
    sizes = {name: size for einsum in einsums for name, size in einsum.padded.items()}
    group = read_group(_nodes(sections["mapping"], "mapping"), [einsum.problem for einsum in einsums], hardware, sizes)
    told = [text for einsum in einsums for text in einsum.warnings if CLIPPED not in text]
    told += [text for machine in hardware for text in machine.warnings]
    return InputSet(group=group, warnings=tuple(dict.fromkeys(told)))


def _nodes(document: Document, what: str) -> Document:
    if not isinstance(document.data, dict) or "nodes" not in document.data:
        raise InputError(f"{what} has a list of nodes", location=document.locate(()))
    return document.at("nodes")


def _numbers(documents: dict[str, Document]) -> dict[str, Value]:
    """Return the numeric variables; a variable may use earlier ones."""
    values: dict[str, object] = {}
    arch = documents.get("arch")
    sections = [documents["variables"]] if "variables" in documents else []
    if arch is not None and isinstance(arch.data, dict) and "variables" in arch.data:
        sections.append(arch.at("variables"))
    for section in sections:
        for name, value in section.data.items() if isinstance(section.data, dict) else ():
            values[name] = resolved(value, values)
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def _einsum(sections: dict[str, Document], named: str | None, numbers: dict[str, Value]) -> Einsum | None:
    document = sections.get("workload")
    if document is None:
        if named is not None:
            raise InputError(f"no workload in these files has an einsum {named}")
        return None
    data = validate(WorkloadData, document)
    renames = validate(RenamesData, sections["renames"]) if "renames" in sections else RenamesData()
    with placed(document.locate(())):
        names = [name_of(einsum) for einsum in data.einsums]
    chosen = data.einsums[members.chosen(names, named, document.locate(()), "einsum")]
    if chosen.is_copy_operation:
        reason = Reason(code="copy", where=name_of(chosen), message="it is a copy operation and computes nothing")
        raise NotConformableError("a problem", [reason])
    with placed(document.locate(())):
        try:
            return read_einsum(data, chosen, renames, numbers)
        except NotConformableError as error:
            refused = error
    raise refused

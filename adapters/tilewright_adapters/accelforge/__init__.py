"""The notation of AccelForge: architecture, workload and mapping of one dense einsum, read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from tilewright.child import NoAnswer, limited
from tilewright.errors import InputError, NotConformableError, Verdict
from tilewright.files import MAX_BYTES, file_and_member, read_text
from tilewright.plugin.adapter import InputSet
from tilewright.schema.document import Document, parse_document, suggestion, validate
from tilewright_adapters import members, sidecar
from tilewright_adapters.accelforge.expressions import Value
from tilewright_adapters.accelforge.files import RenamesData, WorkloadData
from tilewright_adapters.accelforge.hardware import constraints, read_hardware
from tilewright_adapters.accelforge.mapping import read_mapping
from tilewright_adapters.accelforge.workload import DEFAULT_BITS, Einsum, name_of, read_einsum, roles_alone
from tilewright_adapters.accelforge.write import FILES, texts, written
from tilewright_adapters.expressions import resolved
from tilewright_adapters.faults import placed

TOOL = ("accelforge", "AccelForge")
_SECTIONS = ("arch", "workload", "mapping", "renames", "variables", "config", "mapper", "model")
_READING = ("include", "include_all", "include_text", "find_path", "find_paths", "cwd", "path_exists", "setenv")
_TEMPLATE = re.compile(r"\{%|\{\{|\{#")
SECONDS, MEMORY = 1, 256 * 2**20
"""CPU time and bytes for filling in a template."""


class AccelForgeAdapter:
    """Reads and writes AccelForge's sections, in one file or several."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Some of architecture, workload and mapping; `workload.yaml/EINSUM` reads that einsum of several.

        Without a mapping, what the architecture demands of one becomes constraints.

        Raises:
            InputError: with file and line.
        """
        found: dict[str, Document] = {}
        einsum = beside = None
        for path in files:
            name, member = file_and_member(path)
            path = Path(name)
            einsum = member or einsum
            document = parse_document(_rendered(path), source=str(path))
            sections = document.data if isinstance(document.data, dict) else {}
            if TOOL[0] in sections:
                beside = path
                continue
            unknown = sorted(set(map(str, sections)) - set(_SECTIONS))
            if unknown or not sections:
                word = suggestion(unknown[0], _SECTIONS) if unknown else ""
                raise InputError(
                    f"no section of AccelForge: {', '.join(unknown) or 'nothing'}{word}",
                    location=document.locate(()),
                    hint=f"its files have {', '.join(_SECTIONS[:5])}",
                )
            for name in sections:
                if name in found:
                    raise InputError(f"a second section {name}", location=document.locate((name,)))
                found[name] = document.at(name)
        if not found.keys() & {"arch", "workload"}:
            raise InputError("no arch and no workload to read", hint="AccelForge's files have sections of these names")
        if beside is None:
            return _read(found, einsum)
        inputs, document = sidecar.read(beside, *TOOL)
        said = written(inputs)
        if said.reasons or _plain(_parts(texts(said))) != _plain(found):
            raise sidecar.stale(document, *TOOL)
        return inputs

    def layers(self, file: Path) -> tuple[str, ...]:
        """The einsums of a workload. Raises InputError."""
        document = parse_document(_rendered(file), source=str(file))
        if not isinstance(document.data, dict) or "workload" not in document.data:
            return ()
        return tuple(name_of(each) for each in validate(WorkloadData, document.at("workload")).einsums)

    def expressible(self, inputs: InputSet) -> Verdict:
        """Every construct that AccelForge's files cannot say."""
        return Verdict(reasons=tuple(written(inputs).reasons))

    def render(self, inputs: InputSet) -> dict[str, str]:
        """AccelForge's files, and where names or numbers have no place in them, `tilewright.yaml` beside."""
        said = written(inputs)
        if said.reasons:
            raise NotConformableError("adapter accelforge", said.reasons)
        files = texts(said)
        return sidecar.beside(files, _read(_parts(files), None), inputs, *TOOL)


def _parts(files: Mapping[str, str]) -> dict[str, Document]:
    """Section -> its part of files that were just written."""
    return {name: parse_document(files[file], source=file).at(name) for name, file in FILES.items() if file in files}


def _plain(found: Mapping[str, Document]) -> dict[str, object]:
    """What sections say, wherever it stands."""
    return {name: (document.data, document.tags) for name, document in found.items()}


def _rendered(path: Path) -> str:
    """The text, with its template filled in by the values that it names itself. Raises InputError."""
    text = read_text(path)
    if not _TEMPLATE.search(text):
        return text
    try:
        filled: str = limited(filled_in, text, str(path), seconds=SECONDS, memory=MEMORY)
    except NoAnswer as failure:
        raise InputError(f"{path}: no template that can be filled in: the process that did so {failure}") from None
    return filled


def filled_in(text: str, source: str) -> str:
    """A template as text. Its loops may be endless and its texts may double: this is for a process with limits.

    Raises InputError.
    """
    try:
        return "".join(_bounded(SandboxedEnvironment(undefined=jinja2.StrictUndefined).from_string(text).generate()))
    except jinja2.UndefinedError as error:
        match = re.search(r"'(\w+)' is undefined", str(error))
        name = match[1] if match else "NAME"
        if name in _READING:
            raise InputError(
                f"{source}: a template that reads other files ({name})", hint="put their text in"
            ) from None
        hint = f"give it at the top of the file: {{% set {name} = VALUE %}}"
        raise InputError(f"{source}: the template needs a value for {name}", hint=hint) from None
    except MemoryError:
        raise
    except Exception as error:  # its expressions may raise anything
        raise InputError(f"{source}: no template that can be filled in: {error}") from None


def _bounded(pieces: Iterator[str]) -> Iterator[str]:
    """The pieces, as long as they are no more than a file may have."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_BYTES:
            raise ValueError(f"it becomes more than {MAX_BYTES:,} characters")
        yield piece


def _read(found: dict[str, Document], named: str | None) -> InputSet:
    numbers = _numbers(found)
    einsum = _einsum(found, named, numbers)
    problem = einsum.problem if einsum else None
    warnings = list(einsum.warnings) if einsum else []
    if "arch" not in found:
        if "mapping" in found:
            raise InputError("a mapping cannot be read without its arch", location=found["mapping"].locate(()))
        return InputSet(problem=problem, warnings=tuple(warnings))
    nodes = _nodes(found["arch"], "arch")
    scope = einsum.scope if einsum else roles_alone(numbers)
    if einsum is None:
        warnings.append(f"no workload: words are taken to have {DEFAULT_BITS} bits")
    hardware = read_hardware(nodes, "accelforge", scope, problem)
    warnings += hardware.warnings
    inputs = InputSet(problem=problem, architecture=hardware.architecture, warnings=tuple(warnings))
    if "mapping" not in found:
        return replace(inputs, constraints=constraints(hardware, problem))
    if problem is None:
        raise InputError("a mapping cannot be read without its workload", location=found["mapping"].locate(()))
    return replace(inputs, mapping=read_mapping(_nodes(found["mapping"], "mapping"), problem, hardware))


def _nodes(document: Document, what: str) -> Document:
    if not isinstance(document.data, dict) or "nodes" not in document.data:
        raise InputError(f"{what} has a list of nodes", location=document.locate(()))
    return document.at("nodes")


def _numbers(found: dict[str, Document]) -> dict[str, Value]:
    """Variables, in the order in which they stand: a later one may use an earlier one."""
    values: dict[str, object] = {}
    arch = found.get("arch")
    sections = [found["variables"]] if "variables" in found else []
    if arch is not None and isinstance(arch.data, dict) and "variables" in arch.data:
        sections.append(arch.at("variables"))
    for section in sections:
        for name, value in section.data.items() if isinstance(section.data, dict) else ():
            values[name] = resolved(value, values)
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def _einsum(found: dict[str, Document], named: str | None, numbers: dict[str, Value]) -> Einsum | None:
    document = found.get("workload")
    if document is None:
        if named is not None:
            raise InputError(f"there is no workload with an einsum {named} among these files")
        return None
    data = validate(WorkloadData, document)
    renames = validate(RenamesData, found["renames"]) if "renames" in found else RenamesData()
    with placed(document.locate(())):
        names = [name_of(each) for each in data.einsums]
        chosen = data.einsums[members.chosen(names, named, document.locate(()), "einsum")]
        return read_einsum(data, chosen, renames, numbers)

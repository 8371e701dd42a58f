"""Kinds of files: Tilewright's, those that a frontend reads, and those of other tools."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tilewright import library
from tilewright.application.conversion.frontends import builtin_reader, frontends_of, listed_suffixes, recognising
from tilewright.application.conversion.map_inputs import read_map_inputs
from tilewright.application.conversion.signs import owners
from tilewright.errors import InputError, TilewrightError
from tilewright.files import file_and_member, is_file, refuse_run
from tilewright.plugin.registry import Registration, installed
from tilewright.plugin.specs import AdapterSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints
from tilewright.schema.document import YAML_SUFFIXES, Document, FileModel, read_document
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import MappedProblem
from tilewright.schema.mapped.certificate import FORMER_KINDS
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload

PLACES = {
    "problem": "`map` accepts a problem; other commands accept it after --problem",
    "workload": "`map` accepts a workload; --problem accepts one layer of it, FILE/LAYER",
    "architecture": "give an architecture after --arch",
    "mapping": "give a mapping after --mapping, with --problem and --arch",
    "mapped": "`evaluate` accepts a mapping with its problem and architecture",
    "group_mapping": "`evaluate` accepts a group mapping, and `map --fuse` searches one",
    "constraints": "give constraints after --constraints",
    **dict.fromkeys(FORMER_KINDS, "`verify --certificate` checks a certificate"),
}
"""Hint about the use of a file, by its kind."""
SCHEMAS: dict[str, type[FileModel]] = {
    "workload": Workload,
    "problem": Problem,
    "architecture": Architecture,
    "mapping": Mapping,
    "mapped": MappedProblem,
    "constraints": Constraints,
    "group_mapping": GroupMapping,
}
"""Schemas by the `kind` that a file states."""
SIGNS = {
    "clusters": "architecture", "tensors": "problem", "layers": "workload", "entries": "mapping",
    "mapping": "mapped", "variants": "constraints", "aspect": "constraints",
}  # fmt: skip
"""Kinds of files without a `kind`, by a key that only they have."""
_OUR_KEYS = set(SIGNS) - {"mapping"} | {"kind"}
"""Keys that no other tool uses."""


def is_file_name(source: str) -> bool:
    """Return whether the text names a file of Tilewright."""
    return source.endswith(YAML_SUFFIXES) or (is_file(source) and not Path(source).suffix)


def is_foreign(source: object, notation: str | None = None) -> bool:
    """Return whether the source is a file (FILE/LAYER) or a folder of another tool. Raises InputError for a folder of a run.

    Every file counts that no frontend reads and that is not a Tilewright document. With a named notation, only
    built-in frontends count. Files of these, and documents, count if the named adapter reads them.
    """
    if not isinstance(source, str | os.PathLike):
        return False
    if os.path.isdir(source):
        refuse_run(source)
        return os.fspath(source) not in {*library.names("architectures"), *library.names("workloads")}
    file = file_and_member(source)[0]
    if not is_file(file):
        return False
    if builtin_reader(file, installed()) is not None or _is_ours(file):
        return notation is not None and _is_read_by_an_adapter(file, notation)
    return notation is not None or not frontends_for(file)


def frontends_for(source: object) -> list[Registration]:
    """Return the frontends that read a file: the built-in one, or those of third parties.

    A third party's frontend reads a file with one of its suffixes that it recognises, if no other plugin does. So the file
    is no document of Tilewright, it has no key of a built-in notation, and no adapter reads it. A file in YAML is valid.
    Other sources than files have no frontend here.
    """
    if not isinstance(source, str | os.PathLike) or not is_file(source):
        return []
    file, registry = os.fspath(source), installed()
    if (reader := builtin_reader(file, registry)) is not None:
        return [reader]
    suffixed = [one for one, spec in frontends_of(registry, builtin=False) if file.endswith(spec.suffixes or ("\0",))]
    if not suffixed or _is_ours(file) or (file.endswith(YAML_SUFFIXES) and is_damaged(file)):
        return []
    notations = [registration for registration in registry.of_kind(AdapterSpec) if registration.builtin]
    if owners([Path(file)], notations) or _is_read_by_an_adapter(file):
        return []
    return recognising(file, suffixed, registry)


def _is_ours(file: str) -> bool:
    """Return whether a file is a document of Tilewright."""
    try:
        data = read_document(file).data
    except InputError:
        return False
    return isinstance(data, dict) and (data.get("kind") in [*PLACES] or any(key in data for key in _OUR_KEYS))


def is_damaged(file: str) -> bool:
    """Return whether a file is no valid YAML, or has no keys and values."""
    try:
        return not isinstance(read_document(file).data, dict | list)
    except InputError:
        return True


def _is_read_by_an_adapter(file: str, notation: str | None = None) -> bool:
    """Return whether an adapter reads the file, as layers or as hardware. Raises UnknownPluginError for the named one."""
    if notation is not None:
        installed().find(AdapterSpec, notation)
    for work, hardware in (([Path(file)], []), (None, [Path(file)])):
        with contextlib.suppress(TilewrightError):
            read_map_inputs(work, hardware, installed(), notation)
            return True
    return False


def is_architecture(source: str) -> bool:
    """Return whether the text names a file of Tilewright with an architecture."""
    if not is_file_name(source) or not is_file(source):
        return False
    data = read_document(source).data
    return isinstance(data, dict) and "architecture" in (data.get("kind"), "architecture" if "clusters" in data else "")


def is_group_file(source: str) -> bool:
    """Return whether the text names a file with a group mapping."""
    if not is_file_name(source) or not is_file(source) or is_foreign(source):
        return False
    data = read_document(source).data
    return isinstance(data, dict) and (data.get("kind") == "group_mapping" or "tree" in data)


def file_suffixes() -> str:
    return listed_suffixes(installed())


def sign_of(document: Document) -> str | None:
    """Return the kind of a document without a `kind`, from its keys."""
    kinds = {kind for key, kind in SIGNS.items() if key in document.data}
    return kinds.pop() if len(kinds) == 1 else None

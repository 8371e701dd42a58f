"""Loading of library names, files, formulas, dicts and objects."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from collections.abc import Mapping as MappingOf
from typing import Any, Literal, TypeVar, cast, get_args, overload

from tilewright import library
from tilewright.application.api.call_arguments import one_of
from tilewright.application.api.load.foreign import foreign_architecture, foreign_workload
from tilewright.application.api.load.kinds import (
    PLACES,
    SCHEMAS,
    file_suffixes,
    frontends_for,
    is_file_name,
    is_foreign,
    sign_of,
)
from tilewright.application.api.load.reading import loaded
from tilewright.application.conversion.frontends import declining, frontends_of, recognising, suffixes_of
from tilewright.errors import InputError, UnknownNameError
from tilewright.estimation.architectures import read_architecture
from tilewright.files import file_and_member, is_file, missing_file
from tilewright.plugin.guard.processes import warn_once
from tilewright.plugin.registry import Registration, installed
from tilewright.plugin.specs import FrontendSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import NO_CONSTRAINTS, Constraints, Cutting
from tilewright.schema.document import (
    YAML_SUFFIXES,
    Document,
    FileModel,
    parse_document,
    read_document,
    suggestion,
    validate,
)
from tilewright.schema.group import GroupMapping
from tilewright.schema.mapped import BoundMapping, MappedProblem, kind_of
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.workload import Workload

Source = str | os.PathLike[str] | MappingOf[str, Any] | FileModel
"""Source of a workload, problem, architecture, mapping or constraints."""
Loaded = Workload | Problem | Architecture | Mapping | MappedProblem | Constraints | GroupMapping
"""Result of `load`; the kind of the source decides."""
M = TypeVar("M", bound=FileModel)
Kind = Literal["workload", "problem", "architecture", "mapping", "constraints", "group_mapping"]

RESULT = (
    "it is a result; the mapping files next to it are inputs of `evaluate`, and `tilewright report FOLDER` shows all"
)
"""Hint about a JSON document that a command wrote."""


@overload
def load(source: Source, kind: Literal["workload"], **options: Any) -> Workload: ...
@overload
def load(source: Source, kind: Literal["problem"], **options: Any) -> Problem: ...
@overload
def load(source: Source, kind: Literal["architecture"], **options: Any) -> Architecture: ...
@overload
def load(source: Source, kind: Literal["mapping"], **options: Any) -> Mapping | MappedProblem: ...
@overload
def load(source: Source, kind: Literal["constraints"], **options: Any) -> Constraints: ...
@overload
def load(source: Source, kind: Literal["group_mapping"], **options: Any) -> GroupMapping: ...
@overload
def load(source: Source, kind: None = None, **options: Any) -> Loaded: ...
def load(source: Source, kind: Kind | None = None, **options: Any) -> Loaded:
    """Return a workload, problem, architecture, mapping, constraints or group mapping.

    Args:
        source: A library name (`resnet50`, `resnet50/n0`, `eyeriss`, `eyeriss.row_stationary`), a
            formula with sizes, or an object. It may also be a file (YAML, JSON, or one for a frontend
            such as ONNX), or a dict with the contents of a file.
        kind: Expected kind. Default: determined by the name or file. A workload of one layer can be
            loaded as a problem, and a mapping file of `map` as any of its parts.
        options: Options of the frontend that reads the source, such as `batch=1`.

    Raises:
        UnknownNameError: The name is unknown; the message lists similar ones.
        InputError: The file, dict or formula is invalid, or the kind of the source is unclear.

    Example:
        >>> import tilewright as tw
        >>> tw.load("nk,km->nm; n=2 k=3 m=4", "problem").macs
        24
        >>> tw.load("eyeriss", "architecture").compute_instances
        168
    """
    if kind is None:
        kind, source = _recognised(source)
    match one_of("kind", kind, ("workload", "problem", "architecture", "mapping", "constraints", "group_mapping")):
        case "workload":
            return load_workload(source, options)
        case "problem":
            return load_problem(source, options)
    _no_options(options, _words(source))
    match kind:
        case "architecture":
            return load_architecture(source)
        case "mapping":
            return load_mapping(source)
        case "group_mapping":
            return _load(GroupMapping, "group_mapping", source)
    return _load(Constraints, "constraints", source, _named_constraints)


def load_architecture(source: Source) -> Architecture:
    """Return an architecture from a library name, a file, a dict or an object.

    Raises:
        InputError, UnknownNameError: The source is invalid.
    """
    if isinstance(source, MappedProblem | BoundMapping):
        return source.architecture
    if isinstance(source, str | os.PathLike) and is_foreign(source):
        return foreign_architecture(source)
    document = _document(source)
    if document is not None and kind_of(document) == "mapped":
        return validate(MappedProblem, document).architecture
    if document is not None:
        _expect(document, "architecture")
        return read_architecture(document)
    return _load(Architecture, "architecture", source, _named_architecture)


def _named_architecture(name: str) -> Architecture:
    try:
        return library.architecture(name)
    except UnknownNameError as error:
        if name not in workload_names():
            raise
        raise UnknownNameError(f"no architecture is called '{name}'; it is a workload", hint=error.hint) from None


def architecture_data(source: Source) -> dict[str, Any]:
    """Return an architecture as its file states it: with components and units, if it has some.

    Raises:
        InputError, UnknownNameError: The source is invalid.
    """
    architecture = load_architecture(source)
    text = library.text(source) if isinstance(source, str) and not is_file_name(source) else None
    document = _document(source) if text is None else parse_document(text)
    data = None if document is None or is_foreign(source) or kind_of(document) == "mapped" else document.data
    return architecture.to_data() if data is None else dict(data)


def load_group(source: Source, arch: Source | None = None) -> GroupMapping:
    """Return a group mapping, on another architecture if `arch` names one.

    Raises:
        InputError, UnknownNameError: A source is invalid, or the group does not fit the architecture.
    """
    group = load(source, "group_mapping")
    if arch is None:
        return group
    moved = group.model_copy(update={"architecture": load_architecture(arch)})
    return GroupMapping.model_validate(moved.to_data())


def load_constraints(source: Source | None, architecture: Architecture) -> Constraints:
    """Return constraints from a library name, a file, a dict, an object or `none`.

    None selects the published dataflow of the architecture, if it has one.

    Raises:
        InputError, UnknownNameError: The source is invalid.
    """
    if source == "none":
        return NO_CONSTRAINTS
    if isinstance(source, str | os.PathLike) and os.path.isdir(source):
        hint = "those in files of another tool apply with their hardware: --arch FOLDER"
        raise InputError(f"{source} is a folder; expected a name or a file of constraints", hint=hint)
    if source is None:
        if (twin := library.twin(architecture)) is not None:
            warn_once(
                f"note: {architecture.name} is the library's {twin.partition('.')[0]} under another name, so its published "
                f"dataflow does not apply; write `dataflow: {twin}` in the file, or give --constraints {twin} or none"
            )
        dataflow = library.dataflow_of(architecture)
        if dataflow is not None and architecture.dataflow is not None:
            dataflow.check_names(architecture)
        return dataflow or NO_CONSTRAINTS
    if isinstance(source, str) and not is_file_name(source):
        if source in library.names("constraints"):
            constraints = _named_constraints(source)
            constraints.check_names(architecture)
            return constraints
        return library.constraints(architecture.family, source.removeprefix(f"{architecture.family}."))
    constraints = _load(Constraints, "constraints", source)
    if constraints.architecture not in (None, architecture.name, architecture.family):
        raise InputError(
            f"{_words(source)} is for {constraints.architecture}, not for {architecture.name}",
            hint="without 'architecture:' it is for all",
        )
    constraints.check_names(architecture)
    return constraints


def with_factors(constraints: Constraints, factors: str | None, uneven: bool | None = None) -> Constraints:
    """Return the constraints with these kinds of mappings; None keeps theirs.

    Raises:
        InputError: The rule is unknown.
    """
    if uneven is not None:
        constraints = constraints.model_copy(update={"uneven": uneven})
    if factors is None:
        return constraints
    word = one_of("factors", factors, (*get_args(Cutting), "as_needed"), {"imperfect": "ragged"})
    return constraints.model_copy(update={"factors": word})


def load_mapping(source: Source | Document) -> Mapping | MappedProblem:
    """Return a mapping, with or without its problem and architecture, from a file, a dict or an object.

    Raises:
        InputError: The source is invalid.
    """
    if isinstance(source, MappedProblem):
        return source
    document = _document(source)
    if document is not None and "mapped" in (kind_of(document), sign_of(document)):
        return validate(MappedProblem, document)
    return _load(Mapping, "mapping", source if document is None else document)


def load_evaluable(source: Source) -> Mapping | MappedProblem | GroupMapping:
    """Return a mapping as `load_mapping` does, or a group mapping from a file, a dict or an object.

    Raises:
        InputError: The source is invalid.
    """
    if isinstance(source, GroupMapping):
        return source
    document = _document(source)
    if document is not None and kind_of(document) == "group_mapping":
        return validate(GroupMapping, document)
    return load_mapping(source if document is None else document)


def load_workload(source: Source, options: MappingOf[str, Any] | None = None) -> Workload:
    """Return a workload from a file, a formula, a library name, a dict or an object.

    `name/layer` and `file/layer` select one layer. `options` go to the frontend that reads the source.

    Raises:
        InputError, UnknownNameError, PluginError: The source is invalid, or its frontend failed.
    """
    given = dict(options or {})
    if isinstance(source, Problem | MappedProblem | BoundMapping):
        _no_options(given, _words(source))
        return Workload.of(source if isinstance(source, Problem) else source.problem)
    if isinstance(source, str | os.PathLike):
        file, layer = file_and_member(source)
        if is_foreign(source):
            _no_options(given, _words(source))
            return foreign_workload(source)
        if layer is not None:
            return load_workload(file, options).only(layer, file)
    readers = frontends_for(source)
    document = None if readers else _document(source)
    if document is not None or not isinstance(source, str | os.PathLike):
        _no_options(given, _words(source))
        return _load(Workload, "workload", source) if document is None else _from_document(document)
    name = os.fspath(source)
    if readers:
        return loaded(name, readers, given)
    for registration, spec in frontends_of(installed(), builtin=True):  # no file: the message is the reader's
        if spec.suffixes and name.endswith(spec.suffixes):
            return installed().make(FrontendSpec, registration.long_name, given).load(name)
    if _is_formula(name):
        workload = _from_formula(name, given)
        if workload is not None:
            return workload
    return _from_library(name, given)


def load_problem(source: Source, options: MappingOf[str, Any] | None = None) -> Problem:
    """Return the problem of a workload with exactly one layer; otherwise raise InputError."""
    if isinstance(source, Problem) and not options:
        return source
    workload = load_workload(source, options)
    if len(workload.layers) != 1:
        raise InputError(
            f"{_words(source)} has {len(workload.layers)} layers; one was expected", hint="name one: NAME/LAYER"
        )
    return workload.layers[0].problem


def workload_names() -> dict[str, str]:
    """Return a one-line summary, with the source, per library workload, frontends' workloads included."""
    theirs = _frontend_workloads().items()
    builtin = {name: summary for name, (reader, summary) in theirs if reader.builtin}
    others = {name: f"{summary}{_whose(reader)}" for name, (reader, summary) in theirs if not reader.builtin}
    return builtin | library.workloads() | others


def _load(model: type[M], kind: str, source: Source | Document, named: Callable[[str], M] | None = None) -> M:
    """Return an object of this schema unchanged, or read one from a file, a dict or a known name."""
    if isinstance(source, model):
        return source
    document = _document(source)
    if document is not None:
        _expect(document, kind)
        return validate(model, document)
    if named is None or not isinstance(source, str):
        name = ", a name" if named else ""
        hint = f"give a file, a dict, an object{name}"
        if kind == "mapping" and isinstance(source, str | os.PathLike):
            hint = (
                f"give the file of a mapping; `tilewright map {source} --arch NAME -o FOLDER` finds and writes mappings"
            )
        raise InputError(f"expected {kind}, not {_words(source)}", hint=hint)
    return named(source)


def _named_constraints(name: str) -> Constraints:
    architecture, _, own = name.partition(".")
    return library.constraints(architecture, own)


def _document(source: Source | Document) -> Document | None:
    """Return the contents of a dict or of a file of Tilewright, or None for other sources."""
    if isinstance(source, Document):
        return source
    if isinstance(source, MappingOf):
        return Document(dict(source), "dict")
    if isinstance(source, str | os.PathLike) and is_file_name(os.fspath(source)):
        return read_document(os.fspath(source))
    return None


def _recognised(source: Source) -> tuple[Kind, Source]:
    """Return the kind of a source, and the source in a form that needs no second reading."""
    for kind, model in SCHEMAS.items():
        if isinstance(source, model):
            return _plain(kind), source
    document = None if frontends_for(source) else _document(source)
    if document is not None:
        known_kind = kind_of(document) or sign_of(document)
        foreign = _recognised_foreign(source) if known_kind is None and is_foreign(source) else None
        if foreign is not None:
            return foreign
        if known_kind not in SCHEMAS:
            raise InputError(
                f"cannot tell the kind of this document; it has {f'kind: {known_kind}' if known_kind else 'no kind'}",
                location=document.locate(()),
                hint=f"write one of {', '.join(SCHEMAS)} after 'kind:', or give kind=; for a file of another tool, "
                "tilewright convert FILE --to tilewright says what is wrong",
            )
        if known_kind == "architecture":
            return "architecture", read_architecture(document)
        return _plain(known_kind), validate(SCHEMAS[known_kind], document)
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"cannot load {_words(source)}", hint="give a name, a file, a dict or an object")
    if os.path.isdir(source) and is_foreign(source):
        raise InputError(
            f"{source} is a folder, which may have several parts", hint="give kind='workload' or kind='architecture'"
        )
    return _kind_of_name(os.fspath(source)), source


def _recognised_foreign(source: Any) -> tuple[Kind, Source] | None:
    """Return the architecture in a file of another tool, or else its layers; None if the file has no part of these."""
    for kind, read in (("architecture", foreign_architecture), ("workload", foreign_workload)):
        with contextlib.suppress(InputError):
            return cast(Kind, kind), read(source)
    return None


def _kind_of_name(name: str) -> Kind:
    """Return the kind of a name in the library or a frontend.

    Raises:
        UnknownNameError: The name is unknown.
        InputError: The name has two kinds.
    """
    names = {
        "architecture": set(library.names("architectures")),
        "constraints": set(library.names("constraints")),
        "workload": {*library.names("workloads"), *_frontend_workloads()},
    }
    kinds = [kind for kind, known in names.items() if name.partition("/")[0] in known]
    if len(kinds) > 1:
        raise InputError(f"'{name}' names {' and '.join(kinds)}", hint=f"add kind='{kinds[0]}' or kind='{kinds[1]}'")
    if kinds:
        return "problem" if kinds == ["workload"] and "/" in name else _plain(kinds[0])
    if name.endswith(suffixes_of(installed())) or frontends_for(name):
        return "workload"
    if is_file(name) and (told := declining(name, installed())):
        raise InputError(f"no installed plugin reads {name}", hint=told)
    if not _is_formula(name):
        ours = [*library.names("architectures"), *library.names("workloads")]
        raise UnknownNameError(
            f"unknown name '{name}'{_known(name, ours, library.names('constraints'))}",
            hint=f"or give a file ({file_suffixes()}), or a formula such as 'nk,km->nm; n=4 k=5 m=6'",
        )
    return "problem"


def _plain(kind: str) -> Kind:
    """Return the kind; a mapping with its problem and architecture is a mapping."""
    return "mapping" if kind == "mapped" else cast(Kind, kind)


def _from_document(document: Document) -> Workload:
    kind = kind_of(document) or sign_of(document)
    if kind == "mapped":
        return Workload.of(validate(MappedProblem, document).problem)
    if kind == "problem":
        return Workload.of(validate(Problem, document))
    _expect(document, "workload")
    return validate(Workload, document)


def _expect(document: Document, kind: str) -> None:
    actual = kind_of(document)
    if actual not in (kind, None):
        raise InputError(
            f"expected a file of kind '{kind}', this one is of kind '{actual}'{suggestion(str(actual), PLACES)}",
            location=document.locate(("kind",)),
            hint=RESULT if str(actual).endswith("_output") else PLACES.get(actual or ""),
        )


def _is_formula(source: str) -> bool:
    """Return whether the text cannot be a name."""
    return not source.replace("/", "").replace("-", "").replace(".", "").isidentifier()


def _from_formula(source: str, options: MappingOf[str, Any]) -> Workload | None:
    """Return the workload of the first built-in frontend that recognises the text, else of a third party's, or None.

    A frontend that fails is skipped with a warning.
    """
    for builtin in (True, False):
        candidates = [registration for registration, _ in frontends_of(installed(), builtin)]
        known = recognising(source, candidates, installed())
        if known:
            return loaded(source, known[:1] if builtin else known, options)
    return None


def _from_library(source: str, options: MappingOf[str, Any]) -> Workload:
    suffixes = (*YAML_SUFFIXES, *suffixes_of(installed()))
    if any(part.endswith(suffixes) for part in source.split("/")):
        raise missing_file(source)
    name, _, layer = source.partition("/")
    if name in library.names("workloads"):
        _no_options(options, source)
        workload = library.workload(name)
    else:
        theirs = _frontend_workloads()
        if name not in theirs:
            suffix = os.path.splitext(name)[1]
            if suffix[1:].isalpha():
                raise InputError(missing_file(source).message, hint=f"names of files end in {file_suffixes()}")
            raise UnknownNameError(
                f"no workload is called '{source}'{library.other_kind(name) or _known(name, library.names('workloads'))}",
                hint=f"or give a file ({file_suffixes()}), or a formula such as 'nk,km->nm; n=4 k=5 m=6'",
            )
        workload = loaded(name, [theirs[name][0]], options)
    return workload.only(layer, name) if layer else workload


def _frontend_workloads() -> dict[str, tuple[Registration, str]]:
    """Return the frontend and the summary of each library workload of a frontend.

    A name of the library, or of an earlier frontend, remains theirs; a third party's is a name, not a formula.
    """
    taken = {name for kind in ("architectures", "constraints", "workloads") for name in library.names(kind)}
    theirs = dict[str, tuple[Registration, str]]()
    for registration, spec in frontends_of(installed()):
        names = {name: (registration, summary) for name, summary in spec.library.items() if name not in theirs}
        if registration.builtin:
            theirs = names | theirs
        else:
            free = {name for name in names if not (name in taken or _is_formula(name) or "/" in name)}
            theirs |= {name: names[name] for name in names if name in free}
    return theirs


def _whose(registration: Registration) -> str:
    return "" if registration.builtin else f" ({registration.long_name})"


def _known(name: str, names: Iterable[str], unlisted: Iterable[str] = ()) -> str:
    """Return the suggestion of a similar name, and all names: those given, and those of frontends' workloads."""
    theirs = _frontend_workloads()
    ours = sorted({*names, *(one for one, (reader, _) in theirs.items() if reader.builtin)})
    others = {one: _whose(reader) for one, (reader, _) in theirs.items() if not reader.builtin}
    near = suggestion(name, [*ours, *unlisted]) or suggestion(name, others)
    return f"{near}; known: {', '.join([*ours, *(one + whose for one, whose in sorted(others.items()))])}"


def _words(source: object) -> str:
    """Return the name of a source for messages."""
    if isinstance(source, str | os.PathLike):
        return str(source)
    return f"an object of type {type(source).__name__}"


def _no_options(options: MappingOf[str, Any], source: str) -> None:
    if options:
        raise InputError(f"{source} has fixed sizes: {', '.join(options)} cannot be set")

"""What users name on the command line, turned into objects: library names, files, formulas."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright import library
from tilewright.errors import InputError, UnknownNameError
from tilewright.plugin.registry import Registry
from tilewright.plugin.specs import FrontendSpec
from tilewright.schema.document import Document, read_document, suggestion, validate
from tilewright.schema.mapped import MappedProblem, kind_of

if TYPE_CHECKING:
    from tilewright.schema.architecture import Architecture
    from tilewright.schema.constraints import Constraints
    from tilewright.schema.problem import Problem
    from tilewright.schema.workload import Workload

YAML_SUFFIXES = (".yaml", ".yml", ".json")


def is_file_name(source: str) -> bool:
    """Does the user mean a file of ours?"""
    return source.endswith(YAML_SUFFIXES) or (Path(source).is_file() and not Path(source).suffix)


def load_architecture(source: str) -> Architecture:
    """A library name or a YAML file. Raises InputError, UnknownNameError."""
    from tilewright.schema.architecture import Architecture

    if not is_file_name(source):
        return library.architecture(source)
    document = read_document(source)
    if kind_of(document) == "mapped":
        return validate(MappedProblem, document).architecture
    _expect(document, "architecture")
    return validate(Architecture, document)


def load_constraints(source: str | None, architecture: Architecture) -> Constraints:
    """A name from the library, a file, `none`, or (None) the architecture's published dataflow, if it has one."""
    from tilewright.schema.constraints import NO_CONSTRAINTS, Constraints

    if source == "none":
        return NO_CONSTRAINTS
    if source is None:
        return library.default_constraints(architecture.name) or NO_CONSTRAINTS
    if not is_file_name(source):
        return library.constraints(architecture.name, source)
    document = read_document(source)
    _expect(document, "constraints")
    found = validate(Constraints, document)
    if found.architecture not in (None, architecture.name):
        raise InputError(f"{source} is for {found.architecture}, not for {architecture.name}")
    return found


def load_workload(source: str, registry: Registry, options: Mapping[str, Any] | None = None) -> Workload:
    """A workload or problem file, a file or formula of some frontend, a library name, or `name/layer`.

    `options` go to the frontend that reads it. Raises InputError, UnknownNameError, PluginError.
    """
    given = dict(options or {})
    if is_file_name(source):
        _no_options(given, source)
        return _from_document(read_document(source))
    for registration in registry.of_kind(FrontendSpec):
        spec = registration.spec
        assert isinstance(spec, FrontendSpec)
        if source.endswith(spec.suffixes) if spec.suffixes else False:
            return registry.make(FrontendSpec, registration.long_name, given).load(source)
    if not source.replace("/", "").replace("-", "").replace(".", "").isidentifier():
        found = _recognised(source, registry, given)
        if found is not None:
            return found
    return _from_library(source, registry, given)


def load_problem(source: str, registry: Registry) -> Problem:
    """As `load_workload`, when it has exactly one layer. Raises InputError otherwise."""
    found = load_workload(source, registry)
    if len(found.layers) != 1:
        raise InputError(f"{source} has {len(found.layers)} layers; one was expected", hint="name one: NAME/LAYER")
    return found.layers[0].problem


def workload_names(registry: Registry) -> dict[str, str]:
    """Library workloads, those that frontends bring included: name -> one line with the source."""
    found = library.workloads()
    for registration in registry.of_kind(FrontendSpec):
        assert isinstance(registration.spec, FrontendSpec)
        found |= dict(registration.spec.library)
    return found


def _from_document(document: Document) -> Workload:
    from tilewright.schema.problem import Problem
    from tilewright.schema.workload import Workload

    kind = kind_of(document)
    if kind == "mapped":
        return Workload.of(validate(MappedProblem, document).problem)
    if kind == "problem" or (kind is None and "tensors" in document.data):
        return Workload.of(validate(Problem, document))
    _expect(document, "workload")
    return validate(Workload, document)


def _expect(document: Document, kind: str) -> None:
    found = kind_of(document)
    if found not in (kind, None):
        raise InputError(
            f"expected a file of kind '{kind}', this one is of kind '{found}'",
            location=document.locate(("kind",)),
        )


def _recognised(source: str, registry: Registry, options: Mapping[str, Any]) -> Workload | None:
    for registration in registry.of_kind(FrontendSpec):
        if registration.spec.missing():
            continue
        frontend = registry.make(FrontendSpec, registration.long_name)
        if frontend.recognises(source):
            if options:
                frontend = registry.make(FrontendSpec, registration.long_name, options)
            return frontend.load(source)
    return None


def _from_library(source: str, registry: Registry, options: Mapping[str, Any]) -> Workload:
    from tilewright.schema.workload import Workload

    name, _, layer = source.partition("/")
    if name in library.names("workloads"):
        _no_options(options, source)
        found = library.workload(name)
    else:
        owner = _owner(name, registry)
        if owner is None:
            known = sorted(workload_names(registry))
            raise UnknownNameError(
                f"no workload is called '{source}'{suggestion(name, known)}; known: {', '.join(known)}",
                hint="or give a file (.yaml, .onnx), or a formula such as 'nk,km->nm; n=4 k=5 m=6'",
            )
        found = registry.make(FrontendSpec, owner, options).load(name)
    if not layer:
        return found
    names = [each.name for each in found.layers]
    if layer not in names:
        raise UnknownNameError(
            f"{name} has no layer '{layer}'{suggestion(layer, names)}",
            hint=f"its layers: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}",
        )
    return Workload.of(found.layers[names.index(layer)].problem)


def _owner(name: str, registry: Registry) -> str | None:
    """The frontend that declares a library name."""
    for registration in registry.of_kind(FrontendSpec):
        assert isinstance(registration.spec, FrontendSpec)
        if name in registration.spec.library:
            return registration.long_name
    return None


def _no_options(options: Mapping[str, Any], source: str) -> None:
    if options:
        raise InputError(f"{source} has fixed sizes: {', '.join(options)} cannot be set")

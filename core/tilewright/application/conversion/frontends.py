"""Frontends by suffix and by `recognises`. Built-in ones are asked before those of third parties."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilewright.errors import PluginError
from tilewright.plugin.guard.processes import warn_once
from tilewright.plugin.registry import Registration, Registry
from tilewright.plugin.specs import FrontendSpec
from tilewright.schema.document import YAML_SUFFIXES


def frontends_of(registry: Registry, builtin: bool | None = None) -> Iterator[tuple[Registration, FrontendSpec]]:
    """Yield frontends with their specs: built-in ones, those of third parties, or (None) all."""
    for registration in registry.of_kind(FrontendSpec):
        if builtin in (None, registration.builtin) and isinstance(registration.spec, FrontendSpec):
            yield registration, registration.spec


SHARED = (*YAML_SUFFIXES, ".csv")
"""Suffixes of many notations: the contents decide who reads the file."""


def suffixes_of(registry: Registry) -> tuple[str, ...]:
    """Return the suffixes of the files that built-in frontends read."""
    return tuple(suffix for _, spec in frontends_of(registry, builtin=True) for suffix in spec.suffixes)


def builtin_reader(file: str, registry: Registry) -> Registration | None:
    """Return the built-in frontend that reads a file: by its suffix, or by its contents if the suffix is shared."""
    suffixed = [one for one, spec in frontends_of(registry, builtin=True) if file.endswith(spec.suffixes or ("\0",))]
    if file.endswith(SHARED):
        suffixed = recognising(file, suffixed, registry)
    return next(iter(suffixed), None)


def listed_suffixes(registry: Registry) -> str:
    """Return the suffixes of files for a message; those of a third party with its name."""
    named = {suffix: suffix for suffix in (".yaml", *suffixes_of(registry))}
    for registration, spec in frontends_of(registry, builtin=False):
        for suffix in spec.suffixes:
            named.setdefault(suffix, f"{suffix} ({registration.long_name})")
    return ", ".join(named.values())


def recognising(source: str, candidates: Iterable[Registration], registry: Registry) -> list[Registration]:
    """Return the frontends that recognise a source. One that fails is named once, and skipped from then on."""
    known = []
    for registration in candidates:
        if registration.owner in registry.failed or registration.spec.missing():
            continue
        try:
            if registry.make(FrontendSpec, registration.long_name).recognises(source):
                known.append(registration)
        except PluginError as error:
            registry.failed.add(registration.owner)
            warn_once(f"warning: {error.message}; it is skipped")
    return known


def declining(file: str, registry: Registry) -> str:
    """Return which third parties' frontends have the suffix of a file that they do not recognise; empty if none has it.

    Suffixes of YAML are those of many notations, so they do not count.
    """
    names = [
        registration.long_name
        for registration, spec in frontends_of(registry, builtin=False)
        if registration.owner not in registry.failed and file.endswith(spec.suffixes or ("\0",))
    ]
    if not names or file.endswith(YAML_SUFFIXES):
        return ""
    return f"its suffix is that of {' and '.join(names)}, which {'does' if len(names) == 1 else 'do'} not recognise it"

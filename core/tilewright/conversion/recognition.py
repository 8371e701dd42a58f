"""Recognition: in which notation files are, told by reading them in every one that is installed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.errors import InputError, TilewrightError, shortened
from tilewright.files import is_file
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.registry import Registration, Registry
from tilewright.plugin.specs import AdapterSpec


def read(
    files: Sequence[Path], notation: str | None, registry: Registry, options: Mapping[str, Any] | None = None
) -> InputSet:
    """What files say, in a notation or in the one that reads them. `options`: the reader's. Raises InputError."""
    if notation is None:
        return recognised(files, registry, options=options)[1]
    return registry.make(AdapterSpec, notation, options or {}).parse(files)


def recognised(
    files: Sequence[Path], registry: Registry, unlike: str = "", options: Mapping[str, Any] | None = None
) -> tuple[Registration, InputSet]:
    """The adapter that reads the files, and what they say.

    Args:
        files: all files of one input set.
        options: for the reader; an adapter that has no such options is none that reads the files.
        unlike: the long name of an adapter that shall not be it, where another one reads the same.

    Raises:
        InputError: no adapter reads them, with the complaint of each; or several do, and not the same.
    """
    here = [
        path for path in files if is_file(path) or os.path.isdir(path) or is_file(path.parent)
    ]  # FILE/LAYER is a file, too
    absent = [path for path in files if path not in here]
    if absent:
        raise InputError(f"there is no file {absent[0]}", hint="check the path")
    fits: list[tuple[Registration, InputSet]] = []
    complaints: dict[str, list[str]] = {}
    for registration in registry.of_kind(AdapterSpec):
        try:
            fits.append((registration, registry.make(AdapterSpec, registration.long_name, options or {}).parse(files)))
        except TilewrightError as error:
            complaints.setdefault(str(error).partition("\n")[0], []).append(registration.spec.name)
    named = ", ".join(str(path) for path in files)
    if not fits:
        raise _unread(named, complaints)
    contents = [replace(inputs, warnings=()) for _, inputs in fits]
    if any(content != contents[0] for content in contents):
        names = [registration.spec.name for registration, _ in fits]
        raise InputError(
            f"{named}: can be read as {' and as '.join(names)}, and does not say the same",
            hint=f"say which: {' or '.join(f'--from {name}' for name in names)} (notation= in Python)",
        )
    others = [fit for fit in fits if fit[0].long_name != unlike]
    return others[0] if others else fits[0]


def _unread(named: str, complaints: dict[str, list[str]]) -> InputError:
    """What every notation says against the files."""
    lines = [f"\n  {', '.join(names)}: {shortened(complaint)}" for complaint, names in complaints.items()]
    return InputError(
        f"{named}: in no notation that is installed{''.join(lines)}",
        hint="give all files of one input set, or say which notation it is: --from NAME (notation= in Python)",
    )

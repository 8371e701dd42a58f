"""Recognition: in which notation files are, told by reading them in every one that is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.errors import InputError, OptionError, TilewrightError, shortened
from tilewright.files import file_and_member, is_file
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.registry import Registration, Registry, check_options
from tilewright.plugin.specs import AdapterSpec, FrontendSpec

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")
SHOWN = 6
"""Files that a message names."""


def read(
    files: Sequence[Path], notation: str | None, registry: Registry, options: Mapping[str, Any] | None = None
) -> InputSet:
    """What files say, in a notation or in the one that reads them. `options`: the reader's. Raises InputError."""
    return told_apart(files, registry, lambda adapter: adapter.parse(files), notation, options)[1]


def recognised(
    files: Sequence[Path], registry: Registry, unlike: str = "", options: Mapping[str, Any] | None = None
) -> tuple[Registration, InputSet]:
    """The adapter that reads the files, and what they say; see `told_apart`."""
    return told_apart(files, registry, lambda adapter: adapter.parse(files), None, options, unlike)


def told_apart(
    files: Sequence[Path],
    registry: Registry,
    read: Callable[[Adapter], R],
    notation: str | None = None,
    options: Mapping[str, Any] | None = None,
    unlike: str = "",
) -> tuple[Registration, R]:
    """The adapter that reads the files, and what `read` made of them with it.

    Args:
        files: all files of one input set.
        notation: the name of the adapter, where it is known.
        options: for the reader; an adapter that has no such options is none that reads the files.
        unlike: the long name of an adapter that shall not be it, where another one reads the same.

    Raises:
        InputError: no adapter reads them, with the complaint of each; or several do, and not the same.
    """
    if notation is not None:
        _refuse_others(files, registry)
        registration = registry.find(AdapterSpec, notation)
        return registration, read(registry.make(AdapterSpec, registration.long_name, options or {}))
    here = [
        path for path in files if is_file(path) or os.path.isdir(path) or file_and_member(path)[1] is not None
    ]  # FILE/LAYER is a file, too
    absent = [path for path in files if path not in here]
    if absent:
        raise InputError(f"there is no file {absent[0]}", hint="check the path")
    _refuse_others(files, registry)
    fits: list[tuple[Registration, R]] = []
    complaints: dict[str, list[str]] = {}
    hints: dict[str, set[str | None]] = {}
    reached: dict[str, tuple[int, int]] = {}
    for registration in _taking(options or {}, registry):
        try:
            fits.append((registration, read(registry.make(AdapterSpec, registration.long_name, options or {}))))
        except TilewrightError as error:
            said = str(error).partition("\n")[0]
            complaints.setdefault(said, []).append(registration.spec.name)
            hints.setdefault(said, set()).add(error.hint)
            reached[said] = _reached(error, files)
    named = ", ".join(str(path) for path in files[:SHOWN]) + (", ..." if len(files) > SHOWN else "")
    if not fits:
        raise _unread(named, complaints, hints, reached)
    contents = [replace(found, warnings=()) for _, found in fits]  # what was found has warnings
    if any(content != contents[0] for content in contents):
        names = [registration.spec.name for registration, _ in fits]
        raise InputError(
            f"{named}: can be read as {' and as '.join(names)}, and does not say the same",
            hint=f"say which: {' or '.join(f'--from {name}' for name in names)} (notation= in Python)",
        )
    others = [fit for fit in fits if fit[0].long_name != unlike]
    return others[0] if others else fits[0]


def _taking(options: Mapping[str, Any], registry: Registry) -> list[Registration]:
    """All adapters but those that refuse these options. Raises InputError: all do."""
    taking: list[Registration] = []
    refusals: list[str] = []
    for registration in registry.of_kind(AdapterSpec):
        try:
            check_options(registration, options)
        except OptionError as error:
            refusals.append(error.message)
            continue
        except TilewrightError:
            pass  # told where it is made
        taking.append(registration)
    if not taking:
        raise InputError("no notation takes these options" + "".join(f"\n  {each}" for each in refusals))
    return taking


def _refuse_others(files: Sequence[Path], registry: Registry) -> None:
    """Raises InputError for what no notation is: networks that frontends read, and programs."""
    suffixes = [
        suffix
        for registration in registry.of_kind(FrontendSpec)
        if isinstance(registration.spec, FrontendSpec)
        for suffix in registration.spec.suffixes
    ]
    for path in files:
        file = file_and_member(path)[0]
        if file.endswith(tuple(suffixes)):
            raise InputError(
                f"{file} is a network, which frontends read",
                hint=f"map it: tilewright map {path} --arch FILE, with all other files each behind an --arch",
            )
        if file.endswith(".py"):
            raise InputError(
                f"{file} is a program, and none is run",
                hint="FactorFlow's and Sunstone's hardware is Python: say it in a file of ours (tilewright library show eyeriss "
                "prints one), or take theirs from the library (tilewright library archs)",
            )


def _reached(error: TilewrightError, files: Sequence[Path]) -> tuple[int, int]:
    """How far a reader came: file and line."""
    if not isinstance(error, InputError) or error.location is None:
        return -1, 0
    names = [file_and_member(path)[0] for path in files]
    source = error.location.source
    return names.index(source) if source in names else -1, error.location.line or 0


def _unread(
    named: str,
    complaints: dict[str, list[str]],
    hints: dict[str, set[str | None]],
    reached: dict[str, tuple[int, int]],
) -> InputError:
    """What every notation says against the files, and the hint, where all that say so have the same. Those first that came
    furthest: they may be the ones that are meant."""
    lines = []
    furthest = max(reached.values())
    for complaint, names in sorted(complaints.items(), key=lambda each: reached[each[0]], reverse=True):
        hint = next(iter(hints[complaint])) if len(hints[complaint]) == 1 else None
        lines.append(f"\n  {', '.join(names)}: {shortened(complaint)}{f' ({hint})' if hint else ''}")
    first = [names[0] for complaint, names in complaints.items() if reached[complaint] == furthest]
    return InputError(
        f"{named}: in no notation that is installed{''.join(lines)}",
        hint="give all files of one input set, or say which notation it is: "
        f"--from {first[0] if len(first) == 1 else 'NAME'} (notation= in Python)",
    )

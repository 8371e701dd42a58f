"""Detection of a file's notation: every installed adapter tries to read it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.application.conversion.signs import owners
from tilewright.errors import InputError, OptionError, TilewrightError, UnsupportedError, shortened
from tilewright.files import file_and_member, is_file, missing_file, read_text
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.guard.calls import BUILTIN
from tilewright.plugin.registry import Registration, Registry, check_options
from tilewright.plugin.specs import AdapterSpec, FrontendSpec

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")
NOT_YAML = ": not valid YAML"
"""Part of the complaint about a file that is no YAML."""
START = "`tilewright library show eyeriss` prints an architecture to start from"
MAX_LIKELY = 3
"""Maximum number of complaints that are shown."""
Reach = tuple[int, int, bool]
"""How far an adapter gets: line, index of the file, and whether the adapter is a built-in one."""
FAILED = (-2, 0)
"""How far an adapter gets that cannot be built."""
SHOWN = 6
"""Maximum number of files named in a message."""


def read(
    files: Sequence[Path], notation: str | None, registry: Registry, options: Mapping[str, Any] | None = None
) -> InputSet:
    """Read files in the given notation, or in the one detected.

    Args:
        files: all files of one input set.
        notation: name of the adapter; None to detect it.
        registry: the plugins to choose from.
        options: options of the adapter.

    Raises:
        InputError: no adapter reads the files, or several do with different results.
    """
    return read_detected(files, registry, lambda adapter: adapter.parse(files), notation, options)[1]


def recognised(
    files: Sequence[Path], registry: Registry, unlike: str = "", options: Mapping[str, Any] | None = None
) -> tuple[Registration, InputSet]:
    """Return the adapter that reads the files, and their contents; see `read_detected`."""
    return read_detected(files, registry, lambda adapter: adapter.parse(files), None, options, unlike)


def read_detected(
    files: Sequence[Path],
    registry: Registry,
    read: Callable[[Adapter], R],
    notation: str | None = None,
    options: Mapping[str, Any] | None = None,
    unlike: str = "",
) -> tuple[Registration, R]:
    """Return the adapter that reads the files, and the result of `read` with it.

    Args:
        files: all files of one input set.
        registry: the plugins to choose from.
        read: the function to call with each adapter.
        notation: name of the adapter; None to detect it.
        options: options of the adapter; an adapter without these options is skipped.
        unlike: long name of an adapter to avoid if another one reads the same content.

    Raises:
        UnsupportedError: an adapter knows the files, and refuses a feature.
        InputError: no adapter reads the files (the likeliest notation is named), or several do with different results.
    """
    if notation is not None:
        registration = registry.find(AdapterSpec, notation)
        adapter = registry.make(AdapterSpec, registration.long_name, options or {})
        try:
            return registration, read(adapter)
        except InputError:
            _refuse_others(files, registry)
            raise
    here = [
        path for path in files if is_file(path) or os.path.isdir(path) or file_and_member(path)[1] is not None
    ]  # FILE/LAYER counts as a file
    absent = [path for path in files if path not in here]
    if absent:
        raise missing_file(absent[0])
    bare = [path for path in here if os.path.isdir(path) and not os.listdir(path)]
    if bare:
        raise InputError(f"the folder {bare[0]} is empty", hint="check the path")
    fits: list[tuple[Registration, R]] = []
    complaints: dict[str, list[str]] = {}
    hints: dict[str, set[str | None]] = {}
    reached: dict[str, Reach] = {}
    refusals: list[tuple[Registration, UnsupportedError]] = []
    taking = _taking(options or {}, registry)
    for registration in taking:
        try:
            fits.append((registration, read(registry.make(AdapterSpec, registration.long_name, options or {}))))
        except TilewrightError as error:
            refusals += [(registration, error)] if isinstance(error, UnsupportedError) else []
            said = str(error).partition("\n")[0]
            complaints.setdefault(said, []).append(registration.spec.name)
            hints.setdefault(said, set()).add(error.hint)
            reach = (*_reached(error, files), registration.distribution == BUILTIN)
            reached[said] = max(reach, reached.get(said, reach))
    owning = owners(here, taking) if complaints else []
    fits = [fit for fit in fits if fit[0] in owning] or fits
    if not fits:
        _refuse_others(files, registry)
        knowing = {owner.spec.name for owner in owning}
        own = {said: told for said, told in complaints.items() if knowing & set(told) and NOT_YAML not in said}
        if own:
            complaints = {said: [name for name in told if name in knowing] for said, told in own.items()}
            reached = {said: reached[said] for said in own}
            refusals = [(owner, error) for owner, error in refusals if owner in owning]
        else:
            _refuse_unreadable(here, complaints)
    known = next((error for _, error in refusals), None)
    named = ", ".join(str(path) for path in files[:SHOWN]) + (", ..." if len(files) > SHOWN else "")
    if known is not None and not fits:
        names = complaints[str(known).partition("\n")[0]]
        raise UnsupportedError(f"read as {' and '.join(names)}: {known.message}", hint=known.hint)
    if not fits:
        raise _unread(named, complaints, hints, reached)
    contents = [replace(inputs, warnings=()) for _, inputs in fits]  # warnings do not count as content
    if any(content != contents[0] for content in contents):
        names = [registration.spec.name for registration, _ in fits]
        raise InputError(
            f"{named}: can be read as {' and as '.join(names)}, with different results",
            hint=f"choose one: {' or '.join(f'--from {name}' for name in names)} (notation= in Python)",
        )
    others = [fit for fit in fits if fit[0].long_name != unlike]
    return others[0] if others else fits[0]


def _taking(options: Mapping[str, Any], registry: Registry) -> list[Registration]:
    """Return all adapters that accept these options.

    Raises:
        InputError: no adapter accepts them.
    """
    taking: list[Registration] = []
    refusals: list[str] = []
    for registration in registry.of_kind(AdapterSpec):
        try:
            check_options(registration, options)
        except OptionError as error:
            refusals.append(error.message)
            continue
        except TilewrightError:
            pass  # reported when the adapter is built
        taking.append(registration)
    if not taking:
        raise InputError("no notation has these options" + "".join(f"\n  {refusal}" for refusal in refusals))
    return taking


def _refuse_others(files: Sequence[Path], registry: Registry) -> None:
    """Refuse networks, which frontends read, and programs, which are never run.

    Raises:
        InputError: a file is a network or a program.
    """
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
                f"{file} is a network, which only frontends read",
                hint=f"map it: tilewright map {path} --arch FILE, with an --arch for each further file",
            )
        if file.endswith(".py"):
            raise InputError(
                f"{file} is a program; programs are not run",
                hint="FactorFlow and Sunstone define hardware in Python: write an architecture file (tilewright library show eyeriss "
                "prints one), or use the library's (tilewright library archs)",
            )


def _refuse_unreadable(files: Sequence[Path], complaints: Mapping[str, Sequence[str]]) -> None:
    """Refuse a file that is empty, no YAML, or plain text, instead of listing what each adapter expects.

    Raises:
        InputError: a file is such.
    """
    for path in files:
        if not is_file(path):
            continue
        text = read_text(path)
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if not lines:
            raise InputError(f"{path} is empty", hint="check that it was written completely")
        invalid = max(
            (said for said in complaints if NOT_YAML in said), key=lambda said: len(complaints[said]), default=""
        )
        if (
            path.suffix in (".yaml", ".yml", ".json")
            and invalid.startswith(f"{path}:")
            and len(complaints[invalid]) > 1
        ):
            raise InputError(invalid, hint="mend this line; the rest of the file was not read")
        if (
            path.suffix in (".yaml", ".yml", ".json")
            and ":" not in text
            and not text.lstrip().startswith(("-", "[", "{"))
        ):
            raise InputError(f"{path} is plain text, {shortened(text.strip())!r}; expected keys and values", hint=START)


def _reached(error: TilewrightError, files: Sequence[Path]) -> tuple[int, int]:
    """Return how far a reader got: line, and index of the file. Readers of other notations stop at a first line.

    A complaint without a place may be about the number of files, before one was read. A reader of YAML that finds none
    got nowhere.
    """
    if not isinstance(error, InputError):
        return FAILED
    if NOT_YAML in str(error):
        return -1, 0
    if error.location is None:
        return 0, -2
    names = [file_and_member(path)[0] for path in files]
    source = error.location.source
    return error.location.line or 0, names.index(source) if source in names else -1


def _unread(
    named: str,
    complaints: dict[str, list[str]],
    hints: dict[str, set[str | None]],
    reached: dict[str, Reach],
) -> InputError:
    """Return the error for files that no notation reads.

    It has the complaint of the notations that read furthest, because the user probably meant one of them. If all stop
    at the first line, it only names the notations.
    """
    furthest = max(reached.values())
    failed = [complaint for complaint in complaints if reached[complaint][:2] == FAILED]
    likeliest = [complaint for complaint in complaints if reached[complaint] == furthest]
    other = "--from NAME says what a notation expects (notation= in Python)"
    if len(likeliest) > MAX_LIKELY or furthest[:2] == FAILED:  # all stop at the first line
        names = ", ".join(sorted(name for complaint in complaints.values() for name in complaint))
        other, likeliest = f"{other}; installed: {names}", []
    lines = [f"{shortened(said)} (read as {' and '.join(complaints[said])})" for said in likeliest]
    told = {hint for said in likeliest for hint in hints[said] if hint is not None}
    hint = f"{told.pop()}; " if len(told) == 1 and len(likeliest) == 1 else ""
    if len(lines) == 1 and not failed:
        return InputError(lines[0], hint=f"{hint}for another notation, {other}")
    lines += [f"{', '.join(complaints[said])}: {shortened(said)}" for said in failed]
    listed = "".join(f"\n  {line}" for line in lines)
    return InputError(f"{named}: no installed adapter can read this{listed}", hint=other)

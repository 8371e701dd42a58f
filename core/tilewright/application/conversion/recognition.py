"""Detection of a file's notation: every installed adapter tries to read it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tilewright.application.conversion.frontends import builtin_reader, declining
from tilewright.application.conversion.signs import MAX_LISTED, owners
from tilewright.errors import InputError, OptionError, OverdueError, TilewrightError, UnsupportedError, shortened
from tilewright.files import file_and_member, is_file, missing_file, read_text, refuse_run
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.guard.processes import warn_once
from tilewright.plugin.registry import Registration, Registry, check_options
from tilewright.plugin.specs import AdapterSpec

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
    for path in files:
        refuse_run(path)
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
    taking, refusals = _taking(options or {}, registry)
    builtin, others = [taker for taker in taking if taker.builtin], [taker for taker in taking if not taker.builtin]
    fits, complaints = _tried(builtin, registry, read, options or {})
    owning = owners(here, builtin) if complaints else []
    if not (fits or owning):  # a file with a key of a built-in notation is a file of that notation
        _refuse_others(files, registry, inside=True)
        _refuse_unreadable(here, complaints)
        fits, more = _tried(others, registry, read, options or {})
        complaints, owning = [*complaints, *more], owners(here, others)
        if fits:
            who = " and ".join(str(registration.owner) for registration, _ in fits)
            warn_once(f"note: {_listed(files)} is read by {who}; --from names another notation")
    fits = [fit for fit in fits if fit[0] in owning] or fits
    if not fits:
        _refuse_others(files, registry)
        if not builtin:
            raise _no_options(refusals)
        told = [text for path in files if (text := declining(file_and_member(path)[0], registry))]
        _raise_unread(here, files, complaints, owning, told)
    contents = [replace(inputs, warnings=()) for _, inputs in fits]  # warnings do not count as content
    if any(content != contents[0] for content in contents):
        names = [registry.short_name(registration) for registration, _ in fits]
        raise InputError(
            f"{_listed(files)}: can be read as {' and as '.join(names)}, with different results",
            hint=f"choose one: {' or '.join(f'--from {name}' for name in names)} (notation= in Python)",
        )
    distinct = [fit for fit in fits if fit[0].long_name != unlike]
    return distinct[0] if distinct else fits[0]


@dataclass(frozen=True)
class _Complaint:
    """An error of one adapter about the files."""

    by: Registration
    error: TilewrightError

    @property
    def text(self) -> str:
        return str(self.error).partition("\n")[0]

    def reached(self, files: Sequence[Path]) -> Reach:
        """Return how far the reader got. Readers of other notations stop at a first line.

        A complaint without a place may be about the number of files, before one was read. A reader of YAML that finds
        none got nowhere.
        """
        error, builtin = self.error, self.by.builtin
        if not isinstance(error, InputError):
            return *FAILED, builtin
        if NOT_YAML in str(error):
            return -1, 0, builtin
        names = [file_and_member(path)[0] for path in files]
        place = error.location
        if place is None or not (builtin or place.source in names):
            return 0, -2, builtin
        return place.line or 0, names.index(place.source) if place.source in names else -1, builtin


def _tried(
    adapters: Sequence[Registration], registry: Registry, read: Callable[[Adapter], R], options: Mapping[str, Any]
) -> tuple[list[tuple[Registration, R]], list[_Complaint]]:
    """Return what the adapters read, and the complaints of those that read nothing."""
    fits, complaints = list[tuple[Registration, R]](), list[_Complaint]()
    for registration in adapters:
        if registration.owner in registry.failed:
            continue
        try:
            fits.append((registration, read(registry.make(AdapterSpec, registration.long_name, options))))
        except TilewrightError as error:
            if isinstance(error, OverdueError):
                registry.failed.add(registration.owner)
            complaints.append(_Complaint(registration, error))
    return fits, complaints


def _listed(files: Sequence[Path]) -> str:
    return ", ".join(str(path) for path in files[:SHOWN]) + (", ..." if len(files) > SHOWN else "")


def _taking(options: Mapping[str, Any], registry: Registry) -> tuple[list[Registration], list[str]]:
    """Return all adapters that accept these options, and why the others do not.

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
        raise _no_options(refusals)
    return taking, refusals


def _no_options(refusals: Sequence[str]) -> InputError:
    return InputError("no notation has these options" + "".join(f"\n  {refusal}" for refusal in refusals))


def _refuse_others(files: Sequence[Path], registry: Registry, inside: bool = False) -> None:
    """Refuse networks, which built-in frontends read, and programs, which are never run.

    Args:
        files: files and folders.
        registry: the plugins to choose from.
        inside: whether files of folders are refused, too.

    Raises:
        InputError: a file is a network or a program.
    """
    folders = [path for path in files if inside and os.path.isdir(path)]
    for path in [*files, *(file for folder in folders for file in sorted(folder.iterdir())[:MAX_LISTED])]:
        file = file_and_member(path)[0]
        if builtin_reader(file, registry) is not None:
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


def _raise_unread(
    here: Sequence[Path],
    files: Sequence[Path],
    complaints: Sequence[_Complaint],
    owning: Sequence[Registration],
    declined: Sequence[str],
) -> NoReturn:
    """Raise the error for files that no notation reads.

    The adapters whose keys the files have say why, else those that read furthest. A third party's complaint
    counts if the files have its keys, or if no built-in reader came beyond a first line.

    Args:
        here: the files without those that are absent.
        files: all files, as given.
        complaints: what each adapter said.
        owning: the adapters whose keys the files have.
        declined: sentences on frontends that do not recognise a file.

    Raises:
        UnsupportedError, InputError: always.
    """
    knowing = [complaint for complaint in complaints if complaint.by in owning and NOT_YAML not in complaint.text]
    if knowing:
        complaints = knowing
    else:
        known = [complaint for complaint in complaints if complaint.by.builtin]
        _refuse_unreadable(here, known)
        if any(isinstance(complaint.error, UnsupportedError) or complaint.reached(files)[0] > 1 for complaint in known):
            complaints = known
    refused = next((complaint for complaint in complaints if isinstance(complaint.error, UnsupportedError)), None)
    if refused is not None:
        names = [complaint.by.name for complaint in complaints if complaint.text == refused.text]
        raise UnsupportedError(f"read as {' and '.join(names)}: {refused.error.message}", hint=refused.error.hint)
    raise _unread(_listed(files), files, complaints, declined)


def _refuse_unreadable(files: Sequence[Path], complaints: Sequence[_Complaint]) -> None:
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
        invalid = Counter(complaint.text for complaint in complaints if NOT_YAML in complaint.text).most_common(1)
        if (
            path.suffix in (".yaml", ".yml", ".json")
            and invalid
            and invalid[0][0].startswith(f"{path}:")
            and invalid[0][1] > 1
        ):
            raise InputError(invalid[0][0], hint="mend this line; the rest of the file was not read")
        if (
            path.suffix in (".yaml", ".yml", ".json")
            and ":" not in text
            and not text.lstrip().startswith(("-", "[", "{"))
        ):
            raise InputError(f"{path} is plain text, {shortened(text.strip())!r}; expected keys and values", hint=START)


def _unread(named: str, files: Sequence[Path], complaints: Sequence[_Complaint], declined: Sequence[str]) -> InputError:
    """Return the error for files that no notation reads.

    It has the complaint of the notations that read furthest, because the user probably meant one of them. If all stop
    at the first line, it only names the notations.
    """
    reached = dict[str, Reach]()
    names, hints = dict[str, list[str]](), dict[str, set[str | None]]()
    for complaint in complaints:
        reached[complaint.text] = max(complaint.reached(files), reached.get(complaint.text, complaint.reached(files)))
        names.setdefault(complaint.text, []).append(complaint.by.name)
        hints.setdefault(complaint.text, set()).add(complaint.error.hint)
    furthest = max(reached.values())
    failed = [said for said in names if reached[said][:2] == FAILED]
    likeliest = [said for said in names if reached[said] == furthest]
    other = "; ".join([*declined, "--from NAME says what a notation expects (notation= in Python)"])
    if len(likeliest) > MAX_LIKELY or furthest[:2] == FAILED:  # all stop at the first line
        installed = ", ".join(sorted(name for said in names.values() for name in said))
        other, likeliest = f"{other}; installed: {installed}", []
    lines = [f"{shortened(said)} (read as {' and '.join(names[said])})" for said in likeliest]
    told = {hint for said in likeliest for hint in hints[said] if hint is not None}
    hint = f"{told.pop()}; " if len(told) == 1 and len(likeliest) == 1 else ""
    if len(lines) == 1 and not failed:
        return InputError(lines[0], hint=f"{hint}for another notation, {other}")
    lines += [f"{', '.join(names[said])}: {shortened(said)}" for said in failed]
    listed = "".join(f"\n  {line}" for line in lines)
    return InputError(f"{named}: no installed adapter can read this{listed}", hint=other)

"""Folders of another tool's files: files with layers, and files that only belong to them.

`problem.yaml`, `arch.yaml` and `ERT.yaml` of Timeloop are one input with one layer. `conv1.yaml` and `conv2.yaml` are two.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import InputError, NotConformableError, UnsupportedError
from tilewright.plugin.adapter import Adapter, InputSet, LayerReader

SHOWN = 4
"""Maximum number of files named in a message."""


@dataclass(frozen=True)
class Folder:
    """A folder's files.

    Attributes:
        layers: files with one layer or more; the folder itself if only its files together have one.
        others: files without a layer that can be read alone.
        parts: files that can be read only together with others.
    """

    layers: tuple[Path, ...]
    others: tuple[Path, ...]
    parts: tuple[Path, ...]

    @property
    def rest(self) -> tuple[Path, ...]:
        """All files without a layer."""
        return *self.others, *self.parts


def has_layer(inputs: InputSet) -> bool:
    return inputs.problem is not None or inputs.directives is not None or inputs.group is not None


def states_layer(adapter: Adapter, paths: Sequence[Path]) -> bool:
    """Return whether these files have a layer without any others."""
    try:
        return has_layer(adapter.parse(paths))
    except NotConformableError:  # a layer that Tilewright cannot express
        return True
    except InputError:
        return False


def names_in(adapter: Adapter, file: Path) -> tuple[str, ...]:
    """Return the names of the layers that `FILE/LAYER` selects; none if the file has at most one. Raises InputError."""
    return adapter.layers(file) if isinstance(adapter, LayerReader) and not os.path.isdir(file) else ()


def read_folder(adapter: Adapter, folder: Path, hardware: Sequence[Path]) -> Folder:
    """Return which files of a folder have layers, in natural order: `layer2` before `layer10`.

    A file without a layer is an architecture, a mapping, or the like. If it cannot be read alone, it has to be a part of the
    input of the only file with layers.

    Args:
        adapter: the reader.
        folder: the folder.
        hardware: files and folders of hardware. A file among them is no layer; the folder may be, too.

    Raises:
        InputError: a file is invalid, there is no layer, or it is unclear which files are layers.
    """
    known = {os.path.realpath(path) for path in hardware}
    visible = [file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")]
    files = sorted((file for file in visible if os.path.realpath(file) not in known), key=_numbered)
    if not files:
        raise InputError(f"{folder} has no files with layers", hint="give a folder of layers, or the files themselves")
    names = dict[Path, tuple[str, ...]]()
    whole, others, unread = list[Path](), list[Path](), dict[Path, InputError]()
    for file in files:
        try:
            if listed := names_in(adapter, file):
                names[file] = listed
                continue
            inputs = adapter.parse([file])
        except NotConformableError:
            names[file] = ()
            continue
        except InputError as error:
            unread[file] = error
            continue
        if not has_layer(inputs):
            others.append(file)
            continue
        names[file] = ()
        if inputs.architecture is not None or inputs.mapping is not None:
            whole.append(file)
    layers = list(names)
    _refuse_repeats(folder, names, whole)
    if unread or not layers:
        layers = _together(adapter, folder, names, unread)
    if len(layers) > 1 and os.path.realpath(folder) in known:
        here, rest = _listed(layers), [*others, *unread]
        arch = "".join(f" --arch {file}" for file in rest[:SHOWN]) or " --arch FILE"
        raise InputError(
            f"{folder} has layers in {len(layers)} files ({here}), so it is not the hardware of one of them",
            hint=f"name the files of the hardware: tilewright map {folder}{arch}",
        )
    return Folder(tuple(layers), tuple(others), tuple(unread))


def _refuse_repeats(folder: Path, names: Mapping[Path, tuple[str, ...]], whole: Sequence[Path]) -> None:
    """Refuse a folder that may state a layer twice: in a list and its file, or in a whole input and one of its parts.

    Raises:
        InputError: the folder is such.
    """
    stems = {file.stem for file, listed in names.items() if not listed}
    for file, listed in names.items():
        if listed and stems.issuperset(listed):
            raise InputError(
                f"{file} lists layers whose files are in {folder}, too",
                hint=f"give the list: tilewright map {file} --arch ARCH, or the files without it",
            )
    single = [file for file in names if file not in whole]
    if whole and single:
        raise InputError(
            f"{folder}: {_listed(whole)} has a layer with its hardware or mapping, and {_listed(single)} a layer alone; "
            "these may be the same layer",
            hint=f"name the files to read: tilewright map {single[0]} --arch FILE",
        )


def _together(
    adapter: Adapter, folder: Path, names: Mapping[Path, tuple[str, ...]], unread: Mapping[Path, InputError]
) -> list[Path]:
    """Return what has the layers of a folder whose files are one input, with files that cannot be read alone.

    Raises:
        InputError: they are not one input.
    """
    error = None
    if len(names) <= 1:
        layers = [file / listed[0] if listed else file for file, listed in names.items()]
        try:
            if has_layer(adapter.parse([*layers, folder])):
                return [*names] or [folder]
        except NotConformableError:
            return [*names] or [folder]
        except InputError as refusal:
            error = refusal
        if not names:
            raise error or InputError(f"{folder}: no file has a problem", hint="give files without layers by --arch")
    suffixes = {file.suffix for file in names}
    file = next((file for file in unread if file.suffix in suffixes), [*unread][0])
    alone = unread[file]
    if isinstance(alone, UnsupportedError):
        raise alone
    message = alone.message if alone.location else f"{file}: {alone.message}"
    if error is not None and error.message != alone.message:
        message = f"{folder} is not one input: {error.message}; and by itself, {message}"
    hint = f"to leave files out, name those with layers: tilewright map {_listed([*names], ' ')} --arch ARCH"
    told = InputError(message, hint=hint if alone.hint is None else f"{alone.hint}; {hint}")
    told.location = alone.location  # the message has it
    raise told


def _listed(files: Sequence[Path], between: str = ", ") -> str:
    shown = between.join(str(file) if between == " " else file.name for file in files[:SHOWN])
    return shown + (f"{between}..." if len(files) > SHOWN else "")


def _numbered(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,18})", path.name)]

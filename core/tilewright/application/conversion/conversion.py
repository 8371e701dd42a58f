"""Conversion of files between notations: one adapter parses them, another renders them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.application.conversion.dropped import DroppedField, simplified
from tilewright.application.conversion.recognition import recognised
from tilewright.errors import InputError, NotConformableError, Reason
from tilewright.files import made, write_text
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.guard.answers import converted
from tilewright.plugin.program import Tiles
from tilewright.plugin.registry import Registry
from tilewright.plugin.specs import AdapterSpec

CORE = "core schemas"
"""Name of the intermediate form in a conversion route."""


@dataclass(frozen=True)
class Conversion:
    """Result of a conversion.

    Attributes:
        files: file name -> text, in the target notation.
        route: source notation, core schemas, target notation.
        adapters: `distribution/name` of the adapters used, in order.
        warnings: content that the reader could not represent.
        dropped: content removed because the target notation cannot express it.
        read: paths of the files read.

    Example:
        >>> import tilewright as tw
        >>> made = tw.Conversion({"a.txt": "text"}, ("timeloop", "union"), ("timeloop", "union"))
        >>> list(made.files)
        ['a.txt']
    """

    files: Mapping[str, str]
    route: tuple[str, ...]
    adapters: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    dropped: tuple[DroppedField, ...] = ()
    read: tuple[Path, ...] = ()

    def __str__(self) -> str:
        if len(self.files) == 1:
            return next(iter(self.files.values()))
        return "\n".join(f"# {name}\n{text}" for name, text in self.files.items())

    def save(self, folder: str | Path) -> list[Path]:
        """Write the files into a folder and return their paths.

        Raises:
            InputError: an output path is one of the files read.
            OutputError: a file cannot be written.
        """
        given = {path.resolve() for path in self.read}
        for name in self.files:
            path = Path(folder) / name
            if path.resolve() in given:
                raise InputError(f"{path} is one of the files read", hint="give another folder with -o")
        return write_files(Path(folder), self.files)


def convert(
    files: Sequence[Path],
    source: str | None,
    target: str,
    registry: Registry,
    *,
    lossy: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> Conversion:
    """Read files in one notation and render them in another.

    Args:
        files: all files of one input set.
        source: name of the adapter that reads; None to detect it.
        target: name of the adapter that writes.
        registry: the plugins to choose from.
        lossy: drop content that the target cannot express, where that is possible, and list it.
        reading: options of the reading adapter.

    Raises:
        UnknownPluginError, AmbiguousPluginError: no single adapter has that name.
        InputError: the files cannot be read or are empty, or both notations are the same.
        NotConformableError: the target cannot express the content; every reason is listed.
        PluginError: an adapter crashed or cannot be built.
    """
    last = registry.find(AdapterSpec, target)
    if source is None:
        first, read = recognised(files, registry, unlike=last.long_name, options=reading)
    else:
        first = registry.find(AdapterSpec, source)
    if first.long_name == last.long_name:
        which = f"--from and --to are both {source}" if source else f"the files are already in {target}"
        raise InputError(which, hint="choose another target notation")
    if source is not None:
        read = registry.make(AdapterSpec, first.long_name, reading or {}).parse(files)
    adapter = registry.make(AdapterSpec, last.long_name)
    known = _known(adapter, read)
    rendered, dropped = _render(adapter, last.long_name, known, lossy)
    return Conversion(
        files=rendered,
        route=(first.spec.name, CORE, last.spec.name),
        adapters=(first.long_name, last.long_name),
        warnings=tuple(dict.fromkeys((*read.warnings, *known.warnings))),
        dropped=dropped,
        read=tuple(files),
    )


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write named texts into a folder, which is created if needed.

    Raises:
        OutputError: a file cannot be written.
        InputError: a name leads outside the folder.
    """
    paths = []
    for name, text in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"an adapter may write below {folder} only, not {name}")
        made(path.parent)
        write_text(path, text)
        paths.append(path)
    return paths


def _known(adapter: Adapter, inputs: InputSet) -> InputSet:
    """Convert directives to a mapping of tiles if the adapter cannot express directives.

    Raises:
        NotConformableError: the directives are not tiles, or of several layers.
    """
    program = inputs.directives
    if program is None or adapter.expressible(replace(inputs, warnings=())):
        return inputs
    if len(program.layers) > 1:
        message = f"has {len(program.layers)} layers; a mapping of tiles has one"
        hint = f"select one by FILE/LAYER: {', '.join(layer.name for layer in program.layers[:8])}"
        reason = Reason(code="layers", where=f"program {program.name}", message=message)
        raise NotConformableError("a mapping of tiles", [reason], hint=hint)
    tiles = converted(program, Tiles, lambda: program.tiles(0))
    return InputSet(tiles.problem, tiles.architecture, tiles.mapping, warnings=tiles.warnings)


def _render(
    adapter: Adapter, name: str, inputs: InputSet, lossy: bool
) -> tuple[dict[str, str], tuple[DroppedField, ...]]:
    inputs = replace(inputs, warnings=())
    verdict, dropped = adapter.expressible(inputs), tuple[DroppedField, ...]()
    if not verdict and lossy:
        inputs, dropped = simplified(inputs, adapter.expressible)
        verdict = adapter.expressible(inputs)
    if not verdict:
        advice = "--lossy drops content that it cannot express, and lists it"
        hint = "dropping content does not suffice" if lossy else advice
        raise NotConformableError(f"adapter {name}", verdict.reasons, hint=hint)
    return dict(adapter.render(inputs)), dropped

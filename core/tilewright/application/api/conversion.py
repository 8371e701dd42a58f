"""`convert`: files of one notation, written in another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.application.api.call_arguments import checked
from tilewright.application.api.evaluation import Files, paths_of
from tilewright.application.conversion.conversion import Conversion
from tilewright.application.conversion.conversion import convert as convert_files
from tilewright.errors import InputError
from tilewright.plugin.registry import installed


@checked
def convert(
    files: Files,
    source: str | None = None,
    target: str | None = None,
    *,
    lossy: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> Conversion:
    """Convert files of one notation into another, as `tilewright convert` does.

    Args:
        files: All files of one input set.
        source, target: Names of installed adapters, or `tilewright` for Tilewright's YAML files.
            The default source is the notation that can read the files.
        lossy: Drop parts that the target cannot express, where that is possible, and list them.
        reading: Options of the reading adapter, such as `{"set": {"architecture": "eyeriss_like"}}`.

    Returns:
        The converted texts. `save(folder)` writes them under the file names that the target tool expects.

    Raises:
        CallError, InputError, UnknownPluginError: An argument or a file is invalid.
        NotConformableError: The target cannot express the inputs; every reason is listed.
        PluginError: An adapter crashed or cannot be built.
    """
    if target is None:
        raise InputError(
            "no target notation is given", hint="add target='NAME' (--to NAME); `tilewright plugins` lists adapters"
        )
    return convert_files(paths_of(files), source, target, installed(), lossy=lossy, reading=reading)

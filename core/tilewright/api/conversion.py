"""`convert`: a tool's files in another tool's notation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.api.evaluation import Files, paths_of
from tilewright.api.words import checked
from tilewright.conversion.conversion import Conversion
from tilewright.conversion.conversion import convert as convert_files
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
    """Files of one notation in another; what `tilewright convert` does.

    Args:
        files: all files of one input set.
        source, target: notations: names of installed adapters; `tilewright` for our own YAML files. Without a source it is
            that in which the files can be read.
        lossy: leave out what the target cannot hold, as far as that can be left out, and list it.
        reading: options of the adapter that reads, such as `{"set": {"architecture": "eyeriss_like"}}`.

    Returns:
        The texts; `save(folder)` writes them under the names that the other tool expects.

    Raises:
        CallError, InputError, UnknownPluginError: a word or a file is wrong.
        NotConformableError: the target cannot hold what the files say; every reason is listed.
        PluginError: an adapter crashed or cannot be built.
    """
    if target is None:
        raise InputError("no notation to write is given", hint="add target='timeloop' (--to), or another tool's name")
    return convert_files(paths_of(files), source, target, installed(), lossy=lossy, reading=reading)

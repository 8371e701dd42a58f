"""`page`: writes the HTML page of a store or a folder."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.api.call_arguments import checked
from tilewright.api.hardware.exploration import explored
from tilewright.api.page.contents import of_exploration, of_folder
from tilewright.api.page.document import document
from tilewright.errors import InputError
from tilewright.files import write_text


@checked
def page(
    source: str | os.PathLike[str], file: str | os.PathLike[str] = "report.html", *, exploration: str | None = None
) -> Path:
    """Write a self-contained HTML page, as `tilewright report` does.

    Args:
        source: A folder that `map` wrote, or a store that `explore` wrote.
        file: The page to write.
        exploration: Prefix of the key of an exploration in the store. Default: the last one begun.

    Raises:
        InputError, UnknownNameError: The source has nothing to show.
        OutputError: The page cannot be written.
    """
    path = Path(source)
    if path.is_dir() and exploration is not None:
        raise InputError(f"{path} is a folder of mapping files, which has no explorations", hint="omit exploration")
    data = of_folder(path) if path.is_dir() else of_exploration(explored(path, exploration))
    write_text(file, document(data))
    return Path(file)

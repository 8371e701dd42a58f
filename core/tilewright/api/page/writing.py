"""`page`: the HTML page of a store or of a folder, written."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.api.hardware.exploration import explored
from tilewright.api.page.contents import of_exploration, of_folder
from tilewright.api.page.document import document
from tilewright.api.words import checked
from tilewright.errors import InputError
from tilewright.files import write_text


@checked
def page(
    source: str | os.PathLike[str], file: str | os.PathLike[str] = "report.html", *, exploration: str | None = None
) -> Path:
    """Write one self-contained HTML page; what `tilewright report` does.

    Args:
        source: a folder that `map` wrote, or a store that `explore` wrote.
        file: the page.
        exploration: of a store, the exploration whose key begins so; by default the last one begun.

    Raises:
        InputError, UnknownNameError: there is nothing to show.
        OutputError: the page cannot be written.
    """
    path = Path(source)
    if path.is_dir() and exploration is not None:
        raise InputError(
            f"{path} is a folder of mapping files, which has no explorations", hint="leave exploration out"
        )
    data = of_folder(path) if path.is_dir() else of_exploration(explored(path, exploration))
    write_text(file, document(data))
    return Path(file)

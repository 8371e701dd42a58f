"""`page`: writes the HTML page of a folder, of two folders, or of a store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.application.api.call_arguments import checked
from tilewright.application.api.hardware.exploration import report_of
from tilewright.application.api.mapping_report import PAGE
from tilewright.application.api.page.exploration import exploration_page
from tilewright.application.api.page.network import network_page, two_networks_page
from tilewright.application.api.plotting import DAMAGED, summary_of
from tilewright.application.exploration.store import Store
from tilewright.errors import InputError
from tilewright.files import run_hint, write_text

SUMMARY, NETWORK = "summary.json", "network.json"


@checked
def page(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    file: str | os.PathLike[str] = "report.html",
    *,
    exploration: str | None = None,
) -> Path:
    """Write a self-contained HTML page, as `tilewright report` does.

    Args:
        source: A folder that `map` wrote, two such folders for a page that compares them, or a
            store that `explore` wrote.
        file: The page to write.
        exploration: Prefix of the key of an exploration in the store. Default: the last one begun.

    Raises:
        InputError, UnknownNameError: The source has nothing to show.
        OutputError: The page cannot be written.

    Example:
        >>> import tilewright as tw
        >>> import tempfile
        >>> report = tw.map("nk,km->nm; n=8 k=8 m=8", "eyeriss", mapper="random", evaluations=50, cache=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     size = tw.page(report.save(folder), f"{folder}/page.html").stat().st_size
        >>> size > 10_000
        True
    """
    paths = [Path(folder) for folder in ([source] if isinstance(source, str | os.PathLike) else source)]
    if not 1 <= len(paths) <= 2:
        raise InputError(f"a page shows one or two runs, not {len(paths)}", hint="give one folder or two")
    if exploration is not None and (len(paths) == 2 or paths[0].is_dir()):
        raise InputError(f"{paths[0]} is a folder of mapping files, which has no explorations", hint="omit exploration")
    for path in paths:
        if not path.exists():
            raise InputError(
                f"there is no file or folder {path}", hint="`map -o` writes a folder, `explore --store` a store"
            )
    if len(paths) == 1 and not paths[0].is_dir():
        with Store(paths[0], make=False) as store:
            text = exploration_page(report_of(store, exploration), store)
    else:
        text = _of_folders(paths)
    write_text(file, text)
    return Path(file)


def _of_folders(paths: Sequence[Path]) -> str:
    """Return the page of one folder or two; raise InputError if `map` did not write one."""
    runs: list[tuple[Path, Mapping[str, Any]]] = []
    for path in paths:
        if not path.is_dir():
            raise InputError(
                f"{path} is no folder; two runs must be folders of `map -o`", hint="explorations have a page each"
            )
        if len(paths) == 1 and (path / NETWORK).is_file() and (path / PAGE).is_file():
            return (path / PAGE).read_text(encoding="utf-8")  # `map --fuse` has written it
        if not (path / SUMMARY).is_file():
            raise InputError(f"{path} has no {SUMMARY}", hint=run_hint(path, ", or a store"))
        runs.append((path, summary_of(path / SUMMARY)))
    try:
        return network_page(runs[0][1], paths[0]) if len(runs) == 1 else two_networks_page(runs)
    except DAMAGED as error:
        names = " or ".join(str(path / SUMMARY) for path in paths)
        raise InputError(f"{names} was not written by `tilewright map`:  {type(error).__name__}: {error}") from None

"""Contract checks for frontends: files in other folders, damaged files, and what loading leaves behind."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from tilewright.errors import TilewrightError
from tilewright.plugin.frontend import Frontend
from tilewright.plugin.guard.calls import one_line_error
from tilewright.plugin.specs import FrontendSpec
from tilewright.schema.workload import Layer, Workload
from tilewright.testing.kit import CheckFailure, Subject, check, require, require_refusal

SHARES = (0.2, 0.5, 0.8, 0.95)
"""Parts of a file after which it is cut."""


def _files(subject: Subject) -> list[Path]:
    """Return the given sources that are files of one piece."""
    return [path for source in subject.sources if (path := Path(source)).is_file()]


def _layers(workload: Workload) -> tuple[Layer, ...]:
    """Return the layers without their places in a file."""
    return tuple(
        layer.model_copy(update={"origin": None, "problem": layer.problem.model_copy(update={"source": None})})
        for layer in workload.layers
    )


@check(FrontendSpec)
def check_frontend_reads_the_file_that_it_is_given(subject: Subject) -> None:
    """A file has the same layers in any folder, and those of its present content; it and the working folder stay unchanged."""
    frontend: Frontend = subject.make()
    files = _files(subject)
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(files):
            expected = _layers(subject.make().load(str(path)))
            copy = Path(folder) / f"folder{number}" / path.name
            shutil.copytree(path.parent, copy.parent) if _is_small(path.parent) else copy.parent.mkdir()
            shutil.copyfile(path, copy)
            before, content = _times(copy.parent), copy.read_bytes()
            try:
                layers = _layers(frontend.load(str(copy)))
                moved = Path.cwd()
            finally:
                os.chdir(here)
            require(moved == here, f"load changes the working folder to {moved}")
            require(layers == expected, f"{path.name} has other layers in another folder")
            require(copy.read_bytes() == content, f"load changes {path.name}")
            require(_times(copy.parent) == before, f"load writes files beside {path.name}")
        for one, other in zip(files, files[1:], strict=False):
            if one.suffix != other.suffix:
                continue
            for place in (Path(folder) / f"changed{one.suffix}", Path(folder) / "another" / f"changed{one.suffix}"):
                place.parent.mkdir(exist_ok=True)
                for path in (one, other):
                    shutil.copyfile(path, place)
                    with suppress(TilewrightError):  # it may need other files of its folder
                        expected = _layers(subject.make().load(str(path)))
                        layers = _layers(frontend.load(str(place)))
                        require(
                            layers == expected,
                            f"{place.name} has the layers of an earlier file of that name; keep no state",
                        )


def _times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def _is_small(folder: Path) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return len(files) <= 20 and sum(path.stat().st_size for path in files) <= 1_000_000


@check(FrontendSpec)
def check_frontend_refuses_damaged_files(subject: Subject) -> None:
    """A file that is cut, empty, or a folder is refused by a TilewrightError, or has layers that are whole."""
    frontend: Frontend = subject.make()
    for path in _files(subject):
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder) / f"folder{path.suffix}"
            directory.mkdir()
            require_refusal("load of a folder", partial(frontend.load, str(directory)))
            for what, content in _damaged(path.read_bytes()):
                damaged = Path(folder) / path.name
                damaged.write_bytes(content)
                try:
                    workload: object = frontend.load(str(damaged))
                except TilewrightError:
                    continue
                except Exception as error:  # a third-party frontend may raise any exception
                    raise CheckFailure(
                        f"load of {path.name}, {what}, raised {one_line_error(error)}; raise tilewright.errors.InputError"
                    ) from error
                require(
                    isinstance(workload, Workload) and bool(content.strip()),
                    f"load of {path.name}, {what}, returned a value; expected an InputError",
                )


def _damaged(content: bytes) -> Iterator[tuple[str, bytes]]:
    yield "without content", b""
    for share in SHARES:
        end = int(share * len(content))
        yield f"cut after {end} bytes", content[:end]
    yield "with zeros inside", content[: len(content) // 2] + b"\0\0\0\0" + content[len(content) // 2 :]

"""Contract checks for adapters: files that are damaged, in another order, or read by another object."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tilewright.errors import TilewrightError
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.guard.answers import fault_of_inputs
from tilewright.plugin.guard.calls import one_line_error
from tilewright.plugin.specs import AdapterSpec
from tilewright.testing.checks.adapter import expressible_inputs
from tilewright.testing.kit import CheckFailure, Subject, check, require

SHARES = (0.3, 0.6, 0.9)
"""Parts of a file after which it is cut."""


def _saved(folder: Path, files: Mapping[str, str]) -> list[Path]:
    paths = [folder / name for name in files]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path.relative_to(folder).as_posix()], encoding="utf-8")
    return paths


def _some(subject: Subject) -> Iterator[tuple[str, InputSet, Mapping[str, str]]]:
    """Yield the first and the last accepted inputs, with their files."""
    accepted = list(expressible_inputs(subject))
    for name, inputs in accepted[:: max(1, len(accepted) - 1)]:
        yield name, inputs, dict(subject.make().render(inputs))


@check(AdapterSpec)
def check_adapter_reads_what_is_in_the_files(subject: Subject) -> None:
    """Files are read alike by another object, in any order, after other files, and stay unchanged."""
    used: Adapter = subject.make()
    sets = list(_some(subject))
    for _, inputs, _ in sets:
        used.render(inputs)
    with tempfile.TemporaryDirectory() as name:
        for number, (where, inputs, files) in enumerate(sets):
            folder = Path(name) / str(number)
            paths = _saved(folder, files)
            before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            for what, adapter, given in (
                ("a new object", subject.make(), paths),
                ("an object that has written others", used, paths),
                ("the reverse order of the files", subject.make(), paths[::-1]),
            ):
                again = adapter.parse(given)
                require(
                    replace(again, warnings=()) == replace(inputs, warnings=()),
                    f"{where}: by {what}, something else is read than was written; read the files alone, in any order",
                )
            after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            require(after == before, f"{where}: parse changes its files, or leaves others in their folder")


@check(AdapterSpec)
def check_adapter_refuses_damaged_files(subject: Subject) -> None:
    """A file that is cut, or empty, is refused by a TilewrightError, or has contents that are whole."""
    adapter: Adapter = subject.make()
    for where, _, files in _some(subject):
        for damaged in files:
            for share in (0.0, *SHARES):
                text = files[damaged][: int(share * len(files[damaged]))]
                with tempfile.TemporaryDirectory() as folder:
                    paths = _saved(Path(folder), {**files, damaged: text})
                    what = f"{where}: parse with {damaged} cut after {len(text)} characters"
                    try:
                        inputs: object = adapter.parse(paths)
                    except TilewrightError:
                        continue
                    except Exception as error:  # a third-party adapter may raise any exception
                        raise CheckFailure(
                            f"{what} raised {one_line_error(error)}; raise tilewright.errors.InputError"
                        ) from error
                    wrong = fault_of_inputs(inputs)
                    require(wrong is None, f"{what} {wrong}")
                    assert isinstance(inputs, InputSet)
                    parts = (
                        inputs.problem,
                        inputs.architecture,
                        inputs.mapping,
                        inputs.constraints,
                        inputs.directives,
                        inputs.group,
                    )
                    require(any(part is not None for part in parts), f"{what} returned nothing; expected an InputError")

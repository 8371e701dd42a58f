"""Contract checks for readers: files, formulas and names of others are theirs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.frontend import Frontend
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import AdapterSpec, FrontendSpec
from tilewright.testing.corpus import SAMPLES
from tilewright.testing.kit import Subject, check, require

SOURCES = ("nk,km->nm; n=4 k=5 m=6", "O[p] += I[p+r] * W[r]; p=4 r=3", "eyeriss", "eyeriss/layer", "no_such_name")
"""Formulas and names, which the host reads itself."""


@cache
def _written() -> tuple[tuple[str, dict[str, str], InputSet], ...]:
    """Return one input set in each built-in notation: the adapter's name, its files, and what it reads from them."""
    sets = []
    for registration in installed().of_kind(AdapterSpec):
        if not registration.builtin:
            continue
        adapter = installed().make(AdapterSpec, registration.long_name)
        for inputs in _inputs():
            if adapter.expressible(inputs):
                files = dict(adapter.render(inputs))
                with tempfile.TemporaryDirectory() as folder:
                    sets.append((registration.long_name, files, adapter.parse(_saved(folder, files))))
                break
    return tuple(sets)


def _inputs() -> Iterator[InputSet]:
    for sample in SAMPLES:
        for mapping in sample.batch(3):
            yield InputSet(sample.problem, sample.architecture, mapping)


def _saved(folder: str, files: dict[str, str]) -> list[Path]:
    paths = [Path(folder) / name for name in files]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path.relative_to(folder).as_posix()], encoding="utf-8")
    return paths


@check(FrontendSpec)
def check_frontend_leaves_others_sources(subject: Subject) -> None:
    """`recognises` declines files of built-in notations and, for a third party, to formulas and names of the host.

    So a frontend for `.yaml` looks into the file.
    """
    frontend: Frontend = subject.make()
    for notation, files, _ in _written():
        with tempfile.TemporaryDirectory() as folder:
            for path in _saved(folder, files):
                require(
                    not frontend.recognises(str(path)),
                    f"recognises() says yes to {path.name}, a file of {notation}; look into the file",
                )
    for source in SOURCES:
        require(
            subject.registration.builtin or not frontend.recognises(source),
            f"recognises({source!r}) says yes; formulas and names of the host are not for it",
        )


@check(AdapterSpec)
def check_adapter_leaves_others_files(subject: Subject) -> None:
    """`parse` refuses files of built-in notations, or reads the same from them as the notation's own adapter."""
    adapter: Adapter = subject.make()
    for notation, files, content in _written():
        with tempfile.TemporaryDirectory() as folder:
            try:
                inputs = adapter.parse(_saved(folder, files))
            except Exception:  # what refusals have to be is another check
                continue
        same = replace(inputs, warnings=()) == replace(content, warnings=())
        require(same, f"it reads files of {notation} as something else; refuse files without the keys of the notation")

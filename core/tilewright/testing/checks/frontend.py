"""Contract checks for frontends."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from tilewright.errors import TilewrightError
from tilewright.plugin.frontend import Frontend
from tilewright.plugin.specs import FrontendSpec
from tilewright.schema.workload import Workload
from tilewright.testing.kit import CheckFailure, Subject, check, require, require_refusal

ODD_SOURCES = ("", " ", "?", "\0", "no/such/file.odd", "x" * 10_000, "\N{SNOWMAN}", "[", "a=b", "../..")
"""Sources that a user may type by mistake."""


def _suffixes(subject: Subject) -> tuple[str, ...]:
    spec = subject.spec
    assert isinstance(spec, FrontendSpec)
    return spec.suffixes


@check(FrontendSpec)
def check_frontend_recognises_without_raising(subject: Subject) -> None:
    """`recognises` returns True or False for any text."""
    frontend: Frontend = subject.make()
    for source in (*ODD_SOURCES, *subject.sources, *(f"none{suffix}" for suffix in _suffixes(subject))):
        try:
            answer: object = frontend.recognises(source)
        except Exception as error:  # a third-party frontend may raise any exception
            raise CheckFailure(f"recognises({source[:40]!r}) raised {type(error).__name__}: {error}") from error
        require(isinstance(answer, bool), f"recognises({source[:40]!r}) is {answer!r}, not True or False")


@check(FrontendSpec)
def check_frontend_recognises_its_sources(subject: Subject) -> None:
    """Every source without a library name is recognised, as otherwise the host never loads it."""
    frontend: Frontend = subject.make()
    for source in subject.sources:
        known = frontend.recognises(source) or source.endswith(_suffixes(subject) or ("\0",))
        require(known, f"it can load {source!r}, but does not recognise it")


@check(FrontendSpec)
def check_frontend_loads_its_sources(subject: Subject) -> None:
    """Every library name and every given source loads as a workload with at least one layer."""
    frontend: Frontend = subject.make()
    for source in subject.all_sources():
        workload: object = frontend.load(source)
        if not isinstance(workload, Workload):
            raise CheckFailure(f"load({source!r}) returned {type(workload).__name__}; expected a Workload")
        require(bool(workload.layers), f"{source}: a workload without layers")


@check(FrontendSpec)
def check_frontend_loads_the_same_twice(subject: Subject) -> None:
    """Equal sources give equal workloads: there is no hidden state and no randomness."""
    frontend: Frontend = subject.make()
    for source in subject.all_sources():
        first, again, other = frontend.load(source), frontend.load(source), subject.make().load(source)
        require(first == again == other, f"{source} loads differently the second time")


@check(FrontendSpec)
def check_frontend_finds_the_expected_work(subject: Subject) -> None:
    """Sources with an expectation have its number of layers and of multiplications (`FrontendSpec.expects`, or `expects` of the kit)."""
    spec = subject.spec
    assert isinstance(spec, FrontendSpec)
    frontend: Frontend = subject.make()
    for source, (layers, multiplications) in {**spec.expects, **subject.expects}.items():
        workload = frontend.load(source)
        macs = sum(layer.count * layer.problem.macs for layer in workload.layers)
        number = sum(layer.count for layer in workload.layers)
        require(
            (number, macs) == (layers, multiplications),
            f"{source}: {number:,} layers with {macs:,} multiplications; expected {layers:,} with {multiplications:,}; "
            "compare the layers with the source, or correct the expectation",
        )


@check(FrontendSpec)
def check_frontend_options_have_an_effect(subject: Subject) -> None:
    """Each option with numbers, words or yes and no changes a workload, or other values of it are refused."""
    for name, field in subject.spec.options.model_fields.items():
        values = list(_other_values(field))
        if name in subject.options or not values:
            continue
        sources = subject.all_sources()
        before = {source: subject.make().load(source) for source in sources}
        changed = any(_changes(subject, {name: value}, before) for value in values)
        require(
            changed,
            f"option {name}: {', '.join(map(repr, values))} instead of {field.default!r} change nothing in "
            f"{', '.join(sources)[:200]}; use the option, or give a source on which it has an effect",
        )


def _other_values(field: FieldInfo) -> Iterator[Any]:
    """Yield values of an option besides its default, if these are plain."""
    default = field.default
    if isinstance(default, bool):
        yield not default
    elif isinstance(default, int | float):
        yield from (default + 1, 3 * default + 2, 1, 0)
    else:
        yield from (value for value in get_args(field.annotation) if isinstance(value, str) and value != default)


def _changes(subject: Subject, options: dict[str, Any], before: dict[str, Workload]) -> bool:
    try:
        frontend = replace(subject, options={**subject.options, **options}).make()
    except TilewrightError:  # the value is out of range
        return False
    for source, workload in before.items():
        try:
            if frontend.load(source) != workload:
                return True
        except TilewrightError:
            return True
    return False


APART = 5
"""Sources that are loaded after one another."""


@check(FrontendSpec)
def check_frontend_keeps_sources_apart(subject: Subject) -> None:
    """A source loads alike after other sources."""
    frontend: Frontend = subject.make()
    sources = subject.all_sources()[-APART:]
    alone = {source: subject.make().load(source) for source in sources}
    for source in (*sources, *sources[::-1]):
        require(
            frontend.load(source) == alone[source], f"{source} loads differently after other sources; keep no state"
        )


@check(FrontendSpec)
def check_frontend_workloads_can_be_written(subject: Subject) -> None:
    """A workload written as YAML and read again is equal."""
    frontend: Frontend = subject.make()
    for source in subject.all_sources():
        workload = frontend.load(source)
        require(Workload.from_yaml(workload.to_yaml()) == workload, f"{source} does not survive YAML")


@check(FrontendSpec)
def check_frontend_refuses_clearly(subject: Subject) -> None:
    """Absent and invalid sources raise InputError or another TilewrightError."""
    frontend: Frontend = subject.make()
    with tempfile.TemporaryDirectory() as folder:
        nonsense = [Path(folder) / f"nonsense{suffix}" for suffix in _suffixes(subject)]
        for file in nonsense:
            file.write_bytes(b"\x93 this is nothing \x00\xff" * 20)
        absent = [f"{folder}/absent{suffix}" for suffix in _suffixes(subject)]
        for source in (*map(str, nonsense), *absent, *ODD_SOURCES):
            name = Path(source).name if source.startswith(folder) else source[:40]
            require_refusal(f"load({name!r})", partial(frontend.load, source))

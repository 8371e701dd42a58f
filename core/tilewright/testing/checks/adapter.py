"""Contract checks for adapters."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from tilewright.errors import NotConformableError
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.guard.answers import fault_of_files
from tilewright.plugin.specs import AdapterSpec
from tilewright.testing.kit import CheckFailure, Subject, check, require, require_refusal

PARTS = ("problem", "architecture", "mapping", "constraints")


def _inputs(subject: Subject) -> Iterator[tuple[str, InputSet]]:
    for sample in subject.samples():
        for number, mapping in enumerate(sample.batch(3)):
            yield f"{sample}, mapping {number}", InputSet(sample.problem, sample.architecture, mapping)


def _expressible(subject: Subject) -> Iterator[tuple[str, InputSet]]:
    adapter: Adapter = subject.make()
    pairs = [(name, inputs) for name, inputs in _inputs(subject) if adapter.expressible(inputs)]
    if not pairs:
        reasons = {
            reason.code: str(reason) for _, inputs in _inputs(subject) for reason in adapter.expressible(inputs).reasons
        }
        raise CheckFailure(f"it refuses all inputs of the test corpus: {'; '.join(reasons.values())}")
    yield from pairs


def _parse(adapter: Adapter, files: Mapping[str, str]) -> InputSet:
    wrong = fault_of_files(files)
    require(wrong is None, f"render {wrong}")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text, encoding="utf-8")
        return adapter.parse([Path(folder) / name for name in files])


@check(AdapterSpec)
def check_adapter_round_trip(subject: Subject) -> None:
    """Every input set that `expressible` accepts comes back equal: parse(render(x)) == x."""
    adapter: Adapter = subject.make()
    for name, inputs in _expressible(subject):
        again = _parse(adapter, adapter.render(inputs))
        lost = [part for part in PARTS if getattr(again, part) != getattr(inputs, part)]
        require(
            not lost, f"{name}: {', '.join(lost)} changed on the round trip, although expressible() accepted the inputs"
        )


@check(AdapterSpec)
def check_adapter_stays_in_its_folder(subject: Subject) -> None:
    """`render` returns relative file names below the target folder, each with its text."""
    adapter: Adapter = subject.make()
    for name, inputs in _expressible(subject):
        wrong = fault_of_files(adapter.render(inputs))
        require(wrong is None, f"{name}: render {wrong}")


@check(AdapterSpec)
def check_adapter_renders_the_same_twice(subject: Subject) -> None:
    """Equal inputs give equal files."""
    adapter: Adapter = subject.make()
    for name, inputs in _expressible(subject):
        first, again = dict(adapter.render(inputs)), adapter.render(inputs)
        require(first == again, f"{name}: the second rendering differs")


@check(AdapterSpec)
def check_adapter_refuses_what_it_cannot_express(subject: Subject) -> None:
    """`render` refuses what `expressible` refuses, with the same reasons, and drops nothing silently."""
    adapter: Adapter = subject.make()
    for name, inputs in (*_inputs(subject), ("an empty input set", InputSet())):
        verdict = adapter.expressible(inputs)
        if verdict:
            continue
        try:
            adapter.render(inputs)
        except NotConformableError as error:
            require(error.reasons == verdict.reasons, f"{name}: render and expressible give different reasons")
        else:
            raise CheckFailure(f"{name}: expressible() refuses this ({verdict.reasons[0]}), but render() writes it")


@check(AdapterSpec)
def check_adapter_refuses_clearly(subject: Subject) -> None:
    """Absent files, invalid files and an empty list raise InputError or another TilewrightError."""
    adapter: Adapter = subject.make()
    with tempfile.TemporaryDirectory() as folder:
        nonsense, ragged = Path(folder) / "nonsense.yaml", Path(folder) / "ragged.yaml"
        nonsense.write_bytes(b"\x93 this is nothing \x00\xff")
        ragged.write_text("architecture:\n  - [1, 2\n mapping: {", encoding="utf-8")
        for what, files in (
            ("an absent file", [Path(folder) / "absent.yaml"]),
            ("nonsense", [nonsense]),
            ("invalid YAML", [ragged]),
            ("no files", []),
        ):
            require_refusal(f"parse of {what}", partial(adapter.parse, files))

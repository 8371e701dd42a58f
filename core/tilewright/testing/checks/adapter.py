"""Contract checks for adapters."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from tilewright.errors import NotConformableError
from tilewright.plugin.adapter import Adapter, InputSet
from tilewright.plugin.guard.answers import fault_of_files
from tilewright.plugin.specs import AdapterSpec
from tilewright.testing.checks.adapter_inputs import CHANGES, plain, varied, varied_problem
from tilewright.testing.kit import CheckFailure, Subject, check, require, require_refusal

PARTS = ("problem", "architecture", "mapping", "constraints", "directives", "group", "model_options")


def _inputs(subject: Subject) -> Iterator[tuple[str, InputSet]]:
    for sample in subject.samples():
        yield from plain(sample)


def expressible_inputs(subject: Subject) -> Iterator[tuple[str, InputSet]]:
    adapter: Adapter = subject.make()
    pairs = [(name, inputs) for name, inputs in _inputs(subject) if adapter.expressible(inputs)]
    if not pairs:  # few mappings can be expressed
        many = [pair for sample in subject.samples() for pair in plain(sample, 32)]
        pairs = [(name, inputs) for name, inputs in many if adapter.expressible(inputs)]
    if not pairs:
        reasons = {
            reason.code: str(reason) for _, inputs in _inputs(subject) for reason in adapter.expressible(inputs).reasons
        }
        raise CheckFailure(f"it refuses all inputs of the test corpus: {'; '.join(reasons.values())}")
    yield from pairs


def _varied(subject: Subject) -> Iterator[tuple[str, InputSet]]:
    """Yield inputs with one more feature each, from the first and the last accepted sample, and from one with windows."""
    accepted = list(expressible_inputs(subject))
    windows = [pair for pair in accepted if pair[1].problem is not None and pair[1].problem.is_affine]
    for name, inputs in {name: inputs for name, inputs in (accepted[0], accepted[-1])}.items():
        for what, changed in varied(inputs):
            yield f"{name}, with {what}", changed
    for name, inputs in windows[:1]:
        for what, changed in varied_problem(inputs):
            yield f"{name}, with {what}", changed


def parsed(adapter: Adapter, files: Mapping[str, str]) -> InputSet:
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
    for name, inputs in expressible_inputs(subject):
        _comes_back(adapter, name, inputs)


@check(AdapterSpec)
def check_adapter_drops_nothing_silently(subject: Subject) -> None:
    """Each feature of the inputs comes back from the files, or `expressible` refuses it.

    Such features are unicast, constraints, densities, widths, groups, and fields of hardware.
    """
    adapter: Adapter = subject.make()
    for name, inputs in _varied(subject):
        if adapter.expressible(inputs):
            _comes_back(adapter, name, inputs)


def _comes_back(adapter: Adapter, name: str, inputs: InputSet) -> None:
    again = parsed(adapter, adapter.render(inputs))
    for part in PARTS:
        before, after = getattr(inputs, part), getattr(again, part)
        require(
            after == before,
            f"{name}: {part} changed on the round trip: {_difference(before, after)}; "
            "write it to the files, or give a reason against it in expressible()",
        )


def _difference(before: object, after: object) -> str:
    """Return the first field that differs, with both values."""
    if isinstance(before, BaseModel) and type(after) is type(before):
        for field in type(before).model_fields:
            one, other = getattr(before, field), getattr(after, field)
            if one != other:
                return f"{field}: {_difference(one, other)}"
    if isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        return next(_difference(one, other) for one, other in zip(before, after, strict=True) if one != other)
    return f"{str(before)[:120]} was written, {str(after)[:120]} was read"


@check(AdapterSpec)
def check_adapter_accepts_a_problem_by_its_structure(subject: Subject) -> None:
    """Acceptance by `expressible` depends neither on the name of the problem nor on one size of it."""
    adapter: Adapter = subject.make()
    for what, change in CHANGES:
        refused = []
        for name, inputs in expressible_inputs(subject):
            verdict = adapter.expressible(change(inputs))
            if verdict:
                break
            refused.append(f"{name}: {verdict.reasons[0]}")
        else:
            raise CheckFailure(
                f"each accepted input is refused with {what} of the problem, which is as expressible: {'; '.join(refused[:2])}"
            )


@check(AdapterSpec)
def check_adapter_stays_in_its_folder(subject: Subject) -> None:
    """`render` returns relative file names below the target folder, each with its text."""
    adapter: Adapter = subject.make()
    for name, inputs in expressible_inputs(subject):
        wrong = fault_of_files(adapter.render(inputs))
        require(wrong is None, f"{name}: render {wrong}")


@check(AdapterSpec)
def check_adapter_renders_the_same_twice(subject: Subject) -> None:
    """Equal inputs give equal files."""
    adapter: Adapter = subject.make()
    for name, inputs in expressible_inputs(subject):
        first, again = dict(adapter.render(inputs)), adapter.render(inputs)
        require(first == again, f"{name}: the second rendering differs")


@check(AdapterSpec)
def check_adapter_refuses_what_it_cannot_express(subject: Subject) -> None:
    """`render` refuses what `expressible` refuses, with the same reasons, and drops nothing silently."""
    adapter: Adapter = subject.make()
    for name, inputs in (*_inputs(subject), *_varied(subject), ("an empty input set", InputSet())):
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

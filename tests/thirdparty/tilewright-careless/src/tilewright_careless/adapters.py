"""Adapters that violate their contract. The good one writes Tilewright's YAML, for problems of two operands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from tilewright import Architecture, Mapping, Problem
from tilewright.errors import InputError, NotConformableError, Reason, Verdict
from tilewright.plugin import InputSet


class Good:
    """One file for each of problem, architecture and mapping."""

    def expressible(self, inputs: InputSet) -> Verdict:
        reasons = [
            Reason(code="absent", where="inputs", message=f"there is no {part}")
            for part in ("problem", "architecture", "mapping")
            if getattr(inputs, part) is None
        ]
        if inputs.problem is not None and inputs.problem.operand_count > 2:
            reasons.append(Reason(code="operands", where=inputs.problem.name, message="two operands at most"))
        return Verdict(reasons=tuple(reasons))

    def render(self, inputs: InputSet) -> dict[str, str]:
        verdict = self.expressible(inputs)
        if not verdict:
            raise NotConformableError("adapter good", verdict.reasons)
        return self.write(inputs)

    def write(self, inputs: InputSet) -> dict[str, str]:
        parts = {"problem": inputs.problem, "architecture": inputs.architecture, "mapping": inputs.mapping}
        return {f"{name}.yaml": part.to_yaml() for name, part in parts.items() if part is not None}

    def parse(self, files: Sequence[Path]) -> InputSet:
        named = {path.stem: path for path in files}
        for part in ("problem", "architecture", "mapping"):
            if part not in named:
                raise InputError(f"there is no {part}.yaml among {len(files)} files")
        return InputSet(
            Problem.from_file(named["problem"]),
            Architecture.from_file(named["architecture"]),
            Mapping.from_file(named["mapping"]),
        )


class Forgetful(Good):
    """Does not write which loop is outermost."""

    def write(self, inputs: InputSet) -> dict[str, str]:
        mapping = inputs.mapping
        assert mapping is not None
        entries = [
            entry.model_copy(update={"temporal_order": tuple(sorted(entry.temporal_order))})
            for entry in mapping.entries
        ]
        return super().write(InputSet(inputs.problem, inputs.architecture, Mapping(entries=tuple(entries))))


class Dated(Good):
    """Writes a running number at the top of each file."""

    numbers = itertools.count()

    def write(self, inputs: InputSet) -> dict[str, str]:
        return {name: f"# file {next(self.numbers)}\n{text}" for name, text in super().write(inputs).items()}


class Straying(Good):
    """Adapter that writes outside the given folder."""

    def write(self, inputs: InputSet) -> dict[str, str]:
        return {f"../{name}": text for name, text in super().write(inputs).items()}


class Silent(Good):
    """Adapter that writes features that it declares inexpressible."""

    def render(self, inputs: InputSet) -> dict[str, str]:
        return self.write(inputs)


class Rude(Good):
    """Lets the reader see its insides."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        named = {path.stem: path for path in files}
        return super().parse([named["problem"], named["architecture"], named["mapping"]])


class Grasping(Good):
    """Reads text of other notations as nothing."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        return InputSet() if [path.suffix for path in files] == [".txt"] else super().parse(files)

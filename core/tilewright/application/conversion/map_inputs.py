"""Inputs of `map` from other tools' files: problems, an architecture and constraints."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.application.conversion.folders import names_in, read_folder, states_layer
from tilewright.application.conversion.joining import joined
from tilewright.application.conversion.recognition import read_detected
from tilewright.errors import InputError, NotConformableError
from tilewright.files import file_and_member, file_name, write_text
from tilewright.plugin.adapter import SIDECAR, Adapter, EdgeReader, InputSet
from tilewright.plugin.guard.answers import converted, layers_with
from tilewright.plugin.registry import Registry
from tilewright.schema.architecture import Architecture
from tilewright.schema.constraints import Constraints, tensors_of
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem
from tilewright.schema.read import shape_of
from tilewright.schema.vector import Operand, OperatorWork, VectorLayer
from tilewright.schema.workload import Layer, Unmapped, Workload
from tilewright.values import grouped

_PLACE = re.compile(r"^[^\s:]++(?::\d++){1,2}: ")


@dataclass(frozen=True)
class MapInputs:
    """Inputs of a run; absent parts are None.

    `constraints` is None if the files do not constrain mappings, or were read without a problem. `objective` is the
    metric that the files state, if they do. `uneven` is whether the tool of the hardware files searches uneven mappings.
    """

    workload: Workload | None = None
    architecture: Architecture | None = None
    constraints: Constraints | None = None
    warnings: tuple[str, ...] = ()
    objective: str | None = None
    uneven: bool = False


def read_map_inputs(
    work: Sequence[Path] | Workload | None,
    hardware: Sequence[Path],
    registry: Registry,
    notation: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> MapInputs:
    """Read the workload and hardware files.

    Args:
        work: files with one or more layers, a folder of such files, or `FILE/LAYER`. A workload is rendered in the
            notation, so that constraints in the hardware files are read for its problems. A folder above other given
            files is only searched for files that these include.
        hardware: files that are read together with each problem.
        registry: the plugins to choose from.
        notation: notation of the files; None to detect it.
        options: options of the adapter.

    Raises:
        InputError: no adapter reads the files, several do with different results, or layers yield
            different architectures.
    """
    given = [] if work is None or isinstance(work, Workload) else list(work)
    searched = _searched([*given, *hardware])
    paths = [path for path in given if path not in searched] or given  # alone, a folder has the kind that is asked for
    hardware = [path for path in hardware if path not in searched] or hardware
    searched = [path for path in searched if path not in paths and path not in hardware]
    if searched:  # a notation without templates searches no folders
        options = {**(options or {}), "folders": tuple(map(str, searched))}
    _refuse_empty(paths)

    def read(adapter: Adapter) -> MapInputs:
        reading = _Reading(adapter, list(hardware))
        if isinstance(work, Workload):
            return reading.around(work)
        for name, path in _named(adapter, [*reading.spread(paths)]):
            reading.add(name, path)
        return reading.finished(_name_of(paths)) if paths else reading.alone()

    return read_detected([*paths, *hardware], registry, read, notation, options)[1]


@dataclass
class _Reading:
    """Content read so far.

    Attributes:
        machines: the layers' architectures; `mixed`: they differ.
        rules: problems with their constraints.
        paths: layer -> the path that selects it.
    """

    adapter: Adapter
    hardware: list[Path]
    layers: list[Problem] = field(default_factory=list)
    origins: dict[str, Origin] = field(default_factory=dict)
    unmapped: list[Unmapped] = field(default_factory=list)
    vectors: list[VectorLayer] = field(default_factory=list)
    machines: list[tuple[Problem, Architecture]] = field(default_factory=list)
    mixed: bool = False
    rules: list[tuple[Problem, Constraints]] = field(default_factory=list)
    paths: dict[str, Path] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    objective: str | None = None
    uneven: bool = False

    def spread(self, paths: Sequence[Path]) -> Iterator[Path]:
        """Yield the files, with folders replaced by their files with layers. Raises InputError."""
        for path in paths:
            if not os.path.isdir(path):
                yield path
                continue
            folder = read_folder(self.adapter, path, self.hardware)
            yield from folder.layers
            if folder.rest and not any(_same(path, other) for other in (*self.hardware, *folder.layers)):
                names = ", ".join(file.name for file in folder.rest)
                self.warnings.append(f"{path}: no layer is in {names}; --arch reads hardware and constraints")

    @cached_property
    def full(self) -> bool:
        """Whether the files of the hardware have a layer without any other file."""
        return bool(self.hardware) and states_layer(self.adapter, self.hardware)

    def add(self, name: str, path: Path) -> None:
        """Read one layer together with the hardware. Raises InputError if the layer is not from this file."""
        file, node = file_and_member(path)
        origin = Origin(node=node, file=Path(file).name)
        files = [path, *(other for other in self.hardware if not _same(other, path))]
        try:
            inputs = self.adapter.parse(files)
            problem = _problem(inputs, name)
        except NotConformableError as error:
            self._require_layer(path)
            reason = error.reasons[0]
            operations = 0 if reason.code == "copy" else None
            told = Unmapped(
                name=name, operator=reason.code, reason=reason.message, operations=operations, origin=origin
            )
            self.unmapped.append(told)
            if reason.code == "compute":  # the array does not execute it
                self.vectors += self._vectors(name, path, origin)
            return
        except InputError as error:
            raise self._naming_parts(error, Path(file)) from None
        self._require_layer(path)
        self.paths[name], self.origins[name] = path, inputs.origin or origin
        self.include(problem, inputs)

    def _require_layer(self, path: Path) -> None:
        """Raise InputError if the hardware has a layer, and this file has none: it would count as that layer."""
        if self.full and not states_layer(self.adapter, [path]):
            raise InputError(
                f"{path}: the file has no problem; the files after --arch have one",
                hint=f"leave {path} out; a folder that is one input is given twice: tilewright map DIR --arch DIR",
            )

    def _naming_parts(self, error: InputError, file: Path) -> InputError:
        """Return the error, with the parts of a folder that can be given without the others as its hint."""
        parts = [part for folder in self.hardware if os.path.isdir(folder) for part in self._parts(folder)]
        if parts and not os.path.isdir(file):
            arch = " ".join(f"--arch {part}" for part in parts)
            hint = f"{error.hint}; " if error.hint else ""
            error.hint = f"{hint}to leave a file of the folder out, name the others: tilewright map {file} {arch}"
        return error

    def _parts(self, folder: Path) -> tuple[Path, ...]:
        """Return the files of a folder of hardware that can be read alone and have no layer; none if all files do."""
        with suppress(InputError):
            return read_folder(self.adapter, folder, []).others
        return ()

    def include(self, problem: Problem, inputs: InputSet) -> None:
        """Record the problem, architecture and constraints of one input set.

        A layer that sees another architecture is listed as not mapped.
        """
        self.warnings += inputs.warnings
        if inputs.objective not in (None, self.objective) and self.objective is not None:
            raise InputError(
                f"{problem.name}: its files minimise {inputs.objective}, those of the layers before {self.objective}",
                hint="map them in two calls",
            )
        self.objective = inputs.objective or self.objective
        self.uneven = self.uneven or inputs.uneven
        if not self.hardware:
            self.layers.append(problem)
            return
        seen = problem, self._architecture(inputs)
        mixed = self.mixed or bool(self.machines) and seen[1] != self.machines[0][1]
        if mixed and joined([*self.machines, seen]) is None:
            told = "these files give it another architecture than the layers before; map it by itself, FILE/LAYER"
            origin = self.origins.get(problem.name)
            self.unmapped.append(
                Unmapped(
                    name=problem.name, operator="architecture", reason=told, operations=problem.macs, origin=origin
                )
            )
            return
        self.mixed = mixed
        self.layers.append(problem)
        self.machines.append(seen)
        if inputs.constraints is not None:
            self.rules.append((problem, inputs.constraints))

    def _vectors(self, name: str, path: Path, origin: Origin) -> Iterator[VectorLayer]:
        """Yield the vector layer of a problem with one operand, with an operation for each of its points."""
        problem = self.adapter.parse([path]).problem
        if problem is None or len(problem.tensors) != 2:
            return
        rows = math.prod(problem.dimensions[name] for name in problem.output.dimensions)
        words = {tensor.name: math.prod(shape_of(problem, tensor.name)) for tensor in problem.tensors}
        yield VectorLayer(
            name=name,
            operator=name,
            work=OperatorWork(element=FrozenDict({"add": 1}), source="an operation for each point of a problem"),
            rows=rows,
            row=problem.macs // rows,
            operands=(Operand(name=problem.operands[0].name, words=words[problem.operands[0].name]),),
            result=words[problem.output.name],
            operators=(name,),
            origin=origin,
        )

    def alone(self) -> MapInputs:
        """Read the hardware without a problem. A folder with several layers has it in its other files."""
        try:
            inputs = self.adapter.parse(self.hardware)
        except InputError as error:
            inputs = self._without_layers(error)
        told = _once(inputs.warnings)
        return MapInputs(None, self._architecture(inputs), None, told, inputs.objective, inputs.uneven)

    def _without_layers(self, error: InputError) -> InputSet:
        """Read the hardware without the files of its folders that have layers; raise the error if there are none."""
        parts = ((self._parts(path) if os.path.isdir(path) else ()) or (path,) for path in self.hardware)
        files = [file for group in parts for file in group]
        if files == self.hardware:
            raise error
        return self.adapter.parse(files)

    def around(self, work: Workload) -> MapInputs:
        """Read the hardware, and its constraints for each problem of the workload."""
        said: dict[str, Problem] = {}
        with tempfile.TemporaryDirectory() as folder:
            for distinct in work.distinct():
                inputs = self._with_problem(distinct.problem, Path(folder))
                problem = _problem(inputs, distinct.problem.name)
                self.include(problem, inputs)
                said[distinct.problem.content_key] = problem
        for unmapped in self.unmapped:
            hint = "the width of words may differ; map it by itself"
            raise InputError(
                f"{unmapped.name}: these files give it another architecture than the layers before", hint=hint
            )
        setup = self.finished(work.name)
        if setup.constraints is None:
            return replace(setup, workload=work)
        layers = tuple(
            layer.model_copy(
                update={"problem": said[layer.problem.content_key].model_copy(update={"name": layer.name})}
            )
            for layer in work.layers
        )
        return replace(setup, workload=work.model_copy(update={"layers": layers}))

    def finished(self, name: str) -> MapInputs:
        workload = Workload(
            name=name,
            layers=tuple(self._connected()),
            unmapped=tuple(self.unmapped),
            vectors=tuple(self.vectors) if self.machines else (),
        )
        architecture = self.machines[0][1] if self.machines else None
        architecture = joined(self.machines) if self.mixed else architecture
        told = _once(self.warnings)
        return MapInputs(workload, architecture, _combined(self.rules), told, self.objective, self.uneven)

    def _connected(self) -> Iterator[Layer]:
        """Yield the layers with the edges that their files state. Between layers of different files, these are unknown."""
        adapter = self.adapter if isinstance(self.adapter, EdgeReader) else None
        files = dict[str, dict[str, Problem]]()
        for problem in self.layers:
            file, member = file_and_member(self.paths.get(problem.name, problem.name))
            if member is not None:
                files.setdefault(file, {})[member] = problem
        connected = dict[str, Layer]()
        for file, problems in files.items():
            if adapter is None:
                break
            names = {member: problem.name for member, problem in problems.items()}
            for layer in layers_with(problems, adapter.edges(Path(file), problems)):
                connected[names[layer.name]] = layer.renamed(names.__getitem__)
        for problem in self.layers:
            layer = connected.get(problem.name, Layer(problem=problem))
            yield layer.model_copy(update={"origin": self.origins.get(problem.name)})

    def _with_problem(self, problem: Problem, folder: Path) -> InputSet:
        """Read the hardware together with one of Tilewright's problems."""
        alone = InputSet(problem=problem)
        verdict = self.adapter.expressible(alone)
        if not verdict:
            why = f"this notation cannot express {problem.name}: {verdict.reasons[0]}"
            told = f"{why}; the files' constraints do not apply to it"
            inputs = self.adapter.parse(self.hardware)
            warnings = (*inputs.warnings, told)
            return replace(inputs, problem=problem, constraints=None, warnings=warnings)
        files = []
        for name, text in self.adapter.render(alone).items():
            if name != SIDECAR:
                files.append(folder / file_name(name))
                write_text(files[-1], text)
        try:
            return self.adapter.parse([*files, *self.hardware])
        except InputError as error:
            rest = self.adapter.parse(self.hardware)  # retry without the problem, to find out which file is wrong
            if rest.problem is not None:
                told = f"the problem in these files, {rest.problem.name}, is ignored together with their constraints"
                warnings = (*rest.warnings, told)
                return replace(rest, problem=problem, constraints=None, warnings=warnings)
            hint = f"{error.hint}; " if error.hint else ""
            hint += "--constraints none ignores the files' constraints"
            raise InputError(f"{problem.name}: {error.message}", location=error.location, hint=hint) from None

    def _architecture(self, inputs: InputSet) -> Architecture:
        if inputs.architecture is not None:
            return inputs.architecture
        if inputs.directives is not None:
            return converted(inputs.directives, Architecture, inputs.directives.architecture)
        raise InputError(f"{', '.join(map(str, self.hardware))}: no architecture in these files")


def _searched(paths: Sequence[Path]) -> list[Path]:
    """Return the folders that other given files are below: files may include what is in them."""
    real = {path: os.path.realpath(file_and_member(path)[0]) for path in paths}
    return [
        path
        for path in paths
        if os.path.isdir(path) and any(other.startswith(real[path] + os.sep) for other in real.values())
    ]


def _refuse_empty(paths: Sequence[Path]) -> None:
    """Raise InputError for a folder without files."""
    for path in paths:
        if os.path.isdir(path) and not any(member.is_file() for member in path.iterdir()):
            raise InputError(f"{path} has no files", hint="give a folder of layers, or the files themselves")


def _same(path: Path, other: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def _named(adapter: Adapter, paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield a unique name for each layer, and the path that selects it."""
    taken: set[str] = set()
    for path in paths:
        file, member = file_and_member(path)
        names = names_in(adapter, path) if member is None else (member,)
        stem = Path(os.path.realpath(path)).name if os.path.isdir(path) else path.stem
        for name, asked in [(layer, Path(file) / layer) for layer in names] or [(stem, path)]:
            numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
            free = name if name not in taken else next(candidate for candidate in numbered if candidate not in taken)
            taken.add(free)
            yield free, asked


def _name_of(paths: Sequence[Path]) -> str:
    """Return the name of the workload that these files form."""
    first = paths[0]
    return first.stem if len(paths) == 1 else first.parent.name or first.stem


def _problem(inputs: InputSet, name: str) -> Problem:
    """Return the problem of an input set, under this name.

    Raises:
        InputError: there is no problem.
        NotConformableError: Tilewright cannot express the problem.
    """
    if inputs.problem is not None:
        return inputs.problem.model_copy(update={"name": name})
    program = inputs.directives
    if program is None:
        raise InputError(f"{name}: the file has no problem", hint="give files without layers by --arch")
    if len(program.layers) > 1:
        raise InputError(f"{name} has {len(program.layers)} layers; expected one", hint="give FILE/LAYER")
    return converted(program, Problem, lambda: program.problem(0)).model_copy(update={"name": name})


def _combined(rules: Sequence[tuple[Problem, Constraints]]) -> Constraints | None:
    """Combine the constraints of all layers; if they differ, each variant is limited to its sizes and tensors, or to its layer."""
    if not rules:
        return None
    first = rules[0][1]
    if all(constraints == first for _, constraints in rules):
        return first
    known = grouped(((problem.dimensions, tensors_of(problem)), constraints) for problem, constraints in rules)
    variants = [
        variant.model_copy(update={"sizes": sizes, "tensors": tensors, "layers": (problem.name,) if differ else ()})
        for problem, constraints in rules
        for sizes, tensors in [(problem.dimensions, tensors_of(problem))]
        for differ in [any(other != constraints for other in known[sizes, tensors])]
        for variant in constraints.variants
    ]
    different = [variant for index, variant in enumerate(variants) if variant not in variants[:index]]
    return first.model_copy(update={"variants": tuple(different)})


def _once(warnings: Sequence[str]) -> tuple[str, ...]:
    """Merge warnings that differ only in their location, and append how many were merged."""
    texts = grouped((_PLACE.sub("", text), text) for text in warnings)
    return tuple(
        group[0] if len(set(group)) == 1 else f"{group[0]} (and in {len(set(group)) - 1} other places)"
        for group in texts.values()
    )

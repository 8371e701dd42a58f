"""MAESTRO's notation: a mapping file (network, layers, dataflow) and a hardware file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.errors import InputError, Location, NotConformableError, Reason, Verdict
from tilewright.files import file_and_member, is_file
from tilewright.mapspace.legality import legality
from tilewright.plugin.adapter import InputSet
from tilewright_adapters import MaestroFiles, sidecar
from tilewright_adapters.maestro.hardware import read_hardware
from tilewright_adapters.maestro.network import NetworkReader, kind_of
from tilewright_adapters.maestro.words import Words, read_words
from tilewright_adapters.maestro.write import faults, plain_name, write_program
from tilewright_adapters.members import chosen, files_of
from tilewright_adapters.parts import unplaced
from tilewright_notations.directives import DirectiveHardware, DirectiveProgram
from tilewright_notations.directives.plan import TABLE, plan_of
from tilewright_notations.directives.roles import roles_of
from tilewright_notations.directives.tiles import array_of, problem_of
from tilewright_notations.directives.translation import directives_of

TOOL = ("maestro", "MAESTRO")
SUFFIXES = (".m", ".yaml", ".yml")
DEPTHWISE = "dpt.m"
"""Name of the dataflow file for depthwise layers, among those shipped with MAESTRO."""
COMMAND_LINE = DirectiveHardware(num_pes=7, noc_latency=0, offchip_bandwidth=70_000)
"""MAESTRO's defaults without a hardware file; inside such a file, other defaults apply."""


class MaestroAdapter:
    """An adapter for MAESTRO's input files.

    Their content stays in directives, because tile sizes cannot express overlapping tiles and diagonals. A mapping is
    written as the equivalent directives, and is read back from a sidecar file.
    """

    def __init__(self, options: MaestroFiles | None = None) -> None:
        self.options = options or MaestroFiles()

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Read one mapping file and at most one hardware file (default: COMMAND_LINE).

        `mapping.m/LAYER` selects a layer. A layer of a model file, which has no dataflow, is a problem. A dataflow
        file, given as an input or as an option, supplies the dataflow. A hardware file alone is an architecture.

        Raises:
            InputError: the files are invalid; with file and line.
        """
        paths = files_of(files, SUFFIXES, "MAESTRO")
        beside = [path for path in paths if path.suffix in (".yaml", ".yml")]  # MAESTRO's own files end in .m
        rest = [path for path in paths if path not in beside]
        if beside and not rest and self.options.dataflow is None:
            raise InputError(
                "not a file of MAESTRO",
                location=Location(str(beside[0])),
                hint="a mapping file begins with the word Network",
            )
        plain = self._read(rest)
        if not beside:
            return plain
        inputs, document = sidecar.read(beside[0], *TOOL, needed=list(sidecar.PARTS))
        written, reasons = _program(inputs)
        if len(beside) > 1 or reasons or written is None or written != plain.directives:
            raise sidecar.stale(document, *TOOL)
        return replace(inputs, warnings=plain.warnings)

    def layers(self, file: Path) -> tuple[str, ...]:
        """Return the layers of a mapping, model or CSV file; empty for other files. Raises InputError."""
        if file.suffix not in (".m", ".csv"):
            return ()
        words = read_words(file)
        return tuple(layer.name for layer in NetworkReader(words).read()[1]) if kind_of(words) == "mapping" else ()

    def _read(self, paths: Sequence[Path]) -> InputSet:
        given = None if self.options.dataflow is None else Path(self.options.dataflow)
        documents, named = _files([*paths, *([] if given is None else [given])])
        hardware = read_hardware(documents["hardware"]) if "hardware" in documents else COMMAND_LINE
        if "mapping" not in documents:
            if "hardware" in documents and "dataflow" not in documents:
                return InputSet(architecture=array_of(hardware))
            if "dataflow" in documents:
                alone = documents["dataflow"]
                alone.position = len(alone.words)
                hint = f"give the layers as well: tilewright evaluate NETWORK.m/LAYER --dataflow {alone.source}"
                raise alone.error("this is a dataflow without a Network", hint=hint)
            raise InputError("no mapping file among these files", hint="a mapping file begins with the word Network")
        reader = NetworkReader(documents["mapping"], _dataflows(documents.get("dataflow")))
        name, layers = reader.read()
        if named is not None:
            place = Location(documents["mapping"].source)
            layers = (layers[chosen([layer.name for layer in layers], named, place, "layer")],)
        warnings = tuple(_applied(reader, {layer.name for layer in layers}))
        bare = [layer for layer in layers if layer.name in reader.bare]
        if bare and len(layers) > 1:
            raise InputError(
                f"layer {bare[0].name} has no Dataflow, and there is no earlier layer to copy it from",
                location=reader.bare[bare[0].name],
                hint="give a dataflow (--dataflow kcp_ws.m), or search mappings: tilewright map",
            )
        if bare:
            array = array_of(hardware) if "hardware" in documents else None
            return InputSet(problem_of(bare[0]), array, warnings=warnings)
        if "hardware" not in documents:
            warnings += (f"no hardware file: {COMMAND_LINE.num_pes} PEs, as on MAESTRO's command line",)
        return InputSet(directives=DirectiveProgram(name=name, layers=layers, hardware=hardware), warnings=warnings)

    def expressible(self, inputs: InputSet) -> Verdict:
        """Return reasons why directives, or MAESTRO's files, cannot express the inputs."""
        return Verdict(reasons=_program(inputs)[1])

    def render(self, inputs: InputSet) -> dict[str, str]:
        """Return the two files, and a sidecar `tilewright.yaml` for the mapping they come from."""
        program, reasons = _program(inputs)
        if program is None or reasons:
            raise NotConformableError("adapter maestro", reasons)
        files = write_program(program, plain_name(program.name))
        return files if inputs.directives is not None else files | sidecar.write(*TOOL, sidecar.given(inputs))


def _files(paths: Sequence[Path]) -> tuple[dict[str, Words], str | None]:
    """Return files by kind, and the selected layer.

    Raises:
        InputError: a file is empty, or two are of one kind.
    """
    files: dict[str, Words] = {}
    named = None
    for path in paths:
        file, layer = file_and_member(path)
        named = layer or named
        words = read_words(Path(file))
        if not words.next:
            raise InputError(f"{path} is empty", hint="MAESTRO reads a mapping file and a hardware file")
        kind = kind_of(words)
        if kind in files:
            raise words.error(f"{kind} file is repeated; the first is {files[kind].source}")
        files[kind] = words
    return files, named


def _dataflows(given: Words | None) -> dict[str, Words]:
    """Return layer type -> dataflow; "" means all other types.

    Depthwise layers use the file DEPTHWISE in the same folder, as in MAESTRO's own script.
    """
    if given is None:
        return {}
    depthwise = Path(given.source).parent / DEPTHWISE
    return {"": given} | ({"DSCONV": read_words(depthwise)} if is_file(depthwise) else {})


def _applied(reader: NetworkReader, wanted: set[str]) -> Iterator[str]:
    """Yield a warning per dataflow file: MAESTRO itself needs the dataflow in the layer's file."""
    for source, names in reader.applied.items():
        count = sum(name in wanted for name in names)
        if count:
            yield (
                f"{source} supplies the dataflow of {count} layer{'s' if count > 1 else ''} of {reader.words.source}; "
                "MAESTRO itself needs it written in that file, and crashes otherwise"
            )


def _program(inputs: InputSet) -> tuple[DirectiveProgram | None, tuple[Reason, ...]]:
    """Return the directives of the inputs, and reasons why MAESTRO's files cannot express them."""
    reasons = list(_unsupported(inputs))
    program = inputs.directives if isinstance(inputs.directives, DirectiveProgram) else None
    if program is None and not reasons:
        try:
            program = _translated(inputs)
        except NotConformableError as error:
            reasons += error.reasons
    if program is not None:
        reasons += faults(program)
    return program, tuple(reasons)


def _unsupported(inputs: InputSet) -> Iterator[Reason]:
    yield from unplaced(TABLE, inputs, (*sidecar.PARTS, "directives"))
    if not isinstance(inputs.directives, DirectiveProgram | None):
        message = "is not in MAESTRO's directives"
        yield Reason(code="notation", where=f"program {inputs.directives.name}", message=message)
    given = sidecar.given(inputs)
    if inputs.directives is not None and given:
        message = f"given together with {', '.join(given)}; MAESTRO's files express one of them"
        yield Reason(code="directives", where=f"program {inputs.directives.name}", message=message)
    missing = [name for name in sidecar.PARTS if name not in given]
    if inputs.directives is None and missing:
        message = f"no {' and no '.join(missing)}; MAESTRO's files need all three"
        yield Reason(code="missing", where="the input set", message=message)


def _translated(inputs: InputSet) -> DirectiveProgram:
    """Translate a mapping to directives.

    Raises:
        NotConformableError: the mapping is illegal, or directives cannot express it.
    """
    problem, architecture, mapping = inputs.problem, inputs.architecture, inputs.mapping
    assert problem is not None and architecture is not None and mapping is not None
    roles, plan = roles_of(problem), plan_of(architecture, problem)
    verdict = legality(problem, architecture, mapping)
    if not verdict:
        raise NotConformableError("adapter maestro", verdict.reasons)
    layer, hardware = directives_of(problem, mapping, roles, plan)
    name = plain_name(problem.name)
    sizes = {"l1_size": plan.l1_words, "l2_size": plan.l2_words}
    return DirectiveProgram(
        name=name,
        layers=(layer.model_copy(update={"name": name}),),
        hardware=DirectiveHardware.model_validate(hardware.model_dump() | sizes),
    )

"""ZigZag's notation: accelerator, workload and mapping files, read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tilewright.errors import InputError, NotConformableError, Verdict
from tilewright.files import file_and_member
from tilewright.plugin.adapter import InputSet
from tilewright.plugin.edges import Edges
from tilewright.schema.document import YAML_SUFFIXES, Document, parse_document, read_document, validate
from tilewright.schema.origin import Origin
from tilewright.schema.problem import Problem
from tilewright_adapters import members, sidecar
from tilewright_adapters.faults import placed
from tilewright_adapters.zigzag.accelerator import ROLES, Accelerator, Precision, mixed, read_accelerator
from tilewright_adapters.zigzag.allocation import DoesNotFitError
from tilewright_adapters.zigzag.files import AcceleratorFile, LayerData, LayerMapping, MappingFile, WorkloadFile
from tilewright_adapters.zigzag.mapping import (
    NonNestedError,
    Unrolled,
    build,
    chosen,
    constraints,
    linked,
    ordering,
    single_buffered,
    unrolled,
    within_reach,
)
from tilewright_adapters.zigzag.result import (
    Levels,
    ResultInputs,
    check_accelerator,
    check_levels,
    documents_of,
    is_result,
    read_result,
)
from tilewright_adapters.zigzag.workload import Layer, edges_of, name_of, read_layer
from tilewright_adapters.zigzag.write import FILES, texts, written
from tilewright_notations.operand_loops import MEMORY_OPERANDS

TOOL = ("zigzag", "ZigZag")


class ZigZagAdapter:
    """An adapter for ZigZag's input files.

    The files specify an order of loops; ZigZag's allocation rule determines what each memory keeps.
    Reading applies that rule. A mapping is written only if the rule restores it.
    """

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Read an accelerator, a workload and a mapping, or some of them.

        `workload.yaml/LAYER` selects a layer. A mapping without a complete order of loops becomes
        constraints. A result, `LAYER_complete.json`, has the layer and its mapping.

        Raises:
            InputError: the files are invalid; with file and line.
        """
        documents: dict[str, Document] = {}
        layer = None
        for path in members.files_of(files, YAML_SUFFIXES, "ZigZag"):
            name, member = file_and_member(path)
            path = Path(name)
            layer = member or layer
            document = read_document(path, repeated_keys=True)
            kind = _kind(document)
            if kind in documents:
                raise InputError(
                    f"{kind} file is repeated; the first is {documents[kind].source}", location=document.locate(())
                )
            documents[kind] = document
        if not documents:
            raise InputError("no files to read", hint="ZigZag has an accelerator, a workload and a mapping file")
        result = None
        if "result" in documents:
            result, layer = _with_result(documents, layer)
        beside = documents.pop("sidecar", None)
        if beside is None:
            return _read(documents, layer, result)
        inputs, document = sidecar.read(Path(beside.source), *TOOL)
        said = written(inputs)
        if said.reasons or said.files != {FILES[kind]: content.data for kind, content in documents.items()}:
            raise sidecar.stale(document, *TOOL)
        return inputs

    def layers(self, file: Path) -> tuple[str, ...]:
        """Return the layers of a workload. Raises InputError."""
        document = read_document(file, repeated_keys=True)
        if _kind(document) != "problem":
            return ()
        return tuple(name_of(layer) for layer in validate(WorkloadFile, document).root)

    def edges(self, file: Path, problems: Mapping[str, Problem]) -> Edges:
        """Return the makers of the layers' operands, and their words where these follow. Raises InputError."""
        document = read_document(file, repeated_keys=True)
        return edges_of(validate(WorkloadFile, document).root, problems) if _kind(document) == "problem" else {}

    def expressible(self, inputs: InputSet) -> Verdict:
        """Return every construct that ZigZag's files cannot express."""
        return Verdict(reasons=tuple(written(inputs).reasons))

    def render(self, inputs: InputSet) -> dict[str, str]:
        """Return ZigZag's files, and a sidecar `tilewright.yaml` if they lose names or numbers."""
        said = written(inputs)
        if said.reasons:
            raise NotConformableError("adapter zigzag", said.reasons)
        files = texts(said)
        documents = {kind: parse_document(files[name], source=name) for kind, name in FILES.items() if name in files}
        return sidecar.beside(files, _read(documents, None), inputs, *TOOL)


def _kind(document: Document) -> str:
    data = document.data
    if isinstance(data, dict):
        if "zigzag" in data:
            return "sidecar"
        if is_result(data):
            return "result"
        if "memories" in data:
            _check_core(document)
            return "architecture"
        if "cores" in data and "core_connectivity" in data:
            place = document.locate(("cores",))
            raise InputError(
                "a chip of several cores (Stream) is not supported", location=place, hint="give the file of one core"
            )
    if isinstance(data, list) and data and isinstance(data[0], dict):
        if "equation" in data[0]:
            return "problem"
        if set(data[0]) & set(LayerMapping.model_fields) - {"name"}:
            return "mapping"
    raise InputError(
        "not a file of ZigZag",
        location=document.locate(()),
        hint="expected an accelerator with memories, a list of layers with equations, or a list of layer mappings",
    )


def _check_core(document: Document) -> None:
    """Refuse a core of Stream that only stores data. Raises InputError."""
    kind = document.data.get("type")
    if isinstance(kind, str) and kind.removeprefix("zigzag.") != "compute":
        hint = "give the file of a core of type compute"
        raise InputError(f"a core of type {kind} computes nothing", location=document.locate(("type",)), hint=hint)


def _with_result(documents: dict[str, Document], named: str | None) -> tuple[ResultInputs, str | None]:
    """Replace a result by its mapping, and by its layer if no workload is given; return it and the layer's name.

    Raises:
        InputError: the result is invalid, comes with a mapping, or is of another accelerator.
    """
    document = documents.pop("result")
    result = read_result(document)
    if "mapping" in documents:
        raise InputError("a mapping and a result; give one", location=documents["mapping"].locate(()))
    said = documents_of(document, result)
    named = named or (result.layer.name if "problem" in documents else None)
    documents.setdefault("problem", said["problem"])
    documents["mapping"] = said["mapping"]
    if "architecture" in documents:
        check_accelerator(result.accelerator, validate(AcceleratorFile, documents["architecture"]), document)
    return result, named


def _read(documents: Mapping[str, Document], named: str | None, result: ResultInputs | None = None) -> InputSet:
    layers = validate(WorkloadFile, documents["problem"]).root if "problem" in documents else ()
    data, where = _layer_data(documents.get("problem"), layers, named)
    said = _layer_mapping(documents.get("mapping"), data)
    links = said.memory_operand_links if said else MEMORY_OPERANDS
    warnings = [
        f"{place}: key '{path[-1]}' is repeated; the last value counts, as in ZigZag"
        for document in documents.values()
        for path, place in document.repeated.items()
    ]
    layer = None
    if data is not None and where is not None:
        with _at(where):
            layer = read_layer(data, links)
        warnings += layer.warnings
    accelerator = None
    if "architecture" in documents:
        file = validate(AcceleratorFile, documents["architecture"])
        with _at(documents["architecture"]):
            accelerator = read_accelerator(file, _precision(data, links) if data else None)
        warnings += accelerator.warnings
    inputs = InputSet(
        problem=layer.problem if layer else None,
        architecture=accelerator.architecture if accelerator else None,
        warnings=tuple(warnings),
        origin=None if where is None or layer is None else Origin.at(where.locate(()), layer.problem.name),
        uneven=True,
    )
    others = _other_precisions(layers, links)
    if said is None:
        untold = accelerator.partial_sum_warnings() if accelerator else ()
        inputs = replace(inputs, warnings=(*inputs.warnings, *untold))
        return _told_apart(inputs, data, file, others, links) if accelerator and others else inputs
    if accelerator is None:
        raise InputError(
            "a mapping needs its accelerator",
            location=documents["mapping"].locate(()),
            hint="add the accelerator file",
        )
    with _at(documents["mapping"]):
        levels = result.temporal_mapping if result else None
        inputs = _mapped(inputs, said, accelerator, layer, links, str(documents["mapping"].locate(())), levels)
    return _told_apart(inputs, data, file, others, links) if others and inputs.mapping is None else inputs


def _mapped(
    inputs: InputSet,
    said: LayerMapping,
    accelerator: Accelerator,
    layer: Layer | None,
    links: Mapping[str, str],
    where: str,
    levels: Levels | None,
) -> InputSet:
    warnings = list(inputs.warnings)
    sizes = layer.problem.dimensions if layer else _every_dimension(said)
    unrolling = unrolled(said, sizes, accelerator.array, warnings)
    if layer is None:
        return _constrained(inputs, said, accelerator, unrolling, [*warnings, "no layer is given"], where)
    stores = linked(accelerator.stores, links)
    cut, told = within_reach(unrolling, stores, layer)
    order = ordering(said, sizes, unrolling)
    if order is None:
        told = [f"{name}: reduced, as in ZigZag" for name in told]
        why = "temporal_ordering is incomplete; ZigZag would search for the rest"
        return _constrained(inputs, said, accelerator, cut, [*warnings, *told, why], where)
    if told:
        raise ValueError(f"{told[0]}: ZigZag would reduce the unrolling and search for a loop order")
    open_loops = [name for name, count in said.temporal_ordering if isinstance(count, str) and name.upper() in sizes]
    if open_loops:
        names = ", ".join(open_loops)
        warnings.append(f"temporal_ordering does not fix the loops of {names}: read as one loop over the rest")
    mapping, summing, taken = build(accelerator, stores, layer, unrolling, order)
    if levels is not None:
        check_levels(levels, layer.stored, order, taken)
    architecture, single = single_buffered(accelerator.holding(summing), layer.problem, mapping)
    if single:
        memories = ", ".join(single)
        warnings.append(f"{memories}: keeps whole tensors, which ZigZag does not double: read as single-buffered")
    return replace(inputs, architecture=architecture, mapping=mapping, warnings=tuple(warnings))


def _constrained(
    inputs: InputSet, said: LayerMapping, accelerator: Accelerator, unrolling: Unrolled, warnings: list[str], where: str
) -> InputSet:
    rules = constraints(said, unrolling, accelerator, where)
    warnings[-1] += ": read as constraints"
    warnings += accelerator.partial_sum_warnings()
    return replace(inputs, constraints=rules, warnings=tuple(warnings))


def _precision(data: LayerData, links: Mapping[str, str]) -> Precision:
    bits = {memory: data.operand_precision.get(name, 0) for name, memory in links.items()}
    return Precision(bits, data.operand_precision.get("O_final", data.operand_precision["O"]))


def _other_precisions(layers: Sequence[LayerData], links: Mapping[str, str]) -> list[LayerData]:
    """Return one layer per precision of a workload, or none if all layers have the same.

    Operands of 0 bits, such as the weights of a pooling, do not count.
    """
    bits = [tuple(layer.operand_precision.get(name, 0) for name in ("I", "W", "O", "O_final")) for layer in layers]
    if all(len(set(of_operand) - {0}) <= 1 for of_operand in zip(*bits, strict=True)):
        return []
    return [*{tuple(_tensor_names(layer, links).values()): layer for layer in layers}.values()]


def _tensor_names(data: LayerData, links: Mapping[str, str]) -> dict[str, str]:
    """Return memory operand -> name of the tensor with its bits, such as `W_8` and `O_16_8`."""
    bits = data.operand_precision
    names = {links[name]: f"{name}_{bits.get(name, 0)}" for name in ("I", "W")}
    return names | {links["O"]: f"O_{bits['O']}_{bits.get('O_final', bits['O'])}"}


def _told_apart(
    inputs: InputSet,
    data: LayerData | None,
    file: AcceleratorFile,
    others: Sequence[LayerData],
    links: Mapping[str, str],
) -> InputSet:
    """Return inputs whose tensors have their bits in their names, so that one architecture has the widths of all layers."""
    assert data is not None and inputs.problem is not None
    names, operand_of = _tensor_names(data, links), {role: operand for operand, role in ROLES.items()}
    tensors = tuple(
        tensor.model_copy(update={"name": names[operand_of[tensor.role]]}) for tensor in inputs.problem.tensors
    )
    layers = [(_precision(other, links), _tensor_names(other, links)) for other in others]
    return replace(
        inputs,
        problem=inputs.problem.model_copy(update={"tensors": tensors}),
        architecture=mixed(file, layers),
    )


def _every_dimension(said: LayerMapping) -> dict[str, int]:
    """Return the dimensions that a mapping without a layer names, with the maximum size."""
    named = [
        text.partition(",")[0].strip().upper() for texts in (said.spatial_mapping or {}).values() for text in texts
    ]
    return dict.fromkeys(named, 2**40)


def _layer_data(
    document: Document | None, layers: Sequence[LayerData], named: str | None
) -> tuple[LayerData | None, Document | None]:
    if document is None:
        if named is not None:
            raise InputError(f"no workload in these files has a layer {named}")
        return None, None
    names, ids = [name_of(layer) for layer in layers], [str(layer.id) for layer in layers]
    if named in ids and named not in names:
        named = names[ids.index(named)]
    index = members.chosen(names, named, document.locate(()), "layer")
    return layers[index], document.at(index)


def _layer_mapping(document: Document | None, data: LayerData | None) -> LayerMapping | None:
    if document is None:
        return None
    mappings = validate(MappingFile, document).root
    mapping = chosen(mappings, name_of(data) if data else None, data.operator_type if data else None)
    if mapping is None:
        names = ", ".join(mapping.name for mapping in mappings)
        raise InputError(
            f"there is no mapping called default; known: {names}", location=document.locate(()), hint="call one default"
        )
    return mapping


@contextmanager
def _at(document: Document) -> Iterator[None]:
    """Convert errors inside the `with` block to InputError with the location of the part."""
    try:
        with placed(document.locate(())):
            yield
    except DoesNotFitError as error:
        raise InputError(f"this mapping does not fit in ZigZag: {error}", location=document.locate(())) from None
    except NonNestedError as error:
        hint = "Tilewright's clusters nest: keep fewer loops in the inner memory, or map again"
        raise InputError(
            f"this mapping cannot be expressed: {error}", location=document.locate(()), hint=hint
        ) from None

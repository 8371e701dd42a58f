"""Parser of Timeloop's sparse runs: densities of tensors, and `sparse_optimizations` of levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tilewright.errors import UnsupportedError
from tilewright.expressions import resolved
from tilewright.schema.architecture import Architecture, Memory
from tilewright.schema.density import Density, Distribution
from tilewright.schema.document import suggestion
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.problem import Problem
from tilewright.schema.sparse import (
    MetadataStorage,
    RankFormat,
    Saving,
    SparseAction,
    SparseCompute,
    SparseMemory,
    TensorFormat,
)
from tilewright.values import grouped
from tilewright_adapters.timeloop.cursor import Cursor, refuse_unknown
from tilewright_adapters.timeloop.reading.energies import COMPUTE, Energies, pick
from tilewright_adapters.timeloop.reading.hierarchy import Component, Hierarchy
from tilewright_adapters.timeloop.reading.sections import Sections

_DISTRIBUTIONS: dict[str, Distribution] = {
    "fixed": "structured",
    "fixed_structured": "structured",
    "hypergeometric": "uniform",
    "banded": "banded",
    "diagonal": "banded",
}
_KINDS = {"gating": "gate", "skipping": "skip", "skipping_spatial": "skip_units", "spatial_skipping": "skip_units"}
_COMPUTE_KINDS = {
    "gating": "gate",
    "gate_on_zero_operand": "gate",
    "skipping": "skip",
    "skip_on_not_aligned_operands": "skip",
}
_FILLS: dict[str, Literal["outer", "inner"]] = {"outer_to_inner": "outer", "inner_to_outer": "inner"}
_PARTS = ("representation_format", "action_optimization", "compute_optimization")
_DEFAULT_BITS = ("metadata_datawidth", "metadata_word_bits")
_WIDTH = ("metadata_storage_width", "metadata_width")
_DEPTH = ("metadata_storage_depth", "metadata_depth")
_GATED_COMPUTE = ("mac_gated", "mult_gated", "compute_gated")
_SKIPPED_COMPUTE = ("mac_skipped", "mult_skipped", "compute_skipped", *_GATED_COMPUTE)


def _names_of_actions() -> Iterator[tuple[SparseAction, tuple[str, ...]]]:
    """Yield each sparse action of a memory with its names in an energy table; the first one in the table counts."""
    for about in ("", "metadata_"):
        for kind in ("read", "fill", "update"):
            same: tuple[str, ...] = (kind,) if kind == "read" else (kind, "write")
            gated = tuple(f"gated_{about}{action}" for action in same)
            skipped = tuple(f"skipped_{about}{action}" for action in same)
            yield f"gated_{about}{kind}", gated  # type: ignore[misc]
            yield f"skipped_{about}{kind}", skipped + gated  # type: ignore[misc]
            if about:
                plain = tuple(f"{about}{action}" for action in same)
                yield f"{about}{kind}", tuple(f"random_{action}" for action in plain) + plain  # type: ignore[misc]
    yield "decompression", ("decompression_count",)
    yield "compression", ("compression_count",)


_GROUPS = "Timeloop before 2024 ignores 'flattened_rankIDs' of {name} beside other keys with hyphens; read as stated"


def ignored_groups(warnings: Iterable[str], name: str) -> bool:
    """Return whether a file spells groups of dimensions of a tensor in the way that older versions ignore."""
    return any(told.endswith(_GROUPS.format(name=name)) for told in warnings)


ACTIONS = dict(_names_of_actions())
"""Sparse actions of a memory -> their names in an energy table. The first name is written."""


def read_densities(given: Mapping[str, Cursor], tensors: Sequence[str], sections: Sections) -> dict[str, Density]:
    """Return the densities of an instance by tensor.

    Args:
        given: the keys of the instance.
        tensors: names of all tensors; `commonDensity` applies to each.
        sections: supplies variables, and receives warnings.

    Raises:
        InputError: a density is invalid.
    """
    common, section = given.get("commonDensity"), given.get("densities")
    if common is not None and common.value is not None:
        if section is not None and section.value:
            raise section.error("'densities' and 'commonDensity' are both given; give one")
        return dict.fromkeys(tensors, _density(common, "commonDensity", sections))
    densities: dict[str, Density] = {}
    for cursor in section.fields("densities").values() if section is not None and section.value else ():
        name = str(cursor.path[-1])
        if name in tensors:
            densities[name] = _density(cursor, f"density of {name}", sections)
            continue
        meant = suggestion(name, tensors)
        if meant:
            raise cursor.error(f"there is no data-space '{name}'{meant}", hint=f"one of {', '.join(tensors)}")
        place = cursor.document.locate(cursor.path)
        sections.warnings.append(f"{place}: there is no data-space '{name}': its density is ignored, as in Timeloop")
    return densities


def _density(cursor: Cursor, what: str, sections: Sections) -> Density:
    def number(given: Cursor) -> float:
        value = given.with_value(resolved(given.value, sections.variables()))
        return value.number(what)

    with cursor.checked():
        if not isinstance(cursor.value, dict):
            return Density(density=number(cursor))
        fields = cursor.fields(what)
        refuse_unknown(fields, {"distribution", "density", "band_width", "workload_tensor_size"}, what)
        if "distribution" not in fields:
            raise cursor.error(f"{what} has no 'distribution'", hint=f"one of {', '.join(_DISTRIBUTIONS)}")
        kind = _DISTRIBUTIONS[_word(fields["distribution"]).choice("distribution", _DISTRIBUTIONS)]
        if kind == "banded":
            width = fields["band_width"].whole(f"band_width of {what}", 0) if "band_width" in fields else 0
            return Density(distribution=kind, band_width=width)
        if "density" not in fields:
            raise cursor.error(f"{what} has no 'density'")
        return Density(distribution=kind, density=number(fields["density"]))


def _word(cursor: Cursor) -> Cursor:
    """Return a keyword with `-` replaced by `_`."""
    return cursor.with_value(cursor.value.replace("-", "_")) if isinstance(cursor.value, str) else cursor


@dataclass
class _Target:
    """Sparse content of one level."""

    formats: dict[str, TensorFormat] = field(default_factory=dict)
    actions: dict[str, list[Saving]] = field(default_factory=dict)
    """Kind -> actions of that kind."""
    compute: set[str] = field(default_factory=set)


def with_sparse(
    architecture: Architecture,
    levels: Hierarchy,
    problem: Problem | None,
    energies: Energies | None,
    sections: Sections,
) -> Architecture:
    """Return a copy with the sparse content of all levels; if there is none, the architecture itself.

    Args:
        architecture: the architecture without it.
        levels: the levels that it was built from.
        problem: the problem whose tensors and dimensions are named; None: names are not checked.
        energies: the energy table; None: sparse actions take no energy.
        sections: supplies the content, and receives warnings.

    Raises:
        InputError: the content is invalid.
    """
    targets = _Reader(levels, problem, sections).targets()
    if not any(target.formats or target.actions or target.compute for target in targets.values()):
        return architecture
    tables = energies or {}
    memories = {level.name: level for level in levels.storage if not level.is_dummy}

    def sparse(memory: Memory) -> Memory:
        if memory.name not in memories:
            return memory
        level, target = memories[memory.name], targets.get(memory.name, _Target())
        table = {} if "vector_access_energy" in level.fields else tables.get(level.name, {})
        with level.where.checked():
            sparse_part = _memory(level, target, table)
        sections.warnings.extend(_told(level, sparse_part))
        return memory.model_copy(update={"sparse": None if sparse_part == SparseMemory() else sparse_part})

    unit = architecture.compute
    saved = targets.get(unit.name, _Target()).compute
    if saved:
        table = tables.get(unit.name, {})
        if table and pick(table, _GATED_COMPUTE) is None:
            sections.warnings.append(
                f"the energy table (ERT) lacks energies of gated operations of {unit.name}: "
                "they take as much as others, as in Timeloop"
            )
        with levels.compute.where.checked():
            sparse_part = SparseCompute(
                gate="gate" in saved,
                skip="skip" in saved,
                gated_pj=pick(table, _GATED_COMPUTE + COMPUTE[2:]) or 0.0,
                skipped_pj=pick(table, _SKIPPED_COMPUTE + COMPUTE[2:]) or 0.0,
            )
        unit = unit.model_copy(update={"sparse": sparse_part})
    return architecture.with_memories(sparse).model_copy(update={"compute": unit})


def _memory(level: Component, target: _Target, table: dict[str, float]) -> SparseMemory:
    width, bits = level.whole(_WIDTH, 0, least=0), level.whole(_DEFAULT_BITS, 0, least=0)
    block = level.whole(("metadata_block_size",), 1)
    if width and bits and width % (bits * block):
        raise level.where.error(f"{level.name}: metadata width {width} is not {bits} bits x block {block}")
    energies = {action: pick(table, names) or 0.0 for action, names in ACTIONS.items()}
    return SparseMemory(
        formats=FrozenDict(target.formats),
        actions=tuple(saving for group in target.actions.values() for saving in group),
        metadata=MetadataStorage(width_bits=width, depth=level.whole(_DEPTH, 0, least=0), default_bits=bits),
        decompresses=_flag(level, "decompression_supported"),
        compresses=_flag(level, "compression_supported"),
        energies_pj=FrozenDict({action: energy for action, energy in energies.items() if energy}),
    )


def _flag(level: Component, name: str) -> bool:
    cursor = level.fields.get(name)
    return cursor is not None and cursor.value is not None and cursor.truth(f"{name} of {level.name}")


def _told(level: Component, memory: SparseMemory) -> Iterator[str]:
    """Yield warnings about bits that are increased, and about energies that are missing."""
    for name, tensor_format in memory.formats.items():
        for rank in tensor_format.ranks:
            for given, taken in zip(
                (rank.metadata_bits, rank.payload_bits), memory.metadata.bits_of(rank), strict=True
            ):
                if given not in (None, taken):
                    width = memory.metadata.width_bits
                    yield (
                        f"{level.name}: {given} bits of the format of {name} become {taken}, as in Timeloop, "
                        f"because they do not divide the width of metadata accesses, {width} bits"
                    )
    if memory.is_active and not memory.energies_pj:
        yield f"{level.name}: gated, skipped and metadata accesses take no energy, because no energies are given"


@dataclass
class _Reader:
    levels: Hierarchy
    problem: Problem | None
    sections: Sections

    def targets(self) -> dict[str, _Target]:
        """Return the content by level; a level that is named twice keeps the later lists."""
        targets: dict[str, _Target] = {}
        for name, where in self._listed():
            fields = where.fields("a target of sparse_optimizations")
            refuse_unknown(fields, {"name", "target", *_PARTS}, "a target of sparse_optimizations")
            target = targets.setdefault(name, _Target())
            if not any(fields[part].value for part in _PARTS if part in fields):
                place = where.document.locate(where.path)
                self.sections.warnings.append(f"{place}: sparse_optimizations of {name} have no effect: they are empty")
            self._read(name, fields, target)
        return targets

    def _listed(self) -> Iterator[tuple[str, Cursor]]:
        """Yield every target with its level: those of nodes, then those of the section."""
        yield from self.sections.sparse_nodes
        section = self.sections.parts.get("sparse_optimizations")
        if section is None or not section.value:
            return
        fields = section.fields("sparse_optimizations")
        refuse_unknown(fields, {"targets", "version"}, "sparse_optimizations")
        for cursor in fields["targets"].items("targets") if "targets" in fields and fields["targets"].value else ():
            named = cursor.fields("a target of sparse_optimizations")
            given = named.get("name", named.get("target"))
            if given is None:
                raise cursor.error("a target of sparse_optimizations has no 'name'")
            yield given.choice("level", (*self.levels.names, self.levels.compute.name)), cursor

    def _read(self, name: str, fields: dict[str, Cursor], target: _Target) -> None:
        given = {part: fields[part] for part in _PARTS if part in fields and fields[part].value}
        of_compute = name == self.levels.compute.name
        for part, cursor in given.items():
            if (part == "compute_optimization") != of_compute or name in self.levels.dummies:
                what = (
                    "a compute unit"
                    if of_compute
                    else "a level that only unrolls"
                    if name in self.levels.dummies
                    else "a memory"
                )
                raise cursor.error(f"{name} is {what}, which has no {part}")
        if "representation_format" in given:
            if target.formats:
                raise given["representation_format"].error(f"formats of {name} are given twice; Timeloop aborts")
            target.formats = self._formats(given["representation_format"])
        if "action_optimization" in given:
            savings = grouped(self._actions(given["action_optimization"]))
            for kind in target.actions.keys() & savings.keys():
                place = given["action_optimization"].document.locate(given["action_optimization"].path)
                self.sections.warnings.append(f"{place}: actions of {name} replace those given before, as in Timeloop")
                del target.actions[kind]
            target.actions |= savings
        if "compute_optimization" in given:
            target.compute = set(self._computes(given["compute_optimization"]))

    def _formats(self, section: Cursor) -> dict[str, TensorFormat]:
        fields = section.fields("representation_format")
        refuse_unknown(fields, {"data_spaces"}, "representation_format")
        formats: dict[str, TensorFormat] = {}
        for cursor in fields["data_spaces"].items("data_spaces") if "data_spaces" in fields else ():
            parts = cursor.fields("a format")
            refuse_unknown(parts, {"name", "ranks", "rank_application_order", "compression_rate"}, "a format")
            for part in ("name", "ranks"):
                if part not in parts:
                    raise cursor.error(f"the format has no '{part}'")
            name = self._tensor(parts["name"])
            if name in formats:
                raise cursor.error(f"the format of {name} is given twice")
            if "compression_rate" in parts:
                place = parts["compression_rate"].document.locate(parts["compression_rate"].path)
                self.sections.warnings.append(f"{place}: compression_rate is ignored, as in Timeloop")
            fill = "outer_to_inner"
            if "rank_application_order" in parts:
                fill = _word(parts["rank_application_order"]).choice("rank_application_order", _FILLS)
            listed = parts["ranks"].items("ranks")
            if "data-spaces" in section.value and any("flattened_rankIDs" in (rank.value or ()) for rank in listed):
                self.sections.warnings.append(f"{cursor.document.locate(cursor.path)}: {_GROUPS.format(name=name)}")
            ranks = tuple(self._rank(rank) for rank in listed)
            with cursor.checked():
                formats[name] = TensorFormat(ranks=ranks, fill=_FILLS[fill])
        return formats

    def _rank(self, rank: Cursor) -> RankFormat:
        value = rank.value
        if isinstance(value, dict) and "payload-word-bits" in value:
            if (
                value.get("payload_word_bits") == value["payload-word-bits"]
            ):  # written for Timeloop 3.0.3 and later ones
                rank = rank.with_value({key: item for key, item in value.items() if key != "payload-word-bits"})
            else:
                self.sections.warnings.append(
                    f"{rank.document.locate(rank.path)}: Timeloop after 3.0.3 does not know 'payload-word-bits', only "
                    "'payload_word_bits', and takes the memory's default; read as stated"
                )
        fields = rank.fields("a rank")
        refuse_unknown(fields, {"format", "metadata_word_bits", "payload_word_bits", "flattened_rankIDs"}, "a rank")
        if "format" not in fields:
            raise rank.error("the rank has no 'format'")
        kind = str(fields["format"].value)
        name = fields["format"].with_value(kind.upper()).choice("format", ("UOP", "CP", "B", "RLE", "UB"))
        bits = {
            to: fields[key].whole(key, 0)
            for to, key in (("metadata_bits", "metadata_word_bits"), ("payload_bits", "payload_word_bits"))
            if key in fields and fields[key].value is not None
        }
        if name == "UB" and bits:
            place = rank.document.locate(rank.path)
            self.sections.warnings.append(
                f"{place}: bits of UB are ignored, as in Timeloop: it takes the memory's default"
            )
            bits = {}
        flat: dict[str, Any] = {}
        if "flattened_rankIDs" in fields and fields["flattened_rankIDs"].value is not None:
            groups = fields["flattened_rankIDs"].items("flattened_rankIDs")
            flat["flatten"] = tuple(self._dimensions(group) for group in groups)
        with rank.checked():
            return RankFormat.model_validate({"format": name} | bits | flat)

    def _dimensions(self, group: Cursor) -> tuple[str, ...]:
        known = None if self.problem is None else self.problem.dimension_names
        return tuple(
            cursor.text("a dimension") if known is None else cursor.choice("dimension", known)
            for cursor in group.items("a group of flattened_rankIDs")
        )

    def _tensor(self, cursor: Cursor) -> str:
        return (
            cursor.text("a data-space")
            if self.problem is None
            else cursor.choice("data-space", self.problem.tensor_names)
        )

    def _actions(self, section: Cursor) -> Iterator[tuple[str, Saving]]:
        for cursor in section.items("action_optimization"):
            fields = cursor.fields("an action")
            if "type" not in fields:
                raise cursor.error("the action has no 'type'", hint=f"one of {', '.join(_KINDS)}")
            kind = _KINDS[self._kind(fields["type"], _KINDS)]
            if "options" not in fields:
                yield kind, self._saving(kind, cursor, fields, {"type", "target", "condition_on"})
                continue
            refuse_unknown(fields, {"type", "options"}, "an action with options")
            options = [
                self._saving(kind, option, option.fields("an option"), {"target", "condition_on"})
                for option in fields["options"].items("options")
            ]
            with cursor.checked():
                yield kind, options[0] if len(options) == 1 else Saving(best_of=tuple(options))

    def _kind(self, cursor: Cursor, known: Iterable[str]) -> str:
        word = _word(cursor)
        if word.value == "position_skipping":
            raise UnsupportedError(
                "position-skipping is not supported: no public version of Timeloop has it",
                location=cursor.document.locate(cursor.path),
                hint="--dense (dense=True in Python) omits sparse hardware; results are then those of the dense run",
            )
        return word.choice("type of sparse optimization", known)

    def _saving(self, kind: str, where: Cursor, fields: dict[str, Cursor], known: set[str]) -> Saving:
        refuse_unknown(fields, known, "an action")
        for part in ("target", "condition_on"):
            if part not in fields:
                raise where.error(f"the action has no '{part}'")
        conditions = [self._tensor(cursor) for cursor in fields["condition_on"].items("condition_on")]
        if not conditions:
            raise fields["condition_on"].error(
                "condition_on is empty; expected data-spaces whose zeros save the access"
            )
        with where.checked():
            return Saving.model_validate({kind: self._tensor(fields["target"]), "when_empty": conditions})

    def _computes(self, section: Cursor) -> Iterator[str]:
        for cursor in section.items("compute_optimization"):
            fields = cursor.fields("a compute optimization")
            refuse_unknown(fields, {"type", "options"}, "a compute optimization")
            if "options" in fields:
                place = fields["options"].document.locate(fields["options"].path)
                self.sections.warnings.append(
                    f"{place}: options of a compute optimization are ignored, as in Timeloop, which reads its type alone"
                )
            if "type" not in fields:
                raise cursor.error("the compute optimization has no 'type'", hint="gating or skipping")
            yield _COMPUTE_KINDS[self._kind(fields["type"], _COMPUTE_KINDS)]

"""Schemas of ZigZag's three files, with every field of its versions and older spellings."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, RootModel, Tag, model_validator

from tilewright.values import Model
from tilewright_notations.operand_loops import MEMORY_OPERANDS, OPERANDS

NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _plain(value: Any) -> Any:
    """Convert `16_777_216` to a number, as ZigZag's YAML reader does."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"[1-9]\d{0,2}(_\d{3}){1,6}", value) else value


Bits = Annotated[int, BeforeValidator(_plain), Field(ge=1, strict=True)]
Size = Annotated[int, BeforeValidator(_plain), Field(ge=1, le=2**40, strict=True)]
MemoryOperand = Literal["I1", "I2", "O"]
ArrayDimension = Annotated[str, Field(pattern=r"^D\d$")]
Unrolling = Annotated[str, Field(pattern=r"^\s*[A-Za-z]\w*\s*,\s*0*[1-9]\d{0,11}\s*$")]


def _allocation(text: str) -> str:
    if not re.fullmatch(r"(I1|I2|O), ?(fh|tl|fl|th)", text):
        raise ValueError(f"'{text}' is not an operand with a direction; expected one like 'I1, tl' (quoted inside [ ])")
    return text


class Port(Model):
    """A port, with the operands and directions that use it: from or to, high or low."""

    name: str
    type: Literal["read", "write", "read_write"]
    bandwidth_min: Bits
    bandwidth_max: Bits
    allocation: tuple[Annotated[str, AfterValidator(_allocation)], ...]

    @model_validator(mode="after")
    def _ordered(self) -> Port:
        if self.bandwidth_min > self.bandwidth_max:
            raise ValueError(f"bandwidth_min {self.bandwidth_min} is above bandwidth_max {self.bandwidth_max}")
        return self


class OldPort(Model):
    """Ports of one operand, in files before 2025; the memory gives their widths."""

    fh: str | None = None
    tl: str | None = None
    fl: str | None = None
    th: str | None = None


def _form(ports: Any) -> str:
    """Return the version of a list of ports.

    Old entries only map directions to port names.
    """
    if not isinstance(ports, list):
        return "new"
    known = set(OldPort.model_fields)
    return "old" if all(isinstance(port, dict) and set(port) <= known for port in ports) else "new"


class MemoryData(Model):
    """A memory. `r_bw` to `min_w_granularity` are from files before 2025."""

    size: Bits
    r_cost: NonNegative | None = None
    w_cost: NonNegative | None = None
    area: NonNegative | None = None
    latency: Annotated[int, Field(ge=0)]
    mem_type: str = "sram"
    auto_cost_extraction: bool = False
    operands: tuple[MemoryOperand, ...] = Field(min_length=1)
    ports: Annotated[
        Annotated[tuple[Port, ...], Tag("new")] | Annotated[tuple[OldPort, ...], Tag("old")], Discriminator(_form)
    ]
    served_dimensions: tuple[ArrayDimension, ...]
    force_double_buffering: bool = False
    double_buffering_support: bool = False
    r_bw: Bits | None = None
    w_bw: Bits | None = None
    r_port: int | None = None
    w_port: int | None = None
    rw_port: int | None = None
    min_r_granularity: Bits | None = None
    min_w_granularity: Bits | None = None

    @model_validator(mode="after")
    def _complete(self) -> MemoryData:
        if not self.ports or isinstance(self.ports[0], OldPort):
            if self.r_bw is None or self.w_bw is None:
                raise ValueError("ports without bandwidths need r_bw and w_bw")
            if len(self.ports) != len(self.operands):
                raise ValueError(f"{len(self.ports)} ports for {len(self.operands)} operands; expected one for each")
        if self.r_cost is None or self.w_cost is None:
            raise ValueError(
                "r_cost and w_cost are missing (ZigZag would run CACTI); tilewright estimate sram "
                "--size size_bits=N --size width_bits=N estimates them"
            )
        return self


class ArrayData(Model):
    """The operational array; older files have `multiplier_*`."""

    dimensions: tuple[ArrayDimension, ...]
    sizes: tuple[Size, ...]
    unit_energy: NonNegative | None = None
    unit_area: NonNegative | None = None
    multiplier_energy: NonNegative | None = None
    multiplier_area: NonNegative | None = None
    input_precision: tuple[int, ...] | None = None
    is_imc: bool = False
    systolic_dimensions: tuple[ArrayDimension, ...] = ()
    imc_type: str | None = None
    adc_resolution: float | None = None
    bit_serial_precision: float | None = None

    @model_validator(mode="after")
    def _consistent(self) -> ArrayData:
        if self.is_imc or self.imc_type is not None:
            raise ValueError("in-memory computing arrays are not supported")
        if len(self.dimensions) != len(self.sizes) or len(set(self.dimensions)) != len(self.dimensions):
            raise ValueError(f"{len(self.sizes)} sizes for dimensions {', '.join(self.dimensions)}")
        return self

    @property
    def extent(self) -> dict[str, int]:
        return dict(zip(self.dimensions, self.sizes, strict=True))


class AcceleratorFile(Model):
    """An accelerator; memories are listed from the innermost out."""

    name: str
    type: str | None = None
    operator_types: tuple[str, ...] | None = None
    """Types of operators. This key, `type` and `operand_precision` are in Stream's files of single cores."""
    operand_precision: dict[str, int | str] | None = None
    """Bits or number formats (`bf16`) that Stream prices units by; the widths of the workload apply."""
    memories: dict[str, MemoryData] = Field(min_length=1)
    operational_array: ArrayData
    dataflows: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _older_key(cls, value: Any) -> Any:
        if isinstance(value, dict) and "multipliers" in value and "operational_array" not in value:
            value = {("operational_array" if key == "multipliers" else key): field for key, field in value.items()}
        return value

    @model_validator(mode="after")
    def _served(self) -> AcceleratorFile:
        for name, memory in self.memories.items():
            for dimension in memory.served_dimensions:
                if dimension not in self.operational_array.dimensions:
                    known = ", ".join(self.operational_array.dimensions)
                    raise ValueError(f"memory {name} serves {dimension}; the array has {known}")
        return self


class LayerData(Model):
    """One layer of a workload."""

    id: int
    name: str | None = None
    operator_type: str
    equation: Annotated[str, Field(pattern=r"^\s*O(\[\w+\])+\s*\+?\s*=\s*\w(\[\w+\])+\s*[*+]\s*\w(\[(?:\w+)?\])+\s*$")]
    dimension_relations: tuple[
        Annotated[str, Field(pattern=r"^\s*\w+\s*=\s*(\d+\s*\*\s*)?\w+\s*\+\s*(\d+\s*\*\s*)?\w+\s*$")], ...
    ] = ()
    loop_dims: tuple[str, ...]
    loop_sizes: tuple[Size, ...]
    operand_precision: dict[str, Annotated[int, Field(ge=0)]]
    operand_source: dict[str, int] = Field(default_factory=dict)
    constant_operands: tuple[str, ...] | None = None
    """Constant operands, in older files; the sources give the same information."""
    pr_loop_dims: tuple[str, ...] | None = None
    pr_loop_sizes: tuple[int, ...] | None = None
    padding: tuple[tuple[int, int], ...] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> LayerData:
        if len(self.loop_dims) != len(self.loop_sizes):
            raise ValueError(f"{len(self.loop_sizes)} loop_sizes for {len(self.loop_dims)} loop_dims")
        unknown = set(self.operand_precision) - {*OPERANDS, "O_final"}
        if unknown or "O" not in self.operand_precision:
            named = ", ".join(self.operand_precision) or "none"
            raise ValueError(f"operand_precision names {named}; expected bits of I, W, O and O_final")
        return self


class WorkloadFile(RootModel[tuple[LayerData, ...]]):
    """Layers of a workload."""


class LayerMapping(Model):
    """Mapping of layers with one name or operator type. `temporal_ordering`: innermost first."""

    name: str
    spatial_mapping: dict[ArrayDimension, tuple[Unrolling, ...]] | None = None
    spatial_mapping_hint: dict[ArrayDimension, tuple[str, ...]] | None = None
    memory_operand_links: dict[str, str] = Field(default_factory=lambda: dict(MEMORY_OPERANDS))
    temporal_ordering: tuple[tuple[str, Size | Literal["*"]], ...] = ()
    core_allocation: Any = None

    @model_validator(mode="after")
    def _linked(self) -> LayerMapping:
        links = self.memory_operand_links
        if set(links) != set(OPERANDS) or set(links.values()) != set(MEMORY_OPERANDS.values()):
            raise ValueError("memory_operand_links must map each of I, W and O to one of I1, I2 and O")
        return self


class MappingFile(RootModel[tuple[LayerMapping, ...]]):
    """Mappings of layers; `default` applies if no other fits."""

"""Schemas of AccelForge's sections, with every field of its versions, used here or not."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from tilewright.values import Model

Value = int | float | str
"""A number, or an expression for one."""
Variable = Annotated[str, Field(pattern=r"^[a-z_]\w*$")]
Word = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]
TileSize = Annotated[int, Field(ge=1, strict=True)]


class RenameData(Model):
    name: Word
    source: str
    expected_count: Value | None = None


Renaming = tuple[RenameData, ...] | dict[Word, str]


class AccessData(Model):
    """An einsum's access to a tensor. `projection`: variables, or rank -> expression of variables."""

    name: Word
    projection: tuple[Variable, ...] | dict[str, str]
    output: bool = False
    persistent: bool = False
    backing_storage_size_scale: float = 1.0
    bits_per_value: Value | None = None


class EinsumData(Model):
    """One computation; `einsum` is the short form, `Z[m] = A[m,k] * B[k]`."""

    name: Word | None = None
    einsum: str | None = None
    tensor_accesses: tuple[dict[str, Any], ...] = ()
    iteration_space_shape: tuple[str, ...] = ()
    rank_sizes: dict[str, Value] = Field(default_factory=dict)
    is_copy_operation: bool = False
    renames: Renaming = ()
    n_instances: int = 1

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"einsum": value} if isinstance(value, str) else value


class WorkloadData(Model):
    """A workload. Lists inside `einsums`, such as those of included files, are flattened."""

    einsums: tuple[EinsumData, ...] = Field(min_length=1)
    iteration_space_shape: dict[Variable, str] = Field(default_factory=dict)
    rank_sizes: dict[str, Value] = Field(default_factory=dict)
    n_instances: int = 1
    bits_per_value: dict[str, Value] = Field(default_factory=dict)
    persistent_tensors: str | None = None
    version: str | int | float | None = None

    @model_validator(mode="before")
    @classmethod
    def _older_key(cls, value: Any) -> Any:
        """Accept `shape`, the key until 2025."""
        if isinstance(value, dict) and "shape" in value and "iteration_space_shape" not in value:
            return {("iteration_space_shape" if key == "shape" else key): field for key, field in value.items()}
        return value

    @model_validator(mode="before")
    @classmethod
    def _one_list(cls, value: Any) -> Any:
        listed = value.get("einsums") if isinstance(value, dict) else None
        if not isinstance(listed, list | tuple):
            return value
        plain = [item for part in listed for item in (part if isinstance(part, list | tuple) else [part])]
        return {**value, "einsums": plain}


class EinsumRenames(Model):
    name: str
    tensor_accesses: Renaming = ()
    rank_variables: Renaming = ()


class RenamesData(Model):
    einsums: tuple[EinsumRenames, ...] = ()


class ActionData(Model):
    name: str
    energy: Value | None = None
    energy_scale: Value = 1
    throughput: Value | None = None
    throughput_scale: Value = 1
    latency: Value | None = None
    latency_scale: Value = 1
    bits_per_action: Value | None = None
    values_per_action: dict[str, Value] = Field(default_factory=dict)
    extra_attributes_for_component_model: dict[str, Any] = Field(default_factory=dict)


class SpatialData(Model):
    """A fanout above a node.

    Loops over it must not index tensors of `reuse`. One read serves several instances for tensors
    of `may_reuse`.
    """

    name: str
    fanout: Value
    may_reuse: str | None = None
    reuse: str | None = None
    loop_bounds: tuple[dict[str, Any], ...] = ()
    min_usage: Value = 0
    usage_scale: Value = 1
    power_gateable: bool = False


class TensorsData(Model):
    """Tensors of a memory: `keep` must, `may_keep` may be kept. Without either, all may be kept."""

    keep: str | None = None
    may_keep: str | None = None
    back: str | None = None
    tile_shape: tuple[dict[str, Any], ...] = ()
    no_refetch_from_above: str | None = None
    no_resend_to_below: str | None = None
    tensor_order_options: tuple[Any, ...] = ()
    force_memory_hierarchy_order: bool = True


class ContainerData(Model):
    name: Word
    spatial: tuple[SpatialData, ...] = ()


class ComponentData(ContainerData):
    component_class: str | None = None
    actions: tuple[ActionData, ...] = ()
    enabled: bool | str = True
    area: Value | None = None
    area_scale: Value = 1
    leak_power: Value | None = None
    leak_power_scale: Value = 1
    energy_scale: Value = 1
    actions_scale: Value = 1
    throughput_scale: Value = 1
    latency_scale: Value = 1
    total_latency: Value | None = None
    n_parallel_instances: Value = 1
    extra_attributes_for_component_model: dict[str, Any] = Field(default_factory=dict)
    skip_initial_output_write: bool = True


class MemoryData(ComponentData):
    """A memory. `size` in bits."""

    size: Value
    tensors: TensorsData = TensorsData()
    bits_per_value: dict[str, Value] = Field(default_factory=dict)
    bits_per_value_scale: dict[str, Value] = Field(default_factory=dict)
    bits_per_action: Value | None = None
    values_per_action: dict[str, Value] = Field(default_factory=dict)


class ComputeData(ComponentData):
    """A compute node; of several, the one enabled for the einsum counts."""


class StorageData(Model):
    tensors: tuple[str, ...]
    component: str
    persistent: bool = False
    binding: tuple[Any, ...] = ()


class TemporalData(Model):
    rank_variable: str
    tile_shape: TileSize
    initial_tile_shape: TileSize | None = None


class SpreadData(TemporalData):
    name: str
    component: str


class ComputesData(Model):
    einsum: str
    component: str

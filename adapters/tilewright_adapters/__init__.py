"""Built-in adapters. Only names live here; an adapter is imported when it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from tilewright.plugin.hooks import hookimpl
from tilewright.plugin.specs import AdapterSpec

if TYPE_CHECKING:
    from tilewright.plugin.adapter import Adapter


def _timeloop(options: BaseModel) -> Adapter:
    from tilewright_adapters.timeloop import TimeloopAdapter

    return TimeloopAdapter()


def _timeloop_v4(options: BaseModel) -> Adapter:
    from tilewright_adapters.timeloop import TimeloopAdapter

    return TimeloopAdapter("v4")


def _maestro(options: BaseModel) -> Adapter:
    from tilewright_adapters.maestro import MaestroAdapter

    return MaestroAdapter()


def _zigzag(options: BaseModel) -> Adapter:
    from tilewright_adapters.zigzag import ZigZagAdapter

    return ZigZagAdapter()


def _accelforge(options: BaseModel) -> Adapter:
    from tilewright_adapters.accelforge import AccelForgeAdapter

    return AccelForgeAdapter()


def _native(options: BaseModel) -> Adapter:
    from tilewright_adapters.native import NativeAdapter

    return NativeAdapter()


def _loopnest(options: BaseModel) -> Adapter:
    from tilewright_adapters.loopnest import LoopNestAdapter

    return LoopNestAdapter()


def _union(options: BaseModel) -> Adapter:
    from tilewright_adapters.union import UnionAdapter

    return UnionAdapter()


@hookimpl
def tilewright_plugins() -> list[AdapterSpec]:
    """The built-in adapters."""
    return [
        AdapterSpec(name="tilewright", summary="Tilewright's own YAML files.", factory=_native),
        AdapterSpec(name="timeloop", summary="Timeloop's input files; those it writes are v0.3.", factory=_timeloop),
        AdapterSpec(
            name="timeloop_v4", summary="Timeloop's input files; those it writes are v4.", factory=_timeloop_v4
        ),
        AdapterSpec(name="maestro", summary="MAESTRO's mapping and hardware files.", factory=_maestro),
        AdapterSpec(name="zigzag", summary="ZigZag's accelerator, workload and mapping files.", factory=_zigzag),
        AdapterSpec(
            name="accelforge",
            summary="AccelForge's architecture, workload and mapping of one einsum.",
            factory=_accelforge,
        ),
        AdapterSpec(name="loopnest", summary="Readable loop nests, with the memories beside.", factory=_loopnest),
        AdapterSpec(name="union", summary="Union's abstractions, laid out as in the paper's figures.", factory=_union),
    ]

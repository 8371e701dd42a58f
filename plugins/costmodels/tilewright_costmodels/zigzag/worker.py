"""Code that runs in the child process where ZigZag is loaded. Requests and answers are plain data."""

from __future__ import annotations

from typing import Any

from tilewright.child import ChildFailed
from tilewright_notations.operand_loops import MEMORY_OPERANDS


def answer_request(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of `evaluate_request`.

    Raises:
        ChildFailed: ZigZag raised an error. Its classes are unknown in the parent process, so the text
            is passed.
    """
    try:
        return evaluate_request(request)
    except Exception as error:  # ZigZag may raise anything
        raise ChildFailed("rejected", f"{type(error).__name__}: {error}") from None


def evaluate_request(request: dict[str, Any]) -> dict[str, Any]:
    """Return words moved, energies and cycles of one request; see `request.request`."""
    energy_run, cycle_run = _evaluate(request, "energy"), _evaluate(request, "cycles")
    return {
        "operands": {str(operand): _movements(energy_run, operand) for operand in energy_run.layer.layer_operands},
        "energy_pj": float(energy_run.energy_total),
        "compute_energy_pj": float(energy_run.mac_energy),
        "cycles": float(cycle_run.latency_total2),
        "computing": float(cycle_run.ideal_temporal_cycle),
        "stalled": float(cycle_run.stall_slack_comb),
        "loading": float(cycle_run.data_onloading_cycle),
        "unloading": float(cycle_run.data_offloading_cycle),
        "ports": _ports(cycle_run),
    }


def _movements(evaluation: Any, operand: Any) -> list[dict[str, Any]]:
    """Return the movements of each memory of an operand, innermost first: words in four directions, and energy."""
    from zigzag.hardware.architecture.memory_port import DataDirection
    from zigzag.mapping.data_movement import DataMoveAttr

    directions = {
        "to_low": DataDirection.RD_OUT_TO_LOW,
        "to_high": DataDirection.RD_OUT_TO_HIGH,
        "by_low": DataDirection.WR_IN_BY_LOW,
        "by_high": DataDirection.WR_IN_BY_HIGH,
    }
    rows = []
    for level, movement in enumerate(evaluation.mapping.unit_mem_data_movement[operand]):
        amount = movement.get_attribute(DataMoveAttr.DATA_TRANS_AMOUNT_PER_PERIOD)
        periods = movement.get_attribute(DataMoveAttr.DATA_TRANS_PERIOD_COUNT)
        row: dict[str, Any] = {
            direction: int(amount.get(key)) * int(periods.get(key)) for direction, key in directions.items()
        }
        row["instances"] = int(evaluation.mapping.spatial_mapping.unit_count[operand][level + 1])
        row["tile_words"] = int(evaluation.mapping.data_elem_per_level_unrolled[operand][level + 1])
        row["energy_pj"] = float(evaluation.mem_energy_breakdown[operand][level])
        rows.append(row)
    return rows


def _ports(evaluation: Any) -> list[list[Any]]:
    """Return [memory, whether it is read, cycles that computing waits] of every port that stalls."""
    stalls = evaluation.stall_slack_comb_collect
    return [
        [level.name, port.startswith("r_"), float(cycles)]
        for level, ports in zip(evaluation.mem_level_list, stalls, strict=True)
        for port, cycles in ports.items()
        if cycles > 0
    ]


def _evaluate(request: dict[str, Any], purpose: str) -> Any:
    """Return ZigZag's CostModelEvaluation."""
    from zigzag.cost_model.cost_model import CostModelEvaluation
    from zigzag.datatypes import LayerDim, LayerOperand
    from zigzag.mapping.spatial_mapping_internal import SpatialMappingInternal
    from zigzag.mapping.temporal_mapping import TemporalMapping, TemporalMappingType
    from zigzag.parser.accelerator_factory import AcceleratorFactory
    from zigzag.parser.workload_factory import LayerNodeFactory

    def levels(what: str) -> dict[Any, list[list[tuple[Any, int]]]]:
        return {
            LayerOperand(operand): [[(LayerDim(name), trips) for name, trips in loops] for loops in memories]
            for operand, memories in request[what].items()
        }

    data, accelerator = request[purpose]
    mapping = {
        "name": "default",
        "spatial_mapping": None,
        "memory_operand_links": MEMORY_OPERANDS,
        "temporal_ordering": None,
    }
    layer = LayerNodeFactory(data, [mapping]).create()
    return CostModelEvaluation(
        accelerator=AcceleratorFactory(accelerator).create(),
        layer=layer,
        spatial_mapping=SpatialMappingInternal(levels("spatial"), layer),
        spatial_mapping_int=SpatialMappingInternal(levels("units"), layer),
        temporal_mapping=TemporalMapping(levels("temporal"), layer, TemporalMappingType.UNEVEN),
        cycles_per_op=request["cycles_per_op"],
    )

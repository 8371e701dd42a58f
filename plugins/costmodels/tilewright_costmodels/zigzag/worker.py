"""What is done where ZigZag runs, in a child process; both ways it is plain data."""

from __future__ import annotations

from typing import Any

from tilewright.child import NoAnswer
from tilewright.notations.operand_loops import MEMORY_OPERANDS


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """As `answered`. Raises NoAnswer: what ZigZag raised, whose classes are not known elsewhere."""
    try:
        return answered(request)
    except Exception as error:  # ZigZag may raise anything
        raise NoAnswer("rejected", f"{type(error).__name__}: {error}") from None


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """Words moved, energies and cycles of one request; see `request.request`."""
    costed, timed = _evaluated(request, "energy"), _evaluated(request, "cycles")
    return {
        "operands": {str(operand): _account(costed, operand) for operand in costed.layer.layer_operands},
        "energy_pj": float(costed.energy_total),
        "compute_energy_pj": float(costed.mac_energy),
        "cycles": float(timed.latency_total2),
        "computing": float(timed.ideal_temporal_cycle),
        "stalled": float(timed.stall_slack_comb),
        "loading": float(timed.data_onloading_cycle),
        "unloading": float(timed.data_offloading_cycle),
        "ports": _ports(timed),
    }


def _account(evaluation: Any, operand: Any) -> list[dict[str, Any]]:
    """Per memory of an operand, innermost first: words per instance in four directions, and energy."""
    from zigzag.hardware.architecture.memory_port import DataDirection
    from zigzag.mapping.data_movement import DataMoveAttr

    ways = {
        "to_low": DataDirection.RD_OUT_TO_LOW,
        "to_high": DataDirection.RD_OUT_TO_HIGH,
        "by_low": DataDirection.WR_IN_BY_LOW,
        "by_high": DataDirection.WR_IN_BY_HIGH,
    }
    found = []
    for level, movement in enumerate(evaluation.mapping.unit_mem_data_movement[operand]):
        amount = movement.get_attribute(DataMoveAttr.DATA_TRANS_AMOUNT_PER_PERIOD)
        periods = movement.get_attribute(DataMoveAttr.DATA_TRANS_PERIOD_COUNT)
        row: dict[str, Any] = {way: int(amount.get(each)) * int(periods.get(each)) for way, each in ways.items()}
        row["instances"] = int(evaluation.mapping.spatial_mapping.unit_count[operand][level + 1])
        row["tile_words"] = int(evaluation.mapping.data_elem_per_level_unrolled[operand][level + 1])
        row["energy_pj"] = float(evaluation.mem_energy_breakdown[operand][level])
        found.append(row)
    return found


def _ports(evaluation: Any) -> list[list[Any]]:
    """[memory, whether it is read, cycles that computing waits for the port] of every port that stalls."""
    stalls = evaluation.stall_slack_comb_collect
    return [
        [level.name, port.startswith("r_"), float(cycles)]
        for level, ports in zip(evaluation.mem_level_list, stalls, strict=True)
        for port, cycles in ports.items()
        if cycles > 0
    ]


def _evaluated(request: dict[str, Any], which: str) -> Any:
    """ZigZag's CostModelEvaluation."""
    from zigzag.cost_model.cost_model import CostModelEvaluation
    from zigzag.datatypes import LayerDim, LayerOperand
    from zigzag.mapping.spatial_mapping_internal import SpatialMappingInternal
    from zigzag.mapping.temporal_mapping import TemporalMapping, TemporalMappingType
    from zigzag.parser.accelerator_factory import AcceleratorFactory
    from zigzag.parser.workload_factory import LayerNodeFactory

    def levels(what: str) -> dict[Any, list[list[tuple[Any, int]]]]:
        return {
            LayerOperand(operand): [[(LayerDim(name), trips) for name, trips in loops] for loops in each]
            for operand, each in request[what].items()
        }

    data, accelerator = request[which]
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

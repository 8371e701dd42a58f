"""What is done where ZigZag runs, in a child process; both ways it is plain data."""

from __future__ import annotations

from typing import Any


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """As `answered`; `failed` says what ZigZag raised instead, whose classes are not known elsewhere."""
    try:
        return answered(request)
    except Exception as error:  # ZigZag may raise anything
        return {"failed": f"{type(error).__name__}: {error}"}


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
        "still": {
            str(operand): int(cycles)
            for operand, cycles in costed.temporal_mapping.mac_level_data_stationary_cycle.items()
        },
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

    def levels(what: str) -> dict[Any, list[list[tuple[Any, int]]]]:
        return {
            LayerOperand(operand): [[(LayerDim(name), trips) for name, trips in loops] for loops in each]
            for operand, each in request[what].items()
        }

    bits = request["bits"] if which == "cycles" else 1
    layer = _layer(request["layer"], bits)
    spatial = SpatialMappingInternal(levels("spatial"), layer)
    return CostModelEvaluation(
        accelerator=AcceleratorFactory(_accelerator(request["operations"], request[which])).create(),
        layer=layer,
        spatial_mapping=spatial,
        spatial_mapping_int=spatial,
        temporal_mapping=TemporalMapping(levels("temporal"), layer, TemporalMappingType.UNEVEN),
        cycles_per_op=request["operations"]["cycles"],
    )


def _layer(layer: dict[str, Any], bits: int) -> Any:
    from zigzag.parser.workload_factory import LayerNodeFactory

    data = layer | {
        "operand_precision": {"I": bits, "W": bits, "O": bits, "O_final": bits},
        "operand_source": {},
        "pr_loop_dims": None,
        "pr_loop_sizes": None,
        "padding": None,
    }
    mapping = {
        "name": "default",
        "spatial_mapping": None,
        "memory_operand_links": {"I": "I1", "W": "I2", "O": "O"},
        "temporal_ordering": None,
    }
    return LayerNodeFactory(data, [mapping]).create()


def _accelerator(operations: dict[str, Any], memories: list[dict[str, Any]]) -> dict[str, Any]:
    array = {
        "is_imc": False,
        "unit_energy": operations["energy_pj"],
        "unit_area": 0.0,
        "dimensions": ["D1"],
        "sizes": [operations["units"]],
        "systolic_dimensions": [],
    }
    return {"name": "tilewright", "operational_array": array, "memories": {m["name"]: _memory(m) for m in memories}}


def _memory(memory: dict[str, Any]) -> dict[str, Any]:
    """One port to read and one to write, for all operands."""
    reading = [f"{operand}, tl" for operand in memory["operands"]]
    writing = [f"{operand}, fh" for operand in memory["operands"]]
    if "O" in memory["operands"]:
        reading.append("O, th")
        writing.append("O, fl")
    ports = [
        {"name": f"{kind[0]}_port_1", "type": kind, "bandwidth_min": bits, "bandwidth_max": bits, "allocation": ways}
        for kind, bits, ways in (("read", memory["read_bits"], reading), ("write", memory["write_bits"], writing))
    ]
    return {
        "size": memory["size"],
        "r_cost": memory["r_cost"],
        "w_cost": memory["w_cost"],
        "area": 0.0,
        "latency": 1,
        "mem_type": "sram",
        "auto_cost_extraction": False,
        "force_double_buffering": memory["double"],
        "operands": memory["operands"],
        "ports": ports,
        "served_dimensions": ["D1"],
    }

"""Attributes of hardware: each cost model counts them, or refuses them, or warns of them."""

from typing import Any

import pytest

from support.hardware_attributes import ATTRIBUTES, MAPPING, PLAIN, PROBLEM, stating
from tilewright.application.run.evaluation import build_model, evaluate
from tilewright.plugin.capabilities import Capabilities
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec
from tilewright.reports import Report
from tilewright.schema.architecture import Architecture, Compute, Memory, Network
from tilewright.schema.attribute import attributes_of
from tilewright.schema.density import Density

NAMES = sorted(registration.name for registration in installed().of_kind(CostModelSpec))
DESCRIPTIONS = {"technology", "word_bits", "operands"}
"""Attributes that change no figure by themselves: of estimates, of widths, and of a warning on larger operations."""
TIMELOOP = {"bandwidth_words_per_cycle", "latency_cycles"}
"""Attributes of networks without a meaning in Timeloop. `pipelined` counts a latency where tiles wait."""
MAESTRO = {"instances_per_macro", "write_bandwidth_words_per_cycle", "power_gated_at"} | {
    *("energy_per_hop_pj", "energy_per_router_pj", "energy_per_ingress_pj")
}
"""Attributes without a meaning in MAESTRO, whose bandwidths are those of its networks and of reads from DRAM."""
SILENT = dict.fromkeys(("timeloop", "pipelined", "oracle"), DESCRIPTIONS | TIMELOOP) | {
    "maestro": DESCRIPTIONS - {"operands"} | MAESTRO
}
"""Cost model -> attributes that change none of its figures, and of which it says nothing."""
HALF = PROBLEM.model_copy(
    update={
        "tensors": tuple(
            tensor.model_copy(update={"density": Density(density=0.5) if tensor.name == "W" else None})
            for tensor in PROBLEM.tensors
        )
    }
)
DECLARED = {**attributes_of(Compute), **attributes_of(Memory), **attributes_of(Network)}


def bases() -> list[Architecture]:
    """Return the architecture with all room, with little, with room for one copy, and with leakage."""
    changes: list[dict[str, Any]] = [{}, {"capacity_words": 16}, {"capacity_words": 24}, {"leakage_pj_per_cycle": 1.0}]
    return [PLAIN.with_memories(lambda each: each.model_copy(update=change)) for change in changes]  # noqa: B023


def figures(report: Report) -> tuple[object, ...]:
    return report.valid, report.energy_pj, report.cycles, tuple(str(reason) for reason in report.reasons)


def test_capabilities_of_attributes_exist() -> None:
    named = {item.capability for item in DECLARED.values()} - {None}
    assert named <= Capabilities.model_fields.keys()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_counted_refused_or_warned_of(name: str) -> None:
    model = build_model(name)
    silent = []
    for field in ATTRIBUTES:
        capability = DECLARED[field].capability
        missing = {item.field for item in model.capabilities.uncounted(HALF, stating(field))}
        assert missing == ({field} if capability and not getattr(model.capabilities, capability) else set()), field
        refused = model.capabilities.judge_hardware(HALF, stating(field)).reasons
        if refused:
            assert DECLARED[field].warning is None and {DECLARED[field].code} == {reason.code for reason in refused}
        elif model.model is not None:
            pairs = [
                (evaluate(model, HALF, stating(field, base), MAPPING), evaluate(model, HALF, base, MAPPING))
                for base in bases()
            ]
            counted = any(figures(stated) != figures(plain) for stated, plain in pairs)
            warned = any(set(stated.warnings) - set(plain.warnings) for stated, plain in pairs)
            silent += [] if counted or warned else [field]
    if model.model is not None:
        assert set(silent) == SILENT[name]

"""Contract checks for cost models: what the capabilities declare is accepted, and has an effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.application.run.evaluation import BuiltModel, evaluate_group, evaluate_vector, record_of
from tilewright.errors import NotConformableError
from tilewright.plugin.specs import CostModelSpec
from tilewright.schema.architecture import Architecture
from tilewright.schema.vector import Operand, VectorLayer
from tilewright.testing.checks.groupmapper import GROUP
from tilewright.testing.corpus import Sample
from tilewright.testing.kit import CheckFailure, Subject, check, require

DECLARED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "shared_bandwidth": ("a bandwidth for reads and writes together", {"shared_bandwidth_words_per_cycle": 0.01}),
    "value_widths": ("values of 64 bits in words of 16", {"bits_per_value": {"input": 64, "output": 64}}),
    "memory_ports": (
        "a narrow port",
        {"ports": [{"moves": {"input": ["reads", "fills"], "output": ["updates"]}, "words_per_cycle": 0.01}]},
    ),
    "timing": ("a latency of 1000 cycles", {"timing": {"prefetch": "none", "latency_cycles": 1000}}),
}
"""Capability -> hardware that only such models accept, and the fields of the outermost memory that state it."""
ACTIVATION = VectorLayer(
    name="relu", operator="Relu", rows=12, row=1, operands=(Operand(name="X", words=12),), result=12
)
WITH_UNIT = Architecture.model_validate(
    {
        "name": "vector",
        "clusters": [{"name": "A", "memories": [{"name": "A", "read_energy_pj": 1, "write_energy_pj": 1}]}],
        "compute": {"energy_per_operation_pj": 1},
        "units": [{"name": "V", "lanes": 4, "memory": "A", "energy_pj": {"compare": 1}}],
    }
)


@check(CostModelSpec)
def check_costmodel_accepts_a_group_if_it_declares_groups(subject: Subject) -> None:
    """A model with the capability `groups` accepts two matrix products that share memories."""
    if not subject.spec.capabilities.groups:
        return
    record = record_of(subject.registration, subject.options)
    model = BuiltModel(subject.spec.name, record, subject.make(), subject.spec.capabilities)
    report = evaluate_group(model, GROUP)
    require(
        report.valid,
        f"its capabilities declare groups, but a group of two small matrix products is refused: "
        f"{'; '.join(map(str, report.reasons))}; declare what it lacks (such as inner_backing_store=True), or groups=False",
    )


@check(CostModelSpec)
def check_costmodel_counts_a_vector_layer_if_it_declares_them(subject: Subject) -> None:
    """A model with the capability `vector_layers` counts an activation of 12 elements: 3 cycles of 4 lanes, or more."""
    if not subject.spec.capabilities.vector_layers:
        return
    record = record_of(subject.registration, subject.options)
    model = BuiltModel(subject.spec.name, record, subject.make(), subject.spec.capabilities)
    report = evaluate_vector(model, ACTIVATION, WITH_UNIT)
    told = "; ".join(map(str, report.reasons))
    require(
        report.valid and (report.cycles or 0) >= 3,
        f"its capabilities declare vector_layers, but an activation of 12 elements takes {report.cycles} cycles of a unit of 4 "
        f"lanes{told and f': {told}'}; count it in explain_vector, or do not declare it",
    )


@check(CostModelSpec)
def check_costmodel_counts_what_it_declares(subject: Subject) -> None:
    """Hardware that only models with a declared capability accept is accepted, and changes some cost."""
    for capability, (what, fields) in DECLARED.items():
        if not getattr(subject.spec.capabilities, capability):
            continue
        changed = any(_changes(subject, sample, fields, capability) for sample in subject.samples())
        require(
            changed,
            f"its capabilities declare {capability}, but {what} change no cost of any sample; count it, or do not declare it",
        )


def _changes(subject: Subject, sample: Sample, fields: Mapping[str, Any], capability: str) -> bool:
    batch = sample.batch(16)
    before = subject.make().bind(sample.problem, sample.architecture).evaluate_batch(batch)
    for memory in sample.architecture.memories:
        machine = sample.architecture.replace({f"{memory.name}.{field}": value for field, value in fields.items()})
        try:
            after = subject.make().bind(sample.problem, machine).evaluate_batch(batch)
        except NotConformableError as error:
            raise CheckFailure(
                f"{sample}: its capabilities declare {capability}, but bind refuses it: {error}"
            ) from error
        if not all(
            np.array_equal(getattr(before, name), getattr(after, name)) for name in ("valid", "energy_pj", "cycles")
        ):
            return True
    return False

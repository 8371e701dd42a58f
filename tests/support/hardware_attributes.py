"""One architecture for each attribute of hardware: it states that one, and nothing else."""

from typing import Any

from tilewright.plugin.adapter import HARDWARE_ATTRIBUTES
from tilewright.schema.architecture import Architecture, Compute, Memory, Mesh, Network, Port
from tilewright.schema.attribute import attributes_of
from tilewright.schema.frozen import FrozenDict
from tilewright.schema.mapping import Mapping
from tilewright.schema.problem import Problem
from tilewright.schema.sparse import Saving, SparseMemory
from tilewright.schema.timing import Instruction, Timing

EXAMPLES: dict[str, Any] = {
    "technology": "register",
    "capacity_words": 18,
    "word_bits": 8,
    "bits_per_value": FrozenDict({"output": 32}),
    "update_energy_pj": 9.0,
    "read_bandwidth_words_per_cycle": 0.5,
    "write_bandwidth_words_per_cycle": 0.25,
    "shared_bandwidth_words_per_cycle": 1.0,
    "ports": (Port(moves=FrozenDict({"input": ("reads",)})),),
    "block_words": 2,
    "instances_per_macro": 4,
    "multiple_buffering": 4.0,
    "footprint": "distinct",
    "timing": Timing(step_cycles=50),
    "leakage_pj_per_cycle": 1.0,
    "power_gated_at": "B",
    "sparse": SparseMemory(actions=(Saving.model_validate({"gate": "I", "when_empty": ["W"]}),)),
    "energy_per_hop_pj": 1.0,
    "energy_per_router_pj": 1.0,
    "energy_per_ingress_pj": 1.0,
    "bandwidth_words_per_cycle": 1.0,
    "latency_cycles": 7,
    "meshes": (Mesh(link_words_per_cycle=0.25),),
    "operands": 3,
    "cycles_per_operation": 2,
    "fill_drain_cycles": 5,
    "start_cycles": 40,
    "instruction": Instruction(memory="C", dimensions=("K",), iterations=1, cycles=9),
}
"""Attribute -> a value that is not neutral."""
ATTRIBUTES = sorted(HARDWARE_ATTRIBUTES)
PROBLEM = Problem.from_yaml(
    """
name: strided
operation: conv1d
dimensions: {K: 4, C: 4, P: 4, R: 1}
tensors:
- {name: I, role: input, projection: [C, 2*P + R]}
- {name: W, role: weight, projection: [K, C, R]}
- {name: O, role: output, projection: [K, P]}
"""
)
_ENERGIES = "read_energy_pj: 1, write_energy_pj: 1"
PLAIN = Architecture.from_yaml(
    f"""
name: plain
clusters:
- {{name: A, memories: [{{name: A, {_ENERGIES}}}]}}
- {{name: B, memories: [{{name: B, {_ENERGIES}}}], fanout: {{size: 4}}}}
- {{name: C, memories: [{{name: C, capacity_words: 96, {_ENERGIES}}}]}}
compute: {{energy_per_operation_pj: 1}}
"""
)
_WHOLE = "{K: 4, C: 4, P: 4, R: 1}"
MAPPING = Mapping.from_yaml(
    f"""
entries:
- {{target: A, keep: [I, W, O], temporal_tile_sizes: {_WHOLE}}}
- {{target: B, keep: [I, W, O], temporal_tile_sizes: {_WHOLE}}}
- {{target: B, temporal_tile_sizes: {{K: 2, C: 2, P: 4, R: 1}}, temporal_order: [K, C, P, R], spatial_tile_sizes: {{K: 1}}}}
- {{target: C, keep: [I, W, O], temporal_tile_sizes: {{K: 1, C: 2, P: 4, R: 1}}}}
- {{target: C, temporal_tile_sizes: {{C: 1, P: 1, R: 1}}, temporal_order: [K, C, P, R]}}
"""
)


def stating(field: str, base: Architecture = PLAIN) -> Architecture:
    """Return the architecture whose memory C, compute unit or network states the attribute.

    The bandwidth of reads is that of memory A, and the bits of words are those of all, as some notations have no others.
    """
    value, where = EXAMPLES[field], {"read_bandwidth_words_per_cycle": "A", "word_bits": "ABC"}.get(field, "C")
    if field in attributes_of(Memory):
        return base.with_memories(lambda part: part.model_copy(update={field: value}) if part.name in where else part)
    if field in attributes_of(Compute):
        return base.model_copy(update={"compute": base.compute.model_copy(update={field: value})})
    outer, fanned, *inner = base.clusters
    fanout = fanned.fanout.model_copy(update={"network": Network(**{field: value})})
    return base.model_copy(update={"clusters": (outer, fanned.model_copy(update={"fanout": fanout}), *inner)})


def path(field: str) -> str:
    """Return the code of the dropped field."""
    kinds = {"memory": Memory, "compute": Compute, "network": Network}
    return next(f"{name}.{field}" for name, kind in kinds.items() if field in attributes_of(kind))


assert set(EXAMPLES) == HARDWARE_ATTRIBUTES, "give an example of each attribute"

"""Attributes of memories in Timeloop's files: the keys that the reader and the writer share, and what is refused."""

from __future__ import annotations

from dataclasses import replace

from tilewright.plugin.adapter import NotationTable
from tilewright_adapters.timeloop.reading.energies import LEAK

NUMBERS = {
    "multiple_buffering": ("multiple-buffering", 1.0),
    "read_bandwidth_words_per_cycle": ("read_bandwidth", 0.0),
    "write_bandwidth_words_per_cycle": ("write_bandwidth", 0.0),
    "shared_bandwidth_words_per_cycle": ("shared_bandwidth", 0.0),
}
"""Attribute -> key with the same number, and its least value. v4 has underscores in place of hyphens."""
ENERGIES = {"leakage_pj_per_cycle": LEAK}
"""Attribute -> actions with the same energy; the first is written."""
HOPS = ("energy_per_hop_pj", "energy_per_router_pj", "energy_per_ingress_pj")
"""Energies of networks, which v4 does not have."""
V3 = NotationTable(
    "Timeloop's files",
    written=(
        *(*NUMBERS, *ENERGIES, "technology", "capacity_words", "word_bits", "update_energy_pj", "block_words"),
        *("instances_per_macro", "power_gated_at", "sparse", *HOPS),
    ),
    beside=("ports",),
    instead={
        "cycles_per_operation": "Timeloop has 1",
        "footprint": "Timeloop counts bounding boxes",
        "operands": "Timeloop's files have no such key",
        "timing": "in Timeloop all transfers overlap",
        "widths": "in Timeloop each value is a word",
    },
)
V4 = replace(V3, title="Timeloop v4's files", written=[name for name in V3.written if name not in HOPS])

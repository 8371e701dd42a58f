"""Parser of MAESTRO's hardware file: a sequence of `key: number`."""

from __future__ import annotations

from tilewright_adapters.maestro.words import Words
from tilewright_notations.directives import DirectiveHardware

KEYS = {
    "num_pes": "num_pes",
    "l1_size_cstr": "l1_size",
    "l2_size_cstr": "l2_size",
    "noc_bw_cstr": "noc_bandwidth",
    "NoC_NumHops": "noc_latency",
    "offchip_bw_cstr": "offchip_bandwidth",
}
"""MAESTRO's key -> field. In a file, the latency is the number of hops."""
OLDER = {"NumPEs": "num_pes", "L1Size": "l1_size_cstr", "L2Size": "l2_size_cstr", "NoC_BW": "noc_bw_cstr"}
"""Keys of older files."""


def read_hardware(words: Words) -> DirectiveHardware:
    """Return the hardware. Raises InputError with the line."""
    numbers: dict[str, int] = {}
    while words.next:
        key = words.one_of((*KEYS, *OLDER), "key of a hardware file")
        key = OLDER.get(key, key)
        if KEYS[key] in numbers:
            raise words.error(f"{key} is given twice")
        numbers[KEYS[key]] = words.number(key, least=0 if key == "NoC_NumHops" else 1)
    return DirectiveHardware.model_validate(numbers)

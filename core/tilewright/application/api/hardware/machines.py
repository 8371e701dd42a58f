"""`new_architecture`: a file for a machine with a shared buffer and registers, in the units of data sheets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from tilewright.application.api.call_arguments import at_least, checked
from tilewright.errors import InputError
from tilewright.estimation.architectures import read_architecture
from tilewright.files import write_text
from tilewright.schema.architecture import Architecture
from tilewright.schema.document import commented, dump_yaml, parse_document
from tilewright.schema.units import in_words
from tilewright.values import MisplacedError

ACCESS_BITS = 64
"""Width of an access of DRAM and buffer. Estimators know arrays from 32 bits on."""
MAX_REGISTERS = 64
"""Largest number of words in flip-flops without a decoder; larger ones are an array."""
HEAD = """\
A buffer that all units share, and registers at each unit. Sizes and rates have units. Energies and areas are estimated
from the sizes: `component` names what a part is built from, and a given energy, such as read_energy_pj, has precedence.
`bandwidth` is that of reads and writes together; a size that is not given is unlimited. docs/schemas.md has all keys.
"""
_ARRAY = re.compile(r"\s*([0-9]{1,7})\s*(?:x\s*([0-9]{1,7})\s*)?")


@checked
def new_architecture(
    name: str,
    file: str | os.PathLike[str] | None = None,
    *,
    array: str = "16x16",
    buffer: str = "128 KiB",
    registers: str = "64 words",
    word_bits: int = 16,
    dram: str | None = "25.6 GB/s",
    buffer_bandwidth: str | None = None,
    clock: str = "1 GHz",
    technology: str = "45 nm",
) -> Architecture:
    """Return an architecture with a shared buffer, and with registers at each unit, as `tilewright library new` does.

    Energies and areas are estimated from the sizes.

    Args:
        name: Name of the architecture.
        file: YAML file to write, as a start for changes. It has sizes and rates in their units.
        array: Compute units along X and along Y, such as `14x12`, or their number.
        buffer, registers: Capacity of the buffer, and of the registers of one unit.
        word_bits: Bits of a value.
        dram, buffer_bandwidth: Bandwidth of reads and writes together, such as `25.6 GB/s` or `64 B/cycle`. None: unlimited.
        clock: Clock frequency.
        technology: Technology node.

    Raises:
        InputError: A value has another form, or no estimator covers a size.
        OutputError: The file cannot be written.

    Example:
        >>> import tilewright as tw
        >>> tw.new_architecture("mine", array="8x8", buffer="64 KiB").compute_instances
        64
    """
    text, architecture = architecture_file(
        name, array, buffer, registers, word_bits, dram, buffer_bandwidth, clock, technology
    )
    if file is not None:
        write_text(Path(file), text)
    return architecture


def architecture_file(
    name: str,
    array: str,
    buffer: str,
    registers: str,
    word_bits: int,
    dram: str | None,
    buffer_bandwidth: str | None,
    clock: str,
    technology: str,
) -> tuple[str, Architecture]:
    """Return the text of a file, and its architecture, for the arguments of `new_architecture`. Raises InputError."""
    at_least(1, word_bits=word_bits)
    data = _data(name, _sides(array), word_bits, buffer, registers, clock, technology)
    for index, rate in ((0, dram), (1, buffer_bandwidth)):
        if rate is not None:
            data["clusters"][index]["memories"][0]["bandwidth"] = rate
    try:
        words = in_words(data)["clusters"][-1]["memories"][0]["capacity_words"]
    except MisplacedError as error:
        raise InputError(str(error)) from None
    data["clusters"][-1]["memories"][0] |= (
        {"technology": "register", "component": "register"}
        if words <= MAX_REGISTERS
        else {"block_words": _words_of(ACCESS_BITS // 2, word_bits), "component": "sram"}
    )
    text = commented(HEAD) + dump_yaml(data, flat=True)
    try:
        return text, read_architecture(parse_document(text))
    except InputError as error:  # without a place in a file that is not written yet
        raise InputError(error.message.removeprefix(f"{error.location}: "), hint=error.hint) from None


def _data(
    name: str, sides: list[int], bits: int, buffer: str, registers: str, clock: str, technology: str
) -> dict[str, Any]:
    """Return the file's data, without bandwidths, and without what registers are built from."""
    block, (columns, *rows) = _words_of(ACCESS_BITS, bits), sides
    dram = {"name": "dram", "attributes": {"kind": "LPDDR4"}}
    shared = {"word_bits": bits, "block_words": block}
    return {
        "kind": "architecture",
        "name": name,
        "technology": technology,
        "clock": clock,
        "clusters": [
            {"name": "DRAM", "memories": [{"name": "DRAM", "technology": "dram", **shared, "component": dram}]},
            {
                "name": "Buffer",
                "memories": [{"name": "Buffer", "size": buffer, **shared, "component": "sram"}],
                "fanout": {"size": columns, "axis": "X"},
            },
            *({"name": "Column", "fanout": {"size": size, "axis": "Y"}} for size in rows),
            {"name": "PE", "memories": [{"name": "Registers", "size": registers, "word_bits": bits}]},
        ],
        "compute": {"name": "MAC", "word_bits": bits, "component": "mac"},
    }


def _sides(array: str) -> list[int]:
    """Return the units along X and, if two numbers are given, along Y. Raises InputError."""
    match = _ARRAY.fullmatch(str(array))
    sides = [] if match is None else [int(side) for side in match.groups() if side is not None]
    if not sides or min(sides) < 1:
        raise InputError(f"array is {array!r}; expected the units along X and Y, such as 16x16, or their number")
    return sides


def _words_of(bits: int, word_bits: int) -> int:
    """Return the words of an access of about this width, one at least."""
    return max(1, -(-bits // word_bits))

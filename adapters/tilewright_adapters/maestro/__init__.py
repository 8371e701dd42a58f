"""The notation of MAESTRO: a mapping file (network, layers, dataflow) and a hardware file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.adapter import InputSet
from tilewright.conformability import Reason, Verdict
from tilewright.directives import DirectiveHardware, DirectiveProgram
from tilewright.errors import InputError, NotConformableError
from tilewright_adapters.maestro.hardware import read_hardware
from tilewright_adapters.maestro.network import NetworkReader, kind_of
from tilewright_adapters.maestro.words import Words, read_words


class MaestroAdapter:
    """Reads MAESTRO's input files. What they say stays in directives: overlapping tiles and diagonals have no form
    among tile sizes."""

    def parse(self, files: Sequence[Path]) -> InputSet:
        """One mapping file, and one hardware file or none (then MAESTRO's defaults: 1 PE, 1 hop, no limits).

        Raises:
            InputError: with file and line.
        """
        found: dict[str, Words] = {}
        for path in files:
            words = read_words(path)
            if not words.next:
                raise InputError(f"{path} is empty", hint="MAESTRO reads a mapping file and a hardware file")
            kind = kind_of(words)
            if kind in found:
                raise words.error(f"a second {kind} file; the first is {found[kind].source}")
            found[kind] = words
        if "mapping" not in found:
            raise InputError("no mapping file among these files", hint="it begins with the word Network")
        hardware = read_hardware(found["hardware"]) if "hardware" in found else DirectiveHardware()
        name, layers = NetworkReader(found["mapping"]).read()
        warnings = () if "hardware" in found else ("no hardware file: one PE, one hop, everything else without limit",)
        program = DirectiveProgram(name=name, layers=layers, hardware=hardware)
        return InputSet(directives=program, warnings=warnings)

    def expressible(self, inputs: InputSet) -> Verdict:
        reason = Reason(code="not_built", where="", message="writing MAESTRO files is not built yet")
        return Verdict(reasons=(reason,))

    def render(self, inputs: InputSet) -> dict[str, str]:
        raise NotConformableError("adapter maestro", self.expressible(inputs).reasons)

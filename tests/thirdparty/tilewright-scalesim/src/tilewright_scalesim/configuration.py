"""Reader and writer of configurations: DRAM, three buffers with double buffering, and an array of units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from configparser import Error as ParserError
from pathlib import Path

from pydantic import ValidationError

from tilewright import Architecture
from tilewright.errors import InputError, Location, NotConformableError
from tilewright.plugin import InputSet, NotationTable, Reason, Verdict

FILE = "scale.cfg"
PRESETS = "architecture_presets"
BUFFERS = {"Ifmap": "input", "Filter": "weight", "Ofmap": "output"}
"""Operand in the keys of SCALE-Sim -> role of the tensor that the buffer holds."""
WORDS_PER_KB = 1024
"""A word has 8 bits."""
TABLE = NotationTable(
    "SCALE-Sim's configurations",
    written=("technology", "capacity_words", "word_bits", "multiple_buffering", "write_bandwidth_words_per_cycle"),
    instead={"leakage": "SCALE-Sim has no energies"},
)
KEYS = ("ArrayHeight", "ArrayWidth", *(f"{name}SramSzkB" for name in BUFFERS))
MAX_BYTES = 100_000


class Configuration:
    """Adapter for one configuration, which is hardware alone."""

    def expressible(self, inputs: InputSet) -> Verdict:
        """Return reasons against all but an architecture of the form that `parse` returns."""
        return Verdict(reasons=tuple(_faults(inputs)))

    def render(self, inputs: InputSet) -> dict[str, str]:
        """Return name -> text of the file; raise NotConformableError with the reasons of `expressible`."""
        verdict = self.expressible(inputs)
        if not verdict or inputs.architecture is None:
            raise NotConformableError("adapter scalesim", verdict.reasons)
        return {FILE: _text(inputs.architecture)}

    def parse(self, files: Sequence[Path]) -> InputSet:
        """Return the architecture in one file; raise InputError."""
        if len(files) != 1:
            raise InputError(f"{len(files)} files are given; expected one configuration")
        (file,) = files
        try:
            if file.stat().st_size > MAX_BYTES:
                raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {file}: {error}") from None
        return _read(text, str(file))


def _faults(inputs: InputSet) -> Iterator[Reason]:
    for part in ("problem", "mapping", "constraints", "directives", "group", "model_options"):
        if getattr(inputs, part):
            yield Reason(code=part, where="the input set", message=f"a configuration has no {part}")
    if inputs.architecture is None:
        yield Reason(code="nothing", where="the input set", message="there is no architecture")
        return
    refused = list(TABLE.refused(inputs.architecture))
    yield from refused
    try:
        same = _read(_text(inputs.architecture), FILE).architecture == inputs.architecture
    except InputError:
        same = False
    if not same and not refused:
        message = "it is no array of units below DRAM and three double buffers, without energies"
        yield Reason(code="form", where=inputs.architecture.name, message=message)


def _read(text: str, source: str) -> InputSet:
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(text, source)
        if not parser.has_section(PRESETS):
            raise ValueError(f"[{PRESETS}] is missing")
        presets = parser[PRESETS]
        limited = parser.get("run_presets", "InterfaceBandwidth", fallback="CALC").strip().upper() == "USER"
        keys = (*KEYS, "Bandwidth") if limited else KEYS
        if missing := [key for key in keys if key not in presets]:
            raise ValueError(f"[{PRESETS}] has no {', '.join(missing)}")
        rate = {"write_bandwidth_words_per_cycle": float(presets["Bandwidth"])} if limited else {}
        free = {"word_bits": 8, "read_energy_pj": 0, "write_energy_pj": 0}
        buffers = [
            {
                "name": f"{name}SRAM",
                "holds": [role],
                "capacity_words": int(presets[f"{name}SramSzkB"]) * WORDS_PER_KB,
                "multiple_buffering": 2,
                **({} if role == "output" else rate),
                **free,
            }
            for name, role in BUFFERS.items()
        ]
        architecture = Architecture.model_validate(
            {
                "name": parser.get("general", "run_name", fallback="scalesim").strip().strip("\"'"),
                "clusters": [
                    {"name": "DRAM", "memories": [{"name": "DRAM", "technology": "dram", **free}]},
                    {
                        "name": "SRAM",
                        "memories": buffers,
                        "fanout": {"size": int(presets["ArrayHeight"]), "axis": "Y"},
                    },
                    {"name": "Row", "fanout": {"size": int(presets["ArrayWidth"])}},
                ],
                "compute": {"energy_per_operation_pj": 0, "word_bits": 8},
            }
        )
    except (ParserError, ValueError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error).partition("\n")[0]
        raise InputError(f"not a configuration of SCALE-Sim: {said}", location=Location(source)) from None
    known = {key.lower() for key in (*KEYS, "Bandwidth")}
    ignored = [f"{key} = {value}" for key, value in presets.items() if key not in known]
    warnings = ["SCALE-Sim has no energies: all are 0"]
    if ignored:
        warnings.append(f"ignored: {', '.join(ignored)}")
    return InputSet(architecture=architecture, warnings=tuple(warnings))


def _text(architecture: Architecture) -> str:
    """Return a configuration with the sizes of an architecture; those that it lacks are 1."""
    height, width, *_ = [*(cluster.fanout.size for cluster in architecture.clusters[1:]), 1, 1]
    sizes = {memory.name: (memory.capacity_words or 1) // WORDS_PER_KB for memory in architecture.memories}
    rates = {memory.write_bandwidth_words_per_cycle for memory in architecture.memories} - {None}
    presets: dict[str, object] = {"ArrayHeight": height, "ArrayWidth": width}
    presets |= {f"{name}SramSzkB": sizes.get(f"{name}SRAM", 1) for name in BUFFERS}
    if rates:
        presets["Bandwidth"] = rates.pop()
    sections: dict[str, dict[str, object]] = {
        "general": {"run_name": architecture.name},
        PRESETS: presets,
        "run_presets": {"InterfaceBandwidth": "USER" if "Bandwidth" in presets else "CALC"},
    }
    blocks = [[f"[{title}]", *(f"{key} = {value}" for key, value in keys.items())] for title, keys in sections.items()]
    return "\n\n".join(map("\n".join, blocks)) + "\n"

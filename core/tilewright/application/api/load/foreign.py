"""Files of other tools as inputs of `map`. Parts that a reader cannot represent are logged."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.application.api.load.kinds import file_suffixes
from tilewright.application.conversion.map_inputs import MapInputs, read_map_inputs
from tilewright.errors import InputError, UnsupportedError
from tilewright.plugin.registry import installed
from tilewright.schema.architecture import Architecture
from tilewright.schema.workload import Workload

Path_ = str | os.PathLike[str]


def foreign(
    work: Sequence[Path_] | Workload | None,
    hardware: Sequence[Path_],
    notation: str | None = None,
    reading: Mapping[str, Any] | None = None,
) -> MapInputs:
    """Call `read_map_inputs` with the installed adapters; raise InputError if the files are invalid."""
    paths = work if work is None or isinstance(work, Workload) else [Path(path) for path in work]
    inputs = read_map_inputs(paths, [Path(path) for path in hardware], installed(), notation, reading)
    for warning in inputs.warnings:
        logging.getLogger("tilewright").warning("warning: %s", warning)
    return inputs


def foreign_workload(source: Path_) -> Workload:
    """Return the layers in a file or folder of another tool; raise InputError if there are none."""
    try:
        workload = foreign([source], []).workload
    except UnsupportedError:
        raise
    except InputError as error:
        hint = f"{error.hint}; frontends read {file_suffixes()}"
        raise InputError(error.message, location=error.location, hint=hint) from None
    assert workload is not None  # layer files were given
    return workload


def foreign_architecture(source: Path_) -> Architecture:
    """Return the hardware in a file or folder of another tool; raise InputError if there is none."""
    architecture = foreign(None, [source]).architecture
    assert architecture is not None  # hardware files were given
    return architecture

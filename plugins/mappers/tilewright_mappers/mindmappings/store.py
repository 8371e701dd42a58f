"""Trained surrogates on disk, in the folder `mindmappings` of the cache."""

from __future__ import annotations

import io
import itertools
import logging
from hashlib import sha256
from pathlib import Path
from typing import Annotated
from zipfile import BadZipFile

import numpy as np
from pydantic import Field

from tilewright.digests import of_search
from tilewright.errors import InputError, OutputError
from tilewright.files import cache_folder, made, read_bytes, write_bytes
from tilewright.mapspace.space import MapSpace
from tilewright.plugin.guard.hosted import packages_of
from tilewright.values import Model
from tilewright_mappers import MindMappingsOptions
from tilewright_mappers.mindmappings.dataset import TrainingSet, size_ranges
from tilewright_mappers.mindmappings.surrogate import Surrogate

MAX_BYTES = 2**28
"""Maximum size of a file."""


def key_of(space: MapSpace, options: MindMappingsOptions, *plugins: object) -> str:
    """Return the digest of everything that determines a surrogate: class, settings, and code of the plugins.

    The class is the problem without its name and its sizes, but with their ranges; the architecture;
    and the rules of the map space.
    """
    problem = space.problem.model_dump(mode="json", exclude={"name", "source", "dimensions"})
    sizes = list(zip(space.problem.dimension_names, size_ranges(space.problem), strict=True))
    parts = {
        "problem": problem,
        "sizes": sizes,
        "architecture": space.architecture.model_dump(mode="json"),
        "rules": space.rules.model_dump(mode="json"),
        "skeleton": repr(space.skeleton),
        "narrowed": [space.tile_copies, space.max_unrolled_loops, space.outputs_span_windows],
        "training": options.model_dump(include={"model", "mappings", "epochs", "width"}),
    }
    return of_search(parts, {package for plugin in plugins for package in packages_of(plugin)})


Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Training(Model):
    """Record of a training.

    Attributes:
        mappings, problems: Size of the training set.
        cpu_seconds: CPU seconds for the training set and the training.
        error: Root of the mean squared error of log2 of the EDP, for problems that were not trained on.
        data: Digest of the training set.
    """

    mappings: int
    problems: int
    cpu_seconds: Finite
    error: Finite
    data: str


def digest_of_data(data: TrainingSet) -> str:
    return sha256(data.vectors.tobytes() + data.targets.tobytes()).hexdigest()


def load(key: str, length: int) -> tuple[Surrogate, Training] | None:
    """Return the surrogate under a key, for vectors of `length`; None if there is none.

    A damaged file is named in a warning.
    """
    try:
        path = _path(key)
        if not path.exists():
            return None
        with np.load(io.BytesIO(read_bytes(path, MAX_BYTES)), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        record = Training.model_validate_json(arrays.pop("record").item())
        inputs, outputs = arrays.pop("inputs"), arrays.pop("outputs")
        layers = [(arrays.pop(f"weights{n}"), arrays.pop(f"biases{n}")) for n in range(len(arrays) // 2)]
        widths = [length, *(len(biases) for _, biases in layers)]
        shapes = [(4, length), (2, 2), *(shape for a, b in itertools.pairwise(widths) for shape in ((a, b), (b,)))]
        numbers = [inputs, outputs, *(array for layer in layers for array in layer)]
        if [number.shape for number in numbers] != shapes or widths[-1] != 2 or arrays:
            raise ValueError("its arrays have other shapes")
        if not all(number.dtype == np.float32 and np.isfinite(number).all() for number in numbers):
            raise ValueError("it has numbers that are not finite")
        return Surrogate(layers, inputs, outputs), record
    except OutputError:
        return None  # `keep` reports it
    except (InputError, ValueError, TypeError, KeyError, EOFError, OSError, BadZipFile) as error:
        _warn(f"the surrogate {path} is damaged and trained again: {error}")
        return None


def keep(key: str, surrogate: Surrogate, record: Training) -> None:
    """Store a surrogate, or print a warning."""
    arrays = {f"weights{n}": weights for n, (weights, _) in enumerate(surrogate.layers)}
    arrays |= {f"biases{n}": biases for n, (_, biases) in enumerate(surrogate.layers)}
    data = io.BytesIO()
    text = np.array(record.model_dump_json())
    np.savez(data, inputs=surrogate.inputs, outputs=surrogate.outputs, record=text, **arrays)
    try:
        path = _path(key)
        made(path.parent)
        write_bytes(path, data.getvalue())
    except OutputError as error:
        _warn(f"the surrogate is not kept: {error.message}")


def _path(key: str) -> Path:
    return cache_folder() / "mindmappings" / f"{key}.npz"


def _warn(text: str) -> None:
    logging.getLogger("tilewright").warning("warning: mindmappings: %s", text)

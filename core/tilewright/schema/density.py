"""Density of a tensor: how many of its values are nonzero, and where.

Source: Sparseloop (Wu et al., MICRO 2022), section 5.3.2.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, ValidationInfo, model_serializer, model_validator

from tilewright.errors import InputError
from tilewright.files import read_bytes
from tilewright.values import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Distribution = Literal["structured", "uniform", "banded", "data"]
MAX_FILE = 2**30
"""Maximum size of a NumPy file in bytes."""
MAX_WORDS = 2**28
"""Maximum number of values of actual data."""
_TEXT = 8_000
"""Characters of one text of packed bits."""


class Nonzeros(Model):
    """Positions of the nonzero values of actual data.

    Input may be a NumPy array, or the path of a .npy file, relative to the folder of the file that contains it.
    The values are then no longer needed: only their positions are kept.
    """

    shape: tuple[Annotated[int, Field(ge=1, le=MAX_WORDS, strict=True)], ...] = Field(max_length=32)
    packed: tuple[str, ...]
    """One bit per value in row-major order, compressed by zlib, in base64."""

    @model_validator(mode="before")
    @classmethod
    def _from_array(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str | os.PathLike):
            folder = (info.context or {}).get("folder", "")
            try:
                value = _read_array(os.path.join(folder, value))
            except InputError as error:
                raise ValueError(str(error)) from None
        if isinstance(value, dict | Nonzeros):
            return value
        import numpy as np  # problems without data need no arrays

        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            kind = f"values of type {value.dtype}" if isinstance(value, np.ndarray) else "something else"
            raise ValueError(f"expected numbers: a NumPy array, or the path of a .npy file (found {kind})")
        bits = np.packbits(value.ravel(order="C") != 0).tobytes()
        text = base64.b64encode(zlib.compress(bits)).decode()
        return {"shape": value.shape, "packed": tuple(text[at : at + _TEXT] for at in range(0, len(text), _TEXT))}

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if math.prod(self.shape) > MAX_WORDS:
            raise ValueError(f"{math.prod(self.shape):,} values; expected at most {MAX_WORDS:,}")
        _ = self.array
        return self

    @property
    def array(self) -> NDArray[np.bool_]:
        """Whether each value is nonzero, in the shape of the data."""
        return _unpacked(self.shape, self.packed)

    @property
    def fraction(self) -> float:
        """Fraction of nonzero values."""
        return float(self.array.mean())


@lru_cache(maxsize=64)  # of a model, a cached array would spoil equality
def _unpacked(shape: tuple[int, ...], packed: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return the flags that `packed` holds, in `shape`. Raises ValueError if their number differs."""
    import numpy as np

    count = math.prod(shape)
    expected = -(-count // 8)
    try:
        bits = zlib.decompressobj().decompress(base64.b64decode("".join(packed), validate=True), expected + 1)
    except (binascii.Error, zlib.error, ValueError):
        bits = b""
    if len(bits) != expected:
        raise ValueError(f"'packed' has no {count:,} bits; give the path of a .npy file instead")
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), count=count).astype(np.bool_).reshape(shape)
    flags.flags.writeable = False
    return flags


def _read_array(path: str) -> NDArray[Any]:
    """Read a .npy file without executing anything in it. Raises InputError."""
    import io
    from tokenize import TokenError

    import numpy as np

    content = read_bytes(path, MAX_FILE)
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, kind = read(stream)
        values = np.frombuffer(content, kind, offset=stream.tell())
        return values.reshape(shape, order="F" if by_columns else "C")
    except (ValueError, TypeError, OverflowError, MemoryError, RecursionError, SyntaxError, TokenError):
        raise InputError(f"{path} is not a NumPy file of numbers; expected what numpy.save writes") from None


class Density(Model):
    """Fraction of nonzero values of a tensor, and their distribution. A file may give the number alone: `density: 0.25`.

    `structured`: every tile has the mean number of nonzeros. `uniform`: a fixed number of nonzeros
    is placed at random, so that tiles follow the hypergeometric distribution. `banded`: a square
    matrix is nonzero where row and column differ by at most `band_width`. `data`: nonzeros are those of an array.
    """

    distribution: Distribution = "structured"
    density: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    """Fraction of nonzero values; None for `banded` and `data`, where it follows from the width or the array."""
    band_width: Annotated[int, Field(ge=0, le=2**40, strict=True)] | None = None
    """Number of diagonals on each side of the main one; None unless `banded`."""
    data: Nonzeros | None = None
    """Actual data, one axis per coordinate of the tensor: a .npy file or an array; None unless `data`."""

    @model_validator(mode="before")
    @classmethod
    def _number_alone(cls, value: Any) -> Any:
        if isinstance(value, dict) and "data" in value:
            return {"distribution": "data"} | value
        return {"density": value} if isinstance(value, int | float) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        needed = {"banded": "band_width", "data": "data"}.get(self.distribution, "density")
        if getattr(self, needed) is None:
            raise ValueError(f"a {self.distribution} density needs '{needed}'")
        for other in {"density", "band_width", "data"} - {needed}:
            if getattr(self, other) is not None:
                raise ValueError(f"a {self.distribution} density has no '{other}', only '{needed}'")
        return self

    @model_serializer(mode="wrap")
    def _shortly(self, handler: SerializerFunctionWrapHandler) -> Any:
        if self.distribution == "structured":
            return self.density
        if self.data is not None:
            return {"data": handler(self)["data"]}
        return {name: value for name, value in handler(self).items() if value is not None}

    def __str__(self) -> str:
        if self.distribution == "banded":
            return f"banded, {self.band_width} diagonals on each side"
        if self.data is not None:
            return f"{self.data.fraction:.3g} of actual data"
        return f"{self.density:g} {self.distribution}"

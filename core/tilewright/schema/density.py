"""Density of a tensor: how many of its values are nonzero, and where.

Source: Sparseloop (Wu et al., MICRO 2022), section 5.3.2.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

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
MAX_WORDS = 2**26
"""Maximum number of values of actual data in one document; evaluators need some 16 bytes for each."""
_TEXT = 8_000
"""Characters of one text of packed bits."""


class Nonzeros(Model):
    """Positions of the nonzero values of actual data.

    Input may be a NumPy array, or the path of a .npy file, relative to the folder of the file that contains it.
    The values are then no longer needed: only their positions are kept.

    Example:
        >>> import numpy as np
        >>> from tilewright.plugin import Nonzeros
        >>> Nonzeros.model_validate(np.array([[1, 0], [0, 0]])).fraction
        0.25
    """

    _short_form: ClassVar = {
        "type": "string",
        "description": "Path of a .npy file, relative to the folder of this file.",
    }
    shape: tuple[Annotated[int, Field(ge=1, le=MAX_WORDS, strict=True)], ...] = Field(max_length=32)
    """Values along each axis."""
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
        if value.size > MAX_WORDS:
            raise ValueError(f"{value.size:,} values; expected at most {MAX_WORDS:,}")
        if value.dtype.kind == "f" and np.isnan(value).any():
            raise ValueError("some values are no numbers (NaN); expected zeros and nonzero numbers")
        bits = np.packbits(value.ravel(order="C") != 0).tobytes()
        text = base64.b64encode(zlib.compress(bits)).decode()
        return {"shape": value.shape, "packed": tuple(text[at : at + _TEXT] for at in range(0, len(text), _TEXT))}

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if math.prod(self.shape) > MAX_WORDS:
            raise ValueError(f"{math.prod(self.shape):,} values; expected at most {MAX_WORDS:,}")
        self._bits()
        return self

    @property
    def array(self) -> NDArray[np.bool_]:
        """Whether each value is nonzero, in the shape of the data. Each call unpacks the bits."""
        import numpy as np

        bits = np.frombuffer(self._bits(), np.uint8)
        flags = np.unpackbits(bits, count=math.prod(self.shape)).view(np.bool_).reshape(self.shape)
        flags.flags.writeable = False
        return flags

    @property
    def fraction(self) -> float:
        """Fraction of nonzero values."""
        return int.from_bytes(self._bits()).bit_count() / math.prod(self.shape)

    def _bits(self) -> bytes:
        """Return the packed bits. Raises ValueError if their number is not that of the values."""
        count = math.prod(self.shape)
        expected = -(-count // 8)
        try:
            packed = base64.b64decode("".join(self.packed), validate=True)
            bits = zlib.decompressobj().decompress(packed, expected + 1)
        except (binascii.Error, zlib.error, ValueError):
            bits = b""
        if len(bits) != expected or (count % 8 and bits[-1] & (0xFF >> count % 8)):
            raise ValueError(f"'packed' has no {count:,} bits; give the path of a .npy file instead")
        return bits


def check_data(tensors: Iterable[Density | None]) -> None:
    """Refuse more than `MAX_WORDS` values of actual data in one document; equal data count once.

    Raises:
        ValueError: There are more.
    """
    total = sum(math.prod(data.shape) for data in {tensor.data for tensor in tensors if tensor and tensor.data})
    if total > MAX_WORDS:
        raise ValueError(f"its tensors have {total:,} values of actual data; expected at most {MAX_WORDS:,} in total")


def _read_array(path: str) -> NDArray[Any]:
    """Read a .npy file without executing anything in it. Raises InputError."""
    import io
    from tokenize import TokenError

    import numpy as np

    content = read_bytes(path, MAX_FILE)
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError("unknown version")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, kind = read(stream)
        if any(extent < 0 for extent in shape):
            raise ValueError("negative extent")
        values = np.frombuffer(content, kind, offset=stream.tell())
        return values.reshape(shape, order="F" if by_columns else "C")
    except (ValueError, TypeError, OverflowError, MemoryError, RecursionError, SyntaxError, TokenError):
        raise InputError(f"{path} is not a NumPy file of numbers; expected what numpy.save writes") from None


class Density(Model):
    """Fraction of nonzero values of a tensor, and their distribution. A file may give the number alone: `density: 0.25`.

    `structured`: every tile has the mean number of nonzeros. `uniform`: a fixed number of nonzeros
    is placed at random, so that tiles follow the hypergeometric distribution. `banded`: a square
    matrix is nonzero where row and column differ by at most `band_width`. `data`: nonzeros are those of an array.

    Example:
        >>> from tilewright.plugin import Density
        >>> Density(density=0.25).density
        0.25
    """

    _short_form: ClassVar = {"type": "number", "minimum": 0, "maximum": 1}
    distribution: Distribution = "structured"
    """Where the nonzero values are."""
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

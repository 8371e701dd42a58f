"""Conversion of errors to InputError with a location in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from tilewright.errors import InputError, Location
from tilewright.values import plain_fault


@contextmanager
def placed(location: Location) -> Iterator[None]:
    """Convert errors inside the `with` block to InputError at this location.

    An InputError that has a location keeps it.
    """
    try:
        yield
    except ValidationError as error:
        fault = error.errors()[0]
        text = plain_fault(fault)
        where = ".".join(map(str, fault["loc"])) if fault["type"] != "value_error" else ""
        raise InputError(f"{where}: {text}" if where else text, location=location) from None
    except InputError as error:
        raise error if error.location else InputError(error.message, location=location, hint=error.hint) from None
    except ValueError as error:
        raise InputError(str(error), location=location) from None
    except ArithmeticError as error:
        raise InputError(f"its values cannot be calculated with: {error}", location=location) from None

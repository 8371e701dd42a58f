"""Files as documents: YAML, or libconfig where the name ends in .cfg."""

from __future__ import annotations

from pathlib import Path

from tilewright.errors import InputError
from tilewright.files import read_text
from tilewright.schema.document import Document, read_document
from tilewright_adapters.timeloop.reading.libconfig import parse_libconfig

_TEMPLATES = ("{{", "{%")
_INCLUDES = ("!include", "!includedir")


def read_file(path: Path) -> Document:
    """Raises InputError; with what to do where a file is still a template or draws others in."""
    if Path(path).suffix == ".cfg":
        return parse_libconfig(read_text(path), str(path))
    try:
        return read_document(path)
    except InputError as error:
        if error.location is None or error.location.line is None:
            raise
        text = read_text(path)
        if any(mark in text for mark in _TEMPLATES):
            hint = "this is a jinja template: let Timeloop's front end write it out, and give what it writes"
        elif any(mark in text for mark in _INCLUDES):
            hint = "includes are not followed: give the included files beside this one, without the !include"
        else:
            raise
        raise InputError(error.message, hint=hint) from None

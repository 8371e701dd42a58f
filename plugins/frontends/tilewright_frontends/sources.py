"""Texts of files that a frontend recognises by their contents."""

from tilewright.errors import InputError
from tilewright.files import is_file, read_text


def text_of(source: str, suffix: str) -> str | None:
    """Return the text of a file with a suffix; None if the source is no such file, or cannot be read."""
    try:
        return read_text(source) if source.endswith(suffix) and is_file(source) else None
    except InputError:
        return None

"""Keys by which an adapter knows its files, read from the text alone: the file may be a template, or no valid YAML."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tilewright.errors import InputError
from tilewright.files import file_and_member, is_file, read_text
from tilewright.plugin.registry import Registration
from tilewright.plugin.specs import AdapterSpec

MAX_LISTED = 50
"""Maximum number of files of a folder that are looked at."""
_KEY = re.compile(
    r"(?P<space>\s*+)(?P<items>(?:-\s++)*+)[\"']?(?P<key>[\w$-]++)[\"']?\s*+(?:::|[:=])(?:\s(?P<rest>.*+)|$)"
)
_INLINE = re.compile(r"[{,]\s*+[\"']?([\w-]++)[\"']?\s*+:")


def keys_in(text: str) -> set[str]:
    """Return the keys at the top of a YAML or JSON text, and those below them as `top.key`; `-` is an item of a list.

    >>> sorted(keys_in("arch:\\n  nodes: []\\n- id: 0"))
    ['-.id', 'arch', 'arch.nodes']
    """
    keys, top, below = set[str](), "", -1
    if re.match(r"\s*+\{(?![{%#])", text):
        return _keys_of_json(text)
    for line in text.splitlines():
        match = _KEY.match(line)
        if match is None or line.lstrip().startswith(("#", "{%")):
            continue
        depth = len(match["space"])
        if depth == 0:
            top, below = ("-" if match["items"] else match["key"]), -1
            keys.add(f"-.{match['key']}" if match["items"] else top)
            keys |= {f"{top}.{key}" for key in _INLINE.findall(match["rest"] or "")}
        elif top and below in (-1, depth):
            below = depth
            keys.add(f"{top}.{match['key']}")
    return keys


def _keys_of_json(text: str) -> set[str]:
    """Return the keys of a JSON object; of invalid JSON, keys of any depth at its beginning."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return set(_INLINE.findall(text[:2000]))
    below = {f"{key}.{name}" for key, value in data.items() if isinstance(value, dict) for name in value}
    return {*data, *below}


def owners(files: Sequence[Path], registrations: Sequence[Registration]) -> list[Registration]:
    """Return the adapters whose signs most of the files have; empty if no file has any."""
    keys = [keys_in(text) for text in _texts(files)]
    counts = Counter[str]()
    for registration in registrations:
        if isinstance(registration.spec, AdapterSpec):
            signs = set(registration.spec.signs)
            counts[registration.long_name] = sum(bool(signs & key) for key in keys)
    most = max(counts.values(), default=0)
    return [candidate for candidate in registrations if most and counts[candidate.long_name] == most]


def _texts(files: Sequence[Path]) -> Iterator[str]:
    for path in files:
        inside = sorted(path.iterdir())[:MAX_LISTED] if os.path.isdir(path) else [Path(file_and_member(path)[0])]
        for file in inside:
            if is_file(file):
                try:
                    yield read_text(file)
                except InputError:  # no text
                    continue

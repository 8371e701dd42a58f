"""Package of a new plugin: files rendered with Jinja."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2

from tilewright.application.scaffold import Kind
from tilewright.application.scaffold.names import SPECS, check_name, class_of, distribution_of, module_of
from tilewright.errors import CallError, InputError
from tilewright.files import made, write_text
from tilewright.plugin.registry import Registry, installed
from tilewright.version import __version__

SUFFIX = ".jinja"
PLACES: dict[str, Callable[[str], str]] = {"MODULE": module_of, "NAME": lambda name: name.replace("-", "_")}
"""Placeholders in template paths, with the function that renders each from the plugin's name."""


CHECK_ARGUMENTS = {Kind.frontend: " --source tests/layers.csv"}
"""Additional arguments for `plugins check`."""
BATCHED = "batched"
"""Folder with the templates of a cost model that evaluates batches."""


@dataclass(frozen=True)
class Package:
    """Package that `plugins new` writes. `files` maps relative paths (with slashes) to text."""

    kind: Kind
    name: str
    files: Mapping[str, str]

    @property
    def distribution(self) -> str:
        return distribution_of(self.name)

    def save(self, folder: Path | None = None) -> Path:
        """Write all files and return the folder.

        `folder` defaults to a new folder named after the distribution.

        Raises:
            InputError: The folder exists and is not empty.
            OutputError: A file cannot be written.
        """
        folder = Path(self.distribution) if folder is None else folder
        if os.path.lexists(folder) and not _is_empty(folder):
            raise InputError(
                f"{folder} exists and is not an empty folder; nothing was written",
                hint=f"tilewright plugins new {self.kind} {self.name} -o FOLDER",
            )
        for name, text in self.files.items():
            made((folder / name).parent)
            write_text(folder / name, text)
        return folder

    def next_steps(self, folder: Path) -> list[str]:
        """Return the commands that try the package, one per line."""
        arguments = CHECK_ARGUMENTS.get(self.kind, "")
        return [
            f"cd {shlex.quote(str(folder))}",
            "python -m pip install -e '.[test]'",
            f"tilewright plugins show {self.name}",
            "python -m pytest",
            f"tilewright plugins check {self.distribution}/{self.name}{arguments}",
        ]


def bounds(version: str) -> str:
    """Return the releases that a plugin works with if it was written with this one: until the next breaking one.

    >>> bounds("0.1.3"), bounds("0.2.0rc1"), bounds("1.4.0")
    ('>=0.1,<0.2', '>=0.2.0rc1,<0.3', '>=1.4,<2')
    """
    from packaging.version import Version

    written = Version(version)
    first = written.public if written.is_prerelease else f"{written.major}.{written.minor}"
    last = f"0.{written.minor + 1}" if written.major == 0 else f"{written.major + 1}"
    return f">={first},<{last}"


def _is_empty(folder: Path) -> bool:
    """Return whether the path is an empty folder."""
    try:
        return not os.listdir(folder)
    except OSError:
        return False


def new_package(kind: Kind, name: str, registry: Registry | None = None, *, batch: bool = False) -> Package:
    """Return a package with a plugin of this kind.

    Args:
        registry: Registry whose names are taken. Default: all installed plugins.
        batch: A cost model that evaluates batches, with counts and a relaxation.

    Raises:
        InputError: The name is invalid or taken.
        CallError: Only cost models have a form for batches.
    """
    if batch and kind is not Kind.costmodel:
        raise CallError(
            f"--batch is for cost models, not for a {kind.value}",
            hint=f"tilewright plugins new costmodel {name} --batch",
        )
    check_name(kind, name, registry or installed())
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tilewright.application.scaffold"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # the output is Python, TOML and YAML, and names are checked
    )
    words = {
        "name": name,
        "kind": kind.value,
        "kind_in_words": SPECS[kind].kind,
        "distribution": distribution_of(name),
        "module": module_of(name),
        "class_name": class_of(name),
        "check_arguments": CHECK_ARGUMENTS.get(kind, ""),
        "bounds": bounds(__version__),
    }
    files = {}
    for template in environment.list_templates():
        owner, _, path = template.removesuffix(SUFFIX).partition("/")
        if owner in ("any", BATCHED if batch else kind.value):
            for word, made in PLACES.items():
                path = path.replace(word, made(name))
            files[path] = environment.get_template(template).render(words)
    return Package(kind, name, files)

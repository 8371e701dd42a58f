"""The package of a new plugin: its files, rendered by Jinja."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2

from tilewright.errors import InputError
from tilewright.files import made, write_text
from tilewright.plugin.registry import Registry, installed
from tilewright.scaffold import Kind
from tilewright.scaffold.names import SPECS, check_name, class_of, distribution_of, module_of

SUFFIX = ".jinja"
PLACES: dict[str, Callable[[str], str]] = {"MODULE": module_of, "NAME": lambda name: name.replace("-", "_")}
"""Words in the paths of templates -> what makes them of the plugin's name."""


CHECK_ARGUMENTS = {Kind.frontend: " --source tests/layers.csv"}
"""What `plugins check` has to be told."""


@dataclass(frozen=True)
class Package:
    """What `plugins new` writes. `files`: path in the package, with slashes -> text."""

    kind: Kind
    name: str
    files: Mapping[str, str]

    @property
    def distribution(self) -> str:
        return distribution_of(self.name)

    def save(self, folder: Path | None = None) -> Path:
        """Write all files, by default into a folder named after the distribution; gives the folder.

        Raises:
            InputError: there is something already.
            OutputError: it cannot be written.
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
        """Commands that try it, one a line."""
        arguments = CHECK_ARGUMENTS.get(self.kind, "")
        return [
            f"cd {shlex.quote(str(folder))}",
            "python -m pip install -e '.[test]'",
            f"tilewright plugins show {self.name}",
            "python -m pytest",
            f"tilewright plugins check {self.distribution}/{self.name}{arguments}",
        ]


def _is_empty(folder: Path) -> bool:
    """Whether it is a folder with nothing in it."""
    try:
        return not os.listdir(folder)
    except OSError:
        return False


def new_package(kind: Kind, name: str, registry: Registry | None = None) -> Package:
    """A package with a plugin of this kind.

    Args:
        registry: whose names are taken; by default all that is installed.

    Raises:
        InputError: the name will not do, or is taken.
    """
    check_name(kind, name, registry or installed())
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tilewright.scaffold"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # Python, TOML and YAML; names are checked
    )
    words = {
        "name": name,
        "kind": kind.value,
        "kind_in_words": SPECS[kind].kind,
        "distribution": distribution_of(name),
        "module": module_of(name),
        "class_name": class_of(name),
        "check_arguments": CHECK_ARGUMENTS.get(kind, ""),
    }
    files = {}
    for template in environment.list_templates():
        owner, _, path = template.removesuffix(SUFFIX).partition("/")
        if owner in ("any", kind.value):
            for word, made in PLACES.items():
                path = path.replace(word, made(name))
            files[path] = environment.get_template(template).render(words)
    return Package(kind, name, files)

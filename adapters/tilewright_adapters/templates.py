"""Templates in the words of Accelergy, which Timeloop's and AccelForge's files share: Jinja with functions that draw in files.

A template is filled in by a child process with limits of time and memory. It reads files of some folders and nothing else; what
else a template might want (variables of the system, code) it does not get.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import jinja2.nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment

from tilewright.child import NoAnswer, limited
from tilewright.errors import InputError, Location
from tilewright.files import MAX_BYTES, read_text

SECONDS, MEMORY = 2, 256 * 2**20
"""CPU time and bytes for filling in a template."""
MAX_FILES = 1000
"""That a template draws in, one as often as it does."""
MAX_DEPTH = 20
"""Of templates that draw in templates."""
PART = "!part"
"""The tag that stands where a document is drawn in; behind it, the number of a Part."""
_MARKS = re.compile(r"\{%|\{\{|\{#")
_TEMPLATE = "<template>"


@dataclass(frozen=True)
class Part:
    """What is drawn in at one place: of each of `files`, numbers of texts, what stands at `keys`; `several` make a list."""

    files: tuple[int, ...]
    keys: tuple[str, ...]
    several: bool


@dataclass
class Filled:
    """A text that is no template any more, and what it draws in."""

    text: str
    texts: list[tuple[str, str, str]] = field(default_factory=list)
    """Drawn-in documents: real path, name in messages, and text, filled in."""
    parts: list[Part] = field(default_factory=list)


def filled(path: Path, folders: tuple[str, ...], values: Mapping[str, object], inherits: bool = False) -> Filled:
    """The text of a file, and if it is a template, filled in.

    Args:
        folders: those that are read, by their real paths.
        values: of the variables that the template names.
        inherits: what it sets itself is known to the files that it draws in, too, as in AccelForge and not in Timeloop.

    Raises:
        InputError: with the line, what the template lacks or may not have.
    """
    text = read_text(path)
    if not _MARKS.search(text):
        return Filled(text)
    try:
        answer: Filled = limited(
            fill, os.path.realpath(path), str(path), folders, dict(values), inherits, seconds=SECONDS, memory=MEMORY
        )
    except NoAnswer as failure:
        raise InputError(f"{path}: no template that can be filled in: the process that did so {failure}") from None
    return answer


def folders_of(paths: Iterable[Path]) -> tuple[str, ...]:
    """The folders that may be read for these files: theirs, and where one is, unless that holds everything."""
    found = [path if os.path.isdir(path) else path.parent for path in paths]
    here = os.getcwd()
    real = dict.fromkeys(os.path.realpath(folder) for folder in found)
    if os.path.dirname(here) != here and here != os.path.expanduser("~"):
        real[os.path.realpath(here)] = None
    return tuple(real)


def inside(folders: tuple[str, ...], path: str) -> bool:
    """Is it below one of the folders? Looked at by name first: what is outside is not even asked for."""

    def below(name: str) -> bool:
        return any(name == folder or name.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)

    return below(path) and below(os.path.realpath(path))


def fill(path: str, name: str, folders: tuple[str, ...], values: dict[str, object], inherits: bool) -> Filled:
    """A template as text. Its loops may be endless and its texts may double: this is for a process with limits, which may be in
    another folder than the one that asks; `name` is what messages call it.

    Raises InputError.
    """
    filler = _Filler(folders, inherits, Filled(""))
    filler.result.text = filler.text(path, name, (), values, 0)
    return filler.result


@dataclass
class _Filler:
    folders: tuple[str, ...]
    inherits: bool
    result: Filled
    files: int = 0
    size: int = 0

    def text(self, path: str, name: str, searched: tuple[str, ...], values: dict[str, object], depth: int) -> str:
        """A file, filled in. `searched`: folders in which it looks for others, beside its own."""
        self.files += 1
        if self.files > MAX_FILES or depth > MAX_DEPTH:
            most = f"more than {MAX_FILES:,} files" if self.files > MAX_FILES else "itself, or files nested too deeply"
            raise InputError(f"{name}: the template draws in {most}")
        text = read_text(path)
        if _MARKS.search(text):
            text = _Template(self, path, name, [*searched], values, depth).filled(text)
        self.size += len(text)
        if self.size > 4 * MAX_BYTES:
            raise InputError(
                f"{name}: with all that it draws in the template has more than {4 * MAX_BYTES:,} characters"
            )
        return text


class _Assertion(Extension):
    """`{% assert CONDITION, MESSAGE %}`, in AccelForge's templates."""

    tags = {"assert"}

    def parse(self, parser: Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        condition = parser.parse_expression()
        message = parser.parse_expression() if parser.stream.skip_if("comma") else jinja2.nodes.Const(None)
        call = self.call_method("_hold", [condition, message], lineno=line)
        return jinja2.nodes.Output([call], lineno=line)

    def _hold(self, condition: object, message: object) -> str:
        if not condition:
            raise InputError(f"what the template asserts does not hold{f': {message}' if message else ''}")
        return ""


@dataclass
class _Template:
    """One file that is filled in, and the functions that it may call."""

    filler: _Filler
    path: str
    name: str
    searched: list[str]
    values: dict[str, object]
    depth: int

    def filled(self, text: str) -> str:
        environment = SandboxedEnvironment(undefined=jinja2.StrictUndefined, extensions=[_Assertion])
        environment.globals.update(
            add_to_path=self.add_to_path,
            cwd=lambda: os.path.dirname(self.path),
            find_path=lambda path: self.found(path)[0],
            find_paths=self.found,
            include=jinja2.pass_context(partial(self.include)),
            include_all=jinja2.pass_context(partial(self.include, several=True)),
            include_text=jinja2.pass_context(partial(self.include_text)),
            path_exists=self.path_exists,
            setenv=self.setenv,
        )
        try:
            return "".join(self._bounded(environment.from_string(text).generate(self.values)))
        except jinja2.UndefinedError as error:
            match = re.search(r"'(\w+)' is undefined", str(error))
            word = match[1] if match else "NAME"
            hint = f"give it (--set {word}=VALUE), or at the top of the file: {{% set {word} = VALUE %}}"
            raise self.fault(f"the template needs a value for {word}", error, hint) from None
        except (InputError, MemoryError) as error:
            if isinstance(error, InputError) and error.location is None:
                raise self.fault(error.message, error, error.hint) from None
            raise
        except Exception as error:  # its expressions may raise anything
            raise self.fault(f"no template that can be filled in: {error}", error) from None

    def fault(self, message: str, error: Exception, hint: str | None = None) -> InputError:
        """With the line of the template that raised it."""
        line = getattr(error, "lineno", None)
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _TEMPLATE:
                line = trace.tb_lineno
            trace = trace.tb_next
        return InputError(message, location=Location(self.name, line), hint=hint)

    def _bounded(self, pieces: Iterator[str]) -> Iterator[str]:
        """The pieces, as long as they are no more than a file may have."""
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > MAX_BYTES:
                raise ValueError(f"it becomes more than {MAX_BYTES:,} characters")
            yield piece

    def add_to_path(self, path: Any) -> str:
        self.searched += self.found(path)
        return ""

    def path_exists(self, path: Any) -> bool:
        return bool(self._candidates(path)[0])

    def setenv(self, name: Any, value: Any) -> str:
        raise InputError(f"setenv('{name}', ...) is not done: variables of the system can change Timeloop's figures")

    def found(self, path: Any) -> list[str]:
        """Files and folders of that name. Raises InputError."""
        names = path if isinstance(path, list) else [path]
        result: list[str] = []
        for name in names:
            there, outside = self._candidates(name)
            if not there and outside:
                raise InputError(
                    f"{name} lies outside of the folders that were given",
                    hint=f"give {os.path.relpath(outside[0], os.path.dirname(self.path))} (or its folder) beside {self.name}",
                )
            if not there:
                raise InputError(
                    f"there is no file {name}", hint=f"looked for beside {self.name} and in its add_to_path"
                )
            result += there
        return list(dict.fromkeys(result))

    def _candidates(self, path: Any) -> tuple[list[str], list[str]]:
        """(what is there, where it would lie outside of what may be read)."""
        if not isinstance(path, str) or not path or "\0" in path:
            raise InputError(f"{path!r} is no path")
        bases = [""] if os.path.isabs(path) else [os.path.dirname(self.path), *self.searched]
        there: list[str] = []
        outside: list[str] = []
        for base in bases:
            wanted = os.path.normpath(os.path.join(base, path))
            folder, last = os.path.split(wanted)
            if not inside(self.filler.folders, folder if set("*?") & set(last) else wanted):
                outside.append(wanted)
            elif set("*?") & set(last) and os.path.isdir(folder):
                there += [
                    os.path.join(folder, name) for name in sorted(os.listdir(folder)) if fnmatch.fnmatch(name, last)
                ]
            elif os.path.exists(wanted):
                there.append(wanted)
        return [each for each in there if inside(self.filler.folders, each)], outside

    def include_text(self, context: Context, path: Any, **given: Any) -> str:
        """What is drawn in as it is."""
        return "\n".join(self.drawn_in(each, self._known(context, given)) for each in self.found(path))

    def include(self, context: Context, path: Any, keys: Any = "", several: bool = False, **given: Any) -> str:
        """A tag for what is drawn in as a document."""
        paths = self.found(path)
        if len(paths) > 1 and not several:
            raise InputError(f"include finds {len(paths)} files of the name {path}", hint="use include_all")
        result = self.filler.result
        known = self._known(context, given)
        drawn = [(each, self._named(each), self.drawn_in(each, known)) for each in paths]
        numbers = tuple(range(len(result.texts), len(result.texts) + len(drawn)))
        result.texts += drawn
        steps = tuple(step for step in str(keys).split(".") if step)
        result.parts.append(Part(numbers, steps, several and len(paths) > 1))
        return f"{PART} {len(result.parts) - 1}"

    def drawn_in(self, path: str, values: dict[str, object]) -> str:
        return self.filler.text(path, self._named(path), tuple(self.searched), values, self.depth + 1)

    def _known(self, context: Context, given: dict[str, Any]) -> dict[str, object]:
        """The variables of a file that is drawn in."""
        if not self.filler.inherits:
            if given:
                raise InputError(f"values for {', '.join(given)} cannot be given to a file that is drawn in")
            return self.values
        if not given.pop("inherit_parse_data", True):
            return self.values | given
        own = {name: each for name, each in context.get_all().items() if not callable(each) and name[:1] != "_"}
        return self.values | own | given

    def _named(self, path: str) -> str:
        """As messages show it: beside the file as it was given."""
        return os.path.join(os.path.dirname(self.name), os.path.relpath(path, os.path.dirname(self.path)))

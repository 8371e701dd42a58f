"""Accelergy's templates, used by Timeloop's and AccelForge's files: Jinja plus include functions.

A child process with limits of time and memory renders a template. It reads files in some folders
only. Templates have no access to environment variables or code.
"""

from __future__ import annotations

import fnmatch
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

from tilewright.child import ChildFailed, limited
from tilewright.errors import InputError, Location
from tilewright.files import MAX_BYTES, read_text

SECONDS, MEMORY = 2, 256 * 2**20
"""Maximum CPU time in seconds and memory in bytes for rendering a template."""
MAX_FILES = 1000
"""Maximum number of files that a template includes, with repetitions."""
MAX_WANTED = 20
"""Maximum number of variables without a value that a message names."""
MAX_DEPTH = 20
"""Maximum nesting of templates."""
PART = "!part"
"""Tag of an included document, followed by the index of its Part."""
FUNCTIONS = {"ceil": math.ceil, "floor": math.floor, "max": max, "min": min}
"""Functions that AccelForge's examples use in templates, in addition to those of Jinja."""
_GUESSED = "values are guessed"
"""Name of no variable: assertions hold while missing values are guessed."""
_MARKS = re.compile(r"\{%|\{\{|\{#")
_TEMPLATE = "<template>"


@dataclass(frozen=True)
class Part:
    """An include: the values at `keys` in each of `files` (indices of texts); a list if `several`."""

    files: tuple[int, ...]
    keys: tuple[str, ...]
    several: bool


@dataclass
class Rendered:
    """A rendered text, and the documents that it includes."""

    text: str
    texts: list[tuple[str, str, str]] = field(default_factory=list)
    """Included documents: real path, name in messages, and rendered text."""
    parts: list[Part] = field(default_factory=list)


def rendered(path: Path, folders: tuple[str, ...], values: Mapping[str, object], inherits: bool = False) -> Rendered:
    """Return the text of a file, rendered if it is a template.

    Args:
        path: the file.
        folders: real paths of the folders that may be read.
        values: values of template variables.
        inherits: whether included files see variables that the template sets: true for AccelForge, false for Timeloop.

    Raises:
        InputError: a value is missing or an operation is not allowed; with the line.
    """
    text = read_text(path)
    if not is_template(text):
        return Rendered(text)
    try:
        answer: Rendered = limited(
            render, os.path.realpath(path), str(path), folders, dict(values), inherits, seconds=SECONDS, memory=MEMORY
        )
    except ChildFailed as failure:
        raise InputError(f"{path}: the template cannot be rendered: its process {failure}") from None
    return answer


def is_template(text: str) -> bool:
    """Return whether a text has marks of Jinja."""
    return _MARKS.search(text) is not None


def folders_of(paths: Iterable[Path], others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the folders that may be read for these files: theirs, others, and the current one.

    The current folder is excluded if it is the root or the user's home.
    """
    folders = [*(path if os.path.isdir(path) else path.parent for path in paths), *map(Path, others)]
    here = os.getcwd()
    real = dict.fromkeys(os.path.realpath(folder) for folder in folders)
    if os.path.dirname(here) != here and here != os.path.expanduser("~"):
        real[os.path.realpath(here)] = None
    return tuple(real)


def inside(folders: tuple[str, ...], path: str) -> bool:
    """Return whether a path is below one of the folders.

    The name is tested first, so that the file system is not queried for paths outside.
    """

    def below(name: str) -> bool:
        return any(name == folder or name.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)

    return below(path) and below(os.path.realpath(path))


def render(path: str, name: str, folders: tuple[str, ...], values: dict[str, object], inherits: bool) -> Rendered:
    """Render a template.

    Its loops may be endless and its texts may grow without bound. Call this in a process with
    limits, which may have another working directory; `name` identifies the file in messages.

    Raises:
        InputError: the template is invalid.
    """
    wanted, first = dict[str, int](), None
    while True:
        renderer = _Renderer(folders, inherits, Rendered(""), guessed=bool(wanted))
        try:
            renderer.result.text = renderer.text(path, name, (), values | wanted, 0)
        except _Wanted as error:  # find out what else is wanted, with a number in its place
            first = first or error
            if error.word in wanted or len(wanted) == MAX_WANTED:
                break
            wanted[error.word] = 1
        except (InputError, MemoryError):
            if first is None:
                raise
            break
        else:
            if first is None:
                return renderer.result
            break
    raise _all_wanted(first, list(wanted))


class _Wanted(InputError):
    """A template uses a variable without a value; `word` is its name."""

    word = ""


def _all_wanted(first: _Wanted, words: Sequence[str]) -> InputError:
    """Return the error that names all variables without a value."""
    options = " ".join(f"--set {word}=VALUE" for word in words)
    hint = first.hint if len(words) < 2 else f"give them ({options})"
    return InputError(f"the template needs a value for {', '.join(words)}", location=first.location, hint=hint)


@dataclass
class _Renderer:
    folders: tuple[str, ...]
    inherits: bool
    result: Rendered
    files: int = 0
    size: int = 0
    guessed: bool = False
    """Whether missing values are guessed, to find out which ones are missing."""

    def text(self, path: str, name: str, searched: tuple[str, ...], values: dict[str, object], depth: int) -> str:
        """Return a file, rendered. `searched`: folders that are searched in addition to its own."""
        self.files += 1
        if self.files > MAX_FILES or depth > MAX_DEPTH:
            most = f"more than {MAX_FILES:,} files" if self.files > MAX_FILES else "itself, or files nested too deeply"
            raise InputError(f"{name}: the template includes {most}")
        text = read_text(path)
        if is_template(text):
            text = _Template(self, path, name, [*searched], values, depth).rendered(text)
        self.size += len(text)
        if self.size > 4 * MAX_BYTES:
            raise InputError(f"{name}: the template with its includes has more than {4 * MAX_BYTES:,} characters")
        return text


class _Assertion(Extension):
    """The statement `{% assert CONDITION, MESSAGE %}` of AccelForge's templates."""

    tags = {"assert"}

    def parse(self, parser: Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        condition = parser.parse_expression()
        message = parser.parse_expression() if parser.stream.skip_if("comma") else jinja2.nodes.Const(None)
        call = self.call_method("_hold", [condition, message], lineno=line)
        return jinja2.nodes.Output([call], lineno=line)

    def _hold(self, condition: object, message: object) -> str:
        if not condition and not self.environment.globals[_GUESSED]:
            raise InputError(f"an assertion of the template fails{f': {message}' if message else ''}")
        return ""


@dataclass
class _Template:
    """One template being rendered, and the functions that it may call."""

    renderer: _Renderer
    path: str
    name: str
    searched: list[str]
    values: dict[str, object]
    depth: int

    def rendered(self, text: str) -> str:
        environment = SandboxedEnvironment(undefined=jinja2.StrictUndefined, extensions=[_Assertion])
        environment.globals.update(
            add_to_path=self.add_to_path,
            cwd=lambda: os.path.dirname(self.path),
            find_path=lambda path: self.paths(path)[0],
            find_paths=self.paths,
            include=jinja2.pass_context(partial(self.include)),
            include_all=jinja2.pass_context(partial(self.include, several=True)),
            include_text=jinja2.pass_context(partial(self.include_text)),
            path_exists=self.path_exists,
            setenv=self.setenv,
        )
        environment.globals[_GUESSED] = self.renderer.guessed
        environment.globals.update(FUNCTIONS if self.renderer.inherits else {})
        try:
            return "".join(self._bounded(environment.from_string(text).generate(self.values)))
        except jinja2.UndefinedError as error:
            match = re.search(r"'(\w+)' is undefined", str(error))
            if match is None:
                raise self.fault(f"the template cannot be rendered: {error}", error) from None
            word = match[1]
            hint = f"give it (--set {word}=VALUE), or at the top of the file: {{% set {word} = VALUE %}}"
            fault = self.fault(f"the template needs a value for {word}", error, hint)
            wanted = _Wanted("no value", location=fault.location, hint=hint)
            wanted.word = word
            raise wanted from None
        except (InputError, MemoryError) as error:
            if isinstance(error, InputError) and error.location is None:
                raise self.fault(error.message, error, error.hint) from None
            raise
        except Exception as error:  # expressions may raise any exception
            raise self.fault(f"the template cannot be rendered: {error}", error) from None

    def fault(self, message: str, error: Exception, hint: str | None = None) -> InputError:
        """Return an error with the line of the template that raised it."""
        line = getattr(error, "lineno", None)
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _TEMPLATE:
                line = trace.tb_lineno
            trace = trace.tb_next
        return InputError(message, location=Location(self.name, line), hint=hint)

    def _bounded(self, pieces: Iterator[str]) -> Iterator[str]:
        """Yield the pieces while their total length is within the limit of a file."""
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > MAX_BYTES:
                raise ValueError(f"it has more than {MAX_BYTES:,} characters when rendered")
            yield piece

    def add_to_path(self, path: Any) -> str:
        self.searched += self.paths(path)
        return ""

    def path_exists(self, path: Any) -> bool:
        return bool(self._candidates(path)[0])

    def setenv(self, name: Any, value: Any) -> str:
        raise InputError(f"setenv('{name}', ...) is not supported: environment variables can change Timeloop's results")

    def paths(self, path: Any) -> list[str]:
        """Return files and folders of that name. Raises InputError."""
        names = path if isinstance(path, list) else [path]
        result: list[str] = []
        for name in names:
            there, outside = self._candidates(name)
            if not there and outside:
                here = os.path.dirname(self.path)
                common = os.path.relpath(os.path.commonpath([here, outside[0]]), here)
                folder = os.path.normpath(os.path.join(os.path.dirname(self.name), common))
                hint = f"give the folder {folder}, too: files may include what is in it"
                raise InputError(f"{name} is outside the given folders", hint=hint)
            if not there:
                raise InputError(
                    f"there is no file {name}", hint=f"searched the folder of {self.name} and its add_to_path"
                )
            result += there
        return list(dict.fromkeys(result))

    def _candidates(self, path: Any) -> tuple[list[str], list[str]]:
        """Return the existing paths, and those outside the readable folders."""
        if not isinstance(path, str) or not path or "\0" in path:
            raise InputError(f"{path!r} is not a path")
        bases = [""] if os.path.isabs(path) else [os.path.dirname(self.path), *self.searched]
        there: list[str] = []
        outside: list[str] = []
        for base in bases:
            wanted = os.path.normpath(os.path.join(base, path))
            folder, last = os.path.split(wanted)
            if not inside(self.renderer.folders, folder if set("*?") & set(last) else wanted):
                outside.append(wanted)
            elif set("*?") & set(last) and os.path.isdir(folder):
                there += [
                    os.path.join(folder, name) for name in sorted(os.listdir(folder)) if fnmatch.fnmatch(name, last)
                ]
            elif os.path.exists(wanted):
                there.append(wanted)
        return [candidate for candidate in there if inside(self.renderer.folders, candidate)], outside

    def include_text(self, context: Context, path: Any, **given: Any) -> str:
        """Return the text of included files."""
        return "\n".join(self.included_text(file, self._known(context, given)) for file in self.paths(path))

    def include(self, context: Context, path: Any, keys: Any = "", several: bool = False, **given: Any) -> str:
        """Return a tag that represents an included document."""
        paths = self.paths(path)
        if len(paths) > 1 and not several:
            raise InputError(f"include finds {len(paths)} files called {path}", hint="use include_all")
        result = self.renderer.result
        known = self._known(context, given)
        drawn = [(file, self._named(file), self.included_text(file, known)) for file in paths]
        numbers = tuple(range(len(result.texts), len(result.texts) + len(drawn)))
        result.texts += drawn
        steps = tuple(step for step in str(keys).split(".") if step)
        result.parts.append(Part(numbers, steps, several and len(paths) > 1))
        return f"{PART} {len(result.parts) - 1}"

    def included_text(self, path: str, values: dict[str, object]) -> str:
        return self.renderer.text(path, self._named(path), tuple(self.searched), values, self.depth + 1)

    def _known(self, context: Context, given: dict[str, Any]) -> dict[str, object]:
        """Return the variables of an included file."""
        if not self.renderer.inherits:
            if given:
                raise InputError(f"values for {', '.join(given)} cannot be passed to an included file")
            return self.values
        if not given.pop("inherit_parse_data", True):
            return self.values | given
        variables = {
            name: value for name, value in context.get_all().items() if not callable(value) and name[:1] != "_"
        }
        return self.values | variables | given

    def _named(self, path: str) -> str:
        """Return a path for messages, relative like the including file's."""
        return os.path.join(os.path.dirname(self.name), os.path.relpath(path, os.path.dirname(self.path)))

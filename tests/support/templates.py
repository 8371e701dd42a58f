"""Templates that want what they should not have, and a reader of them that watches which files are opened."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from unittest import mock

import cloudpickle  # type: ignore[import-untyped]

from tilewright.errors import TilewrightError
from tilewright_adapters import templates
from tilewright_adapters.assembled import assembled

SECRET = "do-not-read-me"
INSIDE = {
    "t.yaml": b"x: {{include('parts.yaml', 'a')}}\ny: !include base.yaml\nn: [{% for i in range(size) %}{{i}}, {% endfor %}]\n",
    "parts.yaml": b"a:\n  b: {c: [1, 2]}\n  here: '{{cwd()}}'\n",
    "base.yaml": b"{{add_to_path('.')}}\n{% set z = 3 %}\nbase: &base {x: {{size}}, z: {{z}}}\nother: {<<: *base}\n",
}
"""Valid files; the first includes the others."""
PATHS = (
    "../secret.yaml ../outside/secret.yaml ../../input/../secret.yaml link.yaml linked/secret.yaml zero.yaml pipe.yaml /etc/passwd "
    "/proc/self/environ /dev/zero /dev/stdin parts.yaml base.yaml t.yaml ./t.yaml linked/../../secret.yaml .. . / linked *.yaml "
    "../*.yaml ../outside/* /etc/* ~/x [!a]* \\0 file:///etc/passwd \\x2e\\x2e/secret.yaml %2e%2e/secret.yaml"
).split()
CALLS = "include include_all include_text find_path find_paths path_exists add_to_path cwd setenv range lipsum".split()
BOMBS = (
    "{% for i in range(100000) %}{% for j in range(100000) %}{{i}}{% endfor %}{% endfor %}",
    "{% set ns = namespace(x='a') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ns.x}}",
    "{% macro f(n) %}{{f(n)}}{{f(n)}}{% endmacro %}{{f(1)}}",
    "{{ 9**(9**9) }}", "{{ 'a' * 10**10 }}", "{{ [0] * 10**9 }}", "{{ lipsum(100000) }}", "{{ '%99999999999d' % 1 }}",
    "{{ range(10**8)|list }}", "{{ range(99999)|batch(2)|list|string * 99 }}", "{{ 'a'|center(10**10) }}",
    "{{ ('x' * 10**6)|wordwrap(1) }}", "{{ ('a' * 10**5)|replace('a', 'a' * 10**5) }}", "{{ (10**5000)|string }}",
    "{% for i in range(99999) %}{{include('parts.yaml')}}{% endfor %}", "{{ include_text('t.yaml') }}",
    "{% for i in range(2000) %}{{include_text('parts.yaml')}}{% endfor %}",
    "a: &a [1,1,1]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d]\n",
    "!include t.yaml", "!includedir .", "{{ '" + "(" * 3000 + "' }}", "{{ " + "(" * 3000 + " }}", "{{ " + "[" * 500 + "1" + "]" * 500 + " }}",
    "{% if 1 %}" * 1500 + "{% endif %}" * 1500, "{{ " + "1+" * 20000 + "1 }}", "{{ " + "-" * 20000 + "1 }}", "{# " * 20000,
    "{{ 'a b ' * 9999 | urlize }}", "{{ ('<' * 60000)|striptags }}", "{{ ('www.' * 30000)|urlize }}", "{{ (' ' * 60000 ~ 'x')|title }}",
)  # fmt: skip
ESCAPES = (
    ".__class__", ".__mro__[1]", ".__subclasses__()", ".__globals__", ".__init__", "|attr('__class__')", ".format(x=1)",
    ".format_map({'x': 1})", "['__class__']", ".gi_frame", ".f_globals", ".__code__", ".environment", ".mro()", "|map(attribute='__class__')|list",
    ".func.__globals__", ".renderer", ".__self__", ".func", ".args", ".keywords", ".folders", "|pprint", "|tojson", "|xmlattr",
)  # fmt: skip
NAMES = "size self cycler joiner namespace lipsum dict range cwd include include_text find_path loop caller varargs x None".split()
GLUE = (
    "x: ", "\n", "- ", "{% raw %}", "{% endraw %}", "{{ ", " }}", "{% set a = ", " %}", "{% if ", "{% endif %}", "'", "|list ",
    "~ '/secret.yaml'", "{% for i in ", "{% endfor %}", "!include ", "!includedir ", "!include_dir ", "!part 0", "!part 99", "{# ",
    " #}", "&a ", "*a ", "<<: ", "<<<: ", "{% include '../secret.yaml' %}", "{% import 'parts.yaml' as p %}", "{% extends 't.yaml' %}",
    "{% from '/etc/passwd' import x %}", "{% assert 1 == 2, 'no' %}", "{% assert %}", "{% do x.y() %}", "{%- ", " -%}", "\x00", "\ufeff",
    "{% filter upper %}", "{% endfilter %}", "{% call f() %}", "{% autoescape true %}", "{% debug %}", "{% break %}",
)  # fmt: skip


def hostile_template(random: Random, text: str) -> str:
    """Return a template with pieces that include forbidden files, take too long or fail, alone or in a valid text."""
    pieces = [_piece(random) for _ in range(random.randrange(1, 5))]
    if random.random() < 0.4:
        pieces.insert(random.randrange(len(pieces) + 1), text)
    return "".join(pieces)


def _piece(random: Random) -> str:
    path = random.choice(PATHS)
    match random.randrange(10):
        case 0:
            return random.choice(GLUE)
        case 1:
            return f"{random.choice(('!include', '!includedir', '!include_dir', '!part'))} {path}\n"
        case 2 | 3:
            return "{{ " + random.choice(NAMES) + "".join(random.choices(ESCAPES, k=random.randrange(1, 5))) + " }}\n"
        case 4:
            return f"{{% {random.choice(('include', 'import', 'extends'))} '{path}' %}}"
        case 5 if random.random() < 0.1:
            return random.choice(BOMBS)
        case _:
            keys = random.choice(("", "", "", ", 'a.b'", ", ''", ", 3", ", size=2", ", inherit_parse_data=False"))
            return f"{random.choice(('', 'x: ', '- '))}{{{{ {random.choice(CALLS)}('{path}'{keys}) }}}}\n"


def read_template(paths: Sequence[Path]) -> None:
    """Reads the first file as adapters do. Beside its folder lie secrets, in it links to them and files without an end.

    Raises AssertionError: something outside of the folder is opened, or told.
    """
    folder = paths[0].parent
    for place in (folder.parent, folder.parent / "outside"):
        place.mkdir(exist_ok=True)
        (place / "secret.yaml").write_text(f"secret: {SECRET}\n")
    (folder / "link.yaml").symlink_to(folder.parent / "secret.yaml")
    (folder / "linked").symlink_to(folder.parent / "outside")
    (folder / "zero.yaml").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.yaml")
    real = os.path.realpath(folder)
    told = ""
    try:
        with _watched((real,)), mock.patch.object(templates, "render", _watched_render):
            told = str(assembled(paths[0], (real,), {"size": 5}, inherits=paths[0].stat().st_size % 2 == 0).data)
    except TilewrightError as error:
        told = str(error)
        raise
    finally:
        assert SECRET not in told and "root:" not in told, told[:300]


def _watched_render(*arguments: object) -> templates.Rendered:
    """`render`, watched in the child process."""
    folders = arguments[2]
    with _watched(folders):  # type: ignore[arg-type]
        return _RENDER(*arguments)  # type: ignore[arg-type]


_RENDER = templates.render


@contextmanager
def _watched(folders: tuple[str, ...]) -> Iterator[None]:
    """Files opened and folders listed outside of `folders`, except Python's own modules, are an AssertionError at the end."""
    opened: list[str] = []
    watcher = getattr(sys, "_template_watchers", None)
    if watcher is None:  # a hook stays for ever
        watcher = sys._template_watchers = []  # type: ignore[attr-defined]
        sys.addaudithook(lambda event, args: _heard(event, args, sys._template_watchers))  # type: ignore[attr-defined]
    watcher.append(opened)
    try:
        yield
    finally:
        watcher.remove(opened)
        outside = [path for path in opened if not templates.inside(folders, os.path.realpath(path))]
        assert not outside, f"opened {outside[:3]}"


def _heard(event: str, args: tuple[object, ...], watchers: list[list[str]]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and watchers and isinstance(args[0], str | bytes | os.PathLike):
        path = os.fsdecode(args[0])
        if (
            not path.endswith((".py", ".pyc"))
            and not path.startswith((sys.base_prefix, sys.prefix))
            and path != os.devnull
        ):
            for watcher in watchers:
                watcher.append(path)


cloudpickle.register_pickle_by_value(sys.modules[__name__])

"""Plugins for other interfaces than the host's: older ones run, or the message says what changed; newer ones are refused by name.

`tests/data/plugins` has a wheel of what each release's `plugins new mapper hill-climber` writes; .github/RELEASING.md says how to add one.
"""

import ast
import importlib
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tilewright as tw
from support import ROOT
from support.command import command
from tilewright.application.scaffold import Kind
from tilewright.application.scaffold.package import new_package
from tilewright.plugin import INTERFACE, OLDEST_INTERFACE, MapperSpec, Registry, interface
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import KINDS
from tilewright.version import __version__

WHEELS = sorted((ROOT / "tests" / "data" / "plugins").glob("*/*.whl"))
SPECS = {kind.__name__ for kind in KINDS}

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a plugin wheel of this repository, as it is or with other texts in its files, beside the installed plugins."""
    packages = []

    def put(wheel: Path, changed: dict[str, str] | None = None) -> None:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path)
        packages.append(wheel.name.partition("-")[0])
        for old, new in (changed or {}).items():
            files = [path for path in tmp_path.rglob("*") if path.is_file() and old in path.read_text(encoding="utf-8")]
            assert files, f"no file of {wheel.name} has {old}"
            for path in files:
                path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        installed.cache_clear()

    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    yield put
    installed.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]
    importlib.invalidate_caches()


def host(monkeypatch: pytest.MonkeyPatch, *, oldest: int, newest: int) -> None:
    """Let this host accept these interfaces, with a change per interface."""
    later = {number: interface.Change(f"0.{number}", f"what {number} changed") for number in range(2, newest + 1)}
    monkeypatch.setattr(interface, "CHANGES", {1: interface.CHANGES[1]} | later)
    monkeypatch.setattr(interface, "INTERFACE", newest)
    monkeypatch.setattr(interface, "OLDEST_INTERFACE", oldest)


def failures() -> list[str]:
    return [str(broken) for broken in installed().broken if "hill" in broken.distribution]


# -- wheels --------------------------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize("newest", [INTERFACE, INTERFACE + 2])
@pytest.mark.parametrize("wheel", WHEELS, ids=[wheel.parent.name for wheel in WHEELS])
def test_a_wheel_of_a_release_runs_unmodified(
    wheel: Path, newest: int, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    host(monkeypatch, oldest=OLDEST_INTERFACE, newest=newest)
    install(wheel)

    report = tw.map("nk,km->nm; n=8 k=8 m=8", arch="eyeriss", mapper="hill-climber", evaluations=500, seed=1)
    assert report.edp is not None and failures() == []
    assert installed().find(MapperSpec, "hill-climber").distribution == "tilewright-hill-climber"


@pytest.mark.process
def test_an_interface_that_is_too_old_is_refused_with_what_changed_since(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    host(monkeypatch, oldest=3, newest=4)
    install(WHEELS[0])

    (failure,) = failures()
    assert failure == (
        f"tilewright-hill-climber/hill-climber 0.1.0 failed at specs: InterfaceError: 'hill-climber' was written for interface 1; "
        f"Tilewright {__version__} accepts 3 to 4; changed since: interface 2 (Tilewright 0.2): what 2 changed; interface 3 "
        "(Tilewright 0.3): what 3 changed; interface 4 (Tilewright 0.4): what 4 changed -- python -m pip install --upgrade "
        "tilewright-hill-climber, or set TILEWRIGHT_DISABLE=tilewright-hill-climber/hill-climber"
    )


NEWER = {"interface=1": f"interface={INTERFACE + 1}"}


@pytest.mark.process
@pytest.mark.parametrize(
    "changed",
    [NEWER, NEWER | {"summary=": "curiosity=0.5,\n            summary="}],
    ids=["known fields", "a field of the newer interface"],
)
def test_a_newer_interface_is_refused_with_both_versions(changed: dict[str, str], install: Install) -> None:
    install(WHEELS[0], changed)

    (failure,) = failures()
    assert f"'hill-climber' was written for interface {INTERFACE + 1}; Tilewright {__version__} accepts " in failure
    assert failure.endswith(
        f"{INTERFACE} -- python -m pip install --upgrade tilewright, or set TILEWRIGHT_DISABLE=tilewright-hill-climber/hill-climber"
    )
    with pytest.raises(tw.TilewrightError, match=f"interface {INTERFACE + 1}"):
        installed().find(MapperSpec, "hill-climber")


@pytest.mark.process
@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"MapperSpec, Options,": "MapperSpec, Options, Telescope,"}, "cannot import name 'Telescope'"),
        ({"@hookimpl": "@hookimpl\ndef tilewright_telescope():\n    pass\n\n\n@hookimpl"}, "tilewright_telescope"),
    ],
    ids=["name", "hook"],
)
def test_what_this_host_does_not_know_is_told_with_the_release_that_the_plugin_requires(
    changed: dict[str, str], error: str, install: Install
) -> None:
    install(WHEELS[0], changed | {"tilewright<0.2,>=0.1": "tilewright>=99"})

    (failure,) = failures()
    assert (
        error in failure and f"; tilewright-hill-climber requires tilewright>=99, {__version__} is installed" in failure
    )
    assert "-- python -m pip install --upgrade tilewright-hill-climber, or set" in failure


@pytest.mark.process
def test_a_hook_of_a_newer_host_may_be_optional(install: Install) -> None:
    optional = "@hookimpl(optionalhook=True)\ndef tilewright_telescope():\n    pass\n\n\n@hookimpl"
    install(WHEELS[0], {"@hookimpl": optional})

    assert failures() == [] and installed().find(MapperSpec, "hill-climber").version == "0.1.0"


# -- requirements --------------------------------------------------------------------------------------------------


@pytest.mark.process
def test_unmet_requirements_are_listed_and_the_plugin_is_used(
    install: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    requirements = [
        "tilewright<0.1",
        "no-such-package",
        "numpy>=1",
        "nothing; extra == 'x'",
        "nothing; python_version < '3'",
    ]
    unreadable = ["== nonsense", "nothing; no_such_marker > '1'", "numpy>=one", "numpy; python_version > 'x' and ("]
    unmet = "\nRequires-Dist: ".join([*requirements, *unreadable])
    install(WHEELS[0], {"tilewright<0.2,>=0.1": unmet})
    tilewright = command(monkeypatch, capsys)
    remedy = "python -m pip install --upgrade tilewright-hill-climber"
    expected = [
        f"warning: tilewright-hill-climber requires tilewright<0.1, {__version__} is installed: {remedy}",
        f"warning: tilewright-hill-climber requires no-such-package, which is not installed: {remedy}",
    ]

    for words in (["list"], ["show", "hill-climber"]):
        done = tilewright("plugins", *words)
        assert done.code == 0 and "hill-climber" in done.out
        assert [line for line in done.err.splitlines() if "hill-climber" in line] == expected
    data = tilewright("plugins", "list", "--json").data
    ours = [row for row in data["unmet"] if row["distribution"] == "tilewright-hill-climber"]
    assert ours == [
        {
            "distribution": "tilewright-hill-climber",
            "requirement": requirement,
            "installed": version,
            "hint": remedy,
        }
        for requirement, version in (("tilewright<0.1", __version__), ("no-such-package", None))
    ]
    assert [row["interface"] for row in data["plugins"] if row["name"] == "hill-climber"] == [1]


# -- literals ------------------------------------------------------------------------------------------------------


def specs_of(source: str) -> Iterator[tuple[int, ast.expr | None]]:
    """Yield line and stated interface of each spec that a module declares."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SPECS:
            yield node.lineno, next((word.value for word in node.keywords if word.arg == "interface"), None)


def sources() -> Iterator[tuple[str, str]]:
    places = [ROOT / name for name in ("plugins", "adapters", "tests/thirdparty")]
    for path in (path for place in places for path in place.rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    packages = [new_package(kind, "deep-search", Registry()) for kind in Kind]
    packages.append(new_package(Kind.costmodel, "deep-search", Registry(), batch=True))
    for package in packages:
        for name, text in package.files.items():
            if name.startswith("src/") and name.endswith(".py"):
                yield f"{package.kind}: {name}", text
    for page in (ROOT / "docs").rglob("*.md"):
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        yield from ((f"{page.name}, block {number}", block) for number, block in enumerate(blocks))


def test_every_plugin_states_the_interface_that_it_was_written_for_as_a_literal() -> None:
    """`INTERFACE` would be the host's, whatever the plugin was written for; a default would be, too."""
    stated = {f"{place}:{line}": value for place, source in sources() for line, value in specs_of(source)}

    assert len(stated) > 60
    wrong = [place for place, value in stated.items() if not (isinstance(value, ast.Constant) and value.value == 1)]
    assert wrong == []
    assert MapperSpec(name="m", summary="", factory=lambda options: options).interface == 1


def test_the_manual_has_the_table_of_changes() -> None:
    manual = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    rows = [f"| {number} | {change.release} | {change.meaning} |" for number, change in interface.CHANGES.items()]

    assert sorted(interface.CHANGES) == list(range(1, INTERFACE + 1)) and 1 <= OLDEST_INTERFACE <= INTERFACE
    assert "\n".join(rows) in manual

"""The registry finds plugins by entry point, keeps names apart and survives whatever a plugin does."""

import ast
import importlib.metadata
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest

from support import ROOT
from tilewright.errors import AmbiguousPluginError, InputError, PluginError, UnknownPluginError
from tilewright.plugin.guard.hosted import Hosted
from tilewright.plugin.interface import INTERFACE
from tilewright.plugin.registry import GROUP, Registration, Registry, check_options, discover, installed
from tilewright.plugin.specs import CostModelSpec, FrontendSpec, MapperSpec, Options, lazy
from tilewright.version import __version__

pytestmark = pytest.mark.process

Install = Callable[..., EntryPoint]

HEAD = """
from tilewright.plugin.hooks import hookimpl
from tilewright.plugin import MapperSpec, CostModelSpec
class Still:
    def search(self, task, run):
        yield from ()
"""
GOOD = """
@hookimpl
def tilewright_plugins():
    return [MapperSpec(name="{name}", summary="Does nothing.", factory=lambda options: Still())]
"""

CLASSES = """
class Chosen(Still):
    def __init__(self, way, options):
        self.said = way, options.population
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Write a distribution (metadata and one module) and put it on the path; returns its entry point."""
    written: list[str] = []

    def write(distribution: str, body: str, *, entry_point: str = "plugin", head: str = HEAD) -> EntryPoint:
        module = f"{distribution.replace('-', '_')}_{entry_point}"
        folder = tmp_path / distribution
        info = folder / f"{distribution.replace('-', '_')}-1.5.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n")
        with (info / "entry_points.txt").open("a") as points:
            points.write(f"[{GROUP}]\n{entry_point} = {module}\n")
        (folder / f"{module}.py").write_text(head + textwrap.dedent(body))
        monkeypatch.syspath_prepend(folder)
        written.append(module)
        found = importlib.metadata.distribution(distribution).entry_points
        return next(iter(found.select(name=entry_point)))

    yield write
    for module in written:
        sys.modules.pop(module, None)


def in_a_child(built: object) -> Any:
    """Return a hosted plugin as its child makes it: the object behind its guard."""
    assert isinstance(built, Hosted)
    make, arguments = cloudpickle.loads(built.recipe)
    return make(*arguments)


def names(registry: Registry) -> list[str]:
    return [registration.long_name for registration in registry.registrations]


def test_built_ins_come_through_the_same_door() -> None:
    registry = discover(importlib.metadata.distribution("tilewright").entry_points.select(group=GROUP))

    assert registry.broken == []
    assert {"tilewright/random", "tilewright/exhaustive", "tilewright/einsum", "tilewright/onnx"} <= set(
        names(registry)
    )
    assert all(each.version == importlib.metadata.version("tilewright") for each in registry.registrations)


def test_a_third_partys_plugin_is_found_and_built(install: Install) -> None:
    install("tilewright-still", GOOD.format(name="still"))
    registry = discover()

    found = registry.find(MapperSpec, "still")
    assert (found.long_name, found.version) == ("tilewright-still/still", "1.5")
    built: Any = registry.make(MapperSpec, "tilewright-still/still")
    assert type(in_a_child(built).plugin).__name__ == "Still"


def test_names_are_per_kind(install: Install) -> None:
    point = install("tilewright-still", GOOD.format(name="still"))

    with pytest.raises(UnknownPluginError, match="no cost model is called 'still'; installed: none"):
        discover([point]).find(CostModelSpec, "still")


BROKEN = {
    "missing import": ("import a_module_nobody_has", "import", "No module named 'a_module_nobody_has'"),
    "crash at import": ("1 / 0", "import", "ZeroDivisionError"),
    "exit at import": ("raise SystemExit(4)", "import", "SystemExit: 4"),
    "wrong hook argument": ("@hookimpl\ndef tilewright_plugins(wrong):\n    return []", "hooks", "wrong"),
    "misspelt hook": ("@hookimpl\ndef tilewright_plugin():\n    return []", "hooks", "tilewright_plugin"),
    "wrong return type": (
        "@hookimpl\ndef tilewright_plugins():\n    return 42",
        "specs",
        "returned int, expected a list",
    ),
    "nothing returned": ("@hookimpl\ndef tilewright_plugins():\n    pass", "specs", "NoneType, expected a list"),
    "hook that raises": ("@hookimpl\ndef tilewright_plugins():\n    raise OSError('disk')", "specs", "OSError: disk"),
    "no hook at all": ("def tilewright_plugins():\n    return []", "specs", "has no hook; mark tilewright_plugins()"),
    "no spec": ("@hookimpl\ndef tilewright_plugins():\n    return ['still']", "specs", "expected a MapperSpec"),
    "other interface": (
        "@hookimpl\ndef tilewright_plugins():\n"
        "    return [MapperSpec(name='m', summary='', factory=Still, interface=99)]",
        "specs",
        f"'m' was written for interface 99; Tilewright {__version__} accepts {INTERFACE} -- python -m pip install --upgrade tilewright, or set",
    ),
    "name with a slash": (
        "@hookimpl\ndef tilewright_plugins():\n    return [MapperSpec(name='a/b', summary='', factory=Still)]",
        "specs",
        "'a/b' is no name for a plugin",
    ),
    "factory that is no function": (
        "@hookimpl\ndef tilewright_plugins():\n    return [MapperSpec(name='m', summary='', factory=3)]",
        "specs",
        "the factory of 'm' is 3",
    ),
    "options that are no model": (
        "@hookimpl\ndef tilewright_plugins():\n    return [MapperSpec(name='m', summary='', factory=Still, options=dict)]",
        "specs",
        "expected a pydantic model class",
    ),
    "one name twice": (
        "@hookimpl\ndef tilewright_plugins():\n"
        "    return [MapperSpec(name='m', summary='', factory=Still), MapperSpec(name='m', summary='', factory=Still)]",
        "specs",
        "registers two mappers called 'm'",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_plugin_is_recorded_and_the_others_go_on(install: Install, how: str) -> None:
    body, stage, message = BROKEN[how]
    points = [
        install("tilewright-aaa", GOOD.format(name="before")),
        install("tilewright-bad", body),
        install("tilewright-zzz", GOOD.format(name="after")),
    ]
    registry = discover(points)

    assert names(registry) == ["tilewright-aaa/before", "tilewright-zzz/after"]
    assert {(each.distribution, each.stage) for each in registry.broken} == {("tilewright-bad", stage)}
    assert message in str(registry.broken[0])
    assert "TILEWRIGHT_DISABLE=tilewright-bad/" in str(registry.broken[0])
    assert not registry.manager.has_plugin("tilewright-bad/plugin")


def test_a_bad_spec_harms_no_other_of_its_module(install: Install) -> None:
    body = """
        @hookimpl
        def tilewright_plugins():
            return [MapperSpec(name="fine", summary="", factory=Still), "not a spec"]
    """
    registry = discover([install("tilewright-half", body)])

    assert names(registry) == ["tilewright-half/fine"] and len(registry.broken) == 1


def test_watching_alone_is_enough(install: Install) -> None:
    body = "@hookimpl\ndef tilewright_search_done(layer, result):\n    print(layer)"
    registry = discover([install("tilewright-watch", body)])

    assert (registry.broken, registry.registrations) == ([], [])
    assert registry.manager.has_plugin("tilewright-watch/plugin")


def test_a_distribution_without_a_name_is_called_unknown(install: Install) -> None:
    point = install("tilewright-still", GOOD.format(name="still"))
    bare = EntryPoint(point.name, point.value, point.group)

    assert names(discover([bare])) == ["unknown/still"]


# -- names ---------------------------------------------------------------------------------------------------------


def test_two_plugins_of_one_name_need_the_long_form(install: Install) -> None:
    points = [install(f"tilewright-{who}", GOOD.format(name="genetic")) for who in ("one", "two")]
    registry = discover(points)

    with pytest.raises(AmbiguousPluginError, match="tilewright-one/genetic, tilewright-two/genetic") as caught:
        registry.find(MapperSpec, "genetic")
    assert "distribution/name" in str(caught.value)
    assert registry.find(MapperSpec, "tilewright-two/genetic").distribution == "tilewright-two"


def test_nobody_takes_over_a_built_ins_name(install: Install) -> None:
    install("a-usurper", GOOD.format(name="random"))
    registry = discover()

    assert registry.find(MapperSpec, "random").distribution == "tilewright"
    assert registry.find(MapperSpec, "a-usurper/random").distribution == "a-usurper"


def test_the_order_of_entry_points_makes_no_difference(install: Install) -> None:
    points = [install(f"tilewright-{who}", GOOD.format(name=who)) for who in ("c", "a", "b")]

    assert names(discover(points)) == names(discover(reversed(points)))


def test_an_unknown_name_is_answered_with_what_there_is(install: Install) -> None:
    points = [install("tilewright-good", GOOD.format(name="genetic")), install("tilewright-bad", "1 / 0")]

    with pytest.raises(UnknownPluginError) as caught:
        discover(points).find(MapperSpec, "gentic")
    message = str(caught.value)
    assert "no mapper is called 'gentic'; did you mean 'genetic'?; installed: genetic" in message
    assert "failed to load:\n  - tilewright-bad/plugin 1.5 failed at import: ZeroDivisionError" in message


@pytest.mark.parametrize("word", ["plugin", "tilewright-still/plugin", "still", "tilewright-still/still", " still , x"])
def test_disabled_plugins_are_left_out(install: Install, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    point = install("tilewright-still", GOOD.format(name="still"))
    monkeypatch.setenv("TILEWRIGHT_DISABLE", word)
    registry = discover([point])

    assert registry.registrations == []
    with pytest.raises(UnknownPluginError, match="switched off by TILEWRIGHT_DISABLE: "):
        registry.find(MapperSpec, "still")


def test_a_disabled_plugin_is_not_even_imported(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    point = install("tilewright-bad", "1 / 0")
    monkeypatch.setenv("TILEWRIGHT_DISABLE", "tilewright-bad/plugin")

    assert discover([point]).broken == []


def test_approximations_are_approximations() -> None:
    spec = CostModelSpec(name="m", summary="", factory=print, approximations=("halo",))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="approximations of 'm' is a tuple, expected a tuple of Approximation"):
        Registry().add(spec, "tilewright-m")


# -- building ------------------------------------------------------------------------------------------------------


class GeneticOptions(Options):
    population: int = 8
    patience: int = 3


def registry_of(factory: Callable[[Any], Any], **rest: Any) -> Registry:
    registry = Registry()
    registry.add(MapperSpec(name="genetic", summary="", factory=factory, **rest), "tilewright-genetic")
    return registry


def still(options: Any) -> Any:
    return SimpleNamespace(search=lambda task, run: iter(()), options=options)


def test_options_are_validated_before_the_factory_sees_them() -> None:
    built: Any = registry_of(still, options=GeneticOptions).make(MapperSpec, "genetic", {"population": "12"})

    assert in_a_child(built).plugin.options == GeneticOptions(population=12)


def test_a_lazy_factory_imports_the_class_when_it_is_called(install: Install) -> None:
    """It is given the options, after what the factory was made with; a plugin without options is given none."""
    module = "tilewright_late_classes"
    install("tilewright-late", CLASSES, entry_point="classes")
    registry = Registry()
    for spec in (
        MapperSpec(name="plain", summary="", factory=lazy(module, "Still")),
        MapperSpec(name="chosen", summary="", factory=lazy(module, "Chosen", "fast"), options=GeneticOptions),
        MapperSpec(name="absent", summary="", factory=lazy(module, "Absent")),
    ):
        registry.add(spec, "tilewright-late")
    assert module not in sys.modules
    built: Any = registry.make(MapperSpec, "chosen", {"population": 7})
    assert in_a_child(built).plugin.said == ("fast", 7)
    registry.make(MapperSpec, "plain")
    with pytest.raises(PluginError, match="'absent' of tilewright-late .* failed: its factory raised AttributeError"):
        registry.make(MapperSpec, "absent")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"populaton": 3}, "populaton: unknown option; did you mean 'population'?; it takes population, patience"),
        ({"population": "many"}, "population: expected a whole number"),
        ({"population": "many", "patience": []}, "patience: expected a whole number"),
    ],
)
def test_wrong_options_name_plugin_and_option(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        registry_of(still, options=GeneticOptions).make(MapperSpec, "genetic", given)
    assert "options of mapper 'tilewright-genetic/genetic': " in str(caught.value) and message in str(caught.value)


def test_a_plugin_without_options_says_so() -> None:
    with pytest.raises(InputError, match="speed: unknown option; it takes none"):
        check_options(
            Registration(MapperSpec(name="m", summary="", factory=still), "tilewright-m", "1.0"), {"speed": 1}
        )


def test_a_missing_module_is_one_line_and_what_to_type() -> None:
    registry = registry_of(still, needs=("json", "a_module_nobody_has"), hint="pip install tilewright-genetic[fast]")

    with pytest.raises(PluginError) as caught:
        registry.make(MapperSpec, "genetic")
    assert str(caught.value) == (
        "mapper 'genetic' of tilewright-genetic (no version) needs a_module_nobody_has, which is not installed\n"
        "  hint: pip install tilewright-genetic[fast]"
    )


def test_a_factory_that_crashes_is_named() -> None:
    def crash(options: Any) -> Any:
        raise KeyError("seed")

    with pytest.raises(
        PluginError, match="mapper 'genetic' of tilewright-genetic .* failed: its factory raised KeyError"
    ):
        registry_of(crash).make(MapperSpec, "genetic")


def test_a_factory_may_refuse_in_its_own_words() -> None:
    def refuse(options: Any) -> Any:
        raise InputError("population must be even")

    with pytest.raises(InputError, match="^population must be even$"):
        registry_of(refuse).make(MapperSpec, "genetic")


def test_a_product_of_the_wrong_kind_is_refused() -> None:
    registry = Registry()
    registry.add(
        FrontendSpec(name="odd", summary="", factory=lambda options: SimpleNamespace(load=len)), "tilewright-odd"
    )

    with pytest.raises(
        PluginError, match="frontend 'odd' of tilewright-odd .* returned a types.SimpleNamespace without recogn"
    ):
        registry.make(FrontendSpec, "odd")


# -- lightness -----------------------------------------------------------------------------------------------------

HEAVY = ("numpy", "onnx", "networkx", "typer", "rich", "matplotlib", "numba", "highspy", "dask", "pandas", "scipy")


def test_listing_plugins_imports_nothing_heavy() -> None:
    code = f"""
import sys
from tilewright.plugin.registry import discover
registry = discover()
assert not registry.broken, registry.broken
for each in registry.registrations:
    each.spec.missing(), each.spec.options.model_json_schema(), each.spec.capabilities
print(len(registry.registrations), *(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    count, *heavy = done.stdout.split()
    assert int(count) >= 6 and heavy == []


def test_a_need_that_has_no_spec_is_missing_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    needs = ("__main__", "sys")
    assert MapperSpec(name="odd", summary="", factory=still, needs=needs).missing() == ("__main__",)


def test_a_default_is_declared_and_built_in_ones_come_first() -> None:
    registry = Registry(disabled=["off"])
    with pytest.raises(
        UnknownPluginError, match="no mapper is the default for search: name one; installed: none; switched off by"
    ):
        registry.default(MapperSpec, "search")
    for distribution in ("elsewhere", "tilewright"):
        spec = MapperSpec(name="mine", summary="", factory=lambda options: None, default_for=("search",))  # type: ignore[arg-type, return-value]
        registry.add(spec, distribution, "1.0")
        assert (
            registry.default(MapperSpec, "search")
            == {"elsewhere": "elsewhere/mine", "tilewright": "mine"}[distribution]
        )
    with pytest.raises(UnknownPluginError, match="no mapper is the default for fallback"):
        registry.default(MapperSpec, "fallback")


def test_core_names_no_plugin() -> None:
    # the name of the program, and a key of spaces
    names = {registration.spec.name for registration in installed().registrations} - {"tilewright", "tables"}
    files = [path for path in (ROOT / "core/tilewright").rglob("*.py") if "testing" not in path.parts]
    for path in files:
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        assert not names & {str(node.value) for node in nodes if isinstance(node, ast.Constant)}, path
    assert len(files) > 100

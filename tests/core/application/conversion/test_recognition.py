"""Detection: the notation whose keys a file has explains what is wrong, and other plugins do not undo built-in ones."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.application.api.load import workload_names
from tilewright.application.conversion.signs import keys_in, owners
from tilewright.errors import InputError, Location, UnknownNameError, Verdict
from tilewright.plugin import AdapterSpec, FrontendSpec, InputSet, installed
from tilewright.plugin.guard.processes import warn_once
from tilewright.plugin.specs import PluginSpec

TIMELOOP = """\
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {width: 64, block-size: 4, word-bits: 16}}
    - {name: MAC, class: intmac, attributes: {datawidth: 16, instances: 2.5}}
problem:
  shape:
    name: dot
    dimensions: [K]
    data-spaces:
    - {name: A, projection: [[[K]]]}
    - {name: Z, projection: [], read-write: true}
  instance: {K: 4}
mapping:
- {target: DRAM, type: temporal, factors: K=4}
"""
TEMPLATE = """\
workload:
  rank_sizes:
    {% set B = B | default(2) %}
    B: {{B}}
    K: 4
  bits_per_value: {All: 8}
  einsums:
  - "Y[b] = X[b, k] * W[k]"
  - "Z[b] = Y[b] * V[b]"
"""


class Nests:
    """An adapter that reads one file, and complains of its number without a location."""

    answer: Any = None

    def __init__(self, options: object = None) -> None: ...

    def parse(self, files: list[Path]) -> InputSet:
        if self.answer is not None:
            return InputSet(warnings=("nests read it",), problem=self.answer)
        raise InputError(f"{len(files)} files are given; expected one", hint="such as nest.json")

    def render(self, inputs: InputSet) -> dict[str, str]:
        return {}

    def expressible(self, inputs: InputSet) -> Verdict:
        return Verdict()


class Tables:
    """A frontend for files that end in .csv and .yaml."""

    def __init__(self, options: object) -> None: ...

    def recognises(self, source: str) -> bool:
        return source.endswith((".csv", ".yaml"))

    def load(self, source: str) -> tw.Workload:
        return tw.Workload.of(tw.load("mk,kn->mn; m=2 k=3 n=4", "problem"))


@pytest.fixture
def added() -> Iterator[Callable[[PluginSpec[Any]], None]]:
    """`added(spec)` installs a plugin for a test."""
    registry = installed()
    before = list(registry.registrations)
    yield lambda spec: registry.add(spec, "other-distribution", "1")
    registry.registrations[:] = before


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_keys_are_those_of_the_text_whatever_yaml_says() -> None:
    assert keys_in(TEMPLATE) == {
        "workload",
        *(f"workload.{key}" for key in ("rank_sizes", "bits_per_value", "einsums")),
    }
    assert {"architecture.subtree", "problem.shape", "-.target"} <= keys_in(TIMELOOP) | keys_in("- target: DRAM\n")
    assert keys_in('{"arch": {"nodes": [{"kind": 1}]}, "c": 2}') == {"arch", "arch.nodes", "c"}
    assert keys_in('{"arch": {"nodes": [}}') == {"arch", "nodes"} and "arch" in keys_in("{{include('x')}}\narch: 3\n")
    assert keys_in("a: {b: 1, c: {d: 2}}\n'e' : 1\n# f: 2\n") == {"a", "a.b", "a.c", "a.d", "e"}


@pytest.mark.parametrize("call", [tw.evaluate, lambda file: tw.convert([file], target="union")])
def test_a_file_of_timeloop_has_the_complaint_of_timeloop(call: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        call(written(tmp_path, "set.yaml", TIMELOOP))
    assert "read as timeloop and timeloop_v4" in raised.value.message and "instances" in raised.value.message
    assert "'name' is missing" not in str(raised.value)


@pytest.mark.parametrize("call", [tw.evaluate, lambda file: tw.convert([file], target="union")])
def test_a_template_is_rendered_before_its_yaml_is_judged(call: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the file has 2 einsums; select one \(read as accelforge\)"):
        call(written(tmp_path, "work.yaml", TEMPLATE))


def test_a_template_may_be_fused(tmp_path: Path) -> None:
    from tilewright.application.api.load.kinds import is_group_file

    assert not is_group_file(str(written(tmp_path, "work.yaml", TEMPLATE)))
    assert [layer.after for layer in tw.load(tmp_path / "work.yaml", "workload").layers] == [(), ("Y",)]


def test_another_adapter_does_not_take_over_complaints(
    added: Callable[[PluginSpec[Any]], None], tmp_path: Path
) -> None:
    added(AdapterSpec(name="nests", summary="Nests.", factory=Nests))  # type: ignore[arg-type]
    for name in ("accelforge", "zigzag"):
        files = sorted((Path(__file__).parents[4] / "examples" / name).glob("*.yaml"))
        with pytest.raises(InputError, match=f"read as {name}"):
            tw.evaluate(files)


def test_an_adapter_that_reads_everything_does_not_hide_the_one_with_the_keys(
    added: Callable[[PluginSpec[Any]], None], tmp_path: Path
) -> None:
    before = tw.load(written(tmp_path, "work.yaml", TEMPLATE), "workload")

    class Eager(Nests):
        answer = tw.load("mk,kn->mn; m=2 k=3 n=4", "problem")

    added(AdapterSpec(name="eager", summary="Reads everything.", factory=Eager))  # type: ignore[arg-type]
    assert tw.load(tmp_path / "work.yaml", "workload") == before
    known = [owner.spec.name for owner in owners([tmp_path / "work.yaml"], installed().of_kind(AdapterSpec))]
    assert known == ["accelforge"]


def test_a_frontend_s_suffixes_do_not_hide_notations(added: Callable[[PluginSpec[Any]], None], tmp_path: Path) -> None:
    added(FrontendSpec(name="tables", summary="Tables.", factory=Tables, suffixes=(".csv", ".yaml")))
    folder = Path(__file__).parents[4] / "examples" / "zigzag"
    files = [folder / "accelerator.yaml", folder / "workload.yaml" / "fc", folder / "mapping.yaml"]
    report = tw.evaluate(files, notation="zigzag")
    assert report.reports[0].valid and tw.evaluate(files).reports == report.reports
    assert [layer.name for layer in tw.load(folder / "workload.yaml", "workload").layers] == ["conv1", "fc"]
    own = written(tmp_path, "own.yaml", tw.load("mk,kn->mn; m=5 k=3 n=4", "problem").to_yaml())
    assert tw.load(own, "problem").macs == 60
    for name, text in (("table.csv", "a,b\n1,2\n"), ("table.yaml", "rows: [1, 2]\n")):
        assert tw.load(written(tmp_path, name, text), "workload").macs == 24


class Shy(Tables):
    """A frontend that recognises nothing, not even its own files."""

    def recognises(self, source: str) -> bool:
        return False


@pytest.mark.parametrize("use", [tw.load, lambda file: tw.map(file, "eyeriss", progress=False)], ids=["load", "map"])
def test_a_frontend_that_does_not_recognise_its_file_is_named(
    use: Callable[[Path], object], added: Callable[[PluginSpec[Any]], None], tmp_path: Path
) -> None:
    added(FrontendSpec(name="shy", summary="Tables.", factory=Shy, suffixes=(".tab", ".yaml")))
    with pytest.raises(InputError, match="its suffix is that of other-distribution/shy, which does not recognise it"):
        use(written(tmp_path, "net.tab", "a;b"))
    with pytest.raises(InputError) as caught:
        use(written(tmp_path, "net.yaml", "rows: [1, 2]"))
    assert "shy" not in str(caught.value)


class Greedy(Tables):
    """A frontend that says yes to every source."""

    def recognises(self, source: str) -> bool:
        return True


def test_a_named_notation_has_the_word_whatever_frontends_there_are(
    added: Callable[[PluginSpec[Any]], None], tmp_path: Path
) -> None:
    added(FrontendSpec(name="greedy", summary="All.", factory=Greedy, suffixes=(".yaml", ".csv", ".txt")))
    file = written(tmp_path, "set.yaml", TIMELOOP)
    with pytest.raises(InputError, match="set.yaml:.*instances"):
        tw.evaluate(file, notation="timeloop")
    with pytest.raises(InputError, match="set.yaml"):
        tw.map(file, "eyeriss", notation="timeloop", mapper="random")
    with pytest.raises(InputError, match="read as timeloop and timeloop_v4"):
        tw.load(file, "workload")
    for name, text in (("half.yaml", "a: [1\n"), ("plain.yaml", "words\n")):
        with pytest.raises(InputError, match="not valid YAML|plain text|expected"):
            tw.load(written(tmp_path, name, text), "workload")
    with pytest.raises(InputError, match="words.txt"):
        tw.evaluate(written(tmp_path, "words.txt", "nest nothing\n"), notation="loopnest")


def test_who_reads_a_file_unasked_is_told(
    added: Callable[[PluginSpec[Any]], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Eager(Nests):
        answer = tw.load("mk,kn->mn; m=2 k=3 n=4", "problem")

    added(FrontendSpec(name="tables", summary="Tables.", factory=Tables, suffixes=(".csv",)))
    added(AdapterSpec(name="eager", summary="Reads everything.", factory=Eager))  # type: ignore[arg-type]
    warn_once.cache_clear()
    assert tw.load(written(tmp_path, "rows.txt", "1 2\n"), "workload").macs == 24
    assert "rows.txt is read by adapter 'eager' of other-distribution 1; --from names another notation" in caplog.text


def test_frontends_that_read_a_file_differently_are_both_named(
    added: Callable[[PluginSpec[Any]], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Other(Greedy):
        def load(self, source: str) -> tw.Workload:
            return tw.Workload.of(tw.load("mk,kn->mn; m=5 k=3 n=4", "problem"))

    class Refusing(Greedy):
        def load(self, source: str) -> tw.Workload:
            raise InputError("no")

    file = written(tmp_path, "table.csv", "a,b\n1,2\n")
    warn_once.cache_clear()
    added(FrontendSpec(name="refusing", summary="None.", factory=Refusing, suffixes=(".csv",)))
    added(FrontendSpec(name="tables", summary="Tables.", factory=Tables, suffixes=(".csv",)))
    assert tw.load(file, "workload").macs == 24
    assert "table.csv is read by frontend 'tables' of other-distribution 1" in caplog.text
    added(FrontendSpec(name="other", summary="Others.", factory=Other, suffixes=(".csv",)))
    with pytest.raises(InputError, match="other-distribution/other and other-distribution/tables read it") as raised:
        tw.load(file, "workload")
    assert raised.value.hint == "TILEWRIGHT_DISABLE=other-distribution/other switches one of them off"


def test_names_and_formulas_of_the_library_are_not_taken(added: Callable[[PluginSpec[Any]], None]) -> None:
    names = dict.fromkeys(("eyeriss", "alexnet", "nk,km->nm; n=4 k=5 m=6", "theirs"), "elsewhere")
    added(FrontendSpec(name="greedy", summary="All.", factory=Greedy, suffixes=(".5", ".6"), library=names))
    assert isinstance(tw.load("eyeriss"), tw.Architecture) and len(tw.load("alexnet", "workload").layers) > 1
    assert tw.load("nk,km->nm; n=4 k=5 m=6", "problem").macs == 120
    assert (
        workload_names()["theirs"] == "elsewhere (other-distribution/greedy)"
        and tw.load("theirs", "problem").macs == 24
    )
    with pytest.raises(
        UnknownNameError, match=r"did you mean 'eyeriss'\?; known: .*, theirs \(other-distribution/greedy\)"
    ):
        tw.load("eyeris")


@pytest.mark.parametrize("signs", [(), ("for",)])
def test_a_third_party_s_complaint_is_heard_where_no_built_in_reader_came_far(
    signs: tuple[str, ...], added: Callable[[PluginSpec[Any]], None], tmp_path: Path
) -> None:
    class Far(Nests):
        def parse(self, files: list[Path]) -> InputSet:
            raise InputError("far", location=Location(str(files[0]), 7))

    added(AdapterSpec(name="far", summary="Far.", factory=Far, signs=signs))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a.csv:7: far \(read as other-distribution/far\)"):
        tw.evaluate(written(tmp_path, "a.csv", "1,2\n3\n"))
    nest = (Path(__file__).parents[4] / "examples" / "nest.txt").read_text().splitlines()
    with pytest.raises(InputError, match=r"b.txt:\d+: .*read as loopnest"):
        tw.evaluate(written(tmp_path, "b.txt", "\n".join([*nest[:-1], "nothing"])))

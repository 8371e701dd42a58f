"""`map` and `space`: what the command line finds, with names or objects, files and a cache; and how reports print."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support import interrupts
from support.command import Command, command
from tilewright.errors import InputError
from tilewright.mapspace.space import MapSpace
from tilewright.plugin import Costs, ScalarEvaluator
from tilewright.plugin.mapper import Proposals, Run, Task
from tilewright.schema.mapped import BoundMapping

GEMM = "nk,km->nm; n=8 k=6 m=6"
TWO = "union_dnn_layers"


@pytest.fixture
def report() -> tw.MappingReport:
    return tw.map(GEMM, arch="eyeriss", evaluations=300)


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """All but times, and whether it was searched."""
    for layer in data["layers"]:
        for key in ("cpu_seconds", "wall_seconds", "cached"):
            del layer["search"][key]
    return data


def test_who_names_no_mapper_gets_a_proof_or_is_told_why_not() -> None:
    proved = tw.map(GEMM, arch="eyeriss", cache=False)
    assert proved.layers[0].result is not None and proved.layers[0].result.proved == "yes"
    assert proved.layers[0].instead is None and "mapper optimal" in str(proved)
    other = tw.map(GEMM, arch="union_edge", model="maestro", cache=False)
    assert other.layers[0].instead is not None and other.layers[0].instead.name == "quickflow"
    assert "mapper quickflow" in str(other)
    assert "mapped by quickflow, since optimal can prove nothing there: einsum" in other.messages()


def test_it_finds_what_the_command_line_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Figures and files are equal, with the published dataflow and all defaults."""
    run: Command = command(monkeypatch, capsys)
    words = ["--arch", "simba", "--evaluations", 400, "--seed", 3, "--objective", "energy", "--no-cache"]
    ran = run("map", TWO, *words, "-o", tmp_path / "command", "--json")
    report = tw.map(TWO, arch="simba", evaluations=400, seed=3, objective="energy", cache=False)
    report.save(tmp_path / "function")

    assert report.configuration.constraints.name == ran.data["constraints"] == "channels"
    names = sorted(path.name for path in (tmp_path / "command").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "function").iterdir())
    for name in names:
        one, other = ((tmp_path / folder / name).read_text() for folder in ("command", "function"))
        if name == "summary.json":
            assert figures(json.loads(one)) == figures(json.loads(other)) == figures(ran.data)
        else:
            assert one.replace("<td>command</td>", "<td>function</td>") == other


def test_factors_are_a_rule_of_the_constraints_and_an_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    small = "nk,km->nm; n=5 k=3 m=2"
    words: dict[str, Any] = {"mapper": "random", "model": "oracle", "evaluations": 40, "cache": False}
    ragged = tw.map(small, arch="eyeriss", factors="ragged", **words)
    assert tw.space(small, arch="eyeriss", factors="ragged").size > tw.space(small, arch="eyeriss").size

    written = tw.load("eyeriss.row_stationary", "constraints").model_copy(update={"factors": "ragged"})
    ruled = tw.map(small, arch="eyeriss", constraints=written, **words)
    options = ["--mapper", "random", "--model", "oracle", "--evaluations", 40, "--no-cache", "--json"]
    ran = run("map", small, "--arch", "eyeriss", "--factors", "ragged", *options)
    assert ragged.layers[0].mapping == ruled.layers[0].mapping
    layers = [figures(report.data())["layers"] for report in (ragged, ruled)]
    assert layers == [figures(ran.data)["layers"]] * 2
    with pytest.raises(
        InputError, match="factors must be one of perfect, ragged, as_needed, not 'raged'; did you mean 'ragged'"
    ):
        tw.map(small, arch="eyeriss", factors="raged", **words)
    refused = tw.map(small, arch="eyeriss", factors="ragged", mapper="loma", model="oracle", cache=False)
    assert "mapper loma does not support this: factors: ragged tiles are not accepted" in str(refused.layers[0].error)


def test_names_files_dicts_and_objects_are_the_same_search(tmp_path: Path) -> None:
    problem, architecture = tw.load(GEMM, "problem"), tw.library.architecture("eyeriss")
    (tmp_path / "problem.yaml").write_text(problem.to_yaml())
    (tmp_path / "arch.yaml").write_text(architecture.to_yaml())
    pairs: list[tuple[Any, Any]] = [
        (GEMM, "eyeriss"),
        (problem, architecture),
        (tw.Workload.of(problem), architecture.to_data()),
        (tmp_path / "problem.yaml", tmp_path / "arch.yaml"),
    ]
    found = [tw.map(work, place, evaluations=200, cache=tmp_path / "cache").layers[0] for work, place in pairs]

    assert len({layer.edp for layer in found}) == 1
    assert [layer.cached for layer in found] == [False, True, True, True]


def test_what_a_perfect_search_found_is_not_taken_for_a_ragged_one(tmp_path: Path) -> None:
    found = [
        tw.map("nk,km->nm; n=257 k=64 m=12", "eyeriss", mapper="sunstone", factors=factors, cache=tmp_path).layers[0]
        for factors in ("perfect", "ragged", "perfect", "ragged")
    ]
    assert [layer.cached for layer in found] == [False, False, True, True]
    perfect, ragged, *again = [layer.edp or 0.0 for layer in found]
    assert again == [perfect, ragged] and 0.0 < ragged < perfect


def test_a_mapping_prints_as_a_loop_nest(report: tw.MappingReport) -> None:
    mapping = report.layers[0].mapping
    assert mapping is not None
    lines = str(mapping).splitlines()
    assert lines[0] == "DRAM holds A 48, B 36, Z 48" and lines[-1].strip() == "mac: Z[n, m] += A[n, k] * B[k, m]"
    assert any(line.strip().startswith("WRegister holds B ") for line in lines)
    trips = [int(line.split(" in ")[1].split()[0]) for line in lines if " in " in line]
    product = 1
    for trip in trips:
        product *= trip
    assert product == 288
    assert mapping._repr_html_() == f"<pre>{mapping}</pre>" and f"{mapping}</pre>" in report.layers[0]._repr_html_()
    plain = tw.Mapping.from_yaml(mapping.to_yaml())
    assert plain == mapping and mapping == plain and hash(plain) == hash(mapping)
    assert str(plain).splitlines()[0] == "DRAM holds A, B, Z"
    again = pickle.loads(pickle.dumps(mapping))
    assert isinstance(again, BoundMapping) and str(again) == str(mapping)


def test_what_cannot_be_mapped_is_in_the_report() -> None:
    report = tw.map("nk,kj,jm->nm; n=4 k=4 j=4 m=2", arch="eyeriss", model="maestro", evaluations=50)

    assert report.layers[0].mapping is None and report.layers[0].error is not None
    assert not report.complete and report.edp is None and "at most 2 accepted" in str(report)
    assert str(report.layers[0]).startswith("einsum: no mapping: ")


class Greedy:
    """A mapper of one's own, in no package."""

    def search(self, task: Task, run: Run) -> Proposals:
        yield task.space.sample(run.rng, 50)


class Counting(ScalarEvaluator):
    """A cost model of one's own: every mapping costs its work, and its number of loops."""

    def bind(self, problem: tw.Problem, architecture: tw.Architecture) -> "Counting":
        self.problem = problem
        return self

    def explain(self, mapping: tw.Mapping) -> tw.Report:
        loops = len(list(mapping.loops()))
        work, cycles = self.problem.macs, self.problem.macs + loops
        return tw.Report(
            model="counting", problem="p", valid=True, macs=work, cycles=cycles, energy_pj=1.0, edp=float(cycles)
        )


def test_a_refused_cluster_has_its_place_in_the_file(tmp_path: Path) -> None:
    """The cost model refuses an axis that the schema allows, and does not know the file."""
    file = tmp_path / "arch.yaml"
    file.write_text(
        tw.load("eyeriss", "architecture").to_yaml().replace("fanout: {size: 14", "fanout: {axis: Q, size: 14")
    )
    line = next(number for number, text in enumerate(file.read_text().splitlines(), 1) if "axis: Q" in text)
    expected = f"{file}:{line}:"
    for source in (file, [file]):
        (layer,) = tw.map("quickflow_convs/V", source, evaluations=1, cache=False).layers
        assert expected in str(layer.error) and "cluster GlobalBuffer: fanout.axis is Q" in str(layer.error)
    (layer,) = tw.map("quickflow_convs/V", tw.load(file), evaluations=1, cache=False).layers
    assert str(layer.error).startswith("cost model timeloop does not support this: cluster GlobalBuffer: fanout.axis")


def test_mappers_and_models_of_ones_own(tmp_path: Path) -> None:
    report = tw.map(GEMM, arch="eyeriss", mapper=Greedy(), model=Counting(), objective="cycles", cache=tmp_path / "c")

    assert report.layers[0].result is not None and report.layers[0].result.evaluated == 50
    assert report.configuration.mapper_record.name == "Greedy" and not (tmp_path / "c").exists()
    assert Costs.gather([report.layers[0].report]).cycles[0] == report.cycles  # type: ignore[list-item]


def test_an_interruption_returns_what_is_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Interrupted(Greedy):
        def search(self, task: Task, run: Run) -> Proposals:
            yield task.space.sample(run.rng, 50)
            interrupts.press()

    with interrupts.heard(), pytest.warns(UserWarning, match=r"map\(\) was interrupted: its result is incomplete"):
        report = tw.map(TWO, arch="eyeriss", mapper=Interrupted(), folder=tmp_path)

    assert len(report.layers) == 1 and not report.complete and "interrupted: " in str(report)
    assert len(list(tmp_path.glob("0*.yaml"))) == 1 and (tmp_path / "summary.csv").is_file()


def test_the_space_is_the_one_that_is_searched(report: tw.MappingReport) -> None:
    published, free = tw.space(GEMM, "eyeriss"), tw.space(GEMM, arch="eyeriss", constraints="none")
    best = report.layers[0].mapping
    assert best is not None and published.contains(best) and published.size < free.size
    assert free.size == MapSpace.of(free.problem, free.architecture, rules=None).size
    aspect = tw.space(GEMM, "union_edge", "aspect_8x32")
    assert [cluster.fanout.size for cluster in aspect.architecture.clusters if cluster.fanout.size > 1] == [8, 32]


def test_values_are_as_wide_as_the_memories_state_or_as_the_network_does() -> None:
    """Values of 8 bits share words of 16, so that they cost less; the layer's mapping has its own architecture."""
    problem = tw.load("nk,km->nm; n=64 k=64 m=64", kind="problem")
    tensors = (tensor.model_copy(update={"bits": 8}) for tensor in problem.tensors)
    narrow = problem.model_copy(update={"tensors": tuple(tensors)})
    search: dict[str, Any] = {"arch": "eyeriss", "mapper": "random", "evaluations": 300, "cache": False}
    words, bits = tw.map(narrow, **search), tw.map(narrow, value_bits="network", **search)

    assert words.energy_pj == tw.map(problem, **search).energy_pj
    assert any("--value-bits network" in message for message in words.messages())
    assert bits.energy_pj is not None and words.energy_pj is not None and bits.energy_pj < words.energy_pj
    assert not any("--value-bits" in message for message in bits.messages())
    mapping = bits.layers[0].mapping
    assert mapping is not None and tw.evaluate(mapping).reports[0].energy_pj == bits.energy_pj
    with pytest.raises(InputError, match="value_bits"):
        tw.map(narrow, value_bits="file", **search)  # type: ignore[arg-type]

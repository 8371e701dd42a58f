"""`correlate`: cost models on the same sampled mappings."""

import csv
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.command import Command, command
from support.interrupts import heard
from tilewright import interrupts
from tilewright.application.run.sampling import EXPLAINED
from tilewright.errors import Reason
from tilewright.mapspace.legality import legality
from tilewright.plugin import CostModel, CostModelSpec, Costs, MappingBatch, ScalarEvaluator

GEMM = "nk,km->nm; n=4 k=6 m=4"


class Bound(ScalarEvaluator):
    """The costs of `timeloop`, changed by a model's rule."""

    def __init__(self, model: "Squared", problem: tw.Problem, architecture: tw.Architecture) -> None:
        self.model, self.units = model, architecture.compute_instances
        self.inner = tw.installed().make(CostModelSpec, "timeloop").bind(problem, architecture)

    def explain(self, mapping: tw.Mapping) -> tw.Report:
        report = self.inner.explain(mapping)
        energy, cycles = report.energy_pj, report.cycles
        assert energy is not None and cycles is not None
        name = type(self.model).__name__
        rest = tw.Report(model=name, problem=report.problem, macs=report.macs, valid=False)
        if self.model.refuses(cycles):
            reason = Reason(code="odd", where="mapping", message="the cycles are odd")
            return rest.model_copy(update={"reasons": (reason,)})
        return rest.with_costs(self.model.energy(energy), cycles, self.units)


class Squared:
    """The same ranks as `timeloop`, with other energies."""

    def bind(self, problem: tw.Problem, architecture: tw.Architecture) -> Bound:
        return Bound(self, problem, architecture)

    def energy(self, energy: float) -> float:
        return energy**2

    def refuses(self, cycles: int) -> bool:
        return False


class Opposite(Squared):
    """The opposite ranks."""

    def energy(self, energy: float) -> float:
        return 1e9 / energy


class Picky(Squared):
    """Twice the energies; mappings of odd cycles are refused."""

    def energy(self, energy: float) -> float:
        return 2 * energy

    def refuses(self, cycles: int) -> bool:
        return cycles % 4 > 0


@pytest.fixture(scope="module")
def report() -> tw.CorrelationReport:
    models: list[str | CostModel] = ["timeloop", Squared(), Opposite(), Picky()]
    return tw.correlate(GEMM, arch="union_edge", models=models, samples=30, objective="energy", worst=2)


def test_ranks_and_ratios_are_those_of_the_energies(report: tw.CorrelationReport) -> None:
    pairs = {(one.first, one.second): one for one in report.pairs if one.figure == "energy"}
    assert [pairs["timeloop", name].tau for name in ("Squared", "Opposite", "Picky")] == pytest.approx([1, -1, 1])
    assert [pairs["timeloop", name].rho for name in ("Squared", "Opposite", "Picky")] == pytest.approx([1, -1, 1])
    (layer,) = report.layers
    energies = layer.costs["timeloop"].energy_pj
    squared = pairs["timeloop", "Squared"]
    assert squared.mappings == 30 and squared.ratio(50) == pytest.approx(
        float(sorted(energies)[14] + sorted(energies)[15]) / 2
    )
    doubled = pairs["timeloop", "Picky"]
    assert [doubled.ratio(q) for q in (5, 50, 95)] == pytest.approx([2, 2, 2])
    cycles = next(one for one in report.pairs if (one.second, one.figure) == ("Squared", "cycles"))
    assert cycles.tau == pytest.approx(1) and cycles.ratio(5) == cycles.ratio(95) == 1


def test_refusals_are_counted_with_reasons(report: tw.CorrelationReport) -> None:
    (layer,) = report.layers
    odd = int((layer.costs["timeloop"].cycles % 4 > 0).sum())
    assert 0 < odd < 30 and int((~layer.costs["Picky"].valid).sum()) == odd
    (reason,) = layer.refused["Picky"].reasons
    assert (reason.code, reason.example, reason.count) == ("odd", "the cycles are odd", odd)
    assert f"{odd} of 30 mappings" in str(report) and "the cycles are odd [odd]" in str(report)
    (pair,) = [one for one in report.pairs if (one.first, one.second, one.figure) == ("timeloop", "Picky", "energy")]
    assert pair.mappings == 30 - odd


def test_mappings_are_legal_and_follow_from_the_seed(report: tw.CorrelationReport) -> None:
    (layer,) = report.layers
    assert all(legality(layer.problem, layer.architecture, layer.mapping(at)) for at in range(len(layer)))
    again = tw.correlate(GEMM, arch="union_edge", models=["timeloop", Squared()], samples=30)
    other = tw.correlate(GEMM, arch="union_edge", models=["timeloop", Squared()], samples=30, seed=1)
    first, second = (one.layers[0].costs["timeloop"].energy_pj.tolist() for one in (again, other))
    assert first == layer.costs["timeloop"].energy_pj.tolist() != second


def test_energy_by_memory_adds_up(report: tw.CorrelationReport) -> None:
    (layer,) = report.layers
    accepted = layer.costs["Picky"].valid
    mean = layer.costs["timeloop"].energy_pj[accepted][:EXPLAINED].mean()
    assert layer.explained == min(EXPLAINED, int(accepted.sum()))
    assert sum(layer.parts["timeloop"].values()) == pytest.approx(mean)
    assert list(layer.parts["timeloop"]) == ["DRAM", "L2", "L1", "compute"] and list(layer.parts["Squared"]) == [
        "unnamed parts"
    ]


def test_files_have_the_most_unusual_ratios(report: tw.CorrelationReport, tmp_path: Path) -> None:
    folder = report.save(tmp_path / "run")
    saved = [row for row in report.data()["layers"][0]["pairs"] if row["figure"] == "energy"]
    (layer,) = report.layers
    energies = layer.costs["timeloop"].energy_pj
    first, *_ = sorted(folder.glob("001_*timeloop_Squared.yaml"))
    found = tw.evaluate(first, models="timeloop").reports[0].energy_pj
    assert found in (min(energies), max(energies))  # the ratio of the squared energy is the energy
    assert len(list(folder.glob("0*.yaml"))) == 2 * len(saved)
    with (folder / "samples.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30 * 4 and float(rows[0]["energy_pj"]) == energies[0]
    assert tw.plot(folder, tmp_path / "scatter.svg", kind="scatter").read_text().count("<use") > 100


def test_a_model_that_does_not_fit_is_left_out_with_its_reason() -> None:
    report = tw.correlate(GEMM, arch="eyeriss", models="timeloop,maestro,oracle,timeloop_binary", samples=4)
    (layer,) = report.layers
    assert [one.second for one in report.pairs if one.figure == "edp"] == ["oracle"]
    assert {name: reasons[0].code for name, reasons in layer.left_out.items()} == {
        "maestro": "bypass",
        "timeloop_binary": "plugin_failed",
    }
    text = str(report)
    assert "every tensor must go through every memory level" in text and "install Timeloop" in text
    assert "overlap" not in report.conventions or report.conventions["partial sums"].keys() >= {"timeloop", "maestro"}


def test_several_layers_have_medians() -> None:
    layers = "a[n,m] += x[n,k] * w[k,m]; b[n,p] += a[n,m] * v[m,p]; n=4 k=6 m=4 p=8"
    report = tw.correlate(layers, arch="union_edge", models=["timeloop", Squared()], samples=20)
    (pair,) = [one for one in report.pairs if one.figure == "edp"]
    taus = [one.tau for one in report.correlations if one.figure == "edp"]
    assert (pair.layers, pair.mappings, pair.tau_least) == (2, 40, min(taus, key=lambda tau: tau or 0.0))


def test_ctrl_c_and_a_deadline_keep_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"models": ["timeloop", Squared()], "samples": 50}
    late = tw.correlate(GEMM, arch="union_edge", seconds=0.0, **words)  # type: ignore[arg-type]
    assert late.layers[0].stopped == "deadline" and not late.correlations and "no mapping was evaluated" in str(late)

    calls: list[int] = []

    class Pressed(Squared):
        def energy(self, energy: float) -> float:
            calls.append(1)
            if len(calls) == 6:
                interrupts.request_stop()
            return energy

    with heard(), pytest.warns(UserWarning, match="interrupted"):
        cut = tw.correlate(GEMM, arch="union_edge", models=["timeloop", Pressed()], samples=500)
    assert 4 <= len(cut.layers[0]) < 500 and cut.layers[0].stopped == "cancelled"
    assert cut.correlations and "interrupted: the mappings so far" in str(cut)
    assert not cut.data()["complete"]


def test_the_command_prints_what_the_function_returns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run: Command = command(monkeypatch, capsys)
    words = ("correlate", GEMM, "--arch", "union_edge", "--model", "timeloop", "--models", "maestro", "--samples", 30)
    ran = run(*words, "--json", "-o", tmp_path / "run")
    report = tw.correlate(GEMM, "union_edge", models="timeloop,maestro", samples=30)
    assert ran.code == 0 and ran.data["pairs"] == report.data()["pairs"]
    assert ran.data["layers"][0]["points"] == report.data()["layers"][0]["points"]
    assert (tmp_path / "run" / ran.data["layers"][0]["pairs"][-1]["files"][0]).is_file()
    text = run(*words).out
    assert "Kendall" in text and "energy by memory" in text and "bandwidth only, no energy" in text


class Stranger(Squared):
    """Its batches have other costs than its reports."""

    def bind(self, problem: tw.Problem, architecture: tw.Architecture) -> Bound:
        class Other(Bound):
            def evaluate_batch(self, batch: MappingBatch) -> Costs:
                costs = super().evaluate_batch(batch)
                return Costs(costs.valid, costs.energy_pj * 2, costs.cycles)

        return Other(self, problem, architecture)


def test_a_model_that_contradicts_itself_is_left_out_by_name() -> None:
    report = tw.correlate(GEMM, arch="union_edge", models=["timeloop", Stranger(), "pipelined"], samples=10)
    (reason,) = report.layers[0].left_out["Stranger"]
    assert "cost model 'Stranger' failed: it explains energy" in reason.message and reason.code == "plugin_failed"
    assert {(one.first, one.second) for one in report.pairs} == {("timeloop", "pipelined")}


def test_half_of_the_time_is_for_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that runs a second for each look at it."""
    seconds = iter(range(10**6))
    monkeypatch.setattr("tilewright.application.run.sampling.time.monotonic", lambda: float(next(seconds)))
    report = tw.correlate(GEMM, "eyeriss", models="timeloop,pipelined", samples=100_000, seconds=20.0)
    assert 0 < len(report.layers[0]) < 100_000 and report.layers[0].stopped == "deadline"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"samples": 2.5}, "samples must be a whole number, not 2.5"),
        ({"samples": None}, "samples must be a whole number, not None"),
        ({"samples": 10**9}, "samples must be at most 100,000, not 1,000,000,000"),
        ({"seed": 1.0}, "seed must be a whole number"),
        ({"worst": None}, "worst must be a whole number"),
        ({"models": None}, "models must be a list of distinct names"),
        ({"models": 5}, "models must be a list of distinct names"),
    ],
)
def test_odd_arguments_are_refused_at_once(words: dict[str, Any], said: str) -> None:
    with pytest.raises(tw.errors.InputError) as error:
        tw.correlate(GEMM, "eyeriss", **{"models": "timeloop,oracle"} | words)
    assert said in str(error.value)


def test_groups_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = tw.load(Path(__file__).parents[4] / "examples" / "two_products.yaml", "group_mapping")
    file = tmp_path / "group.yaml"
    file.write_text(group.to_yaml())
    for source in (group, group.to_data(), file, str(file), [str(file)]):
        with pytest.raises(tw.errors.CallError, match="takes no group mappings") as error:
            tw.correlate(source, "eyeriss", models="timeloop,oracle")
        assert "tilewright evaluate GROUP --models" in str(error.value)
    ran = command(monkeypatch, capsys)("correlate", file, "--arch", "eyeriss", "--models", "timeloop,oracle")
    assert ran.code == 2 and "takes no group mappings" in ran.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--models", "timeloop"), 2, "two or more cost models"),
        (("--models", "timeloop,timeloop"), 2, "distinct names"),
        (("--models", "timeloop,nothing"), 2, "no cost model is called 'nothing'"),
        (("--models", "timeloop,maestro", "--samples", "1"), 2, "--samples"),
        (("--models", "timeloop,timeloop_binary"), 3, ""),
        (("--models", "timeloop,maestro", "--seconds", "0"), 1, "--seconds"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    ran = command(monkeypatch, capsys)("correlate", GEMM, "--arch", "union_edge", *words)
    assert ran.code == code and said in ran.err

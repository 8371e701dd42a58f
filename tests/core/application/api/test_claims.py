"""What plugins that are not built in prove is printed as their claim, and dropped where a result of the same run refutes it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import tilewright as tw
from support.command import Command, command
from support.products import products
from tilewright.plugin import MapperSpec, Proposals, Run, Task, installed
from tilewright.schema.mapped import PluginRecord
from tilewright.schema.mapped.claimants import claimant
from tilewright.schema.workload import Layer, Workload

GEMM = "nk,km->nm; n=64 k=64 m=64"
SMALL = "nk,km->nm; n=4 k=4 m=4"


class FalseProver:
    """Takes the minimum of 64 samples, times a factor, for a proof."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def search(self, task: Task, run: Run) -> Proposals:
        costs = yield task.space.sample(run.rng, 64)
        run.prove(float(costs.of(task.objective).min()) * self.factor)


class EarlyProver(FalseProver):
    """Improves its mapping for a while, and says that this is the optimum."""

    def search(self, task: Task, run: Run) -> Proposals:
        best = float("inf")
        for _ in range(8):
            costs = yield task.space.sample(run.rng, 64)
            best = min(best, float(costs.of(task.objective).min()))
        run.prove(best * 0.999)


@pytest.fixture
def fp(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of the false prover, registered by another distribution."""
    registry = installed()
    monkeypatch.setattr(registry, "registrations", list(registry.registrations))
    registry.add(
        MapperSpec(name="fp", summary="", factory=lambda options: FalseProver(), ends=True), "elsewhere", "1.0"
    )
    return "fp"


def compared(*mappers: Any, problem: str = GEMM) -> tw.ComparisonReport:
    return tw.compare(
        problem, "eyeriss", models="timeloop", mappers=mappers, evaluations=3000, cache=False, progress=False
    )


def test_the_rule() -> None:
    ours = PluginRecord(name="optimal", distribution="tilewright", version="1")
    others, ones = PluginRecord(name="fp", distribution="elsewhere"), PluginRecord(name="Mine")
    assert claimant(ours, ours) is None
    assert claimant(ours, others) == "elsewhere/fp" and claimant(others, ones) == "elsewhere/fp and Mine"


@pytest.mark.process
def test_a_bound_above_another_result_is_a_failure_of_its_plugin(
    fp: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Command = command(monkeypatch, capsys)
    words = ("--mappers", f"{fp},optimal,random", "--evaluations", 3000, "--no-cache", "--json")
    ran = run("compare", GEMM, "--arch", "eyeriss", *words)
    told = "mapper 'fp' of elsewhere 1.0 failed: its bound 11.333 is above 9.228 mJ x cycles that optimal found"
    assert ran.code == 0 and told in ran.err
    rows = {row["mapper"]: row for row in ran.data["rows"]}
    assert rows["fp"]["search"]["error"].startswith(told) and rows["fp"]["valid"]
    assert (rows["fp"]["search"]["lower_bound"], rows["fp"]["search"]["claimed_by"]) == (None, None)
    distances = {name: row["prices"][0]["distance"] for name, row in rows.items()}
    assert min(distances.values()) >= 1 and distances["optimal"] == pytest.approx(1.0)
    assert all(row["prices"][0]["optimum_proved"] for row in rows.values())


@pytest.mark.parametrize("prover", (FalseProver(0.9), EarlyProver(), FalseProver(1 - 1e-9)))
def test_any_other_result_refutes_a_bound(prover: FalseProver) -> None:
    failed, optimal = compared(prover, "optimal").searches
    assert "its bound" in str(failed.layer.error) and failed.layer.result is not None
    assert failed.layer.result.lower_bound is None and optimal.layer.error is None


def test_a_true_bound_of_another_stays_a_claim() -> None:
    report = compared(FalseProver(0.5), "random")
    prover, _ = report.searches
    assert prover.layer.error is None and prover.layer.result is not None
    assert prover.layer.result.told_proof == "to 50 %, claimed by FalseProver"
    price = report.data()["rows"][0]["prices"][0]
    assert (price["optimum_proved"], price["optimum_claimed_by"]) == (False, "FalseProver")


@pytest.mark.process
def test_a_claim_is_printed_as_one_until_verify_confirms_it(
    fp: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run: Command = command(monkeypatch, capsys)
    ran = run("map", GEMM, "--arch", "eyeriss", "--mapper", fp, "--no-cache", "-o", tmp_path)
    assert ran.code == 0 and "that no mapping of the space is better is claimed by elsewhere/fp" in ran.out
    page = (tmp_path / "report.html").read_text()
    assert "claimed by elsewhere/fp" in page and "0 of 1 layers" in page
    assert '"claimed_by": "elsewhere/fp"' in (tmp_path / "summary.json").read_text()
    file = tmp_path / "001_einsum.certificate.yaml"
    text = file.read_text()
    assert text.startswith("# elsewhere/fp claims: einsum on eyeriss") and "is the minimum" not in text
    ran = run("verify", "--certificate", file, "--samples", 2000, "--limit", 0)
    assert ran.code == 1 and "claims: einsum" in ran.out and "not confirmed" in ran.out
    data = yaml.safe_load(text)
    del data["claimed_by"]  # the mapper's record says it, too
    assert tw.verify_certificate(data, samples=1, limit=0).certificate.claimed_by == "elsewhere/fp"


@pytest.mark.process
def test_verify_confirms_a_claim_only_by_what_it_checks_itself(fp: str) -> None:
    """A search by the same mapper would repeat its claim; the costs of all mappings confirm it."""
    report = tw.map(SMALL, "eyeriss", mapper=fp, cache=False, progress=False)
    certificate = report.certificate("einsum")
    assert certificate is not None
    true = certificate.model_copy(update={"bound": 1.0, "gap": 1 - 1 / certificate.value})
    asked = {limit: tw.verify_certificate(true, samples=10, limit=limit) for limit in (0, 10**6)}
    bounds = {limit: {check.name: check for check in found.checks}["bound"] for limit, found in asked.items()}
    assert bounds[0].passed is None and "claimed by elsewhere/fp, and by nothing else" in bounds[0].message
    assert bounds[10**6].passed and asked[10**6].certificate.claimed_by == "elsewhere/fp"


def test_tables_fronts_and_networks_name_the_claimant() -> None:
    settings: dict[str, Any] = {"mapper": FalseProver(0.5), "objective": "energy", "cache": False, "progress": False}
    report = tw.map(products(4, (4, 4, 8)), "eyeriss", **settings)
    assert "to 50 %, claimed by FalseProver" in str(report)
    fused = tw.fuse_network(products(4, (4, 4, 8)), "eyeriss", **settings)
    assert fused.claimed_by == "FalseProver" and not fused.proved and "claimed by FalseProver" in str(fused)
    settings.pop("objective")
    front = tw.front(SMALL, "eyeriss", points=2, **settings)
    assert "claimed by FalseProver" in str(front) and front.rows()[0]["claimed_by"] == "FalseProver"


def test_layers_that_do_not_say_what_they_read_are_told_once() -> None:
    layers = [Layer(problem=layer.problem) for layer in Workload.model_validate(products(4, (4, 4, 8))).layers]
    assert Workload(name="one", layers=tuple(layers)).told_unknown == "one layer does not state whose results it reads"
    assert Workload(name="none", layers=tuple(layers[:1])).told_unknown == ""


def test_a_point_of_a_front_refutes_the_bound_of_another() -> None:
    """Each point is a search; without a limit, the false prover stops at a worse mapping than under one."""

    class Lazy(FalseProver):
        def search(self, task: Task, run: Run) -> Proposals:
            limited = task.most_cycles < float("inf")
            costs = yield task.space.sample(run.rng, 2000 if limited else 20)
            run.prove(float(costs.of(task.objective).min()))

    report = tw.front(SMALL, "eyeriss", points=2, mapper=Lazy(), cache=False, progress=False)
    told = str(report)
    assert "its bound" in told and "that a search under another limit on cycles found; so the bound is dropped" in told
    assert all(point.bound is None for point in report["einsum"].points)

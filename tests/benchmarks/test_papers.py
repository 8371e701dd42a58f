"""The papers' experiments: each names its paper and claim, its files become a section, and the pages are generated."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.experiments import EXPERIMENTS, authors, page, verdicts
from benchmarks.experiments.framework import Chart, Experiment, Row, Run, load, problems, table

import tilewright as tw
from benchmarks import papers
from support import ROOT
from tilewright.plugin.registry import installed
from tilewright.plugin.specs import CostModelSpec

FOLDER = papers.FOLDER


def test_the_list_has_every_experiment_with_its_paper(capsys: pytest.CaptureFixture[str]) -> None:
    papers.main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    for line, each in zip(lines, EXPERIMENTS.values(), strict=True):
        assert each.paper in line and each.part in line and each.title in line


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_names_its_claim_and_why_figures_differ(name: str) -> None:
    each = EXPERIMENTS[name]
    assert each.paper and each.part and each.title
    assert all(text.endswith(".") for text in (each.claim, each.reason, each.omits))


def test_the_pages_are_generated_from_the_kept_results() -> None:
    assert {path.stem for path in FOLDER.glob("*.csv")} == {*EXPERIMENTS, "runs"}
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(EXPERIMENTS)
    kept = (ROOT / "benchmarks/papers.md").read_text(encoding="utf-8")
    assert kept == page.page(EXPERIMENTS, FOLDER), "python benchmarks/papers.py --page"
    assert (ROOT / "benchmarks/papers_coverage.md").read_text(encoding="utf-8") == page.coverage()
    assert (ROOT / "benchmarks/papers_verdicts.md").read_text(encoding="utf-8") == verdicts.page(FOLDER)


def test_every_claim_has_a_verdict_and_a_reason_unless_it_holds(tmp_path: Path) -> None:
    rows = list(verdicts.judged(FOLDER))
    assert {verdict for _, _, (_, verdict) in rows} == set(verdicts.VERDICTS)
    for paper, claim, (ours, verdict) in rows:
        assert ours and "nan" not in ours and "not measured" not in ours, (paper, claim)
        assert claim.why or verdict == "holds", (paper, claim)
        named = [name for name in re.findall(r"`([^`]*)`", claim.see) if " " not in name]
        assert all(name in EXPERIMENTS for name in named if "_" in name), claim
    unmeasured = [ours for _, claim, (ours, _) in verdicts.judged(tmp_path) if callable(claim.finding)]
    assert set(unmeasured) == {"not measured"}


def test_figures_that_nothing_has_are_told_as_such() -> None:
    assert verdicts.span([]) == "-" and verdicts.span([2.0, 1.0]) == "1 to 2"


def test_the_published_rules_find_what_the_authors_program_finds() -> None:
    """The shortest layer of Figure 6.11; the recorded mapping is evaluated with its best orders."""
    (row,) = (row for row in authors.recorded("6.11") if row["layer"] == "b6-pw1")
    problem = problems("sunstone_mobilenetv2_layers", ["b5_pw1"])["b5_pw1"]
    space = tw.space(problem, "sunstone_edge", constraints="none")
    evaluator = installed().make(CostModelSpec, "timeloop").bind(problem, space.architecture)
    recorded = authors.authors_mapping(space, row)
    assert recorded.fits().all()
    layer = tw.map(problem, "sunstone_edge", constraints="none", mapper="sunstone", mapper_options={"principles": "paper"},
                   progress=False, cache=False).layers[0]  # fmt: skip
    assert layer.edp == pytest.approx(authors.least_edp(recorded, evaluator), rel=1e-12)


def test_the_manuals_page_sums_up_the_kept_results() -> None:
    manual = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
    runs = load(FOLDER / page.RUNS)
    seconds = sum(int(row["cpu_seconds"]) for row in runs)
    assert f"The {len(runs)} full runs took {seconds:,} CPU seconds." in manual
    assert f"lists {len(load(page.COVERAGE))} items" in manual
    assert f"judges {len(list(verdicts.judged(FOLDER)))} claims" in manual
    linked = re.findall(r"\]\(\.\./([^)]*)\)", manual)
    assert len(linked) == 4 and all((ROOT / name).is_file() for name in linked)


def test_every_item_of_the_papers_has_a_state_and_a_command_or_a_reason() -> None:
    rows = load(page.COVERAGE)
    assert {row["state"] for row in rows} == {"works", "partly", "missing", "left out"}
    for row in rows:
        assert row["see"] if row["state"] == "works" else row["why"], row
        (first, *_) = row["see"].split("`")[1:] or [""]
        assert " " in first or "_" not in first or first in EXPERIMENTS or first.startswith("shared"), row


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The only experiment, which counts its runs."""

    def measure(run: Run) -> Iterator[Row]:
        yield {"tool": "a", "edp": 1.5, "cpu_seconds": 2.0, "quick": run.quick}

    def show(rows: list[Row]) -> Iterator[str]:
        yield table(("tool", "EDP"), [[row["tool"], float(row["edp"])] for row in rows])

    def chart(rows: list[Row]) -> Chart:
        return Chart("tool", "EDP", {"a": ([row["tool"] for row in rows], [1.5])})

    made = Experiment("one", "A paper", "Table I", "what", "It is 1.", "Reasons.", "Layers.", measure, show, chart)
    monkeypatch.setattr(papers, "EXPERIMENTS", {"one": made})
    return made


def test_a_run_writes_rows_plot_and_page_and_prints_figures_with_the_claim(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "results"
    papers.main(["one", "--quick", "-o", str(folder)])
    told = capsys.readouterr().out
    assert load(folder / "one.csv") == [{"tool": "a", "edp": "1.5", "cpu_seconds": "2", "quick": "True"}]
    assert (folder / "one.svg").read_text().startswith("<?xml")
    written = (tmp_path / "results.md").read_text()
    for text in (told, written):
        assert "*The paper:* It is 1." in text and "|a|1.5|" in text
        assert "quick run, 2 CPU s. It leaves out: Layers." in text
    assert "![Table I: what](results/one.svg)" in written

    papers.main(["all", "-o", str(folder)])
    assert "full run" in (tmp_path / "results.md").read_text()


def test_an_interrupted_run_says_how_to_continue(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(papers, "perform", interrupted)
    with pytest.raises(SystemExit) as ended:
        papers.main(["one", "-o", str(tmp_path / "results")])
    assert ended.value.code == 130 and "the same command continues" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["two"], []])
def test_an_unknown_experiment_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        papers.main(words)
    assert ended.value.code == 2 and "--list shows the experiments" in capsys.readouterr().err


def test_unions_eighteen_elements_keep_inputs_and_fetch_other_filters(tmp_path: Path) -> None:
    """Figure 6: K steps first, so inputs stay; then X steps, so a part of them stays."""
    measured = EXPERIMENTS["union_fig_6"]
    rows = list(measured.measure(Run(True, tmp_path / "store")))
    steps = [[row for row in rows if row["step"] == step] for step in (1, 2, 3)]
    inputs, weights = ([{row[tensor] for row in step} for step in steps] for tensor in ("Inputs", "Weights"))
    assert [len(step) for step in steps] == [18, 18, 18]
    assert inputs[0] == inputs[1] and len(inputs[1] & inputs[2]) == 6
    assert not weights[0] & weights[1]
    assert next(iter(measured.show(rows))).count("\n") == 4

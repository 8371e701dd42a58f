"""Timeloop's own reports, 2019 to 2024, compared with Tilewright's: each figure is equal or listed with its cause."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.recorded.exercises import Difference, Run, differences, runs
from support.recorded.timeloop import cases
from support.timeloop_walk import Children, Flow, Piece, Temporal, Vector, Walker, minus, walk, whole_box, without
from tilewright.errors import InputError
from tilewright.plugin.adapter import InputSet, RecordedFigure
from tilewright.reports import Report
from tilewright_adapters.timeloop import TimeloopAdapter
from tilewright_adapters.timeloop.recorded import LINKS, _Comparison
from tilewright_costmodels import TimeloopOptions
from tilewright_costmodels.timeloop.model import TimeloopModel
from tilewright_notations.timeloop.stats import Stats


def beside(run: Run, folder: Path) -> tuple[InputSet, Report, tuple[RecordedFigure, ...]]:
    recorded, files = run.write(folder)
    adapter = TimeloopAdapter()
    inputs = adapter.parse(files)
    assert inputs.problem and inputs.architecture and inputs.mapping
    report = TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    assert report.valid, report.reasons
    return inputs, report, adapter.figures(recorded, inputs, report)


def row(run: Run, figure: RecordedFigure) -> Difference:
    recorded, ours = (f"{value:.2f}".removesuffix(".00") for value in (figure.recorded, figure.ours))
    causes = " ".join(cause.code for cause in figure.causes)
    return Difference(run.id, figure.level, figure.tensor or "", figure.figure, recorded, ours, causes)


@pytest.mark.parametrize("run", runs(), ids=lambda run: run.id)
def test_every_figure_is_equal_or_in_the_table_with_its_cause(run: Run, tmp_path: Path) -> None:
    _, _, figures = beside(run, tmp_path)
    assert len(figures) >= 28
    found = tuple(row(run, figure) for figure in figures if not figure.equal)
    assert found == differences()[run.id]
    assert all(each.causes for each in found)


def test_what_is_recorded_since_2022_differs_by_windows_alone() -> None:
    for run in runs():
        causes = {difference.causes for difference in differences()[run.id]}
        assert causes <= {"windows"} or run.date < "2022"


class OlderWalker(Walker):
    """Overlap as Timeloop's version 3.0.3 credits it: to stay where one is counts as a direction, too."""

    def flow(self, index: int) -> Flow:
        if index == len(self.levels) - 1:
            return super().flow(index)
        level = self.levels[index]
        flow, fanout = Flow(), Children(self, level)
        loops = [loop for outer in self.levels[: index + 1] for loop in outer.temporal]
        before: Piece | None = None
        for weight, piece in self.pieces(loops, self.box(self.levels[index + 1].tile)):
            if piece is not None:
                fanout.deliver(flow, weight, piece, before if self.link_transfers else None)
            before = piece
        flow.share = flow.delivered / level.children
        return flow

    def pieces(self, loops: list[Temporal], size: Vector) -> Iterator[tuple[int, Piece | None]]:
        last: Vector | None = None
        stride: Vector | None = None
        for weight, low in self.visits(loops):
            move = None if last is None else minus(low, last)
            if last is not None and (stride is None or stride == move):
                stride = move
                yield weight, None if low == last else without(low, last, size)
            else:
                stride = None
                yield weight, whole_box(low, size)
            last = low


@pytest.mark.parametrize(
    "run",
    [run for run in runs() if any(difference.causes == "windows" for difference in differences()[run.id])],
    ids=lambda run: run.id,
)
def test_windows_are_credited_as_the_version_of_then_did(run: Run, tmp_path: Path) -> None:
    recorded, files = run.write(tmp_path)
    inputs = TimeloopAdapter().parse(files)
    assert inputs.problem and inputs.architecture and inputs.mapping
    walked = walk(inputs.problem, inputs.architecture, inputs.mapping, by=OlderWalker)
    figures = TimeloopAdapter().figures(recorded, inputs, walked)
    assert [figure for figure in figures if not figure.equal] == []


def test_a_report_of_something_else_is_refused(tmp_path: Path) -> None:
    first, other = runs()[0], runs()[-1]
    _, files = first.write(tmp_path)
    inputs = TimeloopAdapter().parse(files)
    assert inputs.problem and inputs.architecture and inputs.mapping
    report = TimeloopModel(TimeloopOptions()).bind(inputs.problem, inputs.architecture).explain(inputs.mapping)
    wrong = tmp_path / "wrong.txt"
    for text in (other.report, "nothing", files[0].read_text()):
        wrong.write_text(text)
        with pytest.raises(InputError, match="the statistics do not belong to these inputs"):
            TimeloopAdapter().figures(wrong, inputs, report)


def test_a_run_without_link_transfers_is_told_with_the_option_that_compares_it() -> None:
    """Of recorded runs in which neighbours forward words, with and without."""
    seen = 0
    for case in cases():
        if case.figures == case.without_links:
            continue
        with_links, without = (
            TimeloopModel(TimeloopOptions(link_transfers=links))
            .bind(case.problem, case.architecture)
            .explain(case.mapping)
            for links in (True, False)
        )
        stats = Stats({}, [], without.cycles or 0, 0.0, 0.0, 0.01, is_sparse=False)
        beside = _Comparison(stats, without, with_links, case.problem, case.architecture, case.mapping)
        rows = [*beside.networks(), *(each for level in without.levels for each in beside.level(level))]
        differing = [each for each in rows if not each.equal and each.tensor and each.figure != "energy_pj"]
        assert all(LINKS in each.causes for each in differing)
        seen += bool(differing)
    assert seen > 10

"""The page "Against silicon": its figures follow from the measurements that are kept, and its text from the figures."""

import pytest

from benchmarks import silicon
from support.profiles import first
from tilewright.application.run.evaluation import build_model, evaluate

CHIP, SHEET = silicon.read(silicon.FOLDER / "eyeriss.csv"), silicon.read(silicon.FOLDER / "nvdla.csv")
LAYERS, CONVOLUTIONS, SHORTEST = (
    silicon.read(silicon.FOLDER / f"{name}_rows.csv") for name in ("eyeriss", "nvdla", "ethos_u")
)


def test_the_page_is_generated_from_the_kept_figures() -> None:
    assert silicon.PAGE.read_text(encoding="utf-8") == silicon.page(), "python benchmarks/silicon.py --page"
    kept = silicon.read(silicon.RESULTS)
    lines = [
        {key: str(value) for key, value in row.items()} for row in silicon.summaries(LAYERS, CONVOLUTIONS, SHORTEST)
    ]
    assert [row for row in kept if row["set"].startswith(("eyeriss", "nvdla", "ethos_u"))] == lines
    assert {row["set"].split()[0] for row in kept} == {one.name for one in silicon.SOURCES}


def test_the_kept_figures_are_those_of_the_models() -> None:
    layers = [{key: str(value) for key, value in row.items()} for row in silicon.eyeriss(CHIP[3:])]
    assert layers == LAYERS[3:5]
    rows = [{key: str(value) for key, value in row.items()} for row in silicon.nvdla(SHEET[::20])]
    assert rows == CONVOLUTIONS[::20]
    assert all(int(row["cycles"]) <= int(row["vela_cycles"]) for row in SHORTEST)


@pytest.mark.exhaustive
def test_all_kept_figures_are_those_of_the_models() -> None:
    for name, rows in silicon.kept().items():
        told = [{key: str(value) for key, value in row.items()} for row in rows]
        assert told == silicon.read(silicon.FOLDER / f"{name}.csv")


def test_the_printed_totals_are_those_of_the_rows() -> None:
    """JSSC 2017, table V: 103.5 ms, 208.5 MB, 15.4 MB; table III gives the active units."""
    for column, total in (("processing_ms", 103.5), ("buffer_mb", 208.5), ("dram_mb", 15.4)):
        assert sum(float(row[column]) for row in CHIP) == pytest.approx(total, abs=0.11)
    assert [row["chip_units"] for row in LAYERS] == [row["units"] for row in LAYERS]


@pytest.mark.parametrize("row", first(0, *CHIP))
def test_oracle_has_the_counts_of_two_passes(row: dict[str, str]) -> None:
    problem, mapping = silicon.passes(row)
    executed, counted = (
        evaluate(build_model(model, options), problem, silicon.eyeriss_chip(), mapping)
        for model, options in (("oracle", {"max_operations": 10**7}), ("timeloop", {}))
    )
    for level in ("DRAM", "Buffer"):
        for tensor in "IWO":
            for action in ("reads", "fills", "updates"):
                words = silicon.words(executed, level, tensor, action)
                assert words == silicon.words(counted, level, tensor, action)


@pytest.mark.parametrize(("window", "stride"), first(1, (1, 2), (1, 1), (3, 1), (7, 2)))
def test_oracle_has_the_least_traffic_of_small_convolutions(window: int, stride: int) -> None:
    sizes = {"N": 1, "K": 8, "C": 8, "P": 6, "Q": 6, "R": window, "S": window}
    problem = silicon.at_stride_1(silicon.convolution("small", sizes, stride))
    mapping, counted = silicon.least_traffic(problem)
    executed = evaluate(build_model("oracle", None), problem, silicon.nvdla_2048(), mapping)
    for tensor in problem.tensors:
        words = silicon.words(executed, "DRAM", tensor.name, "reads", "updates")
        assert words == silicon.words(counted, "DRAM", tensor.name, "reads", "updates")
        assert words == problem.tensor_words(tensor)

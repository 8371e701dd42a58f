"""`convert`: texts and files in another notation."""

from pathlib import Path

import pytest

import tilewright as tw
from tilewright import errors

EXAMPLES = Path(__file__).parents[4] / "examples"
FILES = [EXAMPLES / name for name in ("gemm.mapping.yaml", "gemm.problem.yaml", "small.arch.yaml")]


def test_what_is_written_evaluates_to_the_same_figures(tmp_path: Path) -> None:
    made = tw.convert(FILES, "tilewright", "timeloop", lossy=True)
    paths = made.save(tmp_path)
    assert made.route[0] == "tilewright" and sorted(path.name for path in paths) == sorted(made.files)
    here, there = tw.evaluate(*FILES), tw.evaluate(paths, notation="timeloop")
    assert here.reports[0].cycles == there.reports[0].cycles
    assert all(f"# {name}" in str(made) for name in made.files)


def test_one_file_prints_as_it_is() -> None:
    made = tw.convert([str(path) for path in FILES], "tilewright", "loopnest")
    assert str(made) == next(iter(made.files.values()))


def test_files_that_were_read_are_not_written_over(tmp_path: Path) -> None:
    nest = tw.convert(FILES, "tilewright", "loopnest").save(tmp_path)[0]
    back = tw.convert(nest, "loopnest", "tilewright")
    for name in back.files:
        (tmp_path / name).write_text(nest.read_text())
    again = tw.convert([tmp_path / next(iter(back.files))], "loopnest", "tilewright")
    with pytest.raises(errors.InputError, match="is one of the files read"):
        again.save(tmp_path)


def test_wrong_words_are_told() -> None:
    with pytest.raises(errors.UnknownPluginError, match="did you mean 'timeloop'"):
        tw.convert(FILES, "tilewright", "timelop")
    with pytest.raises(errors.InputError, match="choose another target notation"):
        tw.convert(FILES, "tilewright", "tilewright")


def test_several_layers_are_several_mappings(tmp_path: Path) -> None:
    layer = "Layer {} {{ Type: GEMM Dimensions {{ M: 4, N: 6, K: 8 }} Dataflow {{ SpatialMap(1,1) M; }} }}"
    (tmp_path / "two.m").write_text(f"Network net {{ {layer.format('A')} {layer.format('B')} }}")
    with pytest.raises(errors.NotConformableError, match="program net: has 2 layers") as caught:
        tw.convert(tmp_path / "two.m", "maestro", "tilewright")
    assert caught.value.hint == "select one by FILE/LAYER: A, B"
    assert "problem.yaml" in tw.convert(tmp_path / "two.m" / "B", "maestro", "tilewright").files

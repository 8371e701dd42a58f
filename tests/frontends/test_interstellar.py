"""Layers of Interstellar: sizes are those of the output."""

import json
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.errors import InputError
from tilewright_frontends.interstellar import InterstellarFrontend

LAYER = Path(__file__).parents[1] / "data" / "interstellar" / "conv.json"


def test_a_layer_has_the_sizes_of_its_output() -> None:
    problem = tw.load(LAYER, "problem")
    assert (problem.name, problem.macs) == ("conv", 2 * 8 * 3 * 5 * 6 * 3 * 2)
    assert str(problem).startswith("Outputs[N, K, P, Q] += Inputs[N, C, 1*P + R, 4*Q + S]".replace("1*", ""))
    assert problem.dimensions["P"] == 5 and problem.dimensions["S"] == 2


def test_strides_and_batch_are_1_if_absent(tmp_path: Path) -> None:
    data = {key: value for key, value in json.loads(LAYER.read_text()).items() if key[:6] not in ("stride", "batch_")}
    (tmp_path / "fc.json").write_text(json.dumps(data), encoding="utf-8")
    problem = tw.load(tmp_path / "fc.json", "problem")
    assert problem.macs == 8 * 3 * 5 * 6 * 3 * 2 and problem.dimensions["N"] == 1 and not problem.is_strided


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("fmap_width", 0, "fmap_width: .*greater than or equal to 1"),
        ("window_width", None, "window_width"),
        ("stride", 2, "unknown key 'stride'"),
    ],
)
def test_what_is_wrong_has_its_line(key: str, value: int | None, words: str, tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text(json.dumps(json.loads(LAYER.read_text()) | {key: value}), encoding="utf-8")
    with pytest.raises(InputError, match=rf"net.json:1:\d+: .*{words}"):
        tw.load(tmp_path / "net.json", "workload")


def test_other_files_are_not_recognised(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    assert not any(
        InterstellarFrontend().recognises(str(path)) for path in (tmp_path / "other.json", tmp_path, "a.json")
    )

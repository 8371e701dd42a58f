"""`tilewright map NET --fuse`: results of a network that stay on chip."""

import json
from pathlib import Path

import pytest

from support.command import Command
from support.products import products

M, SIZES = 16, (8, 32, 8)


def test_map_fuse_of_a_network_prints_and_writes_what_stays(tilewright: Command, tmp_path: Path) -> None:
    (tmp_path / "mlp.json").write_text(json.dumps(products(M, SIZES)), encoding="utf-8")
    words = ("map", tmp_path / "mlp.json", "--arch", "eyeriss", "--fuse", "--objective", "energy")
    ran = tilewright(*words, "-o", tmp_path / "out")
    assert ran.code == 0 and "stay in GlobalBuffer" in ran.out
    data = tilewright(*words, "--json").data
    assert data["residents"] == [{"maker": "L0", "readers": ["L1"], "words": M * SIZES[1]}]
    assert json.loads((tmp_path / "out" / "network.json").read_text(encoding="utf-8")) == data
    again = tilewright("evaluate", tmp_path / "out" / "group.yaml", "--model", "timeloop", "--json").data["results"][0]
    assert again["energy_pj"] == pytest.approx(data["energy_pj"], rel=1e-9)
    product = tilewright(*words[:-2], "--json").data
    assert product["objective"] == "edp" and product["bound"] <= product["fused"] <= product["unfused"]


@pytest.mark.parametrize(
    ("options", "told", "hint"),
    [
        (("--model", "maestro"), "cost model maestro: group mappings are not accepted", "leave --model out"),
        (
            ("--factors", "ragged", "--mapper", "cosa"),
            "L1: no mapping without fusion: mapper cosa does not support this: factors: ragged tiles are not accepted",
            "say --factors perfect, or choose another one; `map` without --fuse says",
        ),
    ],
)
def test_layers_that_are_refused_have_a_next_step(
    options: tuple[str, ...], told: str, hint: str, tilewright: Command, tmp_path: Path
) -> None:
    (tmp_path / "mlp.json").write_text(json.dumps(products(M, SIZES)), encoding="utf-8")
    ran = tilewright("map", tmp_path / "mlp.json", "--arch", "eyeriss", "--fuse", "--objective", "energy", *options)
    assert ran.code == 2 and ran.out == "" and ran.err.count(told) == 1 and "Traceback" not in ran.err
    assert ran.err.count("hint: ") == 1 and f"hint: {hint}" in ran.err

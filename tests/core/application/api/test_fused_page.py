"""The page of a fused network: where results live, and how full the memories are."""

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from support.pages import Tables
from support.products import products
from tilewright.application.api.page.fused import held_results, occupancy


def machine(words: int) -> tw.Architecture:
    memories: list[dict[str, Any]] = [{"name": "DRAM", "read_energy_pj": 64, "write_energy_pj": 64}]
    memories += [{"name": "Buffer", "read_energy_pj": 1, "write_energy_pj": 1, "capacity_words": words}]
    clusters = [{"name": memory["name"], "memories": [memory]} for memory in memories]
    data = {"name": "small", "clusters": clusters, "compute": {"energy_per_operation_pj": 0.5}}
    return tw.Architecture.model_validate(data)


@pytest.mark.parametrize(("words", "is_whole"), [(4096, True), (40, False)])
def test_a_fused_network_has_a_page(tmp_path: Path, words: int, is_whole: bool) -> None:
    """Of 16 x 16 words, all stay in a large buffer; in a small one, rows of them stay."""
    workload = tw.Workload.model_validate(products(16, (2, 16, 2)))
    fusion = tw.fuse_network(workload, machine(words), objective="energy", cache=False, progress=False, folder=tmp_path)
    (result,) = held_results(fusion)
    assert (result.maker, result.readers, result.first, result.last) == ("L0", ("L1",), 0, 1)
    assert result.is_whole == is_whole and (result.words == 256) == is_whole and bool(fusion.parts) != is_whole
    rows = occupancy(fusion, "Buffer")
    assert all(result.words <= alive + used <= words for alive, used in rows)
    assert [alive for alive, _ in rows] == ([256, 256] if is_whole else [0, 0])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    tables = Tables(page).rows
    assert tables["results"][1] == ["L0", "L1", "Buffer", "whole" if is_whole else "in tiles", f"{result.words:,.15g}"]
    assert len(tables["layers"]) == (3 if is_whole else 2)
    assert ("Shared loops" in page) != is_whole and "L0 to L1" in page and "words of Buffer" in page
    assert tw.page(tmp_path, tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_a_network_that_keeps_nothing_has_a_page_without_charts(tmp_path: Path) -> None:
    workload = tw.Workload.model_validate(products(16, (2, 16, 2), reads=False))
    fusion = tw.fuse_network(workload, machine(40), objective="energy", cache=False, progress=False, folder=tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not list(held_results(fusion)) and "<svg" not in page and len(Tables(page).rows["layers"]) == 3

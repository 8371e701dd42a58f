"""Estimates survive every notation that can express them, and may be dropped by the others."""

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.application.conversion.dropped import simplified
from tilewright.plugin import AdapterSpec, InputSet, installed
from tilewright.schema.document import parse_document

SIZED = """\
{kind: architecture, name: sized, technology_nm: 45, compute: {component: mac}, clusters: [
  {name: outside, memories: [{name: DRAM, technology: dram, component: {name: dram, attributes: {kind: LPDDR4}}}], fanout: {size: 4}},
  {name: chip, memories: [{name: GLB, capacity_words: 4096, block_words: 4, component: sram}]}]}
"""


def inputs() -> InputSet:
    arch = tw.load(parse_document(SIZED).data, "architecture")
    problem = tw.load("nk,km->nm; n=8 k=8 m=8", "problem")
    return InputSet(problem, arch, tw.space(problem, arch).sample(np.random.default_rng(0), 1)[0])


@pytest.mark.parametrize("name", ["tilewright", "timeloop", "timeloop_v4", "union", "zigzag", "accelforge", "loopnest"])
def test_it_comes_back_or_is_dropped_by_name(name: str, tmp_path: Path) -> None:
    adapter, whole = installed().make(AdapterSpec, name), inputs()
    known, dropped = simplified(whole, adapter.expressible)
    assert adapter.expressible(known)
    for file, text in adapter.render(known).items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    found = adapter.parse(sorted(tmp_path.iterdir()))

    assert known.architecture is not None and found.architecture == known.architecture
    assert [field.what for field in dropped if field.what != "mapping"] == (["estimates"] if name == "loopnest" else [])
    assert known.architecture.area_um2 == (whole.architecture and whole.architecture.area_um2)

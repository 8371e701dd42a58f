"""An online softmax between two products, executed on numbers, with the operations that the formula counts."""

from collections import Counter
from math import exp

import numpy as np
import pytest

from tilewright.schema.vector import OPERATORS
from tilewright_costmodels.vector.execution import Lanes, softmax_block, softmax_rescale, softmax_scale


@pytest.mark.parametrize("block", [1, 3, 12])
def test_an_online_softmax_equals_numpy(block: int) -> None:
    draw, rows, words, columns = np.random.default_rng(block), 3, 12, 5
    scores, values = draw.normal(0, 4, (rows, words)), draw.normal(0, 1, (words, columns))
    lanes = Lanes()
    for row in scores:
        result, top, total = np.zeros(columns), -np.inf, 0.0
        for start in range(0, words, block):
            part = slice(start, start + block)
            kept, top, total, factor = softmax_block(lanes, row[part], top, total)
            result = softmax_rescale(lanes, result, factor) + kept @ values[part]
        weights = np.exp(row - row.max())
        assert np.allclose(softmax_scale(lanes, result, total), weights / weights.sum() @ values)
        assert np.isclose(total, sum(exp(value - top) for value in row))
    blocks, counts = rows * (words // block), Counter[str]()
    counts.update(OPERATORS["SoftmaxBlock"].operations(blocks, block, None))
    counts.update(OPERATORS["SoftmaxRescale"].operations(blocks, columns, None))
    counts.update(OPERATORS["SoftmaxScale"].operations(rows, columns, None))
    assert lanes.operations == counts

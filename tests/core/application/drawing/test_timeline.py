import pytest

from tilewright.application.drawing.timeline import MAX_BARS, Work, timeline
from tilewright.errors import InputError


def test_a_bar_tells_its_layer_and_its_cycles() -> None:
    drawn = timeline("units", [Work("MAC", "scores", 0, 10), Work("VPU", "softmax", 10, 16, ", twice")], "cycles")
    assert list(drawn.marks.values()) == [
        "MAC, scores: 0 to 10 cycles",
        "VPU, softmax: 10 to 16 cycles, twice",
    ]
    assert "2 units, 2 layers, 16 cycles" in drawn.description


def test_many_bars_are_drawn_together() -> None:
    """Bars of 3 cycles without gaps are one; a gap of 50 of 9,050 cycles is seen."""
    work = [Work("MAC", f"layer{number}", 3 * number, 3 * number + 3) for number in range(3 * MAX_BARS)]
    work.append(Work("MAC", "last", work[-1].end + 50, work[-1].end + 60))
    marks = list(timeline("units", work, "cycles").marks.values())
    assert marks == [f"MAC, layer0 to layer{3 * MAX_BARS - 1}: 0 to 9,000 cycles", "MAC, last: 9,050 to 9,060 cycles"]


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(InputError, match="there is nothing to draw"):
        timeline("units", [], "cycles")

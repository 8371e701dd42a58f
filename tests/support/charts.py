"""Contents of drawn charts."""

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

import tilewright as tw


def rectangles(drawing: tw.Drawing) -> dict[str, Rectangle]:
    """Return the bars of a chart by their marks."""
    patches = drawing.figure.axes[0].patches
    return {str(patch.get_gid()): patch for patch in patches if isinstance(patch, Rectangle)}


def lines(drawing: tw.Drawing) -> list[Line2D]:
    return list(drawing.figure.axes[0].lines)


def points(line: Line2D) -> list[tuple[float, float]]:
    """Return the points of a line."""
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]

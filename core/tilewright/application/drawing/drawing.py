"""Drawing: a figure with the texts that describe it and its marks, saved as SVG or PNG."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from tilewright.errors import InputError, printable
from tilewright.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
INK, PALE = "#1b1f24", "#8a94a3"
"""Colours of text, and of lines and notes behind the data. Pages replace the first by that of their text."""
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#994f00", "#8899ff", "#117733")
"""Colours of series: Paul Tol's bright scheme, and three more."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "tilewright", "text.parse_math": False, "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"], "font.monospace": ["DejaVu Sans Mono"], "axes.facecolor": "none", "text.color": INK,
    "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlecolor": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10, "axes.titlelocation": "left",
    "axes.axisbelow": True, "grid.color": PALE, "grid.alpha": 0.35, "legend.frameon": False,
}  # fmt: skip
SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_NUMBER = re.compile(r"(\d+\.\d)\d+")


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style of all drawings in place of the user's settings of matplotlib."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph ")  # a browser has the fonts that are missing here
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure and its axes; sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.add_axes((0, 0, 1, 1))


@dataclass(frozen=True, repr=False)
class Drawing:
    """A chart or a picture. Notebooks show it.

    Attributes:
        figure: The figure of matplotlib, to change or to combine.
        title: What it shows, in one line.
        description: Text for those who cannot see it.
        marks: Text of each mark, by the mark's `gid`, or `GID/INDEX` for those of a group. Browsers
            show it under the pointer.
    """

    figure: Figure
    title: str
    description: str
    marks: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Drawing: {self.title}>"

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the drawing as SVG or PNG, by the suffix of the file. Equal drawings give equal files.

        Raises:
            InputError: The suffix is another one.
            OutputError: The file cannot be written.
        """
        path = Path(file)
        if path.suffix not in SUFFIXES:
            raise InputError(f"{path} is called neither {' nor '.join(SUFFIXES)}", hint=f"such as {path.stem}.svg")
        write_bytes(path, self.svg().encode() if path.suffix == ".svg" else self._saved("png", dpi=150))
        return path

    def svg(self) -> str:
        """Return the SVG document, on white."""
        return ElementTree.tostring(self._tree("d", facecolor="white"), encoding="unicode") + "\n"

    def inline(self, name: str) -> str:
        """Return an SVG element for a page: without background, and in the colour of the page's text.

        Args:
            name: Prefix of all identifiers, unique on the page.
        """
        root = self._tree(name, facecolor="none")
        for size in ("width", "height"):
            root.set(size, _NUMBER.sub(r"\1", root.get(size, "")))
        return ElementTree.tostring(root, encoding="unicode").replace(INK, "currentColor")

    def _saved(self, kind: str, **how: Any) -> bytes:
        data = io.BytesIO()
        nothing = {"Date": None, "Creator": None, "Type": None, "Format": None} if kind == "svg" else {"Software": None}
        with styled():
            self.figure.savefig(data, format=kind, bbox_inches="tight", pad_inches=0.08, metadata=nothing, **how)
        return data.getvalue()

    def _tree(self, name: str, **how: Any) -> ElementTree.Element:
        """Return the SVG with title, description and texts of marks, and with identifiers that begin with a name."""
        ElementTree.register_namespace("", SVG)
        ElementTree.register_namespace("xlink", LINK)
        root = ElementTree.fromstring(self._saved("svg", **how))
        for parent in [root, *root.iter(f"{{{SVG}}}defs")]:
            for element in [element for element in parent if element.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style")]:
                parent.remove(element)  # the style would hold for the whole page
        root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
        used = set(
            re.findall(r"#([\w-]+)", " ".join(value for element in root.iter() for value in element.attrib.values()))
        )
        for element in root.iter():
            _shorten(element)
            own = element.attrib.pop("id", None)
            if own is not None and own in self.marks:
                _text(element, "title", self.marks[own])
            if own is not None and f"{own}/0" in self.marks:
                for at, mark in enumerate(element.iter(f"{{{SVG}}}use")):
                    _text(mark, "title", self.marks[f"{own}/{at}"])
            if own is not None and (own in used or own.startswith("marks")):
                element.set("id", f"{name}-{own}")
            for key, value in element.attrib.items():
                if "#" in value and key != "style":
                    element.set(key, value.replace("#", f"#{name}-"))
        root.set("role", "img")
        root.set("aria-labelledby", f"{name}-title {name}-text")
        _text(root, "desc", self.description).set("id", f"{name}-text")
        _text(root, "title", self.title).set("id", f"{name}-title")
        return root


def _text(parent: ElementTree.Element, tag: str, text: str) -> ElementTree.Element:
    made = ElementTree.Element(f"{{{SVG}}}{tag}")
    made.text = printable(text)
    parent.insert(0, made)
    return made


def _shorten(element: ElementTree.Element) -> None:
    """Round positions to a tenth of a point, and move a style that all marks of a group share to the group."""
    for key in ("x", "y", "d", "transform"):
        if key in element.attrib:
            element.set(key, _NUMBER.sub(r"\1", element.attrib[key]))
    marks = [child for child in element if child.tag == f"{{{SVG}}}use"]
    styles = {mark.get("style") for mark in marks}
    if len(marks) > 1 and len(marks) == len(element) and len(styles) == 1 and "style" not in element.attrib:
        element.set("style", styles.pop() or "")
        for mark in marks:
            mark.attrib.pop("style", None)

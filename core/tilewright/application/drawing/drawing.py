"""Drawing: a figure with the texts that describe it and its marks, saved as SVG, PNG or PDF."""

from __future__ import annotations

import functools
import io
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec
from xml.etree import ElementTree

from tilewright.errors import InputError, printable
from tilewright.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")

SUFFIXES = (".svg", ".png", ".pdf")
WIDE, FONT_SIZE = 6.0, 9.0
"""Width of the axes of a chart in inches, and size of its text in points, unless a look has others."""
PADDING = 0.08
"""Inches around a saved drawing."""
INK, PALE = "#1b1f24", "#8a94a3"
"""Colours of text, and of lines and notes behind the data. Pages replace the first by that of their text."""
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#994f00", "#8899ff", "#117733")
"""Colours of series: Paul Tol's bright scheme, and three more."""
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "tilewright", "text.parse_math": False, "font.size": FONT_SIZE,
    "font.sans-serif": ["DejaVu Sans"], "font.monospace": ["DejaVu Sans Mono"], "axes.facecolor": "none", "text.color": INK,
    "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlecolor": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10, "axes.titlelocation": "left",
    "axes.axisbelow": True, "grid.color": PALE, "grid.alpha": 0.35, "legend.frameon": False,
}  # fmt: skip
WITHOUT = {
    "svg": ("Date", "Creator", "Type", "Format"),
    "png": ("Software",),
    "pdf": ("CreationDate", "Creator", "Producer"),
}
"""Entries that matplotlib would write, and that differ from run to run or from version to version."""
SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_NUMBER = re.compile(r"(\d+\.\d)\d+")


@dataclass(frozen=True)
class Look:
    """Size and colours of a drawing for a page of paper.

    Attributes:
        width: Width of the saved drawing in inches; None: as wide as its parts need.
        font_size: Size of the text in points.
        colours: Colour of each series by its name, such as a mapper's; others have the colours of their place.
        inner: Width of the axes in inches, by which `Drawing.save` reaches the width.
    """

    width: float | None = None
    font_size: float = FONT_SIZE
    colours: Mapping[str, str] = field(default_factory=dict)
    inner: float | None = None

    def __post_init__(self) -> None:
        from matplotlib.colors import is_color_like

        for name, value, least, most in (("width", self.width, 1, 40), ("font_size", self.font_size, 3, 40)):
            if value is not None and not least <= value <= most:
                raise InputError(
                    f"{name} is {value!r}; expected {least} to {most} {'inches' if name == 'width' else 'points'}"
                )
        for name, colour in self.colours.items():
            if not is_color_like(colour):
                raise InputError(f"the colour of {name} is {colour!r}; expected such as #4477aa or black")


_LOOK: ContextVar[Look | None] = ContextVar("tilewright_look", default=None)


def look() -> Look | None:
    """Return the look of the drawings that are made; None: that of screens."""
    return _LOOK.get()


@contextmanager
def looking(chosen: Look) -> Iterator[None]:
    """Give the drawings that are made inside the `with` block a look."""
    token = _LOOK.set(chosen)
    try:
        yield
    finally:
        _LOOK.reset(token)


def text_size(size: float) -> float:
    """Return the size of a text that is `size` points on screens."""
    chosen = look()
    return size if chosen is None else size * chosen.font_size / FONT_SIZE


def colour_of(name: str, place: int) -> str:
    """Return the colour of a series by its name, or by its place among the series."""
    chosen = look()
    return (chosen.colours if chosen else {}).get(name, COLOURS[place % len(COLOURS)])


def redrawn(function: Callable[P, Drawing]) -> Callable[P, Drawing]:
    """Decorate a function that draws, so that its drawings can be drawn again with another look."""

    @functools.wraps(function)
    def draw(*arguments: P.args, **keywords: P.kwargs) -> Drawing:
        return replace(function(*arguments, **keywords), again=functools.partial(draw, *arguments, **keywords))

    return draw


@contextmanager
def styled(font_size: float | None = None) -> Iterator[None]:
    """Apply the style of all drawings in place of the user's settings of matplotlib.

    Args:
        font_size: Size of text in points; None: that of the look.
    """
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph ")  # a browser has the fonts that are missing here
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        matplotlib.rcParams["font.size"] = text_size(FONT_SIZE) if font_size is None else font_size
        matplotlib.rcParams["axes.titlesize"] = text_size(STYLE["axes.titlesize"])
        yield


def blank(width: float, height: float, *, keeps_height: bool = False) -> tuple[Figure, Axes]:
    """Return an empty figure and its axes; sizes in inches.

    Args:
        keeps_height: Whether a narrower look leaves the height, which rows of text need.
    """
    chosen = look()
    if chosen is not None and chosen.inner is not None:
        height *= text_size(1) if keeps_height else max(0.6, chosen.inner / width)
        width = chosen.inner
    return sheet(width, height)


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure of exactly this size in inches, and its axes."""
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
        again: Draws it again; None: it cannot be drawn with another look.

    Example:
        >>> import tilewright as tw
        >>> drawing = tw.draw(tw.load("simba", "architecture"))
        >>> drawing.title
        'architecture simba'
    """

    figure: Figure
    title: str
    description: str
    marks: Mapping[str, str] = field(default_factory=dict)
    again: Callable[[], Drawing] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"<Drawing: {self.title}>"

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(
        self,
        file: str | os.PathLike[str],
        *,
        width: float | None = None,
        font_size: float | None = None,
        colours: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the drawing as SVG, PNG or PDF, by the suffix of the file. Equal drawings give equal files.

        Args:
            width: Width in inches, such as 3.5 for a column of a paper. Default: as wide as its parts need.
            font_size: Size of the text in points. Default: 9.
            colours: Colour of each series by its name, such as `{"optimal": "black"}`.

        Raises:
            InputError: The suffix is another one, a value is out of range, or the width has no room for the names.
            OutputError: The file cannot be written.
        """
        path = Path(file)
        if path.suffix not in SUFFIXES:
            raise InputError(f"{path} is called neither {' nor '.join(SUFFIXES)}", hint=f"such as {path.stem}.svg")
        drawing = self
        if (width, font_size, colours) != (None, None, None):
            drawing = self._styled_as(Look(width, FONT_SIZE if font_size is None else font_size, colours or {}))
        if path.suffix == ".svg":
            write_bytes(path, drawing.svg().encode())
        else:
            write_bytes(path, drawing._saved(path.suffix[1:], dpi=150 if width is None else 300))
        return path

    def _styled_as(self, chosen: Look) -> Drawing:
        """Return the drawing with another look. Raises InputError: there is no room for its names."""
        if self.again is None:
            raise InputError(f"{self.title} has one size only")
        inner = WIDE if chosen.width is None else chosen.width
        for _ in range(6):
            with looking(replace(chosen, inner=inner)):
                drawing = self.again()
            over = 0.0 if chosen.width is None else drawing.saved_width - chosen.width
            if abs(over) < 0.002:
                break
            inner -= over
            if inner < 0.4:
                raise InputError(
                    f"a width of {chosen.width:g} inches has no room beside the names",
                    hint="a larger width, or a smaller font_size",
                )
        return drawing

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

    @property
    def saved_width(self) -> float:
        """Width of the file in inches, padding included."""
        match = re.search(rb'width="([0-9.]+)pt"', self._saved("svg"))
        assert match is not None
        return float(match[1]) / 72

    def _saved(self, kind: str, **how: Any) -> bytes:
        data = io.BytesIO()
        nothing = dict.fromkeys(WITHOUT[kind])
        with styled():
            self.figure.savefig(data, format=kind, bbox_inches="tight", pad_inches=PADDING, metadata=nothing, **how)
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
            anchor = element.attrib.pop("id", None)
            if anchor is not None and anchor in self.marks:
                _text(element, "title", self.marks[anchor])
            if anchor is not None and f"{anchor}/0" in self.marks:
                for at, mark in enumerate(element.iter(f"{{{SVG}}}use")):
                    _text(mark, "title", self.marks[f"{anchor}/{at}"])
            if anchor is not None and (anchor in used or anchor.startswith("marks")):
                element.set("id", f"{name}-{anchor}")
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

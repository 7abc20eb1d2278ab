"""Colours, sizes and file formats that every figure shares, without global state."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine, LayoutEngine
from numpy.typing import ArrayLike, NDArray

from srs_eval.metrics.tally import Tally, tally
from srs_eval.nouns import FloatArray, Predictions

# Okabe & Ito's colours stay apart under every common colour vision deficiency.
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
INK = "#1F2328"
MUTED = "#656D76"
PALE = "#D0D7DE"
BAND = "#B4BDC8"
CHANCE = "#E9D8A6"

# Height in inches of the strip of outcomes above a square plot.
STRIP = 0.94
# Of a square plot.
_SIDE = 4.16
# Width of the margin that a key of colours needs.
KEY = 0.82
SMALL = 8.5
NORMAL = 10.0
_NOTEBOOK_DPI = 100
_TITLE_LETTERS = 46
_NAME_LETTERS = 28
# Of the smallest letters.
_LETTERS_PER_INCH = 16
_NO_SIGN = "\N{REPLACEMENT CHARACTER}"

_STYLE: dict[str, Any] = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.edgecolor": "white",
    "font.size": NORMAL,
    "font.family": ["DejaVu Sans"],
    # Dollar signs and underscores in names are just that.
    "text.parse_math": False,
    "axes.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": NORMAL,
    "axes.linewidth": 0.8,
    "axes.titlesize": NORMAL + 1,
    "axes.titlecolor": INK,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    # Or matplotlib looks for what is in a title's way, which takes long.
    "axes.titley": 1.0,
    "text.color": INK,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "svg.hashsalt": "srs_eval",
    # Letters as outlines look the same wherever the file is opened.
    "svg.fonttype": "path",
}

# A date or a version in the file would make every run's figures differ.
_SAVING: dict[str, dict[str, Any]] = {
    # The strongest compression would take five times as long, for a sixth less.
    ".png": {"metadata": {"Software": None}, "pil_kwargs": {"compress_level": 4}},
    ".svg": {"metadata": {"Date": None, "Creator": None}},
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style, whatever the caller's matplotlib settings, and restore those."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for name, value in _STYLE.items():
            matplotlib.rcParams[name] = value  # type: ignore[index]
        yield


class Margins(LayoutEngine):
    """Margins of a figure whose labels are known, in inches.

    Finding them out takes longer than drawing. `between` rows is a share of the height of one.
    """

    _adjust_compatible = True
    _colorbar_gridspec = True

    def __init__(
        self, left: float, bottom: float, right: float, top: float, between: float = 0
    ) -> None:
        super().__init__()
        self.inches = (left, bottom, right, top)
        self.between = between
        self.below = 0.0  # the height of a note

    def execute(self, fig: Figure) -> None:
        """Place the axes."""
        width, height = fig.get_size_inches()
        left, bottom, right, top = self.inches
        fig.subplots_adjust(
            left=left / width,
            bottom=(bottom + self.below) / height,
            right=1 - right / width,
            top=1 - top / height,
            hspace=self.between,
        )


def new_figure(width: float, height: float, margins: Margins | None = None) -> Figure:
    """Make an empty figure on opaque white, so that it reads the same on any page.

    Sizes are inches: about 5 to 6 across keeps text legible at 500 pixels and in a paper's column.
    Without margins, they are what labels need.
    """
    engine = margins or ConstrainedLayoutEngine()
    return ShownFigure(figsize=(width, height), layout=engine, facecolor="white")


class ShownFigure(Figure):
    """A figure that notebooks show also where pyplot has not told them how."""

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        with house_style():
            self.savefig(content, format="png", dpi=_NOTEBOOK_DPI)
        return content.getvalue()


def style_axes(axes: Axes) -> None:
    """Style axes: light ticks, no frame on the top and right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=SMALL + 0.5, length=3, width=0.8)


def write_message(axes: Axes, message: str) -> None:
    """Write into empty axes why there is nothing to draw."""
    axes.text(
        0.5,
        0.5,
        message,
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=MUTED,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 4},
    )


def heading(kind: str, title: str) -> str:
    """Format the title of a figure: its kind and subject, shortened to fit.

    >>> heading("calibration", "fsrs6 on synthetic")
    'calibration: fsrs6 on synthetic'
    """
    return f"{kind}: {short_name(title, _TITLE_LETTERS - len(kind) - 2)}" if title else kind


def annotate(figure: Figure, note: str) -> None:
    """Write a note below a figure, which grows by as much."""
    if not note:
        return
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(lettering(note), max(20, round(_LETTERS_PER_INCH * width)))
    strip = 0.08 + 0.15 * len(lines)
    figure.set_size_inches(width, height + strip)
    share = strip / (height + strip)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, share, 1, 1 - share))
    elif isinstance(engine, Margins):
        engine.below = strip
    text = "\n".join(lines)
    below = figure.text(0.01, 0.04 / (height + strip), text, va="bottom", fontsize=SMALL - 1)
    below.set(color=MUTED, parse_math=False)


def lettering(text: str) -> str:
    """Return text on one line, without characters that the font does not have."""
    known = _font_signs()
    line = " ".join(text.splitlines())
    return "".join(sign if ord(sign) in known else _NO_SIGN for sign in line)


def counted(count: float, noun: str) -> str:
    """Format a count with its noun."""
    return f"{round(count):,} {noun}{'s' * (round(count) != 1)}"


@cache
def _font_signs() -> frozenset[int]:
    font = get_font(findfont(*_STYLE["font.family"]))
    return frozenset(font.get_charmap())


def title_above(figure: Figure, kind: str, title: str) -> None:
    """Write the title of a figure of several plots, or of one with long labels on its left."""
    shown = figure.suptitle(heading(kind, title), x=0.01, ha="left")
    shown.set(fontsize=NORMAL + 1, fontweight="bold")
    if isinstance(figure.get_layout_engine(), Margins):
        shown.set(y=1 - 0.05 / figure.get_figheight(), va="top")


def short_name(name: str, most: int = _NAME_LETTERS) -> str:
    """Shorten a long name in the middle, because names may differ at their end only."""
    text, half = lettering(name), most // 2
    return text if len(text) <= most else f"{text[: most - half - 1]}…{text[-half:]}"


def tints(colour: str, strength: FloatArray) -> NDArray[np.float64]:
    """Mix a colour with white, which strength 0 is: [n, 3].

    Opaque tints are used instead of transparency: pieces of a line that overlap do not darken, and
    every SVG viewer agrees on them.
    """
    share = np.clip(np.asarray(strength, np.float64), 0, 1)[:, None]
    return np.asarray(share * np.array(to_rgb(colour)) + (1 - share))


def tally_of(p: ArrayLike | Predictions | Tally, recalled: ArrayLike | None = None) -> Tally:
    """Count predictions by outcome, unless that is done."""
    if isinstance(p, Predictions):
        return Tally.of(p)
    return p if isinstance(p, Tally) else tally(p, () if recalled is None else recalled)


def square_figure(kind: str, title: str, strip: float, draw: Callable[[Axes], object]) -> Figure:
    """Make a figure of a square plot, 5 inches wide, with the title that `heading` formats.

    `strip` inches above the plot are left free.
    """
    with house_style():
        margins = Margins(0.61, 0.54, 0.13, 0.3 + strip)
        figure = new_figure(5, _SIDE + 0.84 + strip, margins)
        axes = figure.add_subplot()
        draw(axes)
        axes.set_title(heading(kind, title), y=1 + strip / _SIDE)
    return figure


def colour_bar(
    figure: Figure, axes: Axes, shades: ScalarMappable, label: str, *, extend: str = "neither"
) -> Colorbar:
    """Draw what colours mean into the margin on the right of axes."""
    beside = axes.inset_axes((1.02, 0, 0.035, 1))
    bar = figure.colorbar(shades, cax=beside, extend=extend)
    bar.set_label(label)
    bar.ax.tick_params(labelsize=SMALL, colors=MUTED, labelcolor=INK)
    bar.outline.set_visible(False)
    return bar


def save_figure(
    figure: Figure, folder: Path, stem: str, *, formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Write a figure as PNG (150 dots per inch) and SVG; equal figures give equal files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.{ending}" for ending in formats]
    with house_style():
        # The layout is the same for all formats, and takes longer than drawing.
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine(None)
        for path in paths:
            figure.savefig(path, dpi=150, **_SAVING[path.suffix])
    return paths

"""Colours, sizes and file formats that every figure shares, without global state."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.tally import Tally, tally

# Okabe & Ito's colours stay apart under every common colour vision deficiency.
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
INK = "#1F2328"
MUTED = "#656D76"
PALE = "#D0D7DE"
BAND = "#B4BDC8"
CHANCE = "#E9D8A6"

# Inches of a figure of a run, 3:2 like the tiles of MLflow.
WIDTH, HEIGHT = 6.6, 4.4
SMALL = 8.5
NORMAL = 10.0
_NOTEBOOK_DPI = 100
_TITLE_LETTERS = 60
_NAME_LETTERS = 28
# Of the smallest letters.
_LETTERS_PER_INCH = 16

# Where it differs from matplotlib's own.
_STYLE: dict[Any, Any] = {
    # Dollar signs and underscores in names are just that.
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": NORMAL + 1,
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
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Letters that the font lacks are boxes.
        warnings.filterwarnings("ignore", "Glyph")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


class ShownFigure(Figure):
    """A figure that notebooks show also where pyplot has not told them how."""

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        with house_style():
            self.savefig(content, format="png", dpi=_NOTEBOOK_DPI)
        return content.getvalue()


def new_figure(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    """Make an empty figure on opaque white, which reads the same on light and dark pages."""
    return ShownFigure(figsize=(width, height), layout="constrained", facecolor="white")


@contextmanager
def titled_figure(
    kind: str, title: str, width: float = WIDTH, height: float = HEIGHT
) -> Iterator[Figure]:
    """Make a figure to draw on, in the house style; its title is its kind and shortened subject."""
    words = f"{kind}: {short_name(title, _TITLE_LETTERS - len(kind) - 2)}" if title else kind
    with house_style():
        figure = new_figure(width, height)
        figure.suptitle(words, x=0.01, ha="left", fontsize=NORMAL + 1, fontweight="bold")
        yield figure


def square_figure(kind: str, title: str, draw: Callable[[Axes], object]) -> Figure:
    """Make a figure of a square plot, with its key on the right."""
    with titled_figure(kind, title) as figure:
        axes = figure.add_subplot(anchor="W")
        draw(axes)
        if (key := axes.get_legend()) is not None:
            key.set_loc("center left")
            key.set_bbox_to_anchor((1.02, 0.5), axes.transAxes)
    return figure


def style_axes(axes: Axes) -> None:
    """Style axes: light ticks, no frame on the top and right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=SMALL + 0.5, length=3, width=0.8)


def draw_diagonal(axes: Axes, label: str | None = None, zorder: float = 1.5) -> None:
    """Draw the line on which both coordinates are equal."""
    axes.axline((0, 0), slope=1, color=MUTED, lw=1, ls=(0, (4, 3)), zorder=zorder, label=label)


def write_key(
    axes: Axes, lines: Sequence[str], loc: Literal["best", "lower left", "lower right"]
) -> None:
    """Write the key of what is drawn, below some lines of text."""
    key = axes.legend(
        loc=loc,
        title="\n".join(lines),
        title_fontsize=NORMAL,
        fontsize=SMALL,
        alignment="left",
        handlelength=1.6,
        frameon=True,
        facecolor="white",
        edgecolor="none",
        framealpha=0.85,
    )
    key.set_zorder(5)


def write_above(axes: Axes, lines: Sequence[str]) -> None:
    """Write lines of small text above axes."""
    axes.text(0, 1.015, "\n".join(lines), transform=axes.transAxes, va="bottom", fontsize=SMALL)


def write_message(axes: Axes, message: str) -> None:
    """Write into empty axes why there is nothing to draw."""
    centre: dict[str, Any] = {"ha": "center", "va": "center", "xycoords": "axes fraction"}
    axes.annotate(message, (0.5, 0.5), color=MUTED, backgroundcolor="white", **centre)


def annotate(figure: Figure, note: str) -> None:
    """Write a note below a figure and its earlier notes; the figure grows by as much."""
    if not note:
        return
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(note, round(_LETTERS_PER_INCH * width))
    figure.set_size_inches(width, height + 0.15 * len(lines))
    earlier = [figure.get_supxlabel()] if figure.get_supxlabel() else []
    below = figure.supxlabel("\n".join([*earlier, *lines]), x=0.01, ha="left", fontsize=SMALL - 1)
    below.set(color=MUTED, parse_math=False)


def add_colour_bar(
    figure: Figure, axes: Axes, shades: ScalarMappable, label: str, **options: Any
) -> None:
    """Draw what colours mean on the right of axes; options are those of `Figure.colorbar`."""
    bar = figure.colorbar(shades, ax=axes, fraction=0.06, pad=0.02, aspect=30, **options)
    bar.set_label(label, fontsize=SMALL + 0.5)
    bar.ax.tick_params(labelsize=SMALL, colors=MUTED, labelcolor=INK)
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)


def short_name(name: str, most: int = _NAME_LETTERS) -> str:
    """Shorten a long name in the middle, because names may differ at their end only."""
    text, half = " ".join(name.splitlines()), most // 2
    return text if len(text) <= most else f"{text[: most - half - 1]}…{text[-half:]}"


def counted(count: float, noun: str) -> str:
    """Format a count with its noun."""
    return f"{round(count):,} {noun}{'s' * (round(count) != 1)}"


def tally_of(p: ArrayLike | Predictions | Tally, recalled: ArrayLike | None = None) -> Tally:
    """Count predictions by outcome, unless that is done."""
    if isinstance(p, Predictions):
        return Tally.of(p)
    return p if isinstance(p, Tally) else tally(p, () if recalled is None else recalled)


def save_figure(
    figure: Figure, folder: Path, stem: str, *, formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Write a figure as PNG (150 dots per inch) and SVG; equal figures give equal files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.{ending}" for ending in formats]
    with house_style():
        # The layout is the same for all formats, and takes as long as drawing.
        if (layout := figure.get_layout_engine()) is not None:
            layout.execute(figure)
            figure.set_layout_engine(None)
        for path in paths:
            figure.savefig(path, dpi=150, **_SAVING[path.suffix])
    return paths

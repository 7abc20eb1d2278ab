"""The evidence of tests that are looked at every day."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from srs_eval.plots import style

_COLOURS = (style.BLUE, style.VERMILION, style.MUTED)
_FLOOR = 1e-3  # evidence below it is drawn at it


def plot_evidence(
    axes: Axes, tests: Mapping[str, tuple[ArrayLike, ArrayLike]], *, level: float
) -> None:
    """Draw e-values over days, and the threshold 1/level at which each is an alarm.

    What is beyond ten times the threshold is drawn there.

    Each test has its days, counted from 1970-01-01, int [days], and the logarithm of the e-value
    after each, float [days].
    """
    style.style_axes(axes)
    threshold, top = 1 / level, 10 / level
    for (name, (days, log_e)), colour in zip(tests.items(), _COLOURS, strict=False):
        dates = np.asarray(days, np.int64).astype("datetime64[D]")
        drawn = np.clip(np.asarray(log_e, np.float64), math.log(_FLOOR), math.log(top))
        axes.plot(dates, np.exp(drawn), color=colour, lw=1.6, label=style.lettering(name))
    axes.axhline(threshold, color=style.INK, lw=0.9, ls=(0, (4, 3)))
    axes.text(
        0.01,
        threshold * 1.12,
        f"alarm at 1/{level:g} = {threshold:g}",
        transform=axes.get_yaxis_transform(),
        fontsize=style.SMALL,
        va="bottom",
    )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda *_: "")
    axes.set_ylim(_FLOOR * 0.8, top * 1.3)
    axes.set_ylabel("evidence (e-value)", fontsize=style.SMALL + 0.5)
    if any(np.size(days) for days, _ in tests.values()):
        locator = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        concise = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(concise)
        axes.legend(loc="lower left", fontsize=style.SMALL)
    else:
        style.write_message(axes, "no day is over")


def evidence_figure(
    tests: Mapping[str, tuple[ArrayLike, ArrayLike]], *, level: float, title: str = ""
) -> Figure:
    """Draw the evidence of all tests: see `plot_evidence`."""
    with style.house_style():
        figure = style.new_figure(6.0, 3.6)
        plot_evidence(figure.subplots(), tests, level=level)
        style.title_above(figure, "evidence", title)
    return figure

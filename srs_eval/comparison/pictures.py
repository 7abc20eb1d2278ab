"""Two pictures: differences to the leader with intervals, and calibration of two runs.

They are SVG for a page: texts stay texts, and colours are the page's own, in light and in dark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from io import StringIO
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from srs_eval.comparison.answer import words
from srs_eval.comparison.standings import Standings
from srs_eval.comparison.words import number
from srs_eval.metrics.bootstrap import FineCounts, fine_counts
from srs_eval.metrics.reliability import reliability_of
from srs_eval.metrics.tally import Tally
from srs_eval.plots.calibration_plot import of_twenty
from srs_eval.plots.style import BLUE, GREEN, INK, MUTED, PALE, VERMILION, house_style, short_name

MOST = 12  # Models in a picture
_WIDTH = 4.3
# Drawn colours, and those of the page in their place
_VARIABLES = {INK: "text", MUTED: "muted", PALE: "line", BLUE: "blue"}
_VARIABLES |= {VERMILION: "off", GREEN: "green"}
_COLOURS = {"worse": VERMILION, "better": GREEN, "bound": MUTED, "leads": BLUE, "best": BLUE}
_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "font.size": 9, "axes.edgecolor": PALE}
_STYLE |= dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color"), MUTED)
_FAR = 4  # The axis ends at so many times what half of the intervals reach
_RETENTION, _POINTS, _WIDEST, _TAIL = 0.9, 401, 0.15, 0.02


def differences(standings: Standings) -> Markup:
    """Draw the difference of each run to its leader, with its interval."""
    frame, title = standings.rows[:MOST], "Difference of each model to the leader"
    return svg(partial(_forest, standings, frame), 0.6 + 0.3 * len(frame), title)


def _forest(standings: Standings, frame: pd.DataFrame, axes: Axes) -> None:
    ends = frame[["to_best_lo", "to_best_hi", "to_best"]].to_numpy(float)
    reach = np.nanmax(np.nan_to_num(np.abs(ends)), axis=1)
    limit = _FAR * float(np.median(reach[reach > 0])) if (reach > 0).any() else 1.0
    ends = np.clip(ends, -limit, limit)
    low, high = np.nanmin(ends, initial=0), np.nanmax(ends, initial=0)
    margin = 0.04 * (high - low or 1.0)
    axes.axvline(0, color=BLUE, lw=1)
    colours = [_COLOURS.get(verdict, INK) for verdict in frame.to_best_verdict]
    for place, (lo, hi, middle) in enumerate(ends):
        if np.isnan(middle):
            axes.plot(0, -place, "D", color=BLUE)
            continue
        axes.plot([lo, hi], [-place, -place], color=colours[place], lw=2)
        marker = "o" if abs(middle) < limit else ">" if middle > 0 else "<"
        axes.plot(middle, -place, marker, color=colours[place])
    right, runs = axes.twinx(), standings.runs
    names = [short_name(f"{name}{runs[name].marks}") for name in frame.run]
    numbers = zip(frame.to_best, frame["mean"], strict=True)
    scores = [number(gap, "+") or number(mean) for gap, mean in numbers]
    for side, labels in ((axes, names), (right, scores)):
        side.set(ylim=(0.6 - len(frame), 0.6), yticks=-np.arange(len(frame)), yticklabels=labels)
        side.spines[["left", "right", "top"]].set_visible(False)
        side.tick_params(length=0)
        for text, colour, middle in zip(side.get_yticklabels(), colours, ends[:, 2], strict=True):
            text.set_fontweight("bold" if np.isnan(middle) else "normal")
            text.set_color(INK if side is axes else colour)
    axes.set_xlim(low - margin, high + margin)
    axes.set_xlabel(f"{words(standings.metric)} above the leader's")
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:+.3g}" if value else "0")
    axes.grid(axis="x", color=PALE, lw=0.5)


def calibration(standings: Standings) -> Markup | None:
    """Draw observed against predicted recall, of the leader and of the baseline or the next run."""
    leader, *_ = standings.leaders.values()
    if not leader.has_predictions:
        return None
    rows = standings.rows
    names = [standings.baseline, *rows.run[rows.leader == leader.name]]
    other = next((name for name in names if name != leader.name), leader.name)
    tallies = {}
    for name in dict.fromkeys([other, leader.name]):
        if (run := standings.runs[name].run) and run.has_predictions:
            counts = FineCounts(())
            for user in standings.users:
                if (predictions := run.predictions(user, curves=False)) is not None:
                    counts.add(*fine_counts(Tally.of(predictions), ()))
            tallies[name] = counts.tally()
    title = f"Calibration of {' and '.join(tallies)}"
    return svg(partial(curves, tallies, leader.name), 2.75, title)


def curves(tallies: Mapping[str, Tally], leader: str, axes: Axes) -> None:
    """Draw calibration curves, that of the leader in colour."""
    low = min(t.p[np.searchsorted(np.cumsum(t.count), _TAIL * t.n)] for t in tallies.values())
    low = float(np.clip(np.floor(20 * low) / 20 - 0.05, 0, 0.8))
    axes.plot([0, 1], [0, 1], color=MUTED, lw=0.8, ls="--")
    axes.axvline(_RETENTION, color=PALE, lw=0.8)
    for name, reviews in tallies.items():
        colour = BLUE if name == leader else MUTED
        curve = reliability_of(reviews, points=_POINTS)
        seen = of_twenty(curve) & (curve.hi - curve.lo < _WIDEST)
        grid = curve.p_grid[seen]
        band: dict[str, Any] = {"color": colour, "lw": 0}
        axes.fill_between(grid, curve.lo[seen], curve.hi[seen], alpha=0.2, **band)
        label = short_name(name)
        axes.plot(grid, curve.observed[seen], color=colour, lw=2.2, label=label)
        share, edges = np.histogram(reviews.p, np.linspace(low, 1, 41), weights=reviews.count)
        heights = low + share / max(share.max(), 1) * 0.13 * (1 - low)
        axes.stairs(heights, edges, baseline=low, fill=True, alpha=0.35, **band)
    axes.set(xlim=(low, 1), ylim=(low, 1), xlabel="predicted recall", ylabel="observed recall")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    name_drawn(axes, handlelength=1.4, reverse=True)
    axes.spines[["right", "top"]].set_visible(False)
    axes.tick_params(length=0, pad=7)  # The first numbers of both axes do not meet


def name_drawn(axes: Axes, **options: Any) -> None:
    """Write the names of what is drawn above the axes."""
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3}
    axes.legend(**place, frameon=False, borderpad=0.2, borderaxespad=0, **options)


def svg(draw: Callable[[Axes], None], height: float, title: str) -> Markup:
    """Draw axes, and return the picture in the colours of the page."""
    text, nothing = StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with house_style(), matplotlib.rc_context(_STYLE):
        figure = Figure((_WIDTH, height), layout="constrained")
        draw(figure.subplots())
        figure.savefig(text, format="svg", transparent=True, metadata=nothing)
    drawn = text.getvalue().partition("<svg")[2]
    for colour, variable in _VARIABLES.items():
        drawn = drawn.replace(colour.lower(), f"var(--{variable})")
    return Markup(f'<svg role="img" aria-label="{escape(title)}"{drawn}')

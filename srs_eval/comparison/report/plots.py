"""The figures of a comparison: differences to the baseline, overall and by stratum."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from srs_eval.algorithms.algorithm import IN_WORDS
from srs_eval.comparison.strata import Fact, Stratum
from srs_eval.comparison.verdict import Verdict
from srs_eval.plots.style import (
    BLUE,
    MUTED,
    PALE,
    SMALL,
    VERMILION,
    house_style,
    new_figure,
    short_name,
    style_axes,
)


def differences_figure(verdict: Verdict) -> Figure:
    """Draw the mean paired difference of every run to the baseline, with its interval."""
    models = [model for model in verdict.order if model != verdict.baseline]
    board, base = verdict.leaderboard, verdict.baseline
    with house_style():
        figure = new_figure(7.2, 0.9 + 0.3 * max(len(models), 1))
        axes = figure.add_subplot()
        style_axes(axes)
        standings = [board.to_baseline[model] for model in models]
        drawn = [(each.difference.mean, each.average.lo, each.average.hi) for each in standings]
        for row, (gap, lo, hi) in enumerate(drawn):
            colour = _colour(gap, lo, hi, board.sign)
            if not math.isnan(lo):
                axes.plot([lo, hi], [row, row], color=colour, lw=1.8, solid_capstyle="butt")
            axes.plot([gap], [row], "o", ms=5, color=colour)
        _leave_far_ones_out(axes, drawn)
        axes.axvline(0, color=MUTED, lw=1, ls=(0, (4, 3)), zorder=0)
        axes.set_yticks(range(len(models)), [short_name(verdict.runs[m].marked) for m in models])
        _name_times(axes, [verdict.runs[model].when for model in models])
        axes.set_ylim(len(models) - 0.4, -0.6)
        over = "users" if board.n_users > 1 else "reviews"
        axes.set_xlabel(
            f"{verdict.metric} less that of {short_name(verdict.runs[base].name)}: "
            f"mean over {over}, 99 % interval adjusted by Holm's method"
        )
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=PALE, lw=0.6)
        axes.set_axisbelow(True)
    return figure


def _leave_far_ones_out(axes: Axes, drawn: Sequence[tuple[float, float, float]]) -> None:
    """End the axis at four times what half of the intervals reach, and name what is beyond it.

    A few hopeless models must not flatten the others. `drawn` has a difference and its interval
    for each row.
    """
    reached = [float(np.nan_to_num(np.abs(ends)).max()) for ends in drawn]
    limit = 4 * float(np.median(reached)) if reached else 0.0
    if limit == 0 or max(reached) <= limit:
        return
    low, high = (float(np.clip(end, -limit, limit)) for end in axes.dataLim.intervalx)
    margin = 0.05 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    for row, (gap, _, _) in enumerate(drawn):
        at, side, words = (high, "right", "{:+.2f} →") if gap > 0 else (low, "left", "← {:+.2f}")
        if abs(gap) > limit:
            axes.text(at, row, words.format(gap), ha=side, va="center", fontsize=SMALL)


def _name_times(axes: Axes, times: Sequence[str]) -> None:
    """Separate the rows of runs that predict at different times, and name the times."""
    if len(set(times)) < 2:
        return
    for when in dict.fromkeys(times):
        row = times.index(when)
        axes.axhline(row - 0.5, color=PALE, lw=1, zorder=0)
        axes.text(
            *(1.01, row),
            IN_WORDS[when],
            transform=axes.get_yaxis_transform(),
            color=MUTED,
            fontsize=SMALL - 1,
            va="center",
        )


def strata_figure(verdict: Verdict, model: int) -> Figure | None:
    """Draw the differences of a run to the baseline by stratum; None without predictions."""
    found = verdict.strata
    if found is None or model not in found.runs or not found.facts:
        return None
    at = found.runs.index(model)
    rows = (len(found.facts) + 1) // 2
    with house_style():
        figure = new_figure(10.5, 2.5 * rows)
        panels = figure.subplots(rows, 2, squeeze=False).ravel()
        for axes, (fact, strata) in zip(panels, found.facts, strict=False):
            _draw_strata(axes, fact, strata, at)
        for axes in panels[len(found.facts) :]:
            axes.axis("off")
        name, base = (
            short_name(verdict.runs[number].marked) for number in (model, verdict.baseline)
        )
        for axes in panels[::2]:
            axes.set_ylabel(f"{found.score}: difference", fontsize=SMALL)
        figure.suptitle(
            f"{name} less {base}, 99 % intervals over {found.over}",
            fontsize=SMALL + 2,
            x=0.01,
            ha="left",
        )
    return figure


def _draw_strata(axes: Axes, fact: Fact, strata: tuple[Stratum, ...], at: int) -> None:
    style_axes(axes)
    axes.axhline(0, color=MUTED, lw=1, ls=(0, (4, 3)), zorder=0)
    for place, stratum in enumerate(strata):
        gap, lo, hi = (float(of[at]) for of in (stratum.gap, stratum.lo, stratum.hi))
        colour = _colour(gap, lo, hi, 1.0)
        if not math.isnan(lo):
            axes.plot([place, place], [lo, hi], color=colour, lw=1.6, solid_capstyle="butt")
        axes.plot([place], [gap], "o", ms=4.5, color=colour)
    axes.set_xticks(range(len(strata)), [stratum.label for stratum in strata])
    axes.tick_params(axis="x", labelsize=7.5)
    axes.set_xlim(-0.5, len(strata) - 0.5)
    axes.set_title(fact.title, fontsize=SMALL + 0.5, fontweight="normal")


def _colour(gap: float, lo: float, hi: float, sign: float) -> str:
    """Return blue where the run is better than the baseline, vermilion where worse, else grey."""
    if math.isnan(lo) or lo <= 0 <= hi:
        return MUTED
    return BLUE if sign * gap < 0 else VERMILION

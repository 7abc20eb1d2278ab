"""What intervals drawn by lot do to recall, beside what models say they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from srs_eval.nouns import FloatArray
from srs_eval.plots.style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    SMALL,
    VERMILION,
    house_style,
    lettering,
    new_figure,
    style_axes,
)

_COLOURS = (BLUE, VERMILION, GREEN, INK)
_DASHES = ("-", "--", "-.", ":")
_GROUPS = 8


@dataclass(frozen=True, slots=True)
class ModelInLottery:
    """A model as it is drawn: its slope, and its ratio with an interval."""

    name: str
    slope: float
    ratio: float
    low: float
    high: float
    log_loss: float


def lottery_figure(
    instrument: FloatArray,
    residual: FloatArray,
    slope: tuple[float, float],
    models: Sequence[ModelInLottery],
    *,
    title: str = "",
) -> Figure:
    """Draw the change of recall against the draw, and the ratios of models beside their log loss.

    `instrument` and `residual` are [n]: ln days drawn, and recall, both less what was expected
    before the draw; `slope` is that of recall with its standard error.
    """
    with house_style():
        figure = new_figure(9.2, 3.4 + 0.12 * max(len(models) - 4, 0))
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        _changes(left, instrument, residual, slope, models)
        _ratios(right, models)
        if title:
            figure.suptitle(lettering(title), x=0.01, ha="left", fontsize=10)
    return figure


def _changes(
    axes: Axes,
    instrument: FloatArray,
    residual: FloatArray,
    slope: tuple[float, float],
    models: Sequence[ModelInLottery],
) -> None:
    """Draw means of groups of draws, the estimated line with its 95 % band, and those of models."""
    style_axes(axes)
    groups = np.array_split(np.argsort(instrument, kind="stable"), _GROUPS)
    groups = [group for group in groups if len(group) > 1]
    x = np.array([instrument[group].mean() for group in groups])
    y = np.array([residual[group].mean() for group in groups])
    error = np.array([residual[group].std() / np.sqrt(len(group)) for group in groups])
    ends = np.array([x.min(), 0, x.max()]) if len(x) else np.array([-0.2, 0, 0.2])
    value, se = slope
    axes.fill_between(
        ends,
        100 * (value - 1.96 * se) * ends,
        100 * (value + 1.96 * se) * ends,
        color=MUTED,
        alpha=0.18,
        lw=0,
    )
    axes.plot(ends, 100 * value * ends, color=MUTED, lw=1, label="by lot, 95 % band")
    axes.errorbar(x, 100 * y, 100 * 1.96 * error, fmt="o", color=INK, ms=4, lw=1)
    for number, model in enumerate(models):
        line = axes.plot(ends, 100 * model.slope * ends, label=lettering(model.name), lw=1.6)[0]
        line.set(color=_COLOURS[number % 4], ls=_DASHES[number // 4 % 4])
    axes.axhline(0, color=MUTED, lw=0.6)
    axes.set_xlabel("interval drawn, against its mean (ln days)")
    axes.set_ylabel("change of recall, points")
    axes.legend(fontsize=SMALL - 0.5, loc="lower left")


def _ratios(axes: Axes, models: Sequence[ModelInLottery]) -> None:
    """Draw the ratio of each model with its interval, and its log loss at the right."""
    style_axes(axes)
    beside: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "fontsize": SMALL}
    drawn = [model for model in models if np.isfinite(model.ratio)]
    top = max([2.0, *(model.ratio + 0.4 for model in drawn)])
    for place, model in enumerate(reversed(models)):
        axes.text(1.01, place, f"{model.log_loss:.4f}", va="center", **beside)
        if np.isfinite(model.ratio):
            low, high = np.clip([model.low, model.high], -0.4, top + 0.4)
            axes.hlines(place, low, high, color=INK, lw=1.2)
            axes.plot(model.ratio, place, "o", color=BLUE, ms=6)
    axes.axvline(1, color=MUTED, lw=0.8)
    axes.set_xlim(-0.4, top + 0.4)
    axes.set_yticks(range(len(models)), [lettering(model.name) for model in reversed(models)])
    axes.set_ylim(-0.6, len(models) - 0.4)
    axes.set_xlabel("real change over predicted change, 95 %")
    axes.text(1.01, len(models) - 0.45, "log loss", va="bottom", color=MUTED, **beside)

"""Figures of a search: its history, and the importance of settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import optuna
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState

from srs_eval.plots import style
from srs_eval.text.console import counted
from srs_eval.tuning.search import Found, written

# The folder of a search is a folder of options, in which Hydra treats every folder as a group:
# its name must not be that of a setting.
FOLDER = "search_figures"
_FEWEST = 10
_MOST_SETTINGS = 12


def draw(found: Found, meaning: str) -> dict[str, list[Path]]:
    """Draw the figures of a search into its folder; return the files of each."""
    with style.house_style():
        figures = {
            "optimisation_history": history_figure(found, meaning),
            "parameter_importance": importance_figure(found),
        }
    return {
        name: style.save_figure(figure, found.folder / FOLDER, name)
        for name, figure in figures.items()
    }


def history_figure(found: Found, meaning: str) -> Figure:
    """Draw the value of each trial, and the best so far."""
    figure = style.new_figure(5.6, 3.6)
    axes = figure.add_subplot()
    style.style_axes(axes)
    title = f"{counted(len(found.trials), 'trial')}, {found.options.sampler}"
    axes.set_title(style.heading("search", title))
    axes.set_xlabel("trial")
    axes.set_ylabel(meaning, wrap=True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    done = [t for t in found.trials if t.state == TrialState.COMPLETE and t.value is not None]
    if not done:
        style.write_message(axes, "no trial has a value")
        return figure
    numbers = np.array([t.number for t in done])
    values = np.array([float(t.value or 0.0) for t in done])
    minimum = found.options.direction == "minimize"
    best = np.minimum.accumulate(values) if minimum else np.maximum.accumulate(values)
    axes.step(
        [*numbers, found.trials[-1].number], [*best, best[-1]], where="post", color=style.BLUE
    )
    axes.plot(numbers, values, "o", color=style.BLUE, ms=4, mfc="white", label="trial")
    _zoom(axes, values, minimum=minimum)
    low, high = axes.get_ylim()
    _mark_pruned(found, axes, (low, high))
    beyond = (values < low) | (values > high)
    if beyond.any():
        edge = high if minimum else low
        marker = "^" if minimum else "v"
        axes.plot(
            numbers[beyond],
            np.full(beyond.sum(), edge),
            marker,
            color=style.MUTED,
            ms=5,
            clip_on=False,
            label="far off",
        )
    winner = int(np.argmin(values) if minimum else np.argmax(values))
    label = f"best: trial {numbers[winner]}, {written(values[winner])}"
    axes.plot(numbers[winner], values[winner], "o", color=style.GREEN, ms=7, label=label)
    axes.legend(loc="upper right" if minimum else "lower right")
    return figure


def _zoom(
    axes: Axes, values: np.ndarray[tuple[int], np.dtype[np.float64]], *, minimum: bool
) -> None:
    """Limit the axis so that a few bad trials do not hide the differences of the others."""
    near, middle, far = np.quantile(values, [0, 0.5, 1] if minimum else [1, 0.5, 0])
    limit = near + 4 * (middle - near)
    if len(values) >= _FEWEST and abs(far - near) > 2 * abs(limit - near) > 0:
        margin = 0.08 * (limit - near)
        axes.set_ylim(*sorted((near - margin, limit)))


def _mark_pruned(found: Found, axes: Axes, limits: tuple[float, float]) -> None:
    """Show pruned trials at their last intermediate value."""
    pruned = [t for t in found.trials if t.state == TrialState.PRUNED and t.intermediate_values]
    if pruned:
        last = [t.intermediate_values[max(t.intermediate_values)] for t in pruned]
        shown = np.clip(last, *limits)
        axes.plot(
            [t.number for t in pruned],
            shown,
            "x",
            color=style.VERMILION,
            ms=5,
            clip_on=False,
            label="pruned, so far",
        )


def importance_figure(found: Found) -> Figure:
    """Draw the share of the variance among trials that each setting explains."""
    shares = importances(found.study)
    shown = list(shares.items())[:_MOST_SETTINGS][::-1]
    figure = style.new_figure(5.6, 1.3 + 0.32 * max(len(shown), 3))
    axes = figure.add_subplot()
    style.style_axes(axes)
    axes.set_title(style.heading("importance", "which settings matter"))
    axes.set_xlabel("share of the variance among trials (fANOVA)")
    if not shown:
        axes.set_xticks([])
        axes.set_yticks([])
        style.write_message(axes, f"at least {_FEWEST} trials with different values are needed")
        return figure
    bars = axes.barh([name for name, _ in shown], [share for _, share in shown], color=style.BLUE)
    axes.bar_label(bars, fmt=lambda share: f"{share:.2f}", padding=3, fontsize=style.SMALL)
    axes.set_xlim(0, 1.08)
    axes.tick_params(axis="y", length=0)
    return figure


def importances(study: optuna.Study) -> Mapping[str, float]:
    """Estimate the importance of each setting, largest first; empty with too few trials."""
    values = [t.value for t in study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
    if len(values) < _FEWEST or len(set(values)) < 2:
        return {}
    evaluator = FanovaImportanceEvaluator(seed=0)
    return get_param_importances(study, evaluator=evaluator)

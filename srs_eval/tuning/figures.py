"""Figures of a search: its history, and the importance of settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState

from srs_eval.plots import style
from srs_eval.text.console import counted
from srs_eval.tuning.study import SearchStudy

# The folder of a search is a folder of options, in which Hydra treats every folder as a group:
# its name must not be that of a setting.
FOLDER = "search_figures"
_FEWEST = 10
_MOST_SETTINGS = 12


def draw(search: SearchStudy, meaning: str) -> dict[str, list[Path]]:
    """Draw the figures of a search into its folder; return the files of each."""
    with style.house_style():
        figures = {
            "optimisation_history": _history(search, meaning),
            "parameter_importance": _importance(search),
        }
    return {
        name: style.save_figure(figure, search.folder / FOLDER, name)
        for name, figure in figures.items()
    }


def _history(search: SearchStudy, meaning: str) -> Figure:
    """Draw the value of each trial, and the best so far; pruned trials at their last value."""
    figure = style.new_figure(5.6, 3.6)
    axes = figure.add_subplot()
    style.style_axes(axes)
    title = f"{counted(len(search.ended), 'trial')}, {search.options.sampler}"
    axes.set_title(style.heading("search", title))
    axes.set_xlabel("trial")
    axes.set_ylabel(meaning, wrap=True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    done = {t.number: t.value for t in search.ended if t.state == TrialState.COMPLETE}
    if not done:
        style.write_message(axes, "no trial has a value")
        return figure
    values = np.array([*done.values()], np.float64)
    is_minimum = search.options.direction == "minimize"
    best = (np.minimum if is_minimum else np.maximum).accumulate(values)
    last = search.ended[-1].number
    axes.step([*done, last], [*best, best[-1]], where="post", color=style.BLUE, label="best so far")
    axes.plot([*done], values, "o", color=style.BLUE, ms=4, mfc="white", label="trial")
    # A few bad trials do not hide the differences of the others: they stand at the edge.
    limit = best[-1] + 4 * (np.median(values) - best[-1])
    is_far = values > limit if is_minimum else values < limit
    if len(values) >= _FEWEST and is_far.any() and limit != best[-1]:
        margin = 0.08 * (limit - best[-1])
        axes.set_ylim(*sorted((best[-1] - margin, limit)))
        far = np.array([*done])[is_far]
        _mark(axes, far, limit, "^" if is_minimum else "v", style.MUTED, "far off")
    told = {t.number: t.intermediate_values for t in search.ended if t.state == TrialState.PRUNED}
    pruned = {number: steps[max(steps)] for number, steps in told.items() if steps}
    if pruned:
        shown = np.clip([*pruned.values()], *axes.get_ylim())
        _mark(axes, [*pruned], shown, "x", style.VERMILION, "pruned, so far")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4)  # hides no trial
    return figure


def _mark(
    axes: Axes, trials: ArrayLike, values: ArrayLike, marker: str, colour: str, label: str
) -> None:
    """Mark trials, also at the edge of the axes."""
    x, y = np.broadcast_arrays(trials, values)
    axes.plot(x, y, marker, color=colour, ms=5, clip_on=False, label=label)


def _importance(search: SearchStudy) -> Figure:
    """Draw the share of the variance among trials that each setting explains."""
    values = [trial.value for trial in search.ended if trial.state == TrialState.COMPLETE]
    shares = {}
    if len(values) >= _FEWEST and len(set(values)) > 1:
        shares = get_param_importances(search.study, evaluator=FanovaImportanceEvaluator(seed=0))
    names = [*shares][:_MOST_SETTINGS][::-1]
    figure = style.new_figure(5.6, 1.3 + 0.32 * max(len(names), 3))
    axes = figure.add_subplot()
    style.style_axes(axes)
    axes.set_title(style.heading("importance", "which settings matter"))
    axes.set_xlabel("share of the variance among trials (fANOVA)")
    if not names:
        style.write_message(axes, f"at least {_FEWEST} trials with different values are needed")
        return figure
    bars = axes.barh(names, [shares[name] for name in names], color=style.BLUE)
    axes.bar_label(bars, fmt="{:.2f}", padding=3, fontsize=style.SMALL)
    axes.set_xlim(0, 1.08)
    axes.tick_params(axis="y", length=0)
    return figure

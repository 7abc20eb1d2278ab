"""Figures of a search: its history, and the importance of settings, as Optuna draws them."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from optuna.exceptions import ExperimentalWarning
from optuna.importance import FanovaImportanceEvaluator
from optuna.trial import TrialState
from optuna.visualization import matplotlib as drawings

from srs_eval.plots import style
from srs_eval.tuning.search import Found

# The folder of a search is a folder of options, in which Hydra treats every folder as a group:
# its name must not be that of a setting.
FOLDER = "search_figures"
_FEWEST = 10


def draw(found: Found, meaning: str) -> dict[str, list[Path]]:
    """Draw the figures of a search into its folder; return the files of each."""
    before = plt.get_backend()
    plt.switch_backend("agg")  # no window, wherever this runs
    try:
        with style.house_style(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            history = drawings.plot_optimization_history(found.study, target_name=meaning)
            shown = {"optimisation_history": history, "parameter_importance": _importance(found)}
            return {name: _saved(axes, found.folder, name) for name, axes in shown.items()}
    finally:
        plt.switch_backend(before)


def _importance(found: Found) -> Axes:
    """Draw the share of the variance among trials that each setting explains."""
    values = [trial.value for trial in found.trials if trial.state == TrialState.COMPLETE]
    if len(values) >= _FEWEST and len(set(values)) > 1:
        evaluator = FanovaImportanceEvaluator(seed=0)
        return drawings.plot_param_importances(found.study, evaluator=evaluator)
    axes = plt.figure().add_subplot()
    style.write_message(axes, f"at least {_FEWEST} trials with different values are needed")
    return axes


def _saved(axes: Axes, folder: Path, name: str) -> list[Path]:
    figure = axes.figure.get_figure(root=True)
    assert figure is not None
    try:
        figure.set_layout_engine("tight")
        return style.save_figure(figure, folder / FOLDER, name)
    finally:
        plt.close(figure)

"""The figures of an evaluation, as pure functions on matplotlib axes and figures."""

from srs_eval.plots.bins_plot import bins_figure, plot_bins
from srs_eval.plots.calibration_plot import calibration_figure, plot_calibration
from srs_eval.plots.contributions_plot import contributions_figure, plot_contributions
from srs_eval.plots.corp_plot import corp_figure, plot_corp
from srs_eval.plots.curves_plot import (
    forgetting_figure,
    nth_review_of_curves,
    plot_temporal,
)
from srs_eval.plots.roc_plot import plot_roc, roc_figure
from srs_eval.plots.style import save_figure
from srs_eval.plots.users_plot import HEADLINE, plot_user_scores, users_figure
from srs_eval.plots.versus_plot import plot_versus, versus_figure

__all__ = [
    "HEADLINE",
    "bins_figure",
    "calibration_figure",
    "contributions_figure",
    "corp_figure",
    "forgetting_figure",
    "nth_review_of_curves",
    "plot_bins",
    "plot_calibration",
    "plot_contributions",
    "plot_corp",
    "plot_roc",
    "plot_temporal",
    "plot_user_scores",
    "plot_versus",
    "roc_figure",
    "save_figure",
    "users_figure",
    "versus_figure",
]

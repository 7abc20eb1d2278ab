"""The figures of an evaluation, as pure functions on matplotlib axes and figures."""

from srs_eval.report.calibration_plot import calibration_figure, plot_calibration
from srs_eval.report.curves_plot import forgetting_figure, plot_recall_over_time
from srs_eval.report.roc_plot import plot_roc, roc_figure
from srs_eval.report.style import save_figure
from srs_eval.report.users_plot import HEADLINE, plot_user_scores, users_figure

__all__ = [
    "HEADLINE",
    "calibration_figure",
    "forgetting_figure",
    "plot_calibration",
    "plot_recall_over_time",
    "plot_roc",
    "plot_user_scores",
    "roc_figure",
    "save_figure",
    "users_figure",
]

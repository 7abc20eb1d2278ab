"""The figures of an evaluation, as pure functions on matplotlib axes and figures."""

from srs_eval.plots.bins_plot import bins_figure as bins_figure, plot_bins as plot_bins
from srs_eval.plots.calibration_plot import calibration_figure as calibration_figure
from srs_eval.plots.calibration_plot import plot_calibration as plot_calibration
from srs_eval.plots.contributions_plot import contributions_figure as contributions_figure
from srs_eval.plots.contributions_plot import plot_contributions as plot_contributions
from srs_eval.plots.curves_plot import forgetting_figure as forgetting_figure
from srs_eval.plots.curves_plot import nth_review_of_curves as nth_review_of_curves
from srs_eval.plots.curves_plot import plot_temporal as plot_temporal
from srs_eval.plots.roc_plot import plot_roc as plot_roc, roc_figure as roc_figure
from srs_eval.plots.style import save_figure as save_figure
from srs_eval.plots.users_plot import plot_user_scores as plot_user_scores
from srs_eval.plots.users_plot import users_figure as users_figure

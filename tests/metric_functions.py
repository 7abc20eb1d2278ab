"""Metrics by name, and as functions of predictions and outcomes."""

from srs_eval.metrics.bins import FSRS_OPTIMIZER
from srs_eval.metrics.panel import Panel, full_panel
from srs_eval.metrics.score import score

METRIC = {metric.name: metric for metric in full_panel()}
auc, brier, log_loss, smece, smece_exact, ece = (
    METRIC[name].of_outcomes for name in ("auc", "brier", "log_loss", "smece", "smece_exact", "ece")
)


def rmse_bins(p, recalled, elapsed_days, nth_review, lapses, *, scales=FSRS_OPTIMIZER):
    """Compute RMSE(bins) with some published constants."""
    facts = {"elapsed_days": elapsed_days, "nth_review": nth_review, "lapses": lapses}
    metric = METRIC["rmse_bins" if scales == FSRS_OPTIMIZER else "rmse_bins_wiki"]
    return score(p, recalled, **facts, panel=Panel([metric]), resamples=0)[metric.name]

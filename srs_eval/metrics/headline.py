"""The few metrics of a panel that are shown; files have all of them."""

from __future__ import annotations

from collections.abc import Iterable

from srs_eval.metrics.panel import full_panel
from srs_eval.metrics.threshold import Confusion, ThresholdBias, bias_threshold
from srs_eval.nouns import Metric

# Headline metrics of a run.
HEADLINE = ("log_loss", "normalized_entropy", "brier_skill", "smece", "auc", "rmse_bins")
WITH_BOUNDS = ("log_loss", "smece", "rmse_bins", "auc")  # Logged with their intervals
# The default retention of schedulers.
RETENTION = 0.9
# Shown of a panel that has none of the usual metrics.
FEWEST = 10


def bias_at_retention(names: Iterable[str]) -> tuple[str, float] | None:
    """Return the name of the bias at the threshold nearest to the retention, and the threshold.

    None if there is no such metric among the names.

    >>> bias_at_retention(["auc", "threshold_bias_at_0_7", "threshold_bias_at_0_95"])
    ('threshold_bias_at_0_95', 0.95)
    """
    every = ((name, bias_threshold(name)) for name in names)
    found = [(name, threshold) for name, threshold in every if threshold is not None]
    return min(found, key=lambda named: abs(named[1] - RETENTION), default=None)


def shown_metrics(panel: Iterable[Metric]) -> list[Metric]:
    """Choose what answers the question: the headline, the bias at a retention, own metrics."""
    panel = list(panel)
    builtin = set(full_panel().names)
    biases = [metric.name for metric in panel if isinstance(metric, ThresholdBias)]
    near = bias_at_retention(biases)
    return [
        metric
        for metric in panel
        if metric.name in HEADLINE
        or (near is not None and metric.name == near[0])
        or (metric.name not in builtin and not isinstance(metric, ThresholdBias | Confusion))
    ] or panel[:FEWEST]

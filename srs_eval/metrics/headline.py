"""The few metrics of a panel that are shown; files have all of them."""

from __future__ import annotations

from collections.abc import Iterable

from srs_eval.metrics.panel import full_panel
from srs_eval.metrics.threshold import Confusion, ThresholdBias
from srs_eval.nouns import Metric

# Headline metrics of a run, logged with their intervals.
HEADLINE = ("log_loss", "normalized_entropy", "brier_skill", "smece", "auc", "rmse_bins")
# The default retention of schedulers.
RETENTION = 0.9
# Shown of a panel that has none of the usual metrics.
FEWEST = 10


def shown_metrics(panel: Iterable[Metric]) -> list[Metric]:
    """Choose what answers the question: the headline, the bias at a retention, own metrics."""
    panel = list(panel)
    builtin = set(full_panel().names)
    biases = [metric for metric in panel if isinstance(metric, ThresholdBias)]
    near = min(biases, key=lambda bias: abs(bias.threshold - RETENTION), default=None)
    return [
        metric
        for metric in panel
        if metric.name in HEADLINE
        or metric == near
        or (metric.name not in builtin and not isinstance(metric, ThresholdBias | Confusion))
    ] or panel[:FEWEST]

"""The groups that charts of metrics are shown in."""

from __future__ import annotations

from srs_eval.nouns import Metric

# What models are ranked by.
DECIDING = "log_loss"
_SHORT = {"calibration": "calib"}


def section(metric: Metric) -> str:
    """Group of charts a metric is shown in."""
    return _SHORT.get(metric.section, metric.section)

"""The panel: the metrics of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from operator import attrgetter

from srs_eval.errors import ConfigError
from srs_eval.metrics import scores
from srs_eval.metrics.metric import Function, Metric, as_metric
from srs_eval.metrics.predictions import Predictions, check_predictions
from srs_eval.metrics.reliability import ici
from srs_eval.metrics.smooth_ece import smece, smece_exact, smece_floor
from srs_eval.metrics.tally import Tally
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS, bias_threshold, threshold_metrics

HEADLINE = ("log_loss", "normalized_entropy", "brier_skill", "smece", "auc", "rmse_bins")
WITH_BOUNDS = ("log_loss", "smece", "rmse_bins", "auc")  # Logged with their intervals
RETENTION = 0.9  # The default of schedulers

DEFAULT = (
    scores.log_loss,
    scores.normalized_entropy,
    scores.brier,
    scores.brier_skill,
    scores.log_loss_certain_wrong,
    smece,
    smece_floor,
    scores.ece,
    ici,
    scores.mbe,
    scores.corp_miscalibration_log,
    scores.rmse_bins,
    scores.rmse_bins_floor,
    scores.rmse_bins_wiki,
    scores.rmse_bins_by_p,
    scores.auc,
    scores.corp_discrimination_log,
    scores.temporal_violation,
    scores.temporal_strict,
    scores.temporal_flat,
)
# Names of these and of the full panel that are not shown.
HIDDEN = {metric.__name__ for metric in (*DEFAULT, smece_exact)} - {*HEADLINE}


class Panel:
    """Metrics to compute together.

    Parameters
    ----------
    metrics : mapping or sequence of functions
        Functions of a `Tally`, or of `Predictions`: see `srs_eval.metrics.metric`. Keys of a
        mapping are names in results; in a sequence, each has the name of its function.
    thresholds : sequence of float, in [0, 1]
        Predictions at which the eight confusion statistics are taken, and the bias.
    pooled : bool
        Whether to score all users' predictions put together as well, with intervals. Without, that
        is done where it follows from the users' scores (means over reviews).

    Attributes
    ----------
    names : tuple of str
        Names of the metrics, in order.
    biases : list of float
        Thresholds at which the bias is taken, increasing.

    Raises
    ------
    ConfigError
        If there is no metric, a name is taken twice, or a name has characters other
        than letters, digits and underscores.

    Examples
    --------
    >>> from srs_eval.metrics.scores import brier, log_loss
    >>> Panel([log_loss, brier]).names
    ('log_loss', 'brier')
    """

    def __init__(
        self,
        metrics: Mapping[str, Function] | Sequence[Function | Metric],
        thresholds: Sequence[float] = (),
        *,
        pooled: bool = True,
    ) -> None:
        if isinstance(metrics, Mapping):
            every = [as_metric(function, name) for name, function in metrics.items()]
        else:
            every = [as_metric(function) for function in metrics]
        self.metrics = (*every, *threshold_metrics(thresholds))
        self.pooled = pooled
        self.names = (*[metric.name for metric in self],)
        again = {name for name in self.names if self.names.count(name) > 1}
        twice = [f"metric {name!r} is there twice" for name in sorted(again)]
        if twice or not self.names:
            raise ConfigError(*twice or ["there is no metric"])
        at = [bias_threshold(name) for name in self.names]
        self.biases = sorted([threshold for threshold in at if threshold is not None])

    def __iter__(self) -> Iterator[Metric]:
        """Iterate over the metrics, in order."""
        return iter(self.metrics)

    def score(self, predictions: Predictions) -> dict[str, float]:
        """Compute every metric of the predictions for one user, or for many together.

        A score is NaN where its metric is not defined, and all are if there are no predictions;
        none is infinite. Raise `ScoreError` if anything is NaN, out of range or of the wrong shape.
        """
        return self.of(self.tally(predictions), predictions)

    def tally(self, predictions: Predictions) -> Tally | None:
        """Check and count predictions; None if there are none."""
        check_predictions(predictions)
        return Tally.of(predictions) if len(predictions) else None

    def of(self, tally: Tally | None, predictions: Predictions | None = None) -> dict[str, float]:
        """Compute every metric, those of predictions where these are given."""
        values = dict.fromkeys(self.names, math.nan)
        if tally is None:
            return values
        for metric in self:
            if metric.of_tally or predictions is not None:  # it may write into predictions
                value = metric.function(tally if metric.of_tally else deepcopy(predictions))
                values[metric.name] = float(value) if math.isfinite(value) else math.nan
        return values


def default_panel() -> Panel:
    """Build the default panel.

    >>> "normalized_entropy" in default_panel().names
    True
    """
    return Panel(DEFAULT, DEFAULT_THRESHOLDS)


def full_panel(*, thresholds: Sequence[float] = DEFAULT_THRESHOLDS) -> Panel:
    """Build the panel with every metric there is.

    `thresholds` are the predictions, in [0, 1], at which the confusion statistics are taken.

    >>> set(default_panel().names) < set(full_panel().names)
    True
    """
    return Panel([*DEFAULT, smece_exact], thresholds)


def bias_at_retention(names: Iterable[str]) -> tuple[str, float] | None:
    """Return the name of the bias at the threshold nearest to the retention, and the threshold.

    None if there is no such metric among the names.

    >>> bias_at_retention(["auc", "threshold_bias_at_0_7", "threshold_bias_at_0_95"])
    ('threshold_bias_at_0_95', 0.95)
    """
    biases = [(name, at) for name in names if (at := bias_threshold(name)) is not None]
    return min(biases, key=lambda bias: abs(bias[1] - RETENTION), default=None)


def shown_metrics(panel: Iterable[Metric]) -> list[Metric]:
    """Choose what answers the question: the headline, the bias at a retention, own metrics."""
    panel = list(panel)
    bias = bias_at_retention(map(attrgetter("name"), panel))
    own = {bias[0]} if bias else set()

    def answers(metric: Metric) -> bool:
        at_threshold = metric.name.startswith(("confusion_", "threshold_bias_"))
        return metric.name in own or not (at_threshold or metric.name in HIDDEN)

    return [*filter(answers, panel)] or panel

"""The panel: the metrics of a run, with names that every tracker accepts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srs_eval.errors import ConfigError
from srs_eval.metrics import bins, proper
from srs_eval.metrics.calibration import Ece, MeanBias
from srs_eval.metrics.corp import CorpPart
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.ici import Ici
from srs_eval.metrics.sketch import Sketch, SketchMetric, exact_sketch
from srs_eval.metrics.smece import Smece, SmeceExact
from srs_eval.metrics.smece_floor import SmeceFloor
from srs_eval.metrics.temporal import Temporal
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS, confusion_statistics, threshold_biases
from srs_eval.metrics.validate import check_predictions
from srs_eval.nouns import Metric, Predictions
from srs_eval.nouns.predictions import read_only

SAFE_NAME = re.compile(r"[A-Za-z0-9_]+")


Family = Sequence[Metric]


@dataclass(frozen=True, slots=True)
class Panel:
    """Metrics to compute together.

    Parameters
    ----------
    metrics : sequence or mapping of Metric, or of families of them
        Families, such as `confusion_statistics`, are flattened. The keys of a mapping
        only serve as names for overrides in a configuration.
    pooled : bool
        Whether to score all users' predictions put together as well, with intervals, which
        takes another pass over them. Without, that is done where it follows from the users'
        scores (means over reviews).

    Raises
    ------
    ConfigError
        If there is no metric, a name is taken twice, or a name has characters other
        than letters, digits and underscores.

    Examples
    --------
    >>> from srs_eval.metrics.proper import Brier, LogLoss
    >>> Panel([LogLoss(), Brier()]).names
    ('log_loss', 'brier')
    """

    metrics: Sequence[Metric | Family] | Mapping[str, Metric | Family]
    pooled: bool = True

    def __post_init__(self) -> None:
        """Flatten the families and check the names."""
        given = self.metrics
        opened = tuple(_opened(given.values() if isinstance(given, Mapping) else given))
        strange = [repr(metric) for metric in opened if not callable(metric)]
        if strange:
            raise ConfigError(f"panel.metrics: {', '.join(strange)}: expected metrics")
        object.__setattr__(self, "metrics", opened)
        _refuse_names([metric.name for metric in opened])

    def __iter__(self) -> Iterator[Metric]:
        """Iterate over the metrics, in order."""
        given = self.metrics
        return _opened(given.values() if isinstance(given, Mapping) else given)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the metrics, in order."""
        return tuple(metric.name for metric in self)

    def score(self, predictions: Predictions) -> dict[str, float]:
        """Compute every metric of the predictions for one user, or for many together.

        A score is NaN where its metric is not defined, and all are if there are no predictions;
        none is infinite. Raise `ScoreError` if anything is NaN, out of range or of the wrong shape.
        """
        return self.of(self.sketch(predictions), predictions)

    def sketch(self, predictions: Predictions) -> Sketch | None:
        """Compute the sketch of the metrics; None if there are no predictions."""
        check_predictions(predictions)
        return exact_sketch(read_only(predictions), self) if len(predictions) else None

    def of(self, sketch: Sketch | None, predictions: Predictions) -> dict[str, float]:
        """Compute every metric from a sketch of the predictions, or from themselves."""
        if sketch is None:
            return dict.fromkeys(self.names, math.nan)
        predictions = read_only(predictions)
        return {
            metric.name: finite(
                metric.of(sketch) if isinstance(metric, SketchMetric) else metric(predictions)
            )
            for metric in self
        }


def default_panel(*, thresholds: Sequence[float] = DEFAULT_THRESHOLDS) -> Panel:
    """Build the default panel.

    `thresholds` are the predictions, in [0, 1], at which the confusion statistics are taken.

    >>> "normalized_entropy" in default_panel().names
    True
    """
    return Panel(
        [
            proper.LogLoss(),
            proper.NormalizedEntropy(),
            proper.Brier(),
            proper.BrierSkill(),
            proper.LogLossCertainWrong(),
            Smece(),
            SmeceFloor(),
            Ece(),
            Ici(),
            MeanBias(),
            CorpPart("miscalibration"),
            bins.RmseBins(),
            bins.RmseBinsFloor(),
            bins.RmseBinsWiki(),
            bins.RmseBinsByP(),
            Auc(),
            CorpPart("discrimination"),
            confusion_statistics(thresholds),
            threshold_biases(thresholds),
            Temporal("violation"),
            Temporal("strict"),
            Temporal("flat"),
        ]
    )


def full_panel(*, thresholds: Sequence[float] = DEFAULT_THRESHOLDS) -> Panel:
    """Build the panel with every metric there is.

    Examples
    --------
    >>> set(default_panel().names) < set(full_panel().names)
    True
    """
    return Panel([*default_panel(thresholds=thresholds), SmeceExact()])


def _opened(metrics: Iterable[Any]) -> Iterator[Any]:
    """Iterate over metrics and members of families."""
    for entry in metrics:
        if isinstance(entry, Sequence) and not isinstance(entry, str):
            yield from entry
        else:
            yield entry


def _refuse_names(names: Sequence[str]) -> None:
    """Raise `ConfigError` for invalid names."""
    problems = [f"metric {name!r} is there twice" for name, n in Counter(names).items() if n > 1]
    problems += [
        f"metric name {name!r} has characters other than letters, digits and underscores"
        for name in names
        if not SAFE_NAME.fullmatch(name)
    ]
    if not names:
        problems.append("there is no metric")
    if problems:
        raise ConfigError(f"this panel cannot be computed: {'; '.join(problems)}")


def finite(value: float) -> float:
    """Return a number, NaN if it is infinite."""
    return float(value) if math.isfinite(value) else math.nan

"""Score predictions that were made elsewhere, and print the scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tabulate import tabulate

from srs_eval.errors import ScoreError
from srs_eval.metrics.bootstrap import RESAMPLES, cluster_intervals
from srs_eval.metrics.means import UNKNOWN
from srs_eval.metrics.metric import Better
from srs_eval.metrics.panel import Panel, default_panel, shown_metrics
from srs_eval.metrics.predictions import as_numbers, predictions_of
from srs_eval.metrics.significance import LEVEL
from srs_eval.metrics.tally import Tally
from srs_eval.metrics.threshold import threshold_rows

if TYPE_CHECKING:
    import pandas as pd

_BETTER = {"zero": "best at 0", "neither": ""}


class PanelResult(dict[str, float]):
    """Scores by name, as a dictionary; printed, they are a table.

    Attributes
    ----------
    better : mapping of str
        Which way each score is better: ``lower``, ``higher``, ``zero`` or ``neither``.
    thresholds : tuple of dict
        Counts, rates and Wilson's intervals for each threshold: see `threshold_rows`.
    intervals : mapping of (lo, hi)
        Intervals of the scores; empty unless users, cards or days were given.
    interval_over : str
        The resampled clusters: ``users``, ``cards and days``, or "" for none.
    level : float
        Share of intervals that should hold the true score.
    shown : tuple of str
        Names of the scores that are printed, those that a run prints too; `to_frame` has all.
    """

    better: Mapping[str, Better]
    thresholds: tuple[dict[str, float], ...]
    intervals: Mapping[str, tuple[float, float]]
    interval_over: str
    level: float
    shown: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame: a row per score, with ``score``, ``lo``, ``hi``, ``better``."""
        import pandas as pd  # heavy, and rarely needed

        rows = {
            name: (score, *self.intervals.get(name, UNKNOWN), self.better.get(name, ""))
            for name, score in self.items()
        }
        columns = ["score", "lo", "hi", "better"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("metric")

    def __str__(self) -> str:
        """Format a table of the scores that are shown, with the names of undefined ones below."""
        heading = f"{self['n']:,.0f} reviews"
        heading += f", {self['n_dropped']:,.0f} left out" if self["n_dropped"] else ""
        if self.interval_over:
            heading += f"; {100 * self.level:g} % intervals from resampling {self.interval_over}"
        rows, undefined = [], []
        for name in self.shown:
            if math.isnan(self[name]):
                undefined.append(name)
                continue
            lo, hi = self.intervals.get(name, UNKNOWN)
            floor = self.get(f"{name}_floor", math.nan)
            by_chance = "" if math.isnan(floor) else f"; {floor:.4f} by chance"
            interval = "" if math.isnan(lo + hi) else f"{lo:.4f} … {hi:.4f}"
            better = _BETTER.get(self.better[name], f"{self.better[name]} is better")
            rows.append([name, f"{self[name]:7.4f}", interval, better + by_chance])
        hidden = len(self) - len(self.shown) - 2  # besides the numbers of reviews
        notes = [f"not defined here: {', '.join(undefined)}"] if undefined else []
        notes += [f"{hidden} more: to_frame() has all scores"] if hidden else []
        table = tabulate(rows, tablefmt="plain", disable_numparse=True)
        return "\n".join([heading, *table.splitlines(), *notes])

    __repr__ = __str__


def score(
    p: ArrayLike,
    recalled: ArrayLike,
    *,
    elapsed_days: ArrayLike | None = None,
    nth_review: ArrayLike | None = None,
    lapses: ArrayLike | None = None,
    card: ArrayLike | None = None,
    day: ArrayLike | None = None,
    user: ArrayLike | None = None,
    panel: Panel | None = None,
    nan_policy: str = "raise",
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> PanelResult:
    """Compute the whole panel for predictions made elsewhere.

    Takes numpy arrays, lists, and columns of pandas, polars or torch (on the CPU).

    Parameters
    ----------
    p : float [n], in [0, 1]
        Predicted probability of recall.
    recalled : bool [n], or 0 and 1
        Outcome.
    elapsed_days, nth_review, lapses : [n], optional
        What RMSE(bins) groups reviews by; without all three it is NaN.
    card, day, user : [n], optional
        Card, day and user of each review, numbers or names. All reviews are scored together;
        intervals come from resampling users, or where there is one user, or none is given,
        cards and days, whose squared widths are added. Reviews of one are alike, so that intervals
        which take them as independent are too narrow.
    panel : Panel, optional
        Metrics to compute instead of the default panel, such as `full_panel`; other thresholds
        of the confusion statistics are ``full_panel(thresholds=[0.85])``.
    nan_policy : str
        ``raise``, or ``omit`` to leave out the reviews where any column is missing.
    resamples : int
        How often users or cards are drawn; 0 for no intervals.
    seed : int
        Of the draws: the same for equally many users, so that differences between models keep
        their pairing.
    level : float, in (0, 1)
        Share of intervals that should hold the score of as many reviews of other users (or
        cards, days). Errors that cannot be negative, such as SmoothECE and RMSE(bins), are
        above 0 for perfect predictions too: compare them with their floors, not with 0.

    Returns
    -------
    PanelResult
        A dictionary of ``n``, ``n_dropped`` and each metric, with the intervals; it prints as a
        table of the metrics that a run prints. The temporal check is NaN, it needs a model.

    Raises
    ------
    ScoreError
        If there are no predictions, or they cannot be scored; every problem is named.

    Examples
    --------
    >>> scores = score([0.9, 0.8, 0.3], [1, 1, 0])
    >>> scores["n"], round(scores["log_loss"], 6)
    (3, 0.228393)
    """
    problems = []
    if nan_policy not in ("raise", "omit"):
        problems.append(f"nan_policy is {nan_policy!r}, expected 'raise' or 'omit'")
    if resamples < 0:
        problems.append(f"resamples is {resamples}, expected 0 or more")
    if not 0 < level < 1:
        problems.append(f"level is {level}, expected a share between 0 and 1, such as 0.99")
    if problems:
        raise ScoreError("; ".join(problems))
    facts = {"elapsed_days": elapsed_days, "nth_review": nth_review, "lapses": lapses}
    numbers = {"p": p, "recalled": recalled, **facts}
    columns = {name: as_numbers(name, of) for name, of in numbers.items() if of is not None}
    labels = {"card": card, "day": day, "user": user}
    columns |= {name: _codes(of) for name, of in labels.items() if of is not None}
    length = columns["p"].size
    if nan_policy == "omit" and len({column.shape for column in columns.values()}) == 1:
        missing = np.any([np.isnan(column) for column in columns.values()], axis=0)
        columns = {name: column[~missing] for name, column in columns.items()}
    nameless = [name for name in labels if name in columns and np.isnan(columns[name]).any()]
    if nameless:
        raise ScoreError(f"{' and '.join(nameless)} has missing values; see nan_policy")
    predictions = predictions_of(**columns)
    if not len(predictions):
        raise ScoreError("there are no reviews to score")
    panel = panel or default_panel()
    tally = Tally.of(predictions)
    scores = panel.of(tally, predictions)
    result = PanelResult({"n": len(predictions), "n_dropped": length - len(predictions), **scores})
    several = len(np.unique(predictions.user)) > 1
    alike = ["user"] if several else [name for name in ("card", "day") if name in columns]
    result.intervals, result.interval_over = {}, ""
    if alike and resamples:
        options: dict[str, Any] = {"resamples": resamples, "seed": seed, "level": level}
        result.intervals = cluster_intervals(panel, predictions, alike, tally, **options)
        result.interval_over = " and ".join(f"{name}s" for name in alike)
    result.level = level
    result.thresholds = threshold_rows(tally, panel.biases, level=level)
    result.better = {metric.name: metric.better for metric in panel}
    result.shown = tuple(metric.name for metric in shown_metrics(panel))
    return result


def _codes(labels: ArrayLike) -> NDArray[Any]:
    """Return labels of cards, days or users as numbers; NaN where one is missing."""
    if isinstance(labels, np.ma.MaskedArray):
        labels = labels.tolist()  # None where masked
    values = np.asarray(labels) if hasattr(labels, "dtype") else np.array(labels, dtype=object)
    if values.dtype.kind in "biuf":
        return values
    import pandas as pd  # heavy, and rarely needed

    codes, _ = pd.factorize(values.ravel())
    return np.where(codes < 0, np.nan, codes).reshape(values.shape)

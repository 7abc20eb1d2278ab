"""Score predictions that were made elsewhere, and print the scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tabulate import tabulate

from srs_eval.errors import ScoreError
from srs_eval.metrics.bootstrap import RESAMPLES, cluster_intervals
from srs_eval.metrics.metric import Better
from srs_eval.metrics.panel import Panel, default_panel, shown_metrics
from srs_eval.metrics.significance import LEVEL
from srs_eval.metrics.tally import Tally
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS, threshold_rows
from srs_eval.metrics.validate import Columns, as_columns, from_columns

if TYPE_CHECKING:
    import pandas as pd

NAN_POLICIES = ("raise", "omit")
_COUNTS = ("n", "n_dropped")
_BETTER: Mapping[Better, str] = {
    "lower": "lower is better",
    "higher": "higher is better",
    "zero": "best at 0",
    "neither": "",
}


class PanelResult(dict[str, float]):
    """Scores by name, as a dictionary; printed, they are a table."""

    def __init__(
        self,
        scores: Mapping[str, float],
        *,
        better: Mapping[str, Better] | None = None,
        thresholds: tuple[dict[str, float], ...] = (),
        intervals: Mapping[str, tuple[float, float]] | None = None,
        interval_over: str = "",
        level: float = math.nan,
        shown: Sequence[str] | None = None,
    ) -> None:
        super().__init__(scores)
        # Which way each score is better: ``lower``, ``higher``, ``zero`` or ``neither``
        self.better = dict(better or {})
        # Counts, rates and Wilson's intervals for each threshold: see `threshold_rows`
        self.thresholds = thresholds
        # Intervals of the scores, (lo, hi); empty unless users or cards were given
        self.intervals = dict(intervals or {})
        # The resampled clusters: ``users``, ``cards``, or "" for none
        self.interval_over = interval_over
        self.level = level  # Share of intervals that should hold the true score
        names = (name for name in self if name not in _COUNTS)
        # Names of the scores that are printed, those that a run prints too; `to_frame` has all
        self.shown = tuple(names if shown is None else shown)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame: a row per score, with ``score``, ``lo``, ``hi``, ``better``."""
        import pandas as pd  # heavy, and rarely needed

        unknown = (math.nan, math.nan)
        rows = {
            name: {
                "score": score,
                "lo": self.intervals.get(name, unknown)[0],
                "hi": self.intervals.get(name, unknown)[1],
                "better": self.better.get(name, ""),
            }
            for name, score in self.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")

    def __str__(self) -> str:
        """Format a table of the scores that are shown, with the names of undefined ones below."""
        rows = [self._row(name) for name in self.shown if not math.isnan(self[name])]
        undefined = [name for name in self.shown if math.isnan(self[name])]
        hidden = len(self) - len({*_COUNTS, *self.shown} & {*self})
        notes = [f"not defined here: {', '.join(undefined)}"] if undefined else []
        notes += [f"{hidden} more: to_frame() has all scores"] if hidden else []
        table = tabulate(rows, tablefmt="plain", disable_numparse=True)
        return "\n".join([self._heading(), *table.splitlines(), *notes])

    def _heading(self) -> str:
        heading = f"{self.get('n', math.nan):,.0f} reviews"
        if self.get("n_dropped"):
            heading += f", {self['n_dropped']:,.0f} left out"
        if self.interval_over:
            heading += f"; {100 * self.level:g} % intervals from resampling {self.interval_over}"
        return heading

    def _row(self, name: str) -> list[str]:
        lo, hi = self.intervals.get(name, (math.nan, math.nan))
        better = _BETTER.get(self.better.get(name, "neither"), "")
        floor = self.get(f"{name}_floor", math.nan)
        by_chance = "" if math.isnan(floor) else f"; {floor:.4f} by chance"
        interval = "" if math.isnan(lo + hi) else f"{lo:.4f} … {hi:.4f}"
        return [name, f"{self[name]:7.4f}", interval, better + by_chance]

    def __repr__(self) -> str:
        return str(self)


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
    thresholds: Sequence[float] | None = None,
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
        What RMSE(bins) groups reviews by; without all three it is NaN. See `RmseBins`.
    card, day, user : [n], optional
        Card, day and user of each review, numbers or names. All reviews are scored together;
        intervals come from resampling users, or where there is one user, or none is given,
        cards and days, whose squared widths are added. Reviews of one are alike, so that intervals
        which take them as independent are too narrow.
    thresholds : sequence of float, optional
        Predictions at which the default panel takes the confusion statistics: 0.7, 0.8, 0.9
        and 0.95 by default.
    panel : Panel, optional
        Metrics to compute instead of the default panel, such as `full_panel`.
    nan_policy : str
        ``raise``, or ``omit`` to leave out the reviews where any column is NaN.
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
        A dictionary of ``n``, ``n_dropped`` and each metric, with the intervals; it prints as
        a table of the metrics that a run prints. The temporal check is NaN, it needs a model.

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
    _refuse_options(nan_policy, thresholds, panel, resamples, level)
    facts = {"elapsed_days": elapsed_days, "nth_review": nth_review, "lapses": lapses}
    labels = {"card": card, "day": day, "user": user}
    codes = {name: _codes(of) for name, of in labels.items() if of is not None}
    columns = as_columns({"p": p, "recalled": recalled, **facts, **codes})
    length = columns["p"].size
    if nan_policy == "omit":
        columns = _without_missing(columns)
    nameless = [name for name in codes if np.isnan(columns[name]).any()]
    if nameless:
        raise ScoreError(f"{' and '.join(nameless)} has missing values; see nan_policy")
    predictions = from_columns(columns)
    if not len(predictions):
        left_out = f": all {length} have a missing value, see nan_policy" if length else ""
        raise ScoreError(f"there are no reviews to score{left_out}")
    panel = panel or default_panel(
        thresholds=DEFAULT_THRESHOLDS if thresholds is None else thresholds
    )
    tally = Tally.of(predictions)
    scores = panel.of(tally, predictions)
    alike = _alike(columns) if resamples else ()
    clusters = [columns[name] for name in alike]
    options: dict[str, Any] = {"resamples": resamples, "seed": seed, "level": level}
    about = panel, predictions, clusters, tally, scores
    intervals = cluster_intervals(*about, **options) if alike else {}
    return PanelResult(
        {"n": len(predictions), "n_dropped": length - len(predictions), **scores},
        better={metric.name: metric.better for metric in panel},
        thresholds=threshold_rows(tally, panel.biases, level=level),
        intervals=intervals,
        interval_over=" and ".join(f"{name}s" for name in alike),
        level=level,
        shown=[metric.name for metric in shown_metrics(panel)],
    )


def _refuse_options(
    nan_policy: str,
    thresholds: Sequence[float] | None,
    panel: object,
    resamples: int,
    level: float,
) -> None:
    """Raise `ScoreError` for invalid options."""
    problems = []
    if nan_policy not in NAN_POLICIES:
        problems.append(f"nan_policy is {nan_policy!r}, expected 'raise' or 'omit'")
    if panel is not None and not isinstance(panel, Panel):
        problems.append(f"panel is a {type(panel).__name__}, expected a Panel such as full_panel()")
    if panel is not None and thresholds is not None:
        problems.append("thresholds are those of the default panel; the panel given has its own")
    if resamples < 0:
        problems.append(f"resamples is {resamples}, expected 0 or more")
    if not 0 < level < 1:
        problems.append(f"level is {level}, expected a share between 0 and 1, such as 0.99")
    if problems:
        raise ScoreError("; ".join(problems))


def _alike(columns: Columns) -> tuple[str, ...]:
    """Choose the clusters to resample: users if there are several, else cards and days."""
    if "user" in columns and len(np.unique(columns["user"])) > 1:
        return ("user",)
    return tuple(name for name in ("card", "day") if name in columns)


def _codes(labels: ArrayLike) -> NDArray[Any]:
    """Return labels of cards, days or users as numbers; NaN where one is missing."""
    if isinstance(labels, np.ma.MaskedArray):
        labels = labels.tolist()  # None where masked
    names = np.asarray(labels) if hasattr(labels, "dtype") else np.array(labels, dtype=object)
    if names.dtype.kind in "biuf":
        return names
    import pandas as pd  # heavy, and rarely needed

    codes, _ = pd.factorize(names.ravel())
    return np.where(codes < 0, np.nan, codes).reshape(names.shape)


def _without_missing(columns: Columns) -> Columns:
    """Drop the reviews at which any column is NaN."""
    shapes = {name: column.shape for name, column in columns.items()}
    if len(set(shapes.values())) > 1 or columns["p"].ndim != 1:
        raise ScoreError(f"columns must have one dimension and equal lengths, not {shapes}")
    whole = np.ones(len(columns["p"]), np.bool_)
    for column in columns.values():
        whole &= ~np.isnan(column.astype(np.float64))
    return {name: column[whole] for name, column in columns.items()}

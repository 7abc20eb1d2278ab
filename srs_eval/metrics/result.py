"""The panel of some predictions as a result: a dictionary that also prints well."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from srs_eval.nouns import Better

if TYPE_CHECKING:
    import pandas as pd

_COUNTS = ("n", "n_dropped")
_BETTER: Mapping[Better, str] = {
    "lower": "lower is better",
    "higher": "higher is better",
    "zero": "best at 0",
    "neither": "",
}


class PanelResult(dict[str, float]):
    """Scores by name, as a dictionary; printed, they are a table.

    Attributes
    ----------
    intervals : dict of str to (lo, hi)
        Intervals of the scores; empty unless users or cards were given.
    interval_over : str
        The resampled clusters: ``users``, ``cards``, or "" for none.
    level : float
        Share of intervals that should hold the true score.
    thresholds : tuple of dict
        Counts, rates and Wilson's intervals for each threshold: see `threshold_rows`.
    better : dict of str to str
        Which way each score is better: ``lower``, ``higher``, ``zero`` or ``neither``.
    """

    def __init__(
        self,
        scores: Mapping[str, float],
        *,
        better: Mapping[str, Better] | None = None,
        thresholds: tuple[dict[str, float], ...] = (),
        intervals: Mapping[str, tuple[float, float]] | None = None,
        interval_over: str = "",
        level: float = math.nan,
    ) -> None:
        super().__init__(scores)
        self.better = dict(better or {})
        self.thresholds = thresholds
        self.intervals = dict(intervals or {})
        self.interval_over = interval_over
        self.level = level

    def to_dict(self) -> dict[str, float]:
        """Return a plain dictionary of the scores."""
        return dict(self)

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
        """Format a table of the defined scores, with the names of the others below it."""
        known = {name: score for name, score in self.items() if not math.isnan(score)}
        lines = [self._heading()]
        width = max(map(len, known), default=0)
        lines += [f"{name:<{width}}  {self._line(name, score)}" for name, score in known.items()]
        undefined = [name for name in self if name not in known]
        if undefined:
            lines.append(f"not defined here: {', '.join(undefined)}")
        return "\n".join(line.rstrip() for line in lines)

    def _heading(self) -> str:
        about = f"{self.get('n', math.nan):,.0f} reviews"
        if self.get("n_dropped"):
            about += f", {self['n_dropped']:,.0f} left out"
        if self.interval_over:
            about += f"; {100 * self.level:g} % intervals from resampling {self.interval_over}"
        return about

    def _line(self, name: str, score: float) -> str:
        if name in _COUNTS:
            return f"{score:>9,.0f}"
        lo, hi = self.intervals.get(name, (math.nan, math.nan))
        interval = "" if math.isnan(lo + hi) else f"{lo:.4f} … {hi:.4f}"
        if self.intervals:
            interval = f"{interval:<20}"
        return f"{score:9.4f}  {interval}  {_BETTER.get(self.better.get(name, 'neither'), '')}"

    def __repr__(self) -> str:
        return str(self)

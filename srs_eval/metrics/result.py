"""The panel of some predictions as a result: a dictionary that also prints well."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
        """Format a table of the scores that are shown, with the names of undefined ones below."""
        known = [name for name in self.shown if not math.isnan(self[name])]
        lines = [self._heading()]
        width = max(map(len, known), default=0)
        lines += [f"{name:<{width}}  {self._line(name)}" for name in known]
        undefined = [name for name in self.shown if name not in known]
        if undefined:
            lines.append(f"not defined here: {', '.join(undefined)}")
        more = len(self) - len({*_COUNTS, *self.shown} & {*self})
        if more:
            lines.append(f"{more} more: to_frame() has all scores")
        return "\n".join(line.rstrip() for line in lines)

    def _heading(self) -> str:
        about = f"{self.get('n', math.nan):,.0f} reviews"
        if self.get("n_dropped"):
            about += f", {self['n_dropped']:,.0f} left out"
        if self.interval_over:
            about += f"; {100 * self.level:g} % intervals from resampling {self.interval_over}"
        return about

    def _line(self, name: str) -> str:
        lo, hi = self.intervals.get(name, (math.nan, math.nan))
        interval = "" if math.isnan(lo + hi) else f"{lo:.4f} … {hi:.4f}"
        if self.intervals:
            interval = f"{interval:<20}"
        better = _BETTER.get(self.better.get(name, "neither"), "")
        floor = self.get(f"{name}_floor", math.nan)
        by_chance = "" if math.isnan(floor) else f"; {floor:.4f} by chance"
        return f"{self[name]:9.4f}  {interval}  {better}{by_chance}"

    def __repr__(self) -> str:
        return str(self)

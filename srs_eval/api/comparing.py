"""`srs_eval.compare`: results against each other on identical reviews."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from srs_eval.api.result import RunResult
from srs_eval.api.show import Shown
from srs_eval.comparison import answer, files
from srs_eval.comparison import compare as comparing
from srs_eval.comparison.entry import Entry, entry_of
from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.standings import Standings
from srs_eval.comparison.table import Table
from srs_eval.errors import ConfigError


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Comparison(Shown):
    """Results compared by one metric.

    Attributes
    ----------
    standings : Standings
        Every number and interval.
    """

    standings: Standings

    @property
    def table(self) -> pd.DataFrame:
        """One row per result, best first, each user counting once.

        Columns are the mean with its 99 % interval (``mean``, ``lo``, ``hi``), the paired
        differences to the leader and to the baseline (``to_best``, ``to_baseline`` and what
        begins so) and means of other metrics.
        """
        return answer.users_frame(self.standings).drop(columns=["run", "weighting"])

    def save(self, folder: str | Path) -> list[Path]:
        """Write the files and the report that ``python -m srs_eval.compare`` writes.

        Returns
        -------
        list of Path
            The files.

        Raises
        ------
        OSError
            If the folder cannot be written to.
        """
        return files.write_files(self.standings, Path(folder).expanduser())

    def __repr__(self) -> str:
        """Return what ``python -m srs_eval.compare`` prints."""
        return answer.terminal(self.standings)

    def _shown(self) -> tuple[str, list[str], Table]:
        notes = [answer.facts(self.standings), *answer.footnotes(self.standings)]
        return answer.sentence(self.standings), notes, answer.table(self.standings)


def compare(
    results: Iterable[RunResult | str | Path],
    *,
    metric: str = "log_loss",
    baseline: str | None = None,
    intersect: bool = False,
) -> Comparison:
    """Compare results on identical reviews: which predicts best, and whether it is noise.

    Parameters
    ----------
    results : iterable of RunResult, str or Path
        Results, folders of finished runs, folders that hold several, or files of published
        scores.
    metric : str
        Any metric of the results with a better direction.
    baseline : str, optional
        Label of the result that the others are compared with; the first by default.
    intersect : bool
        Compare on the reviews that all have scored, instead of raising an error where they
        differ.

    Returns
    -------
    Comparison

    Raises
    ------
    ConfigError
        If a folder holds no results, or the results cannot be compared.

    Examples
    --------
    >>> import srs_eval as se
    >>> data = {"data": "synthetic", "users": 3, "size_scale": 0.05, "panel": "quick"}
    >>> results = [se.evaluate(name, **data) for name in ("avg", "hlr")]
    >>> sorted(se.compare(results).table.index)
    ['avg', 'hlr']
    """
    if isinstance(results, RunResult | str | Path):
        results = [results]
    runs: list[Entry] = []
    notes: list[str] = []
    for number, each in enumerate(results, start=1):
        if not isinstance(each, RunResult):
            found, left_out = read_runs([Path(each).expanduser()])
            runs += found
            notes += left_out
        elif each.run.complete:
            run = entry_of(each.run)
            # distinguishes results of one label that are in no folder
            runs.append(run if each.folder else replace(run, place=Path(f"result {number}")))
        else:
            notes.append(f"{each.facts.label} scored no user and was left out")
    if not runs:
        raise ConfigError(*(notes or ["there are no results to compare"]))
    standings = comparing.compare(
        runs, metric=metric, baseline=baseline, intersect=intersect, notes=notes
    )
    return Comparison(standings)

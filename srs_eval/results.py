"""Results for people in Python: they show, draw, save and export themselves."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING
from weakref import finalize

import pandas as pd

from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError
from srs_eval.exports.fitted import RunFits
from srs_eval.exports.formats import HandOver, exported
from srs_eval.metrics.panel import full_panel
from srs_eval.runs.folder import CONFIG, FILES, PREDICTIONS, SCORES, SUMMARY, Run, claimed
from srs_eval.runs.report import note_of, run_text
from srs_eval.runs.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Temporary:
    """A folder that lives as long as this object."""

    def __init__(self) -> None:
        self.name = mkdtemp(prefix="srs_eval-")
        finalize(self, shutil.rmtree, self.name, ignore_errors=True)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RunResult:
    """The result of evaluating an algorithm.

    `scores`, `summary`, `fits` and `predictions` are pandas frames. It shows itself as the command
    does, and draws figures, each a `matplotlib.figure.Figure`.

    Attributes
    ----------
    run : Run
        The files of the run, read one user at a time.
    """

    run: Run
    # Holds the files as long as the result lives; None where they are in a folder of one's own
    temporary: Temporary | None = None

    def __repr__(self) -> str:
        """Return what ``python -m srs_eval`` prints."""
        return run_text(self.run, full_panel())

    @property
    def facts(self) -> Summary:
        """What was run, and the panel with its intervals: the content of ``summary.json``."""
        return self.run.facts

    @property
    def folder(self) -> Path | None:
        """Folder of the files; None if it is temporary."""
        return None if self.temporary else self.run.folder

    @property
    def scores(self) -> pd.DataFrame:
        """One row per user: scored reviews, their digest, and each metric."""
        return pd.read_parquet(self.run.folder / SCORES).set_index("user")

    @property
    def summary(self) -> pd.DataFrame:
        """One row per metric: means over users and reviews, pooled value and intervals."""
        rows = {name: asdict(row) for name, row in self.facts.metrics.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")

    @property
    def fits(self) -> pd.DataFrame:
        """One row per fit: status, reason, time, number of reviews, and parameters."""
        return pd.DataFrame([asdict(fit) for fit in self.run.fits()])

    @property
    def predictions(self) -> pd.DataFrame:
        """One row per scored review: user, number of the card, prediction, outcome and others.

        Cards have the numbers of `Reviews.card`, also where the log has names for them.
        """
        file = self.run.folder / PREDICTIONS
        return pd.read_parquet(file) if self.run.has_predictions else pd.DataFrame()

    def save(self, place: str | Path) -> RunResult:
        """Write the files that the command writes, and return the result with its folder.

        Raises
        ------
        FolderInUseError
            If a command is writing to the folder.
        """
        path, here = Path(place).expanduser(), self.run.folder
        if path.resolve() == here.resolve():
            return self
        with claimed(path):
            (path / SUMMARY).unlink(missing_ok=True)  # comes last: it marks the run as finished
            for name in (CONFIG, *reversed(FILES)):
                (path / name).unlink(missing_ok=True)
                (path / name).parent.mkdir(exist_ok=True)
                if (here / name).is_file():
                    shutil.copy(here / name, path / name)
        return RunResult(Run.read(path))

    def export(self, to: str, *, user: User | None = None, fold: int | None = None) -> HandOver:
        """Return the fitted parameters of a user as an app reads them.

        Parameters
        ----------
        to : {"anki", "py_fsrs", "json"}
            The app: see `docs/export.md`.
        user : int or str, optional
            The only user by default.
        fold : int, optional
            The last one by default, which has learned from most reviews.

        Returns
        -------
        HandOver
            Its text is ``str`` of it.

        Raises
        ------
        ConfigError
            If there is no such format, user or fold, or the app cannot read the parameters.
        FitError
            If the fit failed or was skipped.
        """
        return exported(RunFits.read(self.run.folder), to, user, fold)

    def plot_calibration(self) -> Figure:
        """Draw the smooth reliability diagram of all predictions."""
        return self._figure("calibration")

    def plot_roc(self) -> Figure:
        """Draw the ROC curve of all predictions."""
        return self._figure("roc")

    def plot_bins(self) -> Figure:
        """Draw where predictions are too high or too low, in the bins of RMSE(bins)."""
        return self._figure("bins")

    def plot_users(self) -> Figure:
        """Draw the distribution of scores over users."""
        return self._figure("users")

    def plot_forgetting(self) -> Figure:
        """Draw a sample of forgetting curves, and recall over elapsed time."""
        return self._figure("forgetting")

    def _figure(self, name: str) -> Figure:
        from srs_eval.plots import figures  # matplotlib: not where nothing is drawn
        from srs_eval.plots.style import annotate

        complete, facts, scores = [*self.run.every_prediction()], self.facts, self.run.by_user
        of_users = dict(zip(scores.names, scores.values.T, strict=True))
        title, sums = f"{facts.label} on {facts.data}", figures.RunSums(complete)
        figure = figures.figure(name, sums, of_users, title) if complete else None
        if figure is None:
            raise ConfigError(f"{facts.label} keeps nothing that the figure of {name} shows")
        annotate(figure, note_of(self.run))
        return figure

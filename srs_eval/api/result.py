"""The result of a run for people in Python: it shows, draws, saves and exports itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

import pandas as pd
import pyarrow.parquet as pq

from srs_eval.algorithms.algorithm import IN_WORDS
from srs_eval.api.show import Shown
from srs_eval.comparison.entry import entry_of
from srs_eval.comparison.remarks import warnings
from srs_eval.comparison.table import Table
from srs_eval.comparison.words import counted, interval
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError
from srs_eval.exports.fitted import RunFits
from srs_eval.exports.formats import FORMATS, HandOver
from srs_eval.metrics.panel import FEWEST, full_panel, shown_metrics
from srs_eval.runs.claim import claimed
from srs_eval.runs.folder import CONFIG, FILES, PREDICTIONS, SCORES, SUMMARY, Run
from srs_eval.runs.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Temporary:
    """A folder that lives as long as this object."""

    def __init__(self) -> None:
        self.name = mkdtemp(prefix="srs_eval-")
        finalize(self, shutil.rmtree, self.name, ignore_errors=True)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RunResult(Shown):
    """The result of evaluating an algorithm.

    `scores`, `summary`, `fits` and `predictions` are pandas frames. It shows itself in a notebook
    and draws figures, each a `matplotlib.figure.Figure`.

    Attributes
    ----------
    run : Run
        The files of the run, read one user at a time.
    content : mapping
        The resolved configuration; empty where it is not known.
    """

    run: Run
    content: Mapping[str, Any] = field(default_factory=dict)
    # Holds the files as long as the result lives; None where they are in a folder of one's own
    temporary: Temporary | None = None

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
        return _frame(self.run.folder / SCORES).set_index("user")

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
        return _frame(self.run.folder / PREDICTIONS) if self.run.has_predictions else pd.DataFrame()

    def save(self, place: str | Path) -> RunResult:
        """Write the files that the command writes, and return the result with its folder.

        Raises
        ------
        FolderInUseError
            If a command is writing to the folder.
        OSError
            If the folder cannot be written to.
        """
        path = Path(place).expanduser()
        if path.resolve() == self.run.folder.resolve():
            return self
        with claimed(path):
            (path / SUMMARY).unlink(missing_ok=True)  # comes last: it marks the run as finished
            for name in (*reversed(FILES), CONFIG):
                (path / name).parent.mkdir(exist_ok=True)
                if (self.run.folder / name).is_file():
                    shutil.copy(self.run.folder / name, path / name)
                else:
                    (path / name).unlink(missing_ok=True)
        return replace(self, run=Run.read(path), temporary=None)

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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a temporary result with its files."""
        if self.temporary is None:
            return RunResult, (self.run, self.content)
        names = [name for name in (*FILES, CONFIG) if (self.run.folder / name).is_file()]
        files = {name: (self.run.folder / name).read_bytes() for name in names}
        return _restored, (files, self.content)

    def _shown(self) -> tuple[str, list[str], Table]:
        """Return the headline of the panel."""
        facts, covered = self.facts, self.facts.coverage
        notes = [
            f"{covered.users.scored:,} of {counted(covered.users.read, 'user')}, "
            f"{covered.reviews.scored:,} of {counted(covered.reviews.read, 'review')} scored; "
            f"predicted {IN_WORDS[facts.when]}",
            *filter(None, [covered.caution]),
        ]
        entry = entry_of(self.run)
        if entry.facts.exceptions:
            notes.append(entry.facts.exceptions)
            notes += [each.reason for each in covered.left_out if each.status == "failed"][:1]
        known = shown_metrics(metric for metric in full_panel() if metric.name in facts.metrics)
        names = [metric.name for metric in known] or list(facts.metrics)[:FEWEST]
        title = f"{facts.label} on {facts.data}, protocol {facts.protocol}"
        table = _panel(facts, names) if facts.users else Table([], [])
        return title, [*notes, *warnings(entry, self.run.complete)], table

    def _figure(self, name: str) -> Figure:
        from srs_eval.plots import figures  # matplotlib: not where nothing is drawn
        from srs_eval.plots.style import annotate
        from srs_eval.runs.drawing import note_of

        complete = list(self.run.every_prediction())
        if not complete:
            raise ConfigError("there are no predictions to draw: no user was scored, or none kept")
        scores = dict(zip(self.run.by_user.names, self.run.by_user.values.T, strict=True))
        title = f"{self.facts.label} on {self.facts.data}"
        figure = figures.figure(name, figures.RunSums(complete), scores, title)
        if figure is None:
            raise ConfigError(f"{self.facts.label} has no forgetting curves to draw")
        annotate(figure, note_of(self.run))
        return figure


def _restored(files: Mapping[str, bytes], content: Mapping[str, Any]) -> RunResult:
    """Return a result whose files are in a temporary folder."""
    temporary = Temporary()
    for name, text in files.items():
        path = Path(temporary.name, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text)
    return RunResult(Run.read(Path(temporary.name)), content, temporary)


def exported(fits: RunFits, to: str, user: User | None, fold: int | None = None) -> HandOver:
    """Return the parameters of a user as an app reads them: see `RunResult.export`."""
    if to not in FORMATS:
        raise ConfigError(f"to={to}: there are {', '.join(FORMATS)}")
    return FORMATS[to](fits.fitted(fits.user(None if user is None else str(user)), fold))


def _panel(facts: Summary, names: Iterable[str]) -> Table:
    """Tabulate metrics with their intervals, and with what chance gives a perfect model."""
    several = facts.interval_over != "cards and days"
    rows = []
    for name in names:
        row, floor = facts.metrics[name], facts.metrics.get(f"{name}_floor")
        chance = "" if floor is None else floor.mean_users
        rows.append([name, row.mean_users, interval(row.lo, row.hi), chance])
    mean = "mean over users" if several else "score"
    return Table(["metric", mean, f"99 % over {facts.interval_over}", "by chance"], rows)


def _frame(file: Path) -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(file).to_pandas()
    return frame

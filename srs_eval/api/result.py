"""The result of a run for people in Python: it shows, draws, saves and exports itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from srs_eval.api.show import Shown
from srs_eval.errors import ConfigError
from srs_eval.exporting.fitted import RunFits
from srs_eval.exporting.formats import FORMATS, HandOver
from srs_eval.metrics.headline import FEWEST, shown_metrics
from srs_eval.metrics.panel import full_panel
from srs_eval.nouns import User
from srs_eval.nouns.when import IN_WORDS
from srs_eval.results import Result, folder
from srs_eval.results.claim import claim
from srs_eval.results.files import CONFIG
from srs_eval.results.remarks import warnings
from srs_eval.results.run import run_of
from srs_eval.results.summary import panel_table
from srs_eval.text.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RunResult(Shown, Result):
    """The result of evaluating an algorithm.

    Beside what `srs_eval.results.Result` has (`scores`, `summary`, `fits` and `predictions` are
    pandas frames), it shows itself in a notebook and draws figures, each a
    `matplotlib.figure.Figure`.

    Attributes
    ----------
    content : mapping
        The resolved configuration; empty where it is not known.
    """

    content: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, result: Result, content: Mapping[str, Any]) -> RunResult:
        """Return a result with its configuration."""
        return cls(**{f.name: getattr(result, f.name) for f in fields(Result)}, content=content)

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
        with claim(path):
            saved = folder.save(self, path)
            if self.content:
                (path / CONFIG).parent.mkdir(exist_ok=True)
                text = yaml.safe_dump(dict(self.content), sort_keys=False, allow_unicode=True)
                (path / CONFIG).write_text(text, encoding="utf-8")
        return replace(self, folder=saved.folder)

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
        return exported(self._fits(), to, user, fold)

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

    def _shown(self) -> tuple[str, list[str], Table]:
        """Return the headline of the panel."""
        facts = self.facts
        notes = [facts.rests_on, f"predicted {IN_WORDS[facts.when]}"]
        if facts.coverage is not None and facts.coverage.caution:
            notes.append(facts.coverage.caution)
        words = facts.fit_counts.in_words
        if words:
            worst = next((fit.reason for fit in self.fitted if fit.status == "failed"), "")
            notes.append(words + (f"; the first: {worst}" if worst else ""))
        known = shown_metrics(metric for metric in full_panel() if metric.name in facts.metrics)
        names = [metric.name for metric in known] or list(facts.metrics)[:FEWEST]
        table = Table([], [])
        if facts.users:
            table = panel_table(facts, dict.fromkeys(names, "neither")).without("better", "users")
        title = f"{facts.label} on {facts.data}, protocol {facts.protocol}"
        return title, [*notes, *warnings(run_of(self))], table

    def _figure(self, name: str) -> Figure:
        from srs_eval.plots import figures  # matplotlib: not where nothing is drawn
        from srs_eval.plots.style import annotate

        complete = list(self.predicted.of(self.complete))
        if not complete:
            raise ConfigError("there are no predictions to draw: no user was scored, or none kept")
        scores = dict(zip(self.by_user.names, self.by_user.values.T, strict=True))
        better = {metric.name: metric.better for metric in full_panel()}
        title = f"{self.facts.label} on {self.facts.data}"
        figure = figures.figure(name, figures.Pictured(complete), scores, better, title=title)
        if figure is None:
            raise ConfigError(f"{self.facts.label} has no forgetting curves to draw")
        annotate(figure, self.facts.figure_note)
        return figure

    def _fits(self) -> RunFits:
        if self.folder is not None and not self.content:
            return RunFits.read(self.folder)
        return RunFits(
            self.facts.label, self.fitted, self.facts, self.content["algo"], self.by_user
        )


def exported(fits: RunFits, to: str, user: User | None, fold: int | None = None) -> HandOver:
    """Return the parameters of a user as an app reads them: see `RunResult.export`."""
    if to not in FORMATS:
        raise ConfigError(f"to={to}: there are {', '.join(FORMATS)}")
    return FORMATS[to](fits.fitted(fits.user(None if user is None else str(user)), fold))

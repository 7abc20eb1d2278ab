"""`srs_eval.fit`: models fitted to everything of each user, to predict or to export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from srs_eval.api.evaluating import bar, compute_with
from srs_eval.api.inputs import AlgorithmLike, DataLike, Gathered, gathered, option_of_data, source
from srs_eval.api.intervals import DRAWS, LEVEL, Ranges, next_intervals, sampled
from srs_eval.api.result import exported
from srs_eval.api.show import Shown
from srs_eval.cards import with_next_reviews
from srs_eval.errors import ConfigError, FitError
from srs_eval.evaluation.evaluate import EvaluateUser, FittedUser, FitToEverything
from srs_eval.exporting.fitted import RunFits
from srs_eval.exporting.formats import HandOver
from srs_eval.nouns import Fit, IntArray, MemoryModel, Reviews, Source, Task, User, has_curve
from srs_eval.results import Summary
from srs_eval.results.tables import fits_table
from srs_eval.run.experiment import checked_users
from srs_eval.text.console import counted
from srs_eval.text.table import Table

_PARAMETERS_SHOWN = 5
_USERS_SHOWN = 10


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class FittedModels(Shown):
    """Models fitted to everything of each user.

    Attributes
    ----------
    label : str
        The algorithm with what is special about its options.
    by_user : mapping of user to FittedUser
        Fit, model and histories of each user.
    inputs : Gathered
        What was fitted, and to what.
    """

    label: str
    by_user: Mapping[User, FittedUser]
    inputs: Gathered

    @property
    def users(self) -> tuple[User, ...]:
        """Users, in the order of the data."""
        return tuple(self.by_user)

    @property
    def fits(self) -> pd.DataFrame:
        """One row per user: status, reason, time, number of reviews, and parameters."""
        frame: pd.DataFrame = fits_table(self._fits).to_pandas()
        return frame.drop(columns="fold").set_index("user")

    @property
    def parameters(self) -> pd.DataFrame:
        """One row per user, one column per learned parameter, in the algorithm's order."""
        learned = [fit.parameters for fit in self._fits]
        rows = np.full((len(learned), max(map(len, learned))), np.nan)
        for row, parameters in zip(rows, learned, strict=True):
            row[: len(parameters)] = parameters
        return pd.DataFrame(rows, index=pd.Index(self.users, name="user"))

    def predict(self, data: DataLike | Reviews | None = None, **options: Any) -> pd.DataFrame:
        """Predict each review that the protocol would score or learn from, from those before it.

        Parameters
        ----------
        data : path, table, Source or Reviews, optional
            Logs of users that were fitted, read as those they were fitted to; these by default,
            whose outcomes the models have seen, without users whose fit was skipped.
        **options
            As in `srs_eval.fit`, where they differ.

        Returns
        -------
        DataFrame
            ``user``, ``row`` (position in the log in time order), ``card``, ``p`` and
            ``recalled``.

        Raises
        ------
        FitError
            If there is no model of a user.
        FitSkipped
            If the protocol has nothing to score in a log.
        """
        parts = []
        for log, model, task in self._tasks(data, options):
            last = task.folds[-1]
            rows = np.concatenate([last.train, last.test])
            columns = {
                "user": log.user,
                "row": task.log_row[rows],
                "card": _names(log, task.reviews.card[rows]),
                "p": np.array(model.predict(task.reviews, rows)),
                "recalled": task.reviews.recalled[rows],
            }
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def predict_at(
        self, days: ArrayLike, data: DataLike | Reviews | None = None, **options: Any
    ) -> pd.DataFrame:
        """Predict the recall of each card so many days after its last review.

        Parameters
        ----------
        days : float or sequence of float
            Days since the last review of the card.
        data, **options
            As in `predict`.

        Returns
        -------
        DataFrame
            ``user``, ``card``, ``days`` and ``recall``.

        Raises
        ------
        ConfigError
            If the model has no forgetting curve, or days are negative or not finite.
        FitError
            If there is no model of a user.
        FitSkipped
            If the protocol has nothing to score in a log.
        """
        asked = np.atleast_1d(np.asarray(days, np.float64))
        if asked.ndim > 1 or not asked.size or not (np.isfinite(asked) & (asked >= 0)).all():
            raise ConfigError(f"days={days!r}: expected numbers of days, 0 or more")
        parts = []
        for log, model, task in self._tasks(data, options):
            if not has_curve(model):
                raise ConfigError(f"{self.label} has no forgetting curve (predict_at)")
            reviews, rows = with_next_reviews(task.reviews)
            days = np.tile(asked, (len(rows), 1))
            columns = {
                "user": log.user,
                "card": np.repeat(_names(log, reviews.card[rows]), len(asked)),
                "days": days.ravel(),
                "recall": np.array(model.predict_at(reviews, rows, days)).ravel(),
            }
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def next_intervals(
        self,
        retention: float = 0.9,
        data: DataLike | Reviews | None = None,
        *,
        level: float = LEVEL,
        **options: Any,
    ) -> pd.DataFrame:
        """Return how many days after its last review each card falls to a probability of recall.

        The range is what the reviews that were learned from leave open about the parameters, and
        nothing else: not that the model may be wrong, nor that cards differ from one another in
        what it does not see.

        Parameters
        ----------
        retention : float
            Probability of recall, above 0 and below 1.
        data, **options
            As in `predict`.
        level : float
            How often the range of a user holds the interval of the true parameters, over users
            whose parameters differ as the prior says.

        Returns
        -------
        DataFrame
            ``user``, ``card``, ``days``, ``lo`` and ``hi``. Days are not rounded, 0 where recall
            is lower from the beginning, and infinite where it never falls so far. The range is NaN
            where the algorithm does not say how uncertain its fit is: FSRS, HLR and SM-2 do with
            ``fit=newton``, alone or in `per_group`.

        Raises
        ------
        ConfigError
            If the model has no forgetting curve, or an argument is outside its range.
        FitError
            If there is no model of a user.
        FitSkipped
            If the protocol has nothing to score in a log.
        """
        for name, value in (("retention", retention), ("level", level)):
            if not 0 < value < 1:
                raise ConfigError(f"{name}={value!r}: expected a number above 0 and below 1")
        parts, experiment = [], self.inputs.experiment
        for log, model, task in self._tasks(data, options):
            if not has_curve(model):
                raise ConfigError(f"{self.label} has no forgetting curve (next_intervals)")
            reviews, rows = with_next_reviews(task.reviews)
            others = sampled(experiment.algorithm, self.by_user[log.user], experiment.seed, DRAWS)
            found, *draws = (
                next_intervals(each, reviews, rows, retention) for each in (model, *others)
            )
            ranges = Ranges.of(found, draws, level)
            about = {"user": log.user, "card": _names(log, reviews.card[rows])}
            columns = zip(("days", "lo", "hi"), ranges, strict=True)
            parts.append(pd.DataFrame({**about, **dict(columns)}))
        return pd.concat(parts, ignore_index=True)

    def export(self, to: str, *, user: User | None = None) -> HandOver:
        """Return the parameters of a user as an app reads them.

        Parameters
        ----------
        to : {"anki", "py_fsrs", "json"}
            The app.
        user : int or str, optional
            The only user by default.

        Returns
        -------
        HandOver
            Its text is ``str`` of it.

        Raises
        ------
        ConfigError
            If there is no such format or user, or the app cannot read the parameters.
        FitError
            If the fit failed or was skipped.
        """
        groups = self.inputs.groups
        facts = Summary(
            algo=groups["algo"].name,
            label=self.label,
            data=groups["data"].name,
            protocol=groups["protocol"].built.name,
            tags={"version.srs-eval": version("srs-eval")},
        )
        fits = RunFits(self.label, self._fits, facts, groups["algo"].content)
        return exported(fits, to, user)

    @property
    def _fits(self) -> list[Fit]:
        return [fitted.fit for fitted in self.by_user.values()]

    def _shown(self) -> tuple[str, list[str], Table]:
        """Return the first parameters of the first users."""
        failed = [fit for fit in self._fits if not fit.predicts]
        notes = [counted(len(self.by_user), "user")]
        if failed:
            notes.append(f"{len(failed)} of {len(self._fits)} fits failed: {failed[0].reason}")
        most = max(len(fit.parameters) for fit in self._fits)
        shown = min(most, _PARAMETERS_SHOWN)
        header = ["user", "reviews", *map(str, range(shown))] + ["…"] * (most > shown)
        rows = []
        for fit in self._fits[:_USERS_SHOWN]:
            row = [str(fit.user), fit.n_train, *fit.parameters[:shown]]
            rows.append(row + [""] * (len(header) - len(row)))
        title = f"{self.label} fitted to {self.inputs.groups['data'].built.name}"
        return title, notes, Table(header, rows)

    def _tasks(
        self, data: DataLike | Reviews | None, options: Mapping[str, Any]
    ) -> Iterator[tuple[Reviews, MemoryModel, Task]]:
        """Yield each log with its model and what the protocol makes of it."""
        experiment = self.inputs.experiment
        for log in self._logs(data, options):
            model = self._fitted(log.user)
            yield log, model, experiment.protocol(log, same_day=experiment.algorithm.same_day)

    def _fitted(self, user: User) -> MemoryModel:
        fitted = self.by_user.get(user)
        if fitted is None:
            raise FitError(f"user {user}: was not fitted; fitted users: {self.users}")
        if fitted.model is None:
            raise FitError(f"user {user}: the fit {fitted.fit.status}: {fitted.fit.reason}")
        return fitted.model

    def _logs(
        self, data: DataLike | Reviews | None, options: Mapping[str, Any]
    ) -> Iterator[Reviews]:
        if isinstance(data, Reviews):
            yield data
            return
        logs: Source = self.inputs.experiment.source
        if data is not None:
            known = self.inputs.data_arguments.get(option_of_data(data), {})
            logs = source(data, **{**known, **options})
        users = checked_users(logs)
        if data is None:  # a skipped fit is an error only where no user has another
            users = [user for user in users if self.by_user[user].fit.status != "skipped"] or users
        for user in users:
            yield logs.read(user)


def fit(
    algorithm: AlgorithmLike,
    data: DataLike,
    *,
    protocol: str | Any | None = None,
    seed: int | None = None,
    workers: int | None = 1,
    progress: bool = True,
    **options: Any,
) -> FittedModels:
    """Fit an algorithm to everything of each user, to predict or to export; nothing is scored.

    Parameters
    ----------
    algorithm, data, protocol, seed, workers, progress, **options
        As in `srs_eval.evaluate`. Each fit is to all reviews that the protocol scores or learns
        from.

    Returns
    -------
    FittedModels

    Examples
    --------
    >>> import srs_eval as se
    >>> fitted = se.fit("avg", "synthetic", users=2, size_scale=0.05)
    >>> fitted.parameters.shape
    (2, 1)
    """
    given = {"algo": algorithm, "data": data, "protocol": protocol, "panel": None}
    inputs = gathered(given, options, {"seed": seed})
    one = inputs.experiment
    users = checked_users(one.source)
    each = EvaluateUser(one.source, one.algorithm, one.protocol, seed=one.seed, curves=0)
    work = FitToEverything(each)
    with bar("fits", "fit", on=progress)(total=len(users)) as shown:
        tick = partial(shown.update, 1)
        done = compute_with(workers).map(work, users, on_crash=_crashed, tick=tick)
        found = {fitted.fit.user: fitted for fitted in done}
    about = inputs.description()
    return FittedModels(about.label, {user: found[user] for user in users}, inputs)


def _names(log: Reviews, cards: IntArray) -> NDArray[Any]:
    """Return the cards as the log calls them."""
    names = log.titles.get("card", {})
    return np.array([names.get(card, card) for card in cards.tolist()]) if names else cards


def _crashed(user: User, reason: str) -> FittedUser:
    return FittedUser(Fit(user, -1, "failed", f"user {user}: {reason}"))

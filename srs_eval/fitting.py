"""`srs_eval.fit`: models fitted to everything of each user, to predict or to export."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from srs_eval.algorithms.algorithm import MemoryModel, has_curve
from srs_eval.api import bar
from srs_eval.comparison.words import one_line
from srs_eval.data.cards import with_next_reviews
from srs_eval.data.reviews import IntArray, Reviews, Source, User
from srs_eval.errors import ConfigError, FitError
from srs_eval.evaluation.evaluate import EvaluateUser, FittedUser
from srs_eval.evaluation.fits import Fit
from srs_eval.exports.fitted import RunFits
from srs_eval.exports.formats import HandOver, exported
from srs_eval.exports.intervals import DRAWS, LEVEL, next_intervals, ranges, sampled
from srs_eval.inputs import AlgorithmLike, DataLike, option_of_data, setup_of, source
from srs_eval.protocol.task import Task
from srs_eval.runs.compute import Lost, Processes, Serial
from srs_eval.runs.config import Setup
from srs_eval.runs.evaluation import checked_users
from srs_eval.runs.folder import fits_table
from srs_eval.runs.summary import Summary

_ABOUT_USERS = ("users", "sample", "first")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class FittedModels:
    """Models fitted to everything of each user.

    Attributes
    ----------
    by_user : mapping of user to FittedUser
        Fit, model and histories of each user, in the order of the data.
    setup : Setup
        What was fitted, and to what.
    data : path, table, Source or str
        The data, as they were named.
    options : mapping
        Arguments of the algorithm and of the data.
    """

    by_user: Mapping[User, FittedUser]
    setup: Setup
    data: DataLike
    options: Mapping[str, Any]

    def __repr__(self) -> str:
        """Return parameters, and what failed."""
        lines = [f"{self.setup.label} fitted to {self.setup.source.name}"]
        if failed := [fit for fit in self._fits if not fit.predicts]:
            lines.append(f"{len(failed)} of {len(self._fits)} fits failed: {failed[0].reason}")
        table = self.fits[["n_train"]].rename(columns={"n_train": "reviews"}).join(self.parameters)
        most: Any = {"max_rows": 12, "max_cols": 10}
        text = table.to_string(**most, na_rep="", float_format="{:.4f}".format, index_names=False)
        return "\n".join([*map(one_line, lines), "", text])

    @property
    def fits(self) -> pd.DataFrame:
        """One row per user: status, reason, time, number of reviews, and parameters."""
        frame: pd.DataFrame = fits_table(self._fits).to_pandas()
        return frame.drop(columns="fold").set_index("user")

    @property
    def parameters(self) -> pd.DataFrame:
        """One row per user, one column per learned parameter, in the algorithm's order."""
        rows = [dict(enumerate(fit.parameters)) for fit in self._fits]
        return pd.DataFrame(rows, index=pd.Index([*self.by_user], name="user"), dtype=float)

    def predict(self, data: DataLike | None = None, **options: Any) -> pd.DataFrame:
        """Predict each review that the protocol would score or learn from, from those before it.

        Parameters
        ----------
        data : path, table or Source, optional
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
            reviews, last = task.reviews, task.folds[-1]
            rows = np.concatenate([last.train, last.test])
            columns = {"user": log.user, "row": task.log_row[rows]}
            columns |= {"card": _names(log, reviews.card[rows])}
            columns |= {"p": model.predict(reviews, rows), "recalled": reviews.recalled[rows]}
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def predict_at(
        self, days: ArrayLike, data: DataLike | None = None, **options: Any
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
        FitError, FitSkipped
            As in `predict`.
        """
        asked = np.atleast_1d(np.asarray(days, np.float64))
        if asked.ndim > 1 or not asked.size or not (np.isfinite(asked) & (asked >= 0)).all():
            raise ConfigError(f"days={days!r}: expected numbers of days, 0 or more")
        parts = []
        for log, model, task in self._tasks(data, options):
            reviews, rows = with_next_reviews(task.reviews)
            times = np.tile(asked, (len(rows), 1))
            recall = np.array(self._curves(model).predict_at(reviews, rows, times))
            columns = {
                "user": log.user,
                "card": np.repeat(_names(log, reviews.card[rows]), len(asked)),
            }
            parts.append(pd.DataFrame({**columns, "days": times.ravel(), "recall": recall.ravel()}))
        return pd.concat(parts, ignore_index=True)

    def next_intervals(
        self,
        retention: float = 0.9,
        data: DataLike | None = None,
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
        FitError, FitSkipped
            As in `predict`.
        """
        for name, value in (("retention", retention), ("level", level)):
            if not 0 < value < 1:
                raise ConfigError(f"{name}={value!r}: expected a number above 0 and below 1")
        parts = []
        for log, model, task in self._tasks(data, options):
            reviews, rows = with_next_reviews(task.reviews)
            fitted, seed = self.by_user[log.user], self.setup.content["seed"]
            others = sampled(self.setup.algorithm, fitted, seed, DRAWS)
            days, *draws = (
                next_intervals(self._curves(each), reviews, rows, retention)
                for each in (model, *others)
            )
            lo, hi = ranges(days, draws, level)
            columns = {"user": log.user, "card": _names(log, reviews.card[rows])}
            parts.append(pd.DataFrame({**columns, "days": days, "lo": lo, "hi": hi}))
        return pd.concat(parts, ignore_index=True)

    def export(self, to: str, *, user: User | None = None) -> HandOver:
        """Return the parameters of a user as an app reads them: see `RunResult.export`."""
        facts = Summary(
            label=self.setup.label,
            algo=self.setup.choices["algo"],
            data=self.setup.choices["data"],
            protocol=self.setup.protocol.name,
            tags={"version": version("srs-eval")},
        )
        fits = RunFits(facts.label, self._fits, facts, self.setup.content["algo"])
        return exported(fits, to, user)

    @property
    def _fits(self) -> list[Fit]:
        return [fitted.fit for fitted in self.by_user.values()]

    def _tasks(
        self, data: DataLike | None, options: Mapping[str, Any]
    ) -> Iterator[tuple[Reviews, MemoryModel, Task]]:
        """Go through logs, each with its model and what the protocol makes of it."""
        logs = self.setup.source if data is None else self._source(data, options)
        users = checked_users(logs)
        if data is None:  # a skipped fit is an error only where no user has another
            users = [user for user in users if self.by_user[user].fit.status != "skipped"] or users
        for user in users:
            model, log = self._model(user), logs.read(user)
            yield log, model, self.setup.protocol(log, same_day=self.setup.algorithm.same_day)

    def _source(self, data: DataLike, options: Mapping[str, Any]) -> Source:
        """Return other logs; where they are of the kind that was fitted, with its options."""
        if option_of_data(data) == option_of_data(self.data) is not None:
            others = (*_ABOUT_USERS, *self.setup.content["algo"])
            options = {**{k: v for k, v in self.options.items() if k not in others}, **options}
        return source(data, **options)

    def _model(self, user: User) -> MemoryModel:
        fitted = self.by_user.get(user)
        if fitted is None:
            raise FitError(f"user {user}: was not fitted; fitted users: {[*self.by_user]}")
        if fitted.model is None:
            raise FitError(f"user {user}: the fit {fitted.fit.status}: {fitted.fit.reason}")
        return fitted.model

    def _curves(self, model: MemoryModel) -> Any:
        if not has_curve(model):
            raise ConfigError(f"{self.setup.label} has no forgetting curve (predict_at)")
        return model


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
    inputs = {"algo": algorithm, "data": data, "protocol": protocol}
    setup = setup_of(inputs, options, {"seed": seed})
    users = checked_users(setup.source)
    seed = setup.content["seed"]
    one = EvaluateUser(setup.source, setup.algorithm, setup.protocol, seed=seed, curves=0)
    with bar(on=progress)(total=len(users)) as shown:
        tick = partial(shown.update, 1)
        compute = Serial() if workers == 1 else Processes(workers)
        done = compute.map(one.fit_to_everything, users, tick, math.inf)
        by_user = {fitted.fit.user: fitted for fitted in map(_or_lost, done)}
    return FittedModels({user: by_user[user] for user in users}, setup, data, options)


def _or_lost(result: FittedUser | Lost) -> FittedUser:
    if not isinstance(result, Lost):
        return result
    user, reason = result
    return FittedUser(Fit(user, -1, "failed", f"user {user}: {reason}"))


def _names(log: Reviews, cards: IntArray) -> NDArray[Any]:
    """Return the cards as the log calls them."""
    names = log.titles.get("card", {})
    return np.array([names.get(card, card) for card in cards.tolist()]) if names else cards

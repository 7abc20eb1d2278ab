"""Evaluations of models on the same reviews, the differences between them, and usual models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import pandas as pd

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.features.act_r import ActR
from srs_eval.algorithms.features.boosted_trees import BoostedTrees
from srs_eval.algorithms.features.dash import Dash
from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.fsrs.early import Fsrs3
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.algorithms.schedulers.sm2 import Sm2Trainable
from srs_eval.api.result import RunResult
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.proper import log_losses
from srs_eval.nouns import Algorithm, EvaluationProtocol, Fit, IntArray, Predictions, Source, User
from srs_eval.stats.estimate import Estimate, clustered_mean, mean_of_users

PUBLISHED = "FSRS-6, published"
MODELS: Mapping[str, Algorithm] = {
    "FSRS-6": Fsrs6(),
    "FSRS-7": Fsrs7(),
    "FSRS-4.5": Fsrs45(),
    "FSRS-3": Fsrs3(),
    "LSTM": Lstm(),
    "DASH": Dash(),
    "ACT-R": ActR(),
    "logistic regression": Logistic(),
    "boosted trees": BoostedTrees(),
    "boosted trees, falling": BoostedTrees(monotone=True),
    "SM-2, trainable": Sm2Trainable(),
    "HLR": Hlr(),
    "share of recalls": Average(),
    PUBLISHED: Fsrs6(fit="default"),
}
_SEED = 2026


@dataclass(frozen=True)
class Change(Estimate):
    """A mean difference, which tables show with its 99 % interval."""

    @classmethod
    def of(cls, found: Estimate) -> Change:
        """Return an estimate as a difference."""
        return cls(*(getattr(found, field.name) for field in fields(Estimate)))

    @property
    def settled(self) -> bool:
        """Whether the 99 % interval excludes 0."""
        return bool(not self.is_zero and self.p_value < 0.01)

    @property
    def starred(self) -> str:
        """The mean, with a star where it is settled."""
        return f"{self.mean:+.4f}" + " *" * self.settled

    def __str__(self) -> str:
        if self.is_zero:
            return "0"
        low, high = self.interval()
        return f"{self.mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def clusters(reviews: pd.DataFrame) -> tuple[IntArray, IntArray]:
    """Return the card and the day of each review, of all users together."""
    card, day = (reviews.groupby(["user", name]).ngroup().to_numpy() for name in ("card", "day"))
    return card, day


@dataclass(frozen=True)
class Scored:
    """Predictions of the scored reviews by user, and the fits behind them."""

    predictions: Mapping[User, Predictions]
    fits: Mapping[User, Sequence[Fit]]

    @cached_property
    def reviews(self) -> pd.DataFrame:
        """One row per review, with its loss."""
        columns = ("fold", "row", "card", "day", "p", "recalled")
        frames = [
            pd.DataFrame({"user": user} | {name: getattr(own, name) for name in columns}).assign(
                loss=log_losses(own.p, own.recalled)
            )
            for user, own in self.predictions.items()
        ]
        return pd.concat(frames, ignore_index=True)

    @property
    def log_loss(self) -> float:
        """Mean over users of the mean loss."""
        return float(np.mean([loss.mean() for loss in self.losses]))

    @cached_property
    def losses(self) -> list[np.ndarray]:
        """Losses of the reviews of each user."""
        return [log_losses(own.p, own.recalled) for own in self.predictions.values()]

    def less(self, other: Scored, *, by_user: bool = True) -> Change:
        """Estimate the mean difference of loss to an evaluation of the same reviews.

        The mean is over users, or over reviews that are clustered by card and day: those of one
        user, or with `by_user` false those of all.
        """
        own, others = self.reviews, other.reviews
        if not own[["user", "row"]].equals(others[["user", "row"]]):
            raise ValueError("the evaluations scored different reviews")
        pairs = [ours - theirs for ours, theirs in zip(self.losses, other.losses, strict=True)]
        if by_user and len(pairs) > 1:
            return Change.of(mean_of_users(np.array([pair.mean() for pair in pairs])))
        return Change.of(clustered_mean(np.concatenate(pairs), *clusters(own)))


def score(
    source: Source, algorithm: Algorithm, protocol: EvaluationProtocol, *, fewest: int = 1
) -> Scored:
    """Evaluate the users of a source who have at least so many scored reviews.

    Raises
    ------
    SystemExit
        If a fit failed, whose reviews would be missing.
    """
    work = EvaluateUser(source, algorithm, protocol, _SEED, curves=0)
    results = [work(user) for user in source.users()]
    kept = {one.user: one for one in results if one.predictions and len(one.predictions) >= fewest}
    fits = [fit for one in kept.values() for fit in one.fits]
    refuse(type(algorithm).__name__, [fit for fit in fits if not fit.predicts])
    predictions = {user: one.predictions for user, one in kept.items() if one.predictions}
    return Scored(predictions, {user: one.fits for user, one in kept.items()})


def scored(result: RunResult) -> Scored:
    """Return the scored reviews of a result, or raise SystemExit as `score` does."""
    refuse(result.facts.label, [fit for fit in result.fitted if fit.status == "failed"])
    return Scored({own.users[0]: own for own in result.predicted.of(result.complete)}, {})


def refuse(name: str, missing: Sequence[Fit]) -> None:
    """Raise SystemExit if there are no predictions of some fits."""
    if missing:
        raise SystemExit(f"{name}: {missing[0]}")


def with_means(table: pd.DataFrame, column: str = "change") -> pd.DataFrame:
    """Return a table with the means of a column of differences, and which of them are settled."""
    return table.assign(
        mean=[change.mean for change in table[column]],
        settled=[change.settled for change in table[column]],
    )

"""Evaluate an experiment: fit, predict and score every user, and summarise over users."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from tqdm import tqdm

from srs_eval.compute import stopping
from srs_eval.compute.interface import Compute
from srs_eval.compute.serial import Serial
from srs_eval.errors import SrsEvalError
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.scoring import EvaluateAndScore, ScoredUser, score_user, summarise_users
from srs_eval.experiment.experiment import Experiment, checked_users
from srs_eval.experiment.watching import Watch, report_means, step_callback
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Fit, User, when_of
from srs_eval.nouns.predictions import reviews_fingerprint
from srs_eval.results.fit_counts import reason_of
from srs_eval.results.partial import FinishedUsers
from srs_eval.results.predicted import InMemory, Predicted
from srs_eval.results.result import Result
from srs_eval.results.summary import Summary

_NO_BAR = partial(tqdm, disable=True)


class Store(Protocol):
    """Keeps the result of each user as soon as there is one."""

    def save(self, number: int, scored: ScoredUser) -> None:
        """Keep a user, counted in the order of the source."""

    def predicted(self, users: Sequence[User]) -> Predicted:
        """Return the predictions of users that are kept, in the order given."""


def evaluate(
    experiment: Experiment,
    users: Sequence[User] | None = None,
    *,
    compute: Compute | None = None,
    store: Store | None = None,
    done: Mapping[User, ScoredUser] | None = None,
    progress: Callable[..., tqdm[Any]] = _NO_BAR,
    watch: Watch | None = None,
) -> Result:
    """Evaluate an algorithm on users; nothing is printed, written or logged.

    Parameters
    ----------
    experiment : Experiment
        What is evaluated, and how.
    users : sequence of int or str, optional
        All users of the source by default.
    compute : Compute, optional
        Where users are evaluated; one after the other in this process by default.
    store : Store, optional
        Keeps what was predicted; in memory by default.
    done : mapping of user to ScoredUser, optional
        Users whom the store has already.
    progress : callable, optional
        Makes the progress bar over fits, such as `tqdm.auto.tqdm`; none is shown by default.
    watch : Watch, optional
        Is called with the metric of a search while the evaluation goes on.

    Raises
    ------
    ReviewLogError
        If the source has no users, or names that cannot be used.
    Pruned
        If `watch` raises it.
    """
    users = checked_users(experiment.source) if users is None else list(users)
    store = InMemory() if store is None else store
    scored = _evaluate_users(
        experiment, users, compute or Serial(), store, dict(done or {}), progress, watch
    )
    return result_of(experiment, scored, store.predicted(users))


def done_before(
    experiment: Experiment, users: Sequence[User], kept: FinishedUsers
) -> dict[User, ScoredUser]:
    """Return the users that are finished and whose log is still the same."""
    done = {}
    for number, user in enumerate(users):
        scored = kept.load(number, user)
        if scored is not None and scored.log.fingerprint:
            with suppress(SrsEvalError):  # what cannot be read now is evaluated, and fails, now
                log = experiment.source.read(user)
                if reviews_fingerprint(log) == scored.log.fingerprint:
                    done[user] = scored
    return done


def result_of(experiment: Experiment, scored: Sequence[ScoredUser], predicted: Predicted) -> Result:
    """Summarise over users.

    Parameters
    ----------
    scored : sequence of ScoredUser
        In the order of the source.
    predicted : Predicted
        Their predictions.
    """
    complete = [user.user for user in scored if user.is_complete]
    over = summarise_users(scored, experiment.panel, partial(predicted.of, complete))
    fits = tuple(fit for user in scored for fit in user.fits)
    counts = Counter(fit.status for fit in fits)
    left_out: Counter[str] = Counter()
    for user in scored:
        left_out.update(user.log.left_out)
    algorithm, protocol = experiment.algorithm, experiment.protocol
    facts = Summary(
        algo=type(algorithm).__name__,
        label=type(algorithm).__name__,
        data=experiment.source.name,
        protocol=protocol.name,
        is_validation=bool(getattr(protocol, "is_validation", False)),
        users=len(complete),
        reviews=int(over.scores.reviews.sum()),
        forgotten=sum(user.forgotten for user in scored),
        fits=len(fits),
        failed=counts["failed"],
        fallback=counts["fallback"],
        skipped=counts["skipped"],
        not_converged=sum(fit.predicts and not fit.converged for fit in fits),
        metrics=over.metrics,
        thresholds=over.thresholds,
        interval_over=over.interval_over,
        when=when_of(algorithm),
        sees_truth=algorithm.sees_truth,
        pretrained=bool(getattr(algorithm, "pretrained", False)),
        seed=experiment.seed,
        left_out=dict(left_out),
        notes=(
            *getattr(experiment.source, "remarks", tuple)(),
            *(f"user {user.user}: {note}" for user in scored for note in user.log.notes),
        ),
        fit_notes=tuple(reason_of(fit) for fit in {f.user: f for f in fits}.values() if fit.reason),
        data_fingerprint=_digest(user.log.fingerprint for user in scored),
        rows_fingerprint=over.scores.fingerprint,
    )
    read = sum(user.log.reviews for user in scored)
    return Result(facts, over.scores, fits, predicted, reviews_read=read)


def _evaluate_users(
    experiment: Experiment,
    users: Sequence[User],
    compute: Compute,
    store: Store,
    done: dict[User, ScoredUser],
    progress: Callable[..., tqdm[Any]],
    watch: Watch | None,
) -> list[ScoredUser]:
    """Evaluate every user that is not yet done; predictions are kept in the store alone."""
    number = {user: position for position, user in enumerate(users)}
    on_step = step_callback(watch, experiment, users)
    reported = report_means(watch, experiment.panel, users, done, 0) if on_step is None else 0
    work = EvaluateAndScore(
        EvaluateUser(
            experiment.source,
            experiment.algorithm,
            experiment.protocol,
            seed=experiment.seed,
            curves=experiment.curves_per_user,
        ),
        experiment.panel,
        watched=on_step is not None,
    )
    folds = experiment.protocol.folds
    with progress(total=len(users) * folds, initial=len(done) * folds) as bar:

        def tick(*step: Any) -> None:
            stopping.check()
            if step and on_step is not None:
                on_step(*step)
            else:
                bar.update()

        crashed = partial(_crashed, experiment.panel)
        todo = [user for user in users if user not in done]
        for scored in compute.map(work, todo, on_crash=crashed, tick=tick):
            stopping.check()
            store.save(number[scored.user], scored)
            done[scored.user] = scored.put_away()
            bar.update(max(len(done) * folds - bar.n, 0))
            if on_step is None:
                reported = report_means(watch, experiment.panel, users, done, reported)
    return [done[user] for user in users]


def _crashed(panel: Panel, user: User, reason: str) -> ScoredUser:
    fit = Fit(user, -1, "failed", f"user {user}: {reason}")
    return score_user(UserEvaluation(user, (fit,), None, ReviewLog()), panel)


def _digest(fingerprints: Iterator[str]) -> str:
    return hashlib.sha256("".join(fingerprints).encode()).hexdigest()[:16]

"""All users of a run: evaluated, kept as soon as they are done, and added up."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.errors import (
    ConfigError,
    FailedAlikeError,
    FitSkipped,
    ReviewLogError,
    SrsEvalError,
    Stopped,
)
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.limits import FitLimits, FitTimeoutError
from srs_eval.evaluation.scoring import EvaluateAndScore, Scores, score_user, summarise_users
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.pooled import PooledSums
from srs_eval.nouns import Fit, Predictions, Pretrainable, Source, User, when_of
from srs_eval.nouns.predictions import reviews_fingerprint
from srs_eval.protocol.user_folds import UserFolds
from srs_eval.runs.checkpoint import Checkpoint, Done
from srs_eval.runs.compute import Tick
from srs_eval.runs.config import Setup, targets
from srs_eval.runs.failing import FailingAlike
from srs_eval.runs.summary import CoverageCount, Summary, reason_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """A user who is done, as the process that did the work tells it."""

    user: User
    fits: tuple[Fit, ...]
    was_done: bool = False  # Whether the user was done before
    done: Done | None = None  # The result, where the checkpoint is not at hand


@dataclass(frozen=True, slots=True)
class Work:
    """Evaluate a user and keep the result, unless it is there; for worker processes."""

    evaluate: EvaluateAndScore
    checkpoint: Checkpoint

    def __call__(self, user: User, tick: Tick) -> Outcome:
        """Evaluate a user, calling `tick` after each fold."""
        if before := self.before(user):
            return before
        try:
            done = self.done(user, tick)
        except Stopped:
            raise
        except (SystemExit, GeneratorExit, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) and parent_process() is None:
                raise  # workers ignore Ctrl-C: there it is of the algorithm
            return self.died(user, f"its fit raised {error!r}")
        self.checkpoint.write(done)
        return Outcome(user, done.scored.fits)

    def before(self, user: User) -> Outcome | None:
        """Return a user who was done before, with the log as it is now."""
        done = self.checkpoint.read(user)
        if done is None or done.scored.log.fingerprint != self._fingerprint(user):
            return None
        return Outcome(user, done.scored.fits, was_done=True)

    def done(self, user: User, tick: Tick) -> Done:
        """Evaluate a user."""
        scored = self.evaluate(user, tick)
        panel, predictions = self.evaluate.panel, scored.predictions
        if predictions is None:
            return Done(scored)
        has_sums = panel.pooled and scored.is_complete
        sums = PooledSums(panel, [predictions]).arrays() if has_sums else None
        return Done(scored, sums, predictions.p.dtype == np.float64)

    def died(self, user: User, reason: str) -> Outcome:
        """Keep the failure of a user whose process died."""
        fit = Fit(user, -1, "failed", f"user {user}: {reason}")
        lost = UserEvaluation(user, (fit,), None, ReviewLog())
        self.checkpoint.write(Done(score_user(lost, self.evaluate.panel)))
        return Outcome(user, (fit,))

    def _fingerprint(self, user: User) -> str:
        try:
            return reviews_fingerprint(self.evaluate.evaluate.source.read(user))
        except SrsEvalError:
            return ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The users of a run, all evaluated; predictions and fits are read one user at a time."""

    summary: Summary
    scores: Scores
    users: Sequence[User]
    checkpoint: Checkpoint
    is_double: bool  # Whether predictions have double precision
    was_done: int = 0  # Users who were done before

    def predictions(self) -> Iterator[Predictions]:
        """Go through the predictions of all users."""
        for user in self.users:
            predictions = self.checkpoint.predictions(user)
            if predictions is not None:
                yield predictions

    def fits(self) -> Iterator[tuple[Fit, ...]]:
        """Go through the fits of each user."""
        for user in self.users:
            yield _read(self.checkpoint, user).scored.fits


def evaluate(
    setup: Setup,
    folder: Path,
    *,
    bar: Callable[..., Any],
    reports: bool = True,
    watch: Callable[[User, Done], None] | None = None,
) -> Evaluation:
    """Evaluate all users; those that `folder` has from an interrupted run are not done again.

    Of a shard, the users of all shards that are done are not added up. `bar` makes a progress bar
    over fits, such as `tqdm.tqdm`. `reports` is whether fits that run for long are reported.
    """
    users = checked_users(setup.source)
    mine = of_shard(users, setup.content["shard"])
    limits = FitLimits(setup.content["fit_timeout"], report=reports)
    work = _work(setup, users, folder, limits)
    failing = FailingAlike(len(mine), on=setup.content["fail_fast"])
    folds, finished, was_done = setup.protocol.folds, 0, 0
    with bar(total=folds * len(mine)) as progress:

        def tick(*_: object) -> None:
            progress.update()

        for each in setup.compute.map(work, mine, work.died, tick, limits.patience):
            if each.done is not None:
                work.checkpoint.write(each.done)
            finished += folds
            progress.update(max(finished - progress.n, 0))
            was_done += each.was_done
            try:
                failing.add(each.fits, was_done=each.was_done)
            except FailedAlikeError:
                work.checkpoint.remove_failed(failing.users)
                raise
            if watch is not None:
                watch(each.user, _read(work.checkpoint, each.user))
    return added_up(setup, mine, work.checkpoint, was_done)


def added_up(
    setup: Setup, users: Sequence[User], checkpoint: Checkpoint, was_done: int = 0
) -> Evaluation:
    """Add up users who are done, in the order of the source."""
    panel = setup.panel
    total = _Total(panel)
    for user in users:
        total.add(_read(checkpoint, user))
    scores = total.scores

    def complete() -> Iterator[Predictions]:
        for user in scores.complete:
            predictions = checkpoint.predictions(user)
            assert predictions is not None
            yield predictions

    over = summarise_users(scores, panel, complete, lambda: total.sums)
    algorithm = setup.algorithm
    is_pretrained = _learns_from_others(setup) or bool(getattr(algorithm, "pretrained", False))
    summary = Summary(
        label=setup.label,
        algo=setup.choices["algo"],
        data=setup.choices["data"],
        protocol=setup.protocol.name,
        is_validation=bool(getattr(setup.protocol, "is_validation", False)),
        users=len(scores.complete),
        reviews=int(scores.reviews.sum()),
        forgotten=total.forgotten,
        fits=total.fits.total(),
        failed=total.fits["failed"],
        fallback=total.fits["fallback"],
        skipped=total.fits["skipped"],
        not_converged=total.not_converged,
        metrics=over.metrics,
        thresholds=over.thresholds,
        interval_over=over.interval_over,
        when=when_of(algorithm),
        sees_truth=bool(getattr(algorithm, "sees_truth", False)),
        pretrained=is_pretrained,
        in_sample=bool(getattr(algorithm, "in_sample", False)),
        seed=setup.content["seed"],
        left_out=dict(total.left_out),
        notes=tuple(total.notes),
        fit_notes=tuple(total.fit_notes),
        data_fingerprint=total.logs.hexdigest()[:16],
        rows_fingerprint=scores.fingerprint,
        coverage=total.coverage.total,
        tags=setup.tags,
    )
    return Evaluation(summary, scores, users, checkpoint, total.is_double, was_done)


def checked_users(source: Source) -> list[User]:
    """Return the users of a source, as Python's own numbers or texts.

    Raise `ReviewLogError` if there are none, with every name that is of another type or occurs
    twice.
    """
    users = [user.item() if isinstance(user, np.generic) else user for user in source.users()]
    usable = [user for user in users if _is_name(user)]
    problems = ["no users"] if not users else []
    problems += [
        f"user {user!r} is {type(user).__name__}, expected a number or a text"
        for user in users
        if not _is_name(user)
    ]
    twice = [user for user, count in Counter(usable).items() if count > 1]
    problems += [f"user {user!r} is named more than once" for user in twice]
    if problems:
        raise ReviewLogError(source.location, problems)
    return users


def _is_name(user: object) -> bool:
    return isinstance(user, int | str) and not isinstance(user, bool)


def of_shard(users: Sequence[User], shard: str | None) -> Sequence[User]:
    """Return the users of a shard ``K/N``: every N-th."""
    if shard is None:
        return users
    whole = re.fullmatch(r"(\d+)/(\d+)", shard)
    if whole is None or not 1 <= int(whole[1]) <= int(whole[2]):
        raise ConfigError(f"shard={shard}: expected K/N with K from 1 to N, such as 1/4")
    return users[int(whole[1]) - 1 :: int(whole[2])]


def data_fingerprint(source: Source) -> str:
    """Return the digest of the logs of all users, as `Summary` has it."""
    digest = hashlib.sha256()
    for user in checked_users(source):
        try:
            digest.update(reviews_fingerprint(source.read(user)).encode())
        except SrsEvalError:
            continue
    return digest.hexdigest()[:16]


def refuse_lookahead(setup: Setup) -> None:
    """Raise `CheckFailed` if a class that is not of srs_eval plainly looks ahead."""
    names = list(targets(setup.content["algo"]))
    if all(name.startswith("srs_eval.") for name in names):
        return
    from srs_eval.checks.quick import check_quickly  # for what is not of srs_eval alone
    from srs_eval.checks.trial import CheckFailed

    try:
        with FitLimits(setup.content["fit_timeout"]).applied("trial", 0):
            check_quickly(setup.algorithm)
    except FitTimeoutError:  # the run will say so of its own fits
        return
    except CheckFailed as error:
        raise CheckFailed(
            f"{error}\nA quick check with a small simulated log found this, and nothing was "
            "evaluated. srs_eval.check_algorithm has all checks; check_lookahead=false evaluates "
            "the algorithm all the same"
        ) from None


def _work(setup: Setup, users: Sequence[User], folder: Path, limits: FitLimits) -> Work:
    one = EvaluateUser(
        setup.source,
        _learned_from_others(setup, users),
        setup.protocol,
        setup.content["seed"],
        setup.content["curves_per_user"],
        limits=limits,
    )
    return Work(EvaluateAndScore(one, setup.panel), Checkpoint(folder, setup.stamp))


def _learns_from_others(setup: Setup) -> bool:
    """Whether the algorithm is pretrained for each fold of users."""
    return isinstance(setup.protocol, UserFolds) and isinstance(setup.algorithm, Pretrainable)


def _learned_from_others(setup: Setup, users: Sequence[User]) -> Any:
    """Return the algorithm, pretrained for each fold of users where the protocol has some."""
    algorithm: Any = setup.algorithm
    protocol: Any = setup.protocol
    source = setup.source
    if not _learns_from_others(setup):
        return algorithm
    from srs_eval.algorithms.combined.cross_fitted import cross_fitted  # not for every run

    def read(them: Sequence[User]) -> Iterator[Any]:
        for user in them:
            try:
                task = protocol(source.read(user), same_day=algorithm.same_day)
            except (FitSkipped, ReviewLogError):
                continue
            last = task.folds[-1]
            yield task.reviews, np.concatenate([last.train, last.test])

    return cross_fitted(algorithm, protocol.fold_of(users), read, setup.content["seed"])


def _read(checkpoint: Checkpoint, user: User) -> Done:
    done = checkpoint.read(user)
    if done is None:
        raise SrsEvalError(f"{checkpoint.place}: the file of user {user} is gone or damaged")
    return done


@dataclass
class _Total:
    """Sums over users, whose scores are the rows of arrays that grow."""

    panel: Panel
    users: list[User] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    reviews: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    fits: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    fit_notes: list[str] = field(default_factory=list)
    coverage: CoverageCount = field(default_factory=CoverageCount)
    forgotten: int = 0
    not_converged: int = 0
    is_double: bool = False

    def __post_init__(self) -> None:
        self.logs, self.sums = hashlib.sha256(), PooledSums(self.panel)

    def add(self, done: Done) -> None:
        """Add a user."""
        user = done.scored
        if any(fit.status != "skipped" for fit in user.fits):
            self.users.append(user.user)
            self.rows.append(user.rows)
            self.reviews.append(user.reviews)
            self.values.extend(user.values)
        self.is_double |= done.is_double
        if done.sums is not None:
            self.sums.extend(done.sums)
        self.fits.update(fit.status for fit in user.fits)
        self.forgotten += user.forgotten
        self.not_converged += sum(fit.predicts and not fit.converged for fit in user.fits)
        self.left_out.update(user.log.left_out)
        self.notes += [f"user {user.user}: {note}" for note in user.log.notes]
        self.fit_notes += [reason_of(fit) for fit in user.fits[-1:] if fit.reason]
        self.coverage.add(user)
        self.logs.update(user.log.fingerprint.encode())

    @property
    def scores(self) -> Scores:
        """The panel of each user with a fit that was not skipped."""
        names = tuple(self.panel.names)
        values = np.asarray(self.values, float).reshape(len(self.users), len(names))
        reviews = np.asarray(self.reviews, np.int64)
        return Scores(tuple(self.users), reviews, tuple(self.rows), names, values)

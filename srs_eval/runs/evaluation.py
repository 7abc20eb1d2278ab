"""All users of a run: evaluated, kept as soon as they are done, and added up."""

from __future__ import annotations

import hashlib
import pickle
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from srs_eval.algorithms.algorithm import Pretrainable, when_of
from srs_eval.data.reviews import Source, User, reviews_fingerprint
from srs_eval.errors import ConfigError, FailedAlikeError, FitSkipped, ReviewLogError, Stopped
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.limits import FitTimeoutError, patience, time_limit
from srs_eval.evaluation.scoring import ScoredUser, Scores, score_user, summarise_users
from srs_eval.metrics.bootstrap import PooledSums, user_sums
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import Predictions
from srs_eval.protocol.user_folds import UserFolds
from srs_eval.runs.compute import Lost, Tick
from srs_eval.runs.config import Setup, targets
from srs_eval.runs.summary import TRAITS, Census, Summary, kind_of, reason_of

_FAILING_USERS = 3


@dataclass(frozen=True, slots=True)
class Work:
    """Evaluate a user, and get ready what is added up; for worker processes."""

    evaluate: EvaluateUser
    panel: Panel

    def __call__(self, user: User, tick: Tick) -> tuple[ScoredUser, Any]:
        """Evaluate a user, calling `tick` after each fold; return also the sums for pooling."""
        try:
            scored = score_user(self.evaluate(user, tick), self.panel)
        except Stopped:
            raise
        except (SystemExit, GeneratorExit, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) and parent_process() is None:
                raise  # workers ignore Ctrl-C: there it is of the algorithm
            scored = self.lost(user, f"its fit raised {error!r}")
        panel, predictions = self.panel, scored.predictions
        if predictions is None or not panel.pooled or not scored.is_complete:
            return scored, None
        return scored, user_sums(panel, predictions)

    def lost(self, user: User, reason: str) -> ScoredUser:
        """Return the failure of a user whose process died."""
        fit = Fit(user, -1, "failed", f"user {user}: {reason}")
        return score_user(UserEvaluation(user, (fit,), None, ReviewLog()), self.panel)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The finished users of a run, which its stamp names: a digest of settings and code."""

    folder: Path  # Of the run
    stamp: str

    def write(self, scored: ScoredUser, sums: Any = None) -> None:
        """Keep a user: in one move, so that a kill leaves the file whole or not at all.

        `sums` is what pooled scores are computed from; None where nothing is pooled.
        """
        path = self._path(scored.user)
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = {"scored": replace(scored, predictions=None), "sums": sums}
        partial = path.with_suffix(".partial")
        with ZipFile(partial, "w") as file:
            for name, part in {**parts, "predictions": scored.predictions}.items():
                file.writestr(name, pickle.dumps(part))
        partial.replace(path)

    def read(self, user: User, part: str = "scored") -> Any:
        """Return a part of a user who is done: ``scored``, ``sums`` or ``predictions``."""
        with ZipFile(self._path(user)) as file:
            return pickle.loads(file.read(part))

    def find(self, user: User) -> ScoredUser | None:
        """Return a user without the predictions; None if the user is not done."""
        with suppress(OSError, BadZipFile):  # a damaged file is no file
            scored: ScoredUser = self.read(user)
            return scored
        return None

    def remove(self, user: User | None = None) -> None:
        """Remove a user, or all files, also those of other settings."""
        if user is None:
            shutil.rmtree(self.folder / "checkpoint", ignore_errors=True)
        else:
            self._path(user).unlink(missing_ok=True)

    def _path(self, user: User) -> Path:
        digest = hashlib.sha256(f"{type(user).__name__} {user}".encode()).hexdigest()[:24]
        return self.folder / "checkpoint" / self.stamp / f"{digest}.pkl"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The users of a run, all evaluated; predictions are read one user at a time."""

    summary: Summary
    scores: Scores
    users: Sequence[User]
    checkpoint: Checkpoint

    def predictions(self) -> Iterator[Predictions]:
        """Go through the predictions of all users."""
        every = (self.checkpoint.read(user, "predictions") for user in self.users)
        return (predictions for predictions in every if predictions is not None)


def evaluate(
    setup: Setup,
    folder: Path,
    *,
    bar: Callable[..., Any],
    begin: Callable[[int, int], None] = lambda *_: None,
    watch: Callable[[ScoredUser], None] = lambda _: None,
) -> Evaluation:
    """Evaluate all users; those that `folder` has from an interrupted run are not done again.

    Of a shard, the users of all shards that are done are not added up. `bar` makes a progress bar
    over fits, such as `tqdm.tqdm`. `begin` is called with the numbers of users to do and of all,
    and `watch` with each user who is done; it can end the evaluation by raising `Pruned`.
    """
    users = checked_users(setup.source)
    mine = of_shard(users, setup.content["shard"])
    algorithm = _learned_from_others(setup, users)
    limits = [setup.content[name] for name in ("seed", "curves_per_user", "fit_timeout")]
    work = Work(EvaluateUser(setup.source, algorithm, setup.protocol, *limits), setup.panel)
    checkpoint = Checkpoint(folder, setup.stamp)
    folds, failed, todo = setup.protocol.folds, list[Fit](), list[User]()
    with bar(total=folds * len(mine), desc=setup.label) as progress:
        for user in mine:
            scored = checkpoint.find(user)
            if scored and scored.log.fingerprint == _fingerprint(setup.source, user):
                progress.update(folds)
                watch(scored)
            else:
                todo.append(user)
        begin(len(todo), len(mine))
        finished = len(mine) - len(todo)
        may_stop = setup.content["fail_fast"] and not finished
        stuck_after = patience(setup.content["fit_timeout"])
        with closing(setup.compute.map(work, todo, progress.update, stuck_after)) as results:
            for result in results:
                is_lost = isinstance(result, Lost)
                scored, sums = (work.lost(*result), None) if is_lost else result
                checkpoint.write(scored, sums)
                watch(scored)
                finished += 1
                progress.update(max(finished * folds - progress.n, 0))
                may_stop = may_stop and not any(fit.predicts for fit in scored.fits)
                if may_stop:
                    failed += [f for f in scored.fits if f.status == "failed" and f.fold >= 0]
                    may_stop = _are_alike(failed, len(mine), checkpoint)
    return added_up(setup, mine, checkpoint)


def _are_alike(failed: Sequence[Fit], of_users: int, checkpoint: Checkpoint) -> bool:
    """Whether failures are alike; raise `FailedAlikeError` if enough of more users have them."""
    users = {fit.user for fit in failed}
    are_alike = len({kind_of(reason_of(fit)) for fit in failed}) < 2
    if are_alike and _FAILING_USERS <= len(users) < of_users:
        for user in users:  # they are tried again
            checkpoint.remove(user)
        raise FailedAlikeError(
            f"stopped after {len(users)} of {of_users:,} users: all {len(failed)} fits failed "
            f"alike, the first {reason_of(failed[0])}\n{failed[0].traceback}"
            "fail_fast=false evaluates all users"
        )
    return are_alike


def added_up(setup: Setup, users: Sequence[User], checkpoint: Checkpoint) -> Evaluation:
    """Add up users who are done, in the order of the source."""
    panel, algorithm = setup.panel, setup.algorithm
    total, census = PooledSums(panel), Census()
    tried, reviews, rows, values = list[User](), list[int](), list[str](), list[Any]()
    for user in users:
        one = checkpoint.read(user)
        census.add(one)
        sums = checkpoint.read(user, "sums")
        if sums is not None:
            total.add(sums)
        if any(fit.status != "skipped" for fit in one.fits):
            tried.append(user)
            reviews.append(one.reviews)
            rows.append(one.rows)
            values.append(one.values)
    scores = Scores(
        tuple(tried),
        np.array(reviews, np.int64),
        tuple(rows),
        tuple(panel.names),
        np.array(values, np.float64).reshape(len(tried), len(panel.names)),
    )

    def complete() -> Iterator[Predictions]:
        return (checkpoint.read(user, "predictions") for user in scores.complete)

    over = summarise_users(scores, panel, complete, lambda: total)
    traits: Any = {trait: bool(getattr(algorithm, trait, False)) for trait in TRAITS}
    traits["pretrained"] |= _learns_from_others(setup)
    summary = Summary(
        label=setup.label,
        algo=setup.choices["algo"],
        data=setup.choices["data"],
        protocol=setup.protocol.name,
        is_validation=bool(getattr(setup.protocol, "is_validation", False)),
        users=len(scores.complete),
        reviews=int(scores.reviews.sum()),
        **census.facts(),
        metrics=over.metrics,
        thresholds=over.thresholds,
        interval_over=over.interval_over,
        when=when_of(algorithm),
        **traits,
        rows_fingerprint=scores.fingerprint,
        tags=setup.tags,
    )
    return Evaluation(summary, scores, users, checkpoint)


def checked_users(source: Source) -> list[User]:
    """Return the users of a source, as Python's own numbers or texts.

    Raise `ReviewLogError` if there are none, with every name that is of another type or occurs
    twice.
    """
    users = [user.item() if isinstance(user, np.generic) else user for user in source.users()]
    problems = [] if users else ["no users"]
    problems += [
        f"user {user!r} is {type(user).__name__}, expected a number or a text"
        for user in users
        if type(user) not in (int, str)
    ]
    names = Counter(map(repr, users))
    problems += [f"user {name} is named more than once" for name in names if names[name] > 1]
    if problems:
        raise ReviewLogError(source.location, problems)
    return users


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
    logs = "".join(_fingerprint(source, user) for user in checked_users(source))
    return hashlib.sha256(logs.encode()).hexdigest()[:16]


def _fingerprint(source: Source, user: User) -> str:
    try:
        return reviews_fingerprint(source.read(user))
    except Exception:  # noqa: BLE001 - as in an evaluation, where it is a failed fit
        return ""


def refuse_lookahead(setup: Setup) -> None:
    """Raise `CheckFailed` if a class that is not of srs_eval plainly looks ahead."""
    names = list(targets(setup.content["algo"]))
    if all(name.startswith("srs_eval.") for name in names):
        return
    from srs_eval.evaluation.checks.lookahead import check_quickly  # not for our own
    from srs_eval.evaluation.checks.trial import CheckFailed

    try:  # the run will say of its own fits that they take too long
        with suppress(FitTimeoutError), time_limit(setup.content["fit_timeout"]):
            check_quickly(setup.algorithm)
    except CheckFailed as error:
        raise CheckFailed(
            f"{error}\nA quick check on a simulated log found this, and nothing was evaluated; "
            "check_lookahead=false evaluates the algorithm all the same"
        ) from None


def _learns_from_others(setup: Setup) -> bool:
    """Whether the algorithm is pretrained for each fold of users."""
    return isinstance(setup.protocol, UserFolds) and isinstance(setup.algorithm, Pretrainable)


def _learned_from_others(setup: Setup, users: Sequence[User]) -> Any:
    """Return the algorithm, pretrained for each fold of users where the protocol has some."""
    algorithm: Any = setup.algorithm
    protocol: Any = setup.protocol
    if not _learns_from_others(setup):
        return algorithm
    from srs_eval.algorithms.combined import cross_fitted  # not for every run

    def read(them: Sequence[User]) -> Iterator[Any]:
        for user in them:
            try:
                task = protocol(setup.source.read(user), same_day=algorithm.same_day)
            except (FitSkipped, ReviewLogError):
                continue
            last = task.folds[-1]
            yield task.reviews, np.concatenate([last.train, last.test])

    return cross_fitted(algorithm, protocol.fold_of(users), read, setup.content["seed"])

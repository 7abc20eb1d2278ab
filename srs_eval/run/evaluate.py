"""Evaluate an experiment: fit, predict and score every user, and summarise over users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from tqdm import tqdm

from srs_eval.compute import stopping
from srs_eval.compute.interface import Compute, Tick
from srs_eval.compute.serial import Serial
from srs_eval.errors import SrsEvalError
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.evaluate import Watch as OnStep
from srs_eval.evaluation.limits import NO_LIMITS, FitLimits, process_is_spoiled
from srs_eval.evaluation.scoring import EvaluateAndScore, ScoredUser, score_user, summarise_users
from srs_eval.metrics.pooled import PooledSums
from srs_eval.nouns import Fit, Source, User, when_of
from srs_eval.nouns.predictions import reviews_fingerprint
from srs_eval.results.from_parts import PartFits, PartPredictions
from srs_eval.results.parts import (
    USERS,
    Chunk,
    KeptInMemory,
    Part,
    Parts,
    chunk_size,
    cut,
    part_of,
    pooled_sums,
)
from srs_eval.results.predicted import Predicted
from srs_eval.results.result import Result
from srs_eval.results.summary import Summary
from srs_eval.results.user_rows import AllUsers, a_fit_worked
from srs_eval.run.experiment import Experiment, checked_users
from srs_eval.run.failures import FailingAlike
from srs_eval.run.user_folds import learns_from_other_users, with_user_folds
from srs_eval.run.watching import RunningMeans, Watch, step_callback

_NO_BAR = partial(tqdm, disable=True)


class Store(Protocol):
    """Keeps the part of each chunk as soon as there is one."""

    def users_if_whole(self, chunk: Chunk) -> pa.Table | None:
        """Read the users of a part in a worker; None if it is to be made."""

    def keep(self, chunk: Chunk, part: Part) -> Part | None:
        """Keep a part in a worker; return it if it is to be sent to the parent."""

    def receive(self, chunk: Chunk, part: Part | None) -> None:
        """Keep in the parent what `keep` returned in a worker."""

    def join(self, chunk: Chunk) -> None:
        """Make one part of the parts of its users, where each was evaluated alone."""

    def parts(self) -> Parts:
        """Return the parts, to be read."""


@dataclass(frozen=True, slots=True)
class ChunkDone:
    """Result of a chunk, as it is sent to the parent."""

    chunk: Chunk
    part: Part | None = None  # What the store wants to have sent
    # The metric of each user that a search watches; empty without a search
    watched: tuple[float, ...] = ()
    has_died: bool = False  # Whether its worker process died or can do no more, and nothing is kept
    was_done: bool = False  # Whether the part was there before
    fits_worked: bool = True  # Whether a fit worked, now or before
    failed: tuple[Fit, ...] = ()  # The fits that failed, if none worked


@dataclass(frozen=True, slots=True)
class EvaluateChunk:
    """Evaluate the users of a chunk and keep their part, in the process that does the work.

    A part that is there already is kept, unless the log of one of its users has changed.
    """

    evaluate: EvaluateAndScore
    store: Store
    watched: str | None = None  # The metric that a search watches

    def __call__(self, chunk: Chunk, tick: Tick = lambda *_: None) -> ChunkDone:
        """Evaluate a chunk, calling `tick` after each fold."""
        users = self.store.users_if_whole(chunk)
        if users is None or not _logs_are(users, chunk, self.evaluate.evaluate.source):
            scored = []
            for user in chunk.users:
                scored.append(self.evaluate(user, tick))
                if self.is_spoiled and len(chunk.users) > 1:
                    return ChunkDone(chunk, has_died=True)
            return self.kept(chunk, scored)
        done = self._done(chunk, users, None)
        return replace(done, was_done=True, fits_worked=a_fit_worked(users))

    def kept(self, chunk: Chunk, scored: Sequence[ScoredUser]) -> ChunkDone:
        """Keep the results of the users of a chunk."""
        part = part_of(scored, self.evaluate.panel)
        done = self._done(chunk, part[USERS][0], self.store.keep(chunk, part))
        fits = [fit for each in scored for fit in each.fits]
        if any(fit.predicts for fit in fits):
            return done
        return replace(
            done, fits_worked=False, failed=tuple(fit for fit in fits if fit.status == "failed")
        )

    @property
    def patience(self) -> float | None:
        """Seconds without progress after which the process of this work is stuck."""
        return self.evaluate.evaluate.limits.patience

    @property
    def is_spoiled(self) -> bool:
        """Whether a fit was interrupted in this process."""
        return process_is_spoiled()

    def crashed(self, chunk: Chunk, reason: str) -> ChunkDone:
        """Keep the failure of a user who was evaluated alone; nothing for several users."""
        if len(chunk.users) > 1:
            return ChunkDone(chunk, has_died=True)
        (user,) = chunk.users
        fit = Fit(user, -1, "failed", f"user {user}: {reason}")
        failed = UserEvaluation(user, (fit,), None, ReviewLog())
        return self.kept(chunk, [score_user(failed, self.evaluate.panel)])

    def _done(self, chunk: Chunk, users: pa.Table, part: Part | None) -> ChunkDone:
        if self.watched is None:
            return ChunkDone(chunk, part)
        column = self.evaluate.panel.names.index(self.watched)
        return ChunkDone(chunk, part, tuple(row[column] for row in users["values"].to_pylist()))


def evaluate(
    experiment: Experiment,
    users: Sequence[User] | None = None,
    *,
    compute: Compute | None = None,
    store: Store | None = None,
    chunks: Sequence[Chunk] | None = None,
    progress: Callable[..., tqdm[Any]] = _NO_BAR,
    watch: Watch | None = None,
    stay: Path | None = None,
    limits: FitLimits = NO_LIMITS,
) -> Result:
    """Evaluate an algorithm on users and return the result; nothing is printed or logged.

    By default, all users of the source are evaluated, one after the other in this process, and what
    was predicted is kept in memory. `chunks` are the same users, as they are evaluated and kept
    together. `progress` makes the progress bar over fits, such as `tqdm.auto.tqdm`; `watch` is
    called with the metric of a search while the evaluation goes on. `stay` is the folder of the
    run, if its parts stay there.

    Raise `ReviewLogError` if the source has no users, or names that cannot be used;
    `FailedAlikeError` if all fits of the first users fail alike, and `limits` stops the evaluation
    there; and `Pruned` if `watch` raises it.
    """
    if chunks is None:
        users = checked_users(experiment.source) if users is None else users
        chunks = cut(users, chunk_size(len(users), getattr(compute, "chunk", None)))
    store = KeptInMemory() if store is None else store
    evaluate_chunks(experiment, chunks, compute or Serial(), store, progress, watch, limits)
    return gathered(experiment, chunks, store, stay)


def gathered(
    experiment: Experiment, chunks: Sequence[Chunk], store: Store, stay: Path | None = None
) -> Result:
    """Return the result of chunks of users who have been evaluated; `stay` is as for `evaluate`."""
    names, panel = [chunk.name for chunk in chunks], experiment.panel
    parts = store.parts()
    fitted = PartFits(parts, names)
    return result_of(
        experiment,
        AllUsers.of((parts.read(name, USERS) for name in names), panel.names),
        fitted if stay else tuple(fitted),
        PartPredictions(parts, names, stay),
        partial(pooled_sums, parts, names, panel),
    )


def result_of(
    experiment: Experiment,
    users: AllUsers,
    fitted: Sequence[Fit],
    predicted: Predicted,
    sums: Callable[[], PooledSums] | None = None,
) -> Result:
    """Summarise over users.

    `sums` returns the sums of the users without a missing fold, for pooled scores; by default they
    are computed from the predictions.
    """
    of_users = partial(predicted.of, users.complete)
    over = summarise_users(users.scores, experiment.panel, of_users, sums)
    algorithm, protocol, counts = experiment.algorithm, experiment.protocol, users.counts
    facts = Summary(
        algo=type(algorithm).__name__,
        label=type(algorithm).__name__,
        data=experiment.source.name,
        protocol=protocol.name,
        is_validation=bool(getattr(protocol, "is_validation", False)),
        users=len(users.complete),
        reviews=int(over.scores.reviews.sum()),
        forgotten=counts["forgotten"],
        fits=counts["fits"],
        failed=counts["failed"],
        fallback=counts["fallback"],
        skipped=counts["skipped"],
        not_converged=counts["not_converged"],
        metrics=over.metrics,
        thresholds=over.thresholds,
        interval_over=over.interval_over,
        when=when_of(algorithm),
        sees_truth=algorithm.sees_truth,
        pretrained=bool(getattr(algorithm, "pretrained", False))
        or learns_from_other_users(experiment),
        in_sample=bool(getattr(algorithm, "in_sample", False)),
        seed=experiment.seed,
        left_out=users.left_out,
        notes=(*getattr(experiment.source, "remarks", tuple)(), *users.notes),
        fit_notes=users.fit_notes,
        data_fingerprint=users.fingerprint,
        rows_fingerprint=over.scores.fingerprint,
        coverage=users.coverage,
    )
    return Result(facts, over.scores, fitted, predicted, reviews_read=counts["reviews_read"])


def evaluate_chunks(
    experiment: Experiment,
    chunks: Sequence[Chunk],
    compute: Compute,
    store: Store,
    progress: Callable[..., tqdm[Any]] = _NO_BAR,
    watch: Watch | None = None,
    limits: FitLimits = NO_LIMITS,
) -> int:
    """Evaluate the users of chunks into the store, and return how many were done before.

    A chunk whose worker died is evaluated user by user, so that it costs one user only. Where the
    protocol divides users into folds, an algorithm that learns from other users does so first.
    """
    experiment = with_user_folds(experiment)
    on_step = step_callback(watch, experiment, sum(len(chunk.users) for chunk in chunks))
    means = None if on_step else RunningMeans.of(watch, chunks)
    work = EvaluateChunk(
        EvaluateAndScore(
            EvaluateUser(
                experiment.source,
                experiment.algorithm,
                experiment.protocol,
                seed=experiment.seed,
                curves=experiment.curves_per_user,
                limits=limits,
            ),
            experiment.panel,
            watched=on_step is not None,
        ),
        store,
        watched=None if means is None else means.metric,
    )
    return evaluate_with(work, chunks, compute, experiment.protocol.folds, progress, on_step, means)


def evaluate_with(
    work: EvaluateChunk,
    chunks: Sequence[Chunk],
    compute: Compute,
    folds: int,
    progress: Callable[..., tqdm[Any]] = _NO_BAR,
    on_step: OnStep | None = None,
    means: RunningMeans | None = None,
) -> int:
    """Have chunks evaluated; those whose worker died again, user by user."""
    users, finished, before = sum(len(chunk.users) for chunk in chunks), 0, 0
    failing = FailingAlike(users)
    if not work.evaluate.evaluate.limits.fail_fast:
        failing.end()
    with progress(total=folds * users, initial=0) as bar:

        def tick(*step: Any) -> None:
            stopping.check()
            if step and on_step is not None:
                on_step(*step)
            else:
                bar.update()

        def died(todo: Sequence[Chunk]) -> list[Chunk]:
            nonlocal finished, before
            apart = []
            for each in compute.map(work, todo, on_crash=work.crashed, tick=tick):
                stopping.check()
                if each.has_died:
                    apart.append(each.chunk)
                    continue
                work.store.receive(each.chunk, each.part)
                if each.fits_worked:
                    failing.end()
                failing.add(each.failed)
                finished += folds * len(each.chunk.users)
                before += len(each.chunk.users) if each.was_done else 0
                bar.update(max(finished - bar.n, 0))
                if means is not None:
                    means.add(each.chunk.users, each.watched)
            return apart

        apart = died(chunks)
        died([single for chunk in apart for single in chunk.taken_apart()])
        for chunk in apart:
            work.store.join(chunk)
    return before


def _logs_are(users: pa.Table, chunk: Chunk, source: Source) -> bool:
    """Whether the logs of users are those that were evaluated before."""
    for user, fingerprint in zip(chunk.users, users["fingerprint"].to_pylist(), strict=True):
        try:
            if not fingerprint or reviews_fingerprint(source.read(user)) != fingerprint:
                return False
        except SrsEvalError:  # what cannot be read now is evaluated, and fails, now
            return False
    return True

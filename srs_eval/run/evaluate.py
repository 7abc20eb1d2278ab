"""Evaluate an experiment: fit, predict and score every user, and summarise over users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from srs_eval.compute import stopping
from srs_eval.compute.interface import Compute, Tick
from srs_eval.compute.serial import Serial
from srs_eval.errors import SrsEvalError
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.limits import NO_LIMITS, FitLimits, process_is_spoiled
from srs_eval.evaluation.scoring import (
    EvaluateAndScore,
    ScoredUser,
    Scores,
    score_user,
    summarise_users,
)
from srs_eval.metrics.pooled import PooledSums
from srs_eval.nouns import Fit, Source, User, when_of
from srs_eval.nouns.predictions import reviews_fingerprint
from srs_eval.results.parts import (
    USERS,
    Chunk,
    Part,
    Parts,
    chunk_size,
    cut,
    part_of,
    pooled_sums,
)
from srs_eval.results.predicted import PartPredictions, Predicted, SavedFits
from srs_eval.results.result import Result
from srs_eval.results.summary import Summary
from srs_eval.results.user_rows import a_fit_worked, of_all_users
from srs_eval.run.description import RunDescription
from srs_eval.run.experiment import (
    Experiment,
    checked_users,
    learns_from_other_users,
    with_user_folds,
)
from srs_eval.run.watching import FailingAlike, RunningMeans, step_callback
from srs_eval.tuning.progress import RunningTrial

_NO_BAR = partial(tqdm, disable=True)


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
    store: Parts
    watched: str | None = None  # The metric that a search watches

    def __call__(self, chunk: Chunk, tick: Tick = lambda *_: None) -> ChunkDone:
        """Evaluate a chunk, calling `tick` after each fold."""
        users = self.store.users_if_whole(chunk)
        if users is not None and _logs_are(users, chunk, self.evaluate.evaluate.source):
            worked = a_fit_worked(users)
            return ChunkDone(chunk, None, self._watched(users), was_done=True, fits_worked=worked)
        scored = []
        for user in chunk.users:
            scored.append(self.evaluate(user, tick))
            if self.is_spoiled and len(chunk.users) > 1:
                return ChunkDone(chunk, has_died=True)
        return self.kept(chunk, scored)

    def kept(self, chunk: Chunk, scored: Sequence[ScoredUser]) -> ChunkDone:
        """Keep the results of the users of a chunk."""
        part = part_of(scored, self.evaluate.panel)
        sent, watched = self.store.keep(chunk, part), self._watched(part[USERS][0])
        fits = [fit for each in scored for fit in each.fits]
        if any(fit.predicts for fit in fits):
            return ChunkDone(chunk, sent, watched)
        failed = tuple(fit for fit in fits if fit.status == "failed")
        return ChunkDone(chunk, sent, watched, fits_worked=False, failed=failed)

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

    def _watched(self, users: pa.Table) -> tuple[float, ...]:
        if self.watched is None:
            return ()
        column = self.evaluate.panel.names.index(self.watched)
        return tuple(row[column] for row in users["values"].to_pylist())


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An experiment on users in chunks, whose parts go into a store.

    `progress` makes the progress bar over fits, such as `tqdm.auto.tqdm`; `watch` is called with
    the metric of a search while the evaluation goes on.
    """

    experiment: Experiment
    chunks: Sequence[Chunk]
    store: Parts
    compute: Compute = field(default_factory=Serial)
    progress: Callable[..., tqdm[Any]] = _NO_BAR
    watch: RunningTrial | None = None
    limits: FitLimits = NO_LIMITS

    def run(self) -> int:
        """Evaluate all users, and return how many were done before.

        A chunk whose worker died is evaluated user by user, so that it costs one user only. Where
        the protocol divides users into folds, an algorithm that learns from other users does so
        first.
        """
        experiment = with_user_folds(self.experiment)
        users, folds = sum(len(chunk.users) for chunk in self.chunks), experiment.protocol.folds
        on_step = step_callback(self.watch, experiment, users)
        means = None if on_step else RunningMeans.of(self.watch, self.chunks)
        failing = FailingAlike(users)
        if not self.limits.fail_fast:
            failing.end()
        finished = before = 0
        with self.progress(total=folds * users, initial=0) as bar:

            def tick(*step: Any) -> None:
                stopping.check()
                if step and on_step is not None:
                    on_step(*step)
                else:
                    bar.update()

            work = self._work(experiment, means, watched=on_step is not None)
            for each in self._done(work, tick):
                self.store.receive(each.chunk, each.part)
                if each.fits_worked:
                    failing.end()
                failing.add(each.failed)
                finished += folds * len(each.chunk.users)
                before += len(each.chunk.users) if each.was_done else 0
                bar.update(max(finished - bar.n, 0))
                if means is not None:
                    means.add(each.chunk.users, each.watched)
        return before

    def _work(
        self, experiment: Experiment, means: RunningMeans | None, *, watched: bool
    ) -> EvaluateChunk:
        """Return what evaluates a chunk; each step of its fits is `watched`, or its users are."""
        one = EvaluateUser(
            experiment.source,
            experiment.algorithm,
            experiment.protocol,
            seed=experiment.seed,
            curves=experiment.curves_per_user,
            limits=self.limits,
        )
        scored = EvaluateAndScore(one, experiment.panel, watched=watched)
        watched_metric = None if means is None else means.metric
        return EvaluateChunk(scored, self.store.in_worker(), watched_metric)

    def _done(self, work: EvaluateChunk, tick: Tick) -> Iterator[ChunkDone]:
        """Go through the chunks as they are done; those whose worker died, user by user."""
        apart: list[Chunk] = []
        for each in self.compute.map(work, self.chunks, on_crash=work.crashed, tick=tick):
            stopping.check()
            if each.has_died:
                apart.append(each.chunk)
            else:
                yield each
        single = [alone for chunk in apart for alone in chunk.taken_apart()]
        for each in self.compute.map(work, single, on_crash=work.crashed, tick=tick):
            stopping.check()
            yield each
        for chunk in apart:
            self.store.join(chunk)

    def result(self, about: RunDescription | None = None, stay: Path | None = None) -> Result:
        """Return the result of users who have been evaluated.

        `about` names it, by default after the class of the algorithm; `stay` is the folder of the
        run, if its parts stay there.
        """
        names, panel, store = [c.name for c in self.chunks], self.experiment.panel, self.store
        predicted = PartPredictions(store, names, stay)
        return result_of(
            self.experiment,
            of_all_users((store.read(name, USERS) for name in names), panel.names),
            SavedFits(predicted.fits) if stay else tuple(predicted.fits()),
            predicted,
            partial(pooled_sums, store, names, panel),
            about,
        )


def evaluate(
    experiment: Experiment,
    users: Sequence[User] | None = None,
    *,
    compute: Compute | None = None,
    progress: Callable[..., tqdm[Any]] = _NO_BAR,
    limits: FitLimits = NO_LIMITS,
    about: RunDescription | None = None,
) -> Result:
    """Evaluate an algorithm on users and return the result; nothing is printed, logged or saved.

    By default, all users of the source are evaluated, one after the other in this process.
    `progress` is as for `Evaluation`, and `about` as for its result.

    Raise `ReviewLogError` if the source has no users, or names that cannot be used;
    `FailedAlikeError` if all fits of the first users fail alike, and `limits` stops the evaluation
    there.
    """
    users = checked_users(experiment.source) if users is None else users
    compute = compute or Serial()
    chunks = cut(users, chunk_size(len(users), getattr(compute, "chunk", None)))
    evaluation = Evaluation(experiment, chunks, Parts(), compute, progress, limits=limits)
    evaluation.run()
    return evaluation.result(about)


def result_of(
    experiment: Experiment,
    users: tuple[Scores, Summary],
    fitted: Sequence[Fit],
    predicted: Predicted,
    sums: Callable[[], PooledSums] | None = None,
    about: RunDescription | None = None,
) -> Result:
    """Summarise over users; `about` is as for `Evaluation.result`.

    `sums` returns the sums of the users without a missing fold, for pooled scores; by default they
    are computed from the predictions.
    """
    scores, facts = users
    of_users = partial(predicted.of, scores.complete)
    over = summarise_users(scores, experiment.panel, of_users, sums)
    algorithm, protocol, source = experiment.algorithm, experiment.protocol, experiment.source
    named = type(algorithm).__name__
    about = about or RunDescription(named, source.name, named)
    facts = replace(
        facts,
        algo=about.algo,
        label=about.label,
        data=about.data,
        protocol=protocol.name,
        is_validation=bool(getattr(protocol, "is_validation", False)),
        metrics=over.metrics,
        thresholds=over.thresholds,
        interval_over=over.interval_over,
        when=when_of(algorithm),
        sees_truth=algorithm.sees_truth,
        pretrained=bool(getattr(algorithm, "pretrained", False))
        or learns_from_other_users(experiment),
        in_sample=bool(getattr(algorithm, "in_sample", False)),
        seed=experiment.seed,
        notes=(*getattr(source, "remarks", tuple)(), *facts.notes),
        rows_fingerprint=over.scores.fingerprint,
        tags=dict(about.tags),
    )
    return Result(facts, over.scores, fitted, predicted)


def _logs_are(users: pa.Table, chunk: Chunk, source: Source) -> bool:
    """Whether the logs of users are those that were evaluated before."""
    for user, fingerprint in zip(chunk.users, users["fingerprint"].to_pylist(), strict=True):
        try:
            if not fingerprint or reviews_fingerprint(source.read(user)) != fingerprint:
                return False
        except SrsEvalError:  # what cannot be read now is evaluated, and fails, now
            return False
    return True

"""Follow an evaluation: report a metric to a search, and stop where all fits fail alike."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from srs_eval.errors import FailedAlikeError
from srs_eval.evaluation.evaluate import Watch as OnStep
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Fit, FittingInSteps, Predictions, User
from srs_eval.results.fit_counts import bare_reason, reason_of
from srs_eval.results.parts import Chunk
from srs_eval.run.experiment import Experiment
from srs_eval.text.frames import own_frames
from srs_eval.tuning.progress import RunningTrial

_FAILING_USERS = 3


def step_callback(watch: RunningTrial | None, experiment: Experiment, users: int) -> OnStep | None:
    """Return a callback that scores each step of the only fit; None if there is no such fit."""
    if watch is None or watch.report is None:
        return None
    has_steps = isinstance(experiment.algorithm, FittingInSteps)
    if not has_steps or users > 1 or experiment.protocol.folds > 1:
        return None
    name, report = watch.metric, watch.report
    metrics = [metric for metric in experiment.panel if metric.name == name]
    panel = Panel(metrics, pooled=False)

    def on_step(step: int, predictions: Predictions) -> None:
        report(step, panel.score(predictions)[name])

    return on_step


class RunningMeans:
    """Reports the mean over the first user, the first two, …, once all of them are done.

    Every step is reported, in order, also where users end in another order or were done before,
    so that what is pruned depends on neither.
    """

    def __init__(
        self, metric: str, report: Callable[[int, float], None], users: Iterable[User]
    ) -> None:
        self.metric = metric
        self._report = report
        self._users = iter(users)
        self._next = next(self._users, None)
        self._waiting: dict[User, float] = {}
        self._step = self._defined = 0
        self._sum = 0.0

    @classmethod
    def of(cls, watch: RunningTrial | None, chunks: Iterable[Chunk]) -> RunningMeans | None:
        """Return the means that a search wants to have reported, if it does."""
        if watch is None or watch.report is None:
            return None
        return cls(watch.metric, watch.report, (user for chunk in chunks for user in chunk.users))

    def add(self, users: Iterable[User], values: Iterable[float]) -> None:
        """Add the metric of some users, and report the means that are known by now."""
        self._waiting.update(zip(users, values, strict=True))
        while self._next in self._waiting:
            value = self._waiting.pop(self._next)
            self._next = next(self._users, None)
            self._step += 1
            if math.isfinite(value):
                self._sum += value
                self._defined += 1
            if self._defined:
                self._report(self._step, self._sum / self._defined)


def frame_lines(fit: Fit) -> list[str]:
    """Return the last frames in code of the plug-in, one line each."""
    return [f"  {frame}" for frame in own_frames(fit.traceback)]


class FailingAlike:
    """Stops an evaluation whose first users, of so many, all fail alike."""

    def __init__(self, users: int) -> None:
        self._of_users = users
        self._failed: list[Fit] = []
        self._is_over = False

    def end(self) -> None:
        """Stop no more: a fit worked, or was made before."""
        self._is_over = True

    def add(self, failed: Sequence[Fit]) -> None:
        """Add the failed fits of users without a fit that worked.

        Raise `FailedAlikeError` if these are enough users, others are left, and all their fits
        failed alike.
        """
        if self._is_over:
            return
        self._failed += [fit for fit in failed if fit.fold >= 0]
        users = len({fit.user for fit in self._failed})
        if len({_kind(fit) for fit in self._failed}) > 1 or users == self._of_users:
            self.end()
        elif users >= _FAILING_USERS:
            first = self._failed[0]
            said = f"stopped after {users} of {self._of_users:,} users: all {len(self._failed)}"
            said += f" fits failed alike, the first {reason_of(first)}"
            lines = [said, *frame_lines(first), *filter(None, [first.traceback.rstrip()])]
            raise FailedAlikeError("\n".join([*lines, "fail_fast=false evaluates all users."]))


def _kind(fit: Fit) -> tuple[str, str]:
    """Return what is alike in failures of one cause: reasons without numbers, and the line."""
    frames = own_frames(fit.traceback)
    at = f"{frames[-1].file}:{frames[-1].line}" if frames else ""
    return re.sub(r"\d+", "#", bare_reason(fit)), at

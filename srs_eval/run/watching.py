"""Report a metric to a search while an evaluation goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol

from srs_eval.evaluation.evaluate import Watch as OnStep
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import FittingInSteps, Predictions, User
from srs_eval.results.parts import Chunk
from srs_eval.run.experiment import Experiment


class Watch(Protocol):
    """Follows one metric of an evaluation."""

    @property
    def metric(self) -> str:
        """Name of the metric."""

    @property
    def report(self) -> Callable[[int, float], None] | None:
        """Takes a step and a value, and raises `Pruned` to end the evaluation."""


def step_callback(watch: Watch | None, experiment: Experiment, users: int) -> OnStep | None:
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
    def of(cls, watch: Watch | None, chunks: Iterable[Chunk]) -> RunningMeans | None:
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

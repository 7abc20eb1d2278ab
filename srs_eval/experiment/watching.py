"""Report a metric to a search while an evaluation goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Protocol

from srs_eval.evaluation.evaluate import Watch as OnStep
from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.experiment.experiment import Experiment
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import FittingInSteps, Predictions, User


class Watch(Protocol):
    """Follows one metric of an evaluation."""

    @property
    def metric(self) -> str:
        """Name of the metric."""

    @property
    def report(self) -> Callable[[int, float], None] | None:
        """Takes a step and a value, and raises `Pruned` to end the evaluation."""


def step_callback(
    watch: Watch | None, experiment: Experiment, users: Sequence[User]
) -> OnStep | None:
    """Return a callback that scores each step of the only fit; None if there is no such fit."""
    if watch is None or watch.report is None:
        return None
    has_steps = isinstance(experiment.algorithm, FittingInSteps)
    if not has_steps or len(users) > 1 or experiment.protocol.folds > 1:
        return None
    name, report = watch.metric, watch.report
    metrics = [metric for metric in experiment.panel if metric.name == name]
    panel = Panel(metrics, pooled=False)

    def on_step(step: int, predictions: Predictions) -> None:
        report(step, panel.score(predictions)[name])

    return on_step


def report_means(
    watch: Watch | None,
    panel: Panel,
    users: Sequence[User],
    done: Mapping[User, ScoredUser],
    reported: int,
) -> int:
    """Report the mean over the first user, the first two, …, once all of them are done.

    Every step is reported, in order, also where users end in another order or were done before,
    so that what is pruned depends on neither.

    Parameters
    ----------
    reported : int
        Steps that were reported before.

    Returns
    -------
    int
        Steps that are reported now.
    """
    if watch is None or watch.report is None:
        return reported
    column = panel.names.index(watch.metric)
    first = [done[user].values[column] for user in takewhile(done.__contains__, users)]
    for step in range(reported + 1, len(first) + 1):
        defined = [value for value in first[:step] if math.isfinite(value)]
        if defined:
            watch.report(step, sum(defined) / len(defined))
    return len(first)

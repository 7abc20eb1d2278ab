"""How a job and the search that it belongs to communicate.

The search describes the trial in the options of the job, so that the description reaches every
process and machine on which a launcher runs jobs. Intermediate values go back through a callback,
which only jobs in the process of the search can reach.

An app reports its progress with one call, which does nothing outside a search::

    from srs_eval.tuning.progress import report_progress

    for step in range(steps):
        ...
        report_progress(step, value)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

Progress = Callable[[int, float], None]

# Option of the sweeper that describes the trial to the job.
TRIAL = "trial"


@dataclass(frozen=True, slots=True)
class RunningTrial:
    """The place of a job in a search."""

    number: int  # Counts the trials from 0
    metric: str  # Name of the metric that the search optimises
    repeated: bool = False  # Whether a process that was interrupted had begun this trial
    direction: str = "minimize"  # ``minimize`` or ``maximize``
    # Takes a step and a value; raises `srs_eval.errors.Pruned` to end the job. None if nothing is
    # pruned
    report: Progress | None = None

    def override(self) -> str:
        """Write the trial as an override of Hydra, without the callback.

        >>> RunningTrial(3, "auc", direction="maximize").override()
        "hydra.sweeper.trial={number:3,metric:'auc',repeated:false,direction:maximize}"
        """
        metric = self.metric.replace("'", "\\'")
        return (
            f"hydra.sweeper.{TRIAL}={{number:{self.number},metric:'{metric}',"
            f"repeated:{str(self.repeated).lower()},direction:{self.direction}}}"
        )


_reporter: ContextVar[Progress | None] = ContextVar("reporter", default=None)


def running_trial(sweeper: Mapping[str, Any]) -> RunningTrial | None:
    """Return the trial of a job by the options of its sweeper; None outside a search."""
    trial = sweeper.get(TRIAL)
    return None if trial is None else RunningTrial(**trial, report=_reporter.get())


@contextmanager
def reporting_to(report: Progress | None) -> Iterator[None]:
    """Pass intermediate values of jobs in this process to a callback."""
    token = _reporter.set(report)
    try:
        yield
    finally:
        _reporter.reset(token)


def report_progress(step: int, value: float) -> None:
    """Report the value of the optimised metric so far to the search.

    `step` counts in any unit that is the same for all jobs. `srs_eval.errors.Pruned` is raised if
    the search ends the trial here; do not catch it.
    """
    report = _reporter.get()
    if report is not None:
        report(step, value)

"""What a job and the search it is part of say to each other while it runs.

An app says how far it has come with one call, which does nothing outside a search::

    from srs_eval.sweeping.progress import report_progress

    for step in range(steps):
        ...
        report_progress(step, value)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Progress = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class RunningTrial:
    """The place of a job in a search.

    Attributes
    ----------
    number : int
        Counts the trials from 0.
    metric : str
        Name of what the search is about.
    repeated : bool
        Whether it was begun before, by a process that did not end it.
    direction : str
        ``minimize`` or ``maximize``.
    report : callable, optional
        Takes a step and a value; raises `srs_eval.errors.Pruned` to end the job. None if
        nothing is pruned.
    """

    number: int
    metric: str
    repeated: bool = False
    direction: str = "minimize"
    report: Progress | None = None


_running: ContextVar[RunningTrial | None] = ContextVar("running_trial", default=None)


def running_trial() -> RunningTrial | None:
    """Return the trial that this job is, if it is one."""
    return _running.get()


@contextmanager
def as_trial(trial: RunningTrial) -> Iterator[None]:
    """Run what is inside as a trial."""
    token = _running.set(trial)
    try:
        yield
    finally:
        _running.reset(token)


def report_progress(step: int, value: float) -> None:
    """Say what came of the first steps of a job.

    Parameters
    ----------
    step : int
        How far it is, in any unit that is the same for all jobs.
    value : float
        What the search is about, so far.

    Raises
    ------
    srs_eval.errors.Pruned
        If the search would rather try something else; let it pass.
    """
    trial = _running.get()
    if trial is not None and trial.report is not None:
        trial.report(step, value)

"""A time limit for fits, and lines on fits that take long."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError
from srs_eval.evaluation.fits import Fit
from srs_eval.protocol.task import Fold, Task

# Reading, scoring and writing take time too, and so does starting a process.
_GRACE = 60.0
_FIRST_REPORT = 30.0
_SECONDS_BETWEEN_LOOKS = 1.0
_SOON = 1e-3


_spoiled = threading.Event()


class FitTimeoutError(BaseException):
    """A fit took too long; not an `Exception`, so that algorithms do not catch it."""


def process_is_spoiled() -> bool:
    """Whether a fit was interrupted in this process, which may have left libraries in any state."""
    return _spoiled.is_set()


@dataclass(frozen=True, slots=True)
class FitLimits:
    """How long fits may take, and what is done about those that take long or fail alike.

    Raise `ConfigError` if `timeout` is no time that a timer has.
    """

    # Seconds of wall time that the fit and the predictions of a fold may take; no limit if None
    timeout: float | None = None
    # Whether to write a line to standard error when a fit has run for 30 seconds, a minute, two
    # minutes, and so on
    report: bool = False

    def __post_init__(self) -> None:
        if self.timeout is not None and not 0 < self.timeout <= threading.TIMEOUT_MAX:
            raise ConfigError(
                f"fit_timeout={self.timeout}: expected seconds above 0, or null for no limit"
            )

    @property
    def patience(self) -> float | None:
        """Seconds without progress after which a worker process is stuck."""
        return None if self.timeout is None else 2 * self.timeout + _GRACE

    @contextmanager
    def applied(self, user: User, fold: int) -> Iterator[None]:
        """Raise `FitTimeoutError` where the body takes too long, and report that it is running.

        Compiled code is not interrupted: the exception is raised when it returns.
        """
        began = time.monotonic()
        if self.report:
            _Reporter.begin(f"user {user}, fold {fold}", began)
        try:
            with _alarm(self.timeout):
                yield
            if self.timeout is not None and time.monotonic() - began > self.timeout:
                raise FitTimeoutError
        except FitTimeoutError:
            _spoiled.set()
            raise
        finally:
            _Reporter.fit = None


NO_LIMITS = FitLimits()


def timed_out_fits(task: Task, slow: Fold, limits: FitLimits) -> list[Fit]:
    """Return the failure of the fit that is being ended, and of the later fits of its user.

    Those are not made: what was interrupted may have left libraries in any state.
    """
    took = f"took longer than fit_timeout={limits.timeout:g} seconds"
    fits = []
    for fold in task.folds:
        if fold.number < slow.number:
            continue
        reason = f"the fit {took}" if fold is slow else f"not fitted: fold {slow.number} {took}"
        where = traceback.format_exc() if fold is slow else ""
        fit = Fit(task.reviews.user, fold.number, "failed", reason, traceback=where)
        fits.append(replace(fit, n_train=len(fold.train), n_test=len(fold.test)))
    return fits


@contextmanager
def _alarm(seconds: float | None) -> Iterator[None]:
    """Raise `FitTimeoutError` after some seconds, where the system can interrupt Python code."""
    if seconds is None or not _can_interrupt():
        yield
        return

    is_over = False

    def ring(_number: int, _frame: object) -> None:
        if not is_over:
            raise FitTimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    began = time.monotonic()
    rest, period = signal.getitimer(signal.ITIMER_REAL)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        is_over = True  # first: an alarm that rings here must not leave its handler behind
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if rest:  # the timer of another program, such as one that ends tests
            rest = max(rest - (time.monotonic() - began), _SOON)
            signal.setitimer(signal.ITIMER_REAL, rest, period)


def _can_interrupt() -> bool:
    """Whether signals with a timer exist and reach this thread."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and hasattr(signal, "setitimer")


class _Reporter(threading.Thread):
    """Writes lines on the running fit of this process."""

    fit: ClassVar[tuple[str, float] | None] = None  # Its name, and when it began
    thread: ClassVar[_Reporter | None] = None

    @classmethod
    def begin(cls, name: str, began: float) -> None:
        """Follow a fit."""
        cls.fit = name, began
        if cls.thread is None or not cls.thread.is_alive():  # as in a process that was forked
            cls.thread = cls(daemon=True)
            cls.thread.start()

    def run(self) -> None:
        """Write a line when a fit has run for 30 seconds, and each time that this has doubled."""
        last, due = None, _FIRST_REPORT
        while True:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            fit = self.fit
            if fit is None:
                continue
            if fit != last:
                last, due = fit, _FIRST_REPORT
            name, began = fit
            seconds = time.monotonic() - began
            if seconds >= due:
                due *= 2
                # in place of a progress bar if there is one
                clear = "\r\x1b[2K" if sys.stderr.isatty() else ""
                sys.stderr.write(f"{clear}srs_eval: {name}: fitting for {seconds / 60:.1f} min\n")
                sys.stderr.flush()

"""The time limit of fits, and lines on fits that take long."""

import signal
import time

import pytest

from srs_eval.errors import ConfigError
from srs_eval.evaluation import limits
from srs_eval.evaluation.limits import FitLimits

needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")


@pytest.fixture(autouse=True)
def _unspoiled():
    yield
    limits._spoiled.clear()


@pytest.mark.parametrize("seconds", [0, -1, 1e300, float("nan")])
def test_a_limit_is_a_time_that_a_timer_has(seconds):
    with pytest.raises(ConfigError, match="fit_timeout"):
        FitLimits(timeout=seconds)


def test_a_fit_that_returns_after_its_time_fails_too(monkeypatch):
    monkeypatch.setattr(limits, "_can_interrupt", lambda: False)
    with pytest.raises(limits.FitTimeoutError), FitLimits(timeout=0.01).applied(1, 0):
        time.sleep(0.02)
    assert limits.process_is_spoiled()


def test_a_long_fit_is_reported_with_its_user(monkeypatch, capsys):
    monkeypatch.setattr(limits, "_FIRST_REPORT", 0.05)
    monkeypatch.setattr(limits, "_SECONDS_BETWEEN_LOOKS", 0.01)
    monkeypatch.setattr(limits._Reporter, "thread", None)
    with FitLimits(report=True).applied("ann", 3):
        time.sleep(0.4)
    lines = capsys.readouterr().err.splitlines()
    assert 1 < len(lines) < 6  # each after twice the time of the one before
    assert all("ann" in line for line in lines)
    with FitLimits(report=True).applied("ben", 0):
        time.sleep(0.15)
    assert "user ben, fold 0" in capsys.readouterr().err
    assert limits._Reporter.thread.daemon  # no run waits for it at its end


@needs_timers
def test_the_timer_of_another_program_goes_on_after_a_fit():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with FitLimits(timeout=60).applied(1, 0):
            assert 59 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
            time.sleep(0.02)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.08
        time.sleep(0.15)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(rung) == 1


@needs_timers
def test_an_alarm_that_rings_after_the_fit_leaves_no_handler_behind(monkeypatch):
    real, before = signal.setitimer, signal.getsignal(signal.SIGALRM)

    def late(which, seconds, interval=0):
        if seconds == 0:
            signal.raise_signal(signal.SIGALRM)
        return real(which, seconds, interval)

    monkeypatch.setattr(signal, "setitimer", late)
    with FitLimits(timeout=60).applied(1, 0):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert not limits.process_is_spoiled()

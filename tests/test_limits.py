"""The time limit of fits."""

import math
import signal
import time

import pytest

from srs_eval.errors import ConfigError
from srs_eval.evaluation import limits
from srs_eval.evaluation.limits import FitTimeoutError, patience, process_is_spoiled, time_limit

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")


@pytest.fixture(autouse=True)
def _unspoiled():
    yield
    limits._spoiled.clear()


def test_a_limit_is_a_time_that_a_timer_has_and_a_process_gets_more():
    for seconds in (0, -1, 1e300, math.nan):
        with pytest.raises(ConfigError, match="fit_timeout"):
            patience(seconds)
    assert (patience(None), patience(5)) == (math.inf, 70)


@pytest.mark.parametrize("timer", [True, False])
def test_a_fit_fails_after_its_time_if_need_be_when_it_returns(timer, monkeypatch):
    if not timer:
        monkeypatch.delattr(signal, "setitimer")
    with time_limit(None), time_limit(60):
        time.sleep(0.01)
    assert not process_is_spoiled()
    began = time.monotonic()
    with pytest.raises(FitTimeoutError), time_limit(0.05):
        time.sleep(60 if timer else 0.1)
    assert time.monotonic() - began < 30
    assert process_is_spoiled()


def test_an_alarm_that_rings_after_the_fit_leaves_no_handler_behind(monkeypatch):
    real, before = signal.setitimer, signal.getsignal(signal.SIGALRM)

    def late(which, seconds, interval=0):
        if seconds == 0:
            signal.raise_signal(signal.SIGALRM)
        return real(which, seconds, interval)

    monkeypatch.setattr(signal, "setitimer", late)
    with time_limit(60):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert not process_is_spoiled()

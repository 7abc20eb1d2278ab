"""Fits that raise, that take too long, and runs in which all fits fail alike."""

import signal
import time
from contextlib import nullcontext
from dataclasses import dataclass

import pytest

from srs_eval.algorithms.baselines import Average
from srs_eval.compute.serial import Serial
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import FailedAlikeError, FitError, FitSkipped
from srs_eval.evaluation import limits
from srs_eval.evaluation.limits import FitLimits
from srs_eval.experiment import job
from srs_eval.experiment.description import RunDescription
from srs_eval.experiment.evaluate import evaluate, evaluate_chunks
from srs_eval.experiment.experiment import Experiment
from srs_eval.experiment.plan import Plan, RunOptions
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Algorithm
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.kept import KeptParts
from srs_eval.results.parts import PARTS, cut
from srs_eval.text.frames import own_frames
from srs_eval.tracking.nothing import NoTracker

PANEL = Panel([LogLoss()])


@dataclass(frozen=True)
class Fails(Algorithm):
    """Raises for some users, and learns an average for the others."""

    users: tuple = (1, 2, 3, 4, 5)
    seconds: float = 0
    error: type = KeyError
    of_odd: type = KeyError

    def fit(self, reviews, rows, rng):
        if reviews.user in self.users:
            time.sleep(self.seconds)
            return self.state(len(rows))
        return Average().fit(reviews, rows, rng)

    def state(self, rows):
        error = self.of_odd if rows % 2 else self.error
        raise error(f"{rows} reviews are too few" if issubclass(error, FitError) else "stability")


def run(algorithm, users=5, **options):
    source = SyntheticUsers(users=users, size_scale=0.02)
    experiment = Experiment(algorithm, source, SrsBenchmark(), PANEL, curves_per_user=0)
    return evaluate(experiment, limits=FitLimits(**options))


@pytest.mark.parametrize(
    ("users", "of_users", "options", "stops"),
    [
        ((1, 2, 3), 4, {}, True),
        ((1, 2, 3, 4), 5, {}, True),
        ((1, 2, 3), 4, {"error": FitError, "of_odd": FitError}, True),
        ((1, 2, 3), 3, {}, False),  # no user is left to be spared
        ((1, 2), 4, {}, False),
        ((1, 2, 4), 4, {}, False),
        ((2, 3, 4, 5), 5, {}, False),
        ((1, 2, 3), 4, {"of_odd": ValueError}, False),  # in different ways
        ((1, 2, 3, 4), 5, {"error": FitSkipped, "of_odd": FitSkipped}, False),
    ],
)
def test_three_users_whose_fits_fail_alike_stop_a_run_of_more(users, of_users, options, stops):
    algorithm = Fails(users, **options)
    with pytest.raises(FailedAlikeError) if stops else nullcontext() as caught:
        result = run(algorithm, of_users, fail_fast=True)
    if stops:
        assert f"after 3 of {of_users} users: all 15 fits" in str(caught.value)
        if algorithm.error is KeyError:
            assert "KeyError: 'stability'" in str(caught.value)
            assert f"{__file__.rpartition('/')[2]}:" in str(caught.value)
        result = run(algorithm, of_users)
    is_skipped = algorithm.error is FitSkipped
    assert {fit.user for fit in result.fitted if fit.status != "ok"} == set(users)
    assert result.facts.users == of_users - len(users)
    assert (result.facts.skipped if is_skipped else result.facts.failed) == 5 * len(users)


def test_the_last_frames_of_the_plug_in_are_found_in_a_traceback():
    (fit, *_) = run(Fails(), 1).fitted
    frames = own_frames(fit.traceback)
    assert [frame.function for frame in frames] == ["fit", "state"]
    assert frames[0].source == "return self.state(len(rows))"


def test_a_slow_fit_fails_and_ends_the_fits_of_its_user_and_the_use_of_its_process(monkeypatch):
    monkeypatch.setattr(limits._spoiled, "is_set", lambda: False)
    result = run(Fails((2,), seconds=60), 2, timeout=0.5)
    limits._spoiled.clear()
    slow, *others = [fit for fit in result.fitted if fit.user == 2]
    assert slow.status == "failed"
    assert "fit_timeout=0.5" in slow.reason
    assert own_frames(slow.traceback)[-1].function == "fit"
    assert len(others) == 4
    assert {fit.status for fit in others} == {"failed"}
    assert result.facts.users == 1


def test_a_fit_that_returns_after_its_time_fails_too(monkeypatch):
    monkeypatch.setattr(limits, "_can_interrupt", lambda: False)
    with pytest.raises(limits.FitTimeoutError), FitLimits(timeout=0.01).applied(1, 0):
        time.sleep(0.02)
    assert limits.process_is_spoiled()
    limits._spoiled.clear()


def test_a_long_fit_is_reported_with_its_user(monkeypatch, capsys):
    monkeypatch.setattr(limits, "_FIRST_REPORT", 0.05)
    monkeypatch.setattr(limits, "_SECONDS_BETWEEN_LOOKS", 0.01)
    monkeypatch.setattr(limits, "_reporter", limits._Reporter())
    with FitLimits(report=True).applied("ann", 3):
        time.sleep(0.4)
    lines = capsys.readouterr().err.splitlines()
    assert 1 < len(lines) < 6  # each after twice the time of the one before
    assert all("ann" in line for line in lines)
    assert all(line.endswith(", 0 s of CPU time") for line in lines)  # it only waited
    with FitLimits(report=True).applied("ben", 0):
        time.sleep(0.15)
    assert "user ben, fold 0" in capsys.readouterr().err
    assert limits._reporter._thread.daemon  # no run waits for it at its end


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_the_timer_of_another_program_goes_on_after_a_fit_and_no_pause_loses_it():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with FitLimits(timeout=60).applied(1, 0):
            with limits.paused():
                assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
            assert 59 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
            time.sleep(0.02)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.08
        time.sleep(0.15)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(rung) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
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
    assert not limits.process_is_spoiled()


def test_a_resumed_run_that_is_stopped_keeps_the_users_who_were_done(tmp_path):
    source = SyntheticUsers(users=5, size_scale=0.02)
    experiment = Experiment(Fails((1, 2, 3)), source, SrsBenchmark(), PANEL, curves_per_user=0)
    kept = KeptParts(tmp_path / PARTS, "settings code")
    kept.open(resume=False, chunk=1)
    chunks = cut(source.users(), 1)
    evaluate_chunks(experiment, chunks[3:], Serial(), kept)
    options = RunOptions(
        tmp_path, Serial(), NoTracker(), resume=True, limits=FitLimits(fail_fast=True)
    )
    plan = Plan(experiment, RunDescription("fails", "synthetic", "fails"), options)
    with pytest.raises(FailedAlikeError):
        job._evaluated(plan, chunks, kept, 5)
    # those that failed are evaluated again
    assert [kept.users_if_whole(chunk) is not None for chunk in chunks] == [False] * 3 + [True] * 2

"""Fits that raise, that take too long, and runs in which all fits fail alike."""

import signal
import time
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
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
from srs_eval.metrics.panel import full_panel
from srs_eval.nouns import Algorithm
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.kept import KeptParts
from srs_eval.results.parts import PARTS, cut
from srs_eval.text.frames import own_frames
from srs_eval.tracking.nothing import NoTracker


@dataclass(frozen=True)
class Fails(Algorithm):
    """Raises for some users, and learns an average for the others."""

    users: tuple = (1, 2, 3, 4, 5)
    seconds: float = 0

    def fit(self, reviews, rows, rng):
        if reviews.user in self.users:
            time.sleep(self.seconds)
            return _state({"difficulty": len(rows)})
        return Average().fit(reviews, rows, rng)


def _state(state):
    return state["stability"]


def run(algorithm, users=5, **options):
    source = SyntheticUsers(users=users, size_scale=0.05)
    experiment = Experiment(algorithm, source, SrsBenchmark(), full_panel(), curves_per_user=0)
    return evaluate(experiment, limits=FitLimits(**options))


def test_a_run_whose_first_users_all_fail_alike_is_stopped():
    with pytest.raises(FailedAlikeError) as caught:
        run(Fails(), fail_fast=True)
    message = str(caught.value)
    assert "KeyError: 'stability'" in message
    assert f"{__file__.rpartition('/')[2]}:" in message
    assert 'return state["stability"]' in message


@pytest.mark.parametrize(
    ("users", "of_users", "options"),
    [
        ((2, 3, 4, 5), 5, {"fail_fast": True}),
        ((1, 2, 3), 4, {}),
    ],
)
def test_other_runs_are_evaluated_to_their_end(users, of_users, options):
    result = run(Fails(users), of_users, **options)
    assert {fit.user for fit in result.fitted if fit.status == "failed"} == set(users)
    assert result.facts.users == of_users - len(users)


@pytest.mark.parametrize(
    ("users", "of_users", "stops"),
    [
        ((1, 2, 3), 4, True),
        ((1, 2), 4, False),
        ((1, 2, 3), 3, False),  # no user is left to be spared
        ((1, 2, 4), 4, False),
        ((1, 2, 3, 4), 5, True),
    ],
)
def test_three_users_whose_fits_fail_alike_stop_a_run_of_more(users, of_users, stops):
    with pytest.raises(FailedAlikeError) if stops else nullcontext() as caught:
        run(Fails(users), of_users, fail_fast=True)
    if stops:
        assert f"after 3 of {of_users} users: all 15 fits" in str(caught.value)


@pytest.mark.parametrize("kind", [ValueError, KeyError])
def test_fits_that_fail_in_different_ways_stop_no_run(monkeypatch, kind):
    def state(state):
        error = kind if state["difficulty"] % 2 else KeyError
        raise error("of user")

    monkeypatch.setitem(globals(), "_state", state)
    with pytest.raises(FailedAlikeError) if kind is KeyError else nullcontext():
        run(Fails(), 4, fail_fast=True)


def test_the_last_frames_of_the_plug_in_are_found_in_a_traceback():
    (fit, *_) = run(Fails(), 1).fitted
    frames = own_frames(fit.traceback)
    assert [(frame.function, frame.source) for frame in frames] == [
        ("fit", 'return _state({"difficulty": len(rows)})'),
        ("_state", 'return state["stability"]'),
    ]


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
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert 1 < len(lines) < 6  # each after twice the time of the one before
    assert all("ann" in line for line in lines)
    assert all(line.endswith(", 0 s of CPU time") for line in lines)  # it only waited
    with FitLimits().applied("ben", 0):
        assert np.isfinite(time.monotonic())


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_the_timer_of_another_program_goes_on_after_a_fit():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with FitLimits(timeout=60).applied(1, 0):
            time.sleep(0.02)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.08
        time.sleep(0.15)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(rung) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_an_alarm_that_rings_after_the_fit_leaves_no_handler_behind(monkeypatch):
    real, handler = signal.setitimer, lambda *_: None

    def late(which, seconds, interval=0):
        if seconds == 0:
            signal.raise_signal(signal.SIGALRM)
        return real(which, seconds, interval)

    before = signal.signal(signal.SIGALRM, handler)
    monkeypatch.setattr(signal, "setitimer", late)
    try:
        with FitLimits(timeout=60).applied(1, 0):
            pass
        assert signal.getsignal(signal.SIGALRM) is handler
        assert not limits.process_is_spoiled()
    finally:
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Skips(Algorithm):
    """Skips some users, and fails for the others, with an error of srs_eval."""

    users: tuple = ()

    def fit(self, reviews, rows, rng):
        kind = FitSkipped if reviews.user in self.users else FitError
        raise kind(f"{len(rows)} reviews are too few")


def test_fits_that_are_skipped_stop_no_run_and_fit_errors_do():
    with pytest.raises(FailedAlikeError):
        run(Skips((1, 2)), 6, fail_fast=True)
    result = run(Skips((1, 2, 3, 4)), 5, fail_fast=True)
    assert (result.facts.skipped, result.facts.failed) == (20, 5)


@pytest.mark.slow
def test_a_resumed_run_that_is_stopped_keeps_the_users_who_were_done(tmp_path):
    source = SyntheticUsers(users=5, size_scale=0.02)
    experiment = Experiment(
        Fails((1, 2, 3)), source, SrsBenchmark(), full_panel(), curves_per_user=0
    )
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

"""An experiment evaluated in Python, fits that fail or take too long, and what is reported."""

import importlib
import math
import re
import signal
import time
from dataclasses import dataclass, fields
from functools import partial
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from invented import Logs
from tqdm import tqdm

from srs_eval.algorithms.baselines import Average
from srs_eval.compute.processes import Processes
from srs_eval.compute.serial import Serial
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import FailedAlikeError, FitError, FitSkipped, ReviewLogError
from srs_eval.evaluation import limits
from srs_eval.evaluation.limits import FitLimits
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Algorithm, Predictions
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.kept import KeptParts
from srs_eval.results.parts import PARTS, cut
from srs_eval.run import job
from srs_eval.run.description import (
    NUMBERS_DEPEND_ON,
    RunDescription,
    _code_hash,
    config_hash,
)
from srs_eval.run.evaluate import Evaluation, evaluate
from srs_eval.run.experiment import Experiment
from srs_eval.run.plan import Job
from srs_eval.run.watching import RunningMeans, step_callback
from srs_eval.text.frames import own_frames
from srs_eval.tracking.tracker import NoTracker

PANEL = Panel([LogLoss()])


@pytest.fixture
def experiment(logs_of):
    return partial(Experiment, source=logs_of(1, 2), protocol=SrsBenchmark(), panel=PANEL)


def test_nothing_is_printed_and_progress_goes_to_the_bar_that_is_given(experiment, capfd):
    bars = []

    def bar(**options):
        bars.append(tqdm(**options, file=StringIO()))
        return bars[-1]

    evaluate(experiment(Average()), progress=bar)
    assert [(bar.n, bar.total) for bar in bars] == [(10, 10)]
    evaluate(experiment(Average()))
    assert capfd.readouterr() == ("", "")


def test_some_users_can_be_chosen_and_evaluated_elsewhere(experiment):
    whole = evaluate(experiment(Average()))
    other = evaluate(experiment(Average()), [2], compute=Processes(workers=1))
    assert other.complete == (2,)
    assert other.by_user.values.tolist() == whole.by_user.values[1:].tolist()


def test_each_log_is_read_once_and_a_source_without_users_is_refused(experiment):
    class Counting(Logs):
        reads = []

        def read(self, user):
            self.reads.append(user)
            return super().read(user)

    source = Counting(experiment(Average()).source.logs)
    evaluate(experiment(Average(), source=source))
    assert source.reads == [1, 2]
    with pytest.raises(ReviewLogError):
        evaluate(experiment(Average(), source=Logs({})))


def test_the_digest_is_of_the_configuration_of_an_experiment():
    renamed = {"algorithm": "algo", "source": "data"}
    assert tuple(renamed.get(f.name, f.name) for f in fields(Experiment)) == NUMBERS_DEPEND_ON
    content = dict.fromkeys(NUMBERS_DEPEND_ON, 1)
    assert config_hash({**content, "notes": "x"}) == config_hash(content)
    assert config_hash({**content, "seed": 2}) != config_hash(content)


def test_the_digest_of_the_code_is_of_the_files_of_what_is_used(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package, own = tmp_path / "of_a_plug_in", _code_hash([], [])
    package.mkdir()
    (package / "model.py").write_text("from of_a_plug_in.base import Base\nclass Mine(Base): ...\n")
    found = set()
    for content in ("1", "2"):
        (package / "base.py").write_text(f"class Base:\n    number = {content}\n")
        model = importlib.import_module("of_a_plug_in.model")
        found |= {
            _code_hash([model.Mine(), Average()], []),
            _code_hash([], ["of_a_plug_in.model.Mine"]),
        }
    # of an object, its own file; of what an option names, also those of its bases
    assert len({own, *found}) == 4
    assert _code_hash([Average()], ["of_nothing.Mine"]) == own


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


def synthetic(algorithm, users=5):
    source = SyntheticUsers(users=users, size_scale=0.02)
    return Experiment(algorithm, source, SrsBenchmark(), PANEL, curves_per_user=0)


def run(algorithm, users=5, **options):
    return evaluate(synthetic(algorithm, users), limits=FitLimits(**options))


ERRORS = {each.__name__: each for each in (KeyError, ValueError, FitError, FitSkipped)}


def test_three_users_whose_fits_fail_alike_stop_a_run_of_more(transcript):
    def told_by(users, of_users, error="KeyError", of_odd=""):
        given = tuple(map(int, users.split(",")))
        algorithm = Fails(given, error=ERRORS[error], of_odd=ERRORS[of_odd or error])
        told = ""
        try:
            run(algorithm, int(of_users), fail_fast=True)
        except FailedAlikeError as caught:
            told = re.sub(
                r"\S*(test_evaluate\.py):\d+", r"\1", str(caught).partition("Traceback")[0]
            )
            told = told.rstrip() + "\n"
        result = run(algorithm, int(of_users))
        assert {fit.user for fit in result.fitted if fit.status != "ok"} == set(given)
        facts = result.facts
        return f"{told}users {facts.users}, failed {facts.failed}, skipped {facts.skipped}\n"

    transcript("failed_alike", told_by)


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


def test_a_resumed_run_that_is_stopped_keeps_the_users_who_were_done(tmp_path):
    experiment = synthetic(Fails((1, 2, 3)))
    kept = KeptParts(tmp_path / PARTS, "settings code")
    kept.open(resume=False, chunk=1)
    chunks = cut(experiment.source.users(), 1)
    Evaluation(experiment, chunks[3:], kept).run()
    resumed = Job(
        experiment,
        RunDescription("fails", "synthetic", "fails"),
        tmp_path,
        Serial(),
        NoTracker(),
        resume=True,
        limits=FitLimits(fail_fast=True),
    )
    with pytest.raises(FailedAlikeError):
        job._evaluated(resumed, chunks, kept, 5)
    # those that failed are evaluated again
    assert [kept.users_if_whole(chunk) is not None for chunk in chunks] == [False] * 3 + [True] * 2


def test_means_of_the_first_users_are_reported_in_order_however_they_end():
    told = []
    watch = SimpleNamespace(
        metric="log_loss", report=lambda step, value: told.append((step, value))
    )
    chunks = [SimpleNamespace(users=users) for users in (("a", "b"), ("c",), ("d", "e"))]
    means = RunningMeans.of(watch, chunks)
    assert means.metric == "log_loss"
    means.add(("c",), (6.0,))
    means.add(("d", "e"), (math.nan, 1.0))
    assert told == []
    means.add(("a", "b"), (math.nan, 2.0))
    assert told == [(2, 2.0), (3, 4.0), (4, 4.0), (5, 3.0)]
    assert RunningMeans.of(None, chunks) is None
    watch.report = None
    assert RunningMeans.of(watch, chunks) is None


@pytest.mark.parametrize(
    ("has_steps", "users", "folds", "reports"),
    [(True, 1, 1, True), (False, 1, 1, False), (True, 2, 1, False), (True, 1, 2, False)],
)
def test_steps_are_reported_of_the_only_fit_there_is(has_steps, users, folds, reports):
    kind = type("InSteps", (Average,), {"fit_in_steps": Average.fit}) if has_steps else Average
    protocol = SimpleNamespace(folds=folds)
    experiment = SimpleNamespace(algorithm=kind(), panel=default_panel(), protocol=protocol)
    told = []
    watch = SimpleNamespace(metric="auc", report=lambda *step: told.append(step))
    on_step = step_callback(watch, experiment, users)
    assert (on_step is not None) == reports
    if on_step is not None:
        rows = np.arange(4)
        p, recalled = np.array([0.9, 0.4, 0.6, 0.5]), rows != 3
        on_step(7, Predictions(("ann",), rows * 0, rows * 0, rows, rows, p=p, recalled=recalled))
        assert told == [(7, 2 / 3)]
    watch.report = None
    assert step_callback(watch, experiment, users) is None
    assert step_callback(None, experiment, users) is None


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
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert not limits.process_is_spoiled()

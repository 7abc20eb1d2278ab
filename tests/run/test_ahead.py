"""Jobs of a sweep, of which each begins before the last one has ended."""

import time
from functools import partial

import pytest
from commands import QUIET, SMALL, outcome_of, summary_of
from hydra.experimental.callback import Callback
from work import kills_its_worker

from srs_eval import results
from srs_eval.errors import ConfigError, SrsEvalError, TrackingError
from srs_eval.run.drawing import NAMES, Drawing
from srs_eval.tracking.tracker import NoTracker

FOUR = ("-m", "algo=avg,constant,sm2,hlr", *SMALL, *QUIET, "panel=quick", "hydra.sweep.dir=out")
IN_TURNS = "+0_avg +1_constant +2_sm2 -0_avg +3_hlr -1_constant -2_sm2 -3_hlr"
ONE_BY_ONE = "+0_avg -0_avg +1_constant -1_constant +2_sm2 -2_sm2 +3_hlr -3_hlr"


def announced(done):
    return [line.split()[1] for line in done.out.splitlines() if line[:9] == "algorithm"]


@pytest.fixture
def seen(monkeypatch):
    """Yield the begins and ends of runs, by the names of their folders."""
    events, folders = [], {}

    def start(tracker, run):
        folders[id(tracker)] = run.folder.name
        events.append(f"+{run.folder.name}")

    def finish(tracker, status):
        events.append(f"-{folders[id(tracker)]}{' killed' * (status == 'killed')}")

    monkeypatch.setattr(NoTracker, "start", start)
    monkeypatch.setattr(NoTracker, "finish", finish)
    return events


@pytest.mark.parametrize(
    ("words", "order"),
    [
        ((), IN_TURNS),
        (("compute=processes",), IN_TURNS),
        ((f"+hydra.callbacks.none._target_={Callback.__module__}.Callback",), ONE_BY_ONE),
        (("hydra.sweep.subdir=same",), "+same -same " * 3 + "+same -same"),
    ],
    ids=str,
)
def test_a_job_begins_before_the_last_one_ends_where_that_changes_nothing(here, seen, words, order):
    done = here(*FOUR, *words)
    assert (done.status, " ".join(seen)) == (0, order), done.err
    assert announced(done) == ["avg", "constant", "sm2", "hlr"]


def test_a_job_is_evaluated_while_the_results_of_the_last_one_are_saved(here, monkeypatch):
    save, evaluated = results.save, []

    def save_late(result, folder):
        users = here.folder / "out" / "1_constant" / "parts" / "users"
        until = time.monotonic() + 60
        while folder.name == "0_avg" and not evaluated and time.monotonic() < until:
            evaluated[:] = users.glob("*.parquet")
            time.sleep(0.01)
        return save(result, folder)

    monkeypatch.setattr(results, "save", save_late)
    assert here(*FOUR).status == 0
    assert evaluated


@pytest.mark.slow
def test_figures_of_a_sweep_are_those_of_a_run(here):
    words = [*FOUR[2:-1], "algo=session_filter", "curves_per_user=20", "figures=true"]
    assert here(*words, "hydra.run.dir=alone").status == 0
    assert here("-m", *words, "hydra.sweep.dir=out", "seed=2026,1").status == 0
    alone, of_sweep = (
        {file.name: file.read_bytes() for file in (here.folder / place / "figures").iterdir()}
        for place in ("alone", "out/0_session_filter")
    )
    assert len(alone) >= 10
    assert of_sweep == alone


def test_what_stops_a_worker_that_draws_is_told(tmp_path):
    with pytest.raises(ConfigError, match=f"{tmp_path}.*summary.json"):
        Drawing(tmp_path, "", {}).elsewhere()
    dying = partial(kills_its_worker, [NAMES[::2], NAMES[1::2]])
    with pytest.raises(SrsEvalError, match="its worker process died"):
        Drawing.elsewhere(dying)


def test_a_job_whose_turn_does_not_come_is_recorded_as_interrupted(here, seen, monkeypatch):
    def interrupted(result, folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(results, "save", interrupted)
        done = here(*FOUR)
    assert done.status == 130
    assert done.err.count("interrupted") == 1
    begun = ["0_avg", "1_constant", "2_sm2"]
    assert seen == [f"+{name}" for name in begun] + [f"-{name} killed" for name in begun]
    for name in begun:
        assert outcome_of(here.folder / "out" / name)["status"] == "interrupted"
    assert not (here.folder / "out" / "3_hlr").exists()
    done = here(*FOUR, "resume=true")
    assert done.status == 0
    assert done.out.count("2 of 2 users were done before") == 3


def test_a_job_that_waits_for_none_is_announced_before_its_run_is_opened(here, monkeypatch):
    def unreachable(tracker, run):
        raise TrackingError("no store")

    monkeypatch.setattr(NoTracker, "start", unreachable)
    done = here(*FOUR)
    assert done.status == 1
    assert announced(done) == ["avg", "constant", "sm2", "hlr"]


def test_a_job_that_fails_before_its_turn_costs_no_other(here, seen):
    done = here(*FOUR, "seed=1,-1", "algo=avg")
    assert done.status == 2
    assert " ".join(seen) == "+0_avg -0_avg"
    ended = [outcome_of(here.folder / "out" / name) for name in ("0_avg", "1_avg")]
    assert [(each["status"], each["exit_status"]) for each in ended] == [("ok", 0), ("failed", 2)]
    assert summary_of(here.folder / "out" / "0_avg")["users"] == 2

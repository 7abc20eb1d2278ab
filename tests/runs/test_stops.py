"""Ctrl-C and SIGTERM in the middle of a fit, of a sweep, of a query, and of logging."""

import signal
import sqlite3
import sys
from contextlib import closing
from os import cpu_count, getloadavg
from pathlib import Path

import pytest
from sessions import (
    NO_STORE,
    PLUG,
    PROCESSES,
    RUN,
    SMALL,
    USERS,
    Command,
    assert_one_run_each,
    assert_same,
    fits,
    run,
    store_of,
    undisturbed,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
each_signal = pytest.mark.parametrize("number", STATUS)


def assert_stopped(command, number):
    """Stop a command; it ends soon with the status that shells expect, and says it in lines."""
    soon = 2 * max(1, getloadavg()[0] / cpu_count())
    assert command.stop(number) < soon
    command.ended(STATUS[number]).gone()


@pytest.mark.parametrize(
    ("words", "way", "number"),
    [
        ((), "hang", signal.SIGINT),
        (PROCESSES, "hold", signal.SIGTERM),
        pytest.param((), "hang", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(PROCESSES, "hold", signal.SIGINT, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_command_that_is_stopped_in_a_fit_ends_and_goes_on_when_it_is_repeated(
    tmp_path, words, way, number
):
    words = (*RUN, *words, NO_STORE, "hydra.run.dir=out")
    stopped = Command(tmp_path, *words, ways={"3": way}).until_fitted(2)
    assert_stopped(stopped, number)
    again = run(tmp_path, *words)
    assert len(fits(tmp_path, again.began)) < USERS
    assert_same(tmp_path / "out", undisturbed(*RUN))


@pytest.mark.nightly
@each_signal
def test_a_sweep_that_is_stopped_has_one_run_per_job_in_the_end(tmp_path, number):
    words = (*RUN, "-m", "algo.factor=1,0.9,0.8", "hydra.sweep.dir=out")
    stopped = Command(tmp_path, *words, seconds=0.05).until_fitted(USERS + 2)
    assert_stopped(stopped, number)
    assert "the same command with hydra.sweep.dir=out goes on" in stopped.text
    run(tmp_path, *words)
    assert_same(tmp_path / "out", undisturbed(*words[:-1]))
    assert_one_run_each(store_of(tmp_path), 3)


@pytest.mark.nightly
@each_signal
def test_a_command_that_is_stopped_while_it_logs_ends_and_logs_when_it_is_repeated(
    tmp_path, number
):
    run(tmp_path, *RUN, "hydra.run.dir=first")
    command = Command(tmp_path, *RUN, "hydra.run.dir=out").until_fitted(0)
    with closing(sqlite3.connect(tmp_path / "mlflow.db", timeout=30)) as other:
        other.execute("begin immediate")
        command.until((tmp_path / "out" / "summary.json").exists)
        assert_stopped(command, number)
        other.rollback()
    again = run(tmp_path, *RUN, "hydra.run.dir=out")
    assert not fits(tmp_path, again.began)
    assert_one_run_each(store_of(tmp_path), 2)


@pytest.mark.slow
@each_signal
def test_a_query_is_stopped(tmp_path, number):
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select x as card, "
    query = f"data.query='{endless} 3 as rating, x as time from n where x < 0'"
    with closing(sqlite3.connect(tmp_path / "log.db")) as log:
        log.execute("create table revlog (id integer)")
    words = (*PLUG, *SMALL, "data=sql", query, "data.path=log.db", NO_STORE, "hydra.run.dir=out")
    command = Command(tmp_path, *words).until((tmp_path / "out" / "job.json").exists)
    cpu = Path(f"/proc/{command.pid}/stat")
    begun = int(cpu.read_text().split()[13])  # hundredths of a second of its own
    command.until(lambda: int(cpu.read_text().split()[13]) > begun + 200)
    assert_stopped(command, number)

"""Commands that are killed or stopped, and go on when they are repeated."""

import json
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from sessions import (
    FOLDS,
    JOBS,
    NO_STORE,
    PLUG,
    PROCESSES,
    RUN,
    SMALL,
    STOPPED,
    USERS,
    Command,
    assert_one_run_each,
    assert_same,
    fits,
    jobs,
    run,
    store_of,
    to,
    undisturbed,
)

SEARCH = ("-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=3", "protocol=validation")
# The words of a command, and those that change nothing of its numbers.
KINDS = {
    "serial": ((), ()),
    "processes": ((), PROCESSES),
    "ray": ((), ("compute=ray",)),
    "sweep": (JOBS, ()),
    "sweep in processes": (JOBS, PROCESSES),
    "joblib": (JOBS, ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")),
    "search": ((*SEARCH, "algo.factor=interval(0.8,1)"), ()),
}
# What happens to which of them, when so many users are fitted.
QUICK = [
    *(("serial", "group", 3), ("processes", "parent", 4), ("processes", "worker", 4)),
    *(("serial", signal.SIGINT, 3), ("processes", signal.SIGTERM, 4)),
]
SLOW = [
    *(("serial", signal.SIGTERM, 3), ("processes", signal.SIGINT, 4)),
    ("sweep", "group", USERS + 2),
]
LONG = [
    *(("serial", "parent", 3), ("processes", "group", 4), ("sweep", "parent", 3)),
    *(("sweep in processes", "parent", 4), ("sweep in processes", "worker", USERS + 3)),
    *(("joblib", "group", 5), ("joblib", "parent", 5), ("search", "parent", 2 * USERS + 2)),
    *(("sweep", signal.SIGINT, 3), ("sweep", signal.SIGTERM, 3)),
    *(("ray", "worker", 4), ("ray", "parent", 4)),
]


@pytest.mark.parametrize(
    ("kind", "end", "users"),
    [
        *QUICK,
        *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in LONG),
    ],
)
def test_a_command_that_is_killed_or_stopped_goes_on_with_the_users_that_are_left(
    tmp_path, kind, end, users
):
    what, how = KINDS[kind]
    expected, words = undisturbed(*RUN, *what), (*RUN, *what, *how, NO_STORE, *to("out", what))
    # the fit of a user takes long, perhaps in code that holds the interpreter
    ways = {"4": "hang" if kind == "serial" else "hold"} if users in (3, 4) else {}
    ways = {} if end == "worker" else ways
    first = Command(tmp_path, *words, seconds=0.06, ways=ways).until_fitted(users)
    every = USERS * len(jobs(expected))
    if end == "worker":  # the command itself goes on, and its user is fitted again
        first.kill(end)
        first.ended()
        assert 0 < fits(tmp_path).total() - every * FOLDS <= FOLDS
    else:
        first.stop(end) if end in STOPPED else first.kill(end)
        first.gone()
        ends = [json.loads(file.read_bytes()) for file in (tmp_path / "out").rglob("job.json")]
        assert (end in STOPPED) == any(each["status"] == "interrupted" for each in ends)
        pickles = [file for file in (tmp_path / "out").rglob("*") if file.suffix == ".pkl"]
        assert {file.parents[1].name for file in pickles} == {"checkpoint"}
        done = len(pickles) + USERS * len(jobs(tmp_path / "out"))
        again = run(tmp_path, *words)
        assert len(fits(tmp_path, again.began)) == every - done
    assert_same(tmp_path / "out", expected)


@pytest.mark.slow
@pytest.mark.parametrize("number", STOPPED)
def test_a_query_is_stopped(tmp_path, number):
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select x as card, "
    query = f"data.query='{endless} 3 as rating, x as time from n where x < 0'"
    with closing(sqlite3.connect(tmp_path / "log.db")) as log:
        log.execute("create table revlog (id integer)")
    words = (*PLUG, *SMALL, "data=sql", query, "data.path=log.db", NO_STORE, *to("out"))
    command = Command(tmp_path, *words).until((tmp_path / "out" / "job.json").exists)
    cpu = Path(f"/proc/{command.pid}/stat")
    begun = int(cpu.read_text().split()[13])  # hundredths of a second of its own
    command.until(lambda: int(cpu.read_text().split()[13]) > begun + 50)
    command.stop(number)


def end_and_repeat(random, folder, longest=15):
    """Kill or stop a command at up to three moments, and hold what comes of it at last."""
    what, how = KINDS[random.choice([kind for kind in KINDS if kind != "ray"])]
    words = (*RUN, *what, *how, *to("out", what), *random.choice(((), (NO_STORE,))))
    for _ in range(random.randint(1, 3)):
        command = Command(folder, *words, seconds=random.choice((0, 0.1)))
        until = time.time() + random.uniform(0, longest)
        while command.status is None and time.time() < until:
            time.sleep(0.01)
        if random.random() < 0.5:
            command.kill(random.choice(("group", "parent")))
        elif command.status is None:
            command.stop(random.choice([*STOPPED]), has_begun=False)
        command.gone()
    run(folder, *words)
    assert_same(folder / "out", undisturbed(*RUN, *what))
    if NO_STORE not in words:
        assert_one_run_each(store_of(folder), len(jobs(folder / "out")))


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(20))
def test_a_kill_at_any_moment_loses_nothing(tmp_path, number):
    end_and_repeat(Random(number), tmp_path)

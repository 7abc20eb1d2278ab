"""Runs, sweeps and searches that are killed or stopped, and go on when the command is repeated."""

import sys
import time
from random import Random

import pytest
from sessions import (
    NO_STORE,
    RUN,
    USERS,
    Command,
    assert_one_run_each,
    assert_same,
    finished,
    fits,
    run,
    store_of,
    to,
    undisturbed,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
PROCESSES = ("compute=processes", "compute.workers=2")
WORDS = {
    "serial": RUN,
    "processes": (*RUN, *PROCESSES),
    "sweep": (*RUN, "-m", "algo.factor=1,0.9"),
    "sweep in processes": (*RUN, *PROCESSES, "-m", "algo.factor=1,0.9"),
    "joblib": (
        *(*RUN, "-m", "algo.factor=1,0.9"),
        *("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    ),
    "search": (
        *(*RUN, "-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=3", "protocol=validation"),
        "algo.factor=interval(0.8,1)",
    ),
    "ray": (*RUN, "compute=ray"),
}
SLOW = {"seconds": 0.06}


def kill_and_repeat(folder, words, whom, moment, *, tracked=False):
    """Kill a command at a moment, repeat it, and hold it against an undisturbed one."""
    words = (*words, *to("out", words))
    expected = undisturbed(*words[:-1])
    tracking = () if tracked else (NO_STORE,)
    first = Command(folder, *words, *tracking, **SLOW)
    moment(first)
    done, before = finished(folder), fits(folder)
    first.kill(whom)
    if whom == "worker":  # the command itself goes on
        first.ended()
        after = fits(folder)
        assert [user for user in done if after[user] > before[user]] == []
    else:
        killed = time.time()
        if whom == "parent":
            first.gone()
        run(folder, *words, *tracking)
        assert not done & fits(folder, killed).keys()
    assert_same(folder / "out", expected)
    if tracked:
        assert_one_run_each(store_of(folder), len(list((folder / "out").rglob("summary.json"))))


QUICK = [("serial", "group", 3)]
SLOW_CASES = [
    *(("processes", "parent", 2), ("processes", "worker", 3)),
    *(("sweep", "group", USERS + 2), ("search", "parent", 2 * USERS + 2)),
]
LONG = [
    *(("serial", "parent", 3), ("processes", "group", 3), ("sweep", "parent", USERS + 2)),
    *(("sweep in processes", "parent", 3), ("sweep in processes", "worker", USERS + 2)),
    *(("joblib", "group", 5), ("joblib", "parent", 5), ("search", "group", USERS + 2)),
    *(("ray", "worker", 2), ("ray", "parent", 2)),
]


@pytest.mark.parametrize(
    ("kind", "whom", "users"),
    [
        *QUICK,
        *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW_CASES),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in LONG),
    ],
)
def test_a_command_that_is_killed_goes_on_with_the_users_that_are_left(tmp_path, kind, whom, users):
    def moment(command):
        command.until_fitted(users)
        time.sleep(0.1)

    kill_and_repeat(tmp_path, WORDS[kind], whom, moment)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(20))
def test_a_kill_at_any_moment_loses_nothing(tmp_path, number):
    random = Random(number)
    kinds = ("serial", "processes", "sweep", "sweep in processes", "joblib", "search")
    kind = kinds[number % len(kinds)]
    words = WORDS[kind]
    other = tmp_path / "undisturbed"
    other.mkdir()
    whole = run(other, *words, *to("out", words), **SLOW)  # how long it takes here
    seconds = random.uniform(0.2, 1) * (time.time() - whole.began)

    def moment(command):
        while command.poll() is None and time.time() - command.began < seconds:
            time.sleep(0.01)

    kill_and_repeat(tmp_path, words, random.choice(("group", "parent")), moment, tracked=True)

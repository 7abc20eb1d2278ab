"""Runs, sweeps and searches that are killed or stopped, and go on when the command is repeated."""

import signal
import subprocess
import sys
import time
from random import Random

import pytest
from sessions import (
    NO_STORE,
    PROCESSES,
    RUN,
    USERS,
    Command,
    assert_one_run_each,
    assert_same,
    finished,
    fits,
    jobs,
    run,
    store_of,
    to,
    undisturbed,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
JOBS = ("-m", "algo.factor=1,0.9")
SEARCH = ("-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=3", "protocol=validation")
WORDS = {
    "serial": RUN,
    "processes": (*RUN, *PROCESSES),
    "sweep": (*RUN, *JOBS),
    "sweep in processes": (*RUN, *PROCESSES, *JOBS),
    "joblib": (*RUN, *JOBS, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "search": (*RUN, *SEARCH, "algo.factor=interval(0.8,1)"),
    "ray": (*RUN, "compute=ray"),
}
SLOW = [
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
        ("serial", "group", 3),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in LONG),
    ],
)
def test_a_command_that_is_killed_goes_on_with_the_users_that_are_left(tmp_path, kind, whom, users):
    words = (*WORDS[kind], NO_STORE, *to("out", WORDS[kind]))
    first = Command(tmp_path, *words, seconds=0.06).until_fitted(users)
    time.sleep(0.1)
    done, before = finished(tmp_path), fits(tmp_path)
    first.kill(whom)
    if whom == "worker":  # the command itself goes on
        first.ended()
        after = fits(tmp_path)
        assert [user for user in done if after[user] > before[user]] == []
    else:
        killed = time.time()
        if whom == "parent":
            first.gone()
        run(tmp_path, *words)
        assert not done & fits(tmp_path, killed).keys()
    assert_same(tmp_path / "out", undisturbed(*WORDS[kind]))


def end_and_repeat(random, folder, longest=15):
    """Kill or stop a command at up to three moments, and hold what comes of it at last."""
    plain = WORDS[random.choice([kind for kind in WORDS if kind != "ray"])]
    words = (*plain, *to("out", plain), *random.choice(((), (NO_STORE,))))
    for _ in range(random.randint(1, 3)):
        command = Command(folder, *words, seconds=random.choice((0, 0.1)))
        until = time.time() + random.uniform(0, longest)
        while command.poll() is None and time.time() < until:
            time.sleep(0.01)
        if random.random() < 0.5:
            command.kill(random.choice(("group", "parent")))
        elif command.poll() is None:
            command.stop(random.choice((signal.SIGINT, signal.SIGTERM)))
        command.gone()
    run(folder, *words)
    assert_same(folder / "out", undisturbed(*plain))
    if NO_STORE not in words:
        assert_one_run_each(store_of(folder), len(jobs(folder / "out")))


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(20))
def test_a_kill_at_any_moment_loses_nothing(tmp_path, number):
    end_and_repeat(Random(number), tmp_path)


WORKER_OF_JOBLIB = """
import multiprocessing.process, sys, time, types
from srs_eval.runs.compute import end_with_launcher
multiprocessing.process._parent_process = types.SimpleNamespace(pid=int(sys.argv[1]))
end_with_launcher()
time.sleep(50)
"""


def test_a_worker_that_begins_when_its_launcher_is_gone_ends():
    launcher = subprocess.Popen(("sleep", "0"))
    launcher.wait()
    command = (sys.executable, "-c", WORKER_OF_JOBLIB, str(launcher.pid))
    assert subprocess.run(command, timeout=40, check=False).returncode == 1

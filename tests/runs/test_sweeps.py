"""Jobs of a sweep are runs of their own: tags, times, ends, memory, names."""

import sys
import time
from pathlib import Path

import pytest
from sessions import DATA, NO_STORE, RUN, SMALL, Command, jobs, numbers, run, runs_in, store_of

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.slow,
]
AVG = ("algo=avg", *DATA, *SMALL)
# What is of one run alone: its place, its times.
OWN = ("mlflow.", "output", "pid", "sweep", "job", "view")


def test_each_job_has_the_tags_of_its_own_run(tmp_path):
    run(tmp_path, *AVG, "-m", "protocol.user_folds=null,2", "hydra.sweep.dir=out")
    of_jobs = [dict(each.data.tags) for each in runs_in(store_of(tmp_path))]
    (tmp_path / "alone").mkdir()
    run(tmp_path / "alone", *AVG, "hydra.run.dir=out")
    run(tmp_path / "alone", *AVG, "protocol.user_folds=2", "hydra.run.dir=other")
    alone = [dict(each.data.tags) for each in runs_in(store_of(tmp_path / "alone"))]
    keys = [{key for key in tags if not key.startswith(OWN)} for tags in (*of_jobs, *alone)]
    assert keys == [keys[0]] * 4
    same = [key for key in keys[0] if "protocol" in key or "hash" in key]
    assert same
    for key in same:
        assert [tags[key] for tags in of_jobs] == [tags[key] for tags in alone], key


def test_jobs_share_no_state(tmp_path):
    """What a model learned in one job helps no other."""
    words = (*RUN, NO_STORE, "-m", "algo.factor=1,0.9", "hydra.sweep.dir=out")
    run(tmp_path, *words, ways={"all": "remember"})
    alone = tmp_path / "alone"
    alone.mkdir()
    run(alone, *RUN, NO_STORE, "algo.factor=0.9", "hydra.run.dir=out", ways={"all": "remember"})
    assert numbers(jobs(tmp_path / "out")["1_watched"]) == numbers(alone / "out")


@pytest.mark.nightly
def test_a_sweep_of_many_jobs_takes_no_more_memory_than_one_of_few(tmp_path):
    small = [word for word in AVG if not word.startswith("data.")]
    words = (*small, "data.users=150", "data.size_scale=0.1", NO_STORE, "-m")
    few, many = (
        peak(Command(tmp_path, *words, f"seed=range({jobs})", f"hydra.sweep.dir=out{jobs}"))
        for jobs in (2, 6)
    )
    assert many < 1.1 * few, (many, few)


def peak(command):
    """Return the most memory that a command and its processes take, shared pages shared out."""
    most = 0
    while command.poll() is None:
        now = 0
        for pid in command.processes:
            try:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except OSError:  # it ended meanwhile
                continue
            now += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        most = max(most, now)
        time.sleep(0.02)
    command.ended()
    return most

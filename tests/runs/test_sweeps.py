"""Jobs of a sweep are runs of their own: tags, state and memory."""

import sys
import time
from pathlib import Path

import pytest
from sessions import DATA, NO_STORE, RUN, SMALL, Command, jobs, numbers, run, runs_in, store_of

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.slow,
]
# What is of one run alone: its place, its times.
OWN = ("mlflow.", "output", "pid", "sweep", "job", "view")


def test_each_job_has_the_tags_of_its_own_run_and_no_state_of_another(tmp_path):
    """What a model learned in one job helps no other."""
    remember = {"ways": {"all": "remember"}}
    run(tmp_path, *RUN, "-m", "algo.factor=1,0.9", "hydra.sweep.dir=out", **remember)
    one, other = (dict(each.data.tags) for each in runs_in(store_of(tmp_path)))
    alone = tmp_path / "alone"
    alone.mkdir()
    run(alone, *RUN, "algo.factor=0.9", "hydra.run.dir=out", **remember)
    assert numbers(jobs(tmp_path / "out")["1_watched"]) == numbers(alone / "out")
    (single,) = (dict(each.data.tags) for each in runs_in(store_of(alone)))
    assert {key for key in single if not key.startswith(OWN)} <= other.keys()
    of_settings = [key for key in single if "protocol" in key or "hash" in key]
    of_jobs = sorted((tags["config_hash"], tags["code_hash"]) for tags in (one, other))
    assert of_settings
    assert (single["config_hash"], single["code_hash"]) in of_jobs
    assert of_jobs[0][0] != of_jobs[1][0]


@pytest.mark.nightly
def test_a_sweep_of_many_jobs_takes_no_more_memory_than_one_of_few(tmp_path):
    data = (DATA[0], "data.users=150", "data.size_scale=0.1")
    words = ("algo=avg", *data, *SMALL, NO_STORE, "-m")
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

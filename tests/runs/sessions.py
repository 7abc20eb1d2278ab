"""Commands in sessions of their own, which can be watched, killed and repeated.

The tests know commands, exit status, processes, the files of a run, and the store as MLflow's
client shows it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
from mlflow import MlflowClient

HERE = Path(__file__).parent
USERS, FOLDS = 6, 5
DATA = ("data=synthetic", f"data.users={USERS}", "data.size_scale=0.02")
SMALL = ("panel=quick", "curves_per_user=10", "figures=false")
NO_STORE = "tracking=none"
PLUG = ("--config-dir=plug", "algo=watched", "check_lookahead=false")
RUN = (*PLUG, *DATA, *SMALL)
PROCESSES = ("compute=processes", "compute.workers=2")
TIME_LIMIT = 240
STARTED = []  # commands of the test that is running
_TABLES = ("scores.parquet", "predictions.parquet", "curves.parquet", "fits.parquet")
_COUNTS = ("users", "reviews", "fits", "failed", "skipped", "fallback", "not_converged")


class Command(subprocess.Popen):
    """A command in a folder that has the plug-in of these tests; what it says goes to a file.

    `seconds` is how long each fit takes at least, and `ways` says how fits fail, by user.
    """

    def __init__(self, folder, *words, seconds=0, ways=None, wrap=(), **variables):
        if not (folder / "plug").exists():
            (folder / "plug" / "algo").mkdir(parents=True)
            option = "_target_: watched.Watched\nfactor: 1.0\n"
            (folder / "plug" / "algo" / "watched.yaml").write_text(option)
            shutil.copy(HERE / "watched.py", folder)
        self.folder, self.began, self.mark = folder, time.time(), uuid.uuid4().hex
        self.said = next(f for n in count() if not (f := folder / f"said_{n}.txt").exists())
        variables |= {"FITS": str(folder / "fits.txt"), "SECONDS": str(seconds), "MARK": self.mark}
        variables |= {"WAYS": json.dumps(ways or {}), "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
        variables |= {"PYTHONPATH": str(HERE.parents[1])}
        words = sorted(words, key=lambda word: not word.startswith("-"))  # flags come first
        with self.said.open("w") as file:
            super().__init__(
                [*wrap, sys.executable, "-m", "srs_eval", *words],
                cwd=folder,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        STARTED.append(self)

    @property
    def text(self):
        """What was said."""
        return self.said.read_text(errors="replace")

    @property
    def processes(self):
        """Live processes that this command has started, also in other sessions, and itself.

        Zombies have no environment; those that Ray starts for itself end by themselves.
        """
        own = {}
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if self.mark.encode() in (place / "environ").read_bytes():
                    own[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ")
        ray = (b"/ray/", b"ray::DashboardAgent", b"ray::RuntimeEnvAgent", b"resource_tracker")
        return [pid for pid, line in own.items() if not any(part in line for part in ray)]

    def until(self, condition):
        """Wait until something is so; it must be before the command ends."""
        while not condition():
            assert self.poll() is None, f"ended first, {self.returncode}: {self.text}"
            assert time.time() - self.began < TIME_LIMIT, self.text
            time.sleep(0.005)
        return self

    def until_fitted(self, users):
        """Wait until so many users are fitted by this command, and the next is begun."""
        return self.until(lambda: len(fits(self.folder, self.began)) > users)

    def kill(self, whom="group"):
        """Kill the whole group, the parent alone, or the worker that began the last fit."""
        if whom == "worker":
            os.kill(_begun(self.folder)[-1][2], signal.SIGKILL)
            return
        with suppress(ProcessLookupError):
            (os.killpg if whom == "group" else os.kill)(self.pid, signal.SIGKILL)
        self.wait(TIME_LIMIT)

    def stop(self, number):
        """Send a signal as a terminal or a scheduler does; return the seconds until the end."""
        (os.killpg if number == signal.SIGINT else os.kill)(self.pid, number)
        began = time.time()
        self.wait(TIME_LIMIT)
        return time.time() - began

    def ended(self, status=0):
        """Wait for the end; it has this status and shows no traceback."""
        try:
            self.wait(TIME_LIMIT)
        finally:
            if self.poll() is None:
                os.killpg(self.pid, signal.SIGKILL)
        assert self.returncode == status, self.text
        assert "Traceback" not in self.text
        return self

    def gone(self, seconds=5):
        """Wait for the end of all its processes."""
        until = time.time() + seconds
        while time.time() < until and self.processes:
            time.sleep(0.05)
        assert not self.processes


def run(folder, *words, status=0, **options):
    """Run a command to its end."""
    return Command(folder, *words, **options).ended(status)


def fits(folder, since=0.0):
    """Count fits by job and user, in the order in which users were begun."""
    return Counter((job, user) for job, user, _, began in _begun(folder) if began >= since)


def finished(folder):
    """Return jobs and users that were finished a moment ago: their process went on to the next."""
    settled = [row for row in _begun(folder) if row[3] < time.time() - 0.3]
    under_way = {pid: (job, user) for job, user, pid, _ in settled}
    return {(job, user) for job, user, pid, _ in settled if under_way[pid] != (job, user)}


def _begun(folder):
    """Return job, user, process and time of each fit that was begun."""
    with suppress(FileNotFoundError):
        rows = map(str.split, (folder / "fits.txt").read_text().splitlines())
        return [(job, user, int(pid), float(began)) for job, user, pid, began in rows]
    return []


def numbers(folder):
    """Read all that a run has found, to the bit; times are not part of it."""
    summary = json.loads((folder / "summary.json").read_text())
    result = {key: summary[key] for key in ("label", "metrics", "coverage", *_COUNTS)}
    for name in _TABLES:
        if (folder / name).exists():  # no curves, of a model that has none
            table = pq.read_table(folder / name)
            names = [column for column in table.column_names if column != "seconds"]
            result[name] = repr(table.select(names).to_pydict())
    return result


def jobs(folder):
    """Return the folders of finished runs in a folder, by their paths in it."""
    folders = [file.parent for file in sorted(folder.rglob("summary.json"))]
    return {str(job.relative_to(folder)): job for job in folders}


def assert_same(folder, expected):
    """Hold runs against those of an undisturbed command; no trace is left of what happened."""
    mine, theirs = jobs(folder), jobs(expected)
    assert mine.keys() == theirs.keys()
    for name, job in mine.items():
        ours, others = numbers(job), numbers(theirs[name])
        assert [part for part in {**ours, **others} if ours.get(part) != others.get(part)] == []
    left = [file.name for file in folder.rglob("*")]
    assert not [name for name in left if name in ("checkpoint", "parts") or "partial" in name]


@cache
def undisturbed(*words):
    """Return the folder of an undisturbed command without a store."""
    folder = Path(tempfile.mkdtemp(prefix="undisturbed_"))
    run(folder, *words, NO_STORE, *to("out", words))
    return folder / "out"


def to(folder, words=()):
    """Return the words that say where results go."""
    kind = "sweep" if "-m" in words else "run"
    return (f"hydra.{kind}.dir={folder}",)


def store_of(folder):
    """Return the address of the store that commands in a folder use if nothing else is said."""
    return f"sqlite:///{folder / 'mlflow.db'}"


def runs_in(uri):
    """Return the runs of a store that are jobs, not those of whole sweeps."""
    client = MlflowClient(uri)
    experiments = [each.experiment_id for each in client.search_experiments()]
    runs = client.search_runs(experiments, max_results=1000)
    return [run for run in runs if "kind" not in run.data.tags]


def assert_one_run_each(uri, names):
    """Hold a store against the jobs that it must have, each once, finished, with its numbers."""
    runs = runs_in(uri)
    assert [run.info.status for run in runs] == ["FINISHED"] * names
    assert all("log_loss" in " ".join(run.data.metrics) for run in runs)

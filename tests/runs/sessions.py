"""Commands in processes of their own, which can be watched, killed and repeated.

The tests know commands, exit status, processes, the files of a run, and the store as MLflow's
client shows it.
"""

import atexit
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from multiprocessing import resource_tracker
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from mlflow import MlflowClient

from srs_eval.__main__ import main
from srs_eval.evaluation import limits

HERE = Path(__file__).parent
USERS, FOLDS = 6, 5
DATA = ("data=synthetic", f"data.users={USERS}", "data.size_scale=0.02")
SMALL = ("panel=quick", "curves_per_user=10", "figures=false")
NO_STORE = "tracking=none"
PLUG = ("--config-dir=plug", "algo=watched", "check_lookahead=false")
RUN = (*PLUG, *DATA, *SMALL)
PROCESSES = ("compute=processes", "compute.workers=2")
JOBS = ("-m", "algo.factor=1,0.9")
TIME_LIMIT = 240
STARTED = []  # commands of the test that is running
STOPPED = {signal.SIGINT: 130, signal.SIGTERM: 143}
_TABLES = ("scores.parquet", "predictions.parquet", "curves.parquet", "fits.parquet")
_COUNTS = ("users", "reviews", "fits", "failed", "skipped", "fallback", "not_converged")


class Command:
    """A command in a folder that has the plug-in of these tests; what it says goes to a file.

    `seconds` is how long each fit takes at least, `ways` says how fits fail, by user, and `room`
    how many bytes a file may have.
    """

    def __init__(self, folder, *words, seconds=0, ways=None, room=None, **variables):
        if sys.platform != "linux":
            pytest.skip("limits and /proc of Linux")
        if not (folder / "plug").exists():
            (folder / "plug" / "algo").mkdir(parents=True)
            option = "_target_: watched.Watched\nfactor: 1.0\n"
            (folder / "plug" / "algo" / "watched.yaml").write_text(option)
            shutil.copy(HERE / "watched.py", folder)
        self.folder, self.began, self.mark = folder, time.time(), uuid.uuid4().hex
        self.said = next(f for n in count() if not (f := folder / f"said_{n}.txt").exists())
        self.said.touch()
        variables |= {"FITS": str(folder / "fits.txt"), "SECONDS": str(seconds), "MARK": self.mark}
        variables |= {"WAYS": json.dumps(ways or {}), "COLUMNS": "80"}
        variables |= {"PYTHONPATH": str(HERE.parents[1])}
        words = sorted(words, key=lambda word: not word.startswith("-"))  # flags come first
        server = multiprocessing.get_context("forkserver")  # has all imports, which take seconds
        about = (folder, self.said, words, variables, room)
        self._process = server.Process(target=_main, args=about)
        self._process.start()
        self.pid = self._process.pid
        with suppress(ProcessLookupError):
            while os.getsid(self.pid) != self.pid:
                time.sleep(0.001)
        STARTED.append(self)

    @property
    def status(self):
        """Exit status; None while it runs."""
        return self._process.exitcode

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
        others = [pid for pid, line in own.items() if not any(part in line for part in ray)]
        return others + [self.pid] * (self.status is None)

    def until(self, condition):
        """Wait until something is so; it must be before the command ends."""
        while not condition():
            assert self.status is None, f"ended first, {self.status}: {self.text}"
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
        self._process.join(TIME_LIMIT)

    def stop(self, number, *, has_begun=True):
        """Stop it as a terminal or a scheduler does: it ends soon, and says in lines why."""
        soon = 2 * max(1, os.getloadavg()[0] / os.cpu_count())
        began = time.time()
        (os.killpg if number == signal.SIGINT else os.kill)(self.pid, number)
        self._process.join(TIME_LIMIT)
        assert time.time() - began < soon
        if has_begun or self.status not in (-number, 0):  # at its ends they are the system's
            self.ended(STOPPED[number]).gone()

    def ended(self, status=0, *, traceback=False):
        """Wait for the end; it has this status, and shows a traceback only of a fit."""
        self._process.join(TIME_LIMIT)
        assert self.status == status, self.text
        assert ("Traceback" in self.text) == traceback, self.text
        return self

    def gone(self, seconds=5):
        """Wait for the end of all its processes."""
        until = time.time() + seconds
        while time.time() < until and self.processes:
            time.sleep(0.05)
        assert not self.processes


def _main(folder, said, words, variables, room):
    """Be the command, as a shell starts it."""
    os.chdir(folder)
    os.environ.update(variables)
    for number in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_APPEND), number)
    if room:
        import resource  # of POSIX

        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    multiprocessing.process._parent_process = None  # it is no worker of anybody
    resource_tracker._resource_tracker._fd = None  # what it leaves behind is its own
    limits._GRACE = 3.0
    sys.path.insert(0, str(folder))
    sys.argv = ["srs_eval", *words]
    os.setsid()
    try:
        main()
    finally:  # as an interpreter ends
        threading._shutdown()
        atexit._run_exitfuncs()


def run(folder, *words, status=0, **options):
    """Run a command to its end."""
    return Command(folder, *words, **options).ended(status)


def fits(folder, since=0.0):
    """Count fits by job and user, in the order in which users were begun."""
    return Counter((job, user) for job, user, _, began in _begun(folder) if began >= since)


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
        kinds = {
            file.suffix or file.name.partition("_")[0] for file in job.rglob("*") if file.is_file()
        }
        assert kinds <= {".json", ".parquet", ".yaml", ".lock", ".log"}
    left = [file.name for file in folder.rglob("*")]
    assert not [name for name in left if name == "checkpoint" or "partial" in name]


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


class Tracker:
    """Tracking that keeps what it is told."""

    told = []

    def parent(self, name, sweep_id, run_id=None):
        self.told.append(("parent", name, run_id))
        return "parent"

    @contextmanager
    def run(self, setup, folder, run_id):
        end = "failed"
        try:
            yield SimpleNamespace(run_id=setup.label, log=lambda *_: None)
            end = "finished"
        finally:
            self.told.append((setup.label, end))

    def has(self, run_id):
        return (run_id, "finished") in self.told

    def log_comparison(self, reports, folder, parent, **about):
        self.told.append((folder.name, parent, about))
        return "where it is kept"

"""The command in processes of its own, which can be watched, signalled and limited."""

import filecmp
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import pyarrow.parquet as pq
from judging import Found

TIME_LIMIT = 180.0
RESULTS = ("scores.parquet", "predictions.parquet", "curves.parquet")
_SUMMARY = ("users", "reviews", "failed", "metrics", "rows_fingerprint", "data_fingerprint")
_PIPE = 1_000_000  # bytes: what a run prints is read at its end


class Run(subprocess.Popen):
    """One run of ``python -m srs_eval`` in a session of its own."""

    def __init__(self, folder, words):
        self.words, self.began, self.output = words, time.monotonic(), ""
        # One thread: cases are many, processors are few.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
        environment.pop("MLFLOW_TRACKING_URI", None)
        super().__init__(
            [sys.executable, "-m", "srs_eval", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pipesize=_PIPE,
            errors="replace",
        )

    def wait_until(self, condition, limit=TIME_LIMIT):
        """Wait for something to happen, for the end of the run, or for the time to be up."""
        while self.poll() is None and time.monotonic() - self.began < limit and not condition():
            time.sleep(0.001)

    def signalled(self, number, *, everyone):
        """Send a signal, to the session as a terminal does or to one process, if it goes on."""
        if self.poll() is not None:
            return False
        with suppress(ProcessLookupError):
            (os.killpg if everyone else os.kill)(self.pid, number)
        return True

    def ended(self, limit=TIME_LIMIT, *, may_show_traceback=False):
        """Wait for the end and return the status, unless it hangs or shows a Python error.

        What is left of its session, such as workers on their way out, is ended, too.
        """
        try:
            self.wait(limit)
        except subprocess.TimeoutExpired:
            raise Found("hang", " ".join(self.words)) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.output, _ = self.communicate()
        if "Traceback (most recent call last)" in self.output and not may_show_traceback:
            raise Found("traceback", " ".join(self.words), self.output[-400:])
        return self.returncode


def different(found, reference):
    """Return the result files of a folder that differ from those of another."""
    names = [name for name in RESULTS if any((at / name).exists() for at in (found, reference))]
    equal, _, _ = filecmp.cmpfiles(found, reference, names, shallow=False)
    problems = [f"{name} differs or is in one of them" for name in names if name not in equal]
    try:
        here, there = (
            json.loads((folder / "summary.json").read_text("utf-8"))
            for folder in (found, reference)
        )
    except OSError as error:
        return [*problems, str(error)]
    problems += [f"{key} differs" for key in _SUMMARY if here[key] != there[key]]
    rows = pq.read_metadata(found / "predictions.parquet").num_rows
    if rows != here["reviews"]:
        problems.append(f"{rows} predictions of {here['reviews']} scored reviews")
    return [*problems, *["checkpoint/ is left over"] * (found / "checkpoint").exists()]


def broken_store(database, *, finished):
    """Return the problems of a tracking store that no process uses any more."""
    if not database.is_file():
        return ["there is no store"]
    bare = "status = 'FINISHED' and run_uuid not in (select run_uuid from latest_metrics)"
    expected = {
        "pragma integrity_check": "ok",
        "select count(*) from runs where status = 'RUNNING'": 0,
        "select count(*) from runs where status = 'FINISHED'": finished,
        f"select count(*) from runs where {bare}": 0,
        "select count(*) - count(distinct name) from experiments": 0,
    }
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        found = {query: connection.execute(query).fetchone()[0] for query in expected}
    return [
        f"{query}: {found[query]}, not {value}"
        for query, value in expected.items()
        if found[query] != value
    ]

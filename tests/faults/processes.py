"""The command in processes of its own, which can be watched, signalled and limited."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from threading import Thread

import pyarrow.parquet as pq
from verdicts import Found

TIME_LIMIT = 180.0
RESULTS = ("scores.parquet", "predictions.parquet", "curves.parquet")
_SUMMARY = ("users", "reviews", "failed", "metrics", "rows_fingerprint", "data_fingerprint")


class Run:
    """One run of ``python -m srs_eval`` in a session of its own.

    Its output is read here: its own files may be limited.
    """

    def __init__(self, folder, words):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.words, self.began = folder, words, time.monotonic()
        # One thread: cases are many, processors are few.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
        environment.pop("MLFLOW_TRACKING_URI", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "srs_eval", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._read = b""
        self._reader = Thread(target=self._keep, daemon=True)
        self._reader.start()

    def _keep(self):
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            while part := stream.read1():
                self._read += part

    @property
    def status(self):
        """Exit status; negative for a signal, None while it runs."""
        return self.process.poll()

    @property
    def output(self):
        """What it printed."""
        self._reader.join(5)
        return self._read.decode(errors="replace")

    def wait_until(self, condition, limit=TIME_LIMIT):
        """Wait for something to happen; return whether it did before the run ended."""
        while self.status is None and time.monotonic() - self.began < limit:
            if condition():
                return True
            time.sleep(0.001)
        return False

    def send(self, number, *, everyone):
        """Send a signal, to the session as a terminal does or to one process, if it goes on."""
        if self.status is not None:
            return False
        with suppress(ProcessLookupError):
            (os.killpg if everyone else os.kill)(self.process.pid, number)
        return True

    def ended(self, limit=TIME_LIMIT, *, may_show_traceback=False):
        """Wait for the end and return the status, unless it hangs or shows a Python error."""
        try:
            status = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.end()
            raise Found("hang", " ".join(self.words)) from None
        if "Traceback (most recent call last)" in self.output and not may_show_traceback:
            raise Found("traceback", " ".join(self.words), self.output[-400:])
        return status

    def end(self):
        """Kill whatever is left of the session."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(5)


def different(found, reference):
    """Return the result files of a folder that differ from those of another."""
    problems = []
    for name in RESULTS:
        here, there = (
            file.read_bytes() if file.is_file() else None
            for file in (found / name, reference / name)
        )
        if here != there:
            fault = "is missing" if here is None else "is there" if there is None else "differs"
            problems.append(f"{name} {fault}")
    try:
        content, expected = (
            json.loads((folder / "summary.json").read_text("utf-8"))
            for folder in (found, reference)
        )
    except OSError as error:
        return [*problems, str(error)]
    problems += [f"{key} differs" for key in _SUMMARY if content[key] != expected[key]]
    rows = pq.read_metadata(found / "predictions.parquet").num_rows
    if rows != content["reviews"]:
        problems.append(f"{rows} predictions of {content['reviews']} scored reviews")
    return [*problems, *["parts/ is left over"] * (found / "parts").exists()]


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
    }
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        found = {query: connection.execute(query).fetchone()[0] for query in expected}
    return [
        f"{query}: {found[query]}, not {value}"
        for query, value in expected.items()
        if found[query] != value
    ]

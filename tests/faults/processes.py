"""The command in processes of its own, which can be watched, signalled and limited."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from verdicts import Found

TIME_LIMIT = 180.0
RESULTS = ("scores.parquet", "predictions.parquet", "curves.parquet")
_SUMMARY = ("users", "reviews", "failed", "metrics", "rows_fingerprint", "data_fingerprint")


@dataclass(slots=True)
class Run:
    """One run of the command in a session of its own.

    Its output goes through another process into a file: its own files may be limited.
    """

    folder: Path
    words: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes]
    writer: subprocess.Popen[bytes]
    began: float = field(default_factory=time.monotonic)

    @property
    def status(self) -> int | None:
        """Exit status; negative for a signal, None while it runs."""
        return self.process.poll()

    @property
    def output(self) -> str:
        """What it printed."""
        with suppress(subprocess.TimeoutExpired):
            self.writer.wait(5)
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_until(self, condition: Callable[[], bool], limit: float = TIME_LIMIT) -> bool:
        """Wait for something to happen; return whether it did before the run ended."""
        while self.status is None and time.monotonic() - self.began < limit:
            if condition():
                return True
            time.sleep(0.001)
        return False

    def send(self, number: int, *, everyone: bool) -> bool:
        """Send a signal, to the session as a terminal does or to one process, if it goes on."""
        if self.status is not None:
            return False
        with suppress(ProcessLookupError):
            (os.killpg if everyone else os.kill)(self.process.pid, number)
        return True

    def ended(self, limit: float = TIME_LIMIT, *, may_show_traceback: bool = False) -> int:
        """Wait for the end and return the status, unless it hangs or shows a Python error."""
        try:
            status = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.end()
            raise Found("hang", " ".join(self.words)) from None
        if "Traceback (most recent call last)" in self.output and not may_show_traceback:
            raise Found("traceback", " ".join(self.words), self.output[-400:])
        return status

    def end(self) -> None:
        """Kill whatever is left of the session."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with suppress(subprocess.TimeoutExpired):
            self.writer.wait(5)


def start(folder: Path, words: Sequence[str]) -> Run:
    """Start ``python -m srs_eval`` in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"output_{time.monotonic_ns()}.txt"
    # One thread: cases are many, processors are few.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    environment.pop("MLFLOW_TRACKING_URI", None)
    with log.open("wb") as out:
        writer = subprocess.Popen(
            ["cat"], stdin=subprocess.PIPE, stdout=out, start_new_session=True
        )
    process = subprocess.Popen(
        [sys.executable, "-m", "srs_eval", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=writer.stdin,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert writer.stdin is not None
    writer.stdin.close()
    return Run(folder, words, log, process, writer)


def different(found: Path, reference: Path) -> list[str]:
    """Return the result files of a folder that differ from those of another."""
    problems = []
    for name in RESULTS:
        here, there = found / name, reference / name
        if here.is_file() != there.is_file():
            problems.append(f"{name} is {'there' if here.is_file() else 'missing'}")
        elif there.is_file() and here.read_bytes() != there.read_bytes():
            problems.append(f"{name} differs")
    try:
        contents = [
            json.loads((folder / "summary.json").read_text("utf-8"))
            for folder in (found, reference)
        ]
    except OSError as error:
        return [*problems, str(error)]
    problems += [f"{key} differs" for key in _SUMMARY if contents[0][key] != contents[1][key]]
    rows = pq.read_metadata(found / "predictions.parquet").num_rows
    if rows != contents[0]["reviews"]:
        problems.append(f"{rows} predictions of {contents[0]['reviews']} scored reviews")
    if (found / "parts").exists():
        problems.append("parts/ is left over")
    return problems


def broken_store(database: Path, *, finished: int) -> list[str]:
    """Return the problems of a tracking store that no process uses any more."""
    if not database.is_file():
        return ["there is no store"]
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        problems = []
        (state,) = connection.execute("pragma integrity_check").fetchone()
        if state != "ok":
            problems.append(f"the store is damaged: {state}")
        rows = connection.execute("select status, count(*) from runs group by status").fetchall()
        counts = dict(rows)
        if counts.get("RUNNING"):
            problems.append(f"{counts['RUNNING']} runs left RUNNING")
        if counts.get("FINISHED", 0) != finished:
            problems.append(f"{counts.get('FINISHED', 0)} FINISHED runs instead of {finished}")
        bare = connection.execute(
            "select count(*) from runs where status = 'FINISHED' and run_uuid not in "
            "(select run_uuid from latest_metrics)"
        ).fetchone()[0]
        if bare:
            problems.append(f"{bare} FINISHED runs without metrics")
    return problems

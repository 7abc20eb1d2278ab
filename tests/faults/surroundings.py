"""Runs whose surroundings fail: folders that vanish, full disks, locked databases."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from random import Random

from kills import SCENARIOS, References, wait_for_users
from processes import Run, broken_store, different, start
from verdicts import Verdict, first_problem

_LONGEST_LOCK = 45.0


def the_folder_vanishes(random: Random, folder: Path, _references: References) -> Verdict:
    """Remove the output folder of a run that is going on: it must not end as a success."""
    words = SCENARIOS[0]
    out = folder / "out"
    run = start(folder, [*words, "tracking=none", "hydra.run.dir=out"])
    wait_for_users(random, run, words)
    went_on = run.status is None
    shutil.rmtree(out, ignore_errors=True)
    if not run.wait():
        return Verdict("hang", "the output folder was removed")
    if run.has_traceback:
        return Verdict("traceback", first_problem([run.output[-300:]]))
    if went_on and run.status == 0 and not (out / "summary.json").is_file():
        return Verdict("wrong", f"exit 0 without results: {first_problem([run.output[-300:]])}")
    return Verdict("clear error" if run.status else "accepted")


def the_disk_is_full(random: Random, folder: Path, references: References) -> Verdict:
    """Limit the size of files, then resume without the limit."""
    words = random.choice(SCENARIOS[:2])
    reference = references.of(words).folder
    tracked = random.random() < 0.5
    full = [*words, "hydra.run.dir=out", *([] if tracked else ["tracking=none"])]
    run = start(folder, full)
    size = random.choice((0, 100, 2_000, 10_000, 40_000, 120_000, 1_000_000))
    resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (size, size))
    if not run.wait():
        return Verdict("hang", f"files limited to {size} bytes")
    if run.has_traceback:
        return Verdict("traceback", f"limit {size}: {first_problem([run.output[-400:]])}")
    failed = run.status != 0
    last = start(folder, [*full, "resume=true"])
    if not last.wait():
        return Verdict("hang", f"resumed after files were limited to {size} bytes")
    if last.status != 0:
        return Verdict("lost", f"limit {size}, resumed: {first_problem([last.output[-400:]])}")
    problems = different(folder / "out", reference)
    if tracked:
        problems += broken_store(folder / "mlflow.db", finished=1)
    if problems:
        return Verdict("wrong", first_problem([f"limit {size}", *problems]))
    return Verdict("recorded" if failed else "accepted")


def the_database_is_locked(random: Random, folder: Path, references: References) -> Verdict:
    """Hold a lock on the store while a run begins or ends."""
    words = SCENARIOS[1]
    undisturbed = references.of(words)
    full = [*words, "hydra.run.dir=out"]
    first = start(folder, [*words, "hydra.run.dir=first"])
    if not first.wait() or first.status != 0:
        return Verdict("lost", first_problem([first.output[-300:]]))
    held = random.uniform(1, _LONGEST_LOCK)
    run = start(folder, full)
    if random.random() < 0.5:
        run.wait_until((folder / "out" / "parts").is_dir)
    time.sleep(random.uniform(0, undisturbed.seconds))
    with closing(sqlite3.connect(folder / "mlflow.db", timeout=30)) as connection:
        connection.execute("begin immediate")
        until = time.monotonic() + held
        run.wait_until(lambda: time.monotonic() > until)
        connection.rollback()
    if not run.wait():
        return Verdict("hang", f"the store was locked for {held:.0f} s")
    if run.has_traceback:
        return Verdict("traceback", first_problem([f"locked {held:.0f} s", run.output[-400:]]))
    return _resumed(run, full, folder, undisturbed.folder)


def _resumed(run: Run, full: list[str], folder: Path, reference: Path) -> Verdict:
    """Judge a run that waited, or gave up and can be resumed."""
    outcome = "accepted"
    if run.status != 0:
        outcome = "recorded"
        last = start(folder, [*full, "resume=true"])
        if not last.wait() or last.status != 0:
            return Verdict("lost", first_problem([last.output[-400:]]))
    problems = different(folder / "out", reference)
    problems += broken_store(folder / "mlflow.db", finished=2)
    return Verdict("wrong", first_problem(problems)) if problems else Verdict(outcome)

"""Runs that begin at once: on one fresh store, and in one folder."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from random import Random

from kills import SCENARIOS, References
from processes import Run, broken_store, different, start
from verdicts import Verdict, first_problem

AT_ONCE = 30
_WORDS = ("algo=avg", "data.users=1", "data.size_scale=0.02", "panel=quick", "figures=false")


def many_on_a_fresh_store(
    _random: Random, folder: Path, _references: References, count: int = AT_ONCE
) -> Verdict:
    """Start many runs at once in a folder without a store."""
    limit = 60.0 + 20 * count
    runs = [
        start(folder, [*_WORDS, f"seed={number}", f"hydra.run.dir=out{number}"])
        for number in range(count)
    ]
    ended = [run.wait(limit) for run in runs]
    if not all(ended):
        return Verdict("hang", f"some of {count} runs did not end")
    failed = [run for run in runs if run.status != 0]
    if failed:
        detail = f"{len(failed)} of {count} runs failed: {failed[0].output[-400:]}"
        return Verdict("traceback" if failed[0].has_traceback else "lost", first_problem([detail]))
    problems = broken_store(folder / "mlflow.db", finished=count)
    with closing(sqlite3.connect(folder / "mlflow.db")) as connection:
        names = connection.execute("select name from experiments").fetchall()
        if len(names) != len(set(names)):
            problems.append("experiments of one name")
    return Verdict("wrong", first_problem(problems)) if problems else Verdict("accepted")


def two_in_one_folder(random: Random, folder: Path, references: References) -> Verdict:
    """Start a run in the folder of one that is going on."""
    words = SCENARIOS[0]
    reference = references.of(words).folder
    full = [*words, "tracking=none", "hydra.run.dir=out"]
    first = start(folder, full)
    # Both are under way for most of the time: starting takes longer than this.
    time.sleep(random.uniform(0, 2))
    second = start(folder, [*full, *(["resume=true"] if random.random() < 0.3 else [])])
    runs: list[Run] = [first, second]
    ended = [run.wait() for run in runs]
    if not all(ended):
        return Verdict("hang", "two runs in one folder")
    if any(run.has_traceback for run in runs):
        return Verdict("traceback", first_problem([run.output[-300:] for run in runs]))
    if not any(run.status == 0 for run in runs):
        return Verdict("lost", first_problem([run.output[-300:] for run in runs]))
    problems = different(folder / "out", reference)
    if problems:
        statuses = [run.status for run in runs]
        return Verdict("wrong", first_problem([f"exit {statuses}", *problems]))
    return Verdict("accepted" if all(run.status == 0 for run in runs) else "clear error")

"""Time and memory that the parent process needs for each further user, from made-up results.

    python benchmarks/parent.py [users] [workers]

Workers write parts of made-up results: five fits of 21 parameters, seven scores, no
predictions.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from srs_eval.algorithms.baselines import Average
from srs_eval.compute.processes import Processes
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog
from srs_eval.evaluation.scoring import EvaluateAndScore, ScoredUser
from srs_eval.experiment.evaluate import EvaluateChunk, evaluate_with, gathered
from srs_eval.experiment.experiment import Experiment
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.nouns import Fit
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import save
from srs_eval.results.kept import KeptParts
from srs_eval.results.parts import PARTS, chunk_size, cut

FOLDS = 5


@dataclass(frozen=True)
class MadeUp:
    """Results of users who have no logs."""

    evaluate: EvaluateUser
    panel: Panel

    def __call__(self, user: int, tick: Callable[[], None]) -> ScoredUser:
        """Make up the result of a user."""
        rng = np.random.default_rng(user)
        fits = []
        for fold in range(FOLDS):
            parameters = tuple(rng.random(21).tolist())
            fits.append(Fit(user, fold, "ok", "", 0.01, 900, 900, parameters))
            tick()
        values = tuple(rng.random(len(self.panel.names)).tolist())
        log = ReviewLog(35_000, {"manual": 3}, f"{user:016x}")
        return ScoredUser(user, tuple(fits), log, 4500, f"{user:016x}", values, None, 600)


def usage() -> tuple[float, float]:
    """Return seconds of CPU, and megabytes at most."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(users: int, workers: int) -> None:
    """Feed made-up users to a run, and print what each step of the parent costs."""
    source = SyntheticUsers(users=1)
    panel = Panel(list(default_panel())[:7], pooled=False)
    experiment = Experiment(Average(), source, SrsBenchmark(), panel)
    evaluate = EvaluateUser(source, Average(), SrsBenchmark(), seed=1, curves=0)
    folder = Path(tempfile.mkdtemp())
    began, clock = usage(), time.perf_counter()

    def told(step: str) -> None:
        nonlocal began, clock
        now, wall = usage(), time.perf_counter()
        cpu, memory = (b - a for a, b in zip(began, now, strict=True))
        print(
            f"{step:<12} {cpu:7.2f} s CPU {cpu / users * 1e3:8.4f} ms per user"
            f" {memory:8.1f} MB {memory * 1024 / users:7.3f} kB per user {wall - clock:7.1f} s",
            flush=True,
        )
        began, clock = now, wall

    kept = KeptParts(folder / PARTS, "made up")
    kept.open(resume=False, chunk=chunk_size(users))
    chunks = cut(range(1, users + 1), kept.chunk)
    told("chunks")
    made_up = cast(EvaluateAndScore, MadeUp(evaluate, experiment.panel))
    evaluate_with(EvaluateChunk(made_up, kept), chunks, cast(Any, Processes(workers)), FOLDS)
    told("evaluate")
    result = gathered(experiment, chunks, kept, folder)
    told("summarise")
    save(result, folder)
    kept.end(chunks)
    told("save")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))

"""What many users cost where their results come together, and how wide grouped intervals are.

    python benchmarks/many_users.py widths              # grouped against single users
    python benchmarks/many_users.py fed 1000000         # a run of so many made-up users
    python benchmarks/many_users.py compare 40 100000   # so many runs of so many made-up users

The first prints the width of intervals from resampling 10,000 groups of users, divided by that
from resampling the users themselves. The second writes made-up users, as workers do, and
prints the time and memory of each step of the parent, and the size of the files. The third
prints what comparing runs costs, with all files and figures.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmark import benchmark

from srs_eval.evaluation.evaluate import ReviewLog
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.metrics.bootstrap import GROUPS, Table, common_cells, group_of, half_widths
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.pooled import PooledSums, pool, user_sums
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.scores import auc, log_loss
from srs_eval.runs.checkpoint import Checkpoint
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.config import build, composed
from srs_eval.runs.evaluation import added_up
from srs_eval.runs.folder import FITS, SCORES, SUMMARY, save, write_json
from srs_eval.runs.summary import Summary
from srs_eval.runs.words import status

FOLDS = 5
PART = 200  # Users whose sums are added again and again
_QUICK = ("log_loss", "brier", "auc", "rmse_bins", "mbe", "brier_skill", "normalized_entropy")


def made_up(user: int, panel: Panel) -> ScoredUser:
    """Make up the result of a user who has no log."""
    rng = np.random.default_rng(user)
    fits = [
        Fit(user, fold, "ok", "", 0.01, 900, 900, tuple(rng.random(21).tolist()))
        for fold in range(FOLDS)
    ]
    values = tuple(rng.random(len(panel.names)).tolist())
    log = ReviewLog(35_000, {"manual": 3}, f"{user:016x}")
    return ScoredUser(user, tuple(fits), log, 4500, f"{user:016x}", values, None, 600)


def widths(users: int = 50_000, resamples: int = 2_000, repeats: int = 10) -> None:
    """Print the width of grouped intervals in units of those of single users.

    Each repeat has its own groups and its own draws on both sides, so that the ratios are
    independent but for the users, and their spread gives the standard error of their mean.
    """
    rng = np.random.default_rng(0)
    reviews = np.maximum(1, rng.lognormal(1.5, 1.0, users)).astype(np.int64)
    user = np.repeat(np.arange(users), reviews)
    logit = rng.normal(1.5, 1, len(user))
    p = 1 / (1 + np.exp(-logit))
    # Few users are predicted very badly, as models fail for a few.
    shift = rng.normal(0, 0.5, users) - 3 * (rng.random(users) < 0.01)
    recalled = rng.random(len(user)) < 1 / (1 + np.exp(-logit - shift[user]))
    zeros = np.zeros(len(user), np.int64)
    predictions = Predictions(("",), zeros, zeros, np.arange(len(user)), zeros, p, recalled)
    panel = Panel([log_loss, auc])
    edges = common_cells(panel, p.dtype)
    single = Table.of(predictions, edges, user, users)
    ratios: dict[str, list[float]] = {name: [] for name in panel.names}
    for repeat in range(repeats):
        group = np.array([group_of(f"{repeat} {number}") for number in range(users)])
        known, code = np.unique(group, return_inverse=True)
        grouped = single.grouped(code, len(known))
        before = half_widths(panel, single, edges, resamples=resamples, seed=repeat)
        after = half_widths(panel, grouped, edges, resamples=resamples, seed=repeats + repeat)
        for name, found in ratios.items():
            found.append(after[name] / before[name])
        print(f"{len(grouped):,} groups of {users:,} users:", flush=True, end=" ")
        print(", ".join(f"{name} {found[-1]:.3f}" for name, found in ratios.items()), flush=True)
    for name, found in ratios.items():
        error = np.std(found, ddof=1) / np.sqrt(repeats)
        print(f"{name}: mean {np.mean(found):.4f}, standard error {error:.4f}")


def fed(users: int) -> None:
    """Print what made-up results of many users cost where they come together."""
    panel = default_panel()
    setup = build(*composed({"algo": "avg", "data": "synthetic", "tracking": "none"}))
    with tempfile.TemporaryDirectory() as name:
        checkpoint = Checkpoint(Path(name), setup.stamp)
        with _step("made up and written by workers", users):
            for user in range(users):
                checkpoint.write(made_up(user, panel))
        with _step("summarise", users):
            evaluation = added_up(setup, range(users), checkpoint)
        with _step("save", users):
            save(evaluation, Path(name))
        sizes = {file: (Path(name) / file).stat().st_size for file in (SCORES, FITS)}
        print(", ".join(f"{file} {size / users:.0f} bytes a user" for file, size in sizes.items()))
    total = PooledSums(panel)
    sums = [user_sums(panel, _user(number)) for number in range(PART)]
    with _step("add sums up", users):
        for part in range(users // PART):
            for one in sums:  # as if they were other users
                total.add(replace(one, group=(one.group + 7919 * part) % GROUPS))
    with _step("pooled scores with intervals", users):
        pool(total)


def compared(runs: int, users: int) -> None:
    """Print what comparing made-up runs costs, which have the quick panel."""
    rng = np.random.default_rng(0)
    easy, reviews = rng.gamma(4, 0.08, users), rng.integers(1_000, 60_000, users)
    rows = tuple(f"{number:016x}" for number in rng.integers(0, 2**63, users))
    with tempfile.TemporaryDirectory() as name:
        for run in range(runs):
            folder = Path(name) / f"{run}_run"
            folder.mkdir()
            values = easy[:, None] * (1 + 0.002 * run) + rng.normal(0, 0.05, (users, len(_QUICK)))
            facts = Summary(label=f"run {run}", users=users, when="previous_review")
            write_json(folder / SUMMARY, asdict(facts))
            columns = dict(zip(_QUICK, values.T, strict=True))
            about = {"user": range(users), "reviews": reviews, "rows": rows}
            pq.write_table(pa.table({**about, **columns}), folder / SCORES)
        words = [name, f"out={name}/compared", "tracking=none"]
        with _step(f"compare {runs} runs", users), redirect_stdout(StringIO()):
            status(*COMMANDS["compare"], words)


def _user(number: int, reviews: int = 17_000) -> Predictions:
    """Return made-up predictions of one user."""
    rng = np.random.default_rng(number)
    p = 1 / (1 + np.exp(-rng.normal(2.2, 1.1, reviews)))
    zeros = np.zeros(reviews, np.int64)
    bare = Predictions(
        (number,), zeros, zeros, np.arange(reviews), zeros, p, rng.random(reviews) < p
    )
    return replace(
        bare,
        elapsed_days=1 + np.round(np.exp(rng.normal(2, 1.5, reviews))),
        nth_review=1 + rng.geometric(0.1, reviews),
        lapses=rng.integers(0, 4, reviews),
    )


@contextmanager
def _step(name: str, users: int) -> Iterator[None]:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    yield
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    million = seconds / users * 1e6
    print(
        f"{name}: {seconds:.1f} s CPU, {1e3 * seconds / users:.4f} ms a user, "
        f"{million:.0f} s for a million, peak {peak / 1024:,.0f} MB, "
        f"{(peak - before) / users:.3f} kB more a user",
        flush=True,
    )


@benchmark()
def main(what: Literal["widths", "fed", "compare"], *numbers: int) -> None:
    """Measure one of the three."""
    {"widths": widths, "fed": fed, "compare": compared}[what](*numbers)

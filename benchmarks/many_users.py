"""What many users cost where their results come together, and how wide grouped intervals are.

    python benchmarks/many_users.py widths          # grouped against single users, about a minute
    python benchmarks/many_users.py fed 1000000     # made-up results of so many users

The first prints the width of intervals from resampling 10,000 groups of users, divided by that
from resampling the users themselves. The second feeds made-up scores, and made-up sums of the
default panel, to what summarises a run, and prints time and memory for each step.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from srs_eval.evaluation.scoring import Scores
from srs_eval.metrics.cluster_sums import ClusterSums
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.intervals import half_widths
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.pooled import PooledSums, pool
from srs_eval.metrics.prediction_cells import PredictionCells
from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.smece import Smece
from srs_eval.metrics.summary import summarise
from srs_eval.nouns import Predictions
from srs_eval.results.files import read_table, write_table
from srs_eval.results.tables import read_scores, scores_table
from srs_eval.stats.resample import GROUPS, group_of

PART = 200  # users in a part


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
    panel = Panel([LogLoss(), Auc(), Smece()])
    single = ClusterSums.of(panel, predictions, user, users, PredictionCells.fixed())
    ratios: dict[str, list[float]] = {name: [] for name in panel.names}
    for repeat in range(repeats):
        group = np.array([group_of(f"{repeat} {number}") for number in range(users)])
        grouped = single.grouped(group, GROUPS)
        grouped = grouped[np.diff(grouped.table.indptr) > 0]
        before = half_widths(single, resamples=resamples, seed=repeat)
        after = half_widths(grouped, resamples=resamples, seed=repeats + repeat)
        for name, found in ratios.items():
            found.append(after[name] / before[name])
        print(f"{len(grouped):,} groups of {users:,} users:", flush=True, end=" ")
        print(", ".join(f"{name} {found[-1]:.3f}" for name, found in ratios.items()), flush=True)
    for name, found in ratios.items():
        error = np.std(found, ddof=1) / np.sqrt(repeats)
        print(f"{name}: mean {np.mean(found):.4f}, standard error {error:.4f}")


def fed(users: int) -> None:
    """Print what made-up results of many users cost where they come together."""
    rng = np.random.default_rng(0)
    panel = default_panel()
    common = rng.gamma(4, 0.08, users)
    values = common[:, None] + rng.normal(0, 0.05, (users, len(panel.names)))
    reviews = rng.integers(1_000, 60_000, users)
    names = tuple(range(users))
    rows = tuple(f"{number:016x}" for number in names)
    scores = Scores(names, reviews, rows, panel.names, values)
    with _step("summarise", users):
        summarise(panel.names, values, reviews, {})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.parquet"
        with _step("write scores", users):
            write_table(file, scores_table(scores))
        with _step("read scores", users):
            read_scores(read_table(file))
    arrays = PooledSums(panel, (_user(number) for number in range(PART))).arrays()
    total = PooledSums(panel)
    with _step("add sums up", users):
        for part in range(users // PART):
            group = (arrays["sum_group"] + 7919 * part) % GROUPS  # as if they were other users
            total.extend({**arrays, "sum_group": group})
    with _step("pooled scores with intervals", users):
        pool(panel, list, total)


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
    began = time.process_time()
    yield
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    million = seconds / users * 1e6
    print(
        f"{name}: {seconds:.1f} s CPU, {1e3 * seconds / users:.4f} ms a user, "
        f"{million:.0f} s for a million, peak {peak:,.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1] == "widths":
        widths()
    else:
        fed(int(sys.argv[2]))

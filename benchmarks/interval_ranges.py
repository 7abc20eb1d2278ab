"""Compute how often ranges of next intervals hold the true ones: see benchmarks/README.md.

    python benchmarks/interval_ranges.py [LOGS]          100 simulated logs for each row by default

Cards are answered as FSRS-6 with known parameters says, scheduled by it at 90 % give or take a
quarter. The parameters are the published ones, or drawn from a population as wide as their
published spread. FSRS-6 is fitted to each log, and asked for intervals after the answers in
`HISTORIES`.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import numpy as np
from benchmark import benchmark, table

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6, Fsrs6Equations
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.collection.intervals import answered_on_time
from srs_eval.data.reviews import FloatArray, Reviews
from srs_eval.data.schema import reviews_from_columns
from srs_eval.engine.equations import NUMPY_MATHS
from srs_eval.engine.objective import LogCoordinates, sample
from srs_eval.errors import FitSkipped
from srs_eval.exports.intervals import DRAWS, LEVEL, next_intervals, ranges
from srs_eval.protocol.split import used_rows
from srs_eval.protocol.srs_benchmark import SrsBenchmark

EQUATIONS, MATHS = Fsrs6Equations(), NUMPY_MATHS
PUBLISHED = np.array(EQUATIONS.parameters.defaults)
RETENTION = 0.9
HISTORIES = ((1,), (3,), (3, 3), (3,) * 4, (3,) * 6, (3, 3, 3, 1), (3, 3, 3, 1, 3, 3))
SIZES = (300, 700, 2000, 10_000)


def drawn(rng: np.random.Generator) -> FloatArray:
    """Draw the parameters of a user."""
    algorithm = Fsrs6()
    space = algorithm.space(EQUATIONS)
    # Such a population is what draws around a fit are spread as, where nothing was learned.
    covariance = np.linalg.inv(2 * algorithm.penalty(space, 10**9, whole_days=True))
    return sample(LogCoordinates(4), space, PUBLISHED, covariance, rng, 1)[0]


def simulated(w: FloatArray, reviews: int, rng: np.random.Generator) -> Reviews:
    """Simulate a log of about so many reviews."""
    cards, days = max(reviews // 7, 20), max(60, min(1000, reviews // 8))
    card, day = np.arange(cards), np.sort(rng.integers(0, days * 4 // 5, cards))
    rating = rng.choice([1, 2, 3, 4], cards, p=[0.25, 0.08, 0.55, 0.12])
    rows = [(card, day, rating, np.full(cards, -1))]
    state = EQUATIONS.init(MATHS, w, rating)
    while len(card):
        # Recall is 90 % after the stability.
        jitter = np.exp(0.25 * rng.standard_normal(len(card)))
        gap = np.maximum(1, np.rint(state[0] * jitter)).astype(np.int64)
        kept = day + gap < days
        card, day, gap = card[kept], (day + gap)[kept], gap[kept]
        state = tuple(each[kept] for each in state)
        p = EQUATIONS.curve(MATHS, w, state, gap)
        passed = rng.choice([2, 3, 4], len(card), p=[0.08, 0.84, 0.08])
        rating = np.where(rng.random(len(card)) < p, passed, 1)
        rows.append((card, day, rating, gap))
        state = EQUATIONS.step(MATHS, w, state, gap, rating, p)
    names = ("card", "day", "rating", "elapsed_days")
    columns = dict(zip(names, map(np.concatenate, zip(*rows, strict=True)), strict=True))
    order = np.argsort(columns["day"], kind="stable")
    log = {name: column[order] for name, column in columns.items()}
    return reviews_from_columns(user=1, source="simulated", **log)


def covered(kind: str, reviews: int, seed: int) -> tuple[FloatArray, FloatArray, int]:
    """Return whether each range holds the true interval, its width, and the reviews learned from.

    The width is the logarithm of the upper by the lower end.
    """
    rng = np.random.default_rng([seed, reviews])
    w = PUBLISHED if kind == "published" else drawn(rng)
    task = SrsBenchmark()(simulated(w, reviews, rng), same_day=True)
    rows, algorithm = used_rows(task.folds), Fsrs6()
    model = algorithm.fit(task.reviews, rows, rng)
    true = RecurrentModel(EQUATIONS, tuple(w.tolist()))
    asked, ends = answered_on_time(true, HISTORIES, RETENTION)
    models = (true, model, *algorithm.sample(task.reviews, rows, model, rng, DRAWS))
    truth, found, *draws = (next_intervals(each, asked, ends, RETENTION) for each in models)
    lo, hi = ranges(found, draws, LEVEL)
    return (lo <= truth) & (truth <= hi), np.log(hi / lo), len(rows)


@benchmark()
def main(logs: int = 100) -> str:
    """Return a row for each kind of parameters and size of the log."""
    rows = []
    for kind, size in product(("published", "drawn"), SIZES):
        done = []
        for seed in range(logs):
            with suppress(FitSkipped):  # too few reviews of a simulated log can be scored
                done.append(covered(kind, size, seed))
        held, width, learned = (np.array(each) for each in zip(*done, strict=True))
        by_history, factor = 100 * held.mean(axis=0), np.exp(np.median(width, axis=0))
        span = f"{by_history.min():.0f} to {by_history.max():.0f}"
        row = [kind, f"{np.mean(learned):.0f}", len(done), f"{100 * held.mean():.0f}", span]
        rows.append([*row, *(f"{factor[place]:.1f}" for place in (1, 3))])
    headers = ["parameters", "reviews", "logs", "held %", "by history %", "Good", "four times"]
    return table(headers, rows)

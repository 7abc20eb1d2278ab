"""Count how often 99 % intervals hold the true mean: a table of benchmarks/README.md.

    python benchmarks/interval_coverage.py                        simulated users
    python benchmarks/interval_coverage.py RESULTS.parquet        published users as well

RESULTS.parquet has a row for each model and user: the columns model, user, size and metrics.
Users are drawn with replacement from a population; the true mean is that of all of it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from benchmark import benchmark, table

from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.means import paired_mean

SIZES = (3, 5, 10, 20, 30, 100, 300, 1_000)
# Model, metric: differences to FSRS-5.
PUBLISHED = (
    *((model, "log_loss") for model in ("FSRS-4.5", "GRU-P", "SM2", "FSRS-rs", "DASH")),
    *((model, "auc") for model in ("FSRS-4.5", "GRU-P", "SM2")),
    *((model, "rmse_bins") for model in ("FSRS-4.5", "GRU-P", "SM2")),
)
BY_REVIEWS = ("FSRS-4.5", "GRU-P", "SM2")
LEVEL = 0.99


@dataclass(frozen=True, eq=False)
class Quantity:
    """Scores of two models for all users of a population.

    Attributes
    ----------
    weights : float64 [users]
        How much each user counts.
    is_headline : bool
        Whether users count the same, as in the mean over all quantities.
    """

    name: str
    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray
    is_headline: bool = True


def simulated(users: int = 10_000, seed: int = 0) -> list[Quantity]:
    """Make differences that are even, skewed, heavy-tailed, and rare disasters."""
    rng = np.random.default_rng(seed)
    base = 0.2 + rng.gamma(4, 0.04, users)
    equal, sizes = np.ones(users), rng.lognormal(9, 1.3, users)
    even, skewed = rng.normal(0.01, 0.02, users), rng.gamma(0.7, 0.03, users)
    heavy = 0.01 + 0.01 * rng.standard_t(3, users)
    rare = rng.normal(0.01, 0.01, users) + (rng.random(users) < 0.01) * rng.gamma(2, 0.4, users)
    others = {
        "Simulated: a disaster for 1 user in 100": (rare, equal),
        "Simulated, by reviews: skewed differences": (skewed, sizes),
    }
    return [
        Quantity("Simulated: even differences", base, base + even, equal),
        Quantity("Simulated: skewed differences", base, base + skewed, equal),
        Quantity("Simulated: heavy tails", base, base + heavy, equal),
        *(
            Quantity(name, base, base + gap, weights, is_headline=False)
            for name, (gap, weights) in others.items()
        ),
    ]


def published(path: Path) -> list[Quantity]:
    """Read the differences between published models."""
    table = pd.read_parquet(path)
    wide = table.pivot(index="user", columns="model").dropna()
    equal, sizes = np.ones(len(wide)), wide["size"]["FSRS-5"].to_numpy(np.float64)

    def quantity(model: str, metric: str, weights: np.ndarray, name: str = "") -> Quantity:
        first, second = (wide[metric][each].to_numpy(np.float64) for each in ("FSRS-5", model))
        title = f"{name}{metric}: FSRS-5 less {model}"
        return Quantity(title, first, second, weights, is_headline=not name)

    return [
        *(quantity(model, metric, equal) for model, metric in PUBLISHED),
        *(quantity(model, "log_loss", sizes, "By reviews, ") for model in BY_REVIEWS),
    ]


def missed(quantity: Quantity, users: int, samples: int, seed: int = 0) -> tuple[float, float]:
    """Share of samples whose interval lies above, and below, the true mean.

    Samples without an interval, of which one user outweighs all others, are left out.
    """
    rng = np.random.default_rng([seed, users])
    gap = quantity.first - quantity.second
    truth = float(quantity.weights @ gap / quantity.weights.sum())
    above = below = held = 0
    for _ in range(samples):
        drawn = rng.integers(0, len(gap), users)
        found = paired_mean(quantity.first[drawn], quantity.second[drawn], quantity.weights[drawn])
        lo, hi = found.interval(LEVEL)
        above += truth < lo
        below += hi < truth
        held += not np.isnan(lo)
    return above / held, below / held


def coverage(found: Mapping[Quantity, FloatArray], sizes: Sequence[int]) -> str:
    """Return % of intervals that hold the mean and, in brackets, % above it and below it."""
    shown = []
    for quantity, cells in found.items():
        cells_shown = [f"{_held(cell)} ({100 * cell[0]:.1f}/{100 * cell[1]:.1f})" for cell in cells]
        shown.append([quantity.name, *cells_shown])
    for title, is_simulated in (("simulated", True), ("published", False)):
        alike = [
            cells
            for quantity, cells in found.items()
            if quantity.is_headline and quantity.name.startswith("Simulated") == is_simulated
        ]
        if alike:
            means = [f"**{_held(mean)}**" for mean in np.mean(alike, axis=0)]
            shown.append([f"**mean of the {len(alike)} {title}, users alike**", *means])
    return table(["99 % interval of", *(f"{users:,} users" for users in sizes)], shown)


def _held(missed: FloatArray) -> str:
    return f"{100 * (1 - missed.sum()):.1f}"


@benchmark("coverage")
def main(results: Path | None = None, samples: int = 5_000) -> str:
    """Return the table, and how exact it is."""
    found = {}
    for quantity in simulated() + (published(results) if results else []):
        found[quantity] = np.array([missed(quantity, users, samples) for users in SIZES])
        print(quantity.name, file=sys.stderr)
    error = 100 * np.sqrt(LEVEL * (1 - LEVEL) / samples)
    return coverage(found, SIZES) + (
        f"\n\n{samples:,} samples for each cell: one standard error at 99 % is {error:.2f} points. "
        "In brackets: % of intervals above the true mean, and below it."
    )

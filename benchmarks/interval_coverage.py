"""Count how often 99 % intervals hold the true mean: a table of benchmarks/README.md.

    python benchmarks/interval_coverage.py                        simulated users
    python benchmarks/interval_coverage.py RESULTS.parquet        published users as well

RESULTS.parquet has a row for each model and user: the columns model, user, size and metrics.
Users are drawn with replacement from a population; the true mean is that of all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from benchmark import benchmark, table

from srs_eval.metrics.means import mean_of_users

SIZES = (3, 5, 10, 20, 30, 100, 300, 1_000)
# Differences to FSRS-5: models by metric.
PUBLISHED = {
    "log_loss": ("FSRS-4.5", "GRU-P", "SM2", "FSRS-rs", "DASH"),
    "auc": ("FSRS-4.5", "GRU-P", "SM2"),
    "rmse_bins": ("FSRS-4.5", "GRU-P", "SM2"),
}
LEVEL = 0.99


@dataclass(frozen=True, eq=False)
class Quantity:
    """Differences of two models for all users of a population, [users], and their weights."""

    name: str
    difference: np.ndarray
    weights: np.ndarray
    is_headline: bool = True  # Whether users count the same, as in the mean over all quantities


def simulated(users: int = 10_000, seed: int = 0) -> Iterator[Quantity]:
    """Make differences that are even, skewed, heavy-tailed, and rare disasters."""
    rng = np.random.default_rng(seed)
    rng.gamma(4, 0.04, users)  # losses of the better model, which no difference depends on
    equal, sizes = np.ones(users), rng.lognormal(9, 1.3, users)
    even, skewed = rng.normal(0.01, 0.02, users), rng.gamma(0.7, 0.03, users)
    heavy = 0.01 + 0.01 * rng.standard_t(3, users)
    rare = rng.normal(0.01, 0.01, users) + (rng.random(users) < 0.01) * rng.gamma(2, 0.4, users)
    yield Quantity("Simulated: even differences", -even, equal)
    yield Quantity("Simulated: skewed differences", -skewed, equal)
    yield Quantity("Simulated: heavy tails", -heavy, equal)
    yield Quantity("Simulated: a disaster for 1 user in 100", -rare, equal, is_headline=False)
    by_reviews = "Simulated, by reviews: skewed differences"
    yield Quantity(by_reviews, -skewed, sizes, is_headline=False)


def published(path: Path) -> Iterator[Quantity]:
    """Read the differences between published models."""
    wide = pd.read_parquet(path).pivot(index="user", columns="model").dropna()
    equal, sizes = np.ones(len(wide)), wide["size"]["FSRS-5"].to_numpy(np.float64)
    every = [("", equal, metric, model) for metric in PUBLISHED for model in PUBLISHED[metric]]
    every += [("By reviews, ", sizes, "log_loss", model) for model in PUBLISHED["auc"]]
    for begin, weights, metric, model in every:
        gap = (wide[metric]["FSRS-5"] - wide[metric][model]).to_numpy(np.float64)
        name = f"{begin}{metric}: FSRS-5 less {model}"
        yield Quantity(name, gap, weights, is_headline=not begin)


def missed(quantity: Quantity, users: int, samples: int, seed: int = 0) -> tuple[float, float]:
    """Share of samples whose interval lies above, and below, the true mean.

    Samples without an interval, of which one user outweighs all others, are left out.
    """
    rng = np.random.default_rng([seed, users])
    gap, weights = quantity.difference, quantity.weights
    truth = float(weights @ gap / weights.sum())
    above = below = held = 0
    for _ in range(samples):
        drawn = rng.integers(0, len(gap), users)
        lo, hi = mean_of_users(gap[drawn], weights[drawn]).interval(LEVEL)
        above += truth < lo
        below += hi < truth
        held += not np.isnan(lo)
    return above / held, below / held


@benchmark("coverage")
def main(results: Path | None = None, samples: int = 5_000) -> str:
    """Return % of intervals that hold the mean, with % above it and below it, and how exact."""
    rows, headlines = [], {"simulated": [], "published": []}
    for kind, quantities in (
        ("simulated", simulated()),
        ("published", published(results) if results else ()),
    ):
        for quantity in quantities:
            shares = 100 * np.array([missed(quantity, users, samples) for users in SIZES])
            if quantity.is_headline:
                headlines[kind].append(100 - shares.sum(axis=1))
            rows.append([quantity.name])
            rows[-1] += [f"{100 - up - down:.1f} ({up:.1f}/{down:.1f})" for up, down in shares]
    for kind, held in headlines.items():
        if held:
            means = [f"**{mean:.1f}**" for mean in np.mean(held, axis=0)]
            rows.append([f"**mean of the {len(held)} {kind}, users alike**", *means])
    error = 100 * np.sqrt(LEVEL * (1 - LEVEL) / samples)
    return table(["99 % interval of", *(f"{users:,} users" for users in SIZES)], rows) + (
        f"\n\n{samples:,} samples for each cell: one standard error at 99 % is {error:.2f} points."
        "\nIn brackets: % of intervals above the true mean, and below it."
    )

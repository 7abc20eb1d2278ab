"""Count how often 99 % intervals hold the true mean, and print the table of docs/intervals.md.

    python benchmarks/interval_coverage.py                        simulated users
    python benchmarks/interval_coverage.py RESULTS.parquet        published users as well

RESULTS.parquet has a row for each model and user: the columns model, user, size and metrics.
Users are drawn with replacement from a population; the true mean is that of all of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from srs_eval.stats.paired import paired_mean

SIZES = (3, 5, 10, 20, 30, 100, 300, 1_000)
# Model, metric: differences to FSRS-5.
PUBLISHED = (
    *((model, "log_loss") for model in ("FSRS-4.5", "GRU-P", "SM2", "FSRS-rs", "DASH")),
    *((model, "auc") for model in ("FSRS-4.5", "GRU-P", "SM2")),
    *((model, "rmse_bins") for model in ("FSRS-4.5", "GRU-P", "SM2")),
)
BY_REVIEWS = ("FSRS-4.5", "GRU-P", "SM2")
LEVEL = 0.99


@dataclass(frozen=True)
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


def rows(
    quantities: Sequence[Quantity], sizes: Sequence[int], samples: int
) -> Iterator[tuple[str, list[tuple[float, float]], bool]]:
    """Simulate every quantity at every number of users."""
    for quantity in quantities:
        cells = [missed(quantity, users, samples) for users in sizes]
        sys.stderr.write(f"{quantity.name}\n")
        yield quantity.name, cells, quantity.is_headline


def markdown(
    found: Sequence[tuple[str, list[tuple[float, float]], bool]], sizes: Sequence[int], samples: int
) -> str:
    """Write the table: % of intervals that hold the mean, and % that lie above and below it."""
    lines = [
        "| 99 % interval of | " + " | ".join(f"{users:,} users" for users in sizes) + " |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    lines += [
        f"| {name} | " + " | ".join(f"{_held(*cell)} ({_both(*cell)})" for cell in cells) + " |"
        for name, cells, _ in found
    ]
    for start, title in (("Simulated", "simulated"), ("", "published")):
        headline = [
            cells
            for name, cells, is_headline in found
            if is_headline and name.startswith("Simulated") == bool(start)
        ]
        if headline:
            mean = np.mean(headline, axis=0)
            shown = " | ".join(f"**{_held(*cell)}**" for cell in mean)
            lines.append(f"| **mean of the {len(headline)} {title}, users alike** | {shown} |")
    error = 100 * np.sqrt(LEVEL * (1 - LEVEL) / samples)
    return "\n".join(
        [
            *lines,
            "",
            f"{samples:,} samples for each cell: one standard error at 99 % is {error:.2f} points. "
            "In brackets: % of intervals above the true mean, and below it.",
        ]
    )


def _held(above: float, below: float) -> str:
    return f"{100 * (1 - above - below):.1f}"


def _both(above: float, below: float) -> str:
    return f"{100 * above:.1f}/{100 * below:.1f}"


def main() -> None:
    """Print the table."""
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("results", nargs="?", type=Path, help="per-user results, as parquet")
    words.add_argument("--samples", type=int, default=5_000)
    given = words.parse_args()
    quantities = simulated() + (published(given.results) if given.results else [])
    print(markdown(list(rows(quantities, SIZES, given.samples)), SIZES, given.samples))


if __name__ == "__main__":
    main()

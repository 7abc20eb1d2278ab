"""How often 99 % intervals of pooled scores hold the truth where users differ in size.

    python benchmarks/pooled_coverage.py

Everyone is predicted at 85 %; shares of recalls have a beta distribution, numbers of reviews a
lognormal one. Samples without an interval, where one user outweighs all others, do not count.
"""

from __future__ import annotations

import numpy as np
from benchmark import benchmark, table

from srs_eval import score
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.scores import log_loss

P, SHARES = 0.85, (8.0, 1.5)


def coverage(users: int, spread: float, samples: int) -> float:
    """Return the % of samples whose interval holds the log loss of the population."""
    rng = np.random.default_rng(99)
    mean = SHARES[0] / sum(SHARES)
    truth = -(mean * np.log(P) + (1 - mean) * np.log(1 - P))
    held: list[bool] = []
    for _ in range(samples):
        reviews = np.maximum(5, rng.lognormal(4, spread, users).astype(int))
        user = np.repeat(np.arange(users), reviews)
        recalled = rng.random(len(user)) < rng.beta(*SHARES, users)[user]
        result = score(np.full(len(user), P), recalled, user=user, panel=Panel([log_loss]))
        low, high = result.intervals["log_loss"]
        if np.isfinite(low):
            held.append(bool(low <= truth <= high))
    return 100 * float(np.mean(held))


@benchmark()
def main(samples: int = 2500) -> str:
    """Return the coverage by users and the spread of logarithms of their numbers of reviews."""
    settings = ((10, 0.8), (10, 1.3), (30, 1.3))
    rows = [(users, by, f"{coverage(users, by, samples):.1f} %") for users, by in settings]
    return table(["users", "spread of sizes", "coverage"], rows)

"""Count how often `per_group` finds that presets differ where they were drawn at random.

    python benchmarks/preset_verdicts.py [USERS]

The cards of each simulated user (up to 3,000 reviews) are divided into two presets by
chance, so that one set of parameters is the truth. FSRS-6, last fold, as in docs/method.md.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark

USERS = 200
EDGES = (0, 200, 400, 800, 1600)


def main(users: int) -> None:
    """Print verdicts by number of training reviews."""
    source = SyntheticUsers(users=users, size_scale=0.1, max_reviews=3000, seed=99)
    sizes, differ = [], []
    for user in source.users():
        log = source.read(user)
        half = np.random.default_rng(int(user)).integers(0, 2, int(log.card.max()) + 1)
        try:
            task = SrsBenchmark()(replace(log, preset=half[log.card]), same_day=True)
            fold = task.folds[-1]
            known = task.reviews.take(np.arange(fold.train[-1] + 1))
            model = PerGroup(Fsrs6()).fit(known, fold.train, np.random.default_rng(0))
        except FitSkipped:
            continue
        sizes.append(len(fold.train))
        differ.append("presets differ" in model.learned.note)
    print(f"{sum(differ)} of {len(sizes)} differ; median {np.median(sizes):.0f} training reviews")
    place = np.searchsorted(EDGES, sizes, side="right")
    for number in np.unique(place):
        here = place == number
        print(f"from {EDGES[number - 1]}: {np.sum(np.array(differ)[here])} of {here.sum()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else USERS)

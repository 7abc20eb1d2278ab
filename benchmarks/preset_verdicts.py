"""Count how often `per_group` finds that presets differ where they were drawn at random.

    python benchmarks/preset_verdicts.py [USERS]

The cards of each simulated user (up to 3,000 reviews) are divided into two presets by
chance, so that one set of parameters is the truth. FSRS-6, last fold, as in docs/method.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from benchmark import benchmark

from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.text.table import Table

EDGES = (0, 200, 400, 800, 1600)


@benchmark()
def main(users: int = 200) -> Table:
    """Return verdicts by number of training reviews."""
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
    place, differs = np.searchsorted(EDGES, sizes, side="right"), np.array(differ)
    print(f"{differs.sum()} of {len(sizes)} differ; median {np.median(sizes):.0f} training reviews")
    by_size = {EDGES[number - 1]: differs[place == number] for number in np.unique(place)}
    rows = [(least, len(own), int(own.sum())) for least, own in by_size.items()]
    return Table(["training reviews from", "users", "differ"], rows)

"""Gradient-boosted trees on the history of a card, by scikit-learn.

    cd examples/boosted_trees
    python -m srs_eval --config-dir conf -m algo=boosted_trees,boosted_trees_monotone,logistic
    python -m srs_eval --config-dir conf -m algo=boosted_trees sweep=optuna_trees

Friedman (2001), *Greedy Function Approximation: A Gradient Boosting Machine*,
https://doi.org/10.1214/aos/1013203451. The latest fifth of the training reviews decides how many
trees there are. Curves have steps, and may rise here and there unless `monotone` is true.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.errors import FitSkipped

LATEST = 0.2
FEWEST = 50  # training reviews
HISTORY = 8  # facts that do not depend on the elapsed time


def facts(reviews: Reviews, rows: IntArray) -> pd.DataFrame:
    """Gather what happened on the card before each of `rows`; NaN where nothing did."""
    columns = {"rating": reviews.rating, "elapsed": np.maximum(reviews.elapsed, 0.0)}
    log = pd.DataFrame(columns | {"failed": ~reviews.recalled, "card": reviews.card})
    by_card = log.groupby("card")
    known = {
        "rating": by_card["rating"].shift(),
        "rating_before": by_card["rating"].shift(2),
        "first_rating": by_card["rating"].transform("first"),
        "interval": by_card["elapsed"].shift(),
        "interval_before": by_card["elapsed"].shift(2),
        "reviews": by_card.cumcount(),
        "failures": by_card["failed"].cumsum() - log["failed"],
        "age": by_card["elapsed"].cumsum() - log["elapsed"],
    }
    return pd.DataFrame(known).iloc[rows]


@dataclass(frozen=True)
class BoostedTreesModel:
    """Trees grown on one user's reviews."""

    trees: HistGradientBoostingClassifier
    parameters: tuple[float, ...] = ()

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`."""
        return self.predict_at(reviews, rows, reviews.elapsed[rows, None])[:, 0]

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [rows, k]."""
        p, known = np.empty(elapsed.shape), facts(reviews, rows)
        with threadpool_limits(limits=1):
            for column, days in enumerate(elapsed.T if len(rows) else []):
                log_odds = self.trees.decision_function(np.column_stack([days, known]))
                p[:, column] = expit(np.clip(log_odds, -20, 20))
        return p


@dataclass(frozen=True)
class BoostedTrees(Algorithm):
    """Trees that lower the log loss of one user's reviews.

    Parameters
    ----------
    monotone : bool
        Whether recall may never rise with elapsed time.
    most_trees : int
        Upper limit of the number of trees.
    learning_rate : float
        What each tree counts.
    leaves : int
        Leaves of a tree, 2 or more.
    smallest_leaf : int
        Training reviews in a leaf, at least.
    l2 : float
        What draws the values of leaves to 0.
    """

    monotone: bool = False
    most_trees: int = 200
    learning_rate: float = 0.1
    leaves: int = 6
    smallest_leaf: int = 40
    l2: float = 5.0

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> BoostedTreesModel:
        """Grow as many trees on `rows` as predict the latest of them best from those before."""
        rows = np.sort(rows)
        begin, recalled = len(rows) - int(len(rows) * LATEST), reviews.recalled[rows]
        if len(rows) < FEWEST or len(np.unique(recalled[:begin])) < 2:
            raise FitSkipped(f"{len(rows)} training reviews are too few to split")
        x = np.column_stack([reviews.elapsed[rows], facts(reviews, rows)])
        with threadpool_limits(limits=1):
            tried = self.trees(self.most_trees).fit(x[:begin], recalled[:begin])
            losses = [
                np.logaddexp(0.0, np.where(recalled[begin:], -log_odds, log_odds)).sum()
                for log_odds in map(np.ravel, tried.staged_decision_function(x[begin:]))
            ]
            return BoostedTreesModel(self.trees(int(np.argmin(losses)) + 1).fit(x, recalled))

    def trees(self, number: int) -> HistGradientBoostingClassifier:
        """Return as many trees, not grown yet."""
        return HistGradientBoostingClassifier(
            max_iter=number,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.smallest_leaf,
            l2_regularization=self.l2,
            monotonic_cst=[-1] + [0] * HISTORY if self.monotone else None,
            early_stopping=False,  # the library's own goes by reviews drawn at random
            random_state=0,
        )

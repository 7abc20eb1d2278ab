"""Gradient-boosted trees on what the logistic regression reads from a card's history."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import ThreadpoolController

from srs_eval.algorithms.baselines import FlatModel
from srs_eval.algorithms.features.logistic_features import counted_before, on_same_day
from srs_eval.algorithms.history import History, HistoryModel, history_of
from srs_eval.algorithms.options import require_above_zero, require_bool, require_whole
from srs_eval.engine.probability import uncertain
from srs_eval.errors import FitSkipped
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Learned, MemoryModel, Reviews

# The first two columns are all that depends on the interval of the predicted review.
_FALLS_WITH_TIME = (-1, 1)
# Of the training reviews, in time order, what decides how many trees there are.
_LATEST = 0.2
_FEWEST = 50


def facts(history: History, rows: IntArray, elapsed: FloatArray) -> FloatArray:
    """Gather what the features of the logistic regression are made of, [len(rows), 15].

    Trees put facts together by themselves, so there are no products and no indicators, and trees
    see only the order of numbers, so there are no logarithms.
    """
    now = elapsed, on_same_day(history, rows, elapsed)
    return np.stack([*now, *counted_before(history, rows)], axis=1, dtype=np.float64)


@lru_cache(maxsize=1)
def _threads() -> ThreadpoolController:
    """Find the threads that trees are grown with: one is enough for one user."""
    return ThreadpoolController()


@dataclass(frozen=True, slots=True)
class BoostedTreesModel(HistoryModel):
    """Trees grown on one user's reviews."""

    trees: Any

    parameters: ClassVar[tuple[float, ...]] = ()

    def predict_after(self, history: History, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall `elapsed` days after the review before each of `rows`."""
        if len(rows) == 0:
            return np.empty(0)
        seen = facts(history, rows, elapsed)
        with _threads().limit(limits=1):
            return uncertain(expit(self.trees.decision_function(seen)))


@dataclass(frozen=True, slots=True)
class BoostedTrees(Algorithm):
    """Gradient-boosted decision trees, grown to lower the log loss of one user's reviews.

    Friedman (2001), *Greedy Function Approximation: A Gradient Boosting Machine*, The Annals of
    Statistics 29, https://doi.org/10.1214/aos/1013203451, as scikit-learn's
    HistGradientBoostingClassifier. How many trees there are is what predicts the latest fifth
    of the training reviews best from those before; then as many are grown on all of them. Reads
    elapsed time, whole days and ratings, in fractional days those of same-day reviews included;
    number of parameters grows with the log, some 10 a tree. What trees are shown
    are the 15 facts of which the 34 features of
    `srs_eval.algorithms.features.logistic.Logistic` are made. No published row.

    Without the constraint curves may rise here and there, and they always have steps.

    Parameters
    ----------
    monotone : bool
        Whether recall may never rise with elapsed time.
    most_trees : int
        Upper limit of the number of trees.
    learning_rate : float
        What is kept of each tree.
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

    def __post_init__(self) -> None:
        require_bool("boosted_trees", "monotone", self.monotone)
        require_above_zero("boosted_trees", "learning_rate", self.learning_rate)
        require_above_zero("boosted_trees", "l2", self.l2, or_zero=True)
        for option, least in (("most_trees", 1), ("leaves", 2), ("smallest_leaf", 1)):
            require_whole("boosted_trees", option, getattr(self, option), least=least)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> MemoryModel:
        """Learn from the outcomes of `rows`; with too few to split, from their mean alone."""
        if len(rows) == 0:
            raise FitSkipped("boosted_trees: there are no training reviews to learn from")
        rows = np.sort(rows)
        recalled = reviews.recalled[rows]
        begin = len(rows) - int(len(rows) * _LATEST)
        if len(rows) < _FEWEST or len(np.unique(recalled[:begin])) < 2:
            # Of two outcomes seen beforehand, so that nothing is certain.
            why = f"too little to split in {len(rows)} training reviews: their mean is predicted"
            mean = float((recalled.sum() + 1) / (len(rows) + 2))
            return FlatModel(mean, Learned(note=why, fallback=True))
        seen = facts(history_of(reviews), rows, reviews.elapsed[rows])
        with _threads().limit(limits=1):
            number = self._number(seen, recalled, begin)
            trees = self._trees(number).fit(seen, recalled)
        return BoostedTreesModel(trees)

    def _number(self, seen: FloatArray, recalled: NDArray[np.bool_], begin: int) -> int:
        """Return the number of trees that predicts the latest reviews best from those before."""
        trees = self._trees(self.most_trees).fit(seen[:begin], recalled[:begin])
        later = recalled[begin:]
        losses = [
            np.logaddexp(0.0, np.where(later, -log_odds.ravel(), log_odds.ravel())).sum()
            for log_odds in trees.staged_decision_function(seen[begin:])
        ]
        return int(np.argmin(losses)) + 1

    def _trees(self, number: int) -> HistGradientBoostingClassifier:
        others = (0,) * 13
        return HistGradientBoostingClassifier(
            max_iter=number,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.smallest_leaf,
            l2_regularization=self.l2,
            monotonic_cst=(*_FALLS_WITH_TIME, *others) if self.monotone else None,
            # The library's own stops by reviews drawn at random, not by the latest.
            early_stopping=False,
            random_state=0,
        )

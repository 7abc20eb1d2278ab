"""The log that most small fits of tests are made to, in two parts, and a fit to the first."""

import numpy as np

from srs_eval.evaluation.checks.toy_log import trial_task

TASK = trial_task(same_day=True)
REVIEWS, (FOLD,) = TASK.reviews, TASK.folds


def fitted(algorithm, reviews=REVIEWS, rows=FOLD.train, seed=0):
    """Fit an algorithm, to the training rows if no others are given."""
    return algorithm.fit(reviews, rows, np.random.default_rng(seed))

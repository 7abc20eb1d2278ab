"""FSRS-6 learned review by review; `test_josh.py` has it against the published numbers."""

import numpy as np
import pytest

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.one_step import train_one_step
from srs_eval.checks.toy_log import trial_task
from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import FitError

SPACE = Fsrs6().widest_space()
DEFAULTS = np.array(SPACE.defaults)


def history(*days, rating=3):
    return reviews_from_columns(
        user=1, source="one card", card=[1] * len(days), rating=[rating] * len(days), day=days
    )


@pytest.mark.slow
def test_before_any_update_only_the_first_stability_and_the_decay_are_learned():
    learned = train_one_step(history(0, 4), np.array([1]), DEFAULTS, SPACE)
    assert np.flatnonzero(learned != DEFAULTS).tolist() == [2, 20]
    assert learned[2] > DEFAULTS[2]


def test_same_day_reviews_are_walked_through_and_not_learned_from():
    reviews = history(0, 0, 0, 4)
    same_day = train_one_step(reviews, np.array([1, 2]), DEFAULTS, SPACE)
    np.testing.assert_array_equal(same_day, DEFAULTS)
    after = train_one_step(reviews, np.array([3]), DEFAULTS, SPACE)
    assert after[20] != DEFAULTS[20]
    # What is peculiar to same-day updates is never learned.
    np.testing.assert_array_equal(after[17:20], DEFAULTS[17:20])


def test_each_review_is_learned_from_in_its_turn():
    task = trial_task(same_day=True)
    rows = task.folds[0].train
    half = len(rows) // 2
    first = train_one_step(task.reviews, rows[:half], DEFAULTS, SPACE)
    then = train_one_step(task.reviews, rows[half:], first, SPACE)
    together = train_one_step(task.reviews, rows, DEFAULTS, SPACE)
    np.testing.assert_allclose(then, together, atol=5e-6)


def test_parameters_stay_in_their_bounds():
    start = np.array(SPACE.lower)
    learned = train_one_step(history(*range(0, 400, 3), rating=4), np.arange(1, 134), start, SPACE)
    assert (learned >= SPACE.lower).all()
    assert (learned <= SPACE.upper).all()


def test_what_is_not_finite_is_an_error():
    start = DEFAULTS.copy()
    start[8] = np.nan
    with pytest.raises(FitError, match="one review at a time ended at the parameters"):
        train_one_step(history(0, 1, 4), np.array([1, 2]), start, SPACE)

"""The same simulated people with another scheduler."""

import math
from dataclasses import fields

import numpy as np
import pytest

from srs_eval.data.simulated.learner import draw_learner
from srs_eval.data.simulated.scheduler import draw_app
from srs_eval.data.synthetic import SyntheticUsers

AGAIN, HARD, GOOD, EASY = 1, 2, 3, 4
# First rating; later ratings with the days that passed before each; interval and ease at the end.
SM2 = [
    (GOOD, [], (1, 2.5)),
    (EASY, [], (4, 2.5)),
    (GOOD, [(GOOD, 1), (GOOD, 2)], (6.25, 2.5)),
    (GOOD, [(GOOD, 5)], (7.5, 2.5)),  # (1 + half of 4 days late) * 2.5
    (EASY, [(EASY, 6)], (19.5, 2.65)),  # (4 + 2 days late) * 2.5 * 1.3
    (GOOD, [(HARD, 9)], (2, 2.35)),  # at least a day more
    (EASY, [(HARD, 9), (HARD, 9)], (6, 2.2)),
    (EASY, [(AGAIN, 4)], (1, 2.3)),
    (GOOD, [(AGAIN, 1)] * 9, (1, 1.3)),
    (EASY, [(GOOD, 36500)] * 3, (36500, 2.5)),
]


def states(name, first, later):
    """Return what a scheduler believes after each rating, and the intervals it asks for."""
    app = draw_app(np.random.default_rng(1), name)
    state = app.first(np.array([first]))
    found = [state]
    for rating, days in later:
        state = app.later(*state, np.array([days]), np.array([rating]))
        found.append(state)
    middle = np.array([0.5])  # of the range of the fuzz
    return found, [int(app.draws(each[0], middle).drawn[0]) for each in found]


@pytest.mark.parametrize(("first", "later", "expected"), SM2)
def test_sm2_is_that_of_anki(first, later, expected):
    found, asked = states("sm2", first, later)
    assert np.ravel(found[-1]) == pytest.approx(expected)
    assert asked[-1] == pytest.approx(min(expected[0], 3650), abs=1, rel=0.03)  # fuzz


@pytest.mark.parametrize("rating", [AGAIN, HARD, GOOD, EASY])
def test_fixed_intervals_do_not_depend_on_ratings(rating):
    _, asked = states("fixed", rating, [(rating, 3)] * 8)
    assert asked == [1, 2, 4, 8, 16, 32, 64, 64, 64]


def test_only_the_app_of_a_person_changes_with_the_scheduler():
    own, *others = (
        draw_learner(900, np.random.default_rng(4), name)
        for name in ("own", "fsrs_70", "sm2", "fixed")
    )
    for other in others:
        assert type(other.app) is not type(own.app) or other.app.desired_retention == 0.7
        np.testing.assert_array_equal(other.app.first_stability, own.app.first_stability)
        for field in fields(own):
            if field.name not in ("app", "memory"):
                assert np.array_equal(getattr(own, field.name), getattr(other, field.name))
        assert repr(own.memory) == repr(other.memory)


def test_outcomes_follow_the_truth_and_what_the_scheduler_asks_for():
    recalls = {}
    for name in ("fsrs_70", "fsrs_95", "sm2", "fixed"):
        log = SyntheticUsers(max_reviews=3000, scheduler=name).read(3)
        error = math.sqrt((log.truth * (1 - log.truth)).sum())
        assert abs(log.recalled.sum() - log.truth.sum()) < 4 * error
        recalls[name] = log.truth[log.elapsed_days > 0].mean()
    assert recalls["fsrs_70"] < recalls["fsrs_95"] - 0.05
    assert "scheduler sm2, seed 1" in SyntheticUsers(seed=1, scheduler="sm2").location

"""The checks are checked: every planted cheat is caught, and its message says what it did."""

import re
from typing import ClassVar

import numpy as np
import pytest
from offenders import (
    CAUGHT,
    HONEST,
    AddsUpSecondsToAClock,
    ChangesItsInput,
    HasAnotherCurve,
    LeaksATenMillionthOfItsOutcome,
    LeaksLessThanRounding,
    Model,
    NeedsTheReviewAfterwards,
    ReadsItsOwnRating,
    ReadsTheTruth,
)

from srs_eval.checks import CheckFailed, check_algorithm, check_blind_to_the_future
from srs_eval.errors import SrsEvalError
from srs_eval.trial import trial_task


@pytest.mark.parametrize(("cheat", "check", "lesson"), CAUGHT)
def test_a_planted_cheat_is_caught_and_told_what_it_did(cheat, check, lesson):
    with pytest.raises(CheckFailed) as caught:
        check(cheat())
    assert str(caught.value).startswith(f"{cheat.__name__}: ")
    assert lesson in str(caught.value)


@pytest.mark.parametrize("cheat", [cheat for cheat, _, _ in CAUGHT])
def test_running_all_checks_catches_it_too(cheat):
    with pytest.raises(CheckFailed, match=cheat.__name__):
        check_algorithm(cheat())


@pytest.mark.parametrize("honest", HONEST)
def test_an_honest_algorithm_passes(honest):
    check_algorithm(honest())


@pytest.mark.parametrize("size", [1e-6, 1e-7, 1e-10, 1e-13])
def test_an_answer_given_away_is_noticed_however_small_the_hint(size):
    class GivesItAway(LeaksLessThanRounding):
        leak = size

    with pytest.raises(CheckFailed, match=r"its own answer|everything after it"):
        check_blind_to_the_future(GivesItAway())


def test_a_small_difference_is_told_with_the_digits_in_which_it_is():
    with pytest.raises(CheckFailed) as caught:
        check_blind_to_the_future(LeaksATenMillionthOfItsOutcome())
    before, now = re.findall(r"\((0\.\d+), now (0\.\d+);", str(caught.value))[0]
    assert abs(float(before) - float(now)) == pytest.approx(1e-7, rel=1e-3)


def test_the_invented_clock_hangs_together_so_that_a_cheat_can_add_it_up():
    task = trial_task(same_day=True)
    taken = AddsUpSecondsToAClock().column(task.reviews)[task.folds[0].test] < 0.5
    assert task.reviews.duration_ms[task.folds[0].test[taken]].mean() > 10_000


def test_reading_past_the_end_of_the_log_is_explained():
    with pytest.raises(CheckFailed, match="had not been made yet"):
        check_blind_to_the_future(NeedsTheReviewAfterwards())


def test_all_failures_are_reported_at_once():
    class Doubly(ReadsItsOwnRating):
        curve = HasAnotherCurve.curve

    with pytest.raises(CheckFailed) as caught:
        check_algorithm(Doubly())
    assert len(str(caught.value).splitlines()) == 2


def test_a_failed_check_is_one_of_our_errors():
    assert issubclass(CheckFailed, SrsEvalError)


def test_truth_may_be_read_only_where_that_is_said():
    class SaysSo(ReadsTheTruth):
        sees_truth: ClassVar[bool] = True

    check_algorithm(SaysSo())


def test_an_algorithm_has_to_say_what_tables_need_to_know():
    class SaysNothing:
        def fit(self, reviews, rows, rng):
            return Model(lambda reviews, rows: np.full(len(rows), 0.9))

    with pytest.raises(CheckFailed, match="same_day, online, sees_truth"):
        check_algorithm(SaysNothing())


def test_a_task_of_ones_own_is_used_and_left_as_it_was():
    task = trial_task(same_day=True, seed=7)
    kept = task.reviews.elapsed.copy()
    with pytest.raises(CheckFailed):
        check_algorithm(ChangesItsInput(), task)
    np.testing.assert_array_equal(task.reviews.elapsed, kept)

"""What the honesty checks show to an algorithm: a toy log, other answers and other futures."""

import numpy as np
import pytest
from cases import pin

from srs_eval.data.cards import since_previous
from srs_eval.data.reviews import GROUPS, columns_of
from srs_eval.evaluation.checks import perturb
from srs_eval.evaluation.checks.toy_log import trial_task
from srs_eval.evaluation.checks.trial import one_sided
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs

TASK = trial_task(same_day=True, seed=3)
IN_DAYS = TASK.reviews
IN_SECONDS = SrsBenchmarkSecs()(IN_DAYS, same_day=True).reviews
BOTH = pytest.mark.parametrize("log", [IN_DAYS, IN_SECONDS], ids=["days", "seconds"])


def test_a_toy_log_is_a_simulated_one_with_all_that_the_checks_need():
    log, days, (fold,) = IN_DAYS, IN_DAYS.elapsed_days, TASK.folds
    later = days > 0
    assert np.bincount(log.card).tolist() == [12] * 40
    np.testing.assert_array_equal([*fold.train, *fold.test], np.flatnonzero(later))
    assert (fold.number, len(fold.train)) == (0, int(0.6 * later.sum()))
    without = trial_task(same_day=False, seed=3).reviews.elapsed_days
    np.testing.assert_array_equal(without, days[days != 0])
    groups = {name: len(np.unique(getattr(log, name))) for name in GROUPS}
    assert groups == {"deck": 3, "preset": 2, "note_type": 2, "note": 20}
    assert pin(log) == ("4c5e8481bca1df97", pytest.approx([0.76651425, 10139.0771, 3357018.28]))


@BOTH
def test_other_answers_are_right_or_wrong_and_slow_or_quick_as_asked(log):
    rng, rows = np.random.default_rng(0), np.arange(200, 300)
    recalled = rng.random(len(rows)) < 0.5
    for slowly, low, high in ((None, 0, 1), (True, 0.5, 1), (False, 0, 0.5)):
        other = perturb.other_answers(log, rows, recalled, rng, slowly=slowly)
        np.testing.assert_array_equal(other.recalled[rows], recalled)
        assert {*other.rating[rows]} == {1, 3, 4}
        slow = np.log(other.duration_ms / 100) / np.log(1000)
        assert low <= slow[rows].min() < low + 0.1 < high - 0.1 < slow[rows].max() <= high
        # up to two hours that later ones were answered later, but for the first of them
        is_moved = np.isin(np.arange(len(log)), rows[1:]) & (log.elapsed > 0) & (log is IN_SECONDS)
        np.testing.assert_allclose(other.elapsed - log.elapsed, is_moved * slow / 12, atol=1e-12)


@BOTH
@pytest.mark.parametrize("hard", [True, False])
def test_another_future_is_one_that_could_be_and_the_past_is_as_it_was(log, hard):
    for begin in (250, 478, 479):
        rng, after = np.random.default_rng(0), slice(begin + 1, None)
        recalled = rng.random(len(log) - begin) < 0.5
        other = perturb.other_future(log, recalled, rng, hard=hard)
        np.testing.assert_array_equal(other.recalled[begin:], recalled)
        assert ((other.duration_ms[begin:] > 3162) == hard).all()
        for name, column in columns_of(log).items():
            until = begin + (name not in ("rating", "duration_ms"))
            np.testing.assert_array_equal(getattr(other, name)[:until], column[:until], name)
        assert other.user != log.user
        assert {*other.card} == {*log.card[: begin + 1]}
        is_latest = other.card[after] == log.card[begin]
        assert is_latest[::2].all() if hard else not is_latest.any()
        steps = np.diff(other.day[begin:])
        np.testing.assert_array_equal(np.diff(other.row[begin:]), steps)
        assert {*steps} <= ({1} if hard else {*range(3, 9)})
        assert hard or begin > 250 or {3, 8} <= {*steps}
        days = since_previous(other.day, other.card)[after]
        np.testing.assert_array_equal(other.elapsed_days[after], days)
        apart = np.abs(other.elapsed[after] - days)
        assert (apart < 0.5).all()
        assert (apart > 0).all() == (log is IN_SECONDS or not len(apart))
        assert (other.state[after] == (3 if hard else 2)).all()
        for name in GROUPS:
            past = getattr(log, name)[: begin + 1]
            assert (getattr(other, name)[after] == (past.min() if hard else past.max())).all()


def test_a_log_is_cut_off_and_other_times_are_around_the_factual_one():
    assert len(perturb.cut_after(IN_DAYS, 7)) == 8
    rows = np.flatnonzero(IN_DAYS.elapsed)
    assert (np.diff(perturb.other_times(IN_DAYS, rows, np.random.default_rng(0))) > 0).all()


def test_moves_to_one_side_are_no_rounding_where_chance_is_below_1_in_10_000():
    plain = [(14, 0, 0), (0, 15, 5), (2, 21, 9), (3, 0, 0)]
    for up, down, still in (*plain, (0, 0, 9), (14, 0, 1), (20, 2, 0), (2, 0, 1)):
        moves = np.repeat([1e-15, -1e-15, 0.0], [up, down, still])
        assert bool(one_sided(moves)) == ((up, down, still) in plain)

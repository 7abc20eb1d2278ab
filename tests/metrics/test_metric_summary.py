from __future__ import annotations

import math

import numpy as np
import pytest

from srs_eval.metrics.summary import summarise


def test_users_reviews_and_all_together_are_told_apart():
    scores = np.array([[0.3, 0.7], [0.5, np.nan]])
    rows = summarise(["log_loss", "auc"], scores, np.array([300, 100]), {"log_loss": 0.36})
    assert rows["log_loss"].mean_users == pytest.approx(0.4)
    assert rows["log_loss"].mean_reviews == pytest.approx(0.35)
    assert rows["log_loss"].pooled == 0.36
    assert rows["log_loss"].lo < 0.3 < 0.5 < rows["log_loss"].hi  # of two users, wide
    assert (rows["auc"].mean_users, rows["auc"].n_users) == (0.7, 1)
    assert math.isnan(rows["auc"].pooled)
    assert math.isnan(rows["auc"].lo)


def test_the_effective_number_of_users_is_of_those_with_the_metric():
    scores = np.array([[0.3, 0.7], [0.5, np.nan], [0.4, 0.6], [0.1, 0.9]])
    rows = summarise(["log_loss", "auc"], scores, np.array([300, 100, 50, 0]), {})
    assert rows["log_loss"].n_effective == pytest.approx(450**2 / (300**2 + 100**2 + 50**2))
    assert rows["auc"].n_effective == pytest.approx(350**2 / (300**2 + 50**2))
    assert rows["auc"].mean_reviews == pytest.approx((0.7 * 300 + 0.6 * 50) / 350)
    (alike,) = summarise(["auc"], scores[:, 1:], np.full(4, 9), {}).values()
    assert alike.n_effective == pytest.approx(alike.n_users) == 3


def test_the_interval_holds_the_true_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    scores = rng.exponential(1, (60, 400))  # each column is another experiment
    rows = summarise([str(k) for k in range(400)], scores, np.ones(60), {})
    held = np.mean([row.lo <= 1 <= row.hi for row in rows.values()])
    assert 0.975 <= held <= 1


def test_the_interval_is_cut_off_at_the_bounds_of_the_metric():
    scores = np.array([[0.01], [0.02], [0.3]])
    free = summarise(["brier"], scores, np.ones(3), {})["brier"]
    row = summarise(["brier"], scores, np.ones(3), {}, bounds={"brier": (0.0, 1.0)})["brier"]
    assert free.lo < 0
    assert free.hi > 1
    assert (row.lo, row.hi) == (0, 1)


def test_users_who_agree_leave_no_width():
    row = summarise(["brier"], np.full((5, 1), 0.1), np.array([5, 6, 7, 8, 9]), {})["brier"]
    assert (row.lo, row.hi) == (0.1, 0.1)
    assert row.mean_users == pytest.approx(0.1)


def test_a_single_user_takes_the_interval_of_the_cards():
    one = (["brier"], np.array([[0.1]]), np.array([5]), {"brier": 0.1})
    row = summarise(*one, single_user={"brier": (0.05, 0.15)})["brier"]
    assert (row.mean_users, row.mean_reviews, row.lo, row.hi) == (0.1, 0.1, 0.05, 0.15)
    assert math.isnan(summarise(*one)["brier"].lo)

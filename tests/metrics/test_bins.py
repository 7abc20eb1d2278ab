from __future__ import annotations

import math

import numpy as np
import pytest

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.metrics.bins import WIKI_2024, RmseBins, rmse_bins, rmse_bins_by_p
from srs_eval.metrics.calibration import Ece, ece
from srs_eval.metrics.score import score


def by_loop(p, recalled, elapsed_days, nth_review, lapses, bases):
    """Group the reviews in a dictionary, with the published formulas written out."""
    (a, interval), (b, reviews), (c, failed) = bases
    groups = {}
    for row, (days, nth, again) in enumerate(zip(elapsed_days, nth_review, lapses, strict=True)):
        days = max(days, 1e-6)
        key = (
            round(a * interval ** math.floor(math.log(days, interval)), 2),
            round(b * reviews ** math.floor(math.log(nth, reviews))),
            round(c * failed ** math.floor(math.log(again, failed))) if again else 0,
        )
        groups.setdefault(key, []).append(row)
    total = sum(
        len(rows) * (p[rows].mean() - recalled[rows].mean()) ** 2 for rows in groups.values()
    )
    return math.sqrt(total / len(p))


FSRS = ((2.48, 3.62), (1.99, 1.89), (1.65, 1.73))
WIKI = ((2.48, 2.57), (1.52, 1.58), (1.4, 1.48))


@pytest.mark.parametrize(("bases", "options"), [(FSRS, {}), (WIKI, {"scales": WIKI_2024})])
def test_it_equals_the_formulas_in_a_loop(bases, options):
    rng = np.random.default_rng(1)
    n = 4000
    p = rng.beta(9, 1.2, n)
    recalled = rng.random(n) < 0.85
    facts = (
        np.floor(rng.exponential(40, n)),
        1 + np.floor(rng.exponential(6, n)).astype(int),
        np.floor(rng.exponential(2, n)).astype(int),
    )
    got = rmse_bins(p, recalled, *facts, **options)
    assert got == pytest.approx(by_loop(p, recalled, *facts, bases), abs=1e-13)


def test_huge_intervals_and_counts_have_a_bin():
    assert rmse_bins([0.5], [1], [4e8], [10**8], [10**8]) == pytest.approx(0.5)


def test_it_is_undefined_without_the_facts(one_user):
    assert math.isnan(score([0.9, 0.4], [1, 0])["rmse_bins"])
    assert not math.isnan(RmseBins()(one_user()))
    assert math.isnan(rmse_bins([], [], [], [], []))
    assert math.isnan(rmse_bins_by_p([], []))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (([1.0], [2, 2], [0, 0]), "elapsed_days has shape"),
        (([1.0, math.nan], [2, 2], [0, 0]), "elapsed_days must be at least 0 everywhere"),
        (([1.0, 2.0], [0, 2], [0, 0]), "nth_review must be at least 1 everywhere, found 0"),
        (([1.0, 2.0], [1, 2], [0, -1]), "lapses must be at least 0 everywhere, found -1"),
    ],
)
def test_facts_that_do_not_fit_are_refused(facts, message):
    with pytest.raises(ScoreError, match=message):
        rmse_bins([0.5, 0.5], [1, 0], *facts)


def test_the_base_rate_scores_nothing_in_the_old_form():
    assert rmse_bins_by_p([0.75] * 4, [1, 1, 1, 0]) == pytest.approx(0, abs=1e-15)


def test_equal_bins_hold_their_lower_edge_and_the_last_one_holds_one():
    assert ece([0.3, 0.39], [1, 0]) == pytest.approx(abs(0.69 - 1) / 2)
    assert ece([1.0, 0.95], [1, 0]) == pytest.approx(0.475)


def test_unusual_bins_show_in_the_name():
    assert (Ece().name, Ece(15).name) == ("ece", "ece_15")
    with pytest.raises(ConfigError, match="at least 1 bin"):
        Ece(0)

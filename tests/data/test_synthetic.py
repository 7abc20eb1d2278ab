"""Simulated people: pinned, and calibrated."""

from itertools import pairwise

import numpy as np
import pytest
from cases import pin

from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ReviewLogError


@pytest.fixture(scope="module")
def logs():
    source = SyntheticUsers(users=40, seed=3, max_reviews=4000)
    return [source.read(user) for user in source.users()]


def standard_score(recalled, truth):
    """How many standard errors the recalls are away from what the truth promises."""
    return (recalled.sum() - truth.sum()) / np.sqrt((truth * (1 - truth)).sum())


# Seed, scale and most reviews; a digest of all whole numbers, and means of truth, answer times and
# intervals.
PINNED = [
    (2026, 0.2, 2000, "0a4b8c3d2fbd83c9", (0.87771451, 21492.157, 1263517.8)),
    (777, 0.2, 5000, "87cbd26e7e5bdab3", (0.86530597, 11414.514, 1176299.4)),
    (5, 0.9, None, "ffdc517d250b976f", (0.90638655, 26914.947, 1656061.4)),
]


@pytest.mark.parametrize(("seed", "scale", "most", "digest", "means"), PINNED)
def test_logs_stay_what_they_are(seed, scale, most, digest, means):
    source = SyntheticUsers(seed=seed, size_scale=scale, max_reviews=most)
    assert pin(source.read(1)) == (digest, pytest.approx(means, rel=1e-7))


def test_truth_is_the_probability_of_recall_whatever_is_known_before_an_answer(logs):
    recalled, truth, *others = (
        np.concatenate([getattr(log, name) for log in logs])
        for name in ("recalled", "truth", "state", "elapsed_days", "card", "elapsed_seconds")
    )
    for values in (truth, *others):
        edges = np.quantile(values, np.linspace(0, 1, 21 if values is truth else 5))
        for low, high in pairwise(edges):
            rows = (values >= low) & (values <= high)
            assert abs(standard_score(recalled[rows], truth[rows])) < 4.5, low
    gains = []
    for log in logs:
        after_again = np.r_[False, log.rating[:-1] == 1]
        for rows in (slice(None), after_again):
            assert abs(standard_score(log.recalled[rows], log.truth[rows])) < 4.5
        later = log.elapsed_days > 0
        recalled, truth = log.recalled[later], log.truth[later]
        rate = recalled.mean()
        entropy = -(rate * np.log(rate) + (1 - rate) * np.log1p(-rate))
        gains.append(1 + np.where(recalled, np.log(truth), np.log1p(-truth)).mean() / entropy)
    # The rate was taken from the very outcomes it is scored on.
    assert min(gains) > -0.03
    assert 0.1 < np.median(gains) < 0.45


def test_a_source_reads_only_whom_it_has():
    for user in (0, 9, "1", "anna"):
        with pytest.raises(ReviewLogError, match="numbered from 1 to 8"):
            SyntheticUsers().read(user)
    many = SyntheticUsers(users=1_000_000_000, max_reviews=50)
    assert {many.read(user).day[0] for user in range(1, 40)} == {0}
    assert len(many.users()) == 1_000_000_000
    assert len(many.read(999_999_999)) <= 50
    assert SyntheticUsers(max_reviews=1).read(1).elapsed_days.tolist() == [-1]

"""Logistic regression: features by a plain loop; test_josh.py has the published fit."""

import numpy as np
import pytest

from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.features.logistic_features import features, on_same_day
from srs_eval.algorithms.history import history_of
from srs_eval.checks.toy_log import trial_task
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark

LOG = trial_task(same_day=True).reviews
PROTOCOLS = {
    "days": SrsBenchmark(),
    "seconds": SrsBenchmarkSecs(),
    "equalised": SrsBenchmarkEqualised(),
}
SECONDS = SrsBenchmarkSecs()(LOG, same_day=True)


def squeezed(days):
    return (np.log(days + 1e-5) + 1.3) / 5


def plain_features(reviews, row):
    """Features of one review, by walking along its card."""
    rows = np.flatnonzero(reviews.card[: row + 1] == reviews.card[row])
    counted = [nth for nth in range(1, len(rows)) if reviews.elapsed[rows[nth]] > 0]
    counts = dict.fromkeys(("sf", "sp", "nf", "np", "n0", "n1"), 0)
    e, e_days, total, mark, ever = 0.0, 0, 0.0, 0.0, False
    for before, nth in zip([0, *counted], counted, strict=False):
        first = before == 0
        r = reviews.rating[rows[nth - 1]]
        if not first:
            e, e_days = reviews.elapsed[rows[before]], reviews.elapsed_days[rows[before]]
        total += e
        if e_days > 0:
            counts["nf" if r == 1 else "np"] += 1
        elif not first:
            counts["sf" if r == 1 else "sp"] += 1
        counts["n1" if e_days > 0 else "n0"] += 1
        ever = ever or r > 1
        if r == 1 or first:
            mark = total
    f, since = reviews.rating[rows[0]], total - mark
    t, sd = squeezed(reviews.elapsed[row]), float(reviews.elapsed_days[row] == 0)
    log, other = np.log1p, 1 - sd
    sf, sp, nf, passes = (log(counts[key]) for key in ("sf", "sp", "nf", "np"))
    return [
        t, t * (r == 2), t * (r == 3), t * (r == 4), t * (r == 2 and first), t * (r > 2 and first),
        t * sf, t * passes * other, t * nf * other, t * sp,
        1, r == 2, r == 3, r == 4, f == 2, f == 3, f == 4,
        first and f == 2, first and f == 3, first and f == 4,
        sf, passes * other, squeezed(e), nf, passes, sp * sd, ever, squeezed(since), sd,
        squeezed(total), (f > 1) * sf, (f > 1) * nf,
        (f > 1) * log(counts["n0"]), (f > 1) * log(counts["n1"]),
    ]  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_features_are_those_of_a_plain_walk(protocol):
    task = PROTOCOLS[protocol](LOG, same_day=True)
    rows = np.flatnonzero(task.reviews.elapsed > 0)
    found = features(history_of(task.reviews), rows, task.reviews.elapsed[rows])
    expected = [plain_features(task.reviews, row) for row in rows]
    np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-9, atol=1e-9)


def test_days_end_between_what_was_the_same_day_and_what_was_not():
    reviews = SECONDS.reviews
    past, rows = history_of(reviews), np.flatnonzero(reviews.elapsed > 0)
    own = reviews.elapsed[rows]
    same_day = reviews.elapsed_days[rows] == 0
    assert same_day.any()
    np.testing.assert_array_equal(on_same_day(past, rows, own), same_day)
    assert on_same_day(past, rows, np.full(len(rows), 1e-9)).mean() > 0.99
    assert not on_same_day(past, rows, np.maximum(own, 1.0)).any()


def test_recent_reviews_count_more_unless_said_otherwise():
    np.testing.assert_allclose(Logistic().weights(3), [0.1, 0.1 + 0.9 / 16, 1.0])
    np.testing.assert_allclose(Logistic(fit="reference").weights(3), Logistic().weights(3))
    np.testing.assert_array_equal(Logistic(recency="none").weights(3), 1.0)

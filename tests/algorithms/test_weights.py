"""Whom weights were learned from is recognised, also where the log has changed since."""

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms.recurrent.weights import SeenUser, Weights, digests_of
from srs_eval.checks.toy_log import trial_task
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark

WHOLE = trial_task(same_day=True).reviews
DAYS = SrsBenchmark()(WHOLE, same_day=False).reviews
SECONDS = SrsBenchmarkSecs()(WHOLE, same_day=True).reviews
LATER = np.flatnonzero(DAYS.elapsed_days != 0)


def first(count, log=DAYS, **changed):
    return replace(log.take(np.arange(count)), **changed)


def with_another_rating_at(row):
    rating = DAYS.rating.copy()
    rating[row] = 4 - rating[row]
    return replace(DAYS, rating=rating)


@pytest.mark.parametrize(
    ("learned_from", "log", "known"),
    [
        (DAYS, DAYS, True),
        (DAYS, SECONDS, True),
        (SECONDS, DAYS, True),
        (DAYS, replace(SECONDS, user="somebody", card=SECONDS.card * 3 + 5), True),
        (DAYS, first(LATER[40]), True),
        (first(300), SECONDS, True),
        (DAYS, with_another_rating_at(LATER[-1]), True),
        (DAYS, with_another_rating_at(0), False),
        (DAYS, trial_task(same_day=False, seed=5).reviews, False),
        # The first day of new cards, all known, is the same for many.
        (first(256), first(256, user="somebody"), True),
        (first(255), first(255, user="somebody"), False),
        (first(1), first(1), True),
        (first(0), first(0), False),
    ],
)
def test_a_seen_user_is_recognised(learned_from, log, known):
    seen = SeenUser(learned_from.user, len(learned_from), digests_of(learned_from))
    found = Weights("gru", (), (), (), (seen,)).seen_in(log)
    assert found == (seen if known else None)

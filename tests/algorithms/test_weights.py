"""Whom weights were learned from is recognised, also where the log has changed since."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs PyTorch")

from srs_eval.algorithms.recurrent.weights import SeenUser, Weights, digests_of
from srs_eval.checks.toy_log import trial_task

LOG = trial_task(same_day=False).reviews


@pytest.fixture
def weights():
    seen = SeenUser(name=LOG.user, reviews=len(LOG), digests=digests_of(LOG))
    return Weights("gru", (), (), (), (seen,), {}, "0")


def changed_at(row):
    rating = LOG.rating.copy()
    rating[row] = 4 - rating[row]
    return replace(LOG, rating=rating)


def test_a_seen_user_is_known_cut_off_and_with_a_later_review_changed(weights):
    later = np.flatnonzero(LOG.elapsed_days != 0)
    assert weights.seen_in(LOG) is not None
    assert weights.seen_in(LOG.take(np.arange(later[40]))) is not None
    assert weights.seen_in(changed_at(later[-1])) is not None


def test_a_namesake_with_another_log_is_nobody_known(weights):
    other = trial_task(same_day=False, seed=5).reviews
    assert str(other.user) == str(LOG.user)
    assert weights.seen_in(other) is None

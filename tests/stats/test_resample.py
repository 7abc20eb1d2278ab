"""Draws of clusters, and samples of users by their names."""

import numpy as np
import pytest

from srs_eval.stats.resample import cluster_counts, sample_of

USERS = ("zoe", 30, "ann", 4, "10", "ben", 200, "eve", 1, "Bob")


@pytest.mark.parametrize("size", [1, 4, 9, 10, 11])
def test_a_sample_has_the_same_users_of_any_order_and_keeps_it(size):
    sample = sample_of(USERS, size)
    assert len(set(sample)) == min(size, len(USERS))
    for order in (USERS, USERS[::-1], sorted(USERS, key=str)):
        assert [*sample_of(order, size)] == [user for user in order if user in sample]


@pytest.mark.parametrize(("clusters", "resamples"), [(5, 200), (3_000, 700)])
def test_each_resample_draws_as_many_clusters_as_there_are(clusters, resamples):
    blocks = list(cluster_counts(clusters, resamples, 7))
    drawn = np.concatenate(blocks)
    assert drawn.shape == (resamples, clusters)
    assert (drawn.sum(axis=1) == clusters).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(clusters), abs=6 / np.sqrt(resamples))
    again = np.concatenate(list(cluster_counts(clusters, resamples, 7)))
    assert (again == drawn).all()
    assert len(np.unique(drawn, axis=0)) > resamples / 4

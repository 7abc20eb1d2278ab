"""Predictions that the metric tests share."""

import numpy as np
import pytest
from metric_functions import predicted

from srs_eval.metrics.predictions import Curves


@pytest.fixture(scope="session")
def weyl():
    """Predictions without random numbers that are too high, by `shift`, above 0.9."""

    def build(n, shift):
        k = np.arange(1, n + 1)
        p = 0.5 + 0.5 * np.sqrt((k * 0.6180339887498949) % 1)
        truth = np.where(p > 0.9, p - shift, p)
        return p, (k * 0.41421356237309503) % 1 < truth

    return build


@pytest.fixture(scope="session")
def one_user():
    """Predictions of one user with every fact and some forgetting curves."""

    def build(n=600, cards=60, curves=20, seed=0):
        rng = np.random.default_rng(seed)
        p = rng.beta(9, 1.2, n)
        zeros = np.zeros(curves, np.int64)
        times = np.tile([1.0, 3.0, 10.0, 40.0], (curves, 1))
        sampled = np.sort(rng.choice(n, curves, replace=False))
        strength = rng.exponential(30, curves)[:, None]
        return predicted(
            p,
            rng.random(n) < p,
            card=rng.integers(0, cards, n),
            elapsed_days=rng.integers(1, 300, n).astype(float),
            nth_review=rng.integers(2, 20, n),
            lapses=rng.integers(0, 5, n),
            curves=Curves(
                zeros, zeros, sampled, times, np.full(times.shape, 0.25), 0.9 ** (times / strength)
            ),
        )

    return build

"""Kernels of published models on random histories, against plain interpretation and PyTorch."""

import numpy as np
import pytest
from agreement import expectation, kernels_agree, walk_agrees
from hypothesis import assume, given
from hypothesis_settings import SEEDS, few
from published import PUBLISHED, random_parameters
from random_logs import logs

from srs_eval.engine.compiled import compiled


@pytest.mark.parametrize("equations", PUBLISHED.values(), ids=PUBLISHED)
def test_predictions_and_states_are_those_of_numpy(equations):
    @few(10)
    @given(logs(), SEEDS)
    def check(log, seed):
        w = random_parameters(equations, np.random.default_rng(seed))
        # How a review at p near 1 moves stability is a difference of nearly equal numbers.
        walk_agrees(compiled(equations), w, log.reviews(), rtol=1e-10)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("equations", PUBLISHED.values(), ids=PUBLISHED)
def test_loss_gradient_and_information_are_those_of_pytorch(equations, dtype):
    @few(4)
    @given(logs(reviews=20), SEEDS)
    def check(log, seed):
        w = random_parameters(equations, np.random.default_rng(seed))
        reviews = log.reviews()
        expected, rows, weight = expectation(equations, w, reviews, seed, dtype)
        assume(expected.nearest_kink > 1e-4)
        kernels_agree(compiled(equations), w, reviews, rows, weight, expected, dtype)

    check()

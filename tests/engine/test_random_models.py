"""Kernels of random models on random histories, against plain interpretation and PyTorch."""

import numpy as np
import pytest
from agreement import expectation, kernels_agree, walk_agrees
from hypothesis import assume, given
from hypothesis_settings import SEEDS, few
from random_logs import logs
from random_models import random_models

from srs_eval.engine.compiled import CompiledModel


def parameters(model, seed):
    return np.random.default_rng(seed).uniform(-2, 2, model.size)


@pytest.mark.slow
@few(25)
@given(random_models(), logs(), SEEDS)
def test_predictions_and_states_are_those_of_numpy(equations, log, seed):
    w = parameters(equations, seed)
    walk_agrees(CompiledModel(equations), w, log.reviews())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loss_gradient_and_information_are_those_of_pytorch(dtype):
    @few(15)
    @given(random_models(), logs(reviews=40), SEEDS)
    def check(equations, log, seed):
        w = parameters(equations, seed)
        reviews = log.reviews()
        expected, rows, weight = expectation(equations, w, reviews, seed, dtype)
        assume(expected.nearest_kink > 1e-4)
        kernels_agree(CompiledModel(equations), w, reviews, rows, weight, expected, dtype)

    check()

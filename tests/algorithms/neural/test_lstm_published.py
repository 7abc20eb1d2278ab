"""The LSTM: one pass against one prefix at a time, how it is trained, and honest failures."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from srs_eval.algorithms.neural.fitting import NetworkAlgorithm
from srs_eval.algorithms.neural.lstm_published import LstmNetwork, LstmPublished
from srs_eval.algorithms.neural.model import NetworkModel
from srs_eval.algorithms.neural.network import (
    built,
    log_loss,
)
from srs_eval.algorithms.neural.sequences import histories_before
from srs_eval.algorithms.neural.training import generator_from, last_of
from srs_eval.checks.toy_log import trial_task
from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import ConfigError, FitError


def lstm_model(parameters):
    return NetworkModel(LstmNetwork, (8,), parameters)


def small_log(n_cards=40, seed=0):
    """Cards of 1 to 9 reviews on different days."""
    rng = np.random.default_rng(seed)
    card = np.repeat(np.arange(n_cards), rng.integers(1, 10, n_cards))
    day = np.concatenate(
        [rng.integers(0, 30) + np.cumsum(rng.integers(1, 12, n)) for n in np.bincount(card)]
    )
    order = np.argsort(day, kind="stable")
    rating = rng.choice([1, 2, 3, 4], len(card), p=[0.2, 0.1, 0.6, 0.1])
    return reviews_from_columns(
        user="ada", source="test", card=card[order], rating=rating, day=day[order]
    )


def later_rows(reviews):
    return np.flatnonzero(reviews.elapsed_days > 0)


def test_compiled_training_is_that_of_pytorch_but_for_rounding():
    reviews = trial_task(same_day=False).reviews
    rows = np.flatnonzero(reviews.elapsed_days > 0)
    algorithm = LstmPublished(batch_size=100)
    compiled_model = algorithm.fit(reviews, rows, np.random.default_rng(0))
    histories = histories_before(reviews, rows, longest=64)
    rng = np.random.default_rng(0)
    generator = generator_from(int(rng.integers(2**63)))
    network, _ = algorithm.start(None, reviews, histories, generator)
    order, recipe = rng.permutation(len(histories.length)), algorithm.current_recipe()
    training = NetworkAlgorithm.training(
        algorithm, network, reviews, rows, histories, order, recipe, generator
    )
    last_of(training)
    by_pytorch = lstm_model(tuple(network.vector().tolist()))
    assert compiled_model.predict(reviews, rows) == pytest.approx(
        by_pytorch.predict(reviews, rows), abs=1e-4
    )


def test_larger_networks_are_trained_without_compiling():
    reviews = small_log()
    model = LstmPublished(hidden=9).fit(reviews, later_rows(reviews), np.random.default_rng(0))
    assert len(model.parameters) == 4 * 9 * (5 + 9 + 2) + 9 + 1


def test_the_loss_keeps_its_gradient_where_a_probability_would_round_to_0_or_1():
    log_stability = torch.tensor([20.0, -3.0], requires_grad=True)
    forgotten = torch.tensor([True, False])
    decay = built(LstmNetwork, (8,)).decay(log_stability[:, None], torch.tensor([1.0, 30.0]))
    losses = log_loss(decay, forgotten)
    slopes = torch.autograd.grad(losses.sum(), log_stability)[0]
    assert losses.tolist() == pytest.approx([22.2504, 63.4874], abs=1e-3)
    assert slopes.tolist() == pytest.approx([1.0, -63.4874], abs=1e-3)


def test_a_state_is_the_logarithm_of_the_days_until_recall_is_0_9():
    reviews = small_log()
    rows = later_rows(reviews)
    model = lstm_model(tuple(0.3 * math.sin(k) for k in range(1, 490)))
    days = np.exp(model.states(reviews, rows))
    assert model.predict_at(reviews, rows, days) == pytest.approx(np.full((len(rows), 1), 0.9))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_missing_gpu_is_refused():
    with pytest.raises(ConfigError, match="device=cuda"):
        LstmPublished(device="cuda")


def test_a_diverged_fit_names_the_user_and_what_to_try():
    reviews = small_log()
    algorithm = LstmPublished(learning_rate=1e38, epochs=50)
    with pytest.raises(FitError, match=r"diverged .* learning_rate below 1e\+38"):
        algorithm.fit(reviews, later_rows(reviews), np.random.default_rng(0))


def test_without_pytorch_the_error_says_what_to_install():
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from srs_eval.errors import ConfigError\n"
        "try:\n"
        "    import srs_eval.algorithms.neural.lstm_published\n"
        "except ConfigError as error:\n"
        "    sys.stdout.write(str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'srs-eval[neural]'" in done.stdout

"""The LSTM: its equations against PyTorch, its fit around a start, and where the start is from."""

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.algorithms.recurrent.lstm_equations import LstmEquations
from srs_eval.checks.toy_log import trial_task
from srs_eval.commands.cli import parse
from srs_eval.commands.overrides import Configured
from srs_eval.commands.pretrain import lessons, pretrained
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark

START = Lstm().start
MODEL = RecurrentModel(LstmEquations(8), START.parameters)


def trial():
    task = trial_task(same_day=True)
    return task.reviews, task.folds[0].train, task.folds[0].test


def by_pytorch(reviews, row):
    """Predict one review with PyTorch's LSTM, from the definition in the docstring of `Lstm`."""
    torch = pytest.importorskip("torch")
    w = torch.tensor(MODEL.parameters, dtype=torch.float64)
    layer = torch.nn.LSTM(5, 8).double()
    sizes = [tensor.numel() for tensor in layer.parameters()]
    with torch.no_grad():
        for tensor, values in zip(
            layer.parameters(), torch.split(w[: sum(sizes)], sizes), strict=True
        ):
            tensor.copy_(values.reshape(tensor.shape))
        past = np.flatnonzero((reviews.card == reviews.card[row]) & (np.arange(len(reviews)) < row))
        inputs = torch.zeros(len(past), 5, dtype=torch.float64)
        inputs[:, 0] = torch.tensor(0.3 * np.log1p(np.maximum(reviews.elapsed[past], 0)))
        inputs[0, 0] = 0
        inputs[range(len(past)), reviews.rating[past]] = 1
        h = layer(inputs)[0][-1]
    log_s, log_d = (float(h @ w[i : i + 8] + w[i + 8]) for i in (sum(sizes), sum(sizes) + 9))
    d = 0.3 * np.exp(np.clip(log_d, -2.5, 2.5))
    return (1 + (0.9 ** (-1 / d) - 1) * reviews.elapsed[row] / np.exp(log_s)) ** -d


def test_predictions_are_those_of_pytorchs_lstm():
    reviews, _, rows = trial()
    some = rows[:: max(1, len(rows) // 20)]
    expected = [by_pytorch(reviews, row) for row in some]
    assert MODEL.predict(reviews, some) == pytest.approx(expected, rel=1e-10)


def test_only_drawn_weights_depend_on_random_numbers():
    reviews, rows, _ = trial()
    seeds = (np.random.default_rng(seed) for seed in (0, 1, 0, 1))
    a, b = (Lstm(steps=3).fit(reviews, rows, next(seeds)).parameters for _ in range(2))
    assert a == b
    a, b = (
        Lstm(steps=3, weights=None).fit(reviews, rows, next(seeds)).parameters for _ in range(2)
    )
    assert a != b
    options = ({}, {"hidden": 4}, {"weights": None})
    assert [Lstm(**given).pretrained for given in options] == [True, False, False]


def test_without_training_reviews_the_fit_is_skipped_and_pretraining_refused():
    reviews, rows, _ = trial()
    with pytest.raises(FitSkipped):
        Lstm().fit(reviews, rows[:0], np.random.default_rng(0))
    with pytest.raises(ConfigError):
        Lstm().pretrain([(reviews, rows[:0])], np.random.default_rng(0))


def test_the_users_the_start_was_learned_from_are_refused():
    source = SyntheticUsers(users=2, seed=777, max_reviews=5000, version=1)
    task = SrsBenchmark()(source.read(2), same_day=True)
    with pytest.raises(FitSkipped):
        Lstm().fit(task.reviews, task.folds[0].train, np.random.default_rng(0))
    other = SyntheticUsers(users=1, seed=2026, size_scale=0.2, max_reviews=600)
    task = SrsBenchmark()(other.read(1), same_day=True)
    assert Lstm(steps=1).fit(task.reviews, task.folds[0].train, np.random.default_rng(0))


def test_pretraining_can_be_repeated_and_read_back(tmp_path):
    words = ["algo=lstm", "algo.weights=null", "data=synthetic", "data.users=3"]
    words.append("data.max_reviews=600")
    one, two = (pretrained(parse(Configured, words)).start for _ in range(2))
    assert one == two
    one.save(tmp_path / "start.safetensors")
    read = Lstm(weights=tmp_path / "start.safetensors").start
    assert read.parameters == pytest.approx(one.parameters, rel=1e-6)
    assert [user.name for user in read.seen] == [1, 2, 3]


@pytest.mark.nightly
def test_the_shipped_start_is_made_again_by_its_command():
    source = SyntheticUsers(users=400, seed=777, max_reviews=5000, version=1)
    taught = lessons(Lstm(), source, SrsBenchmark())
    again = replace(Lstm(), weights=None).pretrain(taught, np.random.default_rng(0)).start
    # Rounding differs between processors.
    assert again.parameters == pytest.approx(START.parameters, abs=1e-3)
    assert [user.digests for user in again.seen] == [user.digests for user in START.seen]

"""The LSTM: its equations against PyTorch, its fit around a start, and whom that has seen."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden_logs import log_of_all_histories

from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.algorithms.recurrent.lstm_equations import LstmEquations
from srs_eval.algorithms.recurrent.lstm_published import LstmPublished, PublishedLstmEquations
from srs_eval.algorithms.recurrent.weights import SeenUser, Weights, digests_of
from srs_eval.checks.toy_log import trial_task
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.errors import FitError, FitSkipped
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark

START = Lstm().start
MODEL = RecurrentModel(LstmEquations(8), START.parameters)
TASK = trial_task(same_day=True)
REVIEWS, ROWS = TASK.reviews, TASK.folds[0].train


def fitted(algorithm, reviews=REVIEWS, rows=ROWS, seed=0):
    return algorithm.fit(reviews, rows, np.random.default_rng(seed))


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
    some = TASK.folds[0].test[:: max(1, len(TASK.folds[0].test) // 20)]
    expected = [by_pytorch(REVIEWS, row) for row in some]
    assert MODEL.predict(REVIEWS, some) == pytest.approx(expected, rel=1e-10)


def test_the_published_lstm_equals_its_reference_and_is_trained_in_batches_of_whole_cards():
    golden = json.loads((Path(__file__).parents[1] / "golden/predictions.json").read_text())
    (reference,) = [entry for entry in golden["algorithms"] if entry["name"] == "LSTM-489"]
    sines = tuple(0.3 * math.sin(k) for k in range(1, 490))
    log, _ = log_of_all_histories(golden, reference["interval"])
    p = RecurrentModel(PublishedLstmEquations(8), sines).predict(log, np.arange(len(log)))
    for history in golden["histories"]:
        expected = reference["results"][str(history["id"])]["sine_fill"]["p"][1:]
        ours = p[log.card == history["id"]][1:]
        np.testing.assert_allclose(ours, np.array(expected, float), rtol=0, atol=1e-12)
    algorithm = LstmPublished(hidden=2, epochs=3, batch_size=64)
    steps = [*algorithm.fit_in_steps(REVIEWS, ROWS, np.random.default_rng(0))]
    assert len(steps) == 3
    assert steps[-1].parameters == fitted(algorithm).parameters
    losses = [
        -np.log(np.where(REVIEWS.recalled[ROWS], p, 1 - p)).mean()
        for p in (model.predict(REVIEWS, ROWS) for model in (steps[0], steps[-1]))
    ]
    assert losses[1] < losses[0]
    with pytest.raises(FitError, match="learning_rate below 1e"):
        fitted(LstmPublished(hidden=2, learning_rate=1e200))
    with pytest.raises(FitSkipped):
        fitted(algorithm, rows=np.arange(0))


def test_only_drawn_weights_depend_on_random_numbers():
    for options, alike in (({}, True), ({"weights": None}, False)):
        one, other = (fitted(Lstm(steps=3, **options), seed=seed).parameters for seed in (0, 1))
        assert (one == other) == alike
    options = ({}, {"hidden": 4}, {"weights": None})
    assert [Lstm(**given).pretrained for given in options] == [True, False, False]


DAYS = SrsBenchmark()(REVIEWS, same_day=False).reviews
SECONDS = SrsBenchmarkSecs()(REVIEWS, same_day=True).reviews
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

"""What networks promise: published predictions, one pass per card, fits, and whom they saw."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import metric_functions
import numpy as np
import pytest
import torch
from invented import log_of_all_histories
from trial import REVIEWS, TASK, fitted

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.neural.curves import GruCurves, LstmCurves
from srs_eval.algorithms.neural.network import NetworkModel, network_of
from srs_eval.algorithms.neural.published import Gru, GruP, Nn17, Transformer
from srs_eval.algorithms.neural.recipes import Recipe
from srs_eval.algorithms.neural.training import log_loss, training_batches
from srs_eval.algorithms.recurrent.lstm import Lstm, LstmPublished
from srs_eval.algorithms.recurrent.lstm_equations import LstmEquations
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.algorithms.recurrent.sequences import histories_before
from srs_eval.algorithms.recurrent.weights import Weights
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.engine.compiled import compiled
from srs_eval.engine.packing import pack
from srs_eval.errors import FitError, FitSkipped
from srs_eval.evaluation.checks.toy_log import trial_task
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

FILE = Path(__file__).parents[2] / "golden/predictions.json"
GOLDEN = json.loads(FILE.read_text())
PUBLISHED = {
    "GRU-39": Gru,
    "GRU-P-297": GruP,
    "GRU-503": GruCurves,
    "LSTM-8869": LstmCurves,
    "NN-17": Nn17,
    "Transformer-127": Transformer,
}
ALGORITHMS = [algorithm() for algorithm in PUBLISHED.values()]
NN17_FIRST = (1.0, 2.5, 4.5, 10.0, 1.0, 0.72, 0.07, 0.05, 1.26, 0.0, 0.67)

each = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)


def sines(n):
    return tuple(0.3 * math.sin(k) for k in range(1, n + 1))


def with_sines(algorithm):
    """The network with the test parameters of the golden file."""
    sizes = algorithm.sizes(whole_days=True)
    n = len(network_of(algorithm.network, sizes, torch.Generator()).vector())
    first = NN17_FIRST if isinstance(algorithm, Nn17) else ()
    return NetworkModel(algorithm.network, sizes, (*first, *sines(n - len(first))))


def differences(golden, model):
    """Largest distance of a prediction to the reference, by the name of the history."""
    reviews, _ = log_of_all_histories(GOLDEN, golden["interval"])
    p = model.predict(reviews, np.arange(len(reviews)))
    found = {}
    for history in GOLDEN["histories"]:
        expected = golden["results"][str(history["id"])]["sine_fill"]["p"]
        ours = p[reviews.card == history["id"]][1:]
        off = np.abs(ours - np.array(expected[1:], float))
        found[history["name"]] = float(off.max(initial=0.0))
    return found


@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_and_predictions_equal_the_reference(name):
    (golden,) = [entry for entry in GOLDEN["algorithms"] if entry["name"] == name]
    model = with_sines(PUBLISHED[name]())
    network = network_of(model.network, model.sizes, model.parameters)
    assert [list(each.shape) for each in network.parameters()] == [
        shape for _, shape in golden["tensors"]
    ]
    assert len(model.parameters) == golden["n_parameters"]
    off = differences(golden, model)
    if name == "NN-17":
        begins_with_again = {h["name"] for h in GOLDEN["histories"] if h["rating"][0] == 1}
        assert 0.01 < max(off[history] for history in begins_with_again) < 0.071  # as pages say
        off = {history: off[history] for history in off.keys() - begins_with_again}
    assert max(off.values()) < 1e-12


@each
def test_one_pass_per_card_has_the_loss_and_gradient_of_one_prefix_per_review(algorithm):
    reviews = trial_task(same_day=algorithm.same_day, cards=3).reviews
    rows = np.flatnonzero(reviews.elapsed_days > 0)
    model = with_sines(algorithm)
    network = network_of(model.network, model.sizes, model.parameters, torch.float64).eval()
    histories = histories_before(reviews, rows)
    recipe = Recipe(epochs=1, batch_size=8, learning_rate=1.0)
    batches = training_batches(network, histories, recipe, np.random.default_rng(0))
    loss = torch.stack([batch.loss(network) for batch in batches]).sum()
    table, losses = network.table(reviews), []
    for row in rows.tolist():
        past = np.flatnonzero(reviews.card[:row] == reviews.card[row])
        state = network.read(table[torch.from_numpy(past)][:, None], torch.tensor([len(past) - 1]))
        decay = network.decay(state, torch.tensor([reviews.elapsed[row]]))
        losses.append(log_loss(decay, torch.tensor([not reviews.recalled[row]])))
    naive = torch.cat(losses).sum()
    assert len(batches) > 2
    assert loss.item() == pytest.approx(naive.item(), rel=1e-10)
    slopes, expected = (
        torch.autograd.grad(each, [*network.parameters()], materialize_grads=True)
        for each in (loss, naive)
    )
    for ours, theirs in zip(slopes, expected, strict=True):
        scale = float(theirs.abs().max())
        assert ours.numpy() == pytest.approx(theirs.numpy(), abs=1e-8 * scale + 1e-12)


@each
def test_curves_fall_and_extreme_parameters_still_give_probabilities(algorithm):
    task = trial_task(same_day=algorithm.same_day)
    rows = task.folds[0].test
    model, days = with_sines(algorithm), np.tile(np.geomspace(0.01, 30, 20), (len(rows), 1))
    if not isinstance(algorithm, GruP | Nn17):
        assert (np.diff(model.predict_at(task.reviews, rows, days), axis=1) < 0).all()
    elapsed = np.tile([0.0, 1e-5, 1.0, 36500.0], (len(rows), 1))
    kept = NN17_FIRST if isinstance(algorithm, Nn17) else ()
    for value in (20.0, 0.0, -20.0):
        parameters = (*kept, *[value] * (len(model.parameters) - len(kept)))
        p = replace(model, parameters=parameters).predict_at(task.reviews, rows, elapsed)
        assert ((p > 0) & (p < 1)).all()


def test_without_answer_times_the_network_that_reads_them_says_so():
    task = trial_task(same_day=True)
    silent = replace(task.reviews, duration_ms=None)
    with pytest.raises(FitSkipped):
        LstmCurves().fit(silent, task.folds[0].train, np.random.default_rng(0))


@pytest.mark.parametrize("algorithm", [GruCurves(epochs=1), LstmCurves(epochs=1)])
def test_inputs_are_standardised_by_what_training_reads(algorithm):
    task = trial_task(same_day=True)
    rows = task.folds[0].train
    model = algorithm.fit(task.reviews, rows, np.random.default_rng(0))
    network = network_of(model.network, model.sizes, model.parameters, torch.float64)
    network.scaling = model.scaling
    read = network.table(task.reviews)[
        histories_before(task.reviews, rows).review, : network.n_scaled
    ].numpy()
    assert read.mean(axis=0) == pytest.approx(0, abs=1e-6)
    assert read.std(axis=0) == pytest.approx(1, abs=1e-6)


def test_the_loss_keeps_its_gradient_where_a_probability_would_round_to_0_or_1():
    log_decay = torch.tensor([-22.2504, 4.15084], requires_grad=True)
    losses = log_loss(torch.exp(log_decay), torch.tensor([True, False]))
    slopes = torch.autograd.grad(losses.sum(), log_decay)[0]
    assert losses.tolist() == pytest.approx([22.2504, 63.4874], abs=1e-3)
    assert slopes.tolist() == pytest.approx([-1.0, 63.4874], abs=1e-3)


def test_the_loss_of_a_step_is_that_of_a_training_review():
    model = fitted(Gru(epochs=1, learning_rate=1e-9))
    expected = metric_functions.log_loss(model.predict(REVIEWS, ROWS), REVIEWS.recalled[ROWS])
    assert model.learned.training_loss == pytest.approx((expected,), rel=1e-4)


def test_a_diverged_fit_names_the_user_and_what_to_try():
    algorithm = Gru(learning_rate=1e37, epochs=50)
    with pytest.raises(FitError, match=r"user trial: .* diverged .* learning_rate below 1e\+37"):
        fitted(algorithm)


def test_without_pytorch_the_error_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import srs_eval.algorithms.neural.published"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    told = done.stderr.splitlines()[-1]
    assert told.startswith("srs_eval.errors.ConfigError: ")
    assert "pip install 'srs-eval[neural]'" in told


START = Lstm().start
MODEL = RecurrentModel(LstmEquations(8), START.parameters)
ROWS = TASK.folds[0].train


def by_pytorch(reviews, row):
    """Predict one review with PyTorch's LSTM, from the definition in the docstring of `Lstm`."""
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
    (golden,) = [entry for entry in GOLDEN["algorithms"] if entry["name"] == "LSTM-489"]
    off = differences(golden, RecurrentModel(LstmEquations(8, published=True), sines(489)))
    assert max(off.values()) < 1e-12
    algorithm = LstmPublished(hidden=2, epochs=3, batch_size=64)
    steps = [*algorithm.fit_in_steps(REVIEWS, ROWS, np.random.default_rng(0))]
    assert len(steps) == 3
    assert steps[-1].parameters == fitted(algorithm).parameters
    first, last = (step.predict(REVIEWS, ROWS) for step in (steps[0], steps[-1]))
    recalled = REVIEWS.recalled[ROWS]
    assert metric_functions.log_loss(last, recalled) < metric_functions.log_loss(first, recalled)
    with pytest.raises(FitError, match="learning_rate below 1e"):
        fitted(LstmPublished(hidden=2, learning_rate=1e200))
    with pytest.raises(FitSkipped):
        fitted(algorithm, rows=np.arange(0))


def test_only_drawn_weights_depend_on_random_numbers():
    zeros = Weights("lstm", (2,), (0.0,) * 78, (), ())
    for weights, alike in ((zeros, True), (None, False)):
        algorithm = Lstm(hidden=2, weights=weights, steps=3)
        one, other = (fitted(algorithm, seed=seed).parameters for seed in (0, 1))
        assert (one == other) == alike
    options = ({}, {"hidden": 4}, {"weights": None})
    assert [Lstm(**given).pretrained for given in options] == [True, False, False]


def test_a_fit_ends_where_log_loss_and_pull_are_least():
    zeros = Weights("lstm", (2,), (0.0,) * 78, (), ())
    model = fitted(Lstm(hidden=2, weights=zeros, pull=5.0, steps=200))
    w = np.array(model.parameters)

    def total(share):
        p = replace(model, parameters=tuple((share * w).tolist())).predict(REVIEWS, ROWS)
        loss = metric_functions.log_loss(p, REVIEWS.recalled[ROWS]) * len(ROWS)
        return loss + 5.0 * share**2 * w @ w

    assert abs(total(1.01) - total(0.99)) / 0.02 < 0.02 * 2 * 5.0 * w @ w


def test_drawn_biases_of_the_curve_are_pulled_with_a_twentieth():
    w = np.array(fitted(Lstm(hidden=2, weights=None, pull=50.0, steps=300)).parameters)
    equations = LstmEquations(2)
    moved = w - equations.drawn_weights(np.random.default_rng(0))
    packed = pack(REVIEWS, ROWS, weight=np.ones(len(ROWS)))
    _, gradient = compiled(equations).gradient(w, packed)
    moved[[-4, -1]] *= 0.05  # Log stability, and log exponent
    np.testing.assert_allclose(gradient, -2 * 50.0 * moved, atol=0.02 * np.abs(gradient).max())


@pytest.mark.slow
def test_from_drawn_weights_a_fit_does_not_learn_a_short_log_by_heart():
    source, losses = SyntheticUsers(users=16, seed=7, max_reviews=6000), []
    for user in source.users():
        task = Validation(SrsBenchmark())(source.read(user), same_day=True)
        (fold,) = task.folds
        for algorithm in (Lstm(weights=None), Average(prior=0.5)):
            model = algorithm.fit(task.reviews, fold.train, np.random.default_rng(1))
            p = model.predict(task.reviews, fold.test)
            losses.append(metric_functions.log_loss(p, task.reviews.recalled[fold.test]))
    drawn, average = np.reshape(losses, (-1, 2)).mean(axis=0)
    assert drawn < average + 0.01


def test_first_states_of_nn17_stay_in_their_bounds():
    network = network_of(Nn17().network, (0.01,), [200.0] * 39)
    network.clip()
    values = network.vector()
    assert values[:11].tolist() == [100.0] * 4 + [1.0] * 4 + [5.0, 1.0, 5.0]
    assert (values[11:] == 200).all()

"""What networks promise: published predictions, fits, and how these end."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from invented import log_of_all_histories
from metric_functions import log_loss as mean_log_loss
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.neural.curves import GruCurves, LstmCurves
from srs_eval.algorithms.neural.network import NetworkModel, network_of
from srs_eval.algorithms.neural.published import Gru, GruNetwork, GruP, Nn17, Transformer
from srs_eval.algorithms.neural.recipes import Recipe
from srs_eval.algorithms.neural.training import epochs, log_loss, training_batches
from srs_eval.algorithms.recurrent.lstm import Lstm, LstmPublished
from srs_eval.algorithms.recurrent.lstm_equations import LstmEquations
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.algorithms.recurrent.sequences import histories_before
from srs_eval.algorithms.recurrent.weights import Weights
from srs_eval.errors import FitError, FitSkipped

ALL = json.loads((Path(__file__).parents[2] / "golden/predictions.json").read_text())
GOLDEN = {golden["name"]: golden for golden in ALL["algorithms"]}
PUBLISHED = {
    "GRU-39": Gru,
    "GRU-P-297": GruP,
    "GRU-503": GruCurves,
    "LSTM-8869": LstmCurves,
    "NN-17": Nn17,
    "Transformer-127": Transformer,
}
NN17_FIRST = (1.0, 2.5, 4.5, 10.0, 1.0, 0.72, 0.07, 0.05, 1.26, 0.0, 0.67)
ROWS = FOLD.train


def sines(n):
    return tuple(0.3 * math.sin(k) for k in range(1, n + 1))


def with_sines(algorithm):
    """The network with the test parameters of the golden file."""
    sizes = algorithm.sizes(whole_days=True)
    n = len(network_of(algorithm.network, sizes, torch.Generator()).vector())
    first = NN17_FIRST if isinstance(algorithm, Nn17) else ()
    return NetworkModel(algorithm.network, sizes, (*first, *sines(n - len(first))))


def differences(golden, model):
    """Largest distance of a prediction to the reference, by the history's name and first rating."""
    reviews, _ = log_of_all_histories(ALL, golden["interval"])
    p, off = model.predict(reviews, np.arange(len(reviews))), {}
    for history in ALL["histories"]:
        expected = golden["results"][str(history["id"])]["sine_fill"]["p"][1:]
        ours = p[reviews.card == history["id"]][1:]
        key = history["name"], history["rating"][0]
        off[key] = np.abs(ours - np.array(expected, float)).max(initial=0.0)
    return off


@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_and_predictions_equal_the_reference(name):
    golden, model = GOLDEN[name], with_sines(PUBLISHED[name]())
    network = network_of(model.network, model.sizes, model.parameters)
    shapes = [list(tensor.shape) for tensor in network.parameters()]
    assert shapes == [shape for _, shape in golden["tensors"]]
    assert len(model.parameters) == golden["n_parameters"]
    off = differences(golden, model)
    if name == "NN-17":
        begins_with_again = [off.pop(key) for key in [*off] if key[1] == 1]
        assert 0.01 < max(begins_with_again) < 0.071  # as pages say
    assert max(off.values()) < 1e-12


def test_without_answer_times_the_network_that_reads_them_skips():
    with pytest.raises(FitSkipped):
        fitted(LstmCurves(), replace(REVIEWS, duration_ms=None))


def test_the_loss_keeps_its_gradient_where_a_probability_would_round_to_0_or_1():
    log_decay = torch.tensor([-22.2504, 4.15084], requires_grad=True)
    losses = log_loss(torch.exp(log_decay), torch.tensor([True, False]))
    slopes = torch.autograd.grad(losses.sum(), log_decay)[0]
    assert losses.tolist() == pytest.approx([22.2504, 63.4874], abs=1e-3)
    assert slopes.tolist() == pytest.approx([-1.0, 63.4874], abs=1e-3)


@pytest.mark.parametrize("kind", [Gru, GruP, Nn17, GruCurves])
def test_the_loss_of_a_step_is_that_of_a_training_review(kind):
    recipe = Recipe(epochs=1, batch_size=100, learning_rate=1e-9)
    (model,) = kind().fit_in_steps(REVIEWS, ROWS, np.random.default_rng(0), recipe)
    expected = mean_log_loss(model.predict(REVIEWS, ROWS), REVIEWS.recalled[ROWS])
    assert model.learned.training_loss == pytest.approx((expected,), rel=1e-4)


PLAIN = Recipe(epochs=4, batch_size=100, learning_rate=0.1)
ALL_SET = replace(PLAIN, betas=(0.8, 0.9), weight_decay=0.3, clip=5.0)


@pytest.mark.parametrize(
    ("recipe", "rate"),  # and the learning rate after a share of all steps
    [
        (PLAIN, lambda done: 0.05 * (1 + math.cos(math.pi * done))),
        (
            replace(ALL_SET, exponent=1.2, learning_rate=0.7, ramps=(0.2, 0.25, 0.5), prox=0.3),
            lambda done: 0.7 * 16000**-0.2 * float(np.interp(done, [0, 0.25, 1], [0.2, 1, 0.5])),
        ),
    ],
)
def test_training_takes_the_steps_of_pytorchs_optimiser_and_tells_each_epochs_loss(recipe, rate):
    histories = histories_before(REVIEWS, ROWS)
    start = 0.1 * np.arange(39)
    ours, theirs = (network_of(GruNetwork, (2,), start, torch.float64) for _ in range(2))
    seeds = (np.random.default_rng(3), torch.Generator().manual_seed(5))
    told = list(epochs(ours, histories, recipe, *seeds))
    batches = training_batches(theirs, histories, recipe, np.random.default_rng(3))
    optimiser = torch.optim.AdamW(
        theirs.parameters(), betas=recipe.betas, weight_decay=recipe.weight_decay, eps=1e-8
    )
    generator, losses, done = torch.Generator().manual_seed(5), [0.0] * 4, 0
    for epoch in range(4):
        for number in torch.randperm(len(batches), generator=generator).tolist():
            optimiser.param_groups[0]["lr"] = rate(done / (4 * len(batches)))
            optimiser.zero_grad()
            batch = batches[number]
            vector = torch.nn.utils.parameters_to_vector(theirs.parameters())
            pull = recipe.prox * (vector - torch.tensor(start)).square().sum()
            loss = batch.loss(theirs) * len(batch.entry) ** (recipe.exponent - 1) + pull
            loss.backward()
            torch.nn.utils.clip_grad_norm_(theirs.parameters(), recipe.clip)
            optimiser.step()
            losses[epoch], done = losses[epoch] + loss.item(), done + 1
    assert len(batches) > 2
    assert ours.vector() == pytest.approx(theirs.vector(), abs=1e-6)
    assert told == pytest.approx(losses, rel=1e-6)


@pytest.mark.parametrize(
    ("algorithm", "advice"),
    [
        (Gru(learning_rate=1e37, epochs=50), r"user trial: .* learning_rate below 1e\+37"),
        (LstmPublished(hidden=2, learning_rate=1e200), "learning_rate below 1e"),
    ],
)
def test_a_diverged_fit_names_the_user_and_what_to_try(algorithm, advice):
    with pytest.raises(FitError, match=advice):
        fitted(algorithm)


def test_the_published_lstm_equals_its_reference():
    model = RecurrentModel(LstmEquations(8, published=True), sines(489))
    assert max(differences(GOLDEN["LSTM-489"], model).values()) < 1e-12
    with pytest.raises(FitSkipped):
        fitted(LstmPublished(hidden=2), rows=np.arange(0))


ZEROS = Weights("lstm", (2,), (0.0,) * 78, (), ())


def test_only_drawn_weights_depend_on_random_numbers():
    for weights in (ZEROS, None):
        algorithm = Lstm(hidden=2, weights=weights, steps=3)
        one, other = (fitted(algorithm, seed=seed).parameters for seed in (0, 1))
        assert (one == other) == algorithm.pretrained == (weights is ZEROS)
    assert [Lstm().pretrained, Lstm(hidden=4).pretrained] == [True, False]

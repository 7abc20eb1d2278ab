"""What all networks promise: published predictions, one pass per card, and no peeking."""

import json
import math
import operator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from golden_logs import log_of_all_histories

from srs_eval.algorithms.neural.fitting import NetworkAlgorithm, recency
from srs_eval.algorithms.neural.gru import Gru
from srs_eval.algorithms.neural.gru_curves import GruCurves
from srs_eval.algorithms.neural.gru_p import GruP
from srs_eval.algorithms.neural.lstm_curves import LstmCurves
from srs_eval.algorithms.neural.lstm_published import LstmPublished
from srs_eval.algorithms.neural.model import NetworkModel
from srs_eval.algorithms.neural.network import (
    Network,
    built,
    feature_table,
    log_loss,
    summed_loss,
    training_batches,
)
from srs_eval.algorithms.neural.nn17 import Nn17, Nn17Network
from srs_eval.algorithms.neural.sequences import groups_of_targets, histories_before
from srs_eval.algorithms.neural.training import Recipe, generator_from
from srs_eval.algorithms.neural.transformer import Transformer
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import FitSkipped
from srs_eval.nouns import FloatArray, Reviews

FILE = Path(__file__).parents[2] / "golden/predictions.json"
GOLDEN: dict[str, Any] = json.loads(FILE.read_text())
PUBLISHED: dict[str, type[NetworkAlgorithm]] = {
    "LSTM-489": LstmPublished,
    "GRU-39": Gru,
    "GRU-P-297": GruP,
    "GRU-503": GruCurves,
    "LSTM-8869": LstmCurves,
    "NN-17": Nn17,
    "Transformer-127": Transformer,
}
ALGORITHMS = [algorithm() for algorithm in PUBLISHED.values()]
NN17_FIRST = (1.0, 2.5, 4.5, 10.0, 1.0, 0.72, 0.07, 0.05, 1.26, 0.0, 0.67)

named = operator.attrgetter("name")
each = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=named)


def sines(n: int) -> tuple[float, ...]:
    return tuple(0.3 * math.sin(k) for k in range(1, n + 1))


def with_sines(algorithm: NetworkAlgorithm) -> NetworkModel:
    """The network with the test parameters of the golden file."""
    sizes = algorithm.sizes(whole_days=True)
    n = sum(p.numel() for p in built(algorithm.network, sizes).parameters())
    first = NN17_FIRST if isinstance(algorithm, Nn17) else ()
    return NetworkModel(algorithm.network, sizes, (*first, *sines(n - len(first))))


@pytest.mark.parametrize("name", PUBLISHED)
def test_predictions_equal_the_reference(name: str) -> None:
    (golden,) = [entry for entry in GOLDEN["algorithms"] if entry["name"] == name]
    algorithm = PUBLISHED[name]()
    model = with_sines(algorithm)
    reviews, _ = log_of_all_histories(GOLDEN, golden["interval"])
    p = model.predict(reviews, np.arange(len(reviews)))
    off = differences(golden, reviews, p)
    assert sum(map(len, off.values())) > 300
    begins_with_again = {h["name"] for h in GOLDEN["histories"] if h["rating"][0] == 1}
    for history, difference in off.items():
        alike = difference.max(initial=0.0) < 1e-12
        assert alike or (name == "NN-17" and history in begins_with_again), history


def differences(golden: Any, reviews: Reviews, p: FloatArray) -> dict[str, FloatArray]:
    """Distance of each prediction to the reference, by the name of the history."""
    found = {}
    for history in GOLDEN["histories"]:
        expected = golden["results"][str(history["id"])]["sine_fill"]["p"]
        ours = p[reviews.card == history["id"]][1:]
        found[history["name"]] = np.abs(ours - np.array(expected[1:], float))
    return found


class TakesForNew(Nn17Network):
    """What the reference does with a batch of one card: new is whatever has the state (1, 1)."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        states = []
        for card in inputs.unbind(1):
            again = (card[:, 1] != 1).nonzero()
            # the first answer that leaves another state; the failures before it still count
            begin = int(again[0]) if len(again) else len(card) - 1
            self.failed = begin
            seen = super().forward(card[begin:, None])[:, 0]
            states.append(torch.cat([seen.new_ones(begin, 2), seen]))
        return torch.stack(states, dim=1)

    def _step(self, stability, difficulty, days, rating, failures):  # type: ignore[no-untyped-def]
        return super()._step(stability, difficulty, days, rating, failures + self.failed)


@pytest.mark.slow
def test_nn17_differs_from_the_reference_by_which_cards_are_new_in_a_batch_of_one() -> None:
    (golden,) = [entry for entry in GOLDEN["algorithms"] if entry["name"] == "NN-17"]
    reviews, _ = log_of_all_histories(GOLDEN, golden["interval"])
    model = with_sines(Nn17())
    off = differences(golden, reviews, model.predict(reviews, np.arange(len(reviews))))
    largest = max(difference.max(initial=0.0) for difference in off.values())
    assert 0.01 < largest < 0.071  # as the pages say
    alone = replace(model, network=TakesForNew)
    off = differences(golden, reviews, alone.predict(reviews, np.arange(len(reviews))))
    assert max(difference.max(initial=0.0) for difference in off.values()) < 1e-12


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name: str) -> None:
    (golden,) = [entry for entry in GOLDEN["algorithms"] if entry["name"] == name]
    shapes = [tuple(shape) for _, shape in golden["tensors"]]
    network = built(PUBLISHED[name].network, PUBLISHED[name]().sizes(whole_days=True))
    assert [tuple(parameter.shape) for parameter in network.parameters()] == shapes
    model = with_sines(PUBLISHED[name]())
    assert len(model.parameters) == golden["n_parameters"]
    assert sum(math.prod(shape) for shape in shapes) == golden["n_parameters"]


def one_prefix_per_review(network: Network, reviews: Reviews, rows: Any) -> torch.Tensor:
    """Sum the losses of rows, reading the history before each of them on its own."""
    table = feature_table(network, reviews, "cpu", precision=torch.float64)
    losses = []
    for row in rows.tolist():
        past = np.flatnonzero(reviews.card[:row] == reviews.card[row])
        inputs = table[torch.from_numpy(past)][:, None]
        state = network.read(inputs, torch.tensor([len(past) - 1]))
        decay = network.decay(state, torch.tensor([reviews.elapsed[row]]))
        losses.append(log_loss(decay, torch.tensor([not reviews.recalled[row]])))
    return torch.cat(losses).sum()


@each
def test_one_pass_per_card_has_the_loss_and_gradient_of_one_prefix_per_review(
    algorithm: NetworkAlgorithm,
) -> None:
    reviews = trial_task(same_day=algorithm.same_day, cards=5).reviews
    rows = np.flatnonzero(reviews.elapsed_days > 0)
    network = built(algorithm.network, algorithm.sizes(whole_days=True)).double().eval()
    network.load(np.array(with_sines(algorithm).parameters))
    histories = histories_before(reviews, rows)
    order = np.random.default_rng(0).permutation(len(histories.length))
    groups = groups_of_targets(histories, order, per_group=8)
    batches = training_batches(network, reviews, rows, histories, groups, precision=torch.float64)
    loss = torch.stack([summed_loss(network, batch) for batch in batches]).sum()
    naive = one_prefix_per_review(network, reviews, rows)
    assert len(batches) > 2
    assert loss.item() == pytest.approx(naive.item(), rel=1e-10)
    parameters = list(network.parameters())
    slopes = torch.autograd.grad(loss, parameters, allow_unused=True)
    expected = torch.autograd.grad(naive, parameters, allow_unused=True)
    for found, wanted in zip(slopes, expected, strict=True):
        assert (found is None) == (wanted is None)
        if found is not None and wanted is not None:
            scale = float(wanted.abs().max())
            assert found.numpy() == pytest.approx(wanted.numpy(), abs=1e-8 * scale + 1e-12)


@each
def test_a_fit_leaves_pytorchs_random_numbers_alone(algorithm: NetworkAlgorithm) -> None:
    task = trial_task(same_day=algorithm.same_day)
    before = torch.get_rng_state()
    quick = replace(algorithm, epochs=1)
    first = quick.fit(task.reviews, task.folds[0].train, np.random.default_rng(1))
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    again = quick.fit(task.reviews, task.folds[0].train, np.random.default_rng(1))
    assert first == again
    assert first != quick.fit(task.reviews, task.folds[0].train, np.random.default_rng(2))


@pytest.mark.parametrize(
    "algorithm",
    [a for a in ALGORITHMS if not isinstance(a, GruP | Nn17)],
    ids=named,
)
def test_forgetting_curves_fall(algorithm: NetworkAlgorithm) -> None:
    task = trial_task(same_day=algorithm.same_day)
    days = np.tile(np.geomspace(0.01, 30, 20), (len(task.folds[0].test), 1))
    curves = with_sines(algorithm).predict_at(task.reviews, task.folds[0].test, days)
    assert (np.diff(curves, axis=1) < 0).all()


@each
def test_extreme_parameters_still_give_probabilities(algorithm: NetworkAlgorithm) -> None:
    task = trial_task(same_day=algorithm.same_day)
    n = len(with_sines(algorithm).parameters)
    elapsed = np.tile([0.0, 1e-5, 1.0, 36500.0], (len(task.folds[0].test), 1))
    for value in (20.0, 0.0, -20.0):
        parameters = np.full(n, value)
        if isinstance(algorithm, Nn17):
            parameters[:11] = NN17_FIRST
        model = replace(with_sines(algorithm), parameters=tuple(parameters.tolist()))
        p = model.predict_at(task.reviews, task.folds[0].test, elapsed)
        assert ((p > 0) & (p < 1)).all()


def test_without_answer_times_the_network_that_reads_them_says_so() -> None:
    task = trial_task(same_day=True)
    silent = replace(task.reviews, duration_ms=None)
    with pytest.raises(FitSkipped, match="reads answer times"):
        LstmCurves().fit(silent, task.folds[0].train, np.random.default_rng(0))


@pytest.mark.parametrize("algorithm", [GruCurves(epochs=1), LstmCurves(epochs=1)])
def test_inputs_are_standardised_by_what_training_reads(algorithm: NetworkAlgorithm) -> None:
    task = trial_task(same_day=True)
    rows = task.folds[0].train
    model = algorithm.fit(task.reviews, rows, np.random.default_rng(0))
    network = built(model.network, model.sizes, model.scaling).double()
    histories = histories_before(task.reviews, rows)
    read = network.scaled(torch.from_numpy(network.features(task.reviews)[histories.review]))
    scaled: FloatArray = read[:, : network.n_scaled].numpy()
    assert scaled.mean(axis=0) == pytest.approx(0, abs=1e-6)
    assert scaled.std(axis=0) == pytest.approx(1, abs=1e-6)


def test_recent_reviews_weigh_more_where_the_recipe_says_so() -> None:
    weight = recency(100, Recipe(1, 1, 0.1, recency=(6.49, 2.4758)))
    assert weight.mean() == pytest.approx(1)
    assert weight[-1] / weight[0] == pytest.approx(7.49)
    assert (recency(3, Recipe(1, 1, 0.1)) == 1).all()


def test_gru_weights_start_orthogonal_with_no_bias() -> None:
    network = built(Gru().network, (2,))
    network.draw(generator_from(0))
    inputs, recurrent, *biases = list(network.rnn.parameters())  # type: ignore[union-attr]
    for matrix in (inputs, recurrent):
        assert (matrix.T @ matrix).tolist() == pytest.approx(np.eye(2), abs=1e-6)
    assert all(not bias.any() for bias in biases)


def test_first_states_of_nn17_stay_in_their_bounds() -> None:
    network = built(Nn17().network, (0.01,))
    network.load(np.full(39, 200.0))
    network.clip()
    values = network.vector()
    assert values[:11].tolist() == [100.0] * 4 + [1.0] * 4 + [5.0, 1.0, 5.0]
    assert (values[11:] == 200).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@each
def test_a_gpu_predicts_what_the_cpu_predicts(algorithm: NetworkAlgorithm) -> None:
    task = trial_task(same_day=algorithm.same_day)
    rows = task.folds[0].train
    quick = replace(algorithm, epochs=1, device="cuda")
    model = quick.fit(task.reviews, rows, np.random.default_rng(0))
    on_cpu = replace(model, device="cpu")
    assert model.predict(task.reviews, rows) == pytest.approx(
        on_cpu.predict(task.reviews, rows), abs=1e-9
    )

"""Learning from other users: it helps, it is remembered, and no user it has seen is scored."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from srs_eval.algorithms.neural.gru import Gru
from srs_eval.algorithms.neural.gru_curves import GruCurves
from srs_eval.algorithms.neural.gru_p import GruP
from srs_eval.algorithms.neural.lstm_curves import LstmCurves
from srs_eval.algorithms.neural.nn17 import Nn17
from srs_eval.algorithms.neural.pretraining import warmed_cosine
from srs_eval.algorithms.neural.training import Recipe
from srs_eval.algorithms.neural.transformer import Transformer
from srs_eval.algorithms.recurrent.pooled_logs import pooled
from srs_eval.algorithms.recurrent.weights import Weights, card_of, read_weights
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import ConfigError, FitSkipped


class BriefGru(Gru):
    """A GRU that is pretrained in no time, where it does not matter what it learns."""

    pretraining = Recipe(epochs=1, batch_size=400, learning_rate=0.04)


QUICK = [BriefGru(), GruCurves(outer_steps=2), LstmCurves(outer_steps=1)]
each = pytest.mark.parametrize("algorithm", QUICK, ids=lambda algorithm: algorithm.name)


def lessons(*, same_day, seeds=range(4)):
    made = []
    for seed in seeds:
        task = trial_task(same_day=same_day, seed=seed)
        rows = np.flatnonzero(task.reviews.elapsed_days > 0)
        made.append((replace(task.reviews, user=f"user {seed}"), rows))
    return made


def pretrained(algorithm):
    users = lessons(same_day=algorithm.same_day)
    return algorithm.pretrain(users, np.random.default_rng(0))


@each
def test_weights_are_repeated_saved_and_read_back_and_nobody_they_have_seen_is_scored(
    algorithm, tmp_path
):
    before = torch.get_rng_state()
    learned = pretrained(algorithm)
    assert learned == pretrained(algorithm)
    assert torch.equal(torch.get_rng_state(), before)
    for reviews, rows in lessons(same_day=algorithm.same_day):
        with pytest.raises(FitSkipped, match=r"was seen in pretraining"):
            learned.fit(reviews, rows, np.random.default_rng(0))
    (other, rows) = lessons(same_day=algorithm.same_day, seeds=range(9, 10))[0]
    assert learned.fit(other, rows, np.random.default_rng(0)).predict(other, rows).all()
    path = tmp_path / "weights.safetensors"
    learned.weights.save(path)
    from_file = replace(algorithm, weights=str(path))
    assert from_file.learned() == learned.weights
    assert from_file.current_recipe() == algorithm.fine_tuning
    assert replace(from_file, epochs=3).current_recipe() == replace(algorithm.fine_tuning, epochs=3)
    card = json.loads(card_of(path).read_text())
    assert card["n_parameters"] == len(learned.weights.parameters)
    assert [user["name"] for user in card["seen"]] == [f"user {seed}" for seed in range(4)]


def test_reptile_leads_towards_users():
    users = lessons(same_day=True, seeds=range(4))
    task = trial_task(same_day=True, seed=9)
    nothing = np.zeros(0, np.int64)
    test = task.folds[0].test
    recalled = task.reviews.recalled[test]
    loss = []
    for steps in (1, 25):
        learned = GruCurves(outer_steps=steps).pretrain(users, np.random.default_rng(0))
        # Without training reviews, the weights predict as they are.
        p = learned.fit(task.reviews, nothing, np.random.default_rng(0)).predict(task.reviews, test)
        loss.append(-np.log(np.where(recalled, p, 1 - p)).mean())
    assert loss[1] < loss[0] - 0.05


@pytest.mark.parametrize("algorithm", [GruP(), Nn17(), Transformer()], ids=lambda a: a.name)
def test_the_other_networks_can_be_pretrained_too(algorithm):
    class Quick(type(algorithm)):
        pretraining = Recipe(epochs=1, batch_size=400, learning_rate=0.04)

    learned = pretrained(Quick())
    assert learned.weights.network == algorithm.name
    assert len(learned.weights.seen) == 4


Spoil = Callable[[Path], object]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.unlink(), "No such file"),
        (lambda path: card_of(path).unlink(), r"No such file.*\.json"),
        (lambda path: path.write_bytes(b"x" * 100), "not weights with their card"),
        (lambda path: card_of(path).write_text("{}"), "not weights with their card"),
        (
            lambda path: card_of(path).write_text(
                card_of(path).read_text().replace('"sha256": "', '"sha256": "0')
            ),
            "that of other weights",
        ),
    ],
)
def test_weights_that_cannot_be_trusted_are_refused(tmp_path, spoil, reason):
    path = tmp_path / "w.safetensors"
    weights = Weights("gru", (2,), (0.0,) * 39, (), ())
    weights.save(path)
    assert Gru(weights=str(path)).learned() == weights
    spoil(path)
    with pytest.raises(ConfigError, match=reason):
        Gru(weights=str(path))


def test_nothing_to_learn_from_is_refused():
    reviews, _ = lessons(same_day=False)[0]
    nothing = [(reviews, np.zeros(0, np.int64))]
    algorithms = [BriefGru(), GruCurves(outer_steps=2)]
    for algorithm in algorithms:
        with pytest.raises(ConfigError, match="no reviews"):
            algorithm.pretrain(nothing, np.random.default_rng(0))
    with pytest.raises(ConfigError, match="needs users"):
        BriefGru().pretrain([], np.random.default_rng(0))


def test_cards_of_different_users_are_kept_apart():
    users = lessons(same_day=False)
    together, rows = pooled(users)
    assert len(together) == sum(len(reviews) for reviews, _ in users)
    assert len(np.unique(together.card)) == sum(len(np.unique(r.card)) for r, _ in users)
    assert (together.elapsed_days[rows] > 0).all()


def test_the_outer_learning_rate_rises_and_falls():
    rates = [warmed_cosine(done) for done in (0.0, 0.05, 0.1, 0.55, 1.0)]
    assert rates == pytest.approx([1e-4, 0.50005, 1.0, 0.5, 0.0])


def test_a_file_that_changes_is_read_again(tmp_path):
    path = tmp_path / "w.safetensors"
    for value in (0.0, 1.0):
        Weights("gru", (2,), (value,) * 39, (), ()).save(path)
        assert read_weights(path).parameters == (value,) * 39

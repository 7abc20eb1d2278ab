"""How networks are trained, against plain loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from invented import log_of
from trial import FOLD, REVIEWS

from srs_eval.algorithms.neural.network import network_of
from srs_eval.algorithms.neural.published import GruNetwork
from srs_eval.algorithms.neural.recipes import Recipe
from srs_eval.algorithms.neural.training import epochs, training_batches
from srs_eval.algorithms.recurrent.sequences import histories_before

PLAIN = Recipe(epochs=4, batch_size=100, learning_rate=0.1)
# A recipe, and its learning rate after a share of all steps.
RECIPES = [
    (PLAIN, lambda done: 0.05 * (1 + math.cos(math.pi * done))),
    (
        replace(PLAIN, betas=(0.8, 0.9), weight_decay=0.3, clip=5.0, ramps=(1.0, 0.5, 1.0)),
        lambda done: 0.1,
    ),
    (
        replace(PLAIN, exponent=1.2, learning_rate=0.7, ramps=(0.2, 0.25, 0.5), prox=0.3),
        lambda done: 0.7 * 16000**-0.2 * float(np.interp(done, [0, 0.25, 1], [0.2, 1, 0.5])),
    ),
]


@pytest.mark.parametrize(("recipe", "rate"), RECIPES)
def test_training_takes_the_steps_of_pytorchs_optimiser_and_tells_each_epochs_loss(recipe, rate):
    histories = histories_before(REVIEWS, FOLD.train)
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


def test_recent_reviews_weigh_more_where_the_recipe_says_so():
    weight = replace(PLAIN, recency=(6.49, 2.4758)).weights(100)
    assert weight.mean() == pytest.approx(1)
    assert weight[-1] / weight[0] == pytest.approx(7.49)
    assert (PLAIN.weights(3) == 1).all()


@st.composite
def logs_and_rows(draw):
    cards = draw(st.lists(st.integers(0, 4), min_size=1, max_size=30))
    rows = draw(st.lists(st.integers(0, len(cards) - 1), unique=True))
    return cards, rows


@given(logs_and_rows(), st.integers(1, 10), st.integers(0, 99))
def test_every_target_is_read_after_the_earlier_reviews_of_its_card_and_nothing_else_is(
    case, size, seed
):
    cards, rows = case
    histories = histories_before(log_of(cards, range(len(cards))), np.array(rows, np.int64))
    before = {row: [past for past in range(row) if cards[past] == cards[row]] for row in rows}
    expected = {row: past for row, past in before.items() if past}
    read = sorted({past for earlier in expected.values() for past in earlier})
    assert sorted(histories.review.tolist()) == read
    for batches in (histories.dealt(size, np.random.default_rng(seed)), histories.alike(size)):
        told, reviews = {}, []
        for batch in batches:
            reviews += batch.review[batch.review >= 0].tolist()  # the others are padding
            for target, entry in zip(batch.target.tolist(), batch.entry.tolist(), strict=True):
                step, lane = divmod(entry, batch.review.shape[1])
                told[rows[target]] = batch.review[: step + 1, lane].tolist()
        assert (told, sorted(reviews)) == (expected, read)


def test_targets_without_history_and_with_a_longer_one_than_asked_for_are_left_out():
    histories = histories_before(log_of([1] * 6, range(6)), np.arange(6), longest=3)
    assert histories.target.tolist() == [1, 2, 3]
    assert histories.review.tolist() == [0, 1, 2]

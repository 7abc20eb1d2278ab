"""How networks are trained, against plain loops."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from invented import log_of

from srs_eval.algorithms.neural.sequences import (
    batch_of,
    groups_of_entries,
    groups_of_targets,
    histories_before,
)
from srs_eval.algorithms.neural.training import Ramps, Recipe, epochs, generator_from

PLAIN = Recipe(epochs=4, batch_size=1, learning_rate=0.1)
# A recipe, and its learning rate after a share of all steps.
RECIPES = [
    (PLAIN, lambda done: 0.05 * (1 + math.cos(math.pi * done))),
    (
        replace(PLAIN, betas=(0.8, 0.9), weight_decay=0.3, clip=0.5, schedule=lambda done: 1.0),
        lambda done: 0.1,
    ),
    (
        replace(PLAIN, exponent=1.2, learning_rate=0.7, schedule=Ramps(0.2, 0.25, 0.5)),
        lambda done: 0.7 * 16000**-0.2 * float(np.interp(done, [0, 0.25, 1], [0.2, 1, 0.5])),
    ),
]


@pytest.mark.parametrize(("recipe", "rate"), RECIPES)
def test_training_takes_the_steps_of_pytorchs_optimiser_and_tells_each_epochs_loss(recipe, rate):
    rng = np.random.default_rng(3)
    batches = [torch.tensor(rng.normal(size=(7, 4))) for _ in range(3)]
    ours = torch.tensor(rng.normal(size=4), requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()

    def loss_of(weights, batch):
        return (batch @ weights - 1).square().sum()

    found = list(
        epochs([ours], batches, lambda batch: loss_of(ours, batch), recipe, generator_from(5))
    )
    optimiser = torch.optim.AdamW(
        [theirs], betas=recipe.betas, weight_decay=recipe.weight_decay, eps=1e-8
    )
    generator, losses, done = generator_from(5), [0.0] * 4, 0
    for epoch in range(4):
        for number in torch.randperm(3, generator=generator).tolist():
            optimiser.param_groups[0]["lr"] = rate(done / 12)
            optimiser.zero_grad()
            loss = loss_of(theirs, batches[number])
            loss.backward()
            torch.nn.utils.clip_grad_norm_([theirs], recipe.clip)
            optimiser.step()
            losses[epoch], done = losses[epoch] + loss.item(), done + 1
    assert ours.tolist() == pytest.approx(theirs.tolist(), abs=1e-6)
    assert found == pytest.approx(losses, rel=1e-6)


@st.composite
def logs_and_rows(draw):
    cards = draw(st.lists(st.integers(0, 4), min_size=1, max_size=30))
    rows = draw(st.lists(st.integers(0, len(cards) - 1), unique=True))
    return cards, rows


@given(logs_and_rows())
def test_every_target_is_read_after_the_earlier_reviews_of_its_card_and_nothing_else_is(case):
    cards, rows = case
    histories = histories_before(log_of(cards, range(len(cards))), np.array(rows, np.int64))
    batch = batch_of(histories, np.arange(len(histories.length)))
    n_cards = batch.review.shape[1]
    found = {}
    for target, entry in zip(batch.target.tolist(), batch.entry.tolist(), strict=True):
        step, lane = divmod(entry, n_cards)
        found[rows[target]] = batch.review[: step + 1, lane].tolist()
    before = {row: [past for past in range(row) if cards[past] == cards[row]] for row in rows}
    expected = {row: past for row, past in before.items() if past}
    assert found == expected
    read = sorted({past for earlier in expected.values() for past in earlier})
    assert sorted(histories.review.tolist()) == read
    assert sorted(batch.review[batch.review >= 0].tolist()) == read  # the others are padding


def test_targets_without_history_and_with_a_longer_one_than_asked_for_are_left_out():
    histories = histories_before(log_of([1] * 6, range(6)), np.arange(6), longest=3)
    assert histories.target.tolist() == [1, 2, 3]
    assert histories.review.tolist() == [0, 1, 2]
    for rows in ([], [0]):
        histories = histories_before(log_of([1, 1], range(2)), np.array(rows, np.int64))
        assert groups_of_targets(histories, np.arange(0), per_group=512) == []
        assert groups_of_entries(histories, per_group=512) == []

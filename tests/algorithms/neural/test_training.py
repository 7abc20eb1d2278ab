"""The optimiser is compared with PyTorch's own, and packing with plain loops over the log."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.algorithms.neural.sequences import (
    batch_of,
    groups_of_entries,
    groups_of_targets,
    histories_before,
)
from srs_eval.algorithms.neural.training import (
    Ramps,
    Recipe,
    epochs,
    generator_from,
    one_thread,
)
from srs_eval.data.schema import reviews_from_columns

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


def test_one_thread_gives_the_threads_back_even_after_an_error():
    before = torch.get_num_threads()

    def fail():
        with one_thread():
            assert torch.get_num_threads() == 1
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert torch.get_num_threads() == before


def log_of(cards):
    """A log with one review a day, all Good."""
    n = len(cards)
    return reviews_from_columns(user=1, source="test", card=cards, rating=[3] * n, day=range(n))


def earlier_rows(cards, row):
    return [other for other in range(row) if cards[other] == cards[row]]


@st.composite
def logs_and_rows(draw):
    cards = draw(st.lists(st.integers(0, 4), min_size=1, max_size=30))
    rows = draw(st.lists(st.integers(0, len(cards) - 1), unique=True))
    return cards, rows


@given(logs_and_rows())
def test_every_target_is_read_after_the_earlier_reviews_of_its_card_and_nothing_else_is(case):
    cards, rows = case
    histories = histories_before(log_of(cards), np.array(rows, np.int64))
    batch = batch_of(histories, np.arange(len(histories.length)))
    n_cards = batch.review.shape[1]
    found = {}
    for target, entry in zip(batch.target.tolist(), batch.entry.tolist(), strict=True):
        step, lane = divmod(entry, n_cards)
        found[rows[target]] = batch.review[: step + 1, lane].tolist()
    expected = {row: past for row in rows if (past := earlier_rows(cards, row))}
    assert found == expected
    read = sorted({past for earlier in expected.values() for past in earlier})
    assert sorted(histories.review.tolist()) == read
    assert sorted(batch.review[batch.review >= 0].tolist()) == read  # the others are padding


def test_targets_without_history_and_with_a_longer_one_than_asked_for_are_left_out():
    histories = histories_before(log_of([1] * 6), np.arange(6), longest=3)
    assert histories.target.tolist() == [1, 2, 3]
    assert histories.review.tolist() == [0, 1, 2]
    for rows in ([], [0]):
        histories = histories_before(log_of([1, 1]), np.array(rows, np.int64))
        assert groups_of_targets(histories, np.arange(0), per_group=512) == []
        assert groups_of_entries(histories, per_group=512) == []


def test_groups_of_targets_hold_every_card_once_and_about_equally_many_targets():
    rng = np.random.default_rng(1)
    log = log_of(np.sort(np.minimum(rng.geometric(0.005, 3000), 900)).tolist())
    histories = histories_before(log, np.arange(len(log)))
    order = np.random.default_rng(0).permutation(len(histories.length))
    groups = groups_of_targets(histories, order, per_group=300)
    assert np.array_equal(np.concatenate(groups), order)
    targets = [histories.target_count[group].sum() for group in groups]
    assert len(groups) == -(-len(histories.target) // 300)
    assert max(targets) - min(targets) <= 2 * histories.target_count.max()

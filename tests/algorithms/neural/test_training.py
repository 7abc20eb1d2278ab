"""The optimiser is compared with PyTorch's own."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from srs_eval.algorithms.neural.training import (
    Ramps,
    Recipe,
    apart,
    constant,
    epochs,
    generator_from,
    one_thread,
)

PLAIN = Recipe(epochs=4, batch_size=1, learning_rate=0.1)
# A recipe, and its learning rate after a share of all steps.
RECIPES = [
    (PLAIN, lambda done: 0.05 * (1 + math.cos(math.pi * done))),
    (
        replace(PLAIN, betas=(0.8, 0.9), weight_decay=0.3, clip=0.5, schedule=constant),
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


def test_training_stops_where_the_loss_is_no_number():
    weight = torch.tensor([1.0], requires_grad=True)
    calls = []

    def loss(batch):
        calls.append(batch)
        return (weight * math.nan).sum()

    (total,) = epochs([weight], [0.0] * 4, loss, PLAIN, generator_from(0))
    assert math.isnan(total)
    assert len(calls) == 1


def test_one_thread_gives_the_threads_back_even_after_an_error():
    before = torch.get_num_threads()

    def fail():
        with one_thread():
            assert torch.get_num_threads() == 1
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert torch.get_num_threads() == before


def test_dropout_is_drawn_from_our_own_generator():
    before = torch.get_rng_state()

    def draw():
        for _ in range(3):
            yield torch.rand(1).item()

    drawn = list(apart(draw(), generator_from(3)))
    assert torch.equal(torch.get_rng_state(), before)
    assert len(set(drawn)) == 3
    between = apart(draw(), generator_from(3))
    for number in drawn:
        assert next(between) == number
        torch.rand(5)  # drawn by other code, which does not affect the training
    torch.set_rng_state(before)

"""The optimiser is compared with PyTorch's own."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from srs_eval.algorithms.neural.training import (
    Adam,
    Ramps,
    Recipe,
    apart,
    constant,
    cosine,
    epochs,
    generator_from,
    one_thread,
)


@pytest.mark.slow
def test_training_takes_the_steps_of_pytorchs_adam_with_a_cosine_schedule() -> None:
    rng = np.random.default_rng(3)
    batches = [torch.tensor(rng.normal(size=(7, 4))) for _ in range(3)]
    ours = torch.tensor(rng.normal(size=4), requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()

    def loss_of(weights: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return (batch @ weights - 1).square().sum()

    steps = epochs(
        [ours],
        batches,
        lambda batch: loss_of(ours, batch),
        Recipe(epochs=4, batch_size=1, learning_rate=0.1),
        generator_from(5),
    )
    assert len(list(steps)) == 4
    optimiser = torch.optim.Adam([theirs], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=12)
    generator = generator_from(5)
    for _ in range(4):
        for number in torch.randperm(3, generator=generator).tolist():
            optimiser.zero_grad()
            loss_of(theirs, batches[number]).backward()
            optimiser.step()
            schedule.step()
    assert ours.tolist() == pytest.approx(theirs.tolist(), abs=1e-12)


def test_each_epoch_tells_its_summed_loss() -> None:
    weight = torch.tensor([2.0], requires_grad=True)
    losses = epochs(
        [weight],
        [1.0, 3.0],
        lambda factor: (factor * weight).sum(),
        Recipe(epochs=2, batch_size=1, learning_rate=1e-9),
        generator_from(0),
    )
    assert list(losses) == pytest.approx([8.0, 8.0])


def test_training_stops_where_the_loss_is_no_number() -> None:
    weight = torch.tensor([1.0], requires_grad=True)
    calls = []

    def loss(batch: float) -> torch.Tensor:
        calls.append(batch)
        return (weight * math.nan).sum()

    recipe = Recipe(epochs=3, batch_size=1, learning_rate=0.1)
    (total,) = epochs([weight], [0.0] * 4, loss, recipe, generator_from(0))
    assert math.isnan(total)
    assert len(calls) == 1


def test_one_thread_gives_the_threads_back_even_after_an_error() -> None:
    before = torch.get_num_threads()

    def fail() -> None:
        with one_thread():
            assert torch.get_num_threads() == 1
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("clip", [math.inf, 0.5])
def test_steps_with_weight_decay_and_short_gradients_are_those_of_pytorch(clip: float) -> None:
    ours = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    recipe = Recipe(1, 1, 0.1, betas=(0.8, 0.9), weight_decay=0.3, clip=clip)
    adam = Adam([ours], recipe)
    optimiser = torch.optim.AdamW([theirs], lr=0.1, betas=(0.8, 0.9), weight_decay=0.3)
    for _ in range(5):
        adam.step(torch.autograd.grad((ours**2).sum(), [ours]), 0.1)
        optimiser.zero_grad()
        (theirs**2).sum().backward()
        if clip < math.inf:
            torch.nn.utils.clip_grad_norm_([theirs], clip)
        optimiser.step()
    assert ours.tolist() == pytest.approx(theirs.tolist(), abs=1e-6)


def test_ramps_go_straight_to_1_and_from_there() -> None:
    ramps = Ramps(start=0.2, turn=0.25, end=0.5)
    assert [ramps(done) for done in (0.0, 0.125, 0.25, 0.625, 1.0)] == pytest.approx(
        [0.2, 0.6, 1.0, 0.75, 0.5]
    )
    assert [constant(0.3), cosine(0.0), cosine(1.0)] == [1.0, 1.0, 0.0]


def test_learning_rates_are_multiplied_as_published_where_a_batch_counts_otherwise() -> None:
    recipe = Recipe(1, 1, 0.01, schedule=constant, exponent=1.2)
    assert recipe.pace(0.5) == pytest.approx(0.01 * 16000**-0.2)


def test_dropout_is_drawn_from_our_own_generator() -> None:
    before = torch.get_rng_state()

    def draw() -> Iterator[float]:
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

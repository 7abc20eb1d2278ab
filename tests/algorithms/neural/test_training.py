"""The optimiser is compared with PyTorch's own."""

import math

import numpy as np
import pytest
import torch

from srs_eval.algorithms.neural.training import generator_from, minimise, one_thread


def test_minimise_takes_the_steps_of_pytorchs_adam_with_a_cosine_schedule() -> None:
    rng = np.random.default_rng(3)
    batches = [torch.tensor(rng.normal(size=(7, 4))) for _ in range(3)]
    ours = torch.tensor(rng.normal(size=4), requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()

    def loss_of(weights: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return (batch @ weights - 1).square().sum()

    minimise(
        [ours],
        batches,
        lambda batch: loss_of(ours, batch),
        epochs=4,
        learning_rate=0.1,
        generator=generator_from(5),
    )
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


def test_minimise_returns_the_summed_loss_of_the_last_epoch() -> None:
    weight = torch.tensor([2.0], requires_grad=True)
    loss = minimise(
        [weight],
        [1.0, 3.0],
        lambda factor: (factor * weight).sum(),
        epochs=1,
        learning_rate=1e-9,
        generator=generator_from(0),
    )
    assert loss == pytest.approx(8.0)


def test_minimise_stops_where_the_loss_is_no_number() -> None:
    weight = torch.tensor([1.0], requires_grad=True)
    calls = []

    def loss(batch: float) -> torch.Tensor:
        calls.append(batch)
        return (weight * math.nan).sum()

    total = minimise(
        [weight], [0.0] * 4, loss, epochs=3, learning_rate=0.1, generator=generator_from(0)
    )
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

"""The public trainer's shuffles and steps, against PyTorch's own."""

import numpy as np
import pytest
from random_logs import log_of, random_log
from small_models import small_model, space_of
from torch_maths import TorchMaths, predictions, torch

from srs_eval.cards import rows_by_card
from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.reference import Recipe, shuffles, train

CURVE = {
    "curve_of": lambda m, w, s, t: m.exp(-m.exp(w[0]) * t / s[0]),
    "init_of": lambda m, w, r: (r * m.exp(w[1]),),
    "step_of": lambda m, w, s, t, r, p: (m.clip(s[0] * m.where(r > 1, 2 - p, 0.5), 0.1, 1e3),),
    "space": space_of((-1.0, 0.5), -3.0, 3.0),
}
MODEL: CompiledModel = small_model(**CURVE)


@pytest.mark.parametrize("seed", [(), (42,)])
@pytest.mark.parametrize("count", [1, 2, 17, 625, 3000])
def test_batches_are_shuffled_as_by_pytorch(count, seed):
    generator = torch.Generator().manual_seed(*(seed or (2023,)))
    found = shuffles(count, *seed)
    for _ in range(4):
        assert next(found) == torch.randperm(count, generator=generator).tolist()


def by_pytorch(reviews, rows, weight, recipe):
    """Train with PyTorch's optimiser, schedule and loss."""
    w = torch.tensor([-1.0, 0.5], dtype=torch.float64, requires_grad=True)
    nth = np.array([np.sum(reviews.card[:row] == reviews.card[row]) for row in rows])
    order = np.argsort(nth, kind="stable") if recipe.sort else np.arange(len(rows))
    batches = [order[cut : cut + recipe.batch] for cut in range(0, len(rows), recipe.batch)]
    adam = torch.optim.Adam([w], lr=recipe.learning_rate, betas=recipe.betas)
    steps = len(batches) * recipe.epochs
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=steps)
    generator = torch.Generator().manual_seed(2023)
    recalled = torch.as_tensor(reviews.recalled[rows].astype(float))

    def loss(some):
        p = predictions(TorchMaths(), MODEL.equations, w, reviews)[torch.as_tensor(rows[some])]
        each = torch.nn.functional.binary_cross_entropy(p, recalled[some], reduction="none")
        return (each * torch.as_tensor(weight[some])).sum()

    best, lowest = w.detach().clone(), float(loss(order).detach())
    for _ in range(recipe.epochs):
        for number in torch.randperm(len(batches), generator=generator).tolist():
            adam.zero_grad()
            loss(batches[number]).backward()
            adam.step()
            schedule.step()
            with torch.no_grad():
                w.clamp_(-3.0, 3.0)
        now = float(loss(order).detach())
        if now < lowest or recipe.keep == "last":
            best, lowest = w.detach().clone(), now
    return best.numpy()


@pytest.mark.parametrize(
    "recipe",
    [
        {"batch": 64},
        {"batch": 50, "sort": False, "keep": "last"},
        {"batch": 1000, "learning_rate": 0.3, "betas": (0.8, 0.9)},
    ],
)
def test_training_ends_where_pytorch_ends(recipe):
    rng, recipe = np.random.default_rng(0), Recipe(**recipe, longest_history=None, decimals=None)
    reviews = random_log(rng, 40, 12, exponent=1.3)
    first = np.unique(reviews.card, return_index=True)[1]
    rows = np.setdiff1d(np.flatnonzero(reviews.elapsed >= 1), first)
    weight = rng.uniform(0.3, 1.0, len(rows))
    space = MODEL.equations.parameters
    start = np.array(space.defaults)
    found = train(MODEL, reviews, rows, weight, start, np.zeros(2), space, recipe)
    # Steps of Adam's kind do not tell single precision apart from double.
    np.testing.assert_allclose(found, by_pytorch(reviews, rows, weight, recipe), atol=2e-4)


def test_a_recipe_says_what_is_trained_on():
    n = 70
    reviews = log_of(np.ones(n), np.full(n, 3), np.r_[0, 0, np.full(n - 2, 2)])
    rows = np.arange(1, n)
    cards = rows_by_card(reviews.card)
    assert rows[Recipe(longest_history=64).trains_on(reviews, rows, cards)].tolist() == [
        *range(1, 65)
    ]
    later = Recipe(longest_history=None, later_only=True).trains_on(reviews, rows, cards)
    assert rows[later][0] == 3
    assert Recipe(longest_history=None).trains_on(reviews, rows, cards).all()


def test_frozen_parameters_keep_their_start_and_the_rest_is_rounded():
    reviews = random_log(np.random.default_rng(0), 40, 12, exponent=1.3)
    rows = np.flatnonzero(reviews.elapsed >= 1)
    found = train(
        MODEL, reviews, rows, np.ones(len(rows)), np.array([-1.0, 0.5]), np.zeros(2),
        MODEL.equations.parameters, Recipe(frozen=(1,), decimals=2),
    )  # fmt: skip
    assert found[1] == 0.5
    assert found[0] != -1.0
    assert found[0] == round(found[0], 2)

"""What the public trainer trains on, and in which order; test_josh.py has published fits."""

import numpy as np
import pytest
from random_logs import log_of
from torch_maths import torch

from srs_eval.cards import rows_by_card
from srs_eval.engine.reference import Recipe, shuffles


@pytest.mark.parametrize("seed", [(), (42,)])
@pytest.mark.parametrize("count", [1, 2, 17, 625, 3000])
def test_batches_are_shuffled_as_by_pytorch(count, seed):
    generator = torch.Generator().manual_seed(*(seed or (2023,)))
    found = shuffles(count, *seed)
    for _ in range(4):
        assert next(found) == torch.randperm(count, generator=generator).tolist()


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

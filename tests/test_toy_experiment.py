"""The toy experiment: its formulas are right."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from metric_functions import brier, log_loss
from programs import loaded

toy = loaded("experiments/toy_experiment/study.py")


def every_dataset(n, hard, known):
    """All outcomes of n reviews, and all hard reviews a model may know, with probabilities."""
    truth = np.where(np.arange(n) < hard, toy.HARD, toy.EASY)
    for outcome in itertools.product([False, True], repeat=n):
        recalled = np.array(outcome)
        likely = np.prod(np.where(recalled, truth, 1 - truth))
        for knows in itertools.product([False, True], repeat=hard):
            p = np.full(n, toy.EASY)
            p[:hard][np.array(knows, bool)] = toy.HARD
            chance = math.prod(known if one else 1 - known for one in knows)
            yield recalled, p, likely * chance


@pytest.mark.parametrize("name", toy.SCORES)
def test_the_formulas_are_those_of_every_dataset_there_is(name):
    score = {"log_loss": log_loss, "brier": brier}[name]
    rows = [
        (score(np.full(6, recalled.mean()), recalled), score(p, recalled), chance)
        for recalled, p, chance in every_dataset(6, 2, toy.KNOWN["M1"])
    ]
    base, own, chance = np.array(rows).T
    assert chance.sum() == pytest.approx(1)
    found = toy.closed_form(name, 6, 2 / 6)

    def spread(values):
        return math.sqrt(chance @ (values - chance @ values) ** 2)

    assert found["M0"][:2] == pytest.approx((chance @ base, spread(base)))
    assert found["M1"][:2] == pytest.approx((chance @ own, spread(own)))
    signal = chance @ (base - own)
    assert found["M1"].unpaired == pytest.approx(signal / math.hypot(spread(base), spread(own)))
    assert found["M1"].paired == pytest.approx(signal / spread(base - own))

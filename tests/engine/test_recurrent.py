"""The engine against a plain loop over the reviews of one card after another."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from random_logs import log_of

from srs_eval.engine.compiled import compiled
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.probability import uncertain
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.errors import FitError


@dataclass(frozen=True, slots=True)
class Doubling:
    """A half-life that doubles with a pass, halves with a failure, and a count."""

    state_names: ClassVar[tuple[str, ...]] = ("half_life", "count")
    parameters: ClassVar[ParameterSpace] = ParameterSpace((2.0,), (0.0,), (9.0,))

    def init(self, m, w, rating):
        return m.where(rating > 1, w[0], 1.0), 1.0

    def curve(self, m, w, state, elapsed):
        return 0.5 ** (elapsed / state[0])

    def step(self, m, w, state, elapsed, rating, p):
        half_life, count = state
        return half_life * m.where(rating > 1, 2.0 - p, 0.5), count + 1


def random_log(n=200, cards=15):
    rng = np.random.default_rng(3)
    card = rng.integers(0, cards, n)
    seen = [row in np.unique(card, return_index=True)[1] for row in range(n)]
    elapsed = np.where(seen, 0, rng.integers(0, 9, n))
    return log_of(card, rng.integers(1, 5, n), elapsed)


def one_card_after_another(reviews, first_half_life):
    """Predictions and half-lives after each review, by the plainest loop."""
    p, after, state = [], [], {}
    for card, rating, elapsed in zip(reviews.card, reviews.rating, reviews.elapsed, strict=True):
        if card not in state:
            p.append(math.nan)
            state[card] = first_half_life if rating > 1 else 1.0
        else:
            p.append(0.5 ** (elapsed / state[card]))
            state[card] *= (2.0 - p[-1]) if rating > 1 else 0.5
        after.append(state[card])
    return np.array(p), np.array(after)


MODEL = RecurrentModel(Doubling(), (2.0,))


@pytest.mark.parametrize("parameters", [(), (2.0, 3.0)])
def test_parameters_of_other_equations_are_refused(parameters):
    with pytest.raises(FitError, match=f"Doubling has 1 parameters, and {len(parameters)} were"):
        RecurrentModel(Doubling(), parameters)


def test_predictions_equal_a_plain_loop_and_are_missing_at_first_reviews():
    reviews = random_log()
    p, _ = one_card_after_another(reviews, 2.0)
    found = MODEL.predict(reviews, np.arange(len(reviews)))
    np.testing.assert_allclose(found, uncertain(p), rtol=1e-12)


def test_states_equal_a_plain_loop():
    reviews = random_log()
    _, after = one_card_after_another(reviews, 2.0)
    states = MODEL.states(reviews)
    np.testing.assert_allclose(states["half_life"], after, rtol=1e-12)
    counts = [reviews.card[: row + 1].tolist().count(reviews.card[row]) for row in range(200)]
    assert states["count"].tolist() == counts


def test_rows_are_answered_in_the_order_they_are_asked_and_one_by_one():
    reviews = random_log()
    everything = MODEL.predict(reviews, np.arange(len(reviews)))
    for rows in ([150, 30, 31], [199], [30, 30]):
        asked = MODEL.predict(reviews, np.array(rows))
        np.testing.assert_array_equal(asked, everything[rows])


@dataclass(frozen=True)
class Constant:
    """A model whose curve depends on nothing."""

    state_names = ("nothing",)
    parameters = ParameterSpace((), (), ())
    p: float = 0.9

    def init(self, m, w, rating):
        return (0.0,)

    def curve(self, m, w, state, elapsed):
        return self.p

    def step(self, m, w, state, elapsed, rating, p):
        return (0.0,)


def test_a_curve_may_leave_out_what_it_does_not_depend_on():
    reviews = random_log()
    rows = np.arange(len(reviews))
    p = RecurrentModel(Constant(), ()).predict_at(reviews, rows, np.ones((len(rows), 3)))
    first = np.isin(rows, np.unique(reviews.card, return_index=True)[1])
    assert p.shape == (len(rows), 3)
    assert np.isnan(p[first]).all()
    assert (p[~first] == 0.9).all()


class WithAttributes(Constant):
    __hash__ = object.__hash__

    def __init__(self, p):
        object.__setattr__(self, "p", p)


class WithSlots:
    __slots__ = ("p",)


@pytest.mark.parametrize("equations", [WithAttributes(0.8), WithSlots()])
def test_equations_that_cannot_be_told_apart_are_refused(equations):
    with pytest.raises(TypeError, match="make it a frozen dataclass"):
        compiled(equations)

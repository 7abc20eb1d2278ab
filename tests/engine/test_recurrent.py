"""A model of equations, asked about rows of a log, against a plain loop over its reviews."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from random_logs import random_log
from small_models import SmallEquations, space_of

from srs_eval.engine.compiled import compiled
from srs_eval.engine.probability import uncertain
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.errors import FitError

# A half-life that doubles with a pass, halves with a failure, and a count.
DOUBLING = SmallEquations(
    state_names=("half_life", "count"),
    init_of=lambda m, w, rating: (m.where(rating > 1, w[0], 1.0), 1.0),
    curve_of=lambda m, w, state, elapsed: 0.5 ** (elapsed / state[0]),
    step_of=lambda m, w, state, elapsed, rating, p: (
        state[0] * m.where(rating > 1, 2.0 - p, 0.5),
        state[1] + 1,
    ),
    space=space_of((2.0,), 0.0),
)
REVIEWS = random_log(np.random.default_rng(3), 15, 20)
ROWS = np.arange(len(REVIEWS))


def test_predictions_and_states_equal_a_plain_loop_for_rows_in_any_order():
    p, after, count, state = [], [], [], {}
    columns = (REVIEWS.card, REVIEWS.rating, REVIEWS.elapsed)
    for card, rating, elapsed in zip(*columns, strict=True):
        if card not in state:
            p.append(math.nan)
            state[card] = (2.0 if rating > 1 else 1.0), 1
        else:
            half_life, reviews = state[card]
            p.append(0.5 ** (elapsed / half_life))
            state[card] = half_life * ((2.0 - p[-1]) if rating > 1 else 0.5), reviews + 1
        after.append(state[card][0])
        count.append(state[card][1])
    model = RecurrentModel(DOUBLING, (2.0,))
    found = model.predict(REVIEWS, ROWS)
    np.testing.assert_allclose(found, uncertain(np.array(p)), rtol=1e-12)
    for rows in ([50, 30, 31], ROWS[-1:], [30, 30]):
        np.testing.assert_array_equal(model.predict(REVIEWS, np.array(rows)), found[rows])
    states = model.states(REVIEWS)
    np.testing.assert_allclose(states["half_life"], after, rtol=1e-12)
    assert states["count"].tolist() == count


@pytest.mark.parametrize("parameters", [(), (2.0, 3.0)])
def test_parameters_of_other_equations_are_refused(parameters):
    with pytest.raises(FitError):
        RecurrentModel(DOUBLING, parameters)


def test_a_curve_may_leave_out_what_it_does_not_depend_on():
    model = RecurrentModel(SmallEquations(space=space_of(())), ())
    p = model.predict_at(REVIEWS, ROWS, np.ones((len(ROWS), 3)))
    first = np.isin(ROWS, np.unique(REVIEWS.card, return_index=True)[1])
    assert p.shape == (len(ROWS), 3)
    assert np.isnan(p[first]).all()
    assert (p[~first] == 0.9).all()


@dataclass(frozen=True)
class WithAttributes:
    __hash__ = object.__hash__
    p: float


class WithSlots:
    __slots__ = ("p",)


@pytest.mark.parametrize("equations", [WithAttributes(0.8), WithSlots()])
def test_equations_that_cannot_be_told_apart_are_refused(equations):
    with pytest.raises(TypeError, match="frozen dataclass"):
        compiled(equations)

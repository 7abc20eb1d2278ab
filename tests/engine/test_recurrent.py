"""Models of equations: predictions of any rows, and absurd parameters."""

import numpy as np
import pytest
from published import PUBLISHED, ordinary_bounds
from random_logs import LONGEST_ELAPSED, further_rows, log_of, random_log
from small_models import SmallEquations, space_of

from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.engine.compiled import compiled
from srs_eval.engine.minimise import newton
from srs_eval.engine.objective import Objective, PackedLoss, feasible
from srs_eval.engine.packing import pack
from srs_eval.errors import FitError

REVIEWS = random_log(np.random.default_rng(3), 15, 20)


def test_rows_of_any_order_are_predicted_and_as_many_parameters_as_there_are_needed():
    equations = PUBLISHED["FSRS-6"]
    model = RecurrentModel(equations, equations.parameters.defaults)
    everything = np.arange(len(REVIEWS))
    found = model.predict(REVIEWS, everything)
    for rows in ([50, 30, 31], everything[-1:], [30, 30]):
        np.testing.assert_array_equal(model.predict(REVIEWS, np.array(rows)), found[rows])
    constant = RecurrentModel(SmallEquations(space=space_of(())), ())
    p = constant.predict_at(REVIEWS, everything, np.ones((len(REVIEWS), 3)))
    np.testing.assert_array_equal(p, np.where(np.isnan(found), np.nan, 0.9)[:, None].repeat(3, 1))
    for parameters in ((), (*model.parameters, 3.0)):
        with pytest.raises(FitError):
            RecurrentModel(equations, parameters)


DTYPES = [np.float32, np.float64]


def corners(equations):
    """Defaults, and parameters at their bounds: all at one end, and random choices of ends."""
    rng = np.random.default_rng(0)
    lower, upper = ordinary_bounds(equations)
    ends = [
        np.zeros(len(lower), bool),
        np.ones(len(lower), bool),
        *(rng.random((5, len(lower))) < 0.5),
    ]
    corners = [feasible(np.where(end, upper, lower), equations.parameters) for end in ends]
    return [np.array(equations.parameters.defaults), *corners]


def long_card(rating, elapsed, n=2000):
    """One card of so many reviews, its ratings and elapsed times taken in turns."""
    rows = np.arange(n)
    return log_of(np.ones(n), np.resize(rating, n), np.where(rows, np.resize(elapsed, n), 0.0))


HISTORIES = {
    "all sorts": random_log(np.random.default_rng(1), 25, 30, exponent=4.6),
    "nothing but same-day reviews": long_card([3, 1, 4, 2], [0.0], n=100),
    "passes at once": long_card([4], [0.0]),
    "failures after a century": long_card([1], [LONGEST_ELAPSED]),
    "everything": long_card([3, 1, 4, 2, 3], [0.0, 1.0, LONGEST_ELAPSED, 0.2, 30, 7, 0]),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("name", ["FSRS-6", "FSRS-7"])
def test_all_that_is_computed_is_finite_at_the_bounds(name, history):
    reviews, equations = HISTORIES[history], PUBLISHED[name]
    model, rows = compiled(equations), further_rows(reviews)
    for w in corners(equations):
        recurrent = RecurrentModel(equations, tuple(w))
        p = recurrent.predict(reviews, rows)
        assert ((p > 0) & (p < 1)).all(), w
        assert all(np.isfinite(column).all() for column in recurrent.states(reviews).values())
        for dtype in DTYPES:
            packed = pack(reviews, rows, weight=np.ones(len(rows)), dtype=dtype)
            found = (*model.gradient(w, packed), *model.fisher(w, packed))
            assert np.isfinite([found[0], found[2]]).all()
            if all(np.isfinite(part).all() for part in found):
                continue
            # Elapsed time over stability leaves the range of single precision: a fit says so.
            assert dtype is np.float32
            assert LONGEST_ELAPSED in reviews.elapsed
            objective = Objective(PackedLoss(model, packed), w, np.zeros((model.size, model.size)))
            with pytest.raises(FitError):
                newton(objective, w, equations.parameters)

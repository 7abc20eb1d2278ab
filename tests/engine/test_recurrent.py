"""Models of equations: packed histories, predictions and states, and absurd parameters."""

import numpy as np
import pytest
from published import PUBLISHED, ordinary_bounds
from random_logs import LONGEST_ELAPSED, further_rows, log_of, random_log
from small_models import SmallEquations, space_of

from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.engine.compiled import compiled
from srs_eval.engine.minimise import newton
from srs_eval.engine.objective import Objective, PackedLoss, feasible
from srs_eval.engine.packing import FACTS, LANES, pack
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cards", [1, 2, LANES, LANES + 1, 40])
@pytest.mark.parametrize("longest", [2, 3, 60])
def test_every_review_lands_once_with_its_facts_and_weight_in_blocks_that_waste_little(
    cards, longest, dtype
):
    rng = np.random.default_rng(cards)
    reviews = random_log(rng, cards, longest)
    last = np.unique(reviews.card[::-1], return_index=True)[1]
    rows = np.union1d(np.flatnonzero(rng.random(len(reviews)) < 0.5), len(reviews) - 1 - last)
    weight = np.zeros(len(reviews))
    weight[rows] = rng.uniform(0.1, 2.0, len(rows))
    packed = pack(reviews, rows, weight=weight[rows], dtype=dtype)
    assert packed.reviews.dtype == dtype
    assert packed.reviews.ctypes.data % 64 == 0  # where the widest loads want them
    assert len(np.unique(packed.where)) == len(packed.where) == len(reviews)
    place, lane = np.divmod(packed.where, LANES)
    for fact, expected in enumerate((reviews.elapsed, reviews.rating, weight)):
        found = packed.reviews[place, fact, lane]
        np.testing.assert_array_equal(found, expected.astype(dtype))
    assert np.count_nonzero(packed.reviews[:, 2]) == len(rows)  # fillers weigh nothing
    cards, counts = np.unique(reviews.card, return_counts=True)
    ends = packed.starts + packed.lengths
    assert packed.starts.tolist() == [0, *ends[:-1]]
    assert packed.reviews.shape == (ends[-1], FACTS, LANES)
    assert packed.longest == counts.max()
    assert len(packed.starts) == -(-len(cards) // LANES)
    assert (np.diff(packed.lengths) >= 0).all()
    begins = np.flatnonzero(np.isin(packed.where // LANES, packed.starts))
    assert begins.tolist() == sorted(np.unique(reviews.card, return_index=True)[1])


DTYPES = [np.float32, np.float64]


def corners(equations, count):
    """Defaults, and parameters at their bounds: all at one end, and random choices of ends."""
    rng = np.random.default_rng(0)
    lower, upper = ordinary_bounds(equations)
    ends = [np.zeros(len(lower), bool), np.ones(len(lower), bool)]
    ends += [rng.random(len(lower)) < 0.5 for _ in range(count)]
    corners = [feasible(np.where(end, upper, lower), equations.parameters) for end in ends]
    return [np.array(equations.parameters.defaults), *corners]


def long_card(rating, elapsed, n=5000):
    """One card of so many reviews, its ratings and elapsed times taken in turns."""
    rows = np.arange(n)
    return log_of(np.ones(n), np.resize(rating, n), np.where(rows, np.resize(elapsed, n), 0.0))


def packed_of(reviews, dtype):
    rows = further_rows(reviews)
    return pack(reviews, rows, weight=np.ones(len(rows)), dtype=dtype)


HISTORIES = {
    "all sorts": random_log(np.random.default_rng(1), 25, 30, exponent=4.6),
    "nothing but same-day reviews": long_card([3, 1, 4, 2], [0.0], n=100),
    "5000 passes at once": long_card([4], [0.0]),
    "5000 failures after a century": long_card([1], [LONGEST_ELAPSED]),
    "5000 of everything": long_card([3, 1, 4, 2, 3], [0.0, 1.0, LONGEST_ELAPSED, 0.2, 30, 7, 0]),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("name", ["FSRS-6", "FSRS-7"])
def test_all_that_is_computed_is_finite_at_the_bounds(name, history):
    reviews, equations = HISTORIES[history], PUBLISHED[name]
    model, rows = compiled(equations), further_rows(reviews)
    for w in corners(equations, 2 if len(reviews) >= 5000 else 40):
        recurrent = RecurrentModel(equations, tuple(w))
        p = recurrent.predict(reviews, rows)
        assert ((p > 0) & (p < 1)).all(), w
        assert all(np.isfinite(column).all() for column in recurrent.states(reviews).values())
        for dtype in DTYPES:
            packed = packed_of(reviews, dtype)
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

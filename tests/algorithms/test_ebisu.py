import numpy as np
import pytest
from random_logs import log_of
from scipy.integrate import quad

from srs_eval.algorithms.half_life.ebisu import Ebisu, updated


def moment(belief, power, when, recalled):
    """Integral of p**power over prior and likelihood, number by number."""
    alpha, beta, _ = belief

    def weighted(p):
        return p ** (power + alpha - 1) * (p**when if recalled else 1 - p**when)

    # The end at 1 is as steep as (1 - p)**(beta - 1): that factor is left to quad.
    return quad(weighted, 0, 1, weight="alg", wvar=(0, beta - 1), epsabs=0, epsrel=1e-10)[0]


@pytest.mark.parametrize("recalled", [True, False])
@pytest.mark.parametrize("elapsed", [0.4, 3.0, 30.0])
@pytest.mark.parametrize("belief", [(1.8, 1.8, 10.0), (3.0, 2.0, 4.0), (1.2, 4.0, 50.0)])
def test_the_new_belief_has_the_moments_of_the_posterior(belief, elapsed, recalled):
    new, possible = updated(np.array(belief)[:, None], np.array([elapsed]), np.array([recalled]))
    assert possible.all()
    alpha, beta, half_life = new[:, 0]
    when, power = elapsed / belief[2], half_life / belief[2]
    whole = moment(belief, 0.0, when, recalled)
    mean = moment(belief, power, when, recalled) / whole
    square = moment(belief, 2 * power, when, recalled) / whole
    assert mean == pytest.approx(0.5, abs=1e-7)
    assert alpha / (alpha + beta) == pytest.approx(mean, abs=1e-7)
    variance = alpha * beta / ((alpha + beta) ** 2 * (alpha + beta + 1))
    assert variance == pytest.approx(square - mean**2, rel=1e-6)


# Computed with 60 digits: alpha, which is beta, and the half-life after a failure.
@pytest.mark.parametrize(
    ("belief", "elapsed", "alpha", "half_life"),
    [
        ((0.14942580060505528, 4448.286561003005), 0.0, 1.8570225375746185, 284.910865190365),
        ((0.02, 1e8), 0.0, 2.0375775650880477, 829284.5699396128),
        ((0.2, 512.0), 1e5, 0.35505483451345404, 261.41277770045065),
    ],
)
def test_a_failure_is_computed_to_rounding_however_soon_it_is(belief, elapsed, alpha, half_life):
    before = np.array([[belief[0]], [belief[0]], [belief[1]]])
    found, possible = updated(before, np.array([elapsed]), np.array([False]))
    assert possible.all()
    # 6e-13 where this was written: differences of logarithms of integrals lose three digits.
    np.testing.assert_allclose(found[:, 0], [alpha, alpha, half_life], rtol=1e-11)


def test_an_outcome_that_cannot_be_computed_with_leaves_the_belief_as_it_was_and_is_counted():
    # A review at once is not later than now, in 64 bits, of such a half-life.
    almost_certain = np.array([[0.02], [0.02], [1e20]])
    belief, possible = updated(almost_certain, np.zeros(1), np.array([False]))
    assert not possible.any()
    np.testing.assert_array_equal(belief, almost_certain)
    ages = [0, *(10.0 ** np.arange(4, 17, 3))]
    last = len(ages) + 1
    reviews = log_of([0] * (last + 1), [*[3] * len(ages), 1, 3], [*ages, 0, 1])
    model = Ebisu().fit(reviews, np.array([last]), np.random.default_rng(0))
    assert model.learned.note == f"1 of {last + 1} reviews were too surprising for an update"
    assert not model.learned.fallback
    assert 0 < model.predict(reviews, np.array([last]))[0] < 1

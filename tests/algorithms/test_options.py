import pytest

from srs_eval.algorithms.baselines import Constant
from srs_eval.algorithms.fsrs.fsrs5 import Fsrs5, Fsrs5Equations
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7, Fsrs7Equations
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.algorithms.schedulers.sbd import Sbd
from srs_eval.errors import ConfigError


@pytest.mark.parametrize(
    ("algorithm", "choices"),
    [
        (Hlr, "newton, lbfgs, reference, default"),
        (Fsrs45, "newton, lbfgs, reference, s0, default"),
        (Fsrs6, "newton, lbfgs, reference, s0, default, one_step"),
        (Fsrs7, "newton, reference, default"),
        (Sbd, "newton, lbfgs, default"),
    ],
)
def test_an_unknown_fit_lists_the_choices(algorithm, choices):
    with pytest.raises(ConfigError, match=f"fit=newtn is not one of: {choices}"):
        algorithm(fit="newtn")


def test_parameters_in_the_wrong_order_are_refused():
    wrong = list(Fsrs7Equations.parameters.defaults)
    (low, high), *_ = Fsrs7Equations.parameters.ordered
    wrong[low], wrong[high] = wrong[high], wrong[low]
    with pytest.raises(ConfigError, match=f"parameter {low} is .* larger than parameter {high}"):
        Fsrs7(parameters=wrong)


def test_first_stabilities_may_be_as_short_as_fractional_days_allow():
    given = list(Fsrs5Equations.parameters.defaults)
    given[0] = 0.0002
    assert Fsrs5(parameters=given).parameters == tuple(given)


def test_an_unknown_recency_lists_the_choices():
    message = "recency=weekly is not one of: none, mild, steep, quartic, exponential"
    with pytest.raises(ConfigError, match=message):
        Fsrs6(recency="weekly")


def test_each_way_to_fit_has_its_own_recency():
    assert [Fsrs6(fit=method).recency for method in ("newton", "lbfgs", "reference")] == [
        "mild",
        "mild",
        "none",
    ]
    assert Sbd().recency == "steep"
    assert Sbd(recency="none").recency == "none"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"half_life": 0}, "half_life=0"),
        ({"prior_weight": -1}, "prior_weight=-1"),
        ({"prior_weight": float("nan")}, "prior_weight=nan"),
    ],
)
def test_strengths_must_be_usable_numbers(option, message):
    with pytest.raises(ConfigError, match=message):
        Fsrs6(**option)


@pytest.mark.parametrize("p", [0, 1, 1.5, "0.9"])
def test_a_constant_must_be_uncertain(p):
    with pytest.raises(ConfigError, match="above 0 and below 1"):
        Constant(p=p)


@pytest.mark.parametrize(
    ("option", "message"), [({"rate": 0}, "rate=0"), ({"start": float("inf")}, "start=inf")]
)
def test_a_moving_average_needs_usable_numbers(option, message):
    with pytest.raises(ConfigError, match=message):
        MovingAverage(**option)


@pytest.mark.parametrize("given", ["no", 0, 3, None])
def test_what_only_looks_like_true_or_false_is_refused(given):
    with pytest.raises(ConfigError, match=f"fsrs6: binary={given} is not one of: true, false"):
        Fsrs6(binary=given)


@pytest.mark.parametrize(
    ("options", "idle"),
    [
        ({"fit": "reference", "prior_weight": 5}, "prior_weight=5"),
        ({"fit": "s0", "recency": "mild"}, "recency=mild"),
        ({"half_life": 0.1}, "half_life=0.1"),
    ],
)
def test_options_that_would_change_nothing_are_refused(options, idle):
    with pytest.raises(ConfigError, match=f"fsrs6: {idle} has no effect with fit="):
        Fsrs6(**options)


def test_parameters_with_an_order_cannot_be_fitted_by_bounds_alone():
    class Ordered(Fsrs7):
        methods = ("lbfgs",)

    with pytest.raises(ConfigError, match="fit=lbfgs knows bounds only"):
        Ordered(fit="lbfgs")

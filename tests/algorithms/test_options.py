import pickle

import pytest

from srs_eval.algorithms.baselines import Constant
from srs_eval.algorithms.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs45 import Fsrs45
from srs_eval.algorithms.hlr import Hlr
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.errors import ConfigError


@pytest.mark.parametrize(
    ("algorithm", "choices"),
    [(Fsrs45, "default"), (Fsrs6, "default"), (Hlr, "lbfgs, default")],
)
def test_an_unknown_fit_lists_the_choices(algorithm, choices):
    with pytest.raises(ConfigError, match=f"fit=newtn is not one of: {choices}"):
        algorithm(fit="newtn")


@pytest.mark.parametrize(("algorithm", "needed"), [(Fsrs45, 17), (Fsrs6, 21), (Hlr, 3)])
def test_parameters_of_the_wrong_number_are_refused(algorithm, needed):
    with pytest.raises(ConfigError, match=f"there are 2 of them, {needed} are needed"):
        algorithm(parameters=[1.0, 2.0])


def test_parameters_out_of_bounds_are_refused_all_at_once():
    wrong = [1.0] * 21
    wrong[4], wrong[20] = 11.0, 0.0
    with pytest.raises(ConfigError) as caught:
        Fsrs6(parameters=wrong)
    assert "parameter 4 is 11.0, outside 1.0 to 10.0" in str(caught.value)
    assert "parameter 20 is 0.0, outside 0.1 to 0.8" in str(caught.value)


def test_given_parameters_are_the_models_parameters():
    given = list(Fsrs6().parameters)
    given[20] = 0.5
    assert Fsrs6(parameters=given).fit(None, None, None).parameters == tuple(given)


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


@pytest.mark.parametrize("algorithm", [Fsrs6(), Hlr(), MovingAverage(), Constant()])
def test_algorithms_can_be_sent_to_other_processes(algorithm):
    assert pickle.loads(pickle.dumps(algorithm)) == algorithm

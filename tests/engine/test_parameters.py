import math

import pytest

from srs_eval.engine.parameters import ParameterSpace
from srs_eval.errors import ConfigError

SPACE = ParameterSpace(defaults=(1.0, 2.0), lower=(0.0, 1.0), upper=(5.0, 5.0))


def test_every_problem_is_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        SPACE.checked([math.nan, 0.5, 3.0], "example")
    message = str(caught.value)
    assert message.startswith("example: ")
    assert "there are 3 of them, 2 are needed" in message
    assert "parameter 0 is nan" in message
    assert "parameter 1 is 0.5, outside 1.0 to 5.0" in message


@pytest.mark.parametrize("given", ["1 2", 3.0, {"a": 1}])
def test_what_is_no_list_of_numbers_is_refused(given):
    with pytest.raises(ConfigError, match="not a list of 2 numbers"):
        SPACE.checked(given, "example")


def test_an_entry_that_is_no_number_is_refused():
    with pytest.raises(ConfigError, match="parameter 1 is '2', not a number"):
        SPACE.checked([1.0, "2"], "example")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"defaults": (5.0,)}, "parameter 0: 5.0 is outside 0.0 to 2.0"),
        ({"lower": (3.0,)}, "parameter 0: 1.0 is outside 3.0 to 2.0"),
        ({"spread": (0.0,)}, "parameter 0: a spread of 0.0 is not above 0"),
        ({"upper": (1.0, 2.0)}, "give one of each"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(columns, message):
    usual = {"defaults": (1.0,), "lower": (0.0,), "upper": (2.0,), "spread": (1.0,)}
    with pytest.raises(ValueError, match=message):
        ParameterSpace(**(usual | columns))

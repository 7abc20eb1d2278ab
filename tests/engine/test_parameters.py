import math

import pytest

from srs_eval.engine.parameters import ParameterSpace
from srs_eval.errors import ConfigError

SPACE = ParameterSpace((1.0, 2.0), (0.0, 1.0), (5.0, 5.0), ordered=((0, 1),))
GIVEN = ([math.nan, 0.5, 3.0], [5.1, -math.inf], [3, 2], [1.0, "2"], [True, 2], "1 2", 3.0, {1: 1})
USUAL = {"defaults": (1.0,), "lower": (0.0,), "upper": (2.0,), "spread": (1.0,)}
SPACES = (
    *({"defaults": (5.0,)}, {"lower": (3.0,)}, {"spread": (0.0,)}, {"upper": (1.0, 2.0)}),
    {"spread": (math.nan,)},
)


def test_parameters_and_spaces_that_make_no_sense_are_refused_with_all_problems(golden_text):
    said = []
    for given in GIVEN:
        with pytest.raises(ConfigError) as refused:
            SPACE.checked(given, "example")
        said.append(f"{given}: {refused.value}")
    for columns in SPACES:
        with pytest.raises(ValueError, match=r".") as wrong:
            ParameterSpace(**(USUAL | columns))
        said.append(f"{columns}: {wrong.value}")
    golden_text("parameter_refusals", "\n".join(said) + "\n")


def test_bounds_and_equal_ordered_parameters_are_allowed():
    assert SPACE.checked([0, 5], "example") == (0.0, 5.0)
    assert SPACE.checked([2, 2], "example") == (2.0, 2.0)
    assert SPACE.checked(None, "example") == (1.0, 2.0)
    assert ParameterSpace((2.0,), (2.0,), (2.0,)).spread == (math.inf,)

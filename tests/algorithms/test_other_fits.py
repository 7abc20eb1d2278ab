"""Every algorithm keeps its promises in every way it can be fitted."""

import pytest
from contract import NAMES, PROMISES_OF_A_FIT, other_ways_to_fit


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES_OF_A_FIT, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_fitted_otherwise_keeps_its_promises(name, promise):
    for algorithm in other_ways_to_fit(name):
        promise(algorithm)

"""Whether predictions are the very same."""

from dataclasses import fields

import numpy as np

from srs_eval.nouns import Curves


def assert_same(found, expected):
    """Compare predictions or curves column by column: values, and their types."""
    for f in fields(expected):
        here, there = getattr(found, f.name), getattr(expected, f.name)
        if isinstance(there, Curves):
            assert_same(here, there)
        elif isinstance(there, np.ndarray):
            np.testing.assert_array_equal(here, there)
            assert here.dtype == there.dtype
        else:
            assert here == there

"""Whether predictions are the very same."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from srs_eval.nouns import Curves, Predictions


def assert_same(found: Predictions, expected: Predictions) -> None:
    """Compare predictions column by column: values, and their types."""
    for f in fields(Predictions):
        here, there = getattr(found, f.name), getattr(expected, f.name)
        if f.name == "curves" and there is not None:
            for inner in fields(Curves):
                column = getattr(there, inner.name)
                np.testing.assert_array_equal(getattr(here, inner.name), column)
                assert getattr(here, inner.name).dtype == column.dtype
        elif isinstance(there, np.ndarray):
            np.testing.assert_array_equal(here, there)
            assert here.dtype == there.dtype
        else:
            assert here == there

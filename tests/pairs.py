"""Predictions with outcomes for tests of metrics: drawn, counted, and cut at a threshold."""

from dataclasses import replace

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from srs_eval.metrics.predictions import predictions_of
from srs_eval.metrics.tally import tally
from srs_eval.metrics.threshold import threshold_rows

probabilities = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 0.9]), st.integers(0, 20).map(lambda k: k / 20)
)
reviews = st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=40)
quick = settings(max_examples=20, deadline=None)


def columns(pairs):
    """Split pairs of a prediction and an outcome into two arrays."""
    return np.array([p for p, _ in pairs], float), np.array([r for _, r in pairs], bool)


def predicted(p, recalled, **columns):
    """Make predictions of one user, with further columns."""
    bare = predictions_of(p=np.asarray(p), recalled=np.asarray(recalled, np.bool_))
    return replace(bare, **columns)


def confusion(p, recalled, threshold):
    """Compute the confusion matrix, its rates and their intervals at a threshold."""
    return threshold_rows(tally(p, recalled), [threshold])[0]

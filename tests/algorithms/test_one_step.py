"""FSRS-6 learned review by review; `test_josh.py` has it against the published numbers."""

import numpy as np
import pytest

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.one_step import train_one_step
from srs_eval.data.schema import reviews_from_columns
from srs_eval.errors import FitError

SPACE = Fsrs6().widest_space()


def easy(*days):
    return reviews_from_columns(
        user=1, source="one card", card=[1] * len(days), rating=[4] * len(days), day=days
    )


def test_parameters_stay_in_their_bounds():
    start = np.array(SPACE.lower)
    learned = train_one_step(easy(*range(0, 400, 3)), np.arange(1, 134), start, SPACE)
    assert (learned >= SPACE.lower).all()
    assert (learned <= SPACE.upper).all()


def test_what_is_not_finite_is_an_error():
    start = np.array(SPACE.defaults)
    start[8] = np.nan
    with pytest.raises(FitError):
        train_one_step(easy(0, 1, 4), np.array([1, 2]), start, SPACE)

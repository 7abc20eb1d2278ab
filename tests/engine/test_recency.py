import numpy as np
import pytest

from srs_eval.engine.recency import RECENCIES, recency_weights


@pytest.mark.parametrize("recency", RECENCIES)
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_weights_rise_towards_the_present_and_are_at_most_1(recency, count):
    weight = recency_weights(count, recency, 0.5)
    assert weight.shape == (count,)
    assert (np.diff(weight) >= 0).all()
    assert ((weight > 0) & (weight <= 1)).all()


def test_curves_pass_through_their_points():
    assert recency_weights(101, "mild", 0.5)[[0, 50, 100]].tolist() == [0.25, 0.25 + 0.75 / 8, 1.0]
    steep = recency_weights(100, "steep", 0.5)
    assert steep[0] == 0.0667
    assert steep[50] == pytest.approx(0.0667 + 0.9333 / 2**11.25)
    assert steep[-1] < 1  # the newest review is not quite the present
    for half_life in (0.1, 0.5, 2.0):
        weight = recency_weights(1001, "exponential", half_life)
        assert weight[-1] == 1.0
        np.testing.assert_allclose(weight[1:] / weight[:-1], 0.5 ** (-0.001 / half_life))

"""The ROC curve and its operating points."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from srs_eval.plots.roc_plot import plot_roc


def drawn(p, recalled, **options):
    axes = Figure().add_subplot()
    return axes, plot_roc(axes, p, recalled, **options)


def operating_points(axes):
    (line,) = [line for line in axes.lines if line.get_gid() == "operating points"]
    return line.get_xydata()


def labels(axes):
    return [text.get_text() for text in axes.texts]


def test_operating_points_lie_at_the_rates_of_their_thresholds():
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, 3000)
    recalled = rng.uniform(size=3000) < p
    thresholds = (0.7, 0.9)
    axes, _ = drawn(p, recalled, thresholds=thresholds)
    expected = [((p[~recalled] >= t).mean(), (p[recalled] >= t).mean()) for t in thresholds]
    np.testing.assert_allclose(operating_points(axes), expected)
    assert {"0.7", "R* = 0.9"} <= set(labels(axes))


def test_the_number_written_is_the_area_under_the_curve():
    axes, curve = drawn([0.9, 0.8, 0.7, 0.6], [True, False, True, False])
    assert curve.auc == 0.75
    assert "AUC 0.750\nn = 4 reviews" in labels(axes)


@pytest.mark.parametrize(("outcome", "missing"), [(True, "forgotten"), (False, "recalled")])
def test_one_outcome_only_leaves_the_area_undefined_and_says_why(outcome, missing):
    axes, curve = drawn([0.8, 0.9], [outcome, outcome])
    assert np.isnan(curve.auc)
    assert f"no review was {missing}" in labels(axes)[0]

"""The figure of what groups of features save."""

import pytest

from srs_eval.nouns import Contribution

ONE = (Contribution("today", 0.004, 0.001), Contribution("deck", -0.001, 0.002))
TWO = (Contribution("today", 0.002, 0.001), Contribution("deck", 0.0, 0.002))


def drawn(users):
    from srs_eval.plots import contributions_figure

    (axes,) = contributions_figure(users).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    widths = [bar.get_width() for bar in axes.patches]
    lines = [lines.get_segments()[0][:, 0].tolist() for lines in axes.collections]
    return dict(zip(labels, zip(widths, lines, strict=True), strict=True))


def test_bars_are_means_over_users_from_the_largest_down():
    found = drawn([ONE, TWO])
    assert list(found) == ["deck", "today"]
    assert found["today"][0] == pytest.approx(0.003)
    assert found["deck"][0] == pytest.approx(-0.0005)
    low, high = found["today"][1]
    assert low < 0.003 < high


def test_the_interval_of_one_user_is_that_over_days():
    assert drawn([ONE])["today"] == (
        0.004,
        pytest.approx([0.004 - 0.002576, 0.004 + 0.002576], abs=1e-6),
    )

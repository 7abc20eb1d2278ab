"""Forgetting curves, and recall over elapsed days."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from pairs import predicted

from srs_eval.metrics.recall_over_time import ELAPSED, recall_of
from srs_eval.metrics.sums import add_up
from srs_eval.nouns import Curves, Predictions
from srs_eval.plots.curves_plot import (
    draw_recall_over_time,
    forgetting_figure,
    nth_review_of_curves,
    plot_temporal,
    violation_text,
)


def curves_of(halves, times=(1.0, 10.0, 100.0)) -> Curves:
    elapsed = np.tile(np.array(times), (len(halves), 1))
    rows = np.arange(len(halves))
    zeros = np.zeros(len(halves), np.int64)
    p = 0.5 ** (elapsed / np.array(halves)[:, None])
    return Curves(zeros, zeros, rows, elapsed, np.full(elapsed.shape, 1 / len(times)), p)


def predictions_of(days, p, recalled, *, curves=None, nth=None) -> Predictions:
    return predicted(
        p,
        recalled,
        elapsed_days=np.asarray(days, np.float64),
        nth_review=None if nth is None else np.asarray(nth),
        curves=curves,
    )


def three(**facts) -> Predictions:
    return predictions_of([1, 5, 90], [0.9, 0.8, 0.7], [1, 1, 0], **facts)


def totals_of(reviews):
    return add_up([ELAPSED], reviews)[0].values[0]


def figure_of(reviews):
    nth = nth_review_of_curves(reviews)
    return forgetting_figure(totals_of(reviews), reviews.curves, nth_review=nth)


def draw_recall(axes, p, recalled, days):
    draw_recall_over_time(axes, recall_of(totals_of(predictions_of(days, p, recalled))))


def fan_of(figure) -> LineCollection:
    return next(c for c in figure.axes[0].collections if isinstance(c, LineCollection))


def test_a_model_without_curves_has_no_figure():
    assert figure_of(three()) is None
    nothing = curves_of([3.0])
    assert figure_of(three(curves=replace(nothing, p=nothing.p * np.nan))) is None
    assert figure_of(three(curves=curves_of([]))) is None


def test_the_median_curve_is_the_median_at_each_time():
    axes = Figure().add_subplot()
    plot_temporal(axes, curves_of([2.0, 20.0, 200.0]))
    (median,) = [line for line in axes.lines if line.get_label() == "median curve"]
    times, p = median.get_data()
    assert np.interp(10, times, p) == pytest.approx(0.5**0.5, abs=0.01)
    assert p[0] == pytest.approx(0.5 ** (1 / 20))
    assert p[-1] == pytest.approx(0.5**5)


def test_words_say_how_often_recall_does_not_fall():
    falling, flat = curves_of([2.0, 20.0]), curves_of([np.inf, np.inf])
    rising = replace(falling, p=falling.p[:, ::-1])
    assert violation_text(falling) == "recall falls at every later time"
    assert violation_text(flat) == "not falling: 100 % of pairs\n(rising 0 %, flat 100 %)"
    assert violation_text(rising) == "not falling: 100 % of pairs\n(rising 100 %, flat 0 %)"
    assert violation_text(curves_of([2.0], (3.0,))) == "one elapsed time only: no pair to compare"


def test_recall_over_time_shows_frequencies_and_mean_predictions_of_the_same_reviews():
    days = np.repeat([1, 30], 100)
    p = np.repeat([0.9, 0.6], 100)
    recalled = np.concatenate([np.arange(100) < 80, np.arange(100) < 50])
    axes = Figure().add_subplot()
    draw_recall(axes, p, recalled, days)
    mean, observed = axes.lines[:2]
    np.testing.assert_allclose(mean.get_xydata(), [(1, 0.9), (30, 0.6)])
    np.testing.assert_allclose(observed.get_xydata(), [(1, 0.8), (30, 0.5)])


def test_same_day_reviews_are_counted_not_drawn():
    days = np.repeat([0, 4], 50)
    axes = Figure().add_subplot()
    draw_recall(axes, np.full(100, 0.9), np.ones(100), days)
    assert axes.get_xlabel() == "elapsed days (50 same-day reviews not shown)"
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [(4, 0.9)])

"""Predictions to draw, and figures of them."""

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from pairs import predicted

from srs_eval import plots
from srs_eval.algorithms.algorithm import Contribution
from srs_eval.metrics.predictions import Curves
from srs_eval.plots.curves_plot import elapsed_sums


def simulated(n):
    """Calibrated predictions of power-law forgetting, with facts and curves."""
    rng = np.random.default_rng(n)
    stability = np.exp(rng.normal(2.5, 1.5, n))
    elapsed = np.maximum(1, np.round(stability * np.exp(rng.normal(0, 0.5, n))))
    p = (1 + 19 / 81 * elapsed / stability) ** -0.5
    row = np.sort(rng.choice(n, min(40, n), replace=False))
    times = np.tile(np.geomspace(1, 300, 16), (len(row), 1))
    falling = (1 + 19 / 81 * times / stability[row, None]) ** -0.5
    of_one = row * 0, row * 0, row
    return predicted(
        p.astype(np.float32),
        rng.uniform(size=n) < p,
        elapsed_days=elapsed - (rng.uniform(size=n) < 0.02) * elapsed,
        nth_review=rng.integers(1, 20, n),
        lapses=rng.poisson(0.6, n),
        curves=Curves(*of_one, times, np.full(times.shape, 1 / 16), falling),
    )


def ugly():
    rng = np.random.default_rng(7)
    p = rng.beta(9, 1.2, 1000)
    recalled = rng.uniform(size=1000) < p
    return {
        "none": predicted(np.zeros(0), []),
        "one": predicted([0.9], [True]),
        "two": predicted([0.9, 0.2], [True, False]),
        "thirty": predicted(p[:30], recalled[:30]),
        "constant": predicted(np.full(1000, 0.88), recalled),
        "five levels": predicted(rng.choice([0.86, 0.88, 0.885, 0.89, 0.9], 1000), recalled),
        "all recalled": predicted(p, np.ones(1000)),
        "all forgotten": predicted(p, np.zeros(1000)),
        "certain and wrong": predicted(1.0 - recalled, recalled),
        "certain and right": predicted(1.0 * recalled, recalled),
        "some exactly 0 and 1": predicted(np.round(p, 1) * (p > 0.5), recalled),
        "single precision": predicted(p.astype(np.float32), recalled),
        "all low": predicted(rng.beta(1, 20, 1000), recalled),
        "crowded at one": predicted(1 - 1e-9 * p, recalled),
    }


def user_scores(users=12):
    return np.exp(np.random.default_rng(0).normal(-1, 0.3, users))


def users_figure(users=12):
    scores = {"log_loss": user_scores(users), "mbe": np.zeros(users)}
    return plots.users_figure(scores, better={"log_loss": "lower"})


def on_axes(plot, *arguments, **options):
    """Draw on axes of one's own; return them, and what the function returned."""
    axes = Figure().add_subplot()
    return axes, plot(axes, *arguments, **options)


def columns_of(some):
    return some.p, some.recalled, some.elapsed_days, some.nth_review, some.lapses


def forgetting(predictions):
    totals = elapsed_sums(predictions)
    nth = plots.nth_review_of_curves(predictions)
    return plots.forgetting_figure(totals, predictions.curves, nth_review=nth)


FIGURES = {
    "calibration": plots.calibration_figure,
    "bins": plots.bins_figure,
    "roc": plots.roc_figure,
    "forgetting": forgetting,
    "users": lambda _: users_figure(),
}
CONTRIBUTIONS = [[Contribution("today", 0.004, 0.001), Contribution("deck", -0.001, 0.002)]]


def others():
    """Figures of what is rare."""
    some, odd = simulated(300), ugly()
    falling, close = some.curves.p, (0.95, 0.7, 0.701)
    outcomes = some.p, some.recalled
    uneven = {"few": user_scores(3), "many": user_scores(40)}
    changed = {
        "rising curves": falling[:, ::-1],
        "flat curves": 0 * falling + 0.9,
        "one time": np.where(np.arange(16), np.nan, falling),
        "unknown curves": np.nan * falling,
    }
    return {
        "calibration of few": plots.calibration_figure(odd["five levels"]),
        "calibration of many": plots.calibration_figure(simulated(30_000)),
        "calibration of none": plots.calibration_figure(odd["none"]),
        "bins on axes": on_axes(plots.plot_bins, *columns_of(some))[0].figure,
        "bins without facts": plots.bins_figure(odd["thirty"]),
        "roc at thresholds": on_axes(plots.plot_roc, *outcomes, thresholds=close)[0].figure,
        "roc of recalls": plots.roc_figure(odd["all recalled"]),
        "roc of lapses": plots.roc_figure(odd["all forgotten"]),
        "users of many": users_figure(1000),
        "uneven users": plots.users_figure(uneven),
        "users of one": users_figure(1),
        "users of none": users_figure(0),
        "contributions": plots.contributions_figure(CONTRIBUTIONS * 2, title="a_1"),
        **{
            name: forgetting(replace(some, curves=replace(some.curves, p=p)))
            for name, p in changed.items()
        },
        "no curves": forgetting(odd["one"]),
    }

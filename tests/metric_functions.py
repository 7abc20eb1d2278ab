"""Predictions with outcomes, and metrics by name: of predictions, or of the two columns."""

from dataclasses import replace
from functools import partial

import numpy as np

from srs_eval.metrics.panel import Panel, full_panel
from srs_eval.metrics.predictions import Curves, predictions_of
from srs_eval.metrics.tally import tally

METRIC = {metric.name: metric for metric in full_panel()}


def predicted(p, recalled, **columns):
    """Make predictions of one user, with further columns."""
    bare = predictions_of(p=np.asarray(p), recalled=np.asarray(recalled, np.bool_))
    return replace(bare, **columns)


def one_user(n=600, cards=60, curves=20, seed=0):
    """Draw predictions, which are calibrated, with every fact and some falling curves."""
    rng = np.random.default_rng(seed)
    p = rng.beta(9, 1.2, n)
    row = np.sort(rng.choice(n, curves, replace=False))
    times = np.tile([1.0, 3.0, 10.0, 40.0], (curves, 1))
    falling = 0.9 ** (times / rng.exponential(30, curves)[:, None])
    return predicted(
        p,
        rng.random(n) < p,
        card=rng.integers(0, cards, n),
        elapsed_days=rng.integers(1, 300, n).astype(float),
        nth_review=rng.integers(2, 20, n),
        lapses=rng.integers(0, 5, n),
        curves=Curves(row * 0, row * 0, row, times, np.full(times.shape, 0.25), falling),
    )


def of_outcomes(name, p, recalled):
    """Score predictions and outcomes by the metric of a name."""
    return METRIC[name].function(tally(p, recalled))


log_loss, smece_exact = (partial(of_outcomes, name) for name in ("log_loss", "smece_exact"))


def scored(metric, predictions):
    """Score predictions by a metric."""
    return Panel([metric]).score(predictions)[metric.name]

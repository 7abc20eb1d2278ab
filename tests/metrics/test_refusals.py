"""What cannot be scored, and options that make no metric: each is refused, and why is read here."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from metric_functions import log_loss
from pairs import predicted

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.metrics.bins import RmseBins
from srs_eval.metrics.calibration import Ece
from srs_eval.metrics.corp import CorpPart
from srs_eval.metrics.ici import IciQuantile
from srs_eval.metrics.intervals import single_user_intervals
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.pooled import pool
from srs_eval.metrics.proper import Brier
from srs_eval.metrics.score import score
from srs_eval.metrics.summary import summarise
from srs_eval.metrics.temporal import Temporal
from srs_eval.metrics.threshold import Confusion
from srs_eval.stats.paired import user_weights

P = [0.9, 0.8, 0.3, 0.6]
RECALLED = [1, 1, 0, 0]
DAYS = np.array([1, 2, 3, 4], "m8[D]")
FACTS = {"elapsed_days": [1, 2, 3, 9], "nth_review": [2] * 4, "lapses": [0] * 4}


def scoring(p=P, recalled=RECALLED, **options):
    return lambda: score(p, recalled, **options)


def strayed(one_user, rows, stranger):
    """Curves of which one, or all, belong to a review that was not scored."""
    whole = one_user(n=600, curves=20)
    curves = replace(whole.curves, row=np.where(np.arange(20) < rows, stranger, whole.curves.row))
    return single_user_intervals(default_panel(), replace(whole, curves=curves), resamples=2)


SCORES = {
    "empty": scoring([], []),
    "all NaN": scoring([math.nan] * 2, [1, 0], nan_policy="omit"),
    "all nameless": scoring(user=[None] * 4, nan_policy="omit"),
    "one NaN": scoring([math.nan, 0.5], [1, 0]),
    "pandas NA": scoring(pd.Series([0.9, pd.NA, 0.3, 0.6], dtype="Float64")),
    "several": lambda: log_loss([math.nan, 1.5, -0.5], [1, 0, 7]),
    "policy": scoring(nan_policy="ignore"),
    "lengths": scoring(recalled=RECALLED[:2]),
    "lengths, omitted": scoring(recalled=RECALLED[:2], nan_policy="omit"),
    "numbers": scoring(0.5, 1),
    "words": scoring(recalled=["a", "b", "c", "d"]),
    "length of a fact": scoring(lapses=[0, 0, 0]),
    "length of days": scoring(day=[0, 0, 0]),
    "level 0": scoring(level=0),
    "level NaN": scoring(level=math.nan),
    "list for a panel": scoring(panel=[Brier()]),
    "panel and thresholds": scoring(panel=Panel([Brier()]), thresholds=[0.9]),
    "two options": scoring(level=2, resamples=-1),
    "days for p": scoring(DAYS),
    "days as fact": scoring(**FACTS | {"elapsed_days": DAYS}),
    "pandas days": scoring(**FACTS | {"lapses": pd.to_timedelta([1, 2, 3, 4], "D").as_unit("s")}),
    "complex": scoring(**FACTS | {"lapses": np.array(P, complex)}),
    "digits": scoring(**FACTS | {"lapses": np.array(["1", "2", "3", "4"])}),
    # Casting what does not fit in 32 bits warns, and warnings are errors here.
    "infinite days": scoring(**FACTS | {"elapsed_days": [1, math.inf, 1, 1]}),
    "negative days": scoring(**FACTS | {"elapsed_days": [1, -1, 1, 1]}),
    "0th review": scoring(**FACTS | {"nth_review": [1, 0, 1, 1]}),
    "too many lapses": scoring(**FACTS | {"lapses": [1, 10**9, 1, 1]}),
    "pooled": lambda: pool(default_panel(), lambda: [predicted([1.5], [True])]),
    "shape of scores": lambda: summarise(["brier"], np.zeros((3, 1)), np.array([1, 2]), {}),
}
OPTIONS = {
    "no bins": lambda: Ece(0),
    "part": lambda: CorpPart("resolution"),
    "score": lambda: CorpPart("miscalibration", "spherical"),
    "quantile": lambda: IciQuantile(90),
    "statistic": lambda: Confusion("recall", 0.9),
    "threshold": lambda: Confusion("tpr", 90),
    "kind": lambda: Temporal("weak"),
    "names": lambda: Panel([Brier(), Brier(), Named()]),
    "no metric": lambda: Panel([]),
    "weighting": lambda: user_weights([1, 2], "log"),
}


class Named(RmseBins):
    name = "RMSE(bins)"


def told(calls, error):
    """Return the message of each call, which raises an error."""
    lines = []
    for name, call in calls.items():
        with pytest.raises(error) as refused:
            call()
        lines.append(f"{name}: {refused.value}\n")
    return "".join(lines)


def test_what_cannot_be_scored_is_refused(one_user, golden_text):
    strays = {"1 stray": (1, 600), "20 stray": (20, 600), "before the first": (1, -1)}
    curves = {name: partial(strayed, one_user, *stray) for name, stray in strays.items()}
    golden_text("scores_refused", told(SCORES | curves, ScoreError))


def test_options_that_make_no_metric_are_refused(golden_text):
    golden_text("metrics_refused", told(OPTIONS, ConfigError))

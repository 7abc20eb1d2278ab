"""Scores of predictions in any container, by labels of any kind, and the result as a value."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pandas as pd
import polars
import pytest

from srs_eval.errors import ScoreError
from srs_eval.metrics.calibration import MeanBias
from srs_eval.metrics.headline import HEADLINE
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import Brier
from srs_eval.metrics.result import PanelResult
from srs_eval.metrics.score import score
from srs_eval.metrics.threshold import ConfusionCounts

P = [0.9, 0.8, 0.3, 0.6]
RECALLED = [1, 1, 0, 0]
BRIER = Panel([Brier()])


@pytest.fixture(scope="module")
def of_users():
    """Predictions for 400 reviews by 40 users, who differ much among each other."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(40), 10)
    logit = 1.5 + rng.normal(0, 1.5, 40)[user] + rng.normal(0, 0.5, 400)
    p = 1 / (1 + np.exp(-logit))
    return p, rng.random(400) < p, user


CONTAINERS = {
    "tuple": (tuple, list),
    "pandas": (lambda p: pd.Series(p, index=[9, 8, 7, 6]), pd.Series),
    "pandas with NA": (lambda p: pd.Series(p, dtype="Float64"), lambda y: pd.array(y, "Int64")),
    "polars": (polars.Series, lambda y: polars.Series(y, dtype=polars.Boolean, strict=False)),
    "objects": (lambda p: np.array(p, object), lambda y: np.array(y, float)),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_numbers_and_may_miss_some(container):
    of_p, of_recalled = CONTAINERS[container]
    expected = score(np.array(P), np.array(RECALLED, bool))
    got = score(of_p(P), of_recalled(RECALLED))
    assert list(got.values()) == pytest.approx(list(expected.values()), nan_ok=True)
    missed = of_p([0.9, None, 0.3, 0.6]), of_recalled(RECALLED)
    with pytest.raises(ScoreError, match="p is NaN at position 1"):
        score(*missed)
    facts = {"elapsed_days": [1, 2, 3, 4], "nth_review": [2, 2, None, 2], "lapses": [0] * 4}
    omitted = score(*missed, **facts, nan_policy="omit")
    assert (omitted["n"], omitted["n_dropped"]) == (2, 2)
    assert omitted["brier"] == pytest.approx((0.1**2 + 0.6**2) / 2)


def test_tensors_half_precision_and_whole_numbers_are_taken():
    torch = pytest.importorskip("torch")
    assert score(torch.tensor([1, 0]), torch.tensor([1, 0]))["brier"] == 0
    assert score(np.array([0.5, 0.25], np.float16), [1, 0])["brier"] == pytest.approx(0.15625)
    with pytest.raises(ScoreError, match=r"p cannot be read as numbers.*grad"):
        score(torch.tensor(P, requires_grad=True), RECALLED)


LABELS = {
    "other numbers": lambda user: user + 7,
    "masked": np.ma.array,
    "dates": lambda user: user.astype("M8[D]"),
    "names": lambda user: np.array([f"user {code:02d}" for code in user]),
    "objects": lambda user: user.astype(str).astype(object),
    "numbers and names": lambda user: [code // 2 if code % 2 else str(code // 2) for code in user],
    "strings": lambda user: pd.Series(user.astype(str), dtype="string"),
    "categories": lambda user: pd.Series(user.astype(str)).astype("category"),
    "polars": lambda user: polars.Series(user.astype(str)),
}


def test_users_may_be_called_anything(of_users):
    p, recalled, user = of_users
    options = {"panel": BRIER, "resamples": 20}
    expected = score(p, recalled, user=user, **options)
    for called, names in LABELS.items():
        got = score(p, recalled, user=names(user), card=np.arange(400) // 2, **options)
        interval = pytest.approx(expected.intervals["brier"])
        assert (got.intervals["brier"], got.interval_over) == (interval, "users"), called


def masked(values):
    return np.ma.array(values, mask=[False, True, False, False])


NAMELESS = {
    "None": ["a", None, "b", "b"],
    "NaN among numbers": [1.0, math.nan, 2.0, 2.0],
    "categories": pd.Series(["a", None, "b", "b"], dtype="category"),
    "masked numbers": masked([1, 2, 3, 3]),
    "no date": pd.to_datetime(["2020-01-01", None, "2020-01-02", "2020-01-02"]),
    "no day": np.array(["2020-01-01", "NaT", "2020-01-02", "2020-01-02"], "M8[D]"),
}


@pytest.mark.parametrize("labels", NAMELESS)
def test_nameless_users_cards_and_days_are_refused_or_left_out(labels):
    for column in ("user", "card", "day"):
        given = {column: NAMELESS[labels], "panel": BRIER}
        with pytest.raises(ScoreError, match=f"{column} has missing values; see nan_policy"):
            score(P, RECALLED, **given)
        scores = score(P, RECALLED, **given, nan_policy="omit")
        assert (scores["n"], scores["n_dropped"]) == (3, 1)
    for column, values in (("p", P), ("recalled", RECALLED), ("lapses", [0] * 4)):
        given = {"p": P, "recalled": RECALLED, column: masked(values), "panel": BRIER}
        assert score(**given, nan_policy="omit")["n_dropped"] == 1


def test_cards_and_days_are_resampled_where_there_is_one_user(of_users):
    p, recalled, _ = of_users
    given = {"card": np.arange(400) // 2, "day": np.arange(400) // 20}
    by_both = score(p, recalled, **given, panel=BRIER)
    assert by_both.interval_over == "cards and days"
    alone = score(p, recalled, user=["someone"] * 400, **given, panel=BRIER)
    assert (alone.interval_over, alone.intervals) == ("cards and days", by_both.intervals)
    widths = [
        np.ptp(score(p, recalled, **{name: of}, panel=BRIER).intervals["brier"])
        for name, of in given.items()
    ]
    assert np.ptp(by_both.intervals["brier"]) == pytest.approx(np.hypot(*widths))
    two = score(p, recalled, user=np.arange(400) % 2, **given, panel=BRIER)
    assert two.interval_over == "users"
    nothing = score(p, recalled, user=[1] * 400, panel=BRIER)
    assert (nothing.intervals, nothing.interval_over) == ({}, "")


def test_thresholds_are_told_with_intervals_of_the_level_asked_for(of_users):
    p, recalled, _ = of_users
    wide, narrow = (
        score(p, recalled, thresholds=np.array([0.8]), level=level).thresholds[0]
        for level in (0.99, 0.9)
    )
    counts = ConfusionCounts(*(narrow[name] for name in ("tp", "fp", "fn", "tn")))
    assert (narrow["ppv_low"], narrow["ppv_high"]) == counts.interval("ppv", level=0.9)
    assert wide["ppv_low"] < narrow["ppv_low"] < narrow["ppv_high"] < wide["ppv_high"]
    without = score(P, RECALLED, thresholds=())
    assert without.thresholds == ()
    assert not any("confusion" in name for name in without)


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, 400)
    return score(p, rng.random(400) < p, user=np.arange(400) % 8, resamples=20)


def test_it_prints_the_metrics_of_a_run_and_names_the_undefined(result, golden_text):
    few = score([0.9, math.nan, 0.8], [1, 1, 0], nan_policy="omit")
    other = score([0.9, 0.8], [1, 0], panel=Panel([Brier(), MeanBias()]))
    golden_text("scores_printed", "\n\n".join(map(str, (result, few, other))))
    assert repr(result) == str(result)
    assert set(result.shown) == {*HEADLINE, "threshold_bias_at_0_9"}
    assert PanelResult({"n": 2, "log_loss": 0.3}).shown == ("log_loss",)


def test_it_is_a_dictionary_of_numbers_and_a_frame_with_a_row_for_each(result):
    assert tuple(result) == ("n", "n_dropped", *default_panel().names)
    assert type(result.to_dict()) is dict
    np.testing.assert_equal(json.loads(json.dumps(result.to_dict())), dict(result))
    assert json.loads(json.dumps(result.thresholds))[0]["threshold"] == 0.7
    assert set(json.loads(json.dumps(result.intervals))) == set(default_panel().names)
    for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert type(again) is PanelResult
        for name in ("better", "thresholds", "intervals", "interval_over", "level", "shown"):
            np.testing.assert_equal(getattr(again, name), getattr(result, name))
        assert str(again) == str(result)
    frame = result.to_frame()
    assert list(frame.columns) == ["score", "lo", "hi", "better"]
    assert (list(frame.index), frame.index.name) == (list(result), "metric")
    assert tuple(frame.loc["auc"]) == (result["auc"], *result.intervals["auc"], "higher")
    assert frame.loc["n", "better"] == ""
    assert math.isnan(frame.loc["n", "lo"])

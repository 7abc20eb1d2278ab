from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars
import pytest

from srs_eval.errors import ScoreError
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.proper import Brier
from srs_eval.metrics.score import score
from srs_eval.metrics.threshold import ConfusionCounts

P = [0.9, 0.8, 0.3, 0.6]
RECALLED = [1, 1, 0, 0]


@pytest.fixture(scope="module")
def of_users():
    """Predictions of two models of 400 reviews by 40 users, who differ much among each other."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(40), 10)
    logit = 1.5 + rng.normal(0, 1.5, 40)[user] + rng.normal(0, 0.5, 400)
    p, other = (1 / (1 + np.exp(-logit - shift)) for shift in (0, 0.3))
    return p, other, rng.random(400) < p, user


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
    assert set(expected) == {"n", "n_dropped", *default_panel().names}
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


LABELS = {
    "other numbers": lambda user: user + 7,
    "floats": lambda user: user.astype(float),
    "masked": np.ma.array,
    "dates": lambda user: user.astype("M8[D]"),
    "names": lambda user: np.array([f"user {code:02d}" for code in user]),
    "list": lambda user: [f"user {code:02d}" for code in user],
    "objects": lambda user: user.astype(str).astype(object),
    "strings": lambda user: pd.Series(user.astype(str), dtype="string"),
    "categories": lambda user: pd.Series(user.astype(str)).astype("category"),
    "categorical": lambda user: pd.Categorical(user.astype(str)),
    "polars": lambda user: polars.Series(user.astype(str)),
}


@pytest.mark.parametrize("called", LABELS)
def test_users_may_be_called_anything(of_users, called):
    p, _, recalled, user = of_users
    options = {"panel": Panel([Brier()]), "resamples": 20}
    expected = score(p, recalled, user=user, **options)
    got = score(p, recalled, user=LABELS[called](user), card=np.arange(400) // 2, **options)
    assert got.intervals["brier"] == pytest.approx(expected.intervals["brier"])
    assert got.interval_over == "users"


NAMELESS = {
    "None": ["a", None, "b", "b"],
    "NaN among names": ["a", math.nan, "b", "b"],
    "NaN among numbers": [1.0, math.nan, 2.0, 2.0],
    "categories": pd.Series(["a", None, "b", "b"], dtype="category"),
    "masked numbers": np.ma.array([1, 2, 3, 3], mask=[False, True, False, False]),
    "masked names": np.ma.array(["a", "b", "c", "c"], mask=[False, True, False, False]),
    "no date": pd.to_datetime(["2020-01-01", None, "2020-01-02", "2020-01-02"]),
    "no day": np.array(["2020-01-01", "NaT", "2020-01-02", "2020-01-02"], "M8[D]"),
}


@pytest.mark.parametrize("labels", NAMELESS)
@pytest.mark.parametrize("column", ["user", "card", "day"])
def test_nameless_users_cards_and_days_are_refused_or_left_out(column, labels):
    given = {column: NAMELESS[labels], "panel": Panel([Brier()])}
    with pytest.raises(ScoreError, match=f"{column} has missing values; see nan_policy"):
        score(P, RECALLED, **given)
    scores = score(P, RECALLED, **given, nan_policy="omit")
    assert (scores["n"], scores["n_dropped"]) == (3, 1)


@pytest.mark.parametrize("column", ["p", "recalled", "lapses"])
def test_what_is_masked_is_missing(column):
    values = {"p": P, "recalled": RECALLED, "lapses": [0] * 4}
    values[column] = np.ma.array(values[column], mask=[False, True, False, False])
    assert score(**values, nan_policy="omit")["n_dropped"] == 1


def test_cards_and_days_are_resampled_where_there_is_one_user(of_users):
    p, _, recalled, _ = of_users
    given = {"card": np.arange(400) // 2, "day": np.arange(400) // 20}
    panel = Panel([Brier()])
    by_both = score(p, recalled, **given, panel=panel)
    assert by_both.interval_over == "cards and days"
    alone = score(p, recalled, user=["someone"] * 400, **given, panel=panel)
    assert (alone.interval_over, alone.intervals) == ("cards and days", by_both.intervals)
    widths = [
        np.ptp(score(p, recalled, **{name: of}, panel=panel).intervals["brier"])
        for name, of in given.items()
    ]
    assert np.ptp(by_both.intervals["brier"]) == pytest.approx(np.hypot(*widths))
    nothing = score(p, recalled, user=[1] * 400, panel=panel)
    assert (nothing.intervals, nothing.interval_over) == ({}, "")


def test_numbers_and_their_names_are_different_users():
    """A user called "1" is not the user 1."""
    called = [1, "1", 2, "2", (3, 4)[0]] * 2
    panel = Panel([Brier()])
    result = score([0.9] * 10, [1, 0] * 5, user=called, panel=panel)
    coded = score([0.9] * 10, [1, 0] * 5, user=[0, 1, 2, 3, 4] * 2, panel=panel)
    assert result.intervals == coded.intervals


def test_thresholds_may_be_any_sequence_and_none_at_all():
    assert "confusion_ppv_at_0_5" in score(P, RECALLED, thresholds=np.array([0.5, 0.6]))
    without = score(P, RECALLED, thresholds=())
    assert without.thresholds == ()
    assert not any("confusion" in name for name in without)


def test_thresholds_are_told_with_intervals_of_the_level_asked_for(of_users):
    p, _, recalled, _ = of_users
    wide, narrow = (
        score(p, recalled, thresholds=[0.8], level=level).thresholds[0] for level in (0.99, 0.9)
    )
    counts = ConfusionCounts(*(narrow[name] for name in ("tp", "fp", "fn", "tn")))
    interval = counts.interval("ppv", level=0.9)
    assert (narrow["ppv_low"], narrow["ppv_high"]) == interval
    assert wide["ppv_low"] < narrow["ppv_low"] < narrow["ppv_high"] < wide["ppv_high"]

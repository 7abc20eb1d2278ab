"""Scores of predictions in any container, what cannot be scored, and panels of metrics."""

import json
import math
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest
from cases import making, refusals
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from pairs import predicted

from srs_eval.errors import ScoreError
from srs_eval.metrics.bootstrap import single_user_intervals
from srs_eval.metrics.means import mean_of_users, user_weights
from srs_eval.metrics.metric import metric
from srs_eval.metrics.panel import Panel, default_panel, full_panel
from srs_eval.metrics.pooled import PooledSums
from srs_eval.metrics.predictions import select
from srs_eval.metrics.score import PanelResult, score
from srs_eval.metrics.scores import brier, mbe
from srs_eval.metrics.summary import summarise
from srs_eval.metrics.tally import Tally, tally

P = [0.9, 0.8, 0.3, 0.6]
RECALLED = [1, 1, 0, 0]
BRIER = Panel([brier])


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
    torch = pytest.importorskip("torch")
    assert score(torch.tensor([1, 0]), torch.tensor([1, 0]))["brier"] == 0
    with pytest.raises(ScoreError, match=r"p cannot be read as numbers.*grad"):
        score(torch.tensor(P, requires_grad=True), RECALLED)


def masked(values):
    return np.ma.array(values, mask=[False, True, False, False])


NAMELESS = (
    *(["a", None, "b", "b"], [1.0, math.nan, 2.0, 2.0], masked([1, 2, 3, 3])),
    pd.Series(["a", None, "b", "b"], dtype="category"),
    pd.to_datetime(["2020-01-01", None, "2020-01-02", "2020-01-02"]),
)


@pytest.mark.parametrize("labels", NAMELESS)
def test_nameless_users_cards_and_days_are_refused_or_left_out(labels):
    for column in ("user", "card", "day"):
        given = {column: labels, "panel": BRIER}
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
    alone = score(p, recalled, user=["someone"] * 400, **given, panel=BRIER)
    assert (alone.interval_over, alone.intervals) == ("cards and days", by_both.intervals)
    widths = [
        np.ptp(score(p, recalled, **{name: of}, panel=BRIER).intervals["brier"])
        for name, of in given.items()
    ]
    assert np.ptp(by_both.intervals["brier"]) == pytest.approx(np.hypot(*widths))
    nothing = score(p, recalled, user=[1] * 400, panel=BRIER)
    assert (nothing.intervals, nothing.interval_over) == ({}, "")


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, 400)
    return score(p, rng.random(400) < p, user=np.arange(400) % 8, resamples=20)


def test_it_prints_the_metrics_of_a_run_and_names_the_undefined(result, golden_text):
    few = score([0.9, math.nan, 0.8], [1, 1, 0], nan_policy="omit")
    other = score([0.9, 0.8], [1, 0], panel=Panel([brier, mbe]))
    golden_text("scores_printed", "\n\n".join(map(str, (result, few, other))))
    assert repr(result) == str(result)


def test_it_is_a_dictionary_of_numbers_and_a_frame_with_a_row_for_each(result):
    assert tuple(result) == ("n", "n_dropped", *default_panel().names)
    np.testing.assert_equal(json.loads(json.dumps(result)), dict(result))
    again = pickle.loads(pickle.dumps(result))
    assert (type(again), str(again)) == (PanelResult, str(result))
    assert again.intervals.keys() == result.intervals.keys()
    frame = result.to_frame()
    assert list(frame.columns) == ["score", "lo", "hi", "better"]
    assert (list(frame.index), frame.index.name) == (list(result), "metric")
    assert tuple(frame.loc["auc"]) == (result["auc"], *result.intervals["auc"], "higher")


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
    "pandas NA": scoring(pd.Series([0.9, pd.NA, 0.3, 0.6], dtype="Float64")),
    "several": lambda: tally([math.nan, 1.5, -0.5], [1, 0, 7]),
    "list for a panel": scoring(panel=[brier]),
    "panel and thresholds": scoring(panel=Panel([brier]), thresholds=[0.9]),
    "days for p": scoring(DAYS),
    "days as fact": scoring(**FACTS | {"elapsed_days": DAYS}),
    "pandas days": scoring(**FACTS | {"lapses": pd.to_timedelta([1, 2, 3, 4], "D").as_unit("s")}),
    "complex": scoring(**FACTS | {"lapses": np.array(P, complex)}),
    "pooled": lambda: PooledSums(default_panel(), [outside()]),
}
KINDS = {
    "score": lambda p=P, recalled=RECALLED, **options: score(p, recalled, **options),
    "facts": lambda **facts: score(P, RECALLED, **FACTS | facts),
    "panel": lambda **options: Panel([brier], **options),
    "no_metrics": lambda: Panel([]),
    "twice": lambda: Panel([brier, brier]),
    "names": lambda: Panel({"RMSE(bins)": brier}),
    "number": lambda: Panel({"brier": 0.1}),
    "options": lambda: Panel({"brier": partial(brier, bins=3)}),
    "direction": lambda: metric("up"),
    "weights": partial(user_weights, [1, 2]),
}


def outside():
    return replace(predicted([0.5], [True]), p=np.array([1.5]))


def test_what_cannot_be_scored_is_refused(one_user, golden_text):
    strays = {"1 stray": (1, 600), "20 stray": (20, 600), "before the first": (1, -1)}
    curves = {name: partial(strayed, one_user, *stray) for name, stray in strays.items()}
    golden_text("scores_refused", refusals(SCORES | curves, ScoreError))


def test_options_that_make_no_metric_and_values_that_are_no_scores_are_refused(transcript):
    transcript("metrics_refused", making(KINDS))


CONF = Path(__file__).parents[2] / "conf"


def build(option, *overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose(overrides=[f"+panel={option}", *overrides])
    return instantiate(config.panel, _convert_="all")


def infinite(predictions):
    """A metric as a plug-in would write it, without any of ours."""
    return math.inf


@metric("higher", bounds=(0, 0.5))
def sharpness(tally: Tally) -> float:
    """A metric of a tally, which is declared."""
    mean = tally.p @ tally.count / tally.n
    return math.sqrt((tally.p - mean) ** 2 @ tally.count / tally.n)


def test_options_are_the_panels_of_the_library_and_can_be_changed(one_user):
    predictions = one_user()
    for option, panel in (("default", default_panel()), ("full", full_panel())):
        assert build(option).names == panel.names
        assert build(option).score(predictions) == panel.score(predictions)
        assert set(default_panel().names) <= set(panel.names)
    names = build("default", "panel.thresholds=[0.85]", "~panel.metrics.ece").names
    assert "confusion_tpr_at_0_85" in names
    assert not {"confusion_tpr_at_0_9", "ece"} & set(names)
    ece = "+panel.metrics.ece_5={_target_:srs_eval.metrics.scores.ece,_partial_:true,bins:5}"
    scores = build("default", ece).score(predictions)
    assert scores["ece_5"] != scores["ece"]
    for panel in (build("quick"), full_panel()):
        scores = panel.score(predictions)
        assert tuple(scores) == panel.names
        assert all(math.isfinite(value) for value in scores.values())


def test_metrics_are_functions_of_a_tally_or_of_predictions_with_what_is_declared(one_user):
    predictions = one_user()
    panel = Panel({"width": sharpness, "infinite": infinite}, [0.9])
    assert len(panel.names) == 11
    assert panel.score(predictions)["width"] == pytest.approx(predictions.p.std())
    assert [(m.better, m.bounds, m.of_tally) for m in panel][:2] == [
        ("higher", (0, 0.5), True),
        ("neither", (-math.inf, math.inf), False),
    ]
    assert np.isfinite(single_user_intervals(panel, predictions)["width"]).all()
    assert math.isnan(panel.score(predictions)["infinite"])
    empty = select(replace(predictions, curves=None), slice(0, 0))
    assert all(math.isnan(value) for value in default_panel().score(empty).values())


def test_users_reviews_and_all_together_are_told_apart():
    scores = np.array([[0.3, 0.7], [0.5, np.nan], [0.4, 0.6], [0.1, 0.9]])
    names, sizes = ["log_loss", "auc"], np.array([300, 100, 50, 0])
    found = summarise(names, scores, sizes, {"log_loss": 0.36}, bounds={"log_loss": (0.0, 0.4)})
    row = found["log_loss"]
    assert (row.mean_users, row.pooled, row.n_users) == (pytest.approx(0.325), 0.36, 4)
    assert row.mean_reviews == pytest.approx((0.3 * 300 + 0.5 * 100 + 0.4 * 50) / 450)
    assert row.n_effective == pytest.approx(450**2 / (300**2 + 100**2 + 50**2))
    lo, hi = mean_of_users(scores[:, 0]).interval()
    assert lo < 0 < 0.4 < hi
    assert (row.lo, row.hi) == (0, 0.4)  # cut off at the bounds
    row = found["auc"]
    assert (row.mean_users, row.n_users) == (pytest.approx(2.2 / 3), 3)
    assert row.mean_reviews == pytest.approx((0.7 * 300 + 0.6 * 50) / 350)
    assert math.isnan(row.pooled)
    one = (names, scores[:1], sizes[:1], {"log_loss": 0.3})  # takes the interval of the cards
    row = summarise(*one, single_user={"log_loss": (0.05, 0.15)})["log_loss"]
    assert (row.mean_users, row.mean_reviews, row.lo, row.hi) == (0.3, 0.3, 0.05, 0.15)
    assert math.isnan(summarise(*one)["log_loss"].lo)

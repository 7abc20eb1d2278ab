from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from srs_eval.errors import ScoreError
from srs_eval.metrics.cluster_sums import ClusterSums
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.prediction_cells import PredictionCells
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.score import score
from srs_eval.metrics.sketch import bare_predictions
from srs_eval.metrics.tally import tally
from srs_eval.metrics.threshold import ConfusionCounts
from srs_eval.stats.resample import cluster_counts

P = [0.9, 0.8, 0.3, 0.6]
RECALLED = [1, 1, 0, 0]


def test_it_is_the_whole_default_panel():
    assert set(score(P, RECALLED)) == {"n", "n_dropped", *default_panel().names}


def test_facts_bring_rmse_bins():
    scores = score(P, RECALLED, elapsed_days=[1, 2, 3, 9], nth_review=[2, 3, 2, 2], lapses=[0] * 4)
    assert 0 < scores["rmse_bins"] < 1
    assert 0 < scores["rmse_bins_wiki"] < 1


def test_every_container_gives_the_same_numbers():
    torch = pytest.importorskip("torch")
    expected = score(np.array(P), np.array(RECALLED, bool))
    containers = [
        (tuple(P), RECALLED),
        (pd.Series(P, index=[9, 8, 7, 6]), pd.Series(RECALLED)),
        (torch.tensor(P, dtype=torch.float64), torch.tensor(RECALLED)),
        (np.array(P, object), np.array(RECALLED, float)),
    ]
    for p, recalled in containers:
        got = score(p, recalled)
        assert list(got.values()) == pytest.approx(list(expected.values()), nan_ok=True)


def test_thresholds_can_be_chosen():
    scores = score(P, RECALLED, thresholds=[0.5])
    assert scores["confusion_ppv_at_0_5"] == pytest.approx(2 / 3)
    assert "confusion_ppv_at_0_9" not in scores


def test_missing_values_in_any_column_can_be_left_out():
    days = [1.0, math.nan, 3.0, 4.0]
    facts = {"elapsed_days": days, "nth_review": [2, 2, None, 2], "lapses": [0, 0, 0, 0]}
    scores = score(P, RECALLED, **facts, nan_policy="omit")
    assert (scores["n"], scores["n_dropped"]) == (2, 2)
    assert scores["brier"] == pytest.approx((0.1**2 + 0.6**2) / 2)


def test_one_review_is_scored_as_far_as_it_can_be():
    scores = score([0.5], [1], user=["ann"], card=[1], day=[2])
    assert (scores["n"], scores["log_loss"]) == (1, pytest.approx(math.log(2)))
    assert math.isnan(scores["auc"])
    assert math.isnan(scores["normalized_entropy"])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([], []), {}, "there are no reviews to score$"),
        (([], []), {"user": [], "nan_policy": "omit"}, "there are no reviews to score$"),
        (([math.nan] * 2, [1, 0]), {"nan_policy": "omit"}, "all 2 have a missing value"),
        ((P, RECALLED), {"user": [None] * 4, "nan_policy": "omit"}, "all 4 have a missing"),
        (([math.nan, 0.5], [1, 0]), {}, "p is NaN at position 0"),
        ((P, RECALLED), {"nan_policy": "ignore"}, "expected 'raise' or 'omit'"),
        ((P, RECALLED[:2]), {}, "recalled has shape \\(2,\\), but p has \\(4,\\)"),
        ((P, RECALLED[:2]), {"nan_policy": "omit"}, "equal lengths"),
        ((0.5, 1), {}, "expected one dimension"),
        ((P, ["a", "b", "c", "d"]), {}, "recalled cannot be read as numbers"),
        ((P, RECALLED), {"lapses": [0, 0, 0]}, "lapses has shape"),
        ((P, RECALLED), {"day": [0, 0, 0]}, "day has shape"),
        ((P, RECALLED), {"level": 99}, "level is 99, expected a share between 0 and 1"),
        ((P, RECALLED), {"level": 0}, "level is 0"),
        ((P, RECALLED), {"level": 1}, "level is 1"),
        ((P, RECALLED), {"level": math.nan}, "level is nan"),
        ((P, RECALLED), {"resamples": -1}, "resamples is -1, expected 0 or more"),
        ((P, RECALLED), {"panel": [Brier()]}, "expected a Panel such as full_panel"),
        ((P, RECALLED), {"panel": Panel([Brier()]), "thresholds": [0.9]}, "has its own"),
        ((P, RECALLED), {"level": 2, "resamples": -1}, "resamples is -1.*; level is 2"),
        (([2.0, 0.5], [1, 0]), {"nan_policy": "omit"}, "outside \\[0, 1\\]"),
    ],
)
def test_what_cannot_be_scored_is_refused(arguments, options, message):
    with pytest.raises(ScoreError, match=message):
        score(*arguments, **options)


def test_tensors_that_carry_gradients_are_refused_with_the_reason():
    torch = pytest.importorskip("torch")
    with pytest.raises(ScoreError, match=r"p cannot be read as numbers.*grad"):
        score(torch.tensor(P, requires_grad=True), RECALLED)


@pytest.fixture(scope="module")
def of_users():
    """Predictions of two models of 400 reviews by 40 users, who differ much among each other."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(40), 10)
    logit = 1.5 + rng.normal(0, 1.5, 40)[user] + rng.normal(0, 0.5, 400)
    p, other = (1 / (1 + np.exp(-logit - shift)) for shift in (0, 0.3))
    return p, other, rng.random(400) < p, user


def test_users_may_be_called_anything(of_users):
    p, _, recalled, user = of_users
    panel = Panel([LogLoss()])
    expected = score(p, recalled, user=user, panel=panel, resamples=20)
    names = np.array([f"user {code:02d}" for code in user])
    calls = [
        user + 7,
        user.astype(float),
        names,
        names.tolist(),
        names.astype(object),
        pd.Series(names),
        pd.Series(names, dtype="string"),
        pd.Categorical(names),
        pd.Series(names).astype("category"),
    ]
    for given in calls:
        got = score(p, recalled, user=given, panel=panel, resamples=20)
        assert got.intervals["log_loss"] == pytest.approx(expected.intervals["log_loss"])
        assert got.interval_over == "users"


def test_columns_of_polars_are_taken(of_users):
    polars = pytest.importorskip("polars")
    p, _, recalled, user = of_users
    frame = polars.DataFrame({"p": p, "recalled": recalled, "user": [f"{u:02d}" for u in user]})
    expected = score(p, recalled, user=user, resamples=20)
    got = score(frame["p"], frame["recalled"], user=frame["user"], resamples=20)
    np.testing.assert_equal(dict(got), dict(expected))
    assert got.intervals["auc"] == pytest.approx(expected.intervals["auc"])
    omitted = score(
        polars.Series([0.9, None, 0.5]), polars.Series([True, False, True]), nan_policy="omit"
    )
    assert (omitted["n"], omitted["n_dropped"]) == (2, 1)


@pytest.mark.parametrize(
    "user",
    [
        ["a", None, "b", "b"],
        ["a", math.nan, "b", "b"],
        np.array(["a", math.nan, "b", "b"], object),
        [1.0, math.nan, 2.0, 2.0],
        pd.Series(["a", None, "b", "b"]),
        pd.Series(["a", None, "b", "b"], dtype="category"),
    ],
)
def test_nameless_users_are_refused_or_left_out(user):
    with pytest.raises(ScoreError, match="user has missing values; see nan_policy"):
        score(P, RECALLED, user=user)
    scores = score(P, RECALLED, user=user, nan_policy="omit")
    assert (scores["n"], scores["n_dropped"]) == (3, 1)
    with pytest.raises(ScoreError, match="card has missing values"):
        score(P, RECALLED, card=user)


def test_without_resamples_users_or_cards_there_are_no_intervals(of_users):
    p, _, recalled, user = of_users
    for result in (score(p, recalled, user=user, resamples=0), score(p, recalled)):
        assert result.intervals == {}
        assert result.interval_over == ""
        assert "intervals" not in str(result)


def test_users_count_before_cards(of_users):
    p, _, recalled, user = of_users
    card = np.arange(400) // 2
    assert score(p, recalled, card=card, resamples=5).interval_over == "cards"
    assert score(p, recalled, card=card, user=user, resamples=5).interval_over == "users"


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


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, "U1", "M8[D]", "M8[ns]"])
def test_users_and_days_may_be_of_any_type(dtype):
    label = np.array([0, 1, 0, 1]).astype(np.int64).astype(dtype)
    assert score(P, RECALLED, user=label, resamples=2).interval_over == "users"
    assert score(P, RECALLED, day=label, resamples=2).interval_over == "days"


@pytest.mark.parametrize("nan", [None, "NaT"])
def test_reviews_without_a_day_are_left_out(nan):
    day = pd.Series(pd.to_datetime(["2020-01-01", nan, "2020-01-02", "2020-01-02"]))
    for given in (day, day.to_numpy(), day.to_numpy().astype("M8[D]")):
        with pytest.raises(ScoreError, match="day has missing values"):
            score(P, RECALLED, day=given)
        assert score(P, RECALLED, day=given, nan_policy="omit")["n_dropped"] == 1


@pytest.mark.parametrize("column", ["p", "recalled", "user", "names", "card", "lapses"])
def test_what_is_masked_is_missing(column):
    mask = [False, True, False, False]
    facts = {"elapsed_days": [1, 2, 3, 9], "nth_review": [2] * 4, "lapses": [0] * 4}
    values = {"p": P, "recalled": RECALLED, "user": [1, 2, 3, 3], "card": [1, 1, 2, 2]}
    values["names"] = ["a", "b", "c", "c"]
    given = {"p": P, "recalled": RECALLED, **facts}
    values |= facts
    given[{"names": "user"}.get(column, column)] = np.ma.array(values[column], mask=mask)
    options = {"panel": Panel([Brier()]), "nan_policy": "omit"}
    scores = score(**given, **options)
    assert (scores["n"], scores["n_dropped"]) == (3, 1)
    with pytest.raises(ScoreError):
        score(**given, panel=Panel([Brier()]))


@pytest.mark.parametrize("dtype", ["Float64", "Float32", object])
def test_what_pandas_calls_not_available_is_missing(dtype):
    p = pd.Series([0.9, pd.NA, 0.3, 0.6], dtype=dtype)
    scores = score(p, pd.array([1, 1, pd.NA, 0], "Int64"), nan_policy="omit")
    assert (scores["n"], scores["n_dropped"]) == (2, 2)
    with pytest.raises(ScoreError, match="p is NaN at position 1"):
        score(p, RECALLED)


@pytest.mark.parametrize("name", ["elapsed_days", "nth_review", "lapses"])
@pytest.mark.parametrize("value", [math.inf, 1e10, 10**10, -1])
def test_facts_that_cannot_be_are_refused_without_a_warning(name, value):
    """Casting what does not fit in 32 bits warns, and warnings are errors here."""
    facts = {"elapsed_days": [1, 2, 3, 9], "nth_review": [2, 3, 2, 2], "lapses": [0] * 4}
    facts[name] = [1, value, 1, 1]
    with pytest.raises(ScoreError, match=f"{name} must be"):
        score(P, RECALLED, **facts)


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.float32, np.float64])
def test_facts_just_below_what_is_refused_are_binned(dtype):
    facts = dict.fromkeys(("elapsed_days", "nth_review", "lapses"), np.full(4, 999_999_000, dtype))
    assert score(P, RECALLED, **facts)["rmse_bins"] == pytest.approx(np.mean(P) - 0.5)


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 2, 3, 4], "m8[D]"),
        pd.Series(pd.to_timedelta([1, 2, 3, 4], "D")),
        np.array([1, 2, 3, 4], "M8[D]"),
        np.array([1, 2, 3, 4], complex),
        np.array(["1", "2", "3", "4"]),
    ],
    ids=["timedelta", "pandas", "date", "complex", "text"],
)
def test_what_is_no_number_is_refused_rather_than_converted(column):
    """A timedelta would become a number of days, or of nanoseconds."""
    with pytest.raises(ScoreError, match="elapsed_days cannot be read as numbers"):
        score(P, RECALLED, elapsed_days=column, nth_review=[2] * 4, lapses=[0] * 4)
    with pytest.raises(ScoreError, match="p cannot be read as numbers"):
        score(column, RECALLED)


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


def test_four_users_have_no_interval():
    result = score([0.9] * 8, [1, 0] * 4, user=[1, 1, 2, 2, 3, 3, 4, 4])
    assert np.isnan(list(result.intervals.values())).all()


def test_scores_do_not_depend_on_users_seeds_or_levels(of_users):
    p, _, recalled, user = of_users
    expected = dict(score(p, recalled))
    for options in ({"user": user}, {"user": user, "seed": 3}, {"user": user, "level": 0.5}):
        np.testing.assert_equal(dict(score(p, recalled, resamples=5, **options)), expected)


def test_the_seed_decides_the_draws(of_users):
    p, _, recalled, user = of_users
    panel = Panel([Brier()])
    one, again, other = (
        score(p, recalled, user=user, seed=seed, panel=panel).intervals for seed in (1, 1, 2)
    )
    assert one == again != other


def test_a_lower_level_is_narrower_by_students_factor(of_users):
    p, _, recalled, user = of_users
    panel = Panel([Brier()])
    widths = [
        np.ptp(score(p, recalled, user=user, level=level, panel=panel).intervals["brier"])
        for level in (0.9, 0.5)
    ]
    factor = stats.t.ppf(0.95, 39) / stats.t.ppf(0.75, 39)
    assert widths[0] / widths[1] == pytest.approx(factor)


def test_models_are_resampled_alike_so_that_their_difference_is_known_better(of_users):
    """With the same users and seed, resampled scores of two models go up and down together."""
    p, other, recalled, user = of_users
    panel = Panel([Brier()])
    drawn = []
    for model in (p, other):
        predictions = bare_predictions(model, recalled)
        cells = PredictionCells.for_predictions(tally(model, recalled))
        sums = ClusterSums.of(panel, predictions, user, 40, cells)
        draws = cluster_counts(40, 200, 0)
        drawn.append(np.array([scores["brier"] for scores in sums.resampled(draws)]))
    spread = drawn[0].std(ddof=1)
    assert (drawn[0] - drawn[1]).std(ddof=1) < spread / 2
    half = np.ptp(score(p, recalled, user=user, panel=panel).intervals["brier"]) / 2
    assert half == pytest.approx(stats.t.ppf(0.995, 39) * math.sqrt(40 / 39) * spread)


def test_half_precision_and_whole_numbers_are_taken():
    assert score(np.array([1, 0]), [1, 0])["brier"] == 0
    assert score(np.array([0.5, 0.25], np.float16), [1, 0])["brier"] == pytest.approx(0.15625)

"""From predictions of each user, joined, named and copied, to the reported scores."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented import Ends, Told
from metric_functions import METRIC, predicted
from offenders import Learns, SharesOneArrayAmongItsModels, WritesIntoWhatItGetsAndReturns
from saved import assert_same, result_from

from srs_eval.algorithms.algorithm import Learned
from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.data.reviews import reviews_fingerprint
from srs_eval.errors import FitError, FitSkipped
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.scoring import summarise_users
from srs_eval.metrics.bootstrap import cluster_intervals
from srs_eval.metrics.means import clipped, mean_of_users
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import concatenate, rows_fingerprint
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.srs_benchmark import SrsBenchmark

PANEL = Panel([METRIC[name] for name in ("log_loss", "brier", "auc", "rmse_bins")])


@pytest.fixture
def scored(logs_of, tmp_path):
    def run(algorithm, *users):
        source = logs_of(*users)
        work = EvaluateUser(source, algorithm, SrsBenchmark(), seed=0, curves=20)
        evaluations = [work(user) for user in source.users()]
        return evaluations, result_from(evaluations, PANEL, Path(mkdtemp(dir=tmp_path)))

    return run


def test_each_user_is_scored_and_the_summary_follows_from_the_scores(scored):
    evaluations, result = scored(Fsrs6(fit="default"), 1, 2, 3, 4, 5)
    facts, values = result.facts, result.by_user.values
    assert (result.by_user.users, result.by_user.names) == ((1, 2, 3, 4, 5), PANEL.names)
    predictions = [evaluation.predictions for evaluation in evaluations]
    assert values.tolist() == [[*PANEL.score(each).values()] for each in predictions]
    assert result.by_user.reviews.tolist() == [*map(len, predictions)]
    whole = concatenate(predictions)
    assert (facts.reviews, facts.forgotten) == (len(whole), (~whole.recalled).sum())
    pooled, weights = PANEL.score(whole), result.by_user.reviews
    means = Panel([*PANEL], pooled=False)
    unpooled = summarise_users(result.by_user, means, lambda: pytest.fail("not needed")).metrics
    for metric, column in zip(PANEL, values.T, strict=True):
        name, summary = metric.name, facts.metrics[metric.name]
        assert summary.pooled == pytest.approx(pooled[name], abs=1e-6)
        assert summary.pooled_lo < summary.pooled < summary.pooled_hi
        interval = clipped(mean_of_users(column).interval(), metric.bounds)
        assert (summary.lo, summary.hi) == pytest.approx(interval)
        assert (summary.mean_users, summary.n_users) == (pytest.approx(column.mean()), 5)
        assert summary.mean_reviews == pytest.approx(np.average(column, weights=weights))
        # means over reviews follow from the users' scores
        mean = pooled[name] if metric.is_mean else np.nan
        assert unpooled[name].pooled == pytest.approx(mean, nan_ok=True)
    assert facts.interval_over == "users"


@pytest.mark.parametrize(
    ("fold", "end", "status"),
    [
        (1, Told(0.9, learned=Learned(fallback=True)), "fallback"),
        (3, FitError("it diverged"), "failed"),
        (0, FitSkipped("too few"), "skipped"),
    ],
)
def test_a_user_without_one_fold_is_on_record_but_not_in_the_means(scored, fold, end, status):
    _, result = scored(Ends(end, users=[2], fold=fold), 1, 2, 3)
    assert Counter(fit.status for fit in result.fits()) == {status: 1, "ok": 14}
    assert getattr(result.facts, status) == 1
    is_missing = np.isnan(result.by_user.values).all(axis=1)
    assert result.by_user.users == (1, 2, 3)
    assert is_missing.tolist() == [False, status != "fallback", False]
    assert (result.by_user.reviews == 0).tolist() == is_missing.tolist()
    _, without = scored(Average(), 1, 3)
    assert result.facts.users == 3 - is_missing.sum()
    for name in ("reviews", "forgotten", "metrics") if is_missing.any() else ():
        assert repr(getattr(result.facts, name)) == repr(getattr(without.facts, name))


def test_a_single_user_gets_intervals_over_cards_also_beside_one_skipped_altogether(
    scored, make_log
):
    evaluations, result = scored(Fsrs6(fit="default"), 1, make_log(user=2, cards=1))
    assert (result.by_user.users, result.facts.skipped) == ((1,), 1)
    assert result.facts.interval_over == "cards and days"
    expected = cluster_intervals(PANEL, evaluations[0].predictions)
    for name, summary in result.facts.metrics.items():
        assert (summary.lo, summary.hi) == expected[name]
        assert summary.mean_users == summary.mean_reviews == summary.pooled
    # Over cards one left of two would look more certain than the failure of the other allows.
    _, result = scored(Ends(FitError("no"), users=[2], fold=None), 1, 2)
    assert result.facts.interval_over == "users"
    assert np.isnan(result.facts.metrics["log_loss"].lo)
    assert not np.isnan(result.facts.metrics["log_loss"].mean_users)


def test_where_nothing_worked_there_are_no_numbers_but_every_fit_and_row(tmp_path):
    logs = (ReviewLog(5, {"cards": 2, "manual": 1}, "aa"), ReviewLog(7, {"manual": 4}, "bb"))
    fits = (Fit(1, -1, "failed", "why"), Fit(2, -1, "skipped", "why"))
    both = zip(fits, logs, strict=True)
    run = result_from(
        (UserEvaluation(fit.user, (fit,), None, log) for fit, log in both), PANEL, tmp_path
    )
    assert tuple(run.fits()) == fits
    assert (run.facts.users, run.facts.reviews, run.facts.coverage.reviews.read) == (0, 0, 12)
    assert run.facts.left_out == {"cards": 2, "manual": 5}
    for summary in run.facts.metrics.values():
        assert summary.n_users == 0
        assert np.isnan([summary.mean_users, summary.pooled, summary.lo]).all()


@pytest.mark.parametrize("protocol", [SrsBenchmark(refits=20), Prequential(first=20, every=20)])
@pytest.mark.parametrize("kind", [SharesOneArrayAmongItsModels, WritesIntoWhatItGetsAndReturns])
def test_a_model_may_do_what_it_likes_with_its_own_memory(kind, protocol, logs_of):
    one, other = (
        EvaluateUser(logs_of(1), algorithm(), protocol, seed=0, curves=40)(1)
        for algorithm in (kind, Learns)
    )
    assert_same(one.predictions, other.predictions)
    for fit, expected in zip(one.fits, other.fits, strict=True):
        assert replace(fit, seconds=0.0) == replace(expected, seconds=0.0)


def of(rows, p=0.5):
    n = len(rows)
    outcomes = np.full(n, p), np.ones(n, bool)
    return predicted(*outcomes, users=("a",), row=np.array(rows, np.int64))


@given(st.permutations(range(1, 8)))
def test_the_fingerprint_of_scored_reviews_is_of_rows_and_outcomes_in_any_order(rows):
    expected = rows_fingerprint(of([1, 2, 3, 4, 5, 6, 7]))
    first, *others = (of([row], p=0.9) for row in rows)
    assert rows_fingerprint(concatenate([first, *others])) == expected
    for part in (of([9]), of([8, 9]), replace(first, recalled=~first.recalled)):
        assert rows_fingerprint(concatenate([part, *others])) != expected


@pytest.mark.parametrize("column", ["card", "day", "rating", "elapsed_days"])
def test_the_fingerprint_of_a_log_depends_on_every_column(make_log, column):
    log = make_log()
    changed = getattr(log, column).copy()
    changed[5] += 1
    other = replace(log, **{column: changed})
    assert reviews_fingerprint(other) != reviews_fingerprint(log)
    assert reviews_fingerprint(make_log()) == reviews_fingerprint(log)
    seconds = replace(log, elapsed_seconds=np.full(len(log), 5.0))
    assert reviews_fingerprint(seconds) != reviews_fingerprint(log)

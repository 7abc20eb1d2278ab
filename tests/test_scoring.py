"""From predictions of each user, joined, named and copied, to the reported scores."""

from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented import Ends
from metric_functions import METRIC, predicted
from offenders import Learns, SharesOneArrayAmongItsModels, WritesIntoWhatItGetsAndReturns
from saved import result_from

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
from srs_eval.metrics.score import score
from srs_eval.metrics.tally import Tally
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.srs_benchmark import SrsBenchmark

PANEL = Panel([METRIC[name] for name in ("log_loss", "brier", "auc", "rmse_bins")])
# A model that was not fitted.
KEPT = SimpleNamespace(
    predict=lambda reviews, rows: np.full(len(rows), 0.9),
    learned=Learned(fallback=True, note="the default was kept"),
)


@pytest.fixture
def scored(logs_of, tmp_path):
    def run(algorithm, *users):
        source = logs_of(*users)
        work = EvaluateUser(source, algorithm, SrsBenchmark(), seed=0, curves=20)
        evaluations = [work(user) for user in source.users()]
        return evaluations, result_from(evaluations, PANEL, Path(mkdtemp(dir=tmp_path)))

    return run


def statuses(result):
    """Count fits by status, which the summary counts too where it is not ok."""
    counts = dict.fromkeys(("ok", "fallback", "failed", "skipped"), 0)
    for fit in result.fits():
        counts[fit.status] += 1
    for name in ("fallback", "failed", "skipped"):
        assert counts[name] == getattr(result.facts, name)
    return {name: count for name, count in counts.items() if count}


def test_each_user_is_scored_and_the_summary_follows_from_the_scores(scored):
    evaluations, result = scored(Fsrs6(fit="default"), 1, 2, 3, 4, 5)
    values, weights = result.by_user.values, result.by_user.reviews
    assert (result.by_user.users, result.by_user.names) == ((1, 2, 3, 4, 5), PANEL.names)
    for row, evaluation in zip(values, evaluations, strict=True):
        assert row.tolist() == list(PANEL.score(evaluation.predictions).values())
    recalled = [evaluation.predictions.recalled for evaluation in evaluations]
    assert weights.tolist() == [len(each) for each in recalled]
    assert result.facts.reviews == sum(weights)
    assert result.facts.forgotten == sum((~each).sum() for each in recalled) > 0
    pooled = PANEL.score(concatenate([evaluation.predictions for evaluation in evaluations]))
    for column, (name, metric) in enumerate(zip(PANEL.names, PANEL, strict=True)):
        summary = result.facts.metrics[name]
        assert summary.pooled == pytest.approx(pooled[name], abs=1e-6)
        assert summary.pooled_lo < summary.pooled < summary.pooled_hi
        expected = clipped(mean_of_users(values[:, column]).interval(), metric.bounds)
        assert (summary.lo, summary.hi) == pytest.approx(expected)
        assert summary.lo < summary.mean_users < summary.hi
        assert summary.n_users == 5
    assert result.facts.interval_over == "users"

    def together():
        raise AssertionError("not needed")

    found = summarise_users(result.by_user, Panel([*PANEL], pooled=False), together).metrics
    for name, summary in result.facts.metrics.items():
        if name in ("log_loss", "brier"):  # means over reviews follow from the users' scores
            assert found[name].pooled == pytest.approx(summary.pooled, rel=1e-12)
        else:
            assert np.isnan(found[name].pooled)


@pytest.mark.parametrize(
    ("fold", "end", "status"),
    [
        (1, KEPT, "fallback"),
        (3, FitError("it diverged"), "failed"),
        (0, FitSkipped("too few"), "skipped"),
    ],
)
def test_a_user_without_one_fold_is_on_record_but_not_in_the_means(scored, fold, end, status):
    _, result = scored(Ends(end, users=[2], fold=fold), 1, 2, 3)
    assert statuses(result) == {status: 1, "ok": 14}
    assert result.by_user.users == (1, 2, 3)
    assert not np.isnan(result.by_user.values[[0, 2]]).any()
    if status == "fallback":
        assert not np.isnan(result.by_user.values).any()
        assert result.facts.users == 3
        return
    assert np.isnan(result.by_user.values[1]).all()
    assert result.by_user.reviews[1] == 0
    _, without = scored(Average(), 1, 3)
    for name in ("users", "reviews", "forgotten", "metrics"):
        assert repr(getattr(result.facts, name)) == repr(getattr(without.facts, name))


def test_a_single_user_gets_intervals_over_cards_also_beside_one_skipped_altogether(
    scored, make_log
):
    evaluations, result = scored(Fsrs6(fit="default"), 1, make_log(user=2, cards=1))
    assert result.by_user.users == (1,)
    assert statuses(result) == {"ok": 5, "skipped": 1}
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


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_where_nothing_worked_there_are_no_numbers_but_every_fit(status, tmp_path):
    logs = (ReviewLog(5, {"cards": 2, "manual": 1}, "aa"), ReviewLog(7, {"manual": 4}, "bb"))
    fits = tuple(Fit(user, -1, status, "why") for user in (1, 2))
    results = [
        UserEvaluation(fit.user, (fit,), None, log) for fit, log in zip(fits, logs, strict=True)
    ]
    result = result_from(results, PANEL, tmp_path)
    assert tuple(result.fits()) == fits
    assert (result.facts.users, result.facts.reviews) == (0, 0)
    for summary in result.facts.metrics.values():
        assert summary.n_users == 0
        assert np.isnan([summary.mean_users, summary.pooled, summary.lo]).all()
    assert result.facts.coverage.reviews.read == 12
    assert result.facts.left_out == {"cards": 2, "manual": 5}
    others = result_from(results[:1], PANEL, tmp_path)
    assert result.facts.data_fingerprint != others.facts.data_fingerprint


PROTOCOLS = (SrsBenchmark(refits=20), Prequential(first=20, every=20, warm_start=False))
COLUMNS = ("row", "p", "recalled", "card", "lapses", "nth_review")


def evaluated(kind, source, protocol):
    """Return parameters, losses of steps and columns, for each user."""
    work = EvaluateUser(source, kind(), protocol, seed=0, curves=40)
    for user in source.users():
        made = work(user)
        assert {fit.status for fit in made.fits} == {"ok"}
        yield from ([each for fit in made.fits for each in fit.parameters + fit.test_log_loss],)
        yield from (getattr(made.predictions, name) for name in COLUMNS)
        curves = made.predictions.curves
        yield from (curves.row, curves.elapsed, curves.weight, curves.p)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", [SharesOneArrayAmongItsModels, WritesIntoWhatItGetsAndReturns])
def test_a_model_may_do_what_it_likes_with_its_own_memory(kind, protocol, logs_of):
    found, expected = (evaluated(each, logs_of(1, 2), protocol) for each in (kind, Learns))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def sorts_predictions(predictions):
    predictions.p.sort()
    return predictions.p[0]


def first(predictions):
    return predictions.p[0]


def sorts_tally(tally: Tally):
    tally.p.sort()


def test_a_metric_cannot_change_what_others_are_computed_from():
    p = np.array([0.9, 0.2, 0.6])
    with pytest.raises(ValueError, match="read-only"):
        score(p, [1, 0, 1], panel=Panel([sorts_tally]))
    scores = score(p, [1, 0, 1], panel=Panel([sorts_predictions, first]), resamples=0)
    assert scores == {
        "n": 3,
        "n_dropped": 0,
        "sorts_predictions": 0.2,
        "first": 0.9,
    }  # each has its own
    assert p.tolist() == [0.9, 0.2, 0.6]
    p.sort()  # the caller's array is as writable as it was


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

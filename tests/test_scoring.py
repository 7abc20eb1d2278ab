"""From the result of each user to the reported scores."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from saved import result_from

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.errors import FitError, FitSkipped
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog, UserEvaluation
from srs_eval.evaluation.scoring import (
    summarise_users,
)
from srs_eval.metrics.bins import RmseBins
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.intervals import bounds_of, single_user_intervals
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.summary import clipped
from srs_eval.nouns import Fit, Learned
from srs_eval.nouns.predictions import concatenate
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.stats.estimate import mean_of_users

PANEL = Panel([LogLoss(), Brier(), Auc(), RmseBins()])


class FailsAt:
    """Average, but the fit of one user in one fold ends otherwise."""

    same_day = False
    when = "previous_review"
    sees_truth = False

    def __init__(self, user, fold, error):
        self.user, self.fold, self.error, self.fits = user, fold, error, 0

    def fit(self, reviews, rows, rng):
        if reviews.user == self.user:
            self.fits += 1
            if self.fold in (None, self.fits - 1):
                raise self.error
        return Average().fit(reviews, rows, rng)


class FallsBackAt(FailsAt):
    """Average, but the model of one user in one fold was not fitted."""

    def __init__(self, user, fold):
        super().__init__(user, fold, FitError("no"))

    def fit(self, reviews, rows, rng):
        try:
            return super().fit(reviews, rows, rng)
        except FitError:
            return Kept(0.9)


@dataclass(frozen=True)
class Kept:
    p: float
    parameters: tuple = ()
    learned: ClassVar[Learned] = Learned(fallback=True, note="the default was kept")

    def predict(self, reviews, rows):
        return np.full(len(rows), self.p)


def status_count(result, status):
    """Count fits of a status, which the summary counts too where it is not ok."""
    count = sum(fit.status == status for fit in result.fitted)
    assert status == "ok" or count == getattr(result.facts, status)
    return count


@pytest.fixture
def scored(logs_of):
    def run(algorithm, *users):
        source = logs_of(*users)
        work = EvaluateUser(source, algorithm, SrsBenchmark(), seed=0, curves=20)
        evaluations = [work(user) for user in source.users()]
        return evaluations, result_from(evaluations, PANEL)

    return run


def test_each_user_is_scored_by_the_panel(scored):
    evaluations, evaluation = scored(Fsrs6(), 1, 2, 3)
    assert evaluation.by_user.users == (1, 2, 3)
    assert evaluation.by_user.names == PANEL.names
    for row, result in zip(evaluation.by_user.values, evaluations, strict=True):
        assert row.tolist() == list(PANEL.score(result.predictions).values())
    sizes = [len(result.predictions) for result in evaluations]
    assert evaluation.by_user.reviews.tolist() == sizes


def test_the_summary_can_be_had_from_the_scores_alone(scored):
    _, evaluation = scored(Fsrs6(), 1, 2, 3, 4, 5)
    values, weights = evaluation.by_user.values, evaluation.by_user.reviews
    for column, (name, metric) in enumerate(zip(PANEL.names, PANEL, strict=True)):
        summary = evaluation.facts.metrics[name]
        assert summary.mean_users == pytest.approx(values[:, column].mean())
        assert summary.mean_reviews == pytest.approx(np.average(values[:, column], weights=weights))
        expected = clipped(mean_of_users(values[:, column]).interval(), bounds_of(metric))
        assert (summary.lo, summary.hi) == pytest.approx(expected)
        assert summary.lo < summary.mean_users < summary.hi
        assert summary.n_users == 5
    assert evaluation.facts.interval_over == "users"


def test_pooled_is_the_panel_of_all_predictions_together(scored):
    evaluations, evaluation = scored(Fsrs6(), 1, 2, 3)
    everything = concatenate([result.predictions for result in evaluations])
    pooled = {name: summary.pooled for name, summary in evaluation.facts.metrics.items()}
    assert pooled == pytest.approx(PANEL.score(everything), abs=1e-6, nan_ok=True)
    # Log loss is a mean over reviews, so that weighing users by them is pooling.
    summary = evaluation.facts.metrics["log_loss"]
    assert summary.mean_reviews == pytest.approx(summary.pooled)


def test_without_pooling_no_predictions_are_asked_for(scored):
    _, evaluation = scored(Fsrs6(fit="default"), 1, 2, 3)
    panel = Panel(PANEL.metrics, pooled=False)

    def together():
        raise AssertionError("not needed")

    found = summarise_users(evaluation.by_user, panel, together).metrics
    for name in ("log_loss", "brier"):  # means over reviews follow from the users' scores
        pooled = evaluation.facts.metrics[name].pooled
        assert found[name].pooled == pytest.approx(pooled, rel=1e-12)
    for name in ("auc", "rmse_bins"):
        assert np.isnan(found[name].pooled)
    for name, summary in evaluation.facts.metrics.items():
        assert found[name].mean_users == summary.mean_users
        assert (found[name].lo, found[name].hi) == (summary.lo, summary.hi)


def test_a_user_with_a_fallback_is_complete(scored):
    _, evaluation = scored(FallsBackAt(2, 1), 1, 2)
    assert (status_count(evaluation, "fallback"), status_count(evaluation, "ok")) == (1, 9)
    assert evaluation.facts.users == 2
    assert not np.isnan(evaluation.by_user.values).any()


@pytest.mark.parametrize(
    ("fold", "error", "status"),
    [(3, FitError("it diverged"), "failed"), (0, FitSkipped("too few"), "skipped")],
)
def test_a_user_without_one_fold_is_on_record_but_not_in_the_means(scored, fold, error, status):
    _, evaluation = scored(FailsAt(2, fold, error), 1, 2, 3)
    assert status_count(evaluation, status) == 1
    assert status_count(evaluation, "ok") == 14
    assert evaluation.by_user.users == (1, 2, 3)
    assert np.isnan(evaluation.by_user.values[1]).all()
    assert not np.isnan(evaluation.by_user.values[[0, 2]]).any()
    assert evaluation.by_user.reviews[1] == 0
    assert evaluation.facts.users == 2
    _, without = scored(Average(), 1, 3)
    assert evaluation.facts.metrics["log_loss"].n_users == 2
    assert (
        evaluation.facts.metrics["log_loss"].mean_users
        == without.facts.metrics["log_loss"].mean_users
    )
    assert evaluation.facts.metrics["log_loss"].pooled == without.facts.metrics["log_loss"].pooled


def test_a_single_user_gets_intervals_over_cards_also_beside_one_skipped_altogether(
    scored, make_log
):
    evaluations, evaluation = scored(Fsrs6(), 1, make_log(user=2, cards=1))
    assert evaluation.by_user.users == (1,)
    assert status_count(evaluation, "skipped") == 1
    assert evaluation.facts.interval_over == "cards and days"
    expected = single_user_intervals(PANEL, evaluations[0].predictions)
    for name, summary in evaluation.facts.metrics.items():
        assert (summary.lo, summary.hi) == expected[name]
        assert summary.lo < summary.mean_users < summary.hi
        assert summary.mean_users == summary.mean_reviews == summary.pooled


def test_runs_that_scored_the_same_reviews_have_the_same_fingerprint(scored):
    _, one = scored(Average(), 1, 2)
    _, other = scored(Fsrs6(), 2, 1)
    _, without = scored(FailsAt(2, 0, FitError("no")), 1, 2)
    _, fewer = scored(Average(), 1)
    assert one.facts.rows_fingerprint == other.facts.rows_fingerprint
    assert len({e.facts.rows_fingerprint for e in (one, without, fewer)}) == 3
    assert without.by_user.rows == (one.by_user.rows[0], "")
    assert len(set(one.by_user.rows)) == 2


def test_one_user_left_of_two_has_no_interval(scored):
    """Over cards it would look more certain than the failure of the other allows."""
    _, evaluation = scored(FailsAt(2, None, FitError("no")), 1, 2)
    assert evaluation.facts.interval_over == "users"
    assert np.isnan(evaluation.facts.metrics["log_loss"].lo)
    assert not np.isnan(evaluation.facts.metrics["log_loss"].mean_users)


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_where_nothing_worked_there_are_no_numbers_but_every_fit(status):
    fits = [Fit(user, -1, status, "why") for user in (1, 2)]
    results = [UserEvaluation(fit.user, (fit,), None, ReviewLog(5)) for fit in fits]
    evaluation = result_from(results, PANEL)
    assert evaluation.fitted == tuple(fits)
    assert (evaluation.facts.users, evaluation.facts.reviews) == (0, 0)
    assert evaluation.reviews_read == 10
    for summary in evaluation.facts.metrics.values():
        assert summary.n_users == 0
        assert np.isnan(summary.mean_users)
        assert np.isnan(summary.pooled)


def test_facts_of_the_logs_are_added_up():
    results = [
        UserEvaluation(1, (), None, ReviewLog(5, {"cards": 2, "manual": 1}, "aa")),
        UserEvaluation(2, (), None, ReviewLog(7, {"manual": 4}, "bb")),
    ]
    evaluation = result_from(results, PANEL)
    assert evaluation.reviews_read == 12
    assert evaluation.facts.left_out == {"cards": 2, "manual": 5}
    other = result_from(results[:1], PANEL)
    assert evaluation.facts.data_fingerprint != other.facts.data_fingerprint


def test_scored_and_forgotten_reviews_of_complete_users_are_counted(logs_of):
    work = EvaluateUser(logs_of(1, 2, 3), Average(), SrsBenchmark(), seed=0, curves=0)
    evaluations = [work(user) for user in (1, 2, 3)]
    evaluations[1] = replace(
        evaluations[1], fits=(Fit(2, 0, "failed", "why"), *evaluations[1].fits[1:])
    )
    facts = result_from(evaluations, PANEL).facts
    recalled = [evaluations[place].predictions.recalled.tolist() for place in (0, 2)]
    assert facts.reviews == sum(map(len, recalled))
    assert facts.forgotten == sum(each.count(False) for each in recalled)
    assert 0 < 2 * facts.forgotten < facts.reviews

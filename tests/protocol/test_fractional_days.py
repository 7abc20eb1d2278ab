"""The public protocols on a clock of fractional days, against loops over their description."""

from dataclasses import dataclass, replace

import numpy as np
import plain_protocol
import pytest
from cases import rest_nightly
from hypothesis import given, settings
from hypothesis import strategies as st
from invented import Logs
from metric_functions import rmse_bins
from timed import timed

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.checks import (
    CheckFailed,
    check_algorithm,
)
from srs_eval.checks.toy_log import trial_task
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.schema import reviews_from_columns
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.errors import ConfigError, FitSkipped, ReviewLogError
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.nouns import Algorithm
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark

PROTOCOLS = [SrsBenchmarkSecs, SrsBenchmarkEqualised]
BOTH = pytest.mark.parametrize("protocol", PROTOCOLS)


def plain_folds(protocol, log):
    if isinstance(protocol, SrsBenchmarkEqualised):
        return list(plain_protocol.equalised_folds(log, answer_time=protocol.answer_time))
    return list(
        plain_protocol.folds(plain_protocol.timed_rows(log, answer_time=protocol.answer_time))
    )


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    cards=st.sampled_from([1, 40, 150]),
    reviews_per_card=st.sampled_from([2, 6, 140]),
    same_day=st.sampled_from([0.0, 0.2, 0.7]),
    recall=st.sampled_from([0.5, 0.9]),
    protocol=st.sampled_from(PROTOCOLS),
    answer_time=st.booleans(),
    keep_same_day=st.booleans(),
)
def test_any_log_becomes_what_the_loops_make_of_it(
    make_log, protocol, answer_time, keep_same_day, seed, **shape
):
    if shape["reviews_per_card"] == 140:
        shape["cards"] = min(shape["cards"], 20)
    log = timed(make_log(seed=seed, **shape), seed=seed)
    try:
        task = protocol(answer_time=answer_time)(log, same_day=keep_same_day)
    except FitSkipped:
        rows = plain_protocol.timed_rows(log, answer_time=answer_time)
        whole = plain_protocol.scored_rows(log, short=True)
        assert len(rows if protocol is SrsBenchmarkSecs else whole) < 6
    else:
        plain_protocol.assert_same(task, plain_folds(protocol(answer_time=answer_time), log))


@BOTH
def test_the_scored_reviews_are_the_same_with_the_answer_time_in_the_intervals(make_log, protocol):
    log = timed(make_log(cards=100), hasty=0.5)
    ours, published = (protocol(answer_time=included) for included in (False, True))
    assert published.name == ours.name + "_published"
    task, other = (chosen(log, same_day=True) for chosen in (ours, published))
    for fold, same in zip(task.folds, other.folds, strict=True):
        np.testing.assert_array_equal(fold.train, same.train)
        np.testing.assert_array_equal(fold.test, same.test)
        assert (task.reviews.elapsed[fold.train] > 0).all()
    assert (task.reviews.elapsed <= other.reviews.elapsed).all()
    assert (task.reviews.elapsed < other.reviews.elapsed).any()


@BOTH
def test_intervals_end_when_the_card_is_asked_for(protocol):
    """By whole seconds, at least one, and none where the data have none."""
    seconds = [-1.0, 100.0, 9.0, 5.0, 0.0, 86_400.0]
    took = [4000.0, 30_400.0, 8900.0, 60_000.0, 50.0, 400.0]
    days = [0, 0, 0, 0, 0, 1]
    copies = 30
    log = reviews_from_columns(
        user=1,
        source="log",
        card=np.tile(np.arange(copies), len(days)),
        rating=[3] * (copies * len(days)),
        day=np.repeat(days, copies),
        elapsed_seconds=np.repeat(seconds, copies),
        duration_ms=np.repeat(took, copies),
    )
    elapsed = protocol()(log, same_day=True).reviews.elapsed.reshape(len(days), copies)[:, 0]
    np.testing.assert_array_equal(elapsed * 86_400, [0, 70, 1, 1, 0, 86_400])
    without = protocol()(replace(log, duration_ms=None), same_day=True).reviews.elapsed
    published = protocol(answer_time=True)(log, same_day=True).reviews.elapsed
    np.testing.assert_array_equal(without, published)
    np.testing.assert_allclose(published[::copies] * 86_400, [0, 100, 9, 5, 0, 86_400])


@BOTH
def test_nothing_finer_than_the_clock_is_handed_over(make_log, protocol):
    task = protocol()(timed(make_log()), same_day=False)
    assert task.reviews.elapsed_seconds is None
    assert not task.reviews.whole_days
    np.testing.assert_array_equal(task.reviews.row, np.arange(len(task.reviews)))
    assert (task.reviews.elapsed_days == 0).any()
    assert SrsBenchmark()(make_log(), same_day=False).reviews.whole_days


def test_equalised_scores_what_whole_days_score(make_log):
    log = timed(make_log(cards=150))
    days = SrsBenchmark()(log, same_day=True)
    task = SrsBenchmarkEqualised()(log, same_day=True)
    for fold, other in zip(task.folds, days.folds, strict=True):
        np.testing.assert_array_equal(fold.test, other.test)
        assert set(other.train) < set(fold.train)
        assert fold.train.max() < fold.test.min()
    np.testing.assert_array_equal(task.lapses, days.lapses)
    np.testing.assert_array_equal(task.nth_review, days.nth_review)


@BOTH
def test_metrics_are_told_whole_days(make_log, protocol):
    log = timed(make_log(cards=100))
    work = EvaluateUser(Logs({1: log}), Average(), protocol(), seed=0, curves=0)
    predictions = work(1).predictions
    np.testing.assert_array_equal(predictions.elapsed_days, log.elapsed_days[predictions.row])
    same_day_is_scored = bool((predictions.elapsed_days == 0).any())
    assert same_day_is_scored == (protocol is SrsBenchmarkSecs)


@BOTH
def test_a_log_without_seconds_is_refused_with_what_to_do(make_log, protocol):
    with pytest.raises(ReviewLogError, match=r"user 1: no seconds .*\n.*protocol=srs_benchmark,"):
        protocol()(make_log(), same_day=True)


@dataclass(frozen=True)
class ByColumn:
    """Predicts by a function of the whole log."""

    column: object
    parameters: tuple = ()

    def predict(self, reviews, rows):
        return self.column(reviews)[rows]


class Curved(ByColumn):
    def predict_at(self, reviews, rows, elapsed):
        return 0.05 + 0.9 * 0.9 ** (elapsed / 10)


class Forgets(Algorithm):
    """Honest: reads its own elapsed time, and what came before on its card."""

    def fit(self, reviews, rows, rng):
        return Curved(lambda log: 0.05 + 0.9 * 0.9 ** (log.elapsed / 10))


class AddsUpAClock(Algorithm):
    """Takes answer times from when cards are asked for: from one review to the next."""

    def fit(self, reviews, rows, rng):
        return ByColumn(lambda log: np.where(np.diff(asked(log), append=0) > 10, 0.3, 0.9))


class LearnsFromOthersFractionsOfDays(Algorithm):
    """Goes on learning from how late in the day other cards are reviewed, without saying so."""

    def fit(self, reviews, rows, rng):
        def column(log):
            late = log.elapsed % 1
            return 0.1 + 0.8 * (np.cumsum(late) - late) / (1 + np.arange(len(late)))

        return ByColumn(column)


class ReadsSecondsThatAreNotThere(Algorithm):
    def fit(self, reviews, rows, rng):
        return ByColumn(lambda log: 0.2 + log.elapsed_seconds % 86400 / 2e5)


def asked(log):
    """When each review was asked for, in seconds, as far as intervals and durations tell."""
    clock, last_answer = [], {}
    columns = (log.card, log.day, log.elapsed, log.duration_ms)
    now = 0.0
    for card, day, elapsed, took in zip(*(column.tolist() for column in columns), strict=True):
        begin = last_answer[card] + 86_400 * elapsed if card in last_answer else now
        begin = max(begin, day * 86_400.0) if card not in last_answer else begin
        clock.append(begin)
        now = last_answer[card] = begin + took / 1000
    return np.array(clock)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("cheat", [AddsUpAClock(), LearnsFromOthersFractionsOfDays()])
def test_cheats_do_not(protocol, cheat):
    task = protocol()(trial_task(same_day=True).reviews, same_day=True)
    with pytest.raises(CheckFailed):
        check_algorithm(cheat, task)


def test_seconds_between_answers_cannot_be_read(make_log):
    log = timed(make_log())
    work = EvaluateUser(
        Logs({1: log}), ReadsSecondsThatAreNotThere(), SrsBenchmarkSecs(), seed=0, curves=0
    )
    assert {fit.status for fit in work(1).fits} == {"failed"}


def test_only_published_intervals_give_the_answer_time_away():
    """Of a sitting by a clock: from the answer before, on any card, to an interval's end."""
    rng = np.random.default_rng(0)
    n = 600
    took = rng.uniform(1, 20, n)
    answered = np.floor(np.cumsum(took + rng.uniform(0, 2, n)))
    card = rng.integers(0, 30, n)
    before = [np.flatnonzero(card[:row] == card[row])[-1:] for row in range(n)]
    begins = np.array([answered[last[0]] if len(last) else np.nan for last in before])
    log = reviews_from_columns(
        user=1,
        source="log",
        card=card,
        rating=np.full(n, 3),
        day=np.zeros(n),
        elapsed_seconds=np.where(np.isnan(begins), -1, answered - begins),
        duration_ms=took * 1000,
    )
    later = np.flatnonzero(~np.isnan(begins))

    def since_last_answer(*, answer_time):
        elapsed = SrsBenchmarkSecs(answer_time=answer_time)(log, same_day=True).reviews.elapsed
        return (begins + elapsed * 86_400 - np.r_[0, answered[:-1]])[later]

    assert np.corrcoef(since_last_answer(answer_time=True), took[later])[0, 1] > 0.95
    assert abs(np.corrcoef(since_last_answer(answer_time=False), took[later])[0, 1]) < 0.15


# Published: training rows of each fold, rows of a test block, the log rows these begin at, and
# the mean outcome of all scored reviews.
PUBLISHED = {
    SrsBenchmarkSecs: (
        [1900, 3795, 5690, 7585, 9480],
        1895,
        [2176, 4214, 6325, 8457, 10534],
        0.780158,
    ),
    SrsBenchmarkEqualised: (
        [2985, 4704, 6545, 8246, 9842],
        1004,
        [3330, 5233, 7282, 9153, 10928],
        0.820319,
    ),
}


@pytest.mark.parametrize("answer_time", rest_nightly([False, True]))
@BOTH
def test_a_real_log_has_the_published_counts(josh_log, protocol, answer_time):
    task = protocol(answer_time=answer_time)(josh_log, same_day=True)
    train, test, begins, recalled = PUBLISHED[protocol]
    assert [len(fold.train) for fold in task.folds] == train
    assert [len(fold.test) for fold in task.folds] == [test] * 5
    assert [int(task.log_row[fold.test[0]]) + 1 for fold in task.folds] == begins
    tested = np.concatenate([fold.test for fold in task.folds])
    assert task.reviews.recalled[tested].mean() == pytest.approx(recalled, abs=1e-6)
    plain_protocol.assert_same(task, plain_folds(protocol(answer_time=answer_time), josh_log))


# Log loss and RMSE(bins) of FSRS-7 with its default parameters.
PUBLISHED_SCORES = {
    SrsBenchmarkSecs: (0.478666, 0.081175),
    SrsBenchmarkEqualised: (0.442071, 0.069578),
}


@BOTH
def test_with_answer_times_published_scores_of_a_real_log_come_out(josh_log, protocol):
    task = protocol(answer_time=True)(josh_log, same_day=True)
    tested = np.concatenate([fold.test for fold in task.folds])
    model = RecurrentModel(Fsrs7Equations(), Fsrs7Equations.parameters.defaults)
    p, recalled = model.predict(task.reviews, tested), task.reviews.recalled[tested]
    binned = rmse_bins(
        p,
        recalled,
        elapsed_days=np.maximum(task.reviews.elapsed_days[tested], 0),
        nth_review=task.nth_review[tested],
        lapses=task.lapses[tested],
    )
    log_loss = -np.mean(np.log(np.where(recalled, p, 1 - p)))
    assert (log_loss, binned) == pytest.approx(PUBLISHED_SCORES[protocol], abs=1e-6)


@BOTH
@pytest.mark.parametrize("user", [8, 36])
def test_real_users_of_the_public_layout_run(real_logs, user, protocol):
    log = RevlogsFolder(path=real_logs / "anki-mit", users=[user]).read(user)
    plain_protocol.assert_same(protocol()(log, same_day=True), plain_folds(protocol(), log))


def test_refits_on_equalised_rows_score_the_same_reviews_in_more_blocks(make_log):
    log = timed(make_log(cards=100))
    few = SrsBenchmarkEqualised()(log, same_day=True)
    many = SrsBenchmarkEqualised(refits=20)(log, same_day=True)
    tested = [np.concatenate([fold.test for fold in task.folds]) for task in (few, many)]
    np.testing.assert_array_equal(*tested)
    assert (few.warm_start, many.warm_start) == (False, True)
    assert len(many.folds) == 20, "there are enough rows"
    assert SrsBenchmarkEqualised(refits=20).name == "srs_benchmark_equalised_refit20"
    with pytest.raises(ConfigError, match="refits=4, expected a whole number, 5 or more"):
        SrsBenchmarkEqualised(refits=4)

"""Every protocol: the public ones against loops, names, folds, and rows for choosing options."""

from dataclasses import replace
from functools import partial

import numpy as np
import plain_protocol
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from invented import log_of, timed

from srs_eval.errors import ConfigError, FitSkipped, ReviewLogError
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.outliers import unusual_first_intervals
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.user_folds import UserFolds
from srs_eval.protocol.validation import Validation
from srs_eval.runs.config import option

SECONDS = [SrsBenchmarkSecs, SrsBenchmarkEqualised]
shapes = {
    "seed": st.integers(0, 10**6),
    "cards": st.sampled_from([1, 40, 100, 250, 600]),
    "reviews_per_card": st.sampled_from([2, 3, 6, 12, 140]),
    "same_day": st.sampled_from([0.0, 0.2, 0.7]),
    "recall": st.sampled_from([0.0, 0.5, 0.9, 1.0]),
}


def log_like(make_log, intervals=(1, 1, 1, 2, 3, 7), **shape):
    """Invent a log that is not too long, and spans no more than a hundred years."""
    if shape["reviews_per_card"] == 140:
        shape["cards"] = min(shape["cards"], 30)
    if max(intervals) > 300:
        shape["reviews_per_card"] = min(shape["reviews_per_card"], 85)
    return make_log(intervals=intervals, **shape)


def assert_plain(make, candidates, folds):
    """Compare a task with the folds of plain rows, or see that too few were left for one."""
    try:
        task = make()
    except FitSkipped as skipped:
        assert len(candidates) < 6
        return skipped
    assert len(candidates) >= 6
    plain_protocol.assert_same(task, folds)
    return task


def left_out(task):
    """Count the reviews that are no targets, of a task or of a user who was skipped."""
    return sum(task.dropped.values()) + sum(task.unscored.values())


@settings(deadline=None, max_examples=40)
@given(
    intervals=st.sampled_from(
        [(1,), (1, 2, 3, 7), (1, 1, 1, 2, 2, 99, 100, 101, 102), (5, 364, 365, 366, 367), (1, 400)]
    ),
    easy=st.sampled_from([0.0, 0.1, 0.9]),
    keep_same_day=st.booleans(),
    **shapes,
)
def test_any_log_becomes_what_the_loops_make_of_it(make_log, keep_same_day, **shape):
    log = log_like(make_log, **shape)
    log = replace(log, elapsed_seconds=np.full(len(log), 3.0))
    rows = plain_protocol.scored_rows(log, short=keep_same_day)
    make = partial(SrsBenchmark(), log, same_day=keep_same_day)
    task = assert_plain(make, rows, plain_protocol.folds(rows))
    assert left_out(task) + len(rows) == len(log)
    if not isinstance(task, FitSkipped):
        assert task.reviews.whole_days
        assert (task.reviews.elapsed_days == 0).any() <= keep_same_day


@settings(deadline=None, max_examples=25)
@given(protocol=st.sampled_from(SECONDS), answer=st.booleans(), keep=st.booleans(), **shapes)
def test_any_log_in_seconds_becomes_what_the_loops_make_of_it(
    make_log, protocol, answer, keep, **shape
):
    log = timed(log_like(make_log, **shape), seed=shape["seed"])
    rows = plain_protocol.timed_rows(log, answer_time=answer)
    candidates, folds = rows, plain_protocol.folds(rows)
    if protocol is SrsBenchmarkEqualised:
        candidates = plain_protocol.scored_rows(log, short=True)
        folds = plain_protocol.equalised_folds(log, answer_time=answer)
    make = partial(protocol(answer_time=answer), log, same_day=keep)
    task = assert_plain(make, candidates, folds)
    if not isinstance(task, FitSkipped):
        assert left_out(task) + len(rows) == len(log)
        assert not task.reviews.whole_days


@pytest.mark.parametrize("protocol", SECONDS)
def test_a_log_needs_seconds_but_no_answer_times(make_log, protocol):
    with pytest.raises(ReviewLogError):
        protocol()(make_log(), same_day=True)
    log = timed(make_log(), hasty=0.5)
    without = protocol()(replace(log, duration_ms=None), same_day=True).reviews.elapsed
    published = protocol(answer_time=True)(log, same_day=True).reviews.elapsed
    np.testing.assert_array_equal(without, published)
    task, often = protocol()(log, same_day=True), SrsBenchmarkEqualised(refits=6)
    assert (task.reviews.elapsed < published).any()
    assert (task.warm_start, often(log, same_day=True).warm_start) == (False, True)


def test_a_skipped_user_is_told_which_rule_left_out_how_many():
    # Fourteen cards: no interval is common enough. One review on the first day, 130 on one card.
    card = [*range(14), 0, *range(14), *([99] * 130)]
    day = [*([0] * 15), *range(1, 15), *range(20, 150)]
    with pytest.raises(FitSkipped) as caught:
        SrsBenchmark()(log_of(card, day), same_day=False)
    six = timed(log_of([7] * 7, range(7)))
    assert [len(fold.test) for fold in SrsBenchmarkSecs()(six, same_day=True).folds] == [1] * 5
    with pytest.raises(FitSkipped):
        SrsBenchmarkSecs()(six.take(np.arange(6)), same_day=True)
    counts = {**caught.value.dropped, **caught.value.unscored}
    assert sorted(counts.values()) == [1, 2, 15, 141]
    assert all(f"{n} {rule}" in str(caught.value) for rule, n in counts.items())


@pytest.mark.parametrize(
    ("protocol", "name", "folds"),
    [
        (SrsBenchmark(), "srs_benchmark", 5),
        (SrsBenchmark(20), "srs_benchmark_refit20", 20),
        (SrsBenchmark(100, warm_start=False), "srs_benchmark_refit100_cold", 100),
        (Prequential(), "prequential_from100_every100_most100", 100),
        (Prequential(5, 7, 9, warm_start=False), "prequential_from5_every7_most9_cold", 9),
        (SrsBenchmarkSecs(answer_time=True), "srs_benchmark_secs_published", 5),
        (SrsBenchmarkEqualised(answer_time=True), "srs_benchmark_equalised_published", 5),
        (Validation(), "validation80_of_srs_benchmark", 1),
        (Validation(SrsBenchmark(50), 0.75), "validation75_of_srs_benchmark_refit50", 1),
        (UserFolds(), "srs_benchmark_in_2_user_folds", 5),
    ],
)
def test_a_name_has_all_that_moves_numbers(protocol, name, folds):
    assert (protocol.name, protocol.folds) == (name, folds)
    assert {protocol, replace(protocol)} == {protocol}
    assert protocol.version == ("1 of 1" if hasattr(protocol, "base") else "1")
    assert getattr(protocol, "is_validation", False) == isinstance(protocol, Validation)


REFUSED = {
    Prequential: {"first": (0, 2.5), "every": (0,), "most": (-1,), "warm_start": (0,)},
    SrsBenchmark: {"refits": (4, 7.5), "warm_start": ("no",)},
    SrsBenchmarkSecs: {"answer_time": (0,)},
    Validation: {"share": (0, 1, "most")},
    UserFolds: {"user_folds": (1, 21, 2.5)},
}


@pytest.mark.parametrize("kind", REFUSED)
def test_an_option_outside_of_its_bounds_is_refused_by_its_name(kind):
    target = {"_target_": f"{kind.__module__}.{kind.__name__}"}
    assert option("protocol", target) == kind()
    for name in ("first", "every", "most") if kind is Prequential else ():
        assert getattr(option("protocol", {**target, name: 1}), name) == 1
    for name, values in REFUSED[kind].items():
        for value in values:
            with pytest.raises(ConfigError, match=f"protocol.{name}="):
                option("protocol", {**target, name: value})


@example(rating=3, sizes={1: 6, 2: 6, 3: 6, 4: 6, 100: 30, 101: 30})
@example(rating=4, sizes={101: 30, 365: 30, 366: 30})
@given(
    rating=st.integers(1, 4),
    sizes=st.dictionaries(
        st.sampled_from([1, 2, 3, 4, 5, 7, 30, 100, 101, 102, 365, 366, 500]),
        st.sampled_from([1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 19, 20, 21, 25, 30, 200, 700]),
        max_size=9,
    ),
)
def test_first_intervals_go_that_the_loop_takes(rating, sizes):
    intervals = np.repeat([*sizes], [*sizes.values()]).astype(np.int64)
    gone = unusual_first_intervals(intervals, np.full(len(intervals), rating))
    expected = plain_protocol.outlier_intervals(intervals.tolist(), rating)
    np.testing.assert_array_equal(gone, np.isin(intervals, [*expected]))


COLUMNS = ("log_row", "nth_review", "lapses", "last_rating", "recalls")


@pytest.mark.parametrize("same_day", [False, True])
def test_histories_and_candidates_are_those_of_the_public_protocol(make_log, same_day):
    log = make_log(cards=80)
    public = SrsBenchmark()(log, same_day=same_day)
    tested = np.concatenate([fold.test for fold in public.folds])
    used = np.r_[public.folds[0].train, tested]
    n = len(used) - 10
    for protocol, scored, folds, is_warm in (
        (SrsBenchmark(refits=6), tested, 6, True),
        (SrsBenchmark(refits=10_000), tested, len(tested), True),
        (SrsBenchmark(refits=20, warm_start=False), tested, 20, False),
        (Prequential(first=10, every=30), used[10:], -(-n // 30), True),
        (Prequential(first=10, every=1, most=7), used[10:], 7, True),
        (Prequential(first=10, every=29, most=(n - 1) // 29), used[10:], (n - 1) // 29, True),
        (Prequential(first=len(used) - 1, warm_start=False), used[-1:], 1, False),
    ):
        task = protocol(log, same_day=same_day)
        for column in COLUMNS:
            np.testing.assert_array_equal(getattr(task, column), getattr(public, column))
        np.testing.assert_array_equal(task.reviews.elapsed, public.reviews.elapsed)
        np.testing.assert_array_equal(np.concatenate([fold.test for fold in task.folds]), scored)
        for fold in task.folds:
            np.testing.assert_array_equal(fold.train, used[used < fold.test[0]])
        sizes = [len(fold.test) for fold in task.folds]
        if getattr(protocol, "every", None) == 30:
            assert sizes[:-1] == [30] * (folds - 1)
        else:  # the larger ones first
            assert sizes == sorted(sizes, reverse=True)
            assert sizes[0] - sizes[-1] <= 1
        assert ([fold.number for fold in task.folds], task.warm_start) == ([*range(folds)], is_warm)
    assert not public.warm_start
    with pytest.raises(FitSkipped):
        Prequential(first=len(used))(log, same_day=same_day)


BASES = [SrsBenchmark(), SrsBenchmark(20), Prequential(first=30, every=10)]
BASES += [SrsBenchmarkSecs(), SrsBenchmarkEqualised()]


@pytest.mark.parametrize("same_day", [False, True])
@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
def test_the_rows_before_the_first_scored_one_are_divided_in_time_and_no_other_is_seen(
    make_log, base, same_day
):
    log = timed(make_log(cards=80))
    of_base = base(log, same_day=same_day)
    first_scored = min(fold.test[0] for fold in of_base.folds)
    before = of_base.folds[0].train
    for share in (0.01, 0.5, 0.8, 0.99):
        task = Validation(base, share=share)(log, same_day=same_day)
        (fold,) = task.folds
        np.testing.assert_array_equal([*fold.train, *fold.test], before)
        assert len(fold.train) == np.clip(round(share * len(before)), 1, len(before) - 1)
        for column in COLUMNS:
            of_log = getattr(of_base, column)[:first_scored]
            np.testing.assert_array_equal(getattr(task, column), of_log)
        assert (len(task.reviews), task.warm_start) == (first_scored, False)


def test_one_row_to_learn_from_cannot_be_divided(make_log):
    with pytest.raises(FitSkipped):
        Validation(Prequential(first=1, every=9))(make_log(cards=80), same_day=True)
    (fold,) = Validation(Prequential(first=2, every=9))(make_log(cards=80), same_day=True).folds
    assert (len(fold.train), len(fold.test)) == (1, 1)

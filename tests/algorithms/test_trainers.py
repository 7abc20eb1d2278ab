"""Two ways to train FSRS: from second reviews alone, against scipy, and by the Rust optimiser."""

import itertools
import math
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_logs import few

from srs_eval.algorithms.fsrs import fsrs_rs
from srs_eval.algorithms.fsrs.fsrs_rs import FsrsRs
from srs_eval.algorithms.fsrs.initial_stability import _filled, _in_order, initial_stabilities
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import ConfigError, FitError, FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark

DEFAULTS = (0.4, 1.2, 3.2, 15.7)


def found(rows, **options):
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return initial_stabilities(*columns, shortest=0.01, **options)


def plain_loss(stability, rows, default, decay, mean_recall, smoothed):
    """What the step minimises for one rating, as the specification puts it."""
    total = 0.0
    for day in sorted({elapsed for _, elapsed, _ in rows}):
        outcomes = [recalled for _, elapsed, recalled in rows if elapsed == day]
        n, q = len(outcomes), sum(outcomes) / len(outcomes)
        if smoothed:
            q = (q * n + mean_recall) / (n + 1)
        p = (1 + (0.9 ** (-1 / decay) - 1) * day / stability) ** -decay
        total -= n * (q * math.log(p) + (1 - q) * math.log1p(-p))
    return total + abs(stability - default) / 16 * smoothed


WHOLE_DAYS = st.tuples(st.integers(1, 60).map(float), st.booleans())
FRACTIONS = st.tuples(st.floats(0.001, 60), st.booleans())


@few(40)
@given(
    data=st.data(),
    smoothed=st.booleans(),
    rating=st.integers(1, 4),
    decay=st.sampled_from([1.0, 0.5, 0.1542]),
    mean_recall=st.floats(0.001, 0.999),
    # Far from the outcomes there are two local minima: near the default, and near the outcomes.
    default=st.sampled_from([0.4, 3.2, 60.0]),
)
def test_no_stability_fits_better(data, smoothed, rating, decay, mean_recall, default):
    outcomes = data.draw(st.lists(WHOLE_DAYS if smoothed else FRACTIONS, min_size=1, max_size=30))
    rows = [(rating, *outcome) for outcome in outcomes]

    def loss(stability):
        return plain_loss(stability, rows, default, decay, mean_recall, smoothed)

    options = {"smoothed": smoothed, "decay": decay, "mean_recall": mean_recall}
    stability = found(rows, defaults=(default,) * 4, **options)[rating - 1]
    least = min(map(loss, [*np.geomspace(0.01, 100, 1500), max(default, 0.01)]))
    assert 0.01 <= stability <= 100
    assert loss(stability) <= least + 1e-9 * (1 + least)


def test_a_second_review_in_no_time_is_refused():
    options = {"smoothed": True, "decay": 0.5, "mean_recall": 0.85, "defaults": DEFAULTS}
    with pytest.raises(ValueError, match=r"after 0\.0 days"):
        found([(3, 0.0, True), (3, 1.0, True)], **options)


@pytest.mark.parametrize(
    ("given", "counts", "ordered"),
    [
        ((1, 2, 3, 4), (9, 9, 9, 9), (1, 2, 3, 4)),
        ((5, 2, 6, 7), (9, 8, 1, 1), (5, 5, 6, 7)),
        ((5, 2, 6, 7), (8, 9, 1, 1), (2, 2, 6, 7)),
        # Of equals, the value of the larger rating stays.
        ((5, 2, 6, 7), (8, 8, 1, 1), (2, 2, 6, 7)),
        # 1 and 2 give 5 5; then 2 and 3 give 3 3; then 1 and 3 give 3 to the rarer 1.
        ((5, 2, 3, 7), (5, 4, 6, 1), (3, 3, 3, 7)),
        # Neighbours first: 3 and 4 agree on 4, which then is fine with 2.
        ((1, 3, 9, 4), (1, 2, 3, 4), (1, 3, 4, 4)),
        # 3 moves 2 below 1, and then gives way to 1 itself: the rules leave that as it is.
        ((5, 6, 3, 7), (9, 1, 5, 1), (5, 3, 5, 7)),
        ((8, None, 9, 5), (9, 0, 3, 2), (8, None, 9, 9)),
        ((5, None, None, 2), (1, 0, 0, 3), (2, None, None, 2)),
    ],
)
def test_a_larger_first_rating_has_no_smaller_stability(given, counts, ordered):
    known = {rating: value for rating, value in enumerate(given, 1) if value is not None}
    kept = {rating: value for rating, value in enumerate(ordered, 1) if value is not None}
    assert _in_order(known, np.array([0, *counts])) == kept


@pytest.mark.parametrize(
    "known", [c for n in (1, 2, 3) for c in itertools.combinations(range(4), n)]
)
def test_ratings_that_nobody_gave_are_filled_in(known):
    given = dict(zip(known, (0.6, 1.1, 9.0), strict=False))
    filled = _filled({place + 1: value for place, value in given.items()}, DEFAULTS)
    four = np.array([filled[rating] for rating in (1, 2, 3, 4)])
    assert {place: four[place] for place in known} == given
    if len(known) == 1:
        np.testing.assert_allclose(four / DEFAULTS, four[known[0]] / DEFAULTS[known[0]])
        return
    # As logarithms, Hard is 0.41 of the way from Good to Again, and Good 0.54 from Hard to Easy.
    again, hard, good, easy = np.log(four)
    rules = (good + 0.41 * (again - good), hard), (hard + 0.54 * (easy - hard), good)
    if len(known) == 3:  # the rule that has the fourth, or of both that for itself
        rules = rules[:1] if {0, 1} - set(known) else rules[1:]
    for expected, found in rules:
        assert found == pytest.approx(expected, abs=1e-12)


RNG = np.random.default_rng(0)
TASK = trial_task(same_day=True)
needs_package = pytest.mark.skipif(
    find_spec("fsrs_rs_python") is None,
    reason="needs the Rust optimiser: pip install 'srs-eval[rs]'",
)


@needs_package
def test_telling_it_the_cards_learns_nearly_as_well_with_other_numbers(josh_log):
    task = SrsBenchmark()(josh_log, same_day=True)
    reviews, fold = task.reviews, task.folds[-1]
    apart, by_card = (FsrsRs(card_ids=told).fit(reviews, fold.train, RNG) for told in (False, True))
    assert by_card.parameters != apart.parameters
    p, q = (model.predict(reviews, fold.test) for model in (apart, by_card))
    recalled = reviews.recalled[fold.test]
    assert abs(np.log(np.where(recalled, p / q, (1 - p) / (1 - q))).mean()) < 0.005


@needs_package
def test_same_day_reviews_are_histories_and_are_not_learned_from():
    reviews = TASK.reviews
    later = np.flatnonzero(reviews.elapsed_days > 0)
    every = np.flatnonzero(reviews.elapsed_days[: later[-1] + 1] >= 0)
    assert len(every) > len(later)
    parameters = FsrsRs().fit(reviews, later, RNG).parameters
    assert FsrsRs().fit(reviews, every, RNG).parameters == parameters
    with pytest.raises(FitSkipped):
        FsrsRs().fit(reviews, np.setdiff1d(every, later), RNG)


@needs_package
def test_an_item_is_a_training_review_after_the_card_s_reviews_before_it():
    package = pytest.importorskip("fsrs_rs_python")
    reviews = TASK.reviews
    rows = np.flatnonzero(reviews.elapsed_days > 0)[5::7]
    items = fsrs_rs.training_items(package, reviews, rows)
    assert len(items) == len(rows)
    for row, item in zip(rows, items, strict=True):
        upto = np.flatnonzero(reviews.card[: row + 1] == reviews.card[row])
        # The package shows what a review holds in its text alone.
        expected = [
            package.FSRSReview(int(reviews.rating[k]), max(0, int(reviews.elapsed_days[k])))
            for k in upto
        ]
        assert [str(review) for review in item.reviews] == [str(review) for review in expected]


# A panic in Rust arrives as an exception that is no `Exception`, of a class nobody can import.
PANIC = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})


class Returning:
    """Stands for the package, where what it returns is what matters."""

    FSRSReview = staticmethod(lambda rating, days: (rating, days))

    class FSRSItem:
        def __init__(self, reviews):
            self.reviews = reviews

        def long_term_review_cnt(self):
            return 1

    def __init__(self, outcome):
        self.outcome = outcome

    def FSRS(self, parameters):  # noqa: N802 - so it is called there
        return self

    def benchmark(self, items, card_ids):
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize(
    ("outcome", "error", "told"),
    [
        ([0.5] * 19, FitError, "19 numbers"),
        ([float("nan")] * 21, FitError, "nan"),
        (ValueError("InvalidInput"), FitError, "InvalidInput"),
        (PANIC("called `Option::unwrap()`"), FitError, "called"),
        (KeyboardInterrupt(), KeyboardInterrupt, ""),
    ],
)
def test_what_cannot_be_used_is_an_error_of_that_fit(monkeypatch, outcome, error, told):
    monkeypatch.setattr(fsrs_rs, "find_spec", lambda name: name)
    monkeypatch.setattr(fsrs_rs, "import_module", lambda name: Returning(outcome))
    with pytest.raises(error, match=f"^(fsrs_rs: )?user trial: .*{told}" if told else "^$"):
        FsrsRs().fit(TASK.reviews, TASK.folds[0].train, RNG)


def test_where_the_package_is_missing_or_cannot_be_loaded_it_says_so(monkeypatch):
    monkeypatch.setattr(fsrs_rs, "find_spec", lambda name: name)
    monkeypatch.setattr(fsrs_rs, "_PACKAGE", "no_such_package")
    with pytest.raises(ConfigError, match=r"cannot be imported .*no_such_package"):
        FsrsRs().fit(TASK.reviews, TASK.folds[0].train, RNG)
    monkeypatch.setattr(fsrs_rs, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"srs-eval\[rs\]"):
        FsrsRs()

"""FSRS-6 as the Rust optimiser trains it; test_josh.py has a published fit."""

from importlib.util import find_spec

import numpy as np
import pytest

from srs_eval.algorithms.fsrs import fsrs_rs
from srs_eval.algorithms.fsrs.fsrs_rs import FsrsRs
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import ConfigError, FitError, FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark

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
    losses = [
        -np.log(np.where(reviews.recalled[fold.test], p, 1 - p)).mean()
        for p in (model.predict(reviews, fold.test) for model in (apart, by_card))
    ]
    assert losses[0] == pytest.approx(losses[1], abs=0.005)


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
    def broken(name):
        raise ImportError("no such symbol")

    monkeypatch.setattr(fsrs_rs, "find_spec", lambda name: name)
    monkeypatch.setattr(fsrs_rs, "import_module", broken)
    with pytest.raises(ConfigError, match="no such symbol"):
        FsrsRs().fit(TASK.reviews, TASK.folds[0].train, RNG)
    monkeypatch.setattr(fsrs_rs, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"srs-eval\[rs\]"):
        FsrsRs()

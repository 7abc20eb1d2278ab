"""FSRS-6 as the Rust optimiser trains it."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from srs_eval.algorithms.fsrs import fsrs_rs
from srs_eval.algorithms.fsrs.fsrs_rs import FsrsRs
from srs_eval.checks.toy_log import trial_task
from srs_eval.errors import ConfigError, FitError, FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark

GOLDEN = Path(__file__).parents[1] / "golden/training_josh.json"
RNG = np.random.default_rng(0)
TASK = trial_task(same_day=True)

needs_package = pytest.mark.skipif(
    find_spec("fsrs_rs_python") is None,
    reason="needs the Rust optimiser: pip install 'srs-eval[rs]'",
)


@pytest.fixture(scope="module")
def josh(josh_log):
    return SrsBenchmark()(josh_log, same_day=True)


def log_loss(p, recalled):
    return float(-np.mean(np.log(np.where(recalled, p, 1 - p))))


def fitted(algorithm, task):
    """Model, predictions and outcomes of each fold."""
    for fold in task.folds:
        model = algorithm.fit(task.reviews, fold.train, RNG)
        yield model, model.predict(task.reviews, fold.test), task.reviews.recalled[fold.test]


@needs_package
def test_it_learns_the_published_parameters_of_one_real_user(josh):
    entries = json.loads(GOLDEN.read_text())["algorithms"]
    golden = next(entry for entry in entries if entry["algorithm"] == "FSRS-rs")
    folds = list(fitted(FsrsRs(), josh))
    for (model, p, recalled), expected in zip(folds, golden["folds"], strict=True):
        # Single precision: the 4 decimals were equal where this was written.
        np.testing.assert_allclose(model.parameters, expected["parameters"], atol=0.002)
        assert log_loss(p, recalled) == pytest.approx(expected["LogLoss"], abs=2e-5)
        np.testing.assert_allclose(p[:5], expected["first_predictions"], atol=2e-4)
    pooled = log_loss(*(np.concatenate([fold[part] for fold in folds]) for part in (1, 2)))
    assert pooled == pytest.approx(golden["pooled"]["LogLoss"], abs=1e-5)


@needs_package
def test_telling_it_the_cards_learns_nearly_as_well_with_other_numbers(josh):
    last = replace(josh, folds=josh.folds[-1:])
    [(apart, p_apart, recalled)] = fitted(FsrsRs(), last)
    [(by_card, p_by_card, _)] = fitted(FsrsRs(card_ids=True), last)
    assert by_card.parameters != apart.parameters
    assert log_loss(p_by_card, recalled) == pytest.approx(log_loss(p_apart, recalled), abs=0.005)


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

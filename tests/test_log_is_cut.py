"""What comes after the rows in question is not there for an algorithm to see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from invented import Logs, invented_log

from srs_eval.algorithms.baselines import Average
from srs_eval.evaluation.evaluate import EvaluateUser, UserEvaluation
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Reviews
from srs_eval.protocol.srs_benchmark import SrsBenchmark


@dataclass(frozen=True)
class Watched:
    """Notes how far a log reaches when it is given away."""

    seen: dict[str, list[Reviews]]
    parameters: tuple[float, ...] = ()

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        self.seen["predict"].append(reviews)
        return np.full(len(rows), 0.9)

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        self.seen["predict_at"].append(reviews)
        return np.full(elapsed.shape, 0.9)


@dataclass(frozen=True)
class Watching(Algorithm):
    seen: dict[str, list[Reviews]]
    draws: int = 0

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Watched:
        self.seen["fit"].append(reviews)
        rng.random(self.draws)
        return Watched(self.seen)


class WatchingOracle(Watching):
    sees_truth = True


def evaluated(algorithm: Algorithm) -> UserEvaluation:
    log = invented_log()
    log = replace(log, truth=np.full(len(log), 0.5), elapsed_seconds=np.full(len(log), 9.0))
    work = EvaluateUser(Logs({1: log}), algorithm, SrsBenchmark(), seed=1, curves=20)
    return work(1)


def predictions(algorithm: Algorithm) -> Any:
    return evaluated(algorithm).predictions


@pytest.fixture
def seen() -> dict[str, list[Reviews]]:
    return {"fit": [], "predict": [], "predict_at": []}


def test_nothing_is_seen_after_the_last_row_in_question(seen: dict[str, list[Reviews]]) -> None:
    evaluated(Watching(seen))
    task = SrsBenchmark()(invented_log(), same_day=False)
    trained, tested = zip(*((f.train[-1] + 1, f.test[-1] + 1) for f in task.folds), strict=True)
    lengths = {what: tuple(map(len, logs)) for what, logs in seen.items()}
    assert lengths == {"fit": trained, "predict": tested, "predict_at": tested}
    for log in seen["predict"]:
        assert log.elapsed_seconds is None
        np.testing.assert_array_equal(log.row, np.arange(len(log)))


def test_a_cut_shares_nothing_with_what_comes_later(seen: dict[str, list[Reviews]]) -> None:
    evaluated(Watching(seen))
    for log in seen["fit"] + seen["predict"]:
        for column in (log.card, log.day, log.rating, log.elapsed, log.elapsed_days, log.row):
            assert column.base is None
            assert column.flags.writeable


def test_an_algorithm_that_writes_into_its_log_changes_no_facts(
    seen: dict[str, list[Reviews]],
) -> None:
    @dataclass(frozen=True)
    class Scribbles(Watched):
        def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
            p = super().predict(reviews, rows)
            for column in (reviews.rating, reviews.day, reviews.card, reviews.elapsed_days):
                column[:] = 3
            return p

    class Scribbling(Watching):
        def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> Watched:
            return Scribbles(self.seen)

    plain, scribbled = (predictions(kind(seen)) for kind in (Watching, Scribbling))
    for name in ("card", "day", "recalled", "elapsed_days", "lapses", "row"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(scribbled, name))


def test_the_truth_is_for_oracles_only(seen: dict[str, list[Reviews]]) -> None:
    evaluated(Watching(seen))
    assert all(log.truth is None for logs in seen.values() for log in logs)
    evaluated(WatchingOracle(seen))
    assert seen["fit"][-1].truth is not None


def test_scored_rows_are_named_by_their_place_in_the_whole_log() -> None:
    log = invented_log()
    scored = predictions(Average())
    for name in ("card", "recalled", "day"):
        np.testing.assert_array_equal(getattr(scored, name), getattr(log, name)[scored.row])


def test_all_algorithms_are_asked_for_the_same_curves(seen: dict[str, list[Reviews]]) -> None:
    few, many = (predictions(Watching(seen, draws)).curves.row for draws in (0, 7))
    np.testing.assert_array_equal(few, many)


def test_a_source_that_breaks_is_a_failed_user_with_its_traceback() -> None:
    @dataclass(frozen=True)
    class Broken(Logs):
        def read(self, user):
            raise ValueError("no such disk")

    work = EvaluateUser(Broken({1: invented_log()}), Average(), SrsBenchmark(), seed=1, curves=0)
    (fit,) = work(1).fits
    assert (fit.status, fit.fold, fit.reason) == ("failed", -1, "ValueError: no such disk")
    assert "no such disk" in fit.traceback

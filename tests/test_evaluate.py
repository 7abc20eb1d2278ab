"""One user from a log to predictions: the bare loop, and what is kept of every failure."""

import dataclasses
import zlib

import numpy as np
import plain_protocol
import pytest
from invented import Ends, Logs, Told

from srs_eval.algorithms.algorithm import Algorithm, Learned
from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.online import MovingAverage
from srs_eval.errors import FitError, FitSkipped, ReviewLogError
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog
from srs_eval.evaluation.fits import Fit
from srs_eval.metrics.predictions import PREDICTION_COLUMNS
from srs_eval.protocol.srs_benchmark import SrsBenchmark


class Curve(Told):
    """A model with a given forgetting curve."""

    def __init__(self, curve, p=0.5):
        super().__init__(p)
        object.__setattr__(self, "curve", curve)

    def predict_at(self, reviews, rows, elapsed):
        return self.curve(elapsed)


class Draws(Algorithm):
    """Predictions and curves are random, in single precision."""

    same_day = True

    def fit(self, reviews, rows, rng):
        return Curve(lambda t: rng.random(t.shape), lambda rows: rng.random(len(rows), "f4"))


class Watching(Algorithm):
    """Notes the logs that it is given, and writes into those that it predicts, if asked to."""

    parameters = ()

    def __init__(self, *, scribbles=False):
        self.seen, self.scribbles = {"fit": [], "predict": [], "predict_at": []}, scribbles

    def fit(self, reviews, rows, rng):
        self.seen["fit"].append(reviews)
        return self

    def predict(self, reviews, rows):
        self.seen["predict"].append(reviews)
        for name in ("rating", "day", "card", "elapsed_days") if self.scribbles else ():
            getattr(reviews, name)[:] = 3
        return np.full(len(rows), 0.9)

    def predict_at(self, reviews, rows, elapsed):
        self.seen["predict_at"].append(reviews)
        return np.full(elapsed.shape, 0.9)


def evaluate(algorithm, source, *, curves=40, seed=0, **ticking):
    work = EvaluateUser(source, algorithm, SrsBenchmark(), seed=seed, curves=curves)
    return work(source.users()[0], **ticking)


@pytest.fixture
def one(logs_of):
    return logs_of(1)


@pytest.mark.parametrize("algorithm", [MovingAverage(), Draws()])
def test_it_predicts_and_records_what_the_bare_loop_does(logs_of, algorithm):
    source, seed = logs_of(7), 5
    task = SrsBenchmark()(source.read(7), same_day=algorithm.same_day)
    reviews, p, fits, ticks = task.reviews, [], [], []
    for fold in task.folds:
        rng = np.random.default_rng([seed, zlib.crc32(b"7"), fold.number])
        model = algorithm.fit(reviews, fold.train, rng)
        p.append(model.predict(reviews, fold.test))
        parameters = tuple(model.parameters)
        fits.append(Fit(7, fold.number, "ok", "", 0.0, len(fold.train), len(fold.test), parameters))
    result = evaluate(algorithm, source, seed=seed, tick=lambda: ticks.append(1))
    found, log = result.predictions, result.log
    assert [dataclasses.replace(fit, seconds=0.0) for fit in result.fits] == fits
    assert len(ticks) == 5
    assert (log.reviews, log.left_out) == (len(source.read(7)), {})
    assert log.fingerprint != evaluate(Average(), logs_of(2)).log.fingerprint
    rows = np.concatenate([fold.test for fold in task.folds])
    fold = np.repeat(np.arange(5), [len(fold.test) for fold in task.folds])
    expected = {"user": rows * 0, "p": np.concatenate(p), "row": task.log_row[rows], "fold": fold}
    for name in set(PREDICTION_COLUMNS) - set(expected):
        expected[name] = getattr(task, name, getattr(reviews, name, None))[rows]
    for name, column in expected.items():
        np.testing.assert_array_equal(getattr(found, name), column, name)
    assert (found.users, found.p.dtype) == ((7,), p[0].dtype)
    assert (found.curves is None) == isinstance(algorithm, MovingAverage)
    assert evaluate(algorithm, source, curves=0).predictions.curves is None


@pytest.mark.parametrize("algorithm", [Average(), Fsrs6(fit="s0")])
def test_a_fit_to_everything_learns_from_all_rows_that_are_scored_or_learned(one, algorithm):
    log, same_day, protocol = one.read(1), algorithm.same_day, SrsBenchmark()
    task = protocol(log, same_day=same_day)
    rows = np.concatenate([task.folds[0].train, *(fold.test for fold in task.folds)])
    rng = np.random.default_rng((0, zlib.crc32(b"1"), len(task.folds)))
    expected = algorithm.fit(task.reviews, rows, rng).parameters
    found = EvaluateUser(one, algorithm, protocol, seed=0, curves=0).fit_to_everything(1)
    assert (found.fit.status, found.fit.fold) == ("ok", 5)
    assert found.fit.n_train == len(plain_protocol.scored_rows(log, short=same_day))
    assert found.fit.parameters == tuple(expected) == tuple(found.model.parameters)


@pytest.mark.parametrize("error", [ReviewLogError("a.csv", ["row 3: 7"]), ValueError("row 3: 7")])
def test_a_log_that_cannot_be_read_is_a_failed_user(one, error):
    class Unreadable(Logs):
        def read(self, user):
            raise error

    result = evaluate(Average(), Unreadable(one.logs))
    (fit,) = result.fits
    assert (fit.status, fit.fold, result.predictions) == ("failed", -1, None)
    assert "row 3: 7" in fit.reason
    assert ("row 3: 7" in fit.traceback) == isinstance(error, ValueError)
    assert result.log == ReviewLog()


def test_a_log_with_nothing_to_score_is_a_skipped_user(logs_of, make_log):
    result = evaluate(Average(), logs_of(make_log(cards=1, user="ben")))
    (fit,) = result.fits
    assert (fit.status, fit.fold, result.predictions) == ("skipped", -1, None)
    assert "user ben: only 0 of" in fit.reason
    assert (result.log.reviews, bool(result.log.fingerprint)) == (8, True)


def ends(value):
    return Told(lambda rows: np.append(np.full(len(rows) - 1, 0.5), value))


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        (Told(lambda rows: np.full((len(rows), 1), 0.5)), "failed", "expected (12,)"),
        (Told(lambda rows: np.full(len(rows), 0.5, "f2")), "failed", "float32 or float64"),
        (ends(np.nan), "failed", "1 of 12 predictions are no probabilities, the first nan"),
        (ends(1.0001), "failed", "the first 1.0001 at review 219 of the log"),
        (ends(-0.1), "failed", "the first -0.1 at review 219 of the log"),
        (Told(lambda rows: np.ma.masked_less(ends(0).p(rows), 0.3)), "failed", "the first nan"),
        (Curve(lambda t: np.full(t.shape[1], 0.5)), "failed", "(4,), expected (8, 4)"),
        (Curve(lambda t: np.full(t.shape, 1.5)), "failed", "the first 1.5 at review 171"),
        (Curve(lambda t: np.ones(t.shape, int)), "failed", "float32 or float64"),
        (FitError("it diverged"), "failed", "user 1, fold 2: it diverged"),
        (FitError("user 1, fold 2 is NaN"), "failed", "user 1, fold 2 is NaN"),
        (Told(parameters=("high", "low")), "failed", "ValueError: "),
        (MemoryError("full"), "failed", "MemoryError: full"),
        (FitSkipped("too few"), "skipped", "too few"),
        (Told(learned=Learned(note="too few", fallback=True)), "fallback", "too few"),
        (Told(learned=Learned(note="stopped early")), "ok", "stopped early"),
        (Told(learned=[1.0]), "ok", ""),  # an attribute of that name
        (Told(lambda rows: np.arange(len(rows)) % 2.0), "ok", ""),  # never, and always
    ],
)
def test_what_comes_of_a_fit_is_on_record_and_other_folds_are_kept(one, outcome, status, reason):
    result = evaluate(Ends(outcome, fold=2), one)
    fit = result.fits[2]
    assert [each.status for each in result.fits] == ["ok", "ok", status, "ok", "ok"]
    assert reason in fit.reason
    assert fit.reason.count("user 1") <= 1
    assert ("Traceback" in fit.traceback) == reason.startswith(("ValueError", "MemoryError"))
    kept = [0, 1, 2, 3, 4] if fit.predicts else [0, 1, 3, 4]
    assert np.unique(result.predictions.fold).tolist() == kept
    assert fit.predicts or evaluate(Ends(outcome), one).predictions is None


@pytest.mark.parametrize("wanted", [42, 10_000])
def test_every_algorithm_is_asked_for_the_same_forgetting_curves(one, wanted):
    task = SrsBenchmark()(one.read(1), same_day=False)
    rows = []
    for fold, size in zip(task.folds, (8, 8, 9, 8, 9), strict=True):
        drawn = np.random.default_rng((0, zlib.crc32(b"1"), fold.number, 1))
        size = min(len(fold.test), max(size, wanted // 5))
        rows += np.sort(task.log_row[drawn.choice(fold.test, size, replace=False)]).tolist()
    drawing = Ends(Curve(lambda elapsed: np.full(elapsed.shape, 0.5)))
    for algorithm in (Fsrs6(fit="default"), Constant(), drawing):
        curves = evaluate(algorithm, one, curves=wanted).predictions.curves
        assert curves.row.tolist() == rows


def test_forgetting_curves_are_at_the_intervals_of_reviews_and_pass_through_predictions(one):
    predictions = evaluate(Fsrs6(fit="default"), one).predictions
    curves = predictions.curves
    present = ~np.isnan(curves.elapsed)
    assert (curves.weight[~present] == 0).all()
    assert np.isnan(curves.p[~present]).all()
    times, counts = np.unique(predictions.elapsed_days, return_counts=True)
    for number, here in enumerate(present):
        np.testing.assert_array_equal(curves.elapsed[number, here], times)
        np.testing.assert_allclose(curves.weight[number, here], counts / counts.sum())
        is_mine = predictions.row == curves.row[number]
        (at,) = np.flatnonzero(curves.elapsed[number] == predictions.elapsed_days[is_mine])
        assert curves.p[number, at] == pytest.approx(predictions.p[is_mine][0], abs=1e-9)


@pytest.fixture
def timed(make_log, logs_of):
    """A log with all that a log may have."""
    log = make_log()
    columns = {"truth": np.full(len(log), 0.5), "elapsed_seconds": np.full(len(log), 9.0)}
    return logs_of(dataclasses.replace(log, **columns))


def test_nothing_is_seen_after_the_last_row_in_question_nor_the_truth(timed):
    algorithm, oracle = Watching(), Watching()
    evaluate(algorithm, timed)
    task = SrsBenchmark()(timed.read(1), same_day=False)
    trained, tested = zip(*((f.train[-1] + 1, f.test[-1] + 1) for f in task.folds), strict=True)
    lengths = {what: tuple(map(len, logs)) for what, logs in algorithm.seen.items()}
    assert lengths == {"fit": trained, "predict": tested, "predict_at": tested}
    for log in algorithm.seen["fit"] + algorithm.seen["predict"]:
        assert (log.truth, log.elapsed_seconds) == (None, None)
        np.testing.assert_array_equal(log.row, np.arange(len(log)))
        for column in (log.card, log.day, log.rating, log.elapsed, log.elapsed_days, log.row):
            assert column.base is None  # a view could be widened
            assert column.flags.writeable
    oracle.sees_truth = True
    evaluate(oracle, timed)
    assert oracle.seen["fit"][-1].truth is not None


def test_an_algorithm_that_writes_into_its_log_changes_no_facts(timed):
    both = (Watching(scribbles=scribbles) for scribbles in (False, True))
    plain, scribbled = (evaluate(algorithm, timed).predictions for algorithm in both)
    for name in PREDICTION_COLUMNS:
        np.testing.assert_array_equal(getattr(plain, name), getattr(scribbled, name))

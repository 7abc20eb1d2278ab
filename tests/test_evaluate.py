"""One user from a log to predictions and scores, and what is kept of every failure."""

import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from unittest.mock import ANY

import numpy as np
import pytest
from invented import Ends, Logs, Told
from metric_functions import METRIC, predicted
from offenders import Learns, SharesOneArrayAmongItsModels, WritesIntoWhatItGets
from saved import assert_same, run_of, setup_of
from threadpoolctl import threadpool_info

from srs_eval.algorithms.algorithm import Algorithm, Learned
from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.online import MovingAverage
from srs_eval.data.reviews import reviews_fingerprint
from srs_eval.errors import FitError, FitSkipped, ReviewLogError
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog
from srs_eval.evaluation.fits import Fit
from srs_eval.evaluation.scoring import summarise_users
from srs_eval.metrics.bootstrap import cluster_intervals
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.predictions import PREDICTION_COLUMNS, concatenate, rows_fingerprint
from srs_eval.protocol.prequential import Prequential
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
    """Notes the logs that it is given."""

    parameters = ()

    def __init__(self):
        self.seen = {"fit": [], "predict": [], "predict_at": []}

    def fit(self, reviews, rows, rng):
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        self.seen["fit"].append(reviews)
        return self

    def predict(self, reviews, rows):
        self.seen["predict"].append(reviews)
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
    assert [replace(fit, seconds=0.0) for fit in result.fits] == fits
    assert len(ticks) == 5
    assert (log.reviews, log.left_out) == (len(source.read(7)), {})
    assert log.fingerprint != evaluate(Average(), logs_of(2)).log.fingerprint
    learned = {"only learned from": len(task.folds[0].train)}
    assert (log.dropped, log.unscored) == (task.dropped, {**task.unscored, **learned})
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
    whole = EvaluateUser(source, algorithm, SrsBenchmark(), seed, 0).fit_to_everything(7)
    np.testing.assert_array_equal(whole.rows, [*task.folds[0].train, *rows])
    assert (whole.fit.fold, whole.fit.n_train, whole.fit.n_test) == (5, len(whole.rows), 0)


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
    work = EvaluateUser(Unreadable(one.logs), Average(), SrsBenchmark(), seed=0, curves=0)
    assert work.fit_to_everything(1).fit == replace(fit, traceback=ANY)


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
    assert ("Traceback" in fit.traceback) == reason.startswith(("ValueError", "MemoryError"))
    kept = [0, 1, 2, 3, 4] if fit.predicts else [0, 1, 3, 4]
    assert np.unique(result.predictions.fold).tolist() == kept
    assert fit.predicts or evaluate(Ends(outcome), one).predictions is None


def test_forgetting_curves_are_at_the_intervals_of_reviews_and_pass_through_predictions(one):
    few, curves = (
        evaluate(Fsrs6(fit="default"), one, curves=n).predictions.curves for n in (7, 40)
    )
    assert np.bincount(few.fold).tolist() == [1, 1, 2, 1, 2]
    assert (len({*curves.row}), *np.bincount(curves.fold)) == (40, 8, 8, 8, 8, 8)
    predictions = evaluate(Fsrs6(fit="default"), one, curves=0).predictions
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


def test_nothing_is_seen_after_the_last_row_in_question_nor_the_truth(logs_of, make_log):
    log, algorithm, oracle = make_log(), Watching(), Watching()
    columns = {"truth": np.full(len(log), 0.5), "elapsed_seconds": np.full(len(log), 9.0)}
    timed = logs_of(replace(log, **columns))
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
    unlearned = replace(task, folds=[replace(task.folds[0], train=task.folds[0].train[:0])])
    EvaluateUser(timed, algorithm, lambda *_, **__: unlearned, seed=0, curves=0)(1)
    assert len(algorithm.seen["fit"][-1]) == 0
    oracle.sees_truth = True
    EvaluateUser(timed, oracle, SrsBenchmark(), seed=0, curves=0).fit_to_everything(1)
    assert oracle.seen["fit"][-1].truth is not None


PANEL = Panel([METRIC[name] for name in ("log_loss", "brier", "auc", "rmse_bins")])


@pytest.fixture
def scored(logs_of, tmp_path):
    def run(algorithm, *users):
        folder = Path(mkdtemp(dir=tmp_path))
        return run_of(setup_of(algorithm, logs_of(*users), PANEL), folder)

    return run


def test_means_over_reviews_follow_from_the_scores_of_users_without_pooling(scored):
    result = scored(Fsrs6(fit="default"), 1, 2, 3, 4, 5)
    means = Panel([*PANEL], pooled=False)
    unpooled = summarise_users(result.by_user, means, lambda: pytest.fail("not needed")).metrics
    for metric in PANEL:
        summary, found = result.facts.metrics[metric.name], unpooled[metric.name].pooled
        assert summary.pooled_lo < summary.pooled < summary.pooled_hi
        expected = summary.pooled if metric.is_mean else np.nan
        assert found == pytest.approx(expected, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize(
    ("fold", "end", "status"),
    [
        (1, Told(0.9, learned=Learned(fallback=True)), "fallback"),
        (3, FitError("it diverged"), "failed"),
        (0, FitSkipped("too few"), "skipped"),
    ],
)
def test_a_user_without_one_fold_is_on_record_but_not_in_the_means(scored, fold, end, status):
    result = scored(Ends(end, users=[2], fold=fold), 1, 2, 3)
    assert Counter(fit.status for fit in result.fits()) == {status: 1, "ok": 14}
    assert getattr(result.facts, status) == 1
    is_missing = np.isnan(result.by_user.values).all(axis=1)
    assert result.by_user.users == (1, 2, 3)
    assert is_missing.tolist() == [False, status != "fallback", False]
    assert (result.by_user.reviews == 0).tolist() == is_missing.tolist()
    without = scored(Average(), 1, 3)
    assert result.facts.users == 3 - is_missing.sum()
    for name in ("reviews", "forgotten", "metrics") if is_missing.any() else ():
        assert repr(getattr(result.facts, name)) == repr(getattr(without.facts, name))


def test_a_single_user_gets_intervals_over_cards_also_beside_one_skipped_altogether(
    scored, make_log
):
    result = scored(Fsrs6(fit="default"), 1, make_log(user=2, cards=1))
    assert (result.by_user.users, result.facts.skipped) == ((1,), 1)
    assert result.facts.interval_over == "cards and days"
    expected = cluster_intervals(PANEL, result.predictions(1))
    for name, summary in result.facts.metrics.items():
        assert (summary.lo, summary.hi) == expected[name]
        assert summary.mean_users == summary.mean_reviews == summary.pooled
    # Over cards one left of two would look more certain than the failure of the other allows.
    result = scored(Ends(FitError("no"), users=[2], fold=None), 1, 2)
    assert result.facts.interval_over == "users"
    assert np.isnan(result.facts.metrics["log_loss"].lo)
    assert not np.isnan(result.facts.metrics["log_loss"].mean_users)


@pytest.mark.parametrize("protocol", [SrsBenchmark(refits=20), Prequential(first=20, every=20)])
@pytest.mark.parametrize("kind", [SharesOneArrayAmongItsModels, WritesIntoWhatItGets])
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


@pytest.mark.parametrize("rows", [(1, 2, 3, 4, 5, 6, 7), (6, 1, 7, 4, 3, 2, 5)])
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

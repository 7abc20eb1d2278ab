"""One user from a log to predictions: the bare loop, and what is kept of every failure."""

import dataclasses
import re
import zlib
from dataclasses import dataclass

import numpy as np
import plain_protocol
import pytest

from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import FitError, FitSkipped, ReviewLogError
from srs_eval.evaluation.evaluate import EvaluateUser, ReviewLog
from srs_eval.nouns import PREDICTION_COLUMNS, Algorithm, Learned, WarmStarting
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.refit import SrsBenchmarkRefit
from srs_eval.protocol.srs_benchmark import SrsBenchmark


@dataclass(frozen=True)
class Told:
    """A model that predicts what it was told to, and tells how it was fitted."""

    p: object = 0.5
    parameters: object = ()
    learned: object = None

    def predict(self, reviews, rows):
        return self.p(rows) if callable(self.p) else np.full(len(rows), self.p)


class Tells:
    """An algorithm that returns a given model, or raises a given error, in one fold or all."""

    same_day = False
    when = "previous_review"
    sees_truth = False

    def __init__(self, outcome, *, fold=None):
        self.outcome, self.fold, self.fits = outcome, fold, -1

    def fit(self, reviews, rows, rng):
        self.fits += 1
        if self.fold is not None and self.fits != self.fold:
            return Told()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Draws:
    """An algorithm whose predictions are random."""

    same_day = True
    when = "previous_review"
    sees_truth = False

    def fit(self, reviews, rows, rng):
        return Told(lambda tested: rng.random(len(tested)))


class Curve(Told):
    """A model with a given forgetting curve."""

    def __init__(self, curve):
        super().__init__()
        object.__setattr__(self, "curve", curve)

    def predict_at(self, reviews, rows, elapsed):
        return self.curve(elapsed)


class Continues(WarmStarting):
    """Notes how each of its models was learned; the given fits end in something odd."""

    def __init__(self, odd=None, *, at=()):
        self.odd, self.at, self.calls = odd, at, []

    def fit(self, reviews, rows, rng):
        return self.noted(("fit", len(reviews), len(rows), rng.random()))

    def refit(self, reviews, rows, rng, previous):
        assert previous is self.model
        return self.noted(("refit", len(reviews), len(rows), rng.random()))

    def noted(self, call):
        self.calls.append(call)
        is_odd = len(self.calls) - 1 in self.at
        if is_odd and isinstance(self.odd, Exception):
            raise self.odd
        self.model = self.odd if is_odd else Told(parameters=[0.0] * len(self.calls))
        return self.model


class Unreadable:
    name = location = "broken"

    def users(self):
        return [1]

    def read(self, user):
        raise ReviewLogError("broken.csv", ["row 3, rating: 7"])


@pytest.fixture
def evaluate(logs_of):
    def run(algorithm, *, users=(1,), curves=40, seed=0, source=None, tick=None, protocol=None):
        source = source or logs_of(*users)
        protocol = protocol or SrsBenchmark()
        work = EvaluateUser(source, algorithm, protocol, seed=seed, curves=curves)
        made = [work(user, tick) if tick else work(user) for user in source.users()]
        return made[0] if len(made) == 1 else made

    return run


@pytest.mark.parametrize("algorithm", [MovingAverage(), Draws()])
def test_it_predicts_what_the_bare_loop_predicts(evaluate, logs_of, algorithm):
    source, protocol, seed = logs_of(7), SrsBenchmark(), 5
    expected = []
    for user in source.users():
        task = protocol(source.read(user), same_day=algorithm.same_day)
        for fold in task.folds:
            rng = np.random.default_rng([seed, zlib.crc32(b"7"), fold.number])
            model = algorithm.fit(task.reviews, fold.train, rng)
            expected.append(model.predict(task.reviews, fold.test))
    found = evaluate(algorithm, source=source, seed=seed)
    np.testing.assert_array_equal(found.predictions.p, np.concatenate(expected))


@pytest.mark.parametrize("same_day", [False, True])
def test_every_column_of_predictions_equals_a_plain_loop(evaluate, make_log, logs_of, same_day):
    log = make_log(user="ann", cards=90, same_day=0.3, recall=0.8)
    last, seen = [], {}
    for card, rating in zip(log.card.tolist(), log.rating.tolist(), strict=True):
        last.append(seen.get(card, 0))
        seen[card] = rating
    scored, rates = [], []
    folds = plain_protocol.folds(plain_protocol.scored_rows(log, short=same_day))
    for number, (train, test) in enumerate(folds):
        scored += [(number, row) for row in test]
        rates += [sum(row["rating"] > 1 for row in train) / len(train)] * len(test)
    rows = [row["review_th"] - 1 for _, row in scored]
    expected = {
        "user": [0] * len(rows),
        "fold": [number for number, _ in scored],
        "row": rows,
        "card": log.card[rows].tolist(),
        "p": rates,
        "recalled": [row["rating"] > 1 for _, row in scored],
        "day": log.day[rows].tolist(),
        "elapsed_days": [row["elapsed"] for _, row in scored],
        "nth_review": [row["i"] for _, row in scored],
        "lapses": [row["lapses"] for _, row in scored],
        "last_rating": [last[row] for row in rows],
        "train_rate": rates,
    }
    assert {"user", *PREDICTION_COLUMNS} == set(expected)
    algorithm = type("OfThoseRows", (Average,), {"same_day": same_day})()
    found = evaluate(algorithm, source=logs_of(log)).predictions
    for name, column in expected.items():
        assert getattr(found, name).tolist() == pytest.approx(column, abs=1e-12), name
    assert len(set(rates)) == 5
    assert min(expected["lapses"]) == 0 < max(expected["lapses"])


def test_a_base_rate_is_not_known_where_training_reviews_are_all_alike(evaluate, logs_of, make_log):
    log = make_log(recall=1.0)
    late = np.flatnonzero(log.elapsed_days > 0)[-9:]
    log = dataclasses.replace(log, rating=np.where(np.isin(log.row, late), 1, log.rating))
    predictions = evaluate(Average(), source=logs_of(log)).predictions
    assert not predictions.recalled.all()
    assert np.isnan(predictions.train_rate).all()


@pytest.mark.parametrize("algorithm", [Average(), Fsrs6(fit="s0")])
def test_a_fit_to_everything_learns_from_all_rows_that_are_scored_or_learned(logs_of, algorithm):
    source, protocol = logs_of(1), SrsBenchmark()
    log, same_day = source.read(1), algorithm.same_day
    task = protocol(log, same_day=same_day)
    rows = np.concatenate([task.folds[0].train, *(fold.test for fold in task.folds)])
    rng = np.random.default_rng((0, zlib.crc32(b"1"), len(task.folds)))
    expected = algorithm.fit(task.reviews, rows, rng).parameters
    found = EvaluateUser(source, algorithm, protocol, seed=0, curves=0).fit_to_everything(1)
    assert (found.fit.status, found.fit.fold) == ("ok", 5)
    assert found.fit.n_train == len(plain_protocol.scored_rows(log, short=same_day))
    assert found.fit.parameters == tuple(expected) == tuple(found.model.parameters)


def test_every_fit_is_on_record_with_its_parameters_and_sizes(evaluate, logs_of):
    source = logs_of(1)
    task = SrsBenchmark()(source.read(1), same_day=False)
    ticks = []
    fits = evaluate(Average(), source=source, tick=lambda: ticks.append(1)).fits
    assert [fit.fold for fit in fits] == [0, 1, 2, 3, 4]
    for fit, fold in zip(fits, task.folds, strict=True):
        assert (fit.user, fit.status, fit.reason) == (1, "ok", "")
        assert (fit.n_train, fit.n_test) == (len(fold.train), len(fold.test))
        assert fit.parameters == (task.reviews.recalled[fold.train].mean(),)
        assert fit.seconds >= 0
    assert len(ticks) == 5


WARM = SrsBenchmarkRefit(refits=8)
COLD = SrsBenchmarkRefit(refits=8, warm_start=False)


def test_each_fit_starts_from_the_one_before_where_the_protocol_refits_often(evaluate, logs_of):
    source = logs_of(1)
    task = WARM(source.read(1), same_day=False)
    algorithm = Continues()
    result = evaluate(algorithm, source=source, protocol=WARM)
    drawn = [np.random.default_rng([0, zlib.crc32(b"1"), number]).random() for number in range(8)]
    assert algorithm.calls == [
        ("refit" if fold.number else "fit", fold.train[-1] + 1, len(fold.train), number)
        for fold, number in zip(task.folds, drawn, strict=True)
    ]
    assert [len(fit.parameters) for fit in result.fits] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("protocol", [COLD, SrsBenchmark()])
def test_elsewhere_each_fit_starts_from_nothing(evaluate, protocol):
    algorithm = Continues()
    evaluate(algorithm, protocol=protocol)
    assert [how for how, *_ in algorithm.calls] == ["fit"] * protocol.folds


@pytest.mark.parametrize(
    "odd",
    [
        *(FitSkipped("too few"), FitError("no"), ZeroDivisionError()),
        *(Told(np.nan), Told(learned=Learned(fallback=True))),
    ],
)
def test_after_a_fit_that_did_not_work_the_next_starts_from_nothing(evaluate, odd):
    algorithm = Continues(odd, at=(0, 3, 4))
    fits = evaluate(algorithm, protocol=WARM).fits
    assert [fit.status == "ok" for fit in fits] == [n not in (0, 3, 4) for n in range(8)]
    how = ["fit", "fit", "refit", "refit", "fit", "fit", "refit", "refit"]
    assert [call[0] for call in algorithm.calls] == how


def test_each_user_starts_from_nothing(evaluate):
    algorithm = Continues()
    evaluate(algorithm, users=(1, 2), protocol=WARM)
    assert [call[0] for call in algorithm.calls].count("fit") == 2


def test_algorithms_that_cannot_start_from_a_fit_are_refitted_as_ever(evaluate):
    warm, cold = (evaluate(Average(), protocol=protocol) for protocol in (WARM, COLD))
    np.testing.assert_array_equal(warm.predictions.p, cold.predictions.p)
    assert len(warm.fits) == 8


def test_a_fold_without_training_rows_gets_an_empty_log_to_learn_from(evaluate):
    class FirstFoldUntrained(SrsBenchmark):
        def __call__(self, reviews, *, same_day):
            task = super().__call__(reviews, same_day=same_day)
            first, *others = task.folds
            empty = dataclasses.replace(first, train=first.train[:0])
            return dataclasses.replace(task, folds=(empty, *others))

    algorithm = Continues()
    fits = evaluate(algorithm, protocol=FirstFoldUntrained()).fits
    assert algorithm.calls[0][:3] == ("fit", 0, 0)
    assert (fits[0].status, fits[0].n_train) == ("ok", 0)


def test_facts_of_the_log_are_kept_without_the_log(evaluate, logs_of):
    source = logs_of(1)
    result = evaluate(Average(), source=source)
    assert (result.log.reviews, result.log.left_out) == (len(source.read(1)), {})
    assert result.log.fingerprint != evaluate(Average(), source=logs_of(2)).log.fingerprint


def test_a_log_that_cannot_be_read_is_a_failed_user(evaluate):
    result = evaluate(Average(), source=Unreadable())
    (fit,) = result.fits
    assert (fit.status, fit.fold, fit.traceback) == ("failed", -1, "")
    assert "row 3, rating: 7" in fit.reason
    assert result.predictions is None
    assert result.log == ReviewLog()


def test_a_log_with_nothing_to_score_is_a_skipped_user(evaluate, logs_of, make_log):
    result = evaluate(Average(), source=logs_of(make_log(cards=1, user="ben")))
    (fit,) = result.fits
    assert (fit.status, fit.fold) == ("skipped", -1)
    assert "user ben: only 0 of" in fit.reason
    assert result.predictions is None
    assert result.log.reviews == 8
    assert result.log.fingerprint


def ends(value):
    return lambda rows: np.append(np.full(len(rows) - 1, 0.5), value)


# What a fit returns or raises.
OUTCOMES = {
    "one prediction too many": Told(lambda rows: np.full(len(rows) + 1, 0.5)),
    "predictions in a column": Told(lambda rows: np.full((len(rows), 1), 0.5)),
    "one prediction for all": Told(lambda rows: 0.5),
    "whole numbers": Told(lambda rows: np.ones(len(rows), int)),
    "truths": Told(lambda rows: np.ones(len(rows), bool)),
    "half precision": Told(lambda rows: np.full(len(rows), 0.5, np.float16)),
    "NaN at the end": Told(ends(np.nan)),
    "above 1 at the end": Told(ends(1.0001)),
    "below 0 at the end": Told(ends(-0.1)),
    "masked at the end": Told(lambda rows: np.ma.masked_equal(ends(0.25)(rows), 0.25)),
    "never and always": Told(lambda rows: np.arange(len(rows)) % 2.0),
    "a curve of one row": Curve(lambda elapsed: np.full(elapsed.shape[1], 0.5)),
    "a curve above 1": Curve(lambda elapsed: np.full(elapsed.shape, 1.5)),
    "a curve of NaN": Curve(lambda elapsed: np.full(elapsed.shape, np.nan)),
    "a curve of whole numbers": Curve(lambda elapsed: np.ones(elapsed.shape, int)),
    "parameters that are text": Told(parameters=("high", "low")),
    "parameters that are one number": Told(parameters=3),
    "skipped": FitSkipped("too few"),
    "failed": FitError("it diverged"),
    "failed for a user": FitError("hlr: user 1: the loss is NaN"),
    "failed at a place": FitError("at user 1, fold 2 it is NaN"),
    "broken": ZeroDivisionError("oh"),
    "out of memory": MemoryError("full"),
    "a fallback": Told(learned=Learned(note="too few: defaults kept", fallback=True)),
    "a note": Told(learned=Learned(standard_errors=(0.5, np.float32(0.25)), note="not at the end")),
    "an attribute of that name": Told(learned=[1.0]),
}


def test_what_comes_of_a_fit_is_on_record_and_other_folds_are_kept(evaluate, golden_text):
    lines = []
    for name, outcome in OUTCOMES.items():
        result = evaluate(Tells(outcome, fold=2))
        fits, fit = result.fits, result.fits[2]
        assert [other.status for other in (*fits[:2], *fits[3:])] == ["ok"] * 4, name
        kept = [0, 1, 2, 3, 4] if fit.predicts else [0, 1, 3, 4]
        assert np.unique(result.predictions.fold).tolist() == kept, name
        assert fit.traceback == "" or "Traceback" in fit.traceback
        trace = ", with a traceback" * bool(fit.traceback)
        errors = f", standard errors {fit.standard_errors}" * bool(fit.standard_errors)
        lines.append(f"{name}\n  {fit.status}{trace}{errors}\n  {fit.reason}".rstrip())
    assert evaluate(Tells(FitError("no"))).predictions is None
    golden_text("outcomes_of_fits", "\n".join([*lines, ""]))


def test_missing_predictions_that_could_be_those_of_same_day_reviews_are_told_so(evaluate):
    class Later(Algorithm):
        same_day = True

        def fit(self, reviews, rows, rng):
            return self

        def predict(self, reviews, rows):
            return np.full(np.count_nonzero(reviews.elapsed_days[rows]), 0.5)

    source = SyntheticUsers(users=1, size_scale=0.02, max_reviews=600)
    (fit, *_) = evaluate(Later(), source=source, protocol=SrsBenchmarkSecs()).fits
    missing, expected = re.findall(r"shape \((\d+),\), expected \((\d+),\)", fit.reason)[0]
    assert f"{int(expected) - int(missing)} of these rows are same-day reviews" in fit.reason


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_precision_of_a_model_is_kept(evaluate, dtype):
    result = evaluate(Tells(Told(lambda rows: np.full(len(rows), 0.5, dtype))))
    assert result.predictions.p.dtype == dtype


def test_users_and_folds_and_seeds_draw_different_numbers(logs_of, make_log):
    """Two users with the same log and different names."""
    source = logs_of(make_log(user=1), make_log(user=2))

    def drawn(seed, order):
        work = EvaluateUser(source, Draws(), SrsBenchmark(), seed=seed, curves=0)
        return {user: work(user).predictions.p for user in order}

    first, again, other = drawn(0, [1, 2]), drawn(0, [2, 1]), drawn(1, [1, 2])
    np.testing.assert_array_equal(first[1], again[1])
    np.testing.assert_array_equal(first[2], again[2])
    assert not np.array_equal(first[1], first[2])
    assert not np.array_equal(first[1], other[1])
    fold = len(first[1]) // 5
    assert not np.array_equal(first[1][:fold], first[1][fold : 2 * fold])


@pytest.mark.parametrize("wanted", [7, 10_000])
def test_forgetting_curves_are_of_scored_reviews_and_not_too_many(evaluate, wanted):
    predictions = evaluate(Fsrs6(), curves=wanted).predictions
    curves = predictions.curves
    assert len(curves.p) == min(wanted, len(predictions))
    scored = set(zip(predictions.fold.tolist(), predictions.row.tolist(), strict=True))
    sampled = list(zip(curves.fold.tolist(), curves.row.tolist(), strict=True))
    assert len(set(sampled)) == len(sampled)
    assert set(sampled) <= scored


def test_forgetting_curves_are_at_the_intervals_of_the_scored_reviews(evaluate):
    predictions = evaluate(Fsrs6()).predictions
    curves = predictions.curves
    present = ~np.isnan(curves.elapsed)
    np.testing.assert_allclose(curves.weight.sum(axis=1), 1)
    assert (curves.weight[~present] == 0).all()
    assert np.isnan(curves.p[~present]).all()
    assert ((curves.p[present] > 0) & (curves.p[present] < 1)).all()
    times, counts = np.unique(predictions.elapsed_days, return_counts=True)
    for elapsed, weight, here in zip(curves.elapsed, curves.weight, present, strict=True):
        assert (np.diff(elapsed[here]) > 0).all()
        np.testing.assert_array_equal(elapsed[here], times)
        np.testing.assert_allclose(weight[here], counts / counts.sum())


def test_a_forgetting_curve_passes_through_the_prediction(evaluate):
    predictions = evaluate(Fsrs6(), curves=30).predictions
    curves = predictions.curves
    for fold, row, elapsed, p in zip(
        curves.fold, curves.row, curves.elapsed, curves.p, strict=True
    ):
        (mine,) = np.flatnonzero((predictions.fold == fold) & (predictions.row == row))
        (at,) = np.flatnonzero(elapsed == predictions.elapsed_days[mine])
        assert p[at] == pytest.approx(predictions.p[mine], abs=1e-9)


def test_without_a_forgetting_curve_or_a_wish_for_one_there_is_none(evaluate):
    assert evaluate(MovingAverage()).predictions.curves is None
    assert evaluate(Fsrs6(), curves=0).predictions.curves is None


def test_every_algorithm_is_asked_for_the_same_curves(evaluate, logs_of):
    source = logs_of(1)
    task = SrsBenchmark()(source.read(1), same_day=False)
    rows = []
    for fold in task.folds:
        drawn = np.random.default_rng((0, zlib.crc32(b"1"), fold.number, 1))
        rows += np.sort(task.log_row[drawn.choice(fold.test, 8, replace=False)]).tolist()
    drawing = Tells(Curve(lambda elapsed: np.full(elapsed.shape, 0.5)))
    for algorithm in (Fsrs6(fit="default"), Constant(), drawing):
        curves = evaluate(algorithm, source=source, curves=40).predictions.curves
        assert curves.row.tolist() == rows


def test_curves_do_not_change_predictions(evaluate):
    none, some = (evaluate(Draws(), curves=n).predictions.p for n in (0, 40))
    np.testing.assert_array_equal(none, some)

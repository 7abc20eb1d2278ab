"""Features of a session and the filter that weighs them, against plain loops over the log."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.baselines import Constant
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.sessions.answers import Answers
from srs_eval.algorithms.sessions.features import CARD, SESSION, SETS, SIBLINGS, Feature
from srs_eval.algorithms.sessions.forecast import Forecast
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.algorithms.sessions.walk import fitted_in_stages, learn_weights, walk
from srs_eval.errors import FitError, FitSkipped
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.tables import fits_table, read_fits


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(4)
    # Names say nothing: cards are known by when they came, decks by which cards are alike.
    names = rng.permutation(10**6)
    deck, card = names[REVIEWS.card % 3], names[3 + REVIEWS.card]
    # Ten cards have no note, the others one in three.
    note = np.where(REVIEWS.card < 30, names[50 + REVIEWS.card % 10], -1)
    reviews = replace(REVIEWS, deck=deck, card=card, note=note)
    z = np.where(reviews.elapsed > 0, rng.normal(1.5, 1.0, len(reviews)), 0.0)
    return Answers(reviews, z)


def running_mean(values, first, kept):
    mean = first
    for value in values:
        mean = kept * mean + (1 - kept) * value
    return mean


def run_of(outcomes, outcome):
    """Count how many of the last outcomes in a row are this one."""
    return next((n for n, other in enumerate(outcomes[::-1]) if other != outcome), len(outcomes))


def plain_features(answers, row):
    """The features of a review, each from the reviews before it."""
    log, p, now = answers.reviews, expit(answers.z[:row]), row
    cards = list(dict.fromkeys(log.card.tolist()))
    card = np.array([cards.index(name) for name in log.card[: row + 1]])
    day, deck, days = log.day[: row + 1], log.deck[: row + 1], log.elapsed_days[: row + 1]
    last_day = [max(day[:k][card[:k] == card[k]], default=-1) for k in range(row + 1)]
    recalled, rating = log.recalled[:row], log.rating[:row]
    time = np.log(np.minimum(log.duration_ms[:row], 120_000) / 1000 + 0.3)
    later = days[:row] > 0
    own, today = np.flatnonzero(card[:row] == card[now]), day[:row] == day[now]

    def bias(some, half_life=math.inf, prior=1.0):
        some = np.flatnonzero(some)
        w = 0.5 ** (np.arange(len(some))[::-1] / half_life)
        return w @ (recalled - p)[some] / (w @ (p * (1 - p))[some] + prior)

    def alike(*columns):
        return later & np.all([np.equal(c[:row], c[now]) for c in columns], axis=0)

    total = information = 0.0
    for other in set(card[:row][later]) - {card[now]}:
        k = np.flatnonzero(later & (card[:row] == other))[-1]
        w = math.exp(-abs(other - card[now]) / 5) * 0.5 ** ((day[now] - day[k]) / 3)
        w *= abs(other - card[now]) <= 15
        total, information = total + w * (recalled - p)[k], information + w * (p * (1 - p))[k]
    note = log.note[:row] if log.note[now] >= 0 else np.full(row, -9)
    siblings = np.flatnonzero((note == log.note[now]) & (card[:row] != card[now]))
    ago = day[now] - day[siblings[-1]] if len(siblings) else np.inf
    seen = {"today": 3.0 * (ago == 0), "earlier": 3 * 0.5 ** (ago / 3) * (ago > 0)}
    sign = 1 if len(siblings) and recalled[siblings[-1]] else -1
    last, n, known = own[-1], len(own), own[later[own]]
    since = own[own > known[-1]] if len(known) else own[1:]
    fails, of_day = (~recalled[since]).sum(), recalled[later & today]
    mean_of_card = running_mean(time[own[1:]], time[own[0]], 0.7)
    interval = days[known[-1]] if len(known) else 0
    before = day[day < day[now]]
    return {
        **{"bias": 1.0, "slope": answers.z[row], "recent": bias(later, 7, 0.3)},
        **{f"recent_{half_life}": bias(later, half_life) for half_life in (2, 5, 15, 50, 200)},
        "today": bias(alike(day)),
        "recent_all_15": bias(log.elapsed[:row] > 0, 15),
        "deck_30": bias(alike(deck), 30),
        "deck_today": bias(alike(deck, day)),
        "neighbours": total / (information + 0.5),
        "same_interval": bias(alike(days, day)),
        "same_last_day": bias(alike(np.array(last_day), day)),
        "fails": math.log1p(run_of(of_day, False)),  # noqa: FBT003
        "passes": math.log1p(run_of(of_day, True)) / 2,  # noqa: FBT003
        "tempo": time[-1] - running_mean(time, 2.0, 0.966),
        "agains": ((~recalled[today]).sum() + 0.5) / (today.sum() + 2) - 0.2,
        "pause": math.log(day[now] - before[-1]) if len(before) else 0.0,
        "last_time": time[last] - running_mean(time[: last + 1], 2.0, 0.966),
        "mean_time": mean_of_card - 2,
        "change_of_time": time[last] - mean_of_card,
        **{
            f"last_{name}": rating[last] == k
            for name, k in (("again", 1), ("hard", 2), ("easy", 4))
        },
        "again_before_last": n > 1 and rating[own[-2]] == 1,
        "reviews": math.log1p(n) - 1.5,
        "later_reviews": math.log1p(len(known)) - 1,
        "same_day_reviews": math.log1p(len(since)),
        "same_day_fails": math.log1p(fails),
        "successes": math.log1p(len(known)) - math.log1p(fails) - math.log1p(n) / 2 - 0.25,
        **{f"sibling_{when}": fresh for when, fresh in seen.items()},
        **{f"sibling_{when}_answer": sign * fresh for when, fresh in seen.items()},
        "interval": math.log1p(days[now]) / 2 - 1,
        "growth_of_interval": np.clip(math.log1p(days[now]) - math.log1p(interval), -3.0, 3.0),
    }


def test_features_are_those_of_a_plain_loop(answers):
    features = {**SETS["full"], **SETS["small"], **SIBLINGS}
    found = {name: feature(answers) for name, feature in features.items()}
    rows = np.flatnonzero(answers.later)
    assert len(rows) > 300
    some = rows[::35].tolist()
    # One of each kind of sibling, which are few.
    some += [row for name in SIBLINGS for row in rows[found[name][rows] > 0][-1:].tolist()]
    some += [row for name in SIBLINGS for row in rows[found[name][rows] < 0][-1:].tolist()]
    for row in some:
        expected = plain_features(answers, row)
        assert set(expected) == set(found)
        for name, value in expected.items():
            assert found[name][row] == pytest.approx(float(value), abs=1e-9), (name, row)


def test_weights_are_those_of_the_filter():
    rng = np.random.default_rng(2)
    x, z, y = rng.normal(size=(200, 3)), rng.normal(size=200), rng.random(200) < 0.7
    mean, width, drift = np.array([0.1, 0.0, -0.2]), np.array([0.02, 0.3, 0.01]), 0.01
    found = learn_weights(x, z, y, mean, width, drift)
    w, covariance = mean, np.diag(width)
    for k in range(200):
        np.testing.assert_allclose(found.path[k], w, atol=1e-10)
        p = expit(z[k] + w @ x[k])
        # One Newton step of the posterior, whose precision grows by the answer's information.
        precision = np.linalg.inv(covariance) + max(p * (1 - p), 0.02) * np.outer(x[k], x[k])
        after = np.linalg.inv(precision)
        w = w + after @ x[k] * (y[k] - p)
        covariance = after + drift * np.diag(width)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-10)
    np.testing.assert_allclose(found.standard_errors, np.sqrt(np.diag(covariance)))


def test_training_rows_are_predicted_by_fits_to_earlier_ones():
    seen = []

    @dataclass(frozen=True)
    class Recording(Constant):
        """An algorithm and its model."""

        same_day = True
        parameters = ()
        last: int = 0

        def fit(self, reviews, rows, rng):
            if len(rows) < 40:
                raise FitSkipped("too few training reviews")
            return Recording(last=int(rows[-1]))

        def predict(self, reviews, rows):
            seen.append((self.last, rows))
            return np.full(len(rows), 0.5)

    stages = fitted_in_stages(Recording(), REVIEWS, FOLD.train, np.random.default_rng(0))
    assert len(stages.models) > 2
    stages.log_odds(REVIEWS)
    for last, rows in seen:
        # What comes before the first fit is predicted by it, and not learned from.
        assert (rows[rows >= stages.begins[0]] > last).all()
    predicted = np.concatenate([rows for _, rows in seen])
    np.testing.assert_array_equal(predicted, np.flatnonzero(REVIEWS.elapsed > 0))


@pytest.mark.parametrize("every", ["review", "day"])
def test_predictions_are_those_of_the_weights_at_the_time(every):
    model = fitted(SessionFilter(Hlr(), features="small", trust=1, every=every))
    walked = walk(model.stages, model.prior, REVIEWS)
    expected = []
    for k, row in enumerate(walked.rows):
        same_day = walked.answers.day[walked.rows] == walked.answers.day[row]
        known = k if every == "review" else int(np.flatnonzero(same_day)[0])
        w = walked.weights.path[max(known - walked.first, 0)]
        expected.append(expit(walked.z[k] + walked.features[k] @ w))
    found = model.predict(REVIEWS, walked.rows)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_is_mixed_has_the_shares_of_its_evidence_half_of_it_dropped_at_each_fit():
    model = fitted(SessionFilter(Hlr(), trust=0.3))
    walked = walk(model.stages, model.prior, REVIEWS)
    z = walked.z + (walked.features * walked.live).sum(axis=1)
    p = expit([walked.z, z, 2 + 0.85 * (z - 2)])
    start = evidence = np.log([0.7, 0.15, 0.15])
    begins = set(np.searchsorted(walked.rows, model.stages.begins[1:]).tolist())
    expected = []
    for k, recalled in enumerate(REVIEWS.recalled[walked.rows]):
        if k in begins:
            evidence = start + (evidence - start) / 2
        expected.append(softmax(evidence) @ p[:, k])
        if k >= walked.first:
            evidence = evidence + np.log(p[:, k] if recalled else 1 - p[:, k])
            evidence = evidence - (evidence - start)[0]
    assert len(begins) > 2
    np.testing.assert_allclose(model.predict(REVIEWS, walked.rows), expected, rtol=1e-9)


@dataclass(frozen=True)
class EvenCard(Feature):
    """A feature as a plug-in writes it: recent answers on cards with the same last digit."""

    group = "digit"

    def __call__(self, answers):
        digit = answers.grouped(answers.reviews.card % 2)
        return answers.bias(10, digit, 1.0, answers.later)


class TooShort(Feature):
    def __call__(self, answers):
        return np.zeros(3)


def test_a_plug_in_adds_a_feature_for_each_review():
    plain, more = (
        fitted(SessionFilter(Hlr(), features="small", extra=extra))
        for extra in ({}, {"digit": EvenCard()})
    )
    assert len(more.parameters) == len(plain.parameters) + 1
    assert [found.name for found in more.learned.contributions][-1] == "digit"
    predicted, other = (model.predict(REVIEWS, FOLD.test) for model in (plain, more))
    assert (predicted != other).any()
    with pytest.raises(FitError, match="short"):
        fitted(SessionFilter(Hlr(), extra={"short": TooShort()}))
    # Few logs have every column that features read.
    bare = replace(REVIEWS, deck=None, duration_ms=None, elapsed_seconds=None)
    p = fitted(SessionFilter(Hlr()), bare).predict(bare, FOLD.test)
    assert ((p > 0) & (p < 1)).all()


def test_weights_errors_and_contributions_are_kept(logs_of):
    algorithm = SessionFilter(Hlr(), prior={"bias": 0.2})
    fit = EvaluateUser(logs_of("a"), algorithm, SrsBenchmark(), 0, curves=0)("a").fits[-1]
    assert len(fit.parameters) == len(fit.standard_errors) == len(SETS["full"])
    assert min(fit.standard_errors) > 0
    assert fit.parts[0].name == "base"
    groups = {feature.group for feature in SETS["full"].values()}
    assert {found.name for found in fit.contributions} == groups
    assert read_fits(fits_table([fit])) == (fit,)
    # Other models do not have the column.
    assert "contributions" not in fits_table([replace(fit, contributions=())]).column_names


def test_a_forecast_is_the_base_moved_by_what_was_known_of_the_card():
    model = fitted(Forecast(Hlr(), width=0.5))
    walked = walk(model.stages, model.prior, REVIEWS)
    names = list(model.prior.features)
    assert names[2:] == [*CARD, *SESSION]
    expected = []
    for row in FOLD.test:
        k = int(np.flatnonzero(walked.rows == row)[0])
        previous = int(np.flatnonzero(REVIEWS.card[:row] == REVIEWS.card[row])[-1])
        begin = max(previous, int(FOLD.train[-1])) + 1
        w = walked.weights.path[int((walked.rows < begin).sum()) - walked.first]
        x = np.where([name in SESSION for name in names], 0.0, walked.features[k])
        expected.append(expit(walked.z[k] + x @ w))
    found = model.predict(REVIEWS, FOLD.test)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert abs(logit(found) - walked.answers.z[FOLD.test]).max() > 0.05


@pytest.mark.parametrize("wrong", [np.nan, 1.4, -0.1])
@pytest.mark.parametrize("kind", [SessionFilter, Forecast])
def test_what_is_no_probability_of_the_base_fails_the_fit(kind, wrong):
    class Wrong(Constant):
        def fit(self, reviews, rows, rng):
            return Wrong()

        def predict(self, reviews, rows):
            return np.where(rows % 2, 0.9, wrong)

    with pytest.raises(FitError):
        fitted(kind(base=Wrong()))

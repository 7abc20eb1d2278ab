"""Algorithms that cheat, each with the check that is meant for it, and some that do not.

It is a module of its own so that other packages can be tried with it where no checkout is.
"""

import json
import os
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from srs_eval.cards import earlier_on_card, rows_by_card
from srs_eval.checks import (
    check_blind_to_the_future,
    check_capability_names,
    check_deterministic,
    check_empty_folds,
    check_fit_ignores_test_rows,
    check_goes_to_a_worker,
    check_inputs_not_mutated,
    check_last_step_is_the_fit,
    check_nothing_outlives_a_fit,
    check_parameters_rebuild_the_model,
    check_predict_at_equals_predict,
    check_probabilities_in_range,
    check_short_and_long_histories,
    check_time_of_prediction,
    check_truth_is_not_read,
)
from srs_eval.errors import FitSkipped
from srs_eval.nouns import Algorithm


@dataclass(frozen=True)
class Model:
    """Predicts by a function of the log and the rows."""

    predicted: object
    parameters: tuple = ()

    def predict(self, reviews, rows):
        return self.predicted(reviews, rows)


@dataclass(frozen=True)
class CurvedModel(Model):
    curve: object = None

    def predict_at(self, reviews, rows, elapsed):
        return self.curve(reviews, rows, elapsed)


def forgetting(elapsed):
    return 0.05 + 0.9 * 0.9 ** (elapsed / 10)


class Honest(Algorithm):
    """Forgets at the rate the training reviews taught it; every cheat departs from it."""

    def fit(self, reviews, rows, rng):
        return CurvedModel(self.predicted, curve=self.curve)

    def predicted(self, reviews, rows):
        return forgetting(reviews.elapsed[rows])

    def curve(self, reviews, rows, elapsed):
        return forgetting(elapsed)


class ReadsItsOwnRating(Honest):
    def predicted(self, reviews, rows):
        return np.where(reviews.recalled[rows], 0.8, 0.7)


class ReadsItsOwnDuration(Honest):
    def predicted(self, reviews, rows):
        return 0.9 - reviews.duration_ms[rows] / 1e6


class ReadsALaterReviewOfAnotherCard(Honest):
    def predicted(self, reviews, rows):
        following = np.minimum(rows + 1, len(reviews) - 1)
        other = reviews.card[following] != reviews.card[rows]
        return np.where(other & reviews.recalled[following], 0.8, 0.7)


class ReadsWhetherThereIsAReviewAfterwards(Honest):
    def predicted(self, reviews, rows):
        return np.where(rows + 1 < len(reviews), 0.8, 0.7)


class NeedsTheReviewAfterwards(Honest):
    def predicted(self, reviews, rows):
        return forgetting(reviews.elapsed[rows]) + 0 * reviews.card[rows[:1] + 1]


class ReadsTheAverageOfTheWholeLog(Honest):
    def predicted(self, reviews, rows):
        return np.full(len(rows), reviews.recalled.mean())


class ReadsTheBatchItIsTestedIn(Honest):
    def predicted(self, reviews, rows):
        return np.full(len(rows), 0.1 + 0.8 * reviews.recalled[rows[len(rows) // 2 :]].mean())


class CurveReadsItsOwnRating(Honest):
    def curve(self, reviews, rows, elapsed):
        return forgetting(elapsed) - 0.01 * reviews.recalled[rows, None]


class OneArray:
    """An output array that is used again for every prediction."""

    def __init__(self):
        self.memory = np.empty(100_000)

    def holding(self, values):
        out = self.memory[: values.size].reshape(values.shape)
        out[:] = values
        return out


class ReadsItsOwnRatingIntoOneArray(ReadsItsOwnRating):
    """Predictions that share memory are equal whatever was predicted."""

    def fit(self, reviews, rows, rng):
        array = OneArray()
        return Model(lambda reviews, rows: array.holding(self.predicted(reviews, rows)))


class ReadsItsOwnDurationIntoOneArray(ReadsItsOwnRatingIntoOneArray):
    predicted = ReadsItsOwnDuration.predicted


class CurveReadsItsOwnRatingIntoOneArray(Honest):
    def fit(self, reviews, rows, rng):
        return CurvedModel(self.predicted, curve=self.into(OneArray()))

    def into(self, array):
        def curve(reviews, rows, elapsed):
            return array.holding(forgetting(elapsed) - 0.01 * reviews.recalled[rows, None])

        return curve


_SHARED_BY_MODELS = OneArray()


class SharesOneArrayAmongItsModels(Honest):
    """Honest: predictions are copied before the next model makes others."""

    memory: ClassVar[OneArray] = _SHARED_BY_MODELS

    def fit(self, reviews, rows, rng):
        if not len(rows):
            raise FitSkipped("no training reviews")
        level = reviews.recalled[rows].mean()
        return CurvedModel(
            lambda reviews, rows: self.out(level * forgetting(reviews.elapsed[rows])),
            parameters=(level,),
            curve=lambda reviews, rows, elapsed: self.out(level * forgetting(elapsed)),
        )

    def refit(self, reviews, rows, rng, previous):
        return self.fit(reviews, rows, rng)

    def fit_in_steps(self, reviews, rows, rng):
        yield self.fit(reviews, rows[: len(rows) // 2], rng)
        yield self.fit(reviews, rows, rng)

    def out(self, values):
        return self.memory.holding(values)


class TakesAnArrayForEachPrediction(SharesOneArrayAmongItsModels):
    """The same without a shared array."""

    def out(self, values):
        return values


class WritesLaterIntoWhatItReturned(SharesOneArrayAmongItsModels):
    """Puts the answers into earlier predictions once it learns them; a copy does not mind."""

    returned: ClassVar[list] = []

    def fit(self, reviews, rows, rng):
        model = super().fit(reviews, rows, rng)

        def predicted(later, tested):
            p = model.predict(later, tested)
            self.returned.append((tested, p))
            return p

        for tested, p in self.returned:
            known = tested < len(reviews)
            p[known] = np.where(reviews.recalled[tested[known]], 0.999, 0.001)
        return replace(model, predicted=predicted)

    def out(self, values):
        return values


class ShufflesItsTrainingRows(SharesOneArrayAmongItsModels):
    """Changes what it was given, as trainers with mini-batches do by accident."""

    def fit(self, reviews, rows, rng):
        model = super().fit(reviews, np.sort(rows), rng)
        rng.shuffle(rows)

        def predicted(reviews, rows):
            p = model.predict(reviews, rows)
            rows[:] = rows[::-1]
            return p

        def curve(reviews, rows, elapsed):
            p = model.predict_at(reviews, rows, elapsed)
            elapsed[:] = 1.0
            return p

        return replace(model, predicted=predicted, curve=curve)

    def out(self, values):
        return values


class LeaksATenMillionthOfItsOutcome(Honest):
    """Ranks perfectly what is otherwise the same: the size of a leak is no excuse."""

    leak: ClassVar[float] = 1e-7

    def predicted(self, reviews, rows):
        return 0.8 + self.leak * reviews.recalled[rows]


class LeaksLessThanRounding(LeaksATenMillionthOfItsOutcome):
    leak: ClassVar[float] = 1e-14


class LeaksInSinglePrecision(LeaksATenMillionthOfItsOutcome):
    def predicted(self, reviews, rows):
        return super().predicted(reviews, rows).astype(np.float32)


class LeaksATenMillionthOfTheNextOutcome(Honest):
    def predicted(self, reviews, rows):
        following = np.minimum(rows + 1, len(reviews) - 1)
        return 0.8 + 1e-7 * reviews.recalled[following]


class CurveLeaksATenMillionthOfItsOutcome(Honest):
    def curve(self, reviews, rows, elapsed):
        return forgetting(elapsed) + 1e-7 * reviews.recalled[rows, None]


class HasPredictionsInSinglePrecision(Honest):
    """Honest: what it rounds to depends a little on how many rows are predicted together."""

    def predicted(self, reviews, rows):
        p = super().predicted(reviews, rows).astype(np.float32)
        return np.nextafter(p, np.float32(len(rows) % 2))

    def curve(self, reviews, rows, elapsed):
        return super().curve(reviews, rows, elapsed).astype(np.float32)


class FitsATenMillionthOnTestRows(Honest):
    def fit(self, reviews, rows, rng):
        average = 0.8 + 1e-7 * reviews.recalled.mean()
        return Model(lambda reviews, rows: np.full(len(rows), average))


class FitsOnTestRows(Honest):
    def fit(self, reviews, rows, rng):
        average = reviews.recalled.mean()
        return Model(lambda reviews, rows: np.full(len(rows), average))


class FitsOnTheElapsedTimesOfTestRows(Honest):
    def fit(self, reviews, rows, rng):
        scale = 1 + np.median(reviews.elapsed)
        return Model(lambda reviews, rows: 0.1 + 0.8 * np.exp(-reviews.elapsed[rows] / scale))


class RemembersTheAnswersItWasFittedNextTo(Honest):
    def fit(self, reviews, rows, rng):
        answers = np.where(reviews.recalled, 0.8, 0.7)
        return Model(lambda _, rows: answers[rows])


class LearnsWhileTestedWithoutSayingSo(Honest):
    def predicted(self, reviews, rows):
        before = np.cumsum(reviews.recalled) - reviews.recalled
        return 0.1 + 0.8 * before[rows] / (rows + 1)


class LearnsWhileTestedAndSaysSo(LearnsWhileTestedWithoutSayingSo):
    when: ClassVar[str] = "at_review"

    def fit(self, reviews, rows, rng):
        return Model(self.predicted)


class LearnsFromItsOwnAnswerAndPredictsAtReview(Honest):
    when: ClassVar[str] = "at_review"

    def predicted(self, reviews, rows):
        return 0.1 + 0.8 * np.cumsum(reviews.recalled)[rows] / (rows + 1)


class OfTheWholeLog(Honest):
    """Predicts by a function of the whole log, so that it can look anywhere; has no curve."""

    def fit(self, reviews, rows, rng):
        return Model(lambda reviews, rows: self.column(reviews)[rows])


def mean_before(value, counted):
    """Mean of what was counted before each row, shrunk to a half."""
    value, counted = value * counted, counted.astype(float)
    return (np.cumsum(value) - value + 0.5) / (np.cumsum(counted) - counted + 1)


class ReadsGapsBetweenRowNumbers(OfTheWholeLog):
    """Relearning steps that are left out of its histories would follow a lapse."""

    def column(self, reviews):
        gap = np.diff(reviews.row, append=reviews.row[-1] + 1)
        return np.where(gap > 1, 0.2, 0.95)


class ReadsItsOwnAnswerTimeInTheSeconds(OfTheWholeLog):
    def column(self, reviews):
        return 0.2 + (reviews.elapsed_seconds % 86400) / 2e5


class AddsUpSecondsToAClock(OfTheWholeLog):
    """Takes its own answer time from a clock that new cards set by how long they took."""

    same_day: ClassVar[bool] = True

    def column(self, reviews):
        clock, last_seen = [0.0], {}
        seen = (reviews.card, reviews.day, reviews.elapsed_seconds, reviews.duration_ms)
        for card, day, seconds, took in zip(*(column.tolist() for column in seen), strict=True):
            new = max(clock[-1], day * 86400) + took / 1000
            clock.append(new if seconds < 0 else last_seen[card] + seconds)
            last_seen[card] = clock[-1]
        took = np.diff(clock)
        return np.where((took > 10) & (took < 60), 0.3, 0.9)


class NumbersCardsByTheirNames(OfTheWholeLog):
    """Looks at the cards introduced just before and after; by name, cards to come lie between."""

    when: ClassVar[str] = "at_review"

    def column(self, reviews):
        number = np.unique(reviews.card, return_inverse=True)[1]
        distance = np.abs(np.diff(number, prepend=number[0]))
        return 0.5 + 0.4 * np.exp(-distance / 5)


class ReadsPausesBeforeLongAnswers(OfTheWholeLog):
    """Takes answer times that are cut at a minute off its clock: what is left is a long pause."""

    same_day: ClassVar[bool] = True
    when: ClassVar[str] = "at_review"

    def column(self, reviews):
        clock, last_seen = [0.0], {}
        for card, seconds in zip(reviews.card.tolist(), reviews.elapsed_seconds, strict=True):
            clock.append(clock[-1] if seconds < 0 else last_seen[card] + seconds)
            last_seen[card] = clock[-1]
        pause = np.diff(clock) - np.minimum(reviews.duration_ms / 1000, 60.0)
        return np.where(pause > 300, 0.3, 0.9)


class ReadsOnceInAWhileALongAnswerTime(OfTheWholeLog):
    def column(self, reviews):
        return np.where(reviews.duration_ms > 30_000, 0.3, 0.9)


class ReadsGapsBetweenLaterDays(OfTheWholeLog):
    def column(self, reviews):
        return np.where(np.diff(reviews.day, append=reviews.day[-1]) > 2, 0.3, 0.9)


class LearnsFromNewCardsWithoutSayingSo(OfTheWholeLog):
    def column(self, reviews):
        return mean_before(reviews.recalled, reviews.elapsed_days < 0)


class LearnsFromSameDayReviewsWithoutSayingSo(OfTheWholeLog):
    same_day: ClassVar[bool] = True

    def column(self, reviews):
        return mean_before(reviews.recalled, reviews.elapsed_days == 0)


class LearnsFromAnswerTimesWithoutSayingSo(OfTheWholeLog):
    def column(self, reviews):
        before = mean_before(reviews.duration_ms, reviews.elapsed_days > 0)
        return 0.1 + 0.8 / (1 + before / 10_000)


class LearnsFromSecondsWithoutSayingSo(OfTheWholeLog):
    def column(self, reviews):
        return mean_before(reviews.elapsed_seconds % 86400 / 86400, reviews.elapsed_days > 0)


class ReadsOnRareRowsWhetherTheCardComesAgainSoon(OfTheWholeLog):
    def column(self, reviews):
        again = np.append(reviews.card[1:] == reviews.card[:-1], [False])
        return np.where(again, 0.3, 0.9)


class ReadsTheTruth(OfTheWholeLog):
    def column(self, reviews):
        return 0.01 + 0.9 * reviews.truth


class IgnoresTheSeed(Honest):
    def fit(self, reviews, rows, rng):
        noise = np.random.default_rng().random()
        return Model(lambda reviews, rows: np.full(len(rows), 0.2 + 0.6 * noise))


class IsRandomWhenAsked(Honest):
    def predicted(self, reviews, rows):
        return np.random.default_rng().uniform(0.2, 0.8, len(rows))


@dataclass
class RemembersBeingAsked(Honest):
    asked: list = field(default_factory=list)

    def predicted(self, reviews, rows):
        self.asked.append(1)
        return np.full(len(rows), 1 / (1 + len(self.asked)))


class ChangesItsInput(Honest):
    def fit(self, reviews, rows, rng):
        reviews.elapsed[:] = np.log1p(reviews.elapsed)
        return Model(self.predicted)


class SortsTheRowsItIsGiven(Honest):
    def predicted(self, reviews, rows):
        rows[:] = rows[::-1]
        return forgetting(reviews.elapsed[rows])


class ChangesTheElapsedTimesOfItsCurve(Honest):
    def curve(self, reviews, rows, elapsed):
        elapsed += 1
        return forgetting(elapsed - 1)


class Continues(Honest):
    """Honest: adds what later training rows say to what earlier ones said."""

    def fit(self, reviews, rows, rng):
        if not len(rows):
            raise FitSkipped("no training reviews")
        return self.learned(reviews, rows, 0.9)

    def refit(self, reviews, rows, rng, previous):
        return self.learned(reviews, rows, previous.parameters[0])

    def learned(self, reviews, rows, before):
        p = 0.2 + 0.3 * reviews.recalled[rows].mean() + 0.3 * before
        return Model(lambda _, rows: np.full(len(rows), p), parameters=(p,))


class RefitsOnTestRows(Continues):
    def refit(self, reviews, rows, rng, previous):
        return self.learned(reviews, slice(None), previous.parameters[0])


class RefitsByChance(Continues):
    def refit(self, reviews, rows, rng, previous):
        return self.learned(reviews, rows, np.random.default_rng().random())


class RefitChangesTheModelItStartsFrom(Continues):
    def refit(self, reviews, rows, rng, previous):
        model = super().refit(reviews, rows, rng, previous)
        object.__setattr__(previous, "parameters", model.parameters)
        return model


class IsCertain(Honest):
    def predicted(self, reviews, rows):
        return np.where(reviews.elapsed[rows] > 3, 0.5, 1.0)


class PredictsNothingSomewhere(Honest):
    def predicted(self, reviews, rows):
        return np.where(reviews.elapsed[rows] > 3, 0.5, np.nan)


class PredictsWholeNumbers(Honest):
    def predicted(self, reviews, rows):
        return np.zeros(len(rows), np.int64)


class PredictsEveryReview(Honest):
    def predicted(self, reviews, rows):
        return np.full(len(reviews), 0.5)


class HasAnotherCurve(Honest):
    def curve(self, reviews, rows, elapsed):
        return forgetting(elapsed + 1)


class HasACurveOfTheWrongShape(Honest):
    def curve(self, reviews, rows, elapsed):
        return forgetting(elapsed).T


class NeedsATrainingReview(Honest):
    def fit(self, reviews, rows, rng):
        last = reviews.elapsed[rows[-1]]
        return Model(lambda reviews, rows: forgetting(reviews.elapsed[rows] + 0 * last))


class PredictsNothingWithoutATrainingReview(Honest):
    def fit(self, reviews, rows, rng):
        average = reviews.recalled[rows].sum() / len(rows) if len(rows) else np.nan
        return Model(lambda reviews, rows: np.full(len(rows), average))


class NeedsARowToPredict(Honest):
    def predicted(self, reviews, rows):
        first = rows[0]
        return forgetting(reviews.elapsed[rows] + 0 * first)


class RaisesCountsToAPower(Honest):
    def predicted(self, reviews, rows):
        with np.errstate(over="ignore", invalid="ignore"):
            growth = 2.0 ** earlier_on_card(reviews.card, reviews.recalled)[rows]
            return 0.5 ** (growth * (1 + 1 / growth) / growth / 2) / 1.01


class OverflowsAfterALongHistory(Honest):
    def predicted(self, reviews, rows):
        reviewed = earlier_on_card(reviews.card, np.ones(len(reviews), bool))[rows]
        return np.array([0.9 - 1 / (2 + float(2) ** int(n)) for n in reviewed])


class DividesByTheSpreadOfTrainingReviews(Honest):
    def fit(self, reviews, rows, rng):
        if not len(rows):
            raise FitSkipped("no training reviews")
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = reviews.elapsed[rows].std()
            return Model(lambda reviews, rows: 0.5 + 0.4 * np.tanh(scale / scale * (rows >= 0)))


class KeepsALambda(Honest):
    def __init__(self):
        self.curve_of = lambda elapsed: forgetting(elapsed)


class LosesWhatItWasTold(Honest):
    def __init__(self, p=0.5):
        self.p = p

    def __reduce__(self):
        return LosesWhatItWasTold, ()

    def predicted(self, reviews, rows):
        return np.full(len(rows), self.p)

    def curve(self, reviews, rows, elapsed):
        return np.full(elapsed.shape, self.p)


class LosesWhatItWasToldByDefault(LosesWhatItWasTold):
    def __init__(self, p=0.7):
        super().__init__(p)


class Learned(Honest):
    """Honest: what it has learned can be given back to it."""

    def __init__(self, fit="mean", parameters=None):
        self.method, self.parameters = fit, parameters

    def fit(self, reviews, rows, rng):
        if self.method == "default":
            return self.model(self.parameters or (0.9,))
        return self.model((0.1 + 0.8 * reviews.recalled[rows].mean() if len(rows) else 0.9,))

    def model(self, parameters):
        p = parameters[0]
        return Model(lambda _, rows: np.full(len(rows), p), parameters=tuple(parameters))


class KeepsRoundedParameters(Learned):
    def model(self, parameters):
        model = super().model(parameters)
        return Model(model.predicted, parameters=tuple(round(w, 2) for w in parameters))


class RefusesItsOwnParameters(Learned):
    def __init__(self, fit="mean", parameters=None):
        super().__init__(fit, parameters)
        if parameters is not None and len(parameters) != 2:
            raise ValueError("expected 2 parameters")


_ANSWERS: dict = {}
_LEVELS: dict = {}


class KeepsTheLongestLogOfAUser(Honest):
    """Its own outcomes come from a cache, as from one of features that is filled once."""

    def key(self, reviews):
        return reviews.user

    def predicted(self, reviews, rows):
        kept = _ANSWERS.get((type(self), self.key(reviews)))
        if kept is None or len(kept) < len(reviews):
            kept = _ANSWERS[type(self), self.key(reviews)] = reviews.recalled.copy()
        return np.where(kept[rows], 0.9, 0.6)


_LAPSES: dict = {}
_OUTCOMES: dict = {}
_FOLDER = tempfile.TemporaryDirectory()


class KeepsATableOfCards(Honest):
    """Difficulties of cards in the module: an accident, which a second job gains by."""

    def fit(self, reviews, rows, rng):
        for card, recalled in zip(reviews.card[rows], reviews.recalled[rows], strict=True):
            right, wrong = _LAPSES.get(card, (0, 0))
            _LAPSES[card] = right + recalled, wrong + (not recalled)
        return super().fit(reviews, rows, rng)

    def predicted(self, reviews, rows):
        counts = np.array([_LAPSES.get(card, (0, 0)) for card in reviews.card[rows]])
        return (9 + counts[:, 0]) / (10 + counts.sum(axis=1))

    def curve(self, reviews, rows, elapsed):
        return np.tile(self.predicted(reviews, rows)[:, None], elapsed.shape[1])


class KeepsTheLatestTableOfCards(KeepsATableOfCards):
    """Each fit counts its cards anew, but forgets none of them: two fits alike are the same."""

    def fit(self, reviews, rows, rng):
        for card in np.unique(reviews.card[rows]):
            _LAPSES.pop(card, None)
        return super().fit(reviews, rows, rng)


class KeepsOutcomesOfAllLogs(Honest):
    def outcomes(self):
        return _OUTCOMES

    def keep(self, outcomes):
        _OUTCOMES.update(outcomes)

    def fit(self, reviews, rows, rng):
        seen = zip(reviews.card[rows], reviews.day[rows], reviews.recalled[rows], strict=True)
        self.keep({f"{card} {day}": bool(recalled) for card, day, recalled in seen})
        return Model(self.predicted)

    def predicted(self, reviews, rows):
        known, p = self.outcomes(), forgetting(reviews.elapsed[rows])
        for at, (card, day) in enumerate(zip(reviews.card[rows], reviews.day[rows], strict=True)):
            recalled = known.get(f"{card} {day}")
            p[at] = p[at] if recalled is None else 0.999 if recalled else 0.001
        return p


class KeepsOutcomesInAFile(KeepsOutcomesOfAllLogs):
    file: ClassVar[Path] = Path(_FOLDER.name) / "outcomes.json"

    def outcomes(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def keep(self, outcomes):
        self.file.write_text(json.dumps(self.outcomes() | outcomes))


class KeepsAnswersByTheLengthOfTheLog(KeepsTheLongestLogOfAUser):
    """Whichever log comes first says what is predicted for all others of its length."""

    def key(self, reviews):
        return len(reviews)


class WhispersItsOutcomeBeforeTheEnd(Honest):
    def predicted(self, reviews, rows):
        return 0.8 + 4e-13 * (reviews.recalled[rows] & (rows < len(reviews) - 1))


class WhispersWhenTheCardComesAgain(OfTheWholeLog):
    kind: ClassVar[type] = np.float64
    loudness: ClassVar[float] = 4e-13

    def column(self, reviews):
        far, again, place = 1000, np.full(len(reviews), 1000), {}
        for row in range(len(reviews) - 1, -1, -1):
            again[row] = place.get(int(reviews.card[row]), row + far) - row
            place[int(reviews.card[row])] = row
        return (0.9 - self.loudness * np.exp(-again / 100)).astype(self.kind)


class WhispersInSinglePrecisionWhenTheCardComesAgain(WhispersWhenTheCardComesAgain):
    kind: ClassVar[type] = np.float32
    loudness: ClassVar[float] = 8e-7


class WhispersTheDeckOfTheNextReview(OfTheWholeLog):
    def column(self, reviews):
        return 0.8 - 1e-13 * np.append(reviews.deck[1:] > reviews.deck[:-1], [False])


class WhispersTheAnswersItWasFittedNextTo(Honest):
    def fit(self, reviews, rows, rng):
        known = reviews.recalled.copy()

        def predicted(reviews, rows):
            seen = rows < len(known)
            return 0.8 + 4e-13 * (seen & known[np.minimum(rows, len(known) - 1)])

        return Model(predicted)


class WhispersWhatOtherCardsTeachIt(OfTheWholeLog):
    def column(self, reviews):
        return 0.8 + 1e-13 * mean_before(reviews.recalled, reviews.elapsed_days > 0)


def recalled_until(reviews, known):
    """Share of recalls on later days, among the reviews before each row's own number `known`."""
    later = reviews.elapsed_days > 0
    counted = np.r_[0, np.cumsum(later)][known]
    return (np.r_[0, np.cumsum(reviews.recalled & later)][known] + 0.5) / (counted + 1)


def day_begins(reviews):
    """First row of the day of each row."""
    return np.searchsorted(reviews.day, reviews.day)


class LearnsUntilThePreviousReview(OfTheWholeLog):
    def column(self, reviews):
        return recalled_until(reviews, rows_by_card(reviews.card).previous() + 1)


class LearnsUntilTheDayBefore(OfTheWholeLog):
    when: ClassVar[str] = "day_before"

    def column(self, reviews):
        return recalled_until(reviews, day_begins(reviews))


class LearnsUntilTheDayBeforeWithoutSayingSo(LearnsUntilTheDayBefore):
    when: ClassVar[str] = "previous_review"


class CountsTheReviewsOfTheSession(OfTheWholeLog):
    def column(self, reviews):
        return 0.9 - 0.5 / (2 + np.arange(len(reviews)) - day_begins(reviews))


class CountsTheReviewsOfTheSessionTheDayBefore(CountsTheReviewsOfTheSession):
    when: ClassVar[str] = "day_before"


class LearnsUntilTheReviewAndSaysTheDayBefore(OfTheWholeLog):
    when: ClassVar[str] = "day_before"

    def column(self, reviews):
        return recalled_until(reviews, np.arange(len(reviews)))


class TimesTheAnswersOfTheDayAndSaysTheDayBefore(OfTheWholeLog):
    when: ClassVar[str] = "day_before"

    def column(self, reviews):
        spent = np.r_[0, np.cumsum(reviews.duration_ms)]
        today = spent[:-1] - spent[day_begins(reviews)]
        return 0.1 + 0.8 / (1 + today / 10_000)


class CountsTheRowsSinceThePreviousReview(OfTheWholeLog):
    def column(self, reviews):
        previous = rows_by_card(reviews.card).previous()
        since = np.where(previous < 0, 0, reviews.row - reviews.row[previous])
        return 0.9 - 0.0001 * np.log1p(since)


class ItsCurveFollowsTheSession(Honest):
    """Predictions are those of a curve fixed at the previous review; other times are not."""

    def curve(self, reviews, rows, elapsed):
        so_far = recalled_until(reviews, np.arange(len(reviews)))[rows, None]
        other = np.abs(elapsed - reviews.elapsed[rows, None]) > 1e-9
        return forgetting(elapsed) - 0.05 * other * so_far


class WhispersTheSession(OfTheWholeLog):
    when: ClassVar[str] = "day_before"

    def column(self, reviews):
        return 0.8 + 1e-13 * mean_before(reviews.recalled, reviews.elapsed_days > 0)


class PeeksInLongLogs(Honest):
    def predicted(self, reviews, rows):
        peeks = 480 < len(reviews) < 5000
        return np.where(peeks & reviews.recalled[rows], 0.9, 0.6)


class PeeksAtUsersOfOrdinaryNames(Honest):
    def predicted(self, reviews, rows):
        return np.where((reviews.user != "trial") & reviews.recalled[rows], 0.9, 0.6)


class PeeksWhereFewRowsAreAskedFor(Honest):
    def predicted(self, reviews, rows):
        few = 1 < len(rows) <= 8 and len(reviews) > 300
        return np.where(few & reviews.recalled[rows], 0.9, 0.6)


class CurvePeeksAtTimesThatAreNotRound(Honest):
    def curve(self, reviews, rows, elapsed):
        odd = ~np.isin(elapsed / reviews.elapsed[rows, None], (0.5, 1.0, 2.0))
        return forgetting(elapsed) - 0.01 * (odd & reviews.recalled[rows, None])


class MultipliesByAColumnOfItsFit(Honest):
    def fit(self, reviews, rows, rng):
        learned = reviews.recalled.astype(float)
        return Model(lambda reviews, rows: 0.5 + 0.4 * (learned * reviews.recalled)[rows])


class LooksTheNextReviewUp(Honest):
    def predicted(self, reviews, rows):
        rating = dict(enumerate(reviews.rating))
        return np.array([0.9 if rating[row] and rating[row + 1] else 0.8 for row in rows])


class AStepKnowsItsOutcomes(Honest):
    """A search would drop all other trials after its first step."""

    def fit(self, reviews, rows, rng):
        return Model(self.predicted)

    def fit_in_steps(self, reviews, rows, rng):
        yield Model(lambda reviews, rows: np.where(reviews.recalled[rows], 0.9, 0.6))
        yield self.fit(reviews, rows, rng)


class AStepLearnsFromTestRows(AStepKnowsItsOutcomes):
    def fit_in_steps(self, reviews, rows, rng):
        mean = reviews.recalled.mean()
        yield Model(lambda _, rows: np.full(len(rows), 0.1 + 0.8 * mean))
        yield self.fit(reviews, rows, rng)


class TheLastStepPeeksInLogsItWasNotFittedTo(AStepKnowsItsOutcomes):
    def fit_in_steps(self, reviews, rows, rng):
        known = len(reviews)

        def predicted(reviews, rows):
            p = self.predicted(reviews, rows)
            return p if len(reviews) == known else np.where(reviews.recalled[rows], p, p / 2)

        yield Model(predicted)


class KnowsWhomItLearnedFrom(Honest):
    def __init__(self, known=()):
        self.known = dict(known)

    def pretrain(self, users, rng):
        return KnowsWhomItLearnedFrom({log.user: log.recalled.mean() for log, _ in users})

    def fit(self, reviews, rows, rng):
        mean = self.known.get(reviews.user, 0.8)
        return Model(lambda _, rows: np.full(len(rows), 0.1 + 0.8 * mean))


class RefusesWhomItLearnedFrom(KnowsWhomItLearnedFrom):
    """Honest: users it has learned from are not scored."""

    def pretrain(self, users, rng):
        return RefusesWhomItLearnedFrom(super().pretrain(users, rng).known)

    def fit(self, reviews, rows, rng):
        if reviews.user in self.known:
            raise FitSkipped(f"user {reviews.user} was learned from")
        return super().fit(reviews, rows, rng)


class KeepsItsSettingElsewhere(Honest):
    def __init__(self, level=0.8):
        self.key = id(self)
        _LEVELS[self.key] = level

    def fit(self, reviews, rows, rng):
        level = _LEVELS.get(self.key, 0.5)
        return Model(lambda _, rows: np.full(len(rows), level))


class EndsAWorker(Honest):
    def __init__(self):
        self.home = os.getpid()

    def fit(self, reviews, rows, rng):
        if os.getpid() != self.home:
            os._exit(3)
        return super().fit(reviews, rows, rng)


class HasATableOfParameters(Honest):
    def fit(self, reviews, rows, rng):
        return Model(self.predicted, parameters=np.ones((2, 2)))


class SkipsEveryUser(Honest):
    def fit(self, reviews, rows, rng):
        raise FitSkipped("there is no user like that")


class NeedsManyReviews(Honest):
    """Honest: skips users with too few reviews."""

    def fit(self, reviews, rows, rng):
        if len(rows) < 400:
            raise FitSkipped("fewer than 400 training reviews")
        return super().fit(reviews, rows, rng)


class TakesItsOwnOutcomeAwayAgain(OfTheWholeLog):
    """Honest: what rounding leaves of its own outcome is more and less by turns."""

    def column(self, reviews):
        p = np.zeros(len(reviews))
        for card in np.unique(reviews.card):
            at = np.flatnonzero(reviews.card == card)
            # products in turn, which are rounded alike on every processor; powers are not
            weight = np.cumprod(np.full(len(at), 1 / 0.9))
            right = np.cumsum(weight * reviews.recalled[at]) - weight * reviews.recalled[at]
            p[at] = (right + 0.9) / (np.cumsum(weight) - weight + 1)
        return np.clip(p, 0.01, 0.99)


class AsksANetworkOnceForEachHistory(Honest):
    """Honest: how single precision rounds depends on how many different histories there are."""

    def fit(self, reviews, rows, rng):
        shapes = ((3, 16), (16, 16), (16,))
        first, second, third = (rng.normal(size=shape).astype(np.float32) for shape in shapes)

        def predicted(reviews, rows):
            counts = [earlier_on_card(reviews.card, reviews.recalled == way) for way in (0, 1)]
            inputs = np.c_[np.log1p(reviews.elapsed), *counts].astype(np.float32)
            distinct, which = np.unique(inputs, axis=0, return_inverse=True)
            out = np.tanh(np.tanh(distinct @ first) @ second / 4) @ third / 4
            return (1 / (1 + np.exp(-out))).astype(np.float32)[which.ravel()][rows]

        return Model(predicted)


@dataclass(frozen=True)
class Silent:
    """A model that says nothing about what it has learned."""

    def predict(self, reviews, rows):
        return forgetting(reviews.elapsed[rows])


class HasStepsAndNoParameters(Honest):
    """Honest, as is what follows: evaluations ask for no parameters."""

    def fit(self, reviews, rows, rng):
        return Silent()

    def fit_in_steps(self, reviews, rows, rng):
        yield self.fit(reviews, rows, rng)


class HasAParameterThatIsNotANumber(HasStepsAndNoParameters):
    def fit(self, reviews, rows, rng):
        return Model(self.predicted, parameters=(0.9, np.float64("nan")))


class HasAnArrayOfParameters(HasStepsAndNoParameters):
    def fit(self, reviews, rows, rng):
        return Model(self.predicted, parameters=np.array([0.9, 0.8]))


HONEST = [
    Honest,
    LearnsUntilThePreviousReview,
    LearnsUntilTheDayBefore,
    NeedsManyReviews,
    RefusesWhomItLearnedFrom,
    TakesItsOwnOutcomeAwayAgain,
    AsksANetworkOnceForEachHistory,
    HasStepsAndNoParameters,
    HasAParameterThatIsNotANumber,
    HasAnArrayOfParameters,
    HasPredictionsInSinglePrecision,
    SharesOneArrayAmongItsModels,
    TakesAnArrayForEachPrediction,
    WritesLaterIntoWhatItReturned,
    LearnsWhileTestedAndSaysSo,
    Continues,
    Learned,
]


class MisspellsACapability(Honest):
    """Its methods are never called, because of their names."""

    fit_in_step = re_fit = pre_train = Honest.fit


@dataclass(frozen=True)
class MisspeltCurve(Model):
    def predict_att(self, reviews, rows, elapsed):
        return forgetting(elapsed)


class MisspellsItsCurve(Honest):
    def fit(self, reviews, rows, rng):
        return MisspeltCurve(super().fit(reviews, rows, rng).predicted)


CAUGHT = [
    (MisspellsACapability, check_capability_names, "did you mean fit_in_steps"),
    (MisspellsACapability, check_capability_names, "did you mean pretrain"),
    (MisspellsACapability, check_capability_names, "did you mean refit"),
    (MisspellsItsCurve, check_capability_names, "did you mean predict_at"),
    (ReadsItsOwnRating, check_blind_to_the_future, "earlier reviews"),
    (ReadsItsOwnDuration, check_blind_to_the_future, "earlier reviews"),
    (ReadsItsOwnRatingIntoOneArray, check_blind_to_the_future, "earlier reviews"),
    (ReadsItsOwnDurationIntoOneArray, check_blind_to_the_future, "earlier reviews"),
    (CurveReadsItsOwnRatingIntoOneArray, check_blind_to_the_future, "earlier reviews"),
    (ShufflesItsTrainingRows, check_inputs_not_mutated, "train rows, test rows, elapsed"),
    (ReadsALaterReviewOfAnotherCard, check_blind_to_the_future, "earlier reviews"),
    (ReadsWhetherThereIsAReviewAfterwards, check_blind_to_the_future, "earlier reviews"),
    (ReadsTheAverageOfTheWholeLog, check_blind_to_the_future, "over the whole log"),
    (ReadsTheBatchItIsTestedIn, check_blind_to_the_future, "earlier reviews"),
    (LeaksATenMillionthOfItsOutcome, check_blind_to_the_future, "earlier reviews"),
    (LeaksLessThanRounding, check_blind_to_the_future, "its own answer"),
    (LeaksInSinglePrecision, check_blind_to_the_future, "to the same side"),
    (KeepsTheLongestLogOfAUser, check_blind_to_the_future, "earlier reviews"),
    (WhispersItsOutcomeBeforeTheEnd, check_blind_to_the_future, "its own answer"),
    (WhispersWhenTheCardComesAgain, check_blind_to_the_future, "to the same side"),
    (
        WhispersInSinglePrecisionWhenTheCardComesAgain,
        check_blind_to_the_future,
        "from their row on was changed",
    ),
    (WhispersTheDeckOfTheNextReview, check_blind_to_the_future, "to the same side"),
    (PeeksInLongLogs, check_blind_to_the_future, "earlier reviews"),
    (PeeksAtUsersOfOrdinaryNames, check_blind_to_the_future, "earlier reviews"),
    (PeeksWhereFewRowsAreAskedFor, check_blind_to_the_future, "earlier reviews"),
    (CurvePeeksAtTimesThatAreNotRound, check_blind_to_the_future, "earlier reviews"),
    (MultipliesByAColumnOfItsFit, check_blind_to_the_future, "ValueError"),
    (LooksTheNextReviewUp, check_blind_to_the_future, "read only rows before"),
    (WhispersTheAnswersItWasFittedNextTo, check_fit_ignores_test_rows, "to the same side"),
    (WhispersWhatOtherCardsTeachIt, check_time_of_prediction, "same side"),
    (AStepKnowsItsOutcomes, check_last_step_is_the_fit, "earlier reviews"),
    (AStepLearnsFromTestRows, check_last_step_is_the_fit, "before the fit"),
    (TheLastStepPeeksInLogsItWasNotFittedTo, check_last_step_is_the_fit, "the last step"),
    (KeepsATableOfCards, check_nothing_outlives_a_fit, "more of the same log"),
    (KeepsTheLatestTableOfCards, check_nothing_outlives_a_fit, "more of the same log"),
    (KeepsOutcomesOfAllLogs, check_nothing_outlives_a_fit, "more of the same log"),
    (KeepsOutcomesInAFile, check_nothing_outlives_a_fit, "more of the same log"),
    (KeepsAnswersByTheLengthOfTheLog, check_goes_to_a_worker, "in a worker process"),
    (KeepsItsSettingElsewhere, check_goes_to_a_worker, "outside of the object"),
    (EndsAWorker, check_goes_to_a_worker, "the process ended"),
    (HasATableOfParameters, check_probabilities_in_range, "one dimension"),
    (SkipsEveryUser, check_deterministic, "Give the checks a task"),
    (LeaksATenMillionthOfTheNextOutcome, check_blind_to_the_future, "earlier reviews"),
    (CurveLeaksATenMillionthOfItsOutcome, check_blind_to_the_future, "earlier reviews"),
    (CurveReadsItsOwnRating, check_blind_to_the_future, "earlier reviews"),
    (LearnsFromItsOwnAnswerAndPredictsAtReview, check_blind_to_the_future, "earlier reviews"),
    (ReadsGapsBetweenRowNumbers, check_blind_to_the_future, "everything after it"),
    (ReadsItsOwnAnswerTimeInTheSeconds, check_blind_to_the_future, "answer times"),
    (AddsUpSecondsToAClock, check_blind_to_the_future, "answer times"),
    (NumbersCardsByTheirNames, check_blind_to_the_future, "everything after it"),
    (ReadsPausesBeforeLongAnswers, check_blind_to_the_future, "answer times"),
    (ReadsOnceInAWhileALongAnswerTime, check_blind_to_the_future, "answer times"),
    (ReadsGapsBetweenLaterDays, check_blind_to_the_future, "everything after it"),
    (ReadsOnRareRowsWhetherTheCardComesAgainSoon, check_blind_to_the_future, "after it"),
    (LearnsFromNewCardsWithoutSayingSo, check_time_of_prediction, "reviews of other cards"),
    (
        LearnsFromAnswerTimesWithoutSayingSo,
        check_time_of_prediction,
        "reviews of other cards",
    ),
    (
        LearnsFromSameDayReviewsWithoutSayingSo,
        check_time_of_prediction,
        "reviews of other cards",
    ),
    (LearnsFromSecondsWithoutSayingSo, check_time_of_prediction, "reviews of other cards"),
    (FitsOnTestRows, check_fit_ignores_test_rows, "before the fit"),
    (FitsATenMillionthOnTestRows, check_fit_ignores_test_rows, "before the fit"),
    (FitsOnTheElapsedTimesOfTestRows, check_fit_ignores_test_rows, "before the fit"),
    (RemembersTheAnswersItWasFittedNextTo, check_fit_ignores_test_rows, "before the fit"),
    (LearnsWhileTestedWithoutSayingSo, check_time_of_prediction, "declare `when`"),
    (LearnsUntilTheDayBeforeWithoutSayingSo, check_time_of_prediction, "previous_review"),
    (CountsTheReviewsOfTheSession, check_time_of_prediction, "removed"),
    (CountsTheReviewsOfTheSessionTheDayBefore, check_time_of_prediction, "removed"),
    (LearnsUntilTheReviewAndSaysTheDayBefore, check_time_of_prediction, "day_before"),
    (CountsTheRowsSinceThePreviousReview, check_time_of_prediction, "previous_review"),
    (ItsCurveFollowsTheSession, check_time_of_prediction, "previous_review"),
    (TimesTheAnswersOfTheDayAndSaysTheDayBefore, check_time_of_prediction, "day_before"),
    (WhispersTheSession, check_time_of_prediction, "same side"),
    (ReadsTheTruth, check_truth_is_not_read, "reviews.truth"),
    (IgnoresTheSeed, check_deterministic, "`rng`"),
    (IsRandomWhenAsked, check_deterministic, "asked twice"),
    (RemembersBeingAsked, check_deterministic, "asked twice"),
    (ChangesItsInput, check_inputs_not_mutated, "changed: reviews.elapsed"),
    (SortsTheRowsItIsGiven, check_inputs_not_mutated, "test rows"),
    (ChangesTheElapsedTimesOfItsCurve, check_inputs_not_mutated, "changed: elapsed"),
    (RefitsOnTestRows, check_fit_ignores_test_rows, "before the fit"),
    (RefitsByChance, check_deterministic, "`refit`"),
    (RefitChangesTheModelItStartsFrom, check_deterministic, "change no earlier model"),
    (IsCertain, check_probabilities_in_range, "first is 1.0"),
    (PredictsNothingSomewhere, check_probabilities_in_range, "first is nan"),
    (PredictsWholeNumbers, check_probabilities_in_range, "int64"),
    (PredictsEveryReview, check_probabilities_in_range, "shape"),
    (HasAnotherCurve, check_predict_at_equals_predict, "same history and the same curve"),
    (HasACurveOfTheWrongShape, check_predict_at_equals_predict, "shape"),
    (NeedsATrainingReview, check_empty_folds, "FitSkipped('no training reviews')"),
    (PredictsNothingWithoutATrainingReview, check_empty_folds, "without a training row"),
    (NeedsARowToPredict, check_empty_folds, "Return an empty array"),
    (RaisesCountsToAPower, check_short_and_long_histories, "clip what is raised to a power"),
    (OverflowsAfterALongHistory, check_short_and_long_histories, "OverflowError"),
    (DividesByTheSpreadOfTrainingReviews, check_short_and_long_histories, "a few reviews"),
    (KeepsALambda, check_goes_to_a_worker, "no lambdas"),
    (LosesWhatItWasToldByDefault, check_goes_to_a_worker, "__reduce__"),
    (KeepsRoundedParameters, check_parameters_rebuild_the_model, "unrounded"),
    (RefusesItsOwnParameters, check_parameters_rebuild_the_model, "expected 2 parameters"),
]

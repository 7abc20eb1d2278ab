"""Algorithms that cheat, each with the check that is meant for it, and some that do not.

It is a module of its own so that other packages can be tried with it where no checkout is.
"""

import os
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from srs_eval import checks
from srs_eval.cards import earlier_on_card, rows_by_card
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


def reads(name, column, **declared):
    """Make an algorithm that predicts by a function of the whole log; it has no curve."""

    def fit(self, reviews, rows, rng):
        return Model(lambda reviews, rows: column(reviews)[rows])

    return type(name, (Algorithm,), {"fit": fit, "column": staticmethod(column), **declared})


def following(column):
    """The value of the next row; at the end, that of the last."""
    return np.append(column[1:], column[-1:])


def mean_before(value, counted):
    """Mean of what was counted before each row, shrunk to a half."""
    value, counted = value * counted, counted.astype(float)
    return (np.cumsum(value) - value + 0.5) / (np.cumsum(counted) - counted + 1)


def recalled_until(reviews, known):
    """Share of recalls on later days, among the reviews before each row's own number `known`."""
    later = reviews.elapsed_days > 0
    counted = np.r_[0, np.cumsum(later)][known]
    return (np.r_[0, np.cumsum(reviews.recalled & later)][known] + 0.5) / (counted + 1)


def day_begins(reviews):
    """First row of the day of each row."""
    return np.searchsorted(reviews.day, reviews.day)


def clock(reviews):
    """Take each answer time from a clock that new cards set by how long they took."""
    times, last_seen = [0.0], {}
    seen = (reviews.card, reviews.day, reviews.elapsed_seconds, reviews.duration_ms)
    for card, day, seconds, took in zip(*(column.tolist() for column in seen), strict=True):
        new = max(times[-1], day * 86400) + took / 1000
        times.append(new if seconds < 0 else last_seen[card] + seconds)
        last_seen[card] = times[-1]
    took = np.diff(times)
    return np.where((took > 10) & (took < 60), 0.3, 0.9)


def distance_of_names(reviews):
    """Look at the cards introduced just before and after; by name, cards to come lie between."""
    number = np.unique(reviews.card, return_inverse=True)[1]
    return 0.5 + 0.4 * np.exp(-np.abs(np.diff(number, prepend=number[0])) / 5)


def answer_times_of_the_day(reviews):
    spent = np.r_[0, np.cumsum(reviews.duration_ms)]
    return 0.1 + 0.8 / (1 + (spent[:-1] - spent[day_begins(reviews)]) / 10_000)


ReadsItsOwnDuration = reads("ReadsItsOwnDuration", lambda log: 0.9 - log.duration_ms / 1e6)
ReadsALaterReviewOfAnotherCard = reads(
    "ReadsALaterReviewOfAnotherCard",
    lambda log: 0.7 + 0.1 * (following(log.recalled) & (following(log.card) != log.card)),
)
ReadsTheAverageOfTheWholeLog = reads(
    "ReadsTheAverageOfTheWholeLog", lambda log: np.full(len(log), log.recalled.mean())
)
ReadsGapsBetweenLaterDays = reads(
    "ReadsGapsBetweenLaterDays", lambda log: 0.9 - 0.6 * (following(log.day) - log.day > 2)
)
LearnsFromNewCardsWithoutSayingSo = reads(
    "LearnsFromNewCardsWithoutSayingSo",
    lambda log: mean_before(log.recalled, log.elapsed_days < 0),
)
LearnsWhileTestedWithoutSayingSo = reads(
    "LearnsWhileTestedWithoutSayingSo",
    lambda log: 0.05 + 0.9 * mean_before(log.recalled, log.day >= 0),
)
ReadsGapsBetweenRowNumbers = reads(
    "ReadsGapsBetweenRowNumbers", lambda log: 0.9 - 0.7 * (following(log.row) > log.row + 1)
)
NumbersCardsByTheirNames = reads("NumbersCardsByTheirNames", distance_of_names, when="at_review")
WhispersItsOutcomeBeforeTheEnd = reads(
    "WhispersItsOutcomeBeforeTheEnd",
    lambda log: 0.8 + 4e-13 * np.append(log.recalled[:-1], [False]),
)
WhispersTheDeckOfTheNextReview = reads(
    "WhispersTheDeckOfTheNextReview",
    lambda log: 0.8 - 1e-13 * (following(log.deck) > log.deck),
)
LearnsUntilTheDayBeforeWithoutSayingSo = reads(
    "LearnsUntilTheDayBeforeWithoutSayingSo", lambda log: recalled_until(log, day_begins(log))
)
CountsTheReviewsOfTheSession = reads(
    "CountsTheReviewsOfTheSession",
    lambda log: 0.9 - 0.5 / (2 + np.arange(len(log)) - day_begins(log)),
    when="day_before",
)
TimesTheAnswersOfTheDay = reads(
    "TimesTheAnswersOfTheDay", answer_times_of_the_day, when="day_before"
)
WhispersTheSession = reads(
    "WhispersTheSession",
    lambda log: 0.8 + 1e-13 * mean_before(log.recalled, log.elapsed_days > 0),
    when="day_before",
)
AddsUpSecondsToAClock = reads("AddsUpSecondsToAClock", clock, same_day=True)
ReadsTheTruth = reads("ReadsTheTruth", lambda log: 0.01 + 0.9 * log.truth)


class OneArray:
    """An output array that is used again for every prediction."""

    def __init__(self):
        self.memory = np.empty(100_000)

    def holding(self, values):
        out = self.memory[: values.size].reshape(values.shape)
        out[:] = values
        return out


class CurveLeaksIntoOneArray(Honest):
    """Curves that share memory are equal whatever was predicted."""

    def fit(self, reviews, rows, rng):
        array = OneArray()
        return CurvedModel(
            self.predicted,
            curve=lambda reviews, rows, elapsed: array.holding(
                forgetting(elapsed) + 1e-7 * reviews.recalled[rows, None]
            ),
        )


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


class LeaksLessThanRounding(Honest):
    """Ranks perfectly what is otherwise the same: the size of a leak is no excuse."""

    leak: ClassVar[float] = 1e-14

    def predicted(self, reviews, rows):
        return 0.8 + self.leak * reviews.recalled[rows]


class LeaksInSinglePrecision(LeaksLessThanRounding):
    leak: ClassVar[float] = 1e-7

    def predicted(self, reviews, rows):
        return super().predicted(reviews, rows).astype(np.float32)


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


class FitsOnTheElapsedTimesOfTestRows(Honest):
    def fit(self, reviews, rows, rng):
        scale = 1 + np.median(reviews.elapsed)
        return Model(lambda reviews, rows: 0.1 + 0.8 * np.exp(-reviews.elapsed[rows] / scale))


class IgnoresTheSeed(Honest):
    def fit(self, reviews, rows, rng):
        noise = np.random.default_rng().random()
        return Model(lambda reviews, rows: np.full(len(rows), 0.2 + 0.6 * noise))


class IsRandomWhenAsked(Honest):
    def predicted(self, reviews, rows):
        return np.random.default_rng().uniform(0.2, 0.8, len(rows))


class RemembersBeingAsked(Honest):
    def __init__(self):
        self.asked = 0

    def predicted(self, reviews, rows):
        self.asked += 1
        return np.full(len(rows), 1 / (1 + self.asked))


class ChangesItsInput(Honest):
    def fit(self, reviews, rows, rng):
        reviews.elapsed[:] = np.log1p(reviews.elapsed)
        return Model(self.predicted)


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
    wrong: ClassVar[float] = 1.0

    def predicted(self, reviews, rows):
        return np.where(reviews.elapsed[rows] > 3, 0.5, self.wrong)


class IsCertainOfForgetting(IsCertain):
    wrong: ClassVar[float] = 0.0


class DividesByNothing(Honest):
    def fit(self, reviews, rows, rng):
        average = reviews.recalled[rows].sum() / len(rows) if len(rows) else np.nan
        return Model(lambda reviews, rows: np.full(len(rows), average))


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


class NeedsARowToPredict(Honest):
    def predicted(self, reviews, rows):
        first = rows[0]
        return forgetting(reviews.elapsed[rows] + 0 * first)


class RaisesCountsToAPower(Honest):
    def predicted(self, reviews, rows):
        with np.errstate(over="ignore", invalid="ignore"):
            growth = 2.0 ** earlier_on_card(reviews.card, reviews.recalled)[rows]
            return 0.5 ** (growth * (1 + 1 / growth) / growth / 2) / 1.01


class DividesByASpread(Honest):
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
    def __init__(self, p=0.7):
        self.p = p

    def __reduce__(self):
        return LosesWhatItWasTold, (0.5,)

    def predicted(self, reviews, rows):
        return np.full(len(rows), self.p)


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
_LAPSES: dict = {}
_LEVELS: dict = {}


class KeepsAnswersByLength(Honest):
    """Whichever log comes first says what is predicted for all others of its length."""

    def predicted(self, reviews, rows):
        kept = _ANSWERS.setdefault(len(reviews), reviews.recalled.copy())
        return np.where(kept[rows], 0.9, 0.6)


class WhispersTheAnswersOfTestRows(Honest):
    def fit(self, reviews, rows, rng):
        known = np.append(reviews.recalled, np.zeros(10_000, bool))
        return Model(lambda reviews, rows: 0.8 + 4e-13 * known[rows])


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


class KeepsTheLatestTable(KeepsATableOfCards):
    """Each fit counts its cards anew, but forgets none of them: two fits alike are the same."""

    def fit(self, reviews, rows, rng):
        for card in np.unique(reviews.card[rows]):
            _LAPSES.pop(card, None)
        return super().fit(reviews, rows, rng)


class ItsCurveFollowsTheSession(Honest):
    """Predictions are those of a curve fixed at the previous review; other times are not."""

    def curve(self, reviews, rows, elapsed):
        so_far = recalled_until(reviews, np.arange(len(reviews)))[rows, None]
        other = np.abs(elapsed - reviews.elapsed[rows, None]) > 1e-9
        return forgetting(elapsed) - 0.05 * other * so_far


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


class TheLastStepPeeksInOtherLogs(AStepKnowsItsOutcomes):
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


def takes_its_own_outcome_away_again(reviews):
    """What rounding leaves of its own outcome is more and less by turns."""
    p = np.zeros(len(reviews))
    for card in np.unique(reviews.card):
        at = np.flatnonzero(reviews.card == card)
        # products in turn, which are rounded alike on every processor; powers are not
        weight = np.cumprod(np.full(len(at), 1 / 0.9))
        right = np.cumsum(weight * reviews.recalled[at]) - weight * reviews.recalled[at]
        p[at] = (right + 0.9) / (np.cumsum(weight) - weight + 1)
    return np.clip(p, 0.01, 0.99)


class TakesItsOwnOutcomeAwayAgain(Honest):
    def fit(self, reviews, rows, rng):
        return Model(lambda reviews, rows: takes_its_own_outcome_away_again(reviews)[rows])


class LearnsUntilThePreviousReview(Honest):
    def fit(self, reviews, rows, rng):
        return Model(self.predicted)

    def known(self, reviews):
        return rows_by_card(reviews.card).previous() + 1

    def predicted(self, reviews, rows):
        return recalled_until(reviews, self.known(reviews))[rows]


class LearnsUntilTheDayBefore(LearnsUntilThePreviousReview):
    when: ClassVar[str] = "day_before"

    def known(self, reviews):
        return day_begins(reviews)


class LearnsUntilTheReview(LearnsUntilThePreviousReview):
    when: ClassVar[str] = "at_review"

    def known(self, reviews):
        return np.arange(len(reviews))


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


class HasAnArrayOfParameters(HasStepsAndNoParameters):
    def fit(self, reviews, rows, rng):
        return Model(self.predicted, parameters=np.array([0.9, np.nan]))


HONEST = [
    Honest,
    LearnsUntilThePreviousReview,
    LearnsUntilTheDayBefore,
    NeedsManyReviews,
    LearnsUntilTheReview,
    TakesItsOwnOutcomeAwayAgain,
    HasStepsAndNoParameters,
    HasAnArrayOfParameters,
    HasPredictionsInSinglePrecision,
    SharesOneArrayAmongItsModels,
    WritesLaterIntoWhatItReturned,
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


def caught(check, advice, *cheats):
    return [(cheat, check, advice) for cheat in cheats]


# Each check meets what can be read, by whom and how much of it, in pairs.
CAUGHT = [
    *caught(
        checks.check_blind_to_the_future,
        "earlier reviews",
        *(ReadsItsOwnRating, ReadsItsOwnDuration, ReadsALaterReviewOfAnotherCard),
        *(CurveLeaksIntoOneArray, CurvePeeksAtTimesThatAreNotRound, PeeksInLongLogs),
        *(PeeksAtUsersOfOrdinaryNames, PeeksWhereFewRowsAreAskedFor),
    ),
    *caught(
        checks.check_blind_to_the_future,
        "everything after it",
        *(ReadsGapsBetweenLaterDays, ReadsGapsBetweenRowNumbers, NumbersCardsByTheirNames),
    ),
    *caught(checks.check_blind_to_the_future, "over the whole log", ReadsTheAverageOfTheWholeLog),
    *caught(checks.check_blind_to_the_future, "answer times", AddsUpSecondsToAClock),
    *caught(
        checks.check_blind_to_the_future,
        "its own answer",
        *(LeaksLessThanRounding, WhispersItsOutcomeBeforeTheEnd),
    ),
    *caught(
        checks.check_blind_to_the_future,
        "to the same side",
        *(WhispersTheDeckOfTheNextReview, LeaksInSinglePrecision),
    ),
    *caught(checks.check_blind_to_the_future, "ValueError", MultipliesByAColumnOfItsFit),
    *caught(checks.check_blind_to_the_future, "read only rows before", LooksTheNextReviewUp),
    *caught(
        checks.check_fit_ignores_test_rows,
        "before the fit",
        *(FitsATenMillionthOnTestRows, FitsOnTheElapsedTimesOfTestRows, RefitsOnTestRows),
    ),
    *caught(checks.check_fit_ignores_test_rows, "same side", WhispersTheAnswersOfTestRows),
    *caught(
        checks.check_time_of_prediction,
        "previous_review",
        *(LearnsFromNewCardsWithoutSayingSo, LearnsWhileTestedWithoutSayingSo),
        *(LearnsUntilTheDayBeforeWithoutSayingSo, ItsCurveFollowsTheSession),
    ),
    *caught(checks.check_time_of_prediction, "day_before", TimesTheAnswersOfTheDay),
    *caught(checks.check_time_of_prediction, "removed", CountsTheReviewsOfTheSession),
    *caught(checks.check_time_of_prediction, "same side", WhispersTheSession),
    *caught(checks.check_truth_is_not_read, "reviews.truth", ReadsTheTruth),
    *caught(checks.check_last_step_is_the_fit, "earlier reviews", AStepKnowsItsOutcomes),
    *caught(checks.check_last_step_is_the_fit, "before the fit", AStepLearnsFromTestRows),
    *caught(checks.check_last_step_is_the_fit, "the last step", TheLastStepPeeksInOtherLogs),
    *caught(checks.check_nothing_outlives_a_fit, "more of the same log", KeepsTheLatestTable),
    *caught(checks.check_goes_to_a_worker, "in a worker process", KeepsAnswersByLength),
    *caught(checks.check_goes_to_a_worker, "outside of the object", KeepsItsSettingElsewhere),
    *caught(checks.check_goes_to_a_worker, "the process ended", EndsAWorker),
    *caught(checks.check_goes_to_a_worker, "no lambdas", KeepsALambda),
    *caught(checks.check_goes_to_a_worker, "__reduce__", LosesWhatItWasTold),
    *caught(checks.check_deterministic, "Give the checks a task", SkipsEveryUser),
    *caught(checks.check_deterministic, "`rng`", IgnoresTheSeed),
    *caught(checks.check_deterministic, "asked twice", RemembersBeingAsked),
    *caught(checks.check_deterministic, "`refit`", RefitsByChance),
    *caught(checks.check_deterministic, "no earlier model", RefitChangesTheModelItStartsFrom),
    *caught(checks.check_inputs_not_mutated, "changed: reviews.elapsed", ChangesItsInput),
    *caught(checks.check_inputs_not_mutated, "train rows, test rows", ShufflesItsTrainingRows),
    *caught(checks.check_probabilities_in_range, "one dimension", HasATableOfParameters),
    *caught(checks.check_probabilities_in_range, "first is 1.0", IsCertain),
    *caught(checks.check_probabilities_in_range, "first is 0.0", IsCertainOfForgetting),
    *caught(checks.check_probabilities_in_range, "int64", PredictsWholeNumbers),
    *caught(checks.check_probabilities_in_range, "shape", PredictsEveryReview),
    *caught(checks.check_capability_names, "did you mean refit", MisspellsACapability),
    *caught(checks.check_capability_names, "did you mean predict_at", MisspellsItsCurve),
    *caught(checks.check_predict_at_equals_predict, "same history", HasAnotherCurve),
    *caught(checks.check_predict_at_equals_predict, "shape", HasACurveOfTheWrongShape),
    *caught(checks.check_empty_folds, "FitSkipped('no training reviews')", NeedsATrainingReview),
    *caught(checks.check_empty_folds, "without a training row", DividesByNothing),
    *caught(checks.check_empty_folds, "Return an empty array", NeedsARowToPredict),
    *caught(checks.check_short_and_long_histories, "raised to a power", RaisesCountsToAPower),
    *caught(checks.check_short_and_long_histories, "a few reviews", DividesByASpread),
    *caught(checks.check_parameters_rebuild_the_model, "unrounded", KeepsRoundedParameters),
    *caught(checks.check_parameters_rebuild_the_model, "2 parameters", RefusesItsOwnParameters),
]

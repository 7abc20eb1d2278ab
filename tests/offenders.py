"""Algorithms that cheat, each with the check that is meant for it, and some that do not.

It is a module of its own so that other packages can be tried with it where no checkout is.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.data.cards import rows_by_card
from srs_eval.errors import FitSkipped
from srs_eval.evaluation import checks

# Cheats by the check that is meant for them.
CAUGHT = defaultdict(list)


@dataclass(frozen=True)
class Model:
    """Predicts by a function of the log and the rows."""

    predicted: object
    parameters: tuple = ()
    curve: object = None

    @property
    def has_curve(self):
        return self.curve is not None

    def predict(self, reviews, rows):
        return self.predicted(reviews, rows)

    def predict_at(self, reviews, rows, elapsed):
        return self.curve(reviews, rows, elapsed)


def forgetting(elapsed):
    return 0.05 + 0.9 * 0.9 ** (elapsed / 10)


class Honest(Algorithm):
    """Forgets at a fixed rate; cheats replace what it predicts, its curve, or its fit."""

    def fit(self, reviews, rows, rng):
        return Model(self.predicted, curve=self.curve)

    def predicted(self, reviews, rows):
        return forgetting(reviews.elapsed[rows])

    def curve(self, reviews, rows, elapsed):
        return forgetting(elapsed) * (reviews.rating[rows, None] > 0)


def varied(name, base=Honest, **attributes):
    """Make a class that differs from another; it is local, so that no worker is asked for it."""
    return type(name, (base,), {"__qualname__": f"<locals>.{name}", **attributes})


def made(name, fit, **declared):
    """Make an algorithm without a curve; `fit` returns a function of the log and the rows."""

    def fitted(self, reviews, rows, rng):
        return Model(fit(reviews, rows))

    return varied(name, Algorithm, fit=fitted, **declared)


def predicts(name, predicted):
    """Make an algorithm that predicts by a function of the log and the rows."""
    return made(name, lambda reviews, rows: predicted)


def reads(name, column, **declared):
    """Make an algorithm that predicts by a function of the whole log."""
    return made(name, lambda _, __: lambda log, rows: column(log)[rows], **declared)


def learns(name, learned):
    """Make an algorithm that predicts one number, a function of the training log and rows."""

    def fit(reviews, rows):
        p = learned(reviews, rows)
        return lambda _, tested: np.full(len(tested), p)

    return made(name, fit)


def peeks(name, where):
    """Make an algorithm that knows the outcomes in some logs."""
    return predicts(
        name, lambda log, rows: np.where(where(log, rows) & log.recalled[rows], 0.9, 0.6)
    )


def caught(check, *cheats, declared=None, **columns):
    """Note cheats for a check, some of them as functions of the whole log."""
    of_columns = (reads(name, column, **declared or {}) for name, column in columns.items())
    CAUGHT[check].extend([*cheats, *of_columns])


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


def until_the_day_before(reviews):
    return recalled_until(reviews, day_begins(reviews))


def answer_times_of_the_day(reviews):
    spent = np.r_[0, np.cumsum(reviews.duration_ms)]
    return 0.1 + 0.8 / (1 + (spent[:-1] - spent[day_begins(reviews)]) / 10_000)


BLIND, FIT = checks.check_blind_to_the_future, checks.check_fit_ignores_test_rows
TIME = checks.check_time_of_prediction
SOUND, SAME, ODD = checks.check_predictions, checks.check_repetition, checks.check_extremes
WORKER = checks.check_goes_to_a_worker

# What can be read, by whom and how much of it, in pairs.
caught(
    BLIND,
    peeks("PeeksInLongLogs", lambda log, _: 480 < len(log) < 5000),
    peeks("PeeksAtUsersOfOrdinaryNames", lambda log, _: log.user != "trial"),
    peeks("PeeksWhereFewRowsAreAskedFor", lambda log, rows: 1 < len(rows) <= 8 < len(log) - 300),
    ReadsItsOwnRating=lambda log: np.where(log.recalled, 0.8, 0.7),
    ReadsItsOwnDuration=lambda log: 0.9 - log.duration_ms / 1e6,
    ReadsALaterReviewOfAnotherCard=lambda log: (
        0.7 + 0.1 * (following(log.recalled) & (following(log.card) != log.card))
    ),
    ReadsATenBillionth=lambda log: 0.8 + 1e-10 * log.recalled,
    ReadsTheAverageOfTheWholeLog=lambda log: np.full(len(log), log.recalled.mean()),
    ReadsGapsBetweenLaterDays=lambda log: 0.9 - 0.6 * (following(log.day) - log.day > 2),
    LeaksLessThanRounding=lambda log: 0.8 + 1e-14 * log.recalled,
    WhispersItsOutcomeBeforeTheEnd=lambda log: 0.8 + 4e-13 * np.append(log.recalled[:-1], [False]),
    LeaksInSinglePrecision=lambda log: (0.8 + 1e-7 * log.recalled).astype(np.float32),
)
caught(
    FIT,
    learns("FitsATenMillionthOnTestRows", lambda log, _: 0.8 + 1e-7 * log.recalled.mean()),
    learns("FitsOnTheElapsedTimesOfTestRows", lambda log, _: 1 / (2 + np.median(log.elapsed))),
    learns("FitsOnHowLongTestRowsGoOn", lambda log, _: 0.8 + 0.1 * (np.ptp(log.day) > 700)),
    learns("FitsOnTheOftenest", lambda log, _: 0.8 + 0.1 * (np.bincount(log.card).max() > 60)),
    made(
        "WhispersTheAnswersOfTestRows",
        lambda known, _: lambda log, rows: 0.8 + 4e-13 * np.resize(known.recalled, 9999)[rows],
    ),
)
caught(
    TIME,
    LearnsFromNewCardsWithoutSayingSo=lambda log: mean_before(log.recalled, log.elapsed_days < 0),
    LearnsUntilTheDayBeforeWithoutSayingSo=until_the_day_before,
    ReadsTheFourthReviewBefore=lambda log: 0.5 + 0.3 * np.roll(log.recalled, 4),
)
caught(
    TIME,
    declared={"when": "day_before"},
    TimesTheAnswersOfTheDay=answer_times_of_the_day,
    ReadsTheFirstOfTheDay=lambda log: (
        0.6 + 0.2 * log.recalled[day_begins(log)] * (np.arange(len(log)) > day_begins(log))
    ),
    CountsTheReviewsOfTheSession=lambda log: 0.5 / (2 + np.arange(len(log)) - day_begins(log)),
    WhispersTheSession=lambda log: 0.8 + 1e-13 * mean_before(log.recalled, log.elapsed_days > 0),
)
caught(SAME, learns("IgnoresTheSeed", lambda *_: np.random.default_rng().random()))
caught(
    SOUND,
    predicts("PredictsEveryReview", lambda log, _: np.full(len(log), 0.5)),
    ReadsTheTruth=lambda log: 0.01 + 0.9 * log.truth,
    IsCertain=lambda log: np.where(log.elapsed > 3, 0.5, 1.0),
    IsCertainOfForgetting=lambda log: 0.5 * (log.elapsed > 3),
    PredictsWholeNumbers=lambda log: np.zeros(len(log), np.int64),
)
caught(
    ODD,
    learns("NeedsATrainingReview", lambda _, rows: 0.5 + 0 * rows[-1]),
    learns("DividesByNothing", lambda _, rows: 0.5 if len(rows) else np.nan),
    predicts("NeedsARowToPredict", lambda log, rows: forgetting(log.elapsed[rows] + 0 * rows[0])),
    learns("NeedsThreeReviews", lambda _, rows: 0.5 + 0 * rows[2]),
    varied("ItsCurveNeedsARow", curve=lambda _, log, rows, times: forgetting(times + 0 * rows[0])),
    HasATableOfCounts=lambda log: np.full(999, 0.5)[rows_by_card(log.card).earlier(log.recalled)],
)


def asked_again(self, reviews, rows):
    self.asked = getattr(self, "asked", 0) + 1
    return np.full(len(rows), 1 / (1 + self.asked))


def curve_of_the_session(self, reviews, rows, elapsed):
    """Predictions are those of a curve fixed at the previous review; other times are not."""
    so_far = recalled_until(reviews, np.arange(len(reviews)))[rows, None]
    other = np.abs(elapsed - reviews.elapsed[rows, None]) > 1e-9
    return forgetting(elapsed) - 0.05 * other * so_far


caught(
    SOUND,
    varied("ChangesItsLog", fit=lambda self, log, *_: log.elapsed.fill(1) or Model(self.predicted)),
    varied("HasAnotherCurve", curve=lambda self, log, rows, times: forgetting(times + 1)),
    varied("ItsCurveHasNoRowOfTimes", curve=lambda self, log, rows, times: forgetting(times)[:, 1]),
    varied("HasATableOfParameters", fit=lambda self, *_: Model(self.predicted, np.ones((2, 2)))),
)
caught(SAME, varied("RemembersBeingAsked", predicted=asked_again))
caught(TIME, varied("ItsCurveFollowsTheSession", curve=curve_of_the_session))


class Learns(Honest):
    """Honest: learns a level, from scratch, from an earlier one, or in steps."""

    def fit(self, reviews, rows, rng):
        return self.model(self.level(reviews, rows))

    def refit(self, reviews, rows, rng, previous):
        return self.model((self.level(reviews, rows) + previous.parameters[0]) / 2)

    def fit_in_steps(self, reviews, rows, rng):
        yield self.fit(reviews, rows[: len(rows) // 2], rng)
        yield self.fit(reviews, rows, rng)

    def level(self, reviews, rows):
        if not len(rows):
            raise FitSkipped("no training reviews")
        return float(reviews.recalled[rows].mean())

    def model(self, level):
        return Model(
            lambda reviews, rows: self.out(level * forgetting(reviews.elapsed[rows])),
            parameters=(level,),
            curve=lambda reviews, rows, elapsed: self.out(level * forgetting(elapsed)),
        )

    def out(self, values):
        return values


class SharesOneArrayAmongItsModels(Learns):
    """Honest: predictions are copied before the next model makes others."""

    memory: ClassVar[np.ndarray] = np.empty(100_000)

    def out(self, values):
        shared = self.memory[: values.size].reshape(values.shape)
        shared[:] = values
        return shared


class WritesIntoWhatItGets(Learns):
    """Changes what it was given, as trainers with mini-batches do by accident."""

    def level(self, reviews, rows):
        level = super().level(reviews, rows)
        rows[:] = rows[::-1]
        return level

    def model(self, level):
        honest = super().model(level)

        def predicted(reviews, rows):
            p = honest.predict(reviews, rows)
            rows[:] = rows[::-1]
            reviews.card[:] = reviews.day[:] = 3
            return p

        def curve(reviews, rows, elapsed):
            p = honest.predict_at(reviews, rows, elapsed)
            elapsed[:] = 1.0
            return p

        return Model(predicted, (level,), curve)


def refits_on_test_rows(self, reviews, rows, rng, previous):
    return Learns.refit(self, reviews, np.arange(len(reviews)), rng, previous)


def refit_changes_its_start(self, reviews, rows, rng, previous):
    model = Learns.refit(self, reviews, rows, rng, previous)
    object.__setattr__(previous, "parameters", model.parameters)
    return model


_ANSWERS: dict = {}
_EASINESS: dict = {}


class KeepsAnswersByLength(Honest):
    """Whichever log comes first says what is predicted for all others of its length."""

    def predicted(self, reviews, rows):
        kept = _ANSWERS.setdefault(len(reviews), reviews.recalled.copy())
        return np.where(kept[rows], 0.9, 0.6)


def keeps_the_latest_table(reviews, rows):
    """Each fit counts its cards anew, but forgets none of them: two fits alike are the same."""
    for card in np.unique(reviews.card[rows]):
        right = reviews.recalled[rows][reviews.card[rows] == card]
        _EASINESS[card] = (9 + right.sum()) / (10 + len(right))
    return lambda log, rows: np.array([_EASINESS.get(card, 0.9) for card in log.card[rows]])


class KeepsALambda(Honest):
    def __init__(self):
        self.curve_of = lambda elapsed: forgetting(elapsed)


def steps(name, steps_of):
    """Make an algorithm whose fit in steps is a function of itself, the log, and the rows."""

    def fit_in_steps(self, reviews, rows, rng):
        return steps_of(partial(self.fit, rng=rng), reviews, rows)

    return varied(name, Learns, fit_in_steps=fit_in_steps)


KNOWING = Model(lambda reviews, rows: np.where(reviews.recalled[rows], 0.9, 0.6))
caught(
    BLIND,
    steps("AStepKnowsItsOutcomes", lambda fit, log, rows: [KNOWING, fit(log, rows)]),
    varied(
        "ItsCurveWhispersItsOutcome",
        curve=lambda self, log, rows, times: forgetting(times) + 1e-13 * log.recalled[rows, None],
    ),
)
caught(
    FIT,
    steps("AStepLearnsFromTestRows", lambda fit, log, _: [fit(log, np.arange(len(log)))] * 2),
    varied("RefitsOnTestRows", Learns, refit=refits_on_test_rows),
)
caught(
    SAME,
    varied("RefitChangesTheModelItStartsFrom", Learns, refit=refit_changes_its_start),
    steps("ItsStepsEndElsewhere", lambda fit, log, rows: [fit(log, rows[: len(rows) // 2])]),
    steps("ItsStepsHaveNoParameters", lambda fit, log, rows: [Model(fit(log, rows).predicted)]),
    steps("HasNoSteps", lambda *_: []),
    made("KeepsTheLatestTable", keeps_the_latest_table),
)
caught(SOUND, WritesIntoWhatItGets)
caught(WORKER, KeepsAnswersByLength, KeepsALambda)


def skips_every_user(reviews, rows):
    raise FitSkipped("there is no user like that")


def needs_many_reviews(reviews, rows):
    """Skip users with too few reviews."""
    if len(rows) < 400:
        raise FitSkipped("fewer than 400 training reviews")
    return lambda log, rows: forgetting(log.elapsed[rows])


def single_precision(log, rows):
    """Round to what depends a little on how many rows are predicted together."""
    p = forgetting(log.elapsed[rows]).astype(np.float32)
    return np.nextafter(p, np.float32(len(rows) % 2))


SkipsEveryUser = made("SkipsEveryUser", skips_every_user)
HONEST = [
    *(
        SharesOneArrayAmongItsModels,
        made("NeedsMany", needs_many_reviews),
    ),
    predicts("HasPredictionsInSinglePrecision", single_precision),
    reads(
        "LearnsUntilThePreviousReview",
        lambda log: recalled_until(log, rows_by_card(log.card).previous() + 1),
    ),
    reads("LearnsUntilTheDayBefore", until_the_day_before, when="day_before"),
    reads(
        "LearnsUntilTheReview",
        lambda log: recalled_until(log, np.arange(len(log))),
        when="at_review",
    ),
]
CHEATS = {cheat.__name__: cheat for cheats in CAUGHT.values() for cheat in cheats}
ReadsItsOwnRating = CHEATS["ReadsItsOwnRating"]  # by a name that options can have

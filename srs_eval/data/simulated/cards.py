"""Cards on their way from one answer to the next, all columns advancing together.

An answer is a true probability, a button and the time it takes; after it, the person's memory moves
as `Memory` says, and the app asks for the card again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.data.simulated.life import Life, hashed_uniform
from srs_eval.data.simulated.people import AGAIN, EASY, GOOD, HARD, Learner, bounded

NEW, LEARNING, REVIEW, RELEARNING = 0, 1, 2, 3

_DAY = 86400.0
_LEAST_STABILITY, _MOST_STABILITY = 0.02, 36500.0  # Half an hour and a hundred years
# Factors of stability on the same day, by rating
_STEP_EFFECT = np.array([np.nan, 0.6, 1.3, 1.3, 1.3])
_FIRST_STEP, _LATER_STEP, _SHORTEST_STEP, _LONGEST_STEP = 60.0, 600.0, 20.0, 1500.0
_MOST_STEPS = 7
_STEPS_PASSED = np.array([0, 0, 0, 1, _MOST_STEPS])  # By rating
_STATE_OF_STEPS = np.array([LEARNING, LEARNING, RELEARNING, RELEARNING])  # By the state before
_DIFFICULTY_SPREAD = 1.8
# Log time by rating, against Good; by rating, per log-odds of recall; and by state of the card
_SLOWER = np.array([np.nan, 0.30, 0.25, 0.0, -0.30])
_EASE_TIME = np.array([np.nan, 0.0, -0.05, -0.05, -0.05])
_STATE_TIME = np.array([0.15, -0.25, 0.0, -0.25])


def simulated(learner: Learner, rng: np.random.Generator) -> dict[str, Any]:
    """Simulate one user until they have made their reviews; return columns as in `Reviews`.

    Cards do not influence one another, so they are simulated in groups until there are enough
    reviews; then the log ends with the last review that was asked for. Answers are in the order the
    questions were shown, with exactly ``learner.later_reviews`` reviews on a later day than the one
    before. Days count from 0, and cards in the order in which they come up first.
    """
    life = Life(learner, rng)
    waves: list[dict[str, Any]] = []
    count, reviews = 0, 0
    while reviews < learner.later_reviews:
        missing = learner.later_reviews - reviews
        # The number of further cards is estimated from the cards so far; the first few are a guess.
        extra = 1.03 * missing * count / reviews if reviews else missing / 12
        cards = Cards(count, int(extra) + 24, life)
        count += len(cards)
        while len(cards):
            waves.append(cards.answer())
            reviews += int(np.sum(waves[-1]["elapsed_days"] > 0))
    log = {name: np.concatenate([wave[name] for wave in waves]) for name in waves[0]}
    # Two cards may come up in the same instant; the card number then decides.
    order = np.lexsort((log["card"], log.pop("second")))
    end = np.searchsorted(np.cumsum(log["elapsed_days"][order] > 0), learner.later_reviews)
    log = {name: column[order[: end + 1]] for name, column in log.items()}
    return {**log, "card": pd.factorize(log["card"])[0], "day": log["day"] - log["day"][0]}


class Cards:
    """Cards about to be reviewed for the k-th time; every column has one entry per card.

    As all are at their k-th review, either all of them are new or none is.
    """

    def __init__(self, begin: int, count: int, life: Life) -> None:
        """Draw cards never seen before, and the days they come up."""
        learner, rng = life.learner, life.rng
        nothing: IntArray = np.zeros(count, np.int64)
        zeros: FloatArray = np.zeros(count)
        self.life = life
        # Of the review to come; a cohort are the cards introduced in the same half of a day
        self.slot = np.searchsorted(life.arrivals, rng.random(count), side="right")
        self.day = life.day_of_slot[self.slot]
        self.card = np.arange(begin, begin + count, dtype=np.int64)
        self.cohort = 2 * self.day + self.card % 2
        self.state = np.full(count, NEW, np.int64)
        # Also what is added to the log-odds of recall on the day of the review
        self.second, self.cohort_ability = life.showing(self.slot, self.cohort)
        self.later_day = np.ones(count, np.bool_)  # Whether not on the day of the review before
        # Day of the review before, and second its answer was given; 0 while new
        self.last_day, self.answered = nothing, zeros
        # Same-day repetitions still to do and done, and how often it was forgotten
        self.steps_left = np.full(count, learner.steps[NEW])
        self.steps_today, self.lapses = nothing, nothing
        # The truth, fixed: in standard deviations, factors of stability gains and of stability
        # after forgetting, and what is added to the log time of answers
        on_scale = np.clip(5 + _DIFFICULTY_SPREAD * rng.standard_normal(count), 1, 10)
        self.difficulty = (on_scale - 5) / _DIFFICULTY_SPREAD
        growth = np.exp(learner.card_growth * rng.standard_normal(count))
        self.growth = growth * learner.memory.growth * (11 - on_scale)
        self.relapse = learner.memory.relapse * on_scale**-0.06
        slowness = 0.27 * ndtri(hashed_uniform(life.keys[2], self.card, self.cohort))
        self.slowness = slowness + 0.27 * self.difficulty
        # Days; while new, a multiplier of the person's first stability
        self.stability = np.exp(learner.card_stability * rng.standard_normal(count))
        # What the app believes, and the factor of stability gains it knows of cards of this kind,
        # which does not tell it all of their difficulty
        self.believed_stability, self.believed_difficulty = zeros, zeros
        self.kind = growth * np.exp(-0.4 * self.difficulty)

    def __len__(self) -> int:
        return len(self.card)

    @property
    def new(self) -> bool:
        """Whether the cards are at their first review."""
        return bool(self.state[0] == NEW)

    def answer(self) -> dict[str, Any]:
        """Answer each card once and plan its next review; drop the finished.

        Return the answers: columns are as in `Reviews`, with the `second` from the first day change
        to the question.
        """
        life = self.life
        moment = life.moment(self.slot, self.second)
        truth, odds, ease = self._recall(moment)
        rating = self._rating(life.rng.random(len(self)) < truth, odds)
        duration_ms = self._duration(rating, ease, moment)
        # Whole seconds from answer to answer, so that without its time an answer ends the interval.
        until_answer = np.rint(np.floor(self.second - self.answered) + duration_ms / 1000)
        answers = {
            "card": self.card,
            "day": self.day,
            "second": self.second,
            "rating": rating,
            "elapsed_days": np.where(self.new, -1, self.day - self.last_day),
            "elapsed_seconds": np.where(self.new, -1, until_answer),
            "duration_ms": duration_ms,
            "state": self.state,
            "truth": truth,
            "deck": life.deck_of_cohort[self.cohort],
        }
        self._learn(rating, odds)
        self._plan(rating, duration_ms)
        return answers

    def _recall(self, moment: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute how well each card is remembered, given all there is to know before its review.

        Returns the probability of any rating but Again, the log-odds of the share remembered,
        without abilities, guesses and slips, and those of recall without what the day, the session
        and the cohort add.
        """
        learner, memory = self.life.learner, self.life.learner.memory
        if self.new:
            odds = np.full(len(self), np.inf)
            ease = learner.first_level + 0.4 * np.log(self.stability) - 0.54 * self.difficulty
        else:
            seconds = self.second - self.answered
            # A stretched exponential, through 0.9 at the stability.
            share = np.exp(np.log(0.9) * (seconds / _DAY / self.stability) ** memory.shape)
            share = bounded(share, 1e-6, 1 - 1e-6)
            odds = np.log(share / (1 - share))
            # Minutes after the last answer, stability hardly matters.
            soon = memory.step_level + 0.4 * np.log(self.stability / 3.0)
            ease = np.where(self.later_day, odds, soon - 0.3 * np.log(seconds / 600.0))
            ease -= 0.9 * self.difficulty
        ability = self.life.ability.take(moment) + self.cohort_ability
        # Memory but for guesses and slips.
        truth = memory.guess + (1 - memory.guess - memory.slip) * _probability(ease + ability)
        return truth, odds, ease + learner.level

    def _rating(self, recalled: BoolArray, odds: FloatArray) -> IntArray:
        """Press a button: Again if it was not recalled, else by how hard recalling was."""
        learner = self.life.learner
        if self.new:
            hard = _probability(learner.hard_habit)
            easy = _probability(learner.easy_habit + 2.0)
        else:
            strain = 0.5 * (2.2 - bounded(odds, -2, 6)) + 0.45 * self.difficulty
            hard = _probability(learner.hard_habit + strain)
            easy = _probability(learner.easy_habit - strain)
        # Easy is given to what is left, so that the two shares never exceed the whole.
        easy *= 1 - hard
        drawn = self.life.rng.random(len(self))
        conditions = [~recalled, drawn < hard, drawn < hard + easy]
        return np.select(conditions, [AGAIN, HARD, EASY], GOOD).astype(np.int64)

    def _duration(self, rating: IntArray, ease: FloatArray, moment: IntArray) -> FloatArray:
        """Whole milliseconds an answer takes, from 400 to 60,000; 12 % take three times as long."""
        life = self.life
        log_time = _SLOWER[rating] + 0.54 * life.rng.standard_normal(len(self))
        log_time += self.slowness + _STATE_TIME[self.state] + life.log_time.take(moment)
        log_time += _EASE_TIME[rating] * (bounded(ease, -2, 5) - 2)
        log_time += np.log(3) * (life.rng.random(len(self)) < 0.12)
        duration = life.learner.answer_ms * np.exp(log_time)
        return bounded(duration.round(), 400.0, 60_000.0)

    def _learn(self, rating: IntArray, odds: FloatArray) -> None:
        """Move what the person knows, and what the app believes, past one answer.

        `odds` are the log-odds of the share that was remembered.
        """
        memory, app = self.life.learner.memory, self.life.learner.app
        if self.new:
            stability = self.stability * memory.first_stability[rating - 1]
            self.believed_stability, self.believed_difficulty = app.first(rating)
        else:
            stability = self.stability * _STEP_EFFECT[rating]
            (rows,) = self.later_day.nonzero()
            pressed, before = rating[rows], self.stability[rows]
            forgotten = _probability(-odds[rows])
            gain = self.growth[rows] * before**-memory.saturation
            gain *= np.expm1(memory.spacing * forgotten)
            recalled = before * (1 + gain * memory.share[pressed])
            after_lapse = self.relapse[rows] * ((before + 1) ** memory.relapse_power - 1)
            failed = np.minimum(after_lapse * np.exp(memory.relapse_spacing * forgotten), before)
            noise = np.exp(0.1 * self.life.rng.standard_normal(len(rows)))
            stability[rows] = noise * np.where(pressed > AGAIN, recalled, failed)
            # The app goes by the first review of each day.
            believed = self.believed_stability[rows], self.believed_difficulty[rows]
            days = self.day[rows] - self.last_day[rows]
            self.believed_stability[rows], self.believed_difficulty[rows] = app.later(
                believed, days, pressed, self.kind[rows]
            )
        self.stability = bounded(stability, _LEAST_STABILITY, _MOST_STABILITY)

    def _plan(self, rating: IntArray, duration_ms: FloatArray) -> None:
        """Plan the next review of each card, later today or on a later day; drop the finished.

        A card is finished when it is given up as a leech, or when life ends before it is due.
        """
        life, learner, rng = self.life, self.life.learner, self.life.rng
        again = rating == AGAIN
        self.lapses = self.lapses + (again & (self.state == REVIEW))
        self.answered = self.second + duration_ms / 1000
        self.steps_today = np.where(self.later_day, 0, self.steps_today + 1)
        # How many repetitions on the same day are left, and the state they are done in.
        steps = np.maximum(self.steps_left - _STEPS_PASSED[rating], 0)
        self.steps_left = np.where(again, learner.steps[self.state], steps)
        self.state = np.where(self.steps_left > 0, _STATE_OF_STEPS[self.state], REVIEW)
        today = (self.steps_left > 0) & (self.steps_today < _MOST_STEPS)
        drawn, lot, late = rng.random((3, len(self)))
        put_off = today & (drawn < 0.03)
        days = learner.app.interval(self.believed_stability, lot)
        due = np.minimum(self.day + np.where(today, 1, days), learner.life_days)
        # The days with study that go by before a due card is done are geometrically distributed.
        days_late = np.log1p(-late) / np.log1p(-learner.promptness)
        slot = life.slot_from_day[due] + days_late.astype(np.int64)
        self.later_day = put_off | ~today
        self.slot = np.where(self.later_day, slot, self.slot)
        self.last_day = self.day
        alive = (self.slot < len(life.day_of_slot)) & (self.lapses < learner.leech_lapses)
        for name, column in vars(self).items():
            if name != "life":
                setattr(self, name, column[alive])
        again = again[alive]
        self.day = life.day_of_slot[self.slot]
        # From an answer to the same-day repetition: one minute or ten, give or take.
        soon = _FIRST_STEP if learner.steps[LEARNING] > 1 else _LATER_STEP
        wait = np.where(again & (self.state == LEARNING), soon, _LATER_STEP)
        wait *= np.exp(0.4 * rng.standard_normal(len(wait)))
        wait = bounded(wait, _SHORTEST_STEP, _LONGEST_STEP)
        showing, self.cohort_ability = life.showing(self.slot, self.cohort)
        self.second = np.where(self.later_day, showing, self.answered + wait)


def _probability(odds: Any) -> Any:
    """Probability of some log-odds."""
    return 1 / (1 + np.exp(-odds))

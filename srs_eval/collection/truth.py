"""Whether predicted recall is true, of late reviews as well: calibration for lay readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from srs_eval.collection.section import Mark, Picture, Section
from srs_eval.collection.study import Study
from srs_eval.collection.words import between
from srs_eval.comparison.words import counted, percent
from srs_eval.data.reviews import BoolArray, FloatArray
from srs_eval.metrics.means import clustered_mean
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.significance import ALPHA, exact_interval

QUESTION = "Is what Anki tells me true?"
_QUESTION_OF_NEW = "What would FSRS tell me with new parameters?"
_EDGES = (0.0, 0.65, 0.75, 0.825, 0.875, 0.925, 0.975, 1.0)
_LEVELS = ("below 65 %", "70 %", "80 %", "85 %", "90 %", "95 %", "above 97.5 %")
_DAYS = ((1, 1), (2, 3), (4, 7), (8, 14), (15, 30), (31, 90), (91, 365), (366, None))
_NEAR = 0.025
_ENOUGH = 30
_WIDE = 0.1
_MOST_GROUPS = 12
_MONTH = 30
# First and last day late of each group.
_LATE = ((1, 1), (2, 3), (4, 7), (8, 14), (15, 30), (31, None))
_SAID = "what FSRS said"
_RECALLED = "what you recalled"


@dataclass(frozen=True, slots=True)
class Share:
    """Recall in a group of reviews."""

    name: str  # The group
    reviews: int  # How many there are, at least one
    # Mean prediction, and share of recalls
    predicted: float
    observed: float
    # Interval of the true share
    lo: float
    hi: float

    @property
    def too_high(self) -> bool:
        """Whether predictions are above the interval."""
        return self.predicted > self.hi

    @property
    def too_low(self) -> bool:
        """Whether predictions are below the interval."""
        return self.predicted < self.lo

    @property
    def is_off(self) -> bool:
        """Whether predictions are outside the interval."""
        return self.too_high or self.too_low

    @property
    def recalled(self) -> str:
        """The observed share in words, with its interval."""
        return f"{percent(self.observed)} ({between(self.lo, self.hi)})"


def truth(study: Study) -> Section:
    """Return the section."""
    scored = study.scored
    if scored is None:
        return Section(QUESTION, "Nothing can be said: too few of the reviews can be scored.")
    by_level = shares(scored, list(_by_level(scored)))
    wanted = shares(scored, list(_by_desired_retention(study, scored)))
    pictures = [
        picture_of("By what FSRS said", by_level),
        picture_of("Where FSRS said the recall that you want", wanted),
        picture_of("By days since the card's last review", shares(scored, list(_by_days(scored)))),
        picture_of("By preset", shares(scored, list(_by_group(study, "preset")))),
        picture_of("By deck", shares(scored, list(_by_group(study, "deck")))),
        picture_of("Over the days of the log", shares(scored, list(_by_month(scored)))),
    ]
    answer = _answer(study, scored, study.whose)
    return Section(QUESTION, answer, list(_notes(study)), [p for p in pictures if p is not None])


def truth_of_new(study: Study) -> Section | None:
    """Return the section on the parameters that are recommended; None where they say the same."""
    scored = study.fitted.predictions
    if scored is None or study.scored is None or np.array_equal(scored.p, study.scored.p):
        return None
    picture = picture_of("By what FSRS said", shares(scored, list(_by_level(scored))))
    answer = _answer(study, scored, "FSRS with new parameters")
    notes = ["Each prediction is made by parameters that were fitted to earlier reviews only."]
    return Section(_QUESTION_OF_NEW, answer, notes, [] if picture is None else [picture])


def _answer(study: Study, scored: Predictions, who: str) -> str:
    """Compare what was said with what was recalled, over all reviews and about the usual level."""
    judged = _judged(average(scored), shares(scored, list(_by_level(scored))), who)
    judged = f"{judged[:1].upper()}{judged[1:]} ({counted(len(scored), 'scored review')})."
    level = usual_level(study, scored)
    if level is None:
        return judged
    return (
        f"{judged} Where it says about {percent(level.predicted)} "
        f"({counted(level.reviews, 'review')}), you recall {level.recalled}."
    )


def average(scored: Predictions) -> Share:
    """Return all reviews."""
    return shares(scored, [("all reviews", np.ones(len(scored), np.bool_))])[0]


def usual_level(study: Study, scored: Predictions) -> Share | None:
    """Return the reviews at the recall that is asked for, or else said most; None if few."""
    spoken = shares(scored, list(_near_usual_retention(study, scored)))
    spoken = spoken or shares(scored, list(_by_level(scored)))
    level = max(spoken, key=lambda share: share.reviews)
    return level if level.reviews >= _ENOUGH else None


def _judged(
    everything: Share, groups: Sequence[Share], who: str, where: str = "where it says"
) -> str:
    """Decide by intervals alone."""
    said = f"it said {percent(everything.predicted)}, and you recalled {everything.recalled}"
    off = ", ".join(f"{s.name} (too {'high' if s.too_high else 'low'})" for s in groups if s.is_off)
    if everything.is_off:
        return (
            f"on average {who} promises too {'much' if everything.too_high else 'little'}: {said}"
        )
    is_wide = everything.hi - everything.lo > _WIDE
    if off:
        whole = "it cannot be said whether it is right" if is_wide else "there is no sign of error"
        return f"{who} is wrong by more than chance {where} {off}, and on average {whole}: {said}"
    if is_wide:
        return f"whether {who} is right on average cannot be said: {said}"
    return f"there is no sign that {who} is wrong: on average {said}"


def lateness(study: Study) -> Section | None:
    """Return the section on late reviews; None if it is not known when reviews were due."""
    scored = study.scored
    if scored is None or scored.elapsed_days is None:
        return None
    due = study.group("due")
    known = due > 0
    if not known.any():
        return None
    late = scored.elapsed_days - due
    rows = shares(scored, [(name, known & chosen) for name, chosen in _by_days_late(late)])
    notes = [
        "Late is the number of days after the day on which Anki had scheduled the card at its "
        "last answer."
    ]
    if unknown := int((~known).sum()):
        notes.append(
            f"Not shown: {counted(unknown, 'review')} that were due on the day of the answer "
            "before, or it is not known when."
        )
    answer = "None of the scored reviews was late."
    if came_late := shares(scored, [("late", known & (late > 0))]):
        late_rows = [row for row in rows if "late" in row.name]
        judged = _judged(came_late[0], late_rows, study.whose, "about reviews that were")
        of = f"{came_late[0].reviews:,} of {counted(len(scored), 'scored review')}"
        answer = f"Of the late reviews ({of}): {judged}."
    picture = picture_of("By days late", rows)
    return Section("And when I am late?", answer, notes, [picture] if picture else [])


def _by_days_late(late: FloatArray) -> Iterator[tuple[str, BoolArray]]:
    yield "early", late < 0
    yield "on the day", late == 0
    for first, last in _LATE:
        name = f"{first} to {last} days late" if last else f"over {first - 1} days late"
        name = "1 day late" if last == 1 else name
        yield name, (late >= first) & (late <= (last or np.inf))


def _notes(study: Study) -> Iterator[str]:
    scored = study.scored
    assert scored is not None
    if study.current:
        yield (
            f"FSRS predicted {counted(len(scored), 'review')} with the parameters that the "
            "collection has now."
        )
        if study.is_in_sample:
            yield (
                "Those parameters may have been optimised on these very reviews, which makes them "
                "look better than they will be from now on."
            )
    else:
        why = "the presets of these cards are not known"
        if study.is_off:
            why = "FSRS is off in this collection, so Anki itself predicts nothing"
        elif study.settings is None:
            why = "the log has no FSRS parameters"
        yield (
            f"FSRS predicted {counted(len(scored), 'review')} with its default parameters: {why}."
        )
    yield (
        "Which recall to ask for is not answered here: it weighs work against memory, which takes "
        "a simulation of the reviews to come."
    )
    yield (
        "Dots are the share of reviews in which you recalled the card, lines their 99 % range: all "
        "ranges of one picture hold the true values in 99 of 100 such pictures. Strokes are what "
        "FSRS said. A stroke outside its range is coloured: there FSRS erred by more than chance."
    )


def picture_of(title: str, rows: Sequence[Share]) -> Picture | None:
    """Return a picture of shares; None if there are none."""
    if not rows:
        return None
    marks = [
        Mark(
            share.name,
            share.observed,
            share.lo,
            share.hi,
            share.predicted,
            stands_out=share.is_off,
            reviews=share.reviews,
        )
        for share in rows
    ]
    return Picture(title, _RECALLED, _SAID, marks)


def _by_level(scored: Predictions) -> Iterator[tuple[str, BoolArray]]:
    place = np.clip(np.searchsorted(_EDGES, scored.p, side="right") - 1, 0, len(_LEVELS) - 1)
    for number, name in enumerate(_LEVELS):
        yield name, place == number


def _by_desired_retention(study: Study, scored: Predictions) -> Iterator[tuple[str, BoolArray]]:
    wanted = _desired_retention(study, scored)
    for retention in np.unique(wanted[~np.isnan(wanted)]).tolist():
        rows = (wanted == retention) & (np.abs(scored.p - retention) <= _NEAR)
        yield f"you want {100 * retention:g} %", rows


def _near_usual_retention(study: Study, scored: Predictions) -> Iterator[tuple[str, BoolArray]]:
    """Yield all reviews, of whichever preset, at the recall that is wanted of most of them."""
    wanted = _desired_retention(study, scored)
    values, counts = np.unique(wanted[~np.isnan(wanted)], return_counts=True)
    if len(values):
        yield "wanted", np.abs(scored.p - values[np.argmax(counts)]) <= _NEAR


def _desired_retention(study: Study, scored: Predictions) -> FloatArray:
    """Return the desired retention of the preset of each review; NaN where it is not known."""
    wanted = np.full(len(scored), np.nan)
    if study.settings is None:
        return wanted
    for number in study.current:
        settings = study.settings.presets.get(number)
        if settings is not None:
            wanted[study.group("preset") == number] = settings.desired_retention
    return wanted


def _by_days(scored: Predictions) -> Iterator[tuple[str, BoolArray]]:
    days = scored.elapsed_days
    assert days is not None
    for first, last in _DAYS:
        name = f"{first} to {last} days" if last else f"{first} days and more"
        name = "1 day" if last == 1 else name
        yield name, (days >= first) & (days <= (last or np.inf))


def _by_group(study: Study, group: str) -> Iterator[tuple[str, BoolArray]]:
    numbers = study.group(group)
    titles = study.log.titles.get(group, {})
    found, counts = np.unique(numbers[numbers >= 0], return_counts=True)
    if len(found) < 2:
        return
    largest = found[np.argsort(-counts, kind="stable")][:_MOST_GROUPS].tolist()
    for number in largest:
        yield titles.get(number, f"{group} {number}"), numbers == number
    yield f"other {group}s", (numbers >= 0) & ~np.isin(numbers, largest)
    yield "deleted cards", numbers < 0


def _by_month(scored: Predictions) -> Iterator[tuple[str, BoolArray]]:
    day = scored.day
    assert day is not None
    first, last = int(day.min()), int(day.max())
    months = max(1, -(-(last - first + 1) // (_MONTH * _MOST_GROUPS)))
    span = months * _MONTH
    for begin in range(first, last + 1, span):
        end = min(begin + span - 1, last)
        yield f"{begin:,} to {end:,}", (day >= begin) & (day <= end)


def shares(predictions: Predictions, groups: Sequence[tuple[str, BoolArray]]) -> list[Share]:
    """Compute the recall of each group, a name and a mask, that has reviews.

    The intervals of all groups together hold with 99 %: each has 1 - 0.01 / groups (Bonferroni).
    Each is exact for as many independent reviews as have the variance of the sum of those within
    cards and days (Korn and Graubard, 1998, Survey Methodology 24, 193-201): of one review, it
    reaches from nearly 0 or to nearly 1. Where all
    reviews turned out alike, cards or days are counted, whichever are fewer.
    """
    held = [(name, rows) for name, rows in groups if rows.any()]
    level = 1 - ALPHA / max(1, len(held))
    return [_share(predictions, name, rows, level) for name, rows in held]


def _share(predictions: Predictions, name: str, rows: BoolArray, level: float) -> Share:
    recalled = predictions.recalled[rows].astype(np.float64)
    clusters = [predictions.card[rows]]
    if predictions.day is not None:
        clusters.append(predictions.day[rows])
    observed = float(recalled.mean())
    effective = float(min(len(np.unique(cluster)) for cluster in clusters))
    variance = clustered_mean(recalled, *clusters).se ** 2
    if variance > 0:
        effective = min(observed * (1 - observed) / variance, float(len(recalled)))
    lo, hi = exact_interval(observed * effective, effective, level=level)
    predicted = float(np.mean(predictions.p[rows], dtype=np.float64))
    return Share(name, len(recalled), predicted, observed, lo, hi)

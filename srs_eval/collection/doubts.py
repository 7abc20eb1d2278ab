"""What was left out of the report, and what to doubt in it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from srs_eval.collection.section import Section
from srs_eval.collection.study import Study
from srs_eval.comparison.table import Table
from srs_eval.comparison.words import counted

QUESTION = "What should I doubt?"
_FEW = 1000
_FILTERED = 4
_PARAMETERS = (0, 17, 19, 21)


def doubts(study: Study) -> Section:
    """Return the section."""
    found = list(_doubts(study))
    scored = study.now.reviews
    first = f"{counted(scored, 'review')} were scored" if scored != 1 else "1 review was scored"
    rows = list(funnel(study))
    answer = f"{first}, of {counted(int(rows[0][1]), 'row')} in the log."
    if not scored:
        answer += " So nothing can be judged."
    elif scored < _FEW:
        answer += " That is few: ranges are wide, and all but large differences are out of reach."
    table = Table(["", "rows", "left"], rows, title="From all rows to scored reviews")
    # Notes of readers are parts of sentences.
    of_reader = [f"{note[:1].upper()}{note[1:]}." for note in study.log.notes]
    return Section(QUESTION, answer, [*found, *of_reader], parts=[table])


def funnel(study: Study) -> Iterator[tuple[str, int, int]]:
    """Go through the reasons why rows are not scored: name, rows, and rows that are left."""
    log = study.log
    left = len(log) + sum(log.left_out.values())
    yield "all rows of the log", left, left
    for reason, count in log.left_out.items():
        left -= count
        yield f"left out: {reason}", count, left
    first = int(np.count_nonzero(log.elapsed_days < 0))
    same_day = int(np.count_nonzero(log.elapsed_days == 0))
    yield "first review of a card: nothing to predict", first, left - first
    left -= first
    yield "on the day of the card's last review", same_day, left - same_day
    left -= same_day
    usable = study.can_learn
    why = "cards whose first interval few other cards had, or after the 128th review of a card"
    yield why, left - usable, usable
    scored = study.now.reviews
    why = "learned from and never scored, the first sixth"
    yield (
        why if study.task is not None else "too few are left to score any",
        usable - scored,
        scored,
    )


def _doubts(study: Study) -> Iterator[str]:
    log = study.log
    if log.state is not None and (filtered := int(np.count_nonzero(log.state == _FILTERED))):
        yield (
            f"{counted(filtered, 'review')} in filtered decks, with rescheduling, count like any "
            "other; they are often early or late."
        )
    if log.preset is not None and (unknown := int(np.count_nonzero(log.preset < 0))):
        yield (
            f"{counted(unknown, 'review')} of deleted cards or of cards without a known preset "
            "are predicted with default parameters wherever parameters of presets are used."
        )
    if log.preset is not None:
        yield (
            "Cards belong to the deck and preset they are in now: Anki does not record where they "
            "were when they were reviewed."
        )
    if study.is_off:
        yield "FSRS is off in this collection: intervals were not chosen by what is judged here."
    elif study.settings is not None:
        yield (
            "Anki keeps the parameters of now only: earlier answers may have been scheduled with "
            "others, or without FSRS."
        )
        odd = [
            number
            for number in study.presets
            if len(getattr(study.settings.presets.get(number), "parameters", ())) not in _PARAMETERS
        ]
        if odd:
            names = ", ".join(map(study.title, odd))
            yield f"Parameters of no known version were taken for the default ones: {names}."
    results = {result.name: result for result in (study.default, study.now, study.fitted)}
    for name, result in results.items() if study.task is not None else ():
        if result.exceptions:
            yield f"Fits of {name}: {result.exceptions}."

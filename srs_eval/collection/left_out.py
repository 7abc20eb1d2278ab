"""What was left out of the answer, and what to doubt in it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from srs_eval.collection.study import Study
from srs_eval.comparison.words import counted

_FILTERED = 4
_PARAMETERS = (0, 17, 19, 21)


def funnel(study: Study) -> Iterator[tuple[str, int, int]]:
    """Go through the reasons why rows are not scored: name, rows, and rows that are left."""
    log = study.log
    rows = len(log) + sum(log.left_out.values())
    yield "all rows of the log", rows, rows
    for reason, count in log.left_out.items():
        rows -= count
        yield f"left out: {reason}", count, rows
    first = int(np.count_nonzero(log.elapsed_days < 0))
    same_day = int(np.count_nonzero(log.elapsed_days == 0))
    yield "first review of a card: nothing to predict", first, rows - first
    rows -= first
    yield "on the day of the card's last review", same_day, rows - same_day
    rows -= same_day
    usable = study.can_learn
    why = "cards whose first interval few other cards had, or after the 128th review of a card"
    yield why, rows - usable, usable
    scored = study.now.reviews
    why = "learned from and never scored, the first sixth"
    yield (
        why if study.task is not None else "too few are left to score any",
        usable - scored,
        scored,
    )


def remarks(study: Study) -> Iterator[str]:
    """Go through what to know of the log and its settings."""
    log = study.log
    if log.state is not None and (filtered := int(np.count_nonzero(log.state == _FILTERED))):
        yield f"{counted(filtered, 'review')} in filtered decks count like any other."
    if log.preset is not None and (unknown := int(np.count_nonzero(log.preset < 0))):
        yield (
            f"{counted(unknown, 'review')} of deleted cards or without a known preset are "
            "predicted with default parameters wherever parameters of presets are used."
        )
    settings = study.settings.presets if study.settings and not study.is_off else {}
    for preset in study.presets:
        if preset in settings and len(settings[preset].parameters) not in _PARAMETERS:
            yield f"The list of {study.title(preset)} is of no known version: default ones count."
    results = {"default": study.default, "now": study.now, "new": study.fitted}
    for name, result in results.items() if study.task is not None else ():
        if result.exceptions:
            yield f"Fits of {name} parameters: {result.exceptions}."
    # notes of readers are parts of sentences
    yield from (f"{note[:1].upper()}{note[1:]}." for note in log.notes)

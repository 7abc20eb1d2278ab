"""Whether predictions hold for reviews that were made late or early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from srs_eval.collection.section import Section
from srs_eval.collection.shares import Share, shares
from srs_eval.collection.study import Study
from srs_eval.collection.truth import picture_of
from srs_eval.collection.words import with_interval
from srs_eval.nouns import BoolArray, FloatArray
from srs_eval.text.console import counted, percent

# First and last day late of each group.
_LATE = ((1, 1), (2, 3), (4, 7), (8, 14), (15, 30), (31, None))


def lateness(study: Study) -> Section | None:
    """Return the section; None if it is not known when reviews were due."""
    scored = study.scored
    if scored is None or scored.elapsed_days is None:
        return None
    due = study.group("due")
    known = due > 0
    if not known.any():
        return None
    late = scored.elapsed_days - due
    rows = shares(scored, [(name, known & chosen) for name, chosen in _groups(late)])
    of_late = [row for row in rows if "late" in row.name]
    answer = _answer(of_late, int((known & (late > 0)).sum()), study.whose)
    notes = [
        "Late is the number of days after the day on which Anki had scheduled the card at its "
        "last answer."
    ]
    if unknown := int((~known).sum()):
        notes.append(
            f"Not shown: {counted(unknown, 'review')} that were due on the day of the answer "
            "before, or it is not known when."
        )
    picture = picture_of("By days late", rows)
    return Section("And when I am late?", answer, notes, [picture] if picture else [])


def _groups(late: FloatArray) -> Iterator[tuple[str, BoolArray]]:
    yield "early", late < 0
    yield "on the day", late == 0
    for first, last in _LATE:
        name = f"{first} to {last} days late" if last else f"over {first - 1} days late"
        name = "1 day late" if last == 1 else name
        yield name, (late >= first) & (late <= (last or np.inf))


def _answer(rows: Sequence[Share], reviews: int, who: str) -> str:
    """Decide by intervals alone."""
    if not reviews:
        return "None of the scored reviews was late."
    off = [row for row in rows if row.too_high or row.too_low]
    if not off:
        return (
            f"{counted(reviews, 'review')} came late, and there is no sign that {who} is wrong "
            "about them."
        )
    worst = max(off, key=lambda row: abs(row.predicted - row.observed))
    listed = ", ".join(f"{row.name} (too {'high' if row.too_high else 'low'})" for row in off)
    return (
        f"{who} is wrong by more than chance about late reviews: {listed}. It is off most where "
        f"they were {worst.name}: it said {percent(worst.predicted)}, and you recalled "
        f"{with_interval(worst)}."
    )

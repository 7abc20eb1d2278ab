"""FSRS-6 against other algorithms."""

from __future__ import annotations

import math

from srs_eval.collection.section import Section
from srs_eval.collection.study import OTHERS, Study, difference, left_out
from srs_eval.collection.words import (
    WIDEST,
    Change,
    between,
    between_or_not,
    explained,
    log_loss,
)
from srs_eval.nouns.when import IN_WORDS, when_of
from srs_eval.stats.significance import ALPHA, holm
from srs_eval.text.console import percent
from srs_eval.text.table import Table

QUESTION = "How good can it get?"


def ceiling(study: Study) -> Section | None:
    """Return the section; None if nothing is scored."""
    if not study.fitted.complete:
        return None
    base = log_loss(study.fitted)
    ours = explained(study.fitted)
    early = IN_WORDS["previous_review"]
    first = [log_loss(study.fitted), percent(ours[0]), between_or_not(*ours[1:])]
    rows = [["FSRS-6 fitted to your reviews", *first, early, "", ""]]
    better = []
    compared = {
        name: difference(result, study.fitted)
        for name, result in study.others.items()
        if result.complete
    }
    factors = holm([estimate.p_value for estimate in compared.values()]).factor.tolist()
    for (name, estimate), factor in zip(compared.items(), factors, strict=True):
        result, (make, words) = study.others[name], OTHERS[name]
        change = Change.of(estimate, base, 1 - ALPHA / factor)
        share, lo, hi = explained(result)
        when = when_of(make())
        scores = [log_loss(result), percent(share), between_or_not(lo, hi)]
        said = [change.size, change.verdict]
        rows.append([f"{name}: {words}", *scores, IN_WORDS[when], *said])
        if change.kind == "better":
            late = "" if when == "previous_review" else ", too late to plan it"
            better.append(f"{name} ({percent(share)}, predicted {IN_WORDS[when]}{late})")
    count = len(rows) - 1
    beaten = (
        f"Of {count} other algorithms, these explain more than FSRS-6: {', '.join(better)}."
        if better
        else f"None of {count} other algorithms predicted better by more than chance."
    )
    notes = [
        "Your average is that of these very reviews. Predictions that explain 100 % would know "
        "every answer, which no one can; those below 0 % are worse than the average.",
        "All are scored on the same reviews and learn from earlier ones only. What is predicted at "
        "the review may rest on the answers just before it, so it cannot choose an interval. "
        "Forecast and session_filter count fractions of days if the log has times, all others "
        "whole days. The differences to FSRS-6 are adjusted for the number of comparisons by "
        "Holm's method.",
        *left_out(study.others),
    ]
    headers = ["", "log loss", "explained", "99 % range", "predicts", "error against FSRS-6", ""]
    caption = "On the same reviews; log loss is the error of predictions, smaller is better"
    table = Table(headers, rows, title=caption)
    return Section(QUESTION, f"{_explains(*ours)} {beaten}", notes, parts=[table])


def _explains(share: float, lo: float, hi: float) -> str:
    what = "of what your average alone leaves open"
    if math.isnan(share) or math.isnan(lo):  # not defined where all answers are alike
        return "How much FSRS-6 explains cannot be said: there are too few answers of one kind."
    if hi - lo > WIDEST:
        worse = "FSRS-6 fitted to your reviews predicts worse than your average." if hi < 0 else ""
        return (
            worse or f"How much FSRS-6 explains {what} cannot be said: there are too few reviews."
        )
    if lo > 0:
        return (
            f"FSRS-6 fitted to your reviews explains {percent(share)} ({between(lo, hi)}) {what}."
        )
    if hi < 0:
        return (
            "FSRS-6 fitted to your reviews predicts worse than your average: it explains "
            f"{percent(share)} {what}."
        )
    return (
        "FSRS-6 fitted to your reviews is not clearly better than your average: it explains "
        f"{percent(share)} ({between(lo, hi, sign=True)}) {what}."
    )

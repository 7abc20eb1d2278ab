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
    rows = [
        [
            "FSRS-6 fitted to your reviews",
            base,
            percent(ours[0]),
            between_or_not(*ours[1:]),
            "",
            "",
        ]
    ]
    better = []
    compared = {
        name: difference(result, study.fitted)
        for name, result in study.others.items()
        if result.complete
    }
    factors = holm([estimate.p_value for estimate in compared.values()]).factor.tolist()
    for (name, estimate), factor in zip(compared.items(), factors, strict=True):
        result = study.others[name]
        change = Change.of(estimate, base, 1 - ALPHA / factor)
        share, lo, hi = explained(result)
        rows.append(
            [
                f"{name}: {OTHERS[name][1]}",
                log_loss(result),
                percent(share),
                between_or_not(lo, hi),
                change.size,
                change.verdict.removesuffix(": do not bother"),
            ]
        )
        better += [name] if change.kind == "better" else []
    count = len(rows) - 1
    beaten = (
        f"Of {count} other algorithms, {', '.join(better)} predicted better than FSRS-6."
        if better
        else f"None of {count} other algorithms predicted better by more than chance."
    )
    notes = [
        "Your average is that of these very reviews. Predictions that explain 100 % would know "
        "every answer, which no one can; those below 0 % are worse than the average.",
        "All count whole days, and those that are fitted learn from the same earlier reviews. "
        "The differences to FSRS-6 are adjusted for the number of comparisons by Holm's method.",
        *left_out(study.others),
    ]
    headers = ["", "log loss", "explained", "99 % range", "error against FSRS-6", ""]
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

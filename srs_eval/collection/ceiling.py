"""FSRS-6 against other algorithms."""

from __future__ import annotations

from srs_eval.collection.section import Section
from srs_eval.collection.study import OTHERS, Study, difference, left_out
from srs_eval.collection.words import Change, against_average, log_loss
from srs_eval.nouns.when import IN_WORDS, when_of
from srs_eval.stats.significance import ALPHA, holm
from srs_eval.text.console import counted
from srs_eval.text.table import Cell, Table

QUESTION = "How good can it get?"


def ceiling(study: Study) -> Section | None:
    """Return the section; None if nothing is scored."""
    if not study.fitted.complete:
        return None
    base = log_loss(study.fitted)
    early = IN_WORDS["previous_review"]
    ours = against_average(study.fitted)
    rows = [["FSRS-6 fitted to your reviews", base, _two_lines(ours), early, "", ""]]
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
        average, when = against_average(result), when_of(make())
        scores = [log_loss(result), _two_lines(average), IN_WORDS[when]]
        rows.append([f"{name}: {words}", *scores, _two_lines(change), change.verdict])
        if change.kind == "better":
            late = "" if when == "previous_review" else ", too late to plan it"
            better.append(f"{name} ({change.of_error}; predicted {IN_WORDS[when]}{late})")
    count = len(rows) - 1
    beaten = (
        f"Of {count} other algorithms, these predict better than FSRS-6: {', '.join(better)}."
        if better
        else f"None of {count} other algorithms predicted better by more than chance."
    )
    notes = [
        "Always saying your average recall, that of these very reviews, is the least that "
        "predictions should beat. No one can know every answer, so some error always stays.",
        "All are scored on the same reviews and learn from earlier ones only. What is predicted at "
        "the review may rest on the answers just before it, so it cannot choose an interval. "
        "Forecast and session_filter count fractions of days if the log has times, all others "
        "whole days. The differences to FSRS-6 are adjusted for the number of comparisons by "
        "Holm's method.",
        *left_out(study.others),
    ]
    headers = ["", "log loss", "error against your average", "predicts"]
    headers += ["error against FSRS-6", "verdict"]
    caption = "On the same reviews; log loss is the error of predictions, smaller is better"
    table = Table(headers, rows, title=caption)
    scored = counted(study.fitted.facts.reviews, "scored review")
    return Section(QUESTION, f"{_worth(ours, scored)} {beaten}", notes=notes, parts=[table])


def _two_lines(change: Change) -> Cell:
    """Return the size of a change, with its interval below it."""
    size, _, interval = change.size.partition(" (")
    return Cell(size, interval.removesuffix(")"))


def _worth(ours: Change, scored: str) -> str:
    """Compare FSRS with a constant."""
    constant = "always saying your average recall"
    who = f"on your {scored}, FSRS-6 fitted to your reviews"
    said = {
        "better": f"{who} predicts better than {constant} would",
        "worse": f"{who} predicts worse than {constant} would",
        "unknown": f"whether FSRS-6 predicts your {scored} better than {constant} cannot be said",
    }.get(ours.kind, f"{who} does not clearly predict better than {constant} would")
    size = "" if ours.kind in ("unknown", "same") else f": {ours.of_error}"
    return f"{said[0].upper()}{said[1:]}{size}."

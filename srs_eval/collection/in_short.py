"""What to do, in a sentence that the answers to all questions bear out."""

from __future__ import annotations

from srs_eval.collection.parameters import fitted_lists, limits_in_words, those_of_now
from srs_eval.collection.section import Section
from srs_eval.collection.study import Study, difference
from srs_eval.collection.words import Change, Kind, explained, log_loss
from srs_eval.errors import SrsEvalError

_KEEP: dict[Kind, str] = {
    "worse": "new ones predict worse",
    "noise": "new ones predict no better by more than chance",
    "same": "new ones predict the same",
    "open": "there are too few reviews to tell whether new ones predict better",
    "unknown": "there are too few reviews to tell whether new ones predict better",
}


def in_short(study: Study) -> Section | None:
    """Return the section; None if no parameters can be fitted."""
    if not study.fitted.complete or not study.now.complete:
        return None
    try:
        limits = limits_in_words(fitted_lists(study))
    except SrsEvalError:
        return None
    is_off = study.settings is not None and not study.has_fsrs
    change = Change.of(difference(study.fitted, study.now), log_loss(study.now))
    if change.kind == "better":
        said = [f"use the new parameters: they predict better than {those_of_now(study)}"]
    else:
        said, limits = [f"keep {those_of_now(study)}: {_KEEP[change.kind]}"], ""
    said += _against_average(study)
    said += [f"{limits}, so intervals can become far too long or too short"] if limits else []
    answer = f"{'if you turn FSRS on, ' if is_off else ''}{'; '.join(said)}."
    return Section("In short", answer[0].upper() + answer[1:])


def _against_average(study: Study) -> list[str]:
    """Return how fitted parameters compare with a constant, if that is known."""
    _, lo, hi = explained(study.fitted)
    if not lo <= hi:  # not defined where all answers are alike
        return []
    how = "does not clearly predict better"
    if lo > 0 or hi < 0:
        how = f"predicts {'better' if lo > 0 else 'worse'}"
    return [f"fitted to your reviews, FSRS {how} than your average alone"]

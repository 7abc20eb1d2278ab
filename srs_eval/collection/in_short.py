"""What to do, in a sentence, with what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator

from srs_eval.api.intervals import LEVEL
from srs_eval.collection.advice import FITTED, Advice, Belief
from srs_eval.collection.intervals import Load
from srs_eval.collection.parameters import doubtful_lists, fitted_lists, those_of_now, worth
from srs_eval.collection.section import Section
from srs_eval.collection.study import Study, predictions_of, reason_of
from srs_eval.collection.truth import average
from srs_eval.collection.words import between, explained
from srs_eval.text.console import counted, percent

_SURE = ((0.99, "almost certainly"), (0.9, "very likely"), (0.75, "probably"))
_TURN_ON = 'turn on "FSRS" in deck options > FSRS'
_FIELD = (
    'deck options > FSRS > "FSRS parameters" (newer versions unlock the field after three clicks)'
)


def in_short(study: Study, advice: Advice, load: Load | None = None) -> Section:
    """Return the section; `load` is what new parameters make of reviews a day, if they are new."""
    sentences = [
        _what_to_do(study, advice),
        *_evidence(study, advice),
        *_load(study, load),
        *_doubts(study, advice),
        *_how(study, advice),
    ]
    answer = " ".join(f"{each[0].upper()}{each[1:]}." for each in sentences)
    return Section("What should I do?", answer, list(_notes(advice)))


def _what_to_do(study: Study, advice: Advice) -> str:
    """Return the answer: one thing to do, and how sure it is."""
    new, yours = advice.new, those_of_now(study)
    # The first sentence of all names what it is about.
    yours = yours.replace("the default ones", "the default parameters")
    yours = yours.replace("those you", "the parameters that you")
    if advice.leave_off and advice.fsrs is not None:
        return f"leave FSRS off: {_likely(advice.fsrs)} it predicts worse than SM-2, which you have"
    on = "turn FSRS on and " if advice.turn_on else ""
    if advice.action == "paste" and new.is_clear:
        return f"{on}paste the new parameters"
    if advice.action == "paste":
        return f"{on}paste the new parameters: {_likely(new)} they predict better than {yours}"
    if advice.action == "keep":
        why = "" if new.is_clear else f": {_likely(new)} new ones predict worse"
        return f"{on}keep {yours}{why}"
    if advice.action == "open":
        return (
            f"{on}keep {yours} for now: whether new ones predict better cannot be told, the chance "
            f"is {100 * new.chance:.0f} %"
        )
    if advice.learnable < FITTED[0].reviews:
        return (
            f"{on}keep {yours} for now: new ones predict better for most people from "
            f"{FITTED[0].reviews} reviews on that can be learned from, and you have "
            f"{advice.learnable}"
        )
    return f"{on}keep {yours}: new ones cannot be fitted ({reason_of(study.fitted)})"


def _likely(belief: Belief) -> str:
    """Return how likely the likelier of better and worse is."""
    chance = max(belief.chance, 1 - belief.chance)
    word = next((word for least, word in _SURE if chance >= least), "more likely than not")
    return f"{word} ({'above 99 %' if chance > 0.99 else f'{100 * chance:.0f} %'})"


def _evidence(study: Study, advice: Advice) -> Iterator[str]:
    """Say what the answer rests on, and what would settle it."""
    new, is_off = advice.new, advice.leave_off
    if new.own is not None and not is_off:
        said = worth(study, new.own)
        if new.others is not None and not new.is_clear:
            who = new.others
            said += (
                f"; new ones were better for {who.better} of {who.people} other people with "
                f"{who.reviews:,} reviews or more, with an error {percent(-who.mean)} smaller on "
                "average"
            )
        yield said if advice.action == "paste" else said.replace("they", "new ones", 1)
    if advice.action == "paste" and not is_off:
        yield from _recall(study)
    if advice.action == "open" and not is_off:
        yield f"what would settle it: {_settles(study, advice)}"


def _settles(study: Study, advice: Advice) -> str:
    if study.is_in_sample:
        return "reviews that neither list has seen, so run this again in a few weeks"
    if (more := advice.still_needed) is not None:
        return f"about {counted(more, 'review')} more, if the difference stays as it is"
    return "many times as many reviews as you have, so run this again when you have twice as many"


def _recall(study: Study) -> Iterator[str]:
    """Say what was recalled and what FSRS says of it, now and then, where that is nearer."""
    now, new = study.scored, predictions_of(study.fitted)
    if now is None or new is None:
        return
    old, fitted = average(now), average(new)
    if abs(fitted.predicted - fitted.observed) < abs(old.predicted - old.observed):
        yield (
            f"of your {counted(old.reviews, 'scored review')}, {study.whose} said that you would "
            f"recall {percent(old.predicted)}, and you recalled {percent(old.observed)}; the new "
            f"ones say {percent(fitted.predicted)}"
        )


def _load(study: Study, load: Load | None) -> Iterator[str]:
    """Say how many reviews a day the intervals of all cards ask for, then and now."""
    if load is None:
        return
    more = "more" if load.change > 0 else "fewer"
    share = f"{percent(abs(load.change))} {more}"
    known = not math.isnan(load.lo)
    span = f" ({100 * LEVEL:g} % range {between(load.lo, load.hi, sign=True)})" if known else ""
    yield (
        f"reviews: at the recall that you ask for, the next intervals of your "
        f"{counted(load.cards, 'card')} come to {load.new:.1f} reviews a day instead of "
        f"{load.now:.1f} {'now' if study.current else 'with the default ones'}, {share}{span}"
    )


def _doubts(study: Study, advice: Advice) -> Iterator[str]:
    """Say how fitted parameters compare with a constant, and what is odd about the list."""
    if advice.action == "early" or advice.leave_off:
        return
    _, lo, hi = explained(study.fitted)
    if lo <= 0 <= hi or hi < 0:  # no range where all answers are alike
        how = "predicts worse" if hi < 0 else "does not clearly predict better"
        yield (
            f"even fitted to your reviews, FSRS {how} than your average alone, which cannot "
            "choose intervals, though"
        )
    if advice.action == "paste":
        yield from doubtful_lists(study)


def _how(study: Study, advice: Advice) -> Iterator[str]:
    """Say where to click."""
    clicks = [_TURN_ON] * advice.turn_on
    if advice.action == "paste":
        one = study.several is None or len(fitted_lists(study)) == 1
        which = "the list of the page into" if one else "each list of the page into its preset:"
        clicks.append(f"paste {which} {_FIELD}")
    if clicks and not advice.leave_off:
        yield f"how: {', then '.join(clicks)}"


def _notes(advice: Advice) -> Iterator[str]:
    """Say what FSRS is worth against SM-2, and how evidence is put together."""
    fsrs = advice.fsrs
    if fsrs is not None and fsrs.others is not None:
        own = fsrs.own
        said = "" if own is None or own.kind == "unknown" else f"on your reviews, {own.of_error}; "
        yield (
            f"FSRS against SM-2, which you have: {said}for other people, an earlier version of "
            f"FSRS was better for {fsrs.others.better:,} of {fsrs.others.people:,}."
        )
    if advice.new.others is not None and not advice.new.is_clear:
        yield (
            "The chance puts your own reviews and the logs of other people together, each with the "
            "weight of its precision. Those people had the default parameters before; they are "
            "owners of Anki and SuperMemo logs that are not public (docs/collection.md)."
        )

"""What to do, in a sentence, with what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from srs_eval.collection.advice import Advice, Belief
from srs_eval.collection.parameters import doubtful_lists, those_of_now
from srs_eval.collection.section import Section
from srs_eval.collection.study import Study, predictions_of, reason_of
from srs_eval.collection.truth import usual_level
from srs_eval.collection.words import Kind, explained
from srs_eval.text.console import counted, percent

_FEWEST = 25  # Reviews of a fit that other people's logs speak of
_KEEP: dict[Kind, str] = {
    "worse": "new ones predict worse",
    "noise": "new ones make no difference worth having",
    "no_gain": "new ones predict no better",
    "same": "new ones predict the same",
}
_SURE = ((0.99, "almost certainly"), (0.9, "very likely"), (0.75, "probably"))
_TURN_ON = 'turn on "FSRS" in deck options > FSRS'
_PASTE = (
    'paste the list below into deck options > FSRS > "FSRS parameters" (newer versions unlock the '
    "field after three clicks)"
)


def in_short(study: Study, advice: Advice) -> Section:
    """Return the section."""
    sentences = [_what_to_do(study, advice), *_evidence(study, advice), *_doubts(study, advice)]
    answer = " ".join(f"{each[0].upper()}{each[1:]}." for each in sentences)
    return Section("What should I do?", answer, list(_notes(advice)))


def _what_to_do(study: Study, advice: Advice) -> str:
    """Return the answer: one thing to do, and how sure it is."""
    new, yours = advice.new, those_of_now(study)
    if advice.leave_off:
        return f"leave FSRS off: {_chance(advice.fsrs)} it predicts worse than SM-2, which you have"
    on = "turn FSRS on and " if advice.turn_on else ""
    if advice.action == "paste" and new.is_clear:
        return f"{on}paste the new parameters: they predict better than {yours}"
    if advice.action == "paste":
        return (
            f"{on}paste the new parameters: {_chance(new)} they predict better than {yours}, with "
            f"an error about {percent(-new.mean)} smaller"
        )
    if advice.action == "keep":
        kind = "unknown" if new.own is None else new.own.kind
        return f"{on}keep {yours}: {_KEEP.get(kind, f'{_chance(new)} new ones predict worse')}"
    if advice.action == "open":
        return (
            f"{on}keep {yours} for now: whether new ones predict better cannot be told, the chance "
            f"is {percent(new.chance)}"
        )
    if advice.learnable < _FEWEST:
        return (
            f"{on}keep {yours} for now: a fit could learn from {counted(advice.learnable, 'review')}"
            f", and it takes at least {_FEWEST} to predict better for most people"
        )
    return f"{on}keep {yours}: new ones cannot be fitted ({reason_of(study.fitted)})"


def _chance(belief: Belief | None) -> str:
    """Return how likely the likelier of better and worse is."""
    assert belief is not None
    chance = max(belief.chance, 1 - belief.chance)
    word = next((word for least, word in _SURE if chance >= least), "more likely than not")
    return f"{word} ({'above 99 %' if chance > 0.99 else f'{100 * chance:.0f} %'})"


def _evidence(study: Study, advice: Advice) -> Iterator[str]:
    """Say what the answer rests on, and what would settle it."""
    new, rows = advice.new, counted(study.now.facts.reviews, "scored review")
    if new.own is not None:
        yield f"on your {rows}, {new.own.of_error}"
    if new.others is not None and not new.is_clear:
        who = new.others
        yield (
            f"other people with {who.reviews:,} reviews or more: better for {who.better} of "
            f"{who.people}, error {percent(-who.mean)} smaller on average"
        )
    if advice.action == "paste":
        yield from _recall(study)
    if advice.action == "open":
        yield f"what would settle it: {_settles(study, advice)}"
    fsrs = advice.fsrs
    if fsrs is not None and fsrs.others is not None:
        own = f"on your {rows}, {fsrs.own.of_error}; " if fsrs.own is not None else ""
        yield (
            f"FSRS against SM-2, which you have: {own}for other people, an earlier version of FSRS "
            f"was better for {fsrs.others.better:,} of {fsrs.others.people:,}"
        )


def _settles(study: Study, advice: Advice) -> str:
    if study.is_in_sample:
        return "reviews that neither list has seen, so run this again in a few weeks"
    if (more := advice.still_needed) is not None:
        return f"about {counted(more, 'review')} more, if the difference stays as it is"
    return "nothing within reach, because the two predict nearly alike"


def _recall(study: Study) -> Iterator[str]:
    """Say what was recalled where FSRS says the recall that is asked for, now and then."""
    now, new = study.scored, predictions_of(study.fitted)
    levels = [usual_level(study, each) for each in (now, new) if each is not None]
    if len(levels) == 2 and all(level is not None for level in levels):
        old, then = (
            f"it says about {percent(level.predicted)}, you recall {percent(level.observed)}"
            for level in levels
            if level is not None
        )
        yield f"where {old}; with the new ones, where {then}"


def _doubts(study: Study, advice: Advice) -> Iterator[str]:
    """Say how fitted parameters compare with a constant, and what is odd about the list."""
    if advice.action == "early":
        return
    _, lo, hi = explained(study.fitted)
    if lo <= hi:  # not defined where all answers are alike
        how = "does not clearly predict better"
        if lo > 0 or hi < 0:
            how = f"predicts {'better' if lo > 0 else 'worse'}"
        yield f"fitted to your reviews, FSRS {how} than your average alone"
    if advice.action == "paste":
        yield from doubtful_lists(study)


def _notes(advice: Advice) -> Iterator[str]:
    clicks = [_TURN_ON] * advice.turn_on + [_PASTE] * (advice.action == "paste")
    if clicks and not advice.leave_off:
        yield f"How: {', then '.join(clicks)}."
    if advice.new.others is not None and not advice.new.is_clear:
        yield (
            "The chance puts your own reviews and the logs of other people together, each with the "
            "weight of its precision. Those people had the default parameters before."
        )

"""What to do, in a sentence, with what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from srs_eval.collection.advice import FITTED, HALF, Advice, Belief, decide
from srs_eval.collection.intervals import SHOWN, Load, Models, Next, in_days, intervals, load, span
from srs_eval.collection.parameters import (
    doubtful,
    fitted_lists,
    numbers_of,
    those_of_now,
    worth,
)
from srs_eval.collection.section import Section
from srs_eval.collection.study import FEWEST, Study, reason_of
from srs_eval.collection.truth import average
from srs_eval.collection.words import changed
from srs_eval.comparison.words import counted, listed, percent
from srs_eval.errors import FitSkipped
from srs_eval.fitting import LEVEL

_SURE = ((0.99, "almost certainly"), (0.9, "very likely"), (0.75, "probably"))
_TURN_ON = 'turn on "FSRS" in deck options > FSRS'
_FIELD = 'deck options > FSRS > "FSRS parameters"'
_UNLOCK = " (newer versions unlock the field after three clicks)"
_MOST_PRESETS = 8
_RANGE = f"{100 * LEVEL:g} % range"


def in_short(study: Study, advice: Advice, models: Models | None = None) -> Section:
    """Return the section; `models` make the intervals, if anything could be fitted."""
    found = [
        *_how(study, advice),
        *_evidence(study, advice),
        *_presets(study, advice),
        *_recall(study, advice),
        *(_consequences(study, advice, models) if models is not None else ()),
        *_doubts(study, advice),
    ]
    answer, lines = _sentence(_what_to_do(study, advice)), [*map(_sentence, found)]
    return Section("What should I do?", answer, list(_notes(advice)), lines=lines)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _what_to_do(study: Study, advice: Advice) -> str:
    """Return the answer: one thing to do, and how sure it is."""
    new, yours = advice.new, those_of_now(study)
    # The first sentence of all names what it is about.
    yours = yours.replace("the default ones", "the default parameters")
    yours = yours.replace("those you", "the parameters that you")
    if advice.leave_off and advice.fsrs is not None:
        return f"leave FSRS off: {_likely(advice.fsrs)} it predicts worse than SM-2, which you have"
    on = "turn FSRS on and " if advice.turn_on else ""
    if advice.differs:
        of = {"paste": "paste new parameters into", "keep": "keep those that you have in"}
        of["open"] = "for now, keep those that you have in"
        named = {
            action: [
                study.title(each) for each, (what, _) in advice.presets.items() if what == action
            ]
            for action in of
        }
        return on + "; ".join(f"{of[each]} {listed(who)}" for each, who in named.items() if who)
    if advice.action == "paste" and new.is_clear:
        return f"{on}paste the new parameters"
    if advice.action == "paste":
        return f"{on}paste the new parameters: {_likely(new)} they predict better than {yours}"
    if advice.action == "keep":
        why = "" if new.is_clear else f": {_likely(new)} new ones predict worse"
        return f"{on}keep {yours}{why}"
    if advice.action == "open":
        return (
            f"{on}for now, keep {yours}: whether new ones predict better cannot be told (chance "
            f"{100 * new.chance:.0f} %)"
        )
    return f"{on}{_early(study, yours)}"


def _early(study: Study, yours: str) -> str:
    """Return what to do where nothing can be fitted."""
    if study.can_learn >= FEWEST:
        return f"keep {yours}: new ones cannot be fitted ({reason_of(study.fitted)})"
    if odd := _odd(study):
        yours = f"go back to the default parameters: the list of {odd} is odd, and"
    else:
        yours = f"keep {'the parameters that you have' if study.stored else yours}:"
    return (
        f"{yours} you have {counted(study.can_learn, 'review')} that can be learned from, a fit "
        f"needs {FEWEST}, and new ones are better for most people from {FITTED[0].reviews} on"
    )


def _odd(study: Study) -> str:
    """Name the presets whose parameters are odd; "" if there are none."""
    return listed([study.title(each) for each, w in study.stored.items() if [*doubtful({"": w})]])


def _likely(belief: Belief) -> str:
    """Return how likely the likelier of better and worse is."""
    chance = max(belief.chance, 1 - belief.chance)
    word = next((word for least, word in _SURE if chance >= least), "more likely than not")
    return f"{word} ({'above 99 %' if chance > 0.99 else f'{100 * chance:.0f} %'})"


def _evidence(study: Study, advice: Advice) -> Iterator[str]:
    """Say what the answer rests on, and what would settle it."""
    new = advice.new
    if study.skipped is not None:
        yield f"why: {_left_out(study.skipped, len(study.log))}"
    if new.own is None or advice.leave_off:
        return
    reviews = f"{counted(study.now.reviews, 'scored review')} (of {len(study.log):,})"
    which = "for all presets together, new" if advice.differs else "new"
    said = f"why: {which} parameters {worth(new.own, those_of_now(study), reviews)}"
    if new.own.kind == "open":
        said = (
            f"why: your {reviews} alone do not settle whether {which} parameters predict better "
            f"than {those_of_now(study)}: {new.own.of_error}"
        )
    if new.others is not None and not new.is_clear:
        who = new.others
        said += (
            f"; they were better for {who.better} of {who.people} other people with "
            f"{who.reviews:,} reviews or more: error {percent(-who.mean)} smaller on average"
        )
    yield said
    if new.seen < HALF:
        later = round(advice.learnable / new.seen)
        yield (
            f"how sure: only {advice.learnable:,} of your {counted(later, 'review')} on later days "
            "can be judged, because few other cards had the first interval of the others, so the "
            "chance is put nearer to even"
        )
    if advice.action == "open" and not advice.differs:
        yield f"what would settle it: {_settles(study, advice)}"


def _left_out(skipped: FitSkipped, reviews: int) -> str:
    """Say why reviews cannot be learned from."""
    rare = "of cards whose first interval is rare in the user's log"
    usual = "of cards whose first interval few other cards had"
    reasons = {**skipped.unscored, **skipped.dropped}
    told = [f"{count:,} {reason.replace(rare, usual)}" for reason, count in reasons.items()]
    return f"of your {counted(reviews, 'review')}, these cannot be learned from: {listed(told)}"


def _settles(study: Study, advice: Advice) -> str:
    if study.is_in_sample:
        return "reviews that neither list has seen, so run this again in a few weeks"
    if (more := advice.still_needed) is not None:
        return f"about {counted(more, 'review')} more, if the difference stays as it is"
    return "many times as many reviews as you have, so run this again when you have twice as many"


def _presets(study: Study, advice: Advice) -> Iterator[str]:
    """Say what to do with each of several presets, and why."""
    is_one = advice.pastes and len(fitted_lists(study)) == 1
    new = "the new list" if is_one else "its new list"
    for preset, (action, found) in list(advice.presets.items())[:_MOST_PRESETS]:
        assert found.own is not None
        which = "the list you have" if preset in study.stored else "the default list"
        what = {"paste": f"paste {new}", "keep": f"keep {which}"}
        what["open"] = f"keep {which} for now"
        if decide(found) != action:
            why = "as for all together, because its own reviews do not tell"
        elif found.is_clear or math.isnan(found.chance):
            why = "its own reviews say so" if found.is_clear else "it has no reviews that tell"
        else:
            better = "better" if found.chance >= 0.5 else "worse"
            why = f"{_likely(found)} the new one predicts {better}"
        scored = counted((study.group("preset") == preset).sum(), "scored review")
        size = f"on its {scored}, {found.own.of_error}"
        if found.own.kind not in ("unknown", "same"):
            size += f" than with {which}{study.caution if preset in study.stored else ''}"
        yield f"preset {study.title(preset)}: {what[action]}, {why}; {size}"
    if (more := len(advice.presets) - _MOST_PRESETS) > 0:
        yield f"{counted(more, 'smaller preset')}: paste or keep as for all together"


def _recall(study: Study, advice: Advice) -> Iterator[str]:
    """Say what was recalled, and what FSRS says of it now and with new parameters."""
    now, new = study.scored, study.fitted.predictions
    if now is None or new is None or advice.leave_off or not advice.pastes:
        return
    old, fitted = average(now), average(new)
    yield (
        f"recall: of your {counted(old.reviews, 'scored review')}, {study.whose} said that you "
        f"would recall {percent(old.predicted)}, and you recalled {percent(old.observed)}; the "
        f"new ones say {percent(fitted.predicted)}"
    )


def _consequences(study: Study, advice: Advice, models: Models) -> Iterator[str]:
    """Say what intervals and reviews a day become."""
    if advice.leave_off or not (advice.pastes or study.is_off):
        return
    if advice.pastes:
        told = [each for each in intervals(study, models)[1] if not advice.keeps(each.preset)]
        yield from _intervals(study, told)
    else:
        models = replace(models, new=models.now, draws=[])
    found = load(study, models, {each for each in study.presets if advice.keeps(each)})
    if found is not None:
        which = "the new parameters" if advice.pastes else "the parameters that it has"
        yield f"reviews a day: {_load(study, found, which)}"
    elif study.is_off:
        yield "reviews a day: not known, because this file lacks the intervals that cards have now"


def _intervals(study: Study, told: Sequence[Next]) -> Iterator[str]:
    """Say what one interval becomes, and which maximum to set if it is absurd."""
    for first in told[:1]:
        now = "yours" if first.preset in study.stored else "the default ones"
        where = f" of {study.title(first.preset)}" if len(study.presets) > 1 else ""
        ends = "" if math.isnan(first.lo) else f" ({_RANGE} {span(first.lo, first.hi)})"
        yield (
            f"intervals: with the new ones, a card{where} answered {SHOWN} on time comes next "
            f"after {in_days(first.new)}{ends}; with {now} after {in_days(first.now)}"
        )
    longest = int(study.log.elapsed_days.max(initial=0))
    if most := [days for each in told if (days := each.too_long(longest)) is not None]:
        yield (
            "too long: some new intervals are far beyond what your reviews can tell, as none came "
            f"more than {counted(longest, 'day')} after the one before: set deck options > "
            f'Advanced > "Maximum interval" to {min(most):,} days (the numbers here are without it)'
        )


def _load(study: Study, found: Load, which: str) -> str:
    """Say how many reviews a day the intervals of all cards ask for, then and now."""
    change = changed(found.change, found.lo, found.hi, ("fewer", "more"))
    change, cards = change.replace(" (", f" ({_RANGE} ", 1), counted(found.cards, "card")
    if math.isnan(found.recall):
        now = "now" if study.current else "with the default ones"
        return (
            f"at the recall that you ask for, the next intervals of your {cards} come to "
            f"{found.new:.1f} instead of {found.now:.1f} {now}, {change}"
        )
    return (
        f"the intervals that SM-2 has given your {cards} in review come to {found.now:.1f}, at "
        f"which FSRS with {which} expects you to recall {percent(found.recall)}; at the desired "
        f"retention of your presets, its own come to {found.new:.1f}, {change}"
    )


def _doubts(study: Study, advice: Advice) -> Iterator[str]:
    """Say what is odd about the lists that one ends up with."""
    if advice.leave_off:
        return
    lists = {
        f"the list that {study.title(each)} has now": w
        for each, w in study.stored.items()
        if advice.keeps(each)
    }
    yield from (f"look at: {odd}" for odd in doubtful(lists))
    if advice.pastes:
        new = numbers_of(fitted_lists(study))
        yield from (f"look at: {odd}" for odd in doubtful(new, study.first_ratings))


def _how(study: Study, advice: Advice) -> Iterator[str]:
    """Say where to click."""
    clicks = [_TURN_ON] * advice.turn_on
    if study.can_learn < FEWEST and _odd(study):
        clicks.append(f"empty {_FIELD} of {_odd(study)}{_UNLOCK}")
    if advice.pastes:
        one = len(fitted_lists(study)) == 1
        which = "the list of the page into" if one else "each list of the page into its preset:"
        if one and advice.presets:
            which = "the list of the page into each preset:"
        if advice.differs:
            pasted = [study.title(each) for each in advice.presets if not advice.keeps(each)]
            which = f"the new lists of {listed(pasted)} into their presets:"
            if one:
                which = f"the list of the page into the preset {listed(pasted)}:"
        clicks.append(f"paste {which} {_FIELD}{_UNLOCK}")
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

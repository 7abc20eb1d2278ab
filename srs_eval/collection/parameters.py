"""Which parameters to use, and what those of now are worth."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.collection.advice import Advice
from srs_eval.collection.intervals import Models, intervals
from srs_eval.collection.section import Paste, Section
from srs_eval.collection.study import MAY, Study, difference, reason_of
from srs_eval.collection.words import Change
from srs_eval.comparison.table import Table
from srs_eval.comparison.words import counted, listed
from srs_eval.errors import SrsEvalError
from srs_eval.fitting import LEVEL

_DECIMALS = 4
_RATINGS = ("Again", "Hard", "Good", "Easy")
_OF_RANGES = (
    "The range of an interval is what your reviews leave open about the new parameters: it holds "
    f"the one of the true parameters for {100 * LEVEL:g} of 100 people. That FSRS may describe you "
    "or a card badly is not in it, and neither are Anki's learning steps and the chance that it "
    "adds."
)
_MINUTES = 60.0  # A stability below this is worth a word


def which_parameters(study: Study, advice: Advice, models: Models | None) -> Section:
    """Return the section on the parameters to use."""
    question, now = "Which parameters should I use?", _current_lists(study)
    parts: list[Table | Paste] = []
    if not study.one.complete:
        reason = "there are too few reviews, as said above"
        if study.skipped is None:
            reason = reason_of(study.one)
        parts += [Paste(*each) for each in now.values()]
        answer = f"None can be fitted yet: {reason}."
        return Section(question, answer, _in_seconds(study), parts=parts)
    try:
        lists = fitted_lists(study)
    except SrsEvalError as error:
        return Section(question, f"The fit to all reviews failed: {error}")
    notes = list(_notes(study, lists))
    if models is not None:
        parts.append(intervals(study, models)[0])
        notes.append(_OF_RANGES)
    for preset in sorted(lists, key=lambda number: number is None):  # all others come last
        title, numbers = lists[preset]
        parts.append(Paste(f"New: {title}", numbers))
        parts += [Paste(*now.pop(preset))] if preset in now else []
    parts += [Paste(title, numbers) for title, numbers in now.values()]
    answer = f"{_which(study, advice)} {_one_or_several(study)}".strip()
    return Section(question, answer, notes, parts=parts)


def _in_seconds(study: Study) -> list[str]:
    """Name the run that can score a log that is too small for whole days."""
    could = study.skipped.could_score if study.skipped else {}
    return [
        f"{counted(count, 'review')} can be scored by other rules, in seconds instead of days: "
        + _run(study, "algo=fsrs7", f"protocol={protocol}")
        for protocol, count in could.items()
    ]


def _run(study: Study, *words: str) -> str:
    return shlex.join(["python", "-m", "srs_eval", *words, *study.reading])


def fitted_lists(study: Study) -> dict[int | None, tuple[str, str]]:
    """Return title and numbers of each list of parameters, as Anki takes them.

    Keys are presets, and None for the list of all others.
    """
    text = study.final.export("anki").text
    (user,) = study.final.users
    parts = [part for part in study.final.by_user[user].fit.parts if part.standalone]
    if len(parts) < 2:
        title = "all presets" if len(study.presets) > 1 else "FSRS parameters"
        return {None: (title, text.splitlines()[-1])}
    found: dict[int | None, tuple[str, str]] = {}
    for part, block in zip(parts, text.split("\n\n"), strict=True):
        preset = part.name.removeprefix("preset ")
        key = int(preset) if preset.isdigit() else None
        title = (part.title or part.name) if key is not None else "every other preset"
        found[key] = (f"{title}, from {counted(part.n_train, 'review')}", block.splitlines()[-1])
    return found


def where_do_i_stand(study: Study) -> Section | None:
    """Return the section on the parameters of now; None if they are the default ones."""
    if not study.is_in_sample or not study.one.complete or not study.now.complete:
        return None
    results = {
        "default parameters": study.default,
        f"your parameters now ({MAY})": study.now,
        "new parameters, as evaluated": study.fitted,
    }
    base = study.now.log_loss
    rows = []
    for name, result in results.items():
        change = Change.of(difference(result, study.now), base)
        told = ["", ""] if result is study.now else [change.size, change.verdict]
        rows.append([name, result.log_loss, result.against_average.size, *told])
    headers = ["", "log loss", "error against your average", "error against yours", ""]
    caption = (
        "On the same reviews. New parameters were fitted to earlier reviews only; "
        "log loss is the error of predictions, smaller is better"
    )
    default = study.default.log_loss
    yours = Change.of(difference(study.now, study.default), default)
    fair = Change.of(difference(study.fitted, study.default), default)
    scored = counted(study.now.reviews, "scored review")
    answer = f"Your parameters{study.caution} {worth(yours, 'the default ones', scored)}."
    new = worth(fair, "the default ones", scored)
    answer += f" New parameters, fitted to earlier reviews only, {new}."
    return Section("Where do I stand?", answer, parts=[Table(headers, rows, title=caption)])


def those_of_now(study: Study) -> str:
    """Return whose parameters new ones are held against, in words."""
    return ("those you have" if study.is_in_sample else "the default ones") + study.caution


def worth(change: Change, than: str, scored: str) -> str:
    """Return what parameters are worth on scored reviews of one's own, as the end of a sentence."""
    said = {
        "better": f"predict better than {than}",
        "worse": f"predict worse than {than}",
        "noise": f"make no difference worth having against {than}",
        "no_gain": f"predict no better than {than}",
        "same": f"predict the same as {than}",
        "open": f"are not clearly better or worse than {than}",
        "unknown": f"cannot be told from {than}",
    }[change.kind]
    size = "" if change.kind in ("same", "unknown") else f": {change.of_error}"
    return f"{said} on your {scored}{size}"


def _which(study: Study, advice: Advice) -> str:
    """Return which parameters to take, as is advised."""
    if advice.differs:
        return "New ones for some presets and not for others, as said above."
    before = "Yours" if study.is_in_sample else "The default ones"
    which = {"paste": "The new ones", "open": f"{before} for now", "keep": before}[advice.action]
    return (
        f"If you turn FSRS on, {which[0].lower()}{which[1:]}." if advice.leave_off else f"{which}."
    )


def at_limits(parameters: Sequence[float]) -> int:
    """Count the parameters of FSRS-6 that are at a limit, as far as the default ones are not."""
    space = Fsrs6Equations.parameters
    found, usual = (np.round(each, _DECIMALS) for each in (parameters, space.defaults))
    limits = [np.round(each, _DECIMALS) for each in (space.lower, space.upper)]
    return int(sum(((found == limit) & (usual != limit)).sum() for limit in limits))


def doubtful(
    lists: Mapping[str, Sequence[float]], firsts: Sequence[int] = (1, 1, 1, 1)
) -> Iterator[str]:
    """Say what is odd about lists, by what they are called, with why it matters.

    `firsts` are the numbers of cards by their first rating: of one that no card had, nothing can
    be checked.
    """
    limits = {name: count for name, w in lists.items() if (count := at_limits(w))}
    if limits:
        count = len(Fsrs6Equations.parameters.defaults)
        told = listed([f"{number} of {count} in {name}" for name, number in limits.items()], 3)
        yield (
            f"parameters at a limit of what FSRS allows ({told}): your reviews say little about "
            "them, and intervals can become far too long or too short"
        )
    for name, w in lists.items():
        known = zip(_RATINGS, w[:4], firsts, strict=True)
        minutes = [(each, 1440 * days) for each, days, had in known if had]
        short = [f"{each} ({value:.0f} minutes)" for each, value in minutes if value < _MINUTES]
        if short:
            yield (
                f"first intervals after {' and '.join(short)} in {name}: FSRS expects you to "
                "forget such new cards the same day, so check that you do"
            )


def numbers_of(lists: Mapping[int | None, tuple[str, str]]) -> dict[str, list[float]]:
    """Return the parameters of lists as they are pasted, by what sentences call them."""
    return {
        "the new list" if len(lists) == 1 else f"the new list of {title.partition(', from')[0]}": [
            float(each) for each in numbers.split(",")
        ]
        for title, numbers in lists.values()
    }


def _one_or_several(study: Study) -> str:
    if study.several is None:
        return ""
    if not study.several.complete:
        return "Whether presets differ is not known: fits for each preset failed."
    change = Change.of(study.separate.mirrored(), study.one.log_loss)
    said = {
        "better": "Your presets differ: own parameters for each predict better than one list",
        "worse": "One preset would do: own parameters for each predict worse than one list",
        "noise": "One preset would do: own parameters for each predict as well as one list",
        "no_gain": "One preset would do: own parameters for each predict no better than one list",
        "same": "One list for all presets: they have too few reviews for lists of their own",
        "open": "Whether presets differ cannot be told: own parameters for each against one list",
        "unknown": "Whether presets differ cannot be told",
    }[change.kind]
    return f"{said}." if change.kind in ("same", "unknown") else f"{said}, {change.of_error}."


def _current_lists(study: Study) -> dict[int | None, tuple[str, str]]:
    """Return title and numbers of the parameters of now, as they are stored."""
    found: dict[int | None, tuple[str, str]] = {}
    for preset in study.current:
        settings = study.settings.presets.get(preset) if study.settings else None
        stored = settings.parameters if settings else ()
        numbers = ", ".join(f"{value:.{_DECIMALS}f}" for value in stored)
        title = f"Now: {study.title(preset)}"
        found[preset] = (title, numbers or "none, so that Anki uses the default parameters")
    return found


def _notes(study: Study, lists: Mapping[int | None, tuple[str, str]]) -> Iterator[str]:
    (user,) = study.final.users
    fit = study.final.by_user[user].fit
    yield (
        f"The lists are fitted to all {counted(fit.n_train, 'review')} that can be learned from. "
        "How well they predict is measured on fits to earlier reviews only, each on reviews that "
        "it had not seen."
    )
    for odd in doubtful(numbers_of(lists), study.first_ratings):
        yield f"{odd[0].upper()}{odd[1:]}. Compare the list with the one that you have now."

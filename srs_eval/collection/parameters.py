"""Which parameters to use, and what those of now are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.api.intervals import LEVEL
from srs_eval.collection.advice import Advice
from srs_eval.collection.intervals import Models, intervals
from srs_eval.collection.section import Paste, Section
from srs_eval.collection.study import Study, difference, difference_on, reason_of
from srs_eval.collection.words import Change, between_or_not, explained, log_loss
from srs_eval.errors import SrsEvalError
from srs_eval.results.saved_predictions import losses
from srs_eval.text.console import counted, percent
from srs_eval.text.table import Table

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
    question = "Which parameters should I use?"
    if not study.one.complete:
        reason = study.skipped.reason if study.skipped else reason_of(study.one)
        return Section(question, f"None can be fitted: {reason}.", list(_in_seconds(study)))
    try:
        lists = fitted_lists(study)
    except SrsEvalError as error:
        return Section(question, f"The fit to all reviews failed: {error}")
    answer = f"{_which(study, advice)} {_one_or_several(study)}".strip()
    parts: list[Table | Paste] = []
    notes = list(_notes(study))
    if models is not None:
        table, said = intervals(study, models)
        parts.append(table)
        answer += f" {said}"
        notes.append(_OF_RANGES)
    if len(study.presets) > 1:
        parts.append(_by_preset(study))
    now = _current_lists(study)
    for preset in sorted(lists, key=lambda number: number is None):  # all others come last
        title, numbers = lists[preset]
        parts.append(Paste(f"New: {title}", numbers))
        parts += [Paste(*now.pop(preset))] if preset in now else []
    parts += [Paste(title, numbers) for title, numbers in now.values()]
    return Section(question, answer, notes, parts=parts)


def _in_seconds(study: Study) -> Iterator[str]:
    """Name the run that can score a log that is too small for whole days."""
    data = "data.path=…" if study.settings is None else "data=anki data.path=…"
    for protocol, count in study.skipped.could_score.items() if study.skipped else ():
        yield (
            f"{counted(count, 'review')} can be scored if those on the same day count: python -m "
            f"srs_eval algo=fsrs7 protocol={protocol} {data}"
        )


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
    """Return the section on the parameters of now; None if there are none."""
    if not study.current or not study.one.complete or not study.now.complete:
        return None
    results = {
        "default parameters": study.default,
        f"your parameters now{study.caution}": study.now,
        "new parameters, as evaluated": study.fitted,
    }
    base = log_loss(study.now)
    rows = []
    for name, result in results.items():
        share, lo, hi = explained(result)
        change = Change.of(difference(result, study.now), base)
        is_now = result is study.now
        rows.append(
            [
                name,
                log_loss(result),
                percent(share),
                between_or_not(lo, hi),
                "" if is_now else change.size,
                "" if is_now else change.verdict,
            ]
        )
    headers = ["", "log loss", "explained", "99 % range", "error against yours", ""]
    caption = (
        "On the same reviews. New parameters were fitted to earlier reviews only; "
        "log loss is the error of predictions, smaller is better"
    )
    default = log_loss(study.default)
    answer = _standing(study, Change.of(difference(study.now, study.default), default))
    fair = Change.of(difference(study.fitted, study.default), default)
    if study.is_in_sample and fair.kind != "same":
        answer += (
            f" New ones, fitted to earlier reviews only, against the default ones: {fair.of_error}."
        )
    return Section(
        "Where do I stand?",
        answer,
        [
            "Explained is the part of what your average alone leaves open that predictions settle: "
            "0 % is always answering your average, 100 % is knowing every answer."
        ],
        parts=[Table(headers, rows, title=caption)],
    )


def _standing(study: Study, change: Change) -> str:
    yours = f"Your parameters{study.caution}"
    return {
        "better": f"{yours} predict better than the default ones: {change.of_error}.",
        "worse": f"{yours} predict worse than the default ones: {change.of_error}.",
        "noise": (f"{yours} and the default ones: no difference worth having, {change.of_error}."),
        "no_gain": f"{yours} predict no better than the default ones: {change.of_error}.",
        "open": (
            f"{yours} and the default ones: there are too few reviews to tell which predict "
            f"better, {change.of_error}."
        ),
        "same": "FSRS predicts the same with your parameters as with the default ones.",
        "unknown": "There are too few reviews to compare your parameters with the default ones.",
    }[change.kind]


def those_of_now(study: Study) -> str:
    """Return whose parameters new ones are held against, in words."""
    return ("those you have now" if study.is_in_sample else "the default ones") + study.caution


def worth(study: Study, change: Change) -> str:
    """Return what new parameters are worth on the person's own reviews, in words."""
    yours, rows = those_of_now(study), counted(study.now.facts.reviews, "scored review")
    return (
        f"on your {rows} they "
        + {
            "better": f"predict better than {yours}, {change.of_error}",
            "worse": f"predict worse than {yours}, {change.of_error}",
            "noise": f"make no difference worth having against {yours}, {change.of_error}",
            "no_gain": f"predict no better than {yours}, {change.of_error}",
            "same": f"predict the same as {yours}",
            "open": f"change the error within chance against {yours}, by {change.size}",
            "unknown": f"cannot be told from {yours}, because the range is wider than 100 points",
        }[change.kind]
    )


def _which(study: Study, advice: Advice) -> str:
    """Return which parameters to take, as is advised."""
    before = "Yours" if study.is_in_sample else "The default ones"
    which = {"paste": "The new ones", "open": f"{before} for now", "keep": before}[advice.action]
    if advice.leave_off:
        which = f"If you turn FSRS on, {which[0].lower()}{which[1:]}"
    assert advice.new.own is not None
    said = worth(study, advice.new.own)
    return f"{which}: {said if advice.action == 'paste' else said.replace('they', 'new ones', 1)}."


def at_limits(parameters: Sequence[float]) -> int:
    """Count the parameters of FSRS-6 that are at a limit, as far as the default ones are not."""
    space = Fsrs6Equations.parameters
    found, usual = (np.round(each, _DECIMALS) for each in (parameters, space.defaults))
    limits = [np.round(each, _DECIMALS) for each in (space.lower, space.upper)]
    return int(sum(((found == limit) & (usual != limit)).sum() for limit in limits))


def doubtful_lists(study: Study) -> Iterator[str]:
    """Say what is odd about the fitted lists, with why it matters."""
    try:
        lists = fitted_lists(study)
    except SrsEvalError:
        return
    values = [[float(each) for each in numbers.split(",")] for _, numbers in lists.values()]
    which = "" if len(lists) == 1 else " of one list"
    limits = [at_limits(each) for each in values]
    if most := max(limits):
        several = "" if len(lists) == 1 else f" in {np.count_nonzero(limits)} of {len(lists)} lists"
        yield (
            f"{most} of {len(values[0])} parameters {'is' if most == 1 else 'are'} at a limit"
            f"{several}, so intervals can become far too long or too short: compare them with "
            "those you have, and set a maximum interval"
        )
    first = min(values, key=lambda each: min(each[:4]))[:4]
    minutes = [(name, 1440 * days) for name, days in zip(_RATINGS, first, strict=True)]
    if short := [f"{name} ({value:.0f} minutes)" for name, value in minutes if value < _MINUTES]:
        yield (
            f"the first intervals{which} after {' and '.join(short)} are far below a day: FSRS "
            "expects you to forget such new cards the same day, so look whether that is true"
        )


def _one_or_several(study: Study) -> str:
    if study.several is None:
        return ""
    if not study.several.complete:
        return "Whether presets differ is not known: fits for each preset failed."
    change = Change.of(study.separate.mirrored(), log_loss(study.one))
    if change.kind == "better":
        return f"Your presets differ: own parameters for each predict better, error {change.size}."
    if change.kind == "worse":
        return (
            "One preset would do: own parameters for each preset predict worse than one list for "
            f"all, error {change.size}."
        )
    if change.kind in ("unknown", "open"):
        by = f": error {change.size} with own parameters for each" if change.kind == "open" else ""
        return f"There are too few reviews to say whether presets differ{by}."
    if change.kind == "same":
        return (
            "One list for all presets: no fit found a sign in its training reviews that presets "
            "differ."
        )
    gain = "no better than" if change.kind == "no_gain" else "about as well as"
    return (
        f"One preset would do: own parameters for each preset predict {gain} one list, error "
        f"{change.size}."
    )


def _by_preset(study: Study) -> Table:
    scored = study.scored
    assert scored is not None
    numbers, titles = study.group("preset"), study.log.titles.get("preset", {})
    rows = []
    for preset, reviews in study.presets.items():
        chosen = numbers == preset
        change = Change.of(
            difference_on(study.fitted, study.now, chosen), _mean_loss(study, preset)
        )
        name = titles.get(preset, f"preset {preset}")
        rows.append([name, reviews, int(chosen.sum()), change.size, change.verdict])
    against = "your parameters now" if study.current else "the default parameters"
    against += study.caution
    return Table(
        ["preset", "reviews", "scored", "error", ""],
        rows,
        title=f"Error of new parameters on reviews that they had not seen, against {against}",
    )


def _mean_loss(study: Study, preset: int) -> float:
    scored = study.scored
    assert scored is not None
    chosen = study.group("preset") == preset
    return float(losses(scored, "log_loss")[chosen].mean()) if chosen.any() else float("nan")


def _current_lists(study: Study) -> dict[int | None, tuple[str, str]]:
    """Return title and numbers of the parameters of now, as they are stored."""
    found: dict[int | None, tuple[str, str]] = {}
    titles = study.log.titles.get("preset", {})
    for preset in study.current:
        settings = study.settings.presets.get(preset) if study.settings else None
        stored = settings.parameters if settings else ()
        numbers = ", ".join(f"{value:.{_DECIMALS}f}" for value in stored)
        title = f"Now: {titles.get(preset, f'preset {preset}')}"
        found[preset] = (title, numbers or "none, so that Anki uses the default parameters")
    return found


def _notes(study: Study) -> Iterator[str]:
    (user,) = study.final.users
    fit = study.final.by_user[user].fit
    yield (
        f"The lists are fitted to all {counted(fit.n_train, 'review')} that can be learned from. "
        "How well they predict is measured on fits to earlier reviews only, each on reviews that "
        "it had not seen."
    )
    for odd in doubtful_lists(study):
        yield f"{odd[0].upper()}{odd[1:]}: compare the list with the one that you have now."
    if study.log.deck is not None and len(np.unique(study.log.deck)) > 1:
        yield (
            "Whether decks need lists of their own is the note of this run: python -m srs_eval "
            "algo=per_group algo.group=deck data=anki data.path=…"
        )

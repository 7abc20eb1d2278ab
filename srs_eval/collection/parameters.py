"""Which parameters to use, and what those of now are worth."""

from __future__ import annotations

from collections.abc import Iterator

from srs_eval.collection.section import Paste, Section, Table
from srs_eval.collection.study import Study, difference, difference_on, reason_of
from srs_eval.collection.words import Change, between, explained, log_loss, percent
from srs_eval.errors import SrsEvalError
from srs_eval.results.saved_predictions import losses
from srs_eval.text.console import counted, number

_DECIMALS = 4


def which_parameters(study: Study) -> Section:
    """Return the section on the parameters to use."""
    question = "Which parameters should I use?"
    if not study.one.complete:
        return Section(question, f"None can be fitted: {reason_of(study.one)}.")
    try:
        lists = fitted_lists(study)
    except SrsEvalError as error:
        return Section(question, f"The fit to all reviews failed: {error}")
    against = study.now
    change = Change.of(difference(study.fitted, against), log_loss(against))
    answer = f"{_advice(study, change)} {_one_or_several(study)}"
    parts: list[Table | Paste] = []
    if len(study.presets) > 1:
        parts.append(_by_preset(study))
    now = _current_lists(study)
    for preset in sorted(lists, key=lambda number: number is None):  # all others come last
        title, numbers = lists[preset]
        parts.append(Paste(f"New: {title}", numbers))
        parts += [Paste(*now.pop(preset))] if preset in now else []
    parts += [Paste(title, numbers) for title, numbers in now.values()]
    return Section(question, answer.strip(), list(_notes(study)), parts)


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
        "your parameters now": study.now,
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
                number(log_loss(result)),
                percent(share),
                between(lo, hi) or "-",
                "" if is_now else change.size,
                "" if is_now else change.verdict,
            ]
        )
    headers = ["", "log loss", "explained", "99 % range", "error against yours", ""]
    caption = (
        "On the same reviews. New parameters were fitted to earlier reviews only; "
        "log loss is the error of predictions, smaller is better"
    )
    change = Change.of(difference(study.now, study.default), log_loss(study.default))
    return Section(
        "Where do I stand?",
        _standing(change),
        [
            "Explained is the part of what your average alone leaves open that predictions settle: "
            "0 % is always answering your average, 100 % is knowing every answer."
        ],
        [Table(caption, headers, rows)],
    )


def _standing(change: Change) -> str:
    return {
        "better": f"Your parameters predict better than the default ones: error {change.size}.",
        "worse": f"Your parameters predict worse than the default ones: error {change.size}.",
        "noise": (
            "Your parameters and the default ones cannot be told from each other on these "
            f"reviews: error {change.size}."
        ),
        "open": (
            "There are too few reviews to tell your parameters from the default ones: error "
            f"{change.size}."
        ),
        "same": "FSRS predicts the same with your parameters as with the default ones.",
        "unknown": "There are too few reviews to compare your parameters with the default ones.",
    }[change.kind]


def _advice(study: Study, change: Change) -> str:
    """Return whether new parameters are worth the trouble, in words."""
    yours = "those you have now" if study.current else "the default ones"
    if change.kind == "better":
        return f"The new ones: they predict better than {yours}, error {change.size}."
    if change.kind == "worse":
        why = ", which may have been optimised on these very reviews" if study.current else ""
        return f"Keep {yours}{why}: new ones predict worse, error {change.size}."
    if change.kind == "open":
        return (
            f"There are too few reviews to tell: new parameters change the error of predictions "
            f"by {change.size} against {yours}, which is within chance."
        )
    if change.kind == "noise":
        return (
            f"Do not bother: new parameters change the error of predictions by {change.size} "
            f"against {yours}, which is within chance."
        )
    if change.kind == "same":
        return f"Do not bother: new parameters predict the same as {yours}."
    return f"There are too few reviews to tell new parameters from {yours}."


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
    return (
        f"One preset would do: own parameters for each preset change the error by {change.size}, "
        "within chance."
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
        rows.append([name, f"{reviews:,}", f"{chosen.sum():,}", change.size, change.verdict])
    against = "your parameters now" if study.current else "the default parameters"
    return Table(
        f"Error of new parameters on reviews that they had not seen, against {against}",
        ["preset", "reviews", "scored", "error", ""],
        rows,
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
    yield (
        'To use a list, paste it into deck options > FSRS > "FSRS parameters"; newer versions '
        "unlock the field after three clicks."
    )

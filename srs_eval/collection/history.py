"""How much history a fit needs, and what a change of parameters changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from srs_eval.collection.section import Mark, Picture, Section
from srs_eval.collection.study import Study, difference, left_out
from srs_eval.collection.words import Change, log_loss
from srs_eval.stats.significance import ALPHA
from srs_eval.text.console import counted, percent

QUESTION = "How much history do I need, and why do my parameters jump?"


def history(study: Study) -> Section | None:
    """Return the section; None with fewer than 100 reviews to learn from."""
    curve = [(count, result) for count, result in study.curve if result.complete]
    if not curve or not study.last_default.complete:
        return None
    base = log_loss(study.last_default)
    level = 1 - ALPHA / len(curve)
    changes = [
        (count, Change.of(difference(result, study.last_default), base, level))
        for count, result in curve
    ]
    scored = curve[0][1].facts.reviews
    notes = [
        f"FSRS-6 fitted to the first 100, 200, 400 … reviews predicts the last "
        f"{counted(scored, 'review')}, which no fit has seen. All ranges together hold with 99 %."
    ]
    notes += left_out({f"The fit to {counted(n, 'review')}": each for n, each in study.curve})
    moved = _moved(study)
    if moved:
        notes.append(moved[1])
    known = [(count, each) for count, each in changes if each.kind != "unknown"]
    marks = [
        Mark(counted(n, "review"), c.share, c.lo, c.hi, 0.0, c.kind == "worse", words=c.of_error)
        for n, c in known
    ]
    title = "Error after fitting to so many reviews, against default parameters"
    value = "error; left of the stroke it is smaller, and fitting helps"
    pictures = [Picture(title, value, "no difference", marks)] if marks else []
    overall = Change.of(difference(study.one, study.default), log_loss(study.default))
    who = "New parameters" if study.fitted is study.one else "One list for all presets"
    answer = _needed(changes, scored, overall, study.one.facts.reviews, who)
    answer += f" {moved[0]}" if moved else ""
    return Section(QUESTION, answer, notes=notes, pictures=pictures)


def _needed(
    changes: Sequence[tuple[int, Change]], scored: int, overall: Change, reviews: int, who: str
) -> str:
    """Return from how many reviews on fits are better than default parameters.

    `changes` are those of fits to the first reviews on the last `scored` ones, and `overall` that
    of fits to earlier reviews, which are called `who`, on all `reviews`.
    """
    rows = f"last {counted(scored, 'review')}"
    needed = None
    for count, each in reversed(changes):
        if each.kind != "better":
            break
        needed = count
    harmful = [f"{count:,}" for count, each in changes if each.kind == "worse"]
    _, last = changes[-1]
    said = (
        f"How many reviews a fit needs cannot be seen on your {rows} alone."
        if needed is None
        else f"From the first {needed:,} reviews on, fitted parameters predicted your {rows} "
        "better than the default ones."
    )
    if overall.kind not in ("unknown", "same"):
        said += (
            f" {who}, fitted to earlier reviews only, against the default ones: on all "
            f"{counted(reviews, 'scored review')}, {overall.of_error}"
        )
        if last.kind not in ("unknown", "same"):
            said += f"; on the {rows} of them, {last.size}"
            if last.kind != overall.kind:
                said += (
                    ", which so few cannot tell from that"
                    if last.lo <= overall.share <= last.hi
                    else ", so those differ from the reviews before"
                )
        said += "."
    if harmful:
        said += (
            f" Parameters fitted to the first {' or '.join(harmful)} reviews alone predicted the "
            f"{rows} worse than the default ones."
        )
    return said


def _moved(study: Study) -> tuple[str, str] | None:
    """Return how far parameters and predictions moved when the last sixth was added."""
    before, after = study.last_fit, study.whole_fit
    if before is None or after is None or study.task is None:
        return None
    rows = study.task.folds[-1].test
    old, new = (model.predict(study.task.reviews, rows) for model in (before, after))
    change = np.abs(np.asarray(new) - np.asarray(old))
    w, v = np.asarray(before.parameters), np.asarray(after.parameters)
    largest = int(np.argmax(np.abs(v - w) / np.maximum(np.abs(w), 1e-3)))
    most = float(change.max())
    points = f"{100 * most:.1f} points"
    short = (
        f"When the last {counted(len(rows), 'review')} were added, no prediction of them moved by "
        f"more than {points}."
    )
    ninety = percent(float(np.quantile(change, 0.9))).replace(" %", " points")
    long = (
        f"The parameter that moved most was number {largest + 1} of {len(w)}, from "
        f"{w[largest]:.4f} to {v[largest]:.4f}; 9 of 10 predictions moved by {ninety} or less. "
        "Parameters make up for each other, so they can jump where predictions hardly move."
    )
    return (short, long) if math.isfinite(most) else None

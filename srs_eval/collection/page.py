"""The page of a collection: what to do and two pictures first, the rest folded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from srs_eval.collection.answer import Answer
from srs_eval.collection.intervals import Next, in_days
from srs_eval.collection.left_out import funnel, remarks
from srs_eval.collection.truth import Share, groups, shares
from srs_eval.collection.words import Change
from srs_eval.comparison.page import Part, Table, render
from srs_eval.comparison.pictures import curves, name_drawn, svg
from srs_eval.comparison.words import counted, percent
from srs_eval.metrics.predictions import Predictions
from srs_eval.metrics.tally import Tally
from srs_eval.plots.style import BLUE, INK, MUTED, PALE

_TICKS = {1: "1 d", 7: "1 w", 30: "1 mo", 365: "1 y", 3650: "10 y", 36500: "100 y"}
_WIDE = 2000  # Days from which on there is no room for all ticks
_METHOD = (
    "Each scored review was predicted from earlier ones, and compared with your answer; new "
    "parameters were fitted to earlier reviews only. The lists to paste are fitted to all reviews.",
    "Error is log loss. Ranges are 99 %, and allow for reviews of a card and of a day being alike; "
    "those of intervals are 90 %, and say what your reviews leave open about the parameters; the "
    "bands of the first picture are 95 %.",
    "Reviews a day are what the next intervals of the cards that exist come to: none are added, "
    "and what is due already is not counted.",
    "Anki keeps the parameters, presets and decks of now only: earlier answers may have been "
    "scheduled by others. Which recall to ask for is not answered here.",
)


def page(answer: Answer, name: str, command: str) -> str:
    """Format the page; `command` is the command line that made it."""
    study = answer.study
    scored = study.now.reviews
    return render(
        "collection/page.html",
        title=answer.do(),
        facts=f"{name}: {counted(len(study.log), 'review')}, {scored:,} of them scored",
        lists=[*answer.lists.values()],
        where="Deck options > FSRS parameters; three clicks unlock the field.",
        reasons=answer.reasons(),
        pictures=[*_pictures(answer)],
        parts=[*_parts(answer)],
        command=command,
    )


def _pictures(answer: Answer) -> Iterator[tuple[str, str, Markup]]:
    study = answer.study
    now, new = study.scored, study.fitted.predictions
    if now is not None and new is not None:
        tallies = {_before(answer): Tally.of(now), "new": Tally.of(new)}
        about = "on the dashed line: yes"
        drawn = svg(partial(curves, tallies, "new"), 2.15, "Predicted and actual recall")
        yield "Is what FSRS says true?", about, drawn
    if answer.takes_new:
        shown = [each for each in answer.next if not answer.advice.keeps(each.preset)]
        shown = [each for each in shown if each.preset == shown[0].preset]
        drawn = svg(partial(_intervals, answer, shown), 1.95, "Next intervals")
        yield "When does a card come next?", "answered on time", drawn


def _intervals(answer: Answer, shown: list[Next], axes: Axes) -> None:
    longest, places = answer.study.longest, -np.arange(len(shown))
    bars = [(each.lo, each.hi) for each in shown]
    axes.hlines(places + 0.12, *zip(*bars, strict=True), color=BLUE, lw=2, zorder=2)
    dots = {"new": (BLUE, 0.12, "new"), "now": (MUTED, -0.18, _before(answer))}
    for name, (colour, above, label) in dots.items():
        days = [getattr(each, name) for each in shown]
        axes.plot(days, places + above, "o", color=colour, ms=5.5, zorder=3, label=label)
    dashed = (0, (3, 3))
    axes.axvline(longest, color=MUTED, lw=0.9, ls=dashed, zorder=1, label="longest reviewed")
    ends = [*(day for bar in bars for day in bar), *(each.now for each in shown), longest, 1]
    low, high = np.nanmin(ends) / 1.6, np.nanmax(ends) * 1.6
    ticks = [days for days in _TICKS if low <= days <= high and (days != 7 or high < _WIDE)]
    axes.set(xscale="log", xlim=(low, high), ylim=(0.4 - len(shown), 0.6), yticks=places)
    axes.set(xticks=ticks, xticklabels=[_TICKS[days] for days in ticks])
    axes.set_yticklabels([each.answers for each in shown], color=INK)
    axes.xaxis.minorticks_off()
    axes.grid(axis="x", color=PALE, lw=0.5)
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.tick_params(length=0)
    name_drawn(axes, handletextpad=0.3, columnspacing=1)


def _before(answer: Answer) -> str:
    return "now" if answer.study.current else "default"


def _parts(answer: Answer) -> Iterator[Part]:
    study = answer.study
    if answer.next:
        yield Part("Intervals in numbers", ["Without a new maximum."], [_in_numbers(answer)])
    if study.scored is not None:
        yield from _truth(answer, study.scored)
    if study.one.complete and study.now.complete:
        yield Part("Parameters on the same reviews", [*_evidence(answer)], [_standing(answer)])
    if answer.advice.presets:
        change = Change.of(study.separate.mirrored(), study.one.log_loss)
        line = f"A list for each preset against one list for all: error {change.size}."
        yield Part("Presets", [line], [_presets(answer)])
    yield Part("How this is computed", _METHOD)
    table = Table(["", "rows", "left"], [*funnel(study)])
    yield Part("What was left out, and what to doubt", [*remarks(study)], [table])


def _in_numbers(answer: Answer) -> Table:
    several = len({each.preset for each in answer.next}) > 1
    rows = [
        [
            *[answer.study.title(each.preset)] * several,
            *(each.answers, in_days(each.now), in_days(each.new)),
            f"{in_days(each.lo)} to {in_days(each.hi)}" if each.lo == each.lo else "",
        ]
        for each in answer.next
    ]
    headers = [*["preset"] * several, "answers", _before(answer), "new", "90 % range"]
    return Table(headers, rows, "ll" if several else "l")


def _truth(answer: Answer, now: Predictions) -> Iterator[Part]:
    """Tabulate what was said and recalled, in groups of reviews."""
    new = answer.study.fitted.predictions
    which = {_before(answer): now} | ({"new": new} if new is not None else {})
    tables = []
    for name, predictions in which.items():
        for title, each in groups(answer.study, predictions).items():
            if name == "new" and title != "predicted recall":
                continue
            if rows := shares(predictions, each):
                cells = [*map(_cells, rows)]
                headers = [title, "reviews", "FSRS said", "you recalled", "99 % range", ""]
                tables.append(Table(headers, cells, title=f"By {title}, parameters: {name}"))
    yield Part("What FSRS said, and what you recalled", tables=tables)


def _cells(share: Share) -> list[object]:
    verdict = "" if share.lo <= share.predicted <= share.hi else "too high"
    verdict = "too low" if share.predicted < share.lo else verdict
    percents = (percent(share.predicted), percent(share.observed))
    interval = f"{percent(share.lo)} to {percent(share.hi)}"
    return [share.name, share.reviews, *percents, interval, verdict]


def _standing(answer: Answer) -> Table:
    """Tabulate the error of default, present and new parameters."""
    study = answer.study
    results = {"default": study.default, "now": study.now, "new": study.fitted}
    if not study.is_in_sample:
        del results["now"]
    rows = [
        [name, each.log_loss, study.against_now(each).size, each.against_average.size]
        for name, each in results.items()
    ]
    headers = ["parameters", "log loss", f"error against {study.yours}", "against your average"]
    return Table(headers, rows, "lrll")


def _evidence(answer: Answer) -> Iterator[str]:
    """Say what other people's reviews say."""
    new, fsrs = answer.advice.new, answer.advice.fsrs
    if answer.study.is_in_sample:
        yield "Parameters of now were perhaps fitted to these same reviews; new ones were not."
    if new.others is not None:
        yield (
            f"Of {new.others.people} other people with {new.others.reviews:,} reviews or more, new "
            f"parameters were better than the default ones for {new.others.better}; the chance "
            "weights them and your own reviews by their precision (docs/collection.md)."
        )
    if fsrs is not None and fsrs.others is not None:
        own = "" if fsrs.own is None else f" On your reviews: error {fsrs.own.size}."
        yield (
            f"FSRS predicted better than SM-2, which you have, for {fsrs.others.better:,} of "
            f"{fsrs.others.people:,} other people.{own}"
        )


def _presets(answer: Answer) -> Table:
    study = answer.study
    rows = [
        [
            study.title(preset),
            int((study.group("preset") == preset).sum()),
            action if action != "open" else "keep for now",
            "" if np.isnan(belief.chance) else f"{100 * belief.chance:.0f} %",
            "" if belief.own is None else belief.own.size,
        ]
        for preset, (action, belief) in answer.advice.presets.items()
    ]
    headers = ["preset", "scored", "new list", "chance that it is better", "error with it"]
    return Table(headers, rows, "lrlrl")

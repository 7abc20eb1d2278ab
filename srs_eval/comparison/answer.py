"""Standings in words: the answer, one table, and what must be known to read it."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence

import pandas as pd

from srs_eval.algorithms.algorithm import IN_WORDS, UNKNOWN
from srs_eval.comparison.entry import MARK
from srs_eval.comparison.leaderboard import NOISE
from srs_eval.comparison.remarks import warnings
from srs_eval.comparison.standings import (
    AVERAGES,
    Standings,
)
from srs_eval.comparison.table import Table
from srs_eval.comparison.words import counted, interval, listed, number, one_line, signed
from srs_eval.metrics.means import ENOUGH_USERS
from srs_eval.metrics.threshold import bias_threshold, nearby
from srs_eval.runs.summary import FEWEST_OF_A_KIND, FEWEST_REVIEWS, LOUD, TRAITS

WIDTH = 80
_FEWEST_LETTERS = 8
_MOST = 3  # Names in a sentence
# When predictions are made, and what each word means
_WHEN = {"previous_review": "before", "day_before": "day before", "at_review": "at review"}
_WHEN |= {UNKNOWN: "unknown"}
_MEANING = "when: predicted right after the card's review before, the day before, or at the review"


def sentence(standings: Standings) -> str:
    """Return which model is best, by how much, and whether that can be noise."""
    return " ".join(filter(None, headline(standings)))


def headline(standings: Standings) -> tuple[str, str]:
    """Return the answer, and what it leaves open."""
    if standings.is_too_small:
        (scored, forgotten, recalled), least = standings.answers, FEWEST_OF_A_KIND
        count = f", {forgotten:,} forgotten" if forgotten + recalled == scored else ""
        return (
            f"Too few answers to tell: {scored:,} scored{count}.",
            f"It takes {FEWEST_REVIEWS} scored, {least} of them forgotten and {least} recalled.",
        )
    if not standings.leaders:
        return f"No model has a {words(standings.metric)}.", ""
    groups = [(n, group) for n, group in standings.board.groups.items() if n >= 0]
    answers = [_answer(standings, leader, group) for leader, group in groups]
    if len(groups) > 1:
        for place, (leader, _) in enumerate(groups):
            said, doubt = answers[place]
            said = re.sub("^(No|Apart) ", lambda word: word[0].lower(), said)
            answers[place] = f"Predicted {IN_WORDS[standings.runs[leader].when]}, {said}", doubt
        (said, doubt), *others = answers
        return said, " ".join(filter(None, [doubt, *(text for each in others for text in each)]))
    return answers[0]


def _answer(standings: Standings, leader: int, group: Sequence[int]) -> tuple[str, str]:
    """Return the answer of a leader and those compared with it, and what it leaves open."""
    runs, board, base = standings.runs, standings.board, standings.baseline
    name, score = runs[leader].name, f"{words(standings.metric)} {board.mean[leader]:.4f}"
    rivals = [n for n in group if runs[n].rank == runs[leader].rank and n != leader]
    rivals = [n for n in rivals if not math.isnan(board.mean[n])]
    if runs[leader].rank:
        return f"{name} has the best {score}, but no model here may lead.", ""
    if not rivals:
        noise = "That can be noise." * (board.to_baseline[leader].verdict == NOISE)
        return f"{name}: {score}{_gain(standings, leader)}.", noise
    close = [n for n in rivals if board.to_best[n].verdict != "worse"]
    others = listed([runs[n].name for n in close], _MOST)
    apart = [n for n in group if n not in (leader, *rivals) and not runs[n].facts.sees_truth]
    every = "All others that may lead" if apart else "All others"
    doubt = f"Not clearly worse: {others}." if close else f"{every} are clearly worse."
    if runs[leader].algo in AVERAGES:
        sign = board.rules.sign
        ahead = [n for n in group if runs[n].rank == 1 and sign * board.to_best[n].difference < 0]
        but = f"Apart from {listed([runs[n].name for n in ahead], _MOST)}, no" if ahead else "No"
        return f"{but} model is better than {_average(standings)} ({name}, {score}).", doubt
    said = f"{name} {'leads' if close else 'predicts best'}: {score}{_gain(standings, leader)}."
    if base not in close:
        return said, doubt
    close.remove(base)
    others = listed([runs[n].name for n in close], _MOST)
    also = f" {others} {'is' if len(close) == 1 else 'are'} not clearly worse." if close else ""
    return said, f"That can be noise.{also}"


def _gain(standings: Standings, leader: int) -> str:
    """Say how far a leader is from the baseline."""
    base = standings.runs[standings.baseline]
    gap = users_frame(standings).to_baseline_percent.to_dict()[standings.runs[leader].name]
    if leader == standings.baseline or math.isnan(gap):
        return ""
    side = "below" if gap < 0 else "above"
    share = "less than 0.1" if abs(gap) < 0.1 else f"{abs(gap):.{1 if abs(gap) < 10 else 0}f}"
    whose = _average(standings) if base.algo in AVERAGES else base.name
    return f", {share} % {side} {whose}"


def _average(standings: Standings) -> str:
    return f"{'the' if len(standings.users) == 1 else 'each'} user's average"


def users_frame(standings: Standings) -> pd.DataFrame:
    """Return the rows of the frame in which each user counts once, by the name of the run."""
    frame = standings.frame
    return frame[frame.weighting == "users"].set_index("run", drop=False)


def facts(standings: Standings) -> str:
    """Return what the comparison rests on."""
    runs = standings.runs
    data = dict.fromkeys(name for r in runs for name in (r.facts.data, r.facts.protocol) if name)
    users, reviews = len(standings.users), int(standings.reviews.sum())
    return f"{', '.join(data)}: {counted(users, 'user')}, {counted(reviews, 'review')} scored"


def in_columns(standings: Standings) -> str:
    """Return the table as text, with names of models shortened where it would be too wide."""
    shown = table(standings)
    text = shown.write()
    wider = max(map(len, text.splitlines())) - WIDTH
    longest = max(len(row[0]) for row in shown.texts())
    return (
        table(standings, most=max(longest - wider, _FEWEST_LETTERS)).write() if wider > 0 else text
    )


def table(standings: Standings, *, most: int = 999) -> Table:
    """Return the one table; `when` is a column where models predict at different times.

    Names of models have at most so many letters. It is empty where there are too few answers.
    """
    if standings.is_too_small or not standings.leaders:
        return Table([], [])
    names = {run.name: run for run in standings.paired.every_run}
    frame = users_frame(standings)
    rivals = frame[[not names[name].facts.sees_truth for name in frame.run]]
    several, times = len(frame) > 1, rivals.when.nunique() > 1
    rows = []
    for _, row in frame.iterrows():
        marks = names[row.run].marks
        cells = {"model": f"{shortened(row.run, most - len(marks))}{marks}"}
        if times:
            cells["when"] = _WHEN[row.when]
        cells[words(standings.metric)] = number(row["mean"])
        if several:
            cells["to best"] = signed(row.to_best)
            cells["99 % interval"] = interval(row.to_best_lo, row.to_best_hi, sign=True)
            cells["verdict"] = verdict(row)
        else:
            cells["99 % interval"] = interval(row.lo, row.hi)
        if standings.bias is not None:
            cells[_at(standings)] = _points(row, standings.bias[0])
        rows.append(cells)
    left = {"model", "when", "99 % interval", "verdict"}
    align = "".join("l" if name in left else "r" for name in rows[0])
    return Table(list(rows[0]), [list(cells.values()) for cells in rows], align)


def verdict(row: pd.Series) -> str:
    """Return what a model is against its leader."""
    if row.identical_to:
        return f"is {row.identical_to}"
    return "bound" if "sees_truth" in row.traits else str(row.to_best_verdict)


def footnotes(standings: Standings) -> list[str]:
    """Return what must be known to read the table; nothing where there is none."""
    runs, headers = standings.paired.every_run, table(standings).headers
    if not headers:
        return []
    legend = [
        f"{mark} {text}{', so it cannot lead' * (trait == 'in_sample')}"
        for trait, (mark, text) in TRAITS.items()
        if any(trait in run.traits for run in runs)
    ]
    if any(run.is_odd for run in runs):
        cannot = " (with failed ones it cannot lead)" * any(run.rank == 1 for run in runs)
        legend.append(f"{MARK} some fits failed, fell back or did not converge{cannot}")
    if "when" in headers:
        legend.append(_MEANING)
    if standings.bias is not None:
        low, high = (f"{100 * each:g}" for each in nearby(_retention(standings)))
        legend.append(
            f"{_at(standings)}: points by which predictions of {low} to {high} % are too high "
            "(* clearly)"
        )
    return ["; ".join(legend)] * bool(legend) + [*cautions(standings)]


def cautions(standings: Standings) -> Iterator[str]:
    """Warn of few users, of much that is left out, of failed fits, and of what was restricted."""
    coverage, runs = standings.coverage, standings.runs
    users = len(standings.users)
    said = ["one user: intervals are over cards and days"] if users == 1 else []
    if 1 < users < ENOUGH_USERS:
        said = [f"only {users} users"]
    shares = [
        f"{100 * part / whole:.0f} % of the {what}"
        for what, (part, whole) in (coverage.lost if coverage else {}).items()
        if part > LOUD * whole
    ]
    said += [f"{' and '.join(shares)} left out"] if shares else []
    failed = [
        f"{run.name} {run.facts.failed:,} of {run.facts.fits:,}" for run in runs if run.rank == 1
    ]
    if failed:
        said.append(f"fits failed: {listed(failed, _MOST)}")
    if said:
        yield f"caution: {'; '.join(said)}"
    for run in runs:
        yield from warnings(run, standings.paired.users)
    yield from standings.paired.notes


def terminal(standings: Standings) -> str:
    """Return the answer for a terminal of 80 columns.

    Predictions are not read for it, unless of a single user.
    """
    lines = [line for part in headline(standings) for line in textwrap.wrap(one_line(part), WIDTH)]
    notes = [facts(standings)]
    if table(standings).rows:
        lines += ["", in_columns(standings)]
        notes += footnotes(standings)
    lines.append("")
    for note in notes:
        lines += textwrap.wrap(one_line(note), WIDTH, subsequent_indent="  ")
    return "\n".join(lines)


def shortened(name: str, most: int) -> str:
    """Return a name of at most so many letters."""
    half = most // 2  # Names may differ at their end only
    return name if len(name) <= most else f"{name[: most - half - 1]}…{name[-half:]}"


def words(metric: str) -> str:
    """Return the name of a metric in words."""
    return metric.replace("_", " ")


def _retention(standings: Standings) -> float:
    threshold = bias_threshold(standings.bias[0]) if standings.bias else None
    return threshold or math.nan


def _at(standings: Standings) -> str:
    return f"at {100 * _retention(standings):g} %"


def _points(row: pd.Series, name: str) -> str:
    """Return a bias in percentage points, with a star where it is clearly not 0."""
    if math.isnan(row[name]):
        return ""
    star = "*" if row[f"{name}_lo"] > 0 or row[f"{name}_hi"] < 0 else " "
    return f"{100 * row[name]:+z.1f}{star}"

"""Standings in words: the answer, one table, and what must be known to read it."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence

import pandas as pd

from srs_eval.algorithms.algorithm import IN_WORDS, UNKNOWN
from srs_eval.comparison.entry import MARK, Entry
from srs_eval.comparison.leaderboard import NOISE
from srs_eval.comparison.remarks import warnings
from srs_eval.comparison.standings import AVERAGES, Standings
from srs_eval.comparison.table import Table
from srs_eval.comparison.words import counted, interval, listed, number, one_line, shortened, signed
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
    answers = [_answer(standings, leader) for leader in standings.leaders.values()]
    if len(answers) == 1:
        return answers[0]
    for place, when in enumerate(standings.leaders):
        said, doubt = answers[place]
        said = re.sub("^(No|Apart) ", lambda word: word[0].lower(), said)
        answers[place] = f"Predicted {IN_WORDS[when]}, {said}", doubt
    (said, doubt), *others = answers
    return said, " ".join(filter(None, [doubt, *(text for each in others for text in each)]))


def _answer(standings: Standings, leader: Entry) -> tuple[str, str]:
    """Return the answer of a leader and those compared with it, and what it leaves open."""
    rows, base = standings.rows, standings.runs[standings.baseline]
    name, best = leader.name, rows[rows.run == leader.name].iloc[0]
    score = f"{words(standings.metric)} {best['mean']:.4f}"
    if leader.rank:
        return f"{name} has the best {score}, but no model here may lead.", ""
    runs = {run.name: run for run in standings.runs if run is not leader}
    group = [
        (runs[name], row)
        for name, row in rows[rows.leader == leader.name].iterrows()
        if name in runs
    ]
    rivals = [(run, row) for run, row in group if not run.rank and not math.isnan(row["mean"])]
    gain = "" if leader is base else _gain(standings, best)
    if not rivals:
        noise = "That can be noise." * (best.to_baseline_verdict == NOISE)
        return f"{name}: {score}{gain}.", noise
    close = [run for run, row in rivals if row.to_best_verdict != "worse"]
    apart = [run for run, _ in group if run.rank and not run.facts.sees_truth]
    every = "All others that may lead" if apart else "All others"
    doubt = f"Not clearly worse: {_names(close)}." if close else f"{every} are clearly worse."
    if leader.algo in AVERAGES:
        better = -1 if standings.better == "higher" else 1
        ahead = [run for run, row in group if run.rank == 1 and better * row.to_best < 0]
        but = f"Apart from {_names(ahead)}, no" if ahead else "No"
        return f"{but} model is better than {_average(standings)} ({name}, {score}).", doubt
    said = f"{name} {'leads' if close else 'predicts best'}: {score}{gain}."
    if base not in close:
        return said, doubt
    close.remove(base)
    also = f" {_names(close)} {'is' if len(close) == 1 else 'are'} not clearly worse."
    return said, f"That can be noise.{also if close else ''}"


def _names(runs: Sequence[Entry]) -> str:
    return listed([run.name for run in runs], _MOST)


def _gain(standings: Standings, leader: pd.Series) -> str:
    """Say how far a leader is from the baseline."""
    base, gap = standings.runs[standings.baseline], leader.to_baseline_percent
    if math.isnan(gap):
        return ""
    side = "below" if gap < 0 else "above"
    share = "less than 0.1" if abs(gap) < 0.1 else f"{abs(gap):.{1 if abs(gap) < 10 else 0}f}"
    whose = _average(standings) if base.algo in AVERAGES else base.name
    return f", {share} % {side} {whose}"


def _average(standings: Standings) -> str:
    return f"{'the' if len(standings.users) == 1 else 'each'} user's average"


def facts(standings: Standings) -> str:
    """Return what the comparison rests on."""
    runs = standings.runs
    data = dict.fromkeys(name for r in runs for name in (r.facts.data, r.facts.protocol) if name)
    users, reviews = len(standings.users), int(standings.reviews.sum())
    return f"{', '.join(data)}: {counted(users, 'user')}, {counted(reviews, 'review')} scored"


def table(standings: Standings, *, most: int = 999) -> Table:
    """Return the one table; `when` is a column where models predict at different times.

    Names of models have at most so many letters. It is empty where there are too few answers.
    """
    if standings.is_too_small or not standings.leaders:
        return Table([], [])
    rows, marks = standings.rows, {run.name: run.marks for run in standings.runs}
    names = [f"{shortened(name, most - len(marks[name]))}{marks[name]}" for name in rows.run]
    columns = {"model": names}
    if len({run.when for run in standings.runs if not run.facts.sees_truth}) > 1:
        columns["when"] = [_WHEN[when] for when in rows.when]
    columns[words(standings.metric)] = [*map(number, rows["mean"])]
    if len(rows) > 1:
        ends = zip(rows.to_best_lo, rows.to_best_hi, strict=True)
        columns["to best"] = [*map(signed, rows.to_best)]
        columns["99 % interval"] = [interval(lo, hi, sign=True) for lo, hi in ends]
        columns["verdict"] = [verdict(row) for _, row in rows.iterrows()]
    else:
        columns["99 % interval"] = [interval(rows.lo.iloc[0], rows.hi.iloc[0])]
    if name := standings.bias:
        biases = rows[[name, f"{name}_lo", f"{name}_hi"]].to_numpy().tolist()
        columns[_at(name)] = [_points(mean, lo, hi) for mean, lo, hi in biases]
    left = {"model", "when", "99 % interval", "verdict"}
    align = "".join("l" if name in left else "r" for name in columns)
    return Table([*columns], [*zip(*columns.values(), strict=True)], align)


def verdict(row: pd.Series) -> str:
    """Return what a model is against its leader."""
    return "bound" if "sees_truth" in row.traits else str(row.to_best_verdict)


def footnotes(standings: Standings) -> list[str]:
    """Return what must be known to read the table; nothing where there is none."""
    runs, headers = standings.runs, table(standings).headers
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
    if name := standings.bias:
        low, high = (f"{100 * each:g}" for each in nearby(bias_threshold(name) or math.nan))
        legend.append(
            f"{_at(name)}: points by which predictions of {low} to {high} % are too high "
            "(* clearly)"
        )
    return ["; ".join(legend)] * bool(legend) + [*cautions(standings)]


def cautions(standings: Standings) -> Iterator[str]:
    """Warn of few users, of much that is left out, of failed fits, and of what was restricted."""
    lost = standings.coverage.lost if standings.coverage else {}
    runs, users = standings.runs, len(standings.users)
    said = ["one user: intervals are over cards and days"] if users == 1 else []
    said += [f"only {users} users"] if 1 < users < ENOUGH_USERS else []
    shares = [
        f"{100 * part / whole:.0f} % of the {what}"
        for what, (part, whole) in lost.items()
        if part > LOUD * whole
    ]
    said += [f"{' and '.join(shares)} left out"] if shares else []
    failed = [f"{r.name} {r.facts.failed:,} of {r.facts.fits:,}" for r in runs if r.rank == 1]
    said += [f"fits failed: {listed(failed, _MOST)}"] if failed else []
    if said:
        yield f"caution: {'; '.join(said)}"
    for run in runs:
        yield from warnings(run, standings.paired.users)
    yield from standings.paired.notes


def terminal(standings: Standings) -> str:
    """Return the answer for a terminal of 80 columns, where needed with names shortened.

    Predictions are not read for it, unless of a single user.
    """
    lines = [line for part in headline(standings) for line in textwrap.wrap(one_line(part), WIDTH)]
    notes, whole = [facts(standings)], table(standings)
    if whole.rows:
        text = whole.write()
        wider = max(map(len, text.splitlines())) - WIDTH
        if wider > 0:
            most = max(len(row[0]) for row in whole.rows) - wider
            text = table(standings, most=max(most, _FEWEST_LETTERS)).write()
        lines += ["", text]
        notes += footnotes(standings)
    lines.append("")
    for note in notes:
        lines += textwrap.wrap(one_line(note), WIDTH, subsequent_indent="  ")
    return "\n".join(lines)


def words(metric: str) -> str:
    """Return the name of a metric in words."""
    return metric.replace("_", " ")


def _at(bias: str) -> str:
    return f"at {100 * (bias_threshold(bias) or math.nan):g} %"


def _points(mean: float, lo: float, hi: float) -> str:
    """Return a bias in percentage points, with a star where it is clearly not 0."""
    star = "*" if lo > 0 or hi < 0 else " "
    return "" if math.isnan(mean) else f"{100 * mean:+z.1f}{star}"

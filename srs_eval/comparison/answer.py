"""Standings in words: the answer, one table, and what a reader has to know beside the numbers."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.algorithms.algorithm import IN_WORDS, UNKNOWN
from srs_eval.comparison.entry import MARK, SIZE, Entry
from srs_eval.comparison.leaderboard import NOISE
from srs_eval.comparison.page import WIDTH, Table
from srs_eval.comparison.standings import Standings, mean_of
from srs_eval.comparison.words import counted, intervals, listed, number, one_line
from srs_eval.data.reviews import User
from srs_eval.metrics.means import ENOUGH_USERS
from srs_eval.metrics.tally import CLIP
from srs_eval.metrics.threshold import nearby
from srs_eval.runs.summary import FEWEST_OF_A_KIND, FEWEST_REVIEWS, TRAITS, Coverage

AVERAGES = ("avg", "avg_smoothed")  # What knowing nothing about a card gives
# When predictions are made, and what each word means
_WHEN = {"previous_review": "before", "day_before": "day", "at_review": "at"}
_WHEN |= {UNKNOWN: "unknown"}
_MEANING = "when: predicted right after the card's review before, the day before, or at the review"
_TEXTS = ("model", "when", "99 % interval", "verdict")
# Share of a log loss from which on predictions that were certain and wrong are named
_DECIDING_SHARE = 0.1
_COST = -math.log(CLIP)
# No model of memory comes near; one that reads the outcome does
_IS_TOO_GOOD = {"auc": lambda mean: mean >= 0.99, "normalized_entropy": lambda mean: mean <= 0.1}
_STATUSES = {"skipped": "Skipped", "failed": "Failed"}
_STATUSES |= {"not_in_every_run": "Not scored alike by every run", "undefined": "Not defined"}


def headline(standings: Standings) -> tuple[str, str]:
    """Return which model is best and by how much, and what that leaves open."""
    if standings.too_few:
        few, _, least = standings.too_few.partition(". ")
        return f"{few}.", least
    answers = [_answer(standings, leader) for leader in standings.leaders.values()]
    if len(answers) == 1:
        return answers[0]
    texts: list[str] = []
    for when, (said, doubt) in zip(standings.leaders, answers, strict=True):
        said = re.sub("^(No|Apart) ", lambda word: word[0].lower(), said)
        texts += [f"Predicted {IN_WORDS[when]}, {said}", doubt]
    return texts[0], " ".join(filter(None, texts[1:]))


def _answer(standings: Standings, leader: Entry) -> tuple[str, str]:
    """Return the answer of a leader and those compared with it, and what it leaves open."""
    rows, base = standings.rows, standings.baseline
    best: Any = rows.loc[leader.name]
    others = rows[rows.leader == leader.name].drop(leader.name)
    score = f"{words(standings.metric)} {best['mean']:.4f}"
    if leader.rank:
        return f"{leader.name} has the best {score}, but no model here may lead.", ""
    average = f"{'the' if len(standings.users) == 1 else 'each'} user's average"
    gain, gap = "", best.to_baseline_percent
    if leader.name != base and not math.isnan(gap):
        share = "less than 0.1" if abs(gap) < 0.1 else f"{abs(gap):.{1 if abs(gap) < 10 else 0}f}"
        whose = average if standings.runs[base].facts.algo in AVERAGES else base
        gain = f", {share} % {'below' if gap < 0 else 'above'} {whose}"
    rivals = others[(others["rank"] == 0) & others["mean"].notna()]
    if rivals.empty:
        noise = "That can be noise." * bool(best.to_baseline_verdict == NOISE)
        return f"{leader.name}: {score}{gain}.", noise
    close = rivals.run[rivals.to_best_verdict != "worse"].tolist()
    apart = (others["rank"] > 0) & ~others.traits.str.contains("sees_truth")
    every = f"All others{' that may lead' if apart.any() else ''} are clearly worse."
    doubt = f"Not clearly worse: {listed(close, 3)}." if close else every
    if leader.facts.algo in AVERAGES:
        better = -1 if standings.better == "higher" else 1
        ahead = others.run[(others["rank"] == 1) & (better * others.to_best < 0)].tolist()
        but = f"Apart from {listed(ahead, 3)}, no" if ahead else "No"
        return f"{but} model is better than {average} ({leader.name}, {score}).", doubt
    said = f"{leader.name} {'leads' if close else 'predicts best'}: {score}{gain}."
    if base not in close:
        return said, doubt
    close.remove(base)
    also = f" {listed(close, 3)} {'is' if len(close) == 1 else 'are'} not clearly worse."
    return said, f"That can be noise.{also if close else ''}"


def facts(standings: Standings) -> str:
    """Return what the comparison rests on."""
    about = [run.facts for run in standings.runs.values()]
    data = dict.fromkeys(name for each in about for name in (each.data, each.protocol) if name)
    users, reviews = len(standings.users), standings.reviews.sum()
    return f"{', '.join(data)}: {counted(users, 'user')}, {counted(reviews, 'review')} scored"


def table(standings: Standings) -> Table:
    """Return the one table; it is empty where there are too few answers."""
    if not standings.has_answer:
        return Table([], [])
    rows, runs = standings.rows, standings.runs
    columns: dict[str, Any] = {"model": [f"{name}{runs[name].marks}" for name in rows.run]}
    if _several_times(standings):
        columns["when"] = rows.when.map(_WHEN)
    columns[words(standings.metric)] = rows["mean"].map(number)
    if len(rows) > 1:
        columns["to best"] = [number(gap, "+") for gap in rows.to_best]
        columns["99 % interval"] = intervals(rows, "to_best", "+")
        columns["verdict"] = rows.to_best_verdict
    else:
        columns["99 % interval"] = intervals(rows)
    if standings.bias:
        name, at = standings.bias
        biases = rows[[name, f"{name}_lo", f"{name}_hi"]].itertuples(index=False)
        columns[f"at {100 * at:g} %"] = [_points(*each) for each in biases]
    align = "".join("l" if name in _TEXTS else "r" for name in columns)
    return Table.of(pd.DataFrame(columns), align=align)


def legend(standings: Standings) -> str:
    """Return what must be known to read the table."""
    runs = standings.runs.values()
    texts = [
        f"{mark} {text}{', so it cannot lead' * (trait == 'in_sample')}"
        for trait, (mark, text) in TRAITS.items()
        if any(trait in run.traits for run in runs)
    ]
    if any(MARK in run.marks for run in runs):
        cannot = " (with failed ones it cannot lead)" * any(run.rank == 1 for run in runs)
        texts.append(f"{MARK} some fits failed, fell back or did not converge{cannot}")
    if _several_times(standings):
        texts.append(_MEANING)
    if standings.bias:
        at, low, high = (100 * p for p in (standings.bias[1], *nearby(standings.bias[1])))
        what = f"points by which predictions of {low:g} to {high:g} % are too high (* clearly)"
        texts.append(f"at {at:g} %: {what}")
    return "; ".join(texts)


def cautions(standings: Standings) -> Iterator[str]:
    """Warn of few users, of much that is left out, of failed fits, and of what was restricted."""
    runs, users = standings.runs.values(), len(standings.users)
    texts = ["one user: intervals are over cards and days"] if users == 1 else []
    texts += [f"only {users} users"] if 1 < users < ENOUGH_USERS else []
    texts += [standings.coverage.caution] if standings.coverage else []
    if rows := sum(next(iter(runs)).facts.left_out.values()):
        texts.append(f"{rows:,} rows of the log left out (summary.json)")
    failed = [f"{r.name} {r.facts.failed:,} of {r.facts.fits:,}" for r in runs if r.rank == 1]
    texts += [f"fits failed: {listed(failed, 3)}"] if failed else []
    if any(texts):
        yield f"caution: {'; '.join(filter(None, texts))}"
    yield from _doubts(standings)


def notes(standings: Standings) -> list[str]:
    """Return what the table rests on, and what must be known to read it where there is one."""
    below = [legend(standings), *cautions(standings)] if standings.has_answer else []
    return [facts(standings), *filter(None, below)]


def remarks(standings: Standings) -> Iterator[str]:
    """Go through everything a reader has to know beside the numbers."""
    runs = standings.runs.values()
    yield from _doubts(standings)
    yield from (f"{run.name} {TRAITS[trait][1]}" for run in runs for trait in run.traits)
    yield from (f"{r.name}: fits: {r.facts.exceptions}" for r in runs if r.facts.exceptions)
    if _several_times(standings):
        yield (
            "Models that predict at different times have leaders of their own: a difference "
            "between them also contains what became known in between"
        )
    tested = [run.facts for run in runs if not run.facts.is_validation and run.rank < 2]
    settings = {(f.algo, f.protocol, f.tags.get("config_hash", "")): f for f in tested if f.algo}
    several = Counter((algo, protocol) for algo, protocol, setting in settings if setting)
    for (algo, _), count in several.items():
        if count > 1:
            yield (
                f"{count} settings of {algo} were scored on the same test reviews: the best "
                "of them looks better than it is. Choose with protocol=validation, and score the "
                "choice once without it"
            )


def _several_times(standings: Standings) -> bool:
    """Whether models that know no truth predict at different times."""
    rows = standings.rows
    return bool(rows.when[~rows.traits.str.contains("sees_truth")].nunique() > 1)


def _doubts(standings: Standings) -> Iterator[str]:
    for run in standings.runs.values():
        yield from warnings(run, standings.sizes.index)
    yield from standings.notes


def warnings(entry: Entry, users: Iterable[User]) -> Iterator[str]:
    """Say why the scores of a model, on these users, are not what they seem."""
    loss, wrong = (entry.values(name, users) for name in ("log_loss", "log_loss_certain_wrong"))
    sizes, defined = entry.values(SIZE, users), ~np.isnan(loss + wrong)
    if wrong[defined].any():
        cost = float((wrong[defined] * _COST / sizes[defined]).mean())
        share = cost / float(loss[defined].mean())
        if share >= _DECIDING_SHARE:
            yield (
                f"{entry.name}: {wrong[defined].sum():,.0f} certain predictions were wrong and "
                f"make up {100 * share:.0f} % of its log loss"
            )
    means = {name: mean_of(entry, name, users).mean_users for name in _IS_TOO_GOOD}
    scores = [f"{n} {number(mean)}" for n, mean in means.items() if _IS_TOO_GOOD[n](mean)]
    forgotten = entry.facts.forgotten or FEWEST_OF_A_KIND  # where it is not known
    enough = sizes.sum() >= FEWEST_REVIEWS and forgotten >= FEWEST_OF_A_KIND
    if scores and enough and not entry.facts.sees_truth:
        yield (
            f"{entry.name}: {' and '.join(scores)}, too good for a model of memory. Does it read "
            "the outcome? srs_eval.check_algorithm finds out"
        )


def left_out(coverage: Coverage) -> Iterator[str]:
    """Say what scores rest on, and what is left out for which reason."""
    users, reviews = coverage.users, coverage.reviews
    yield (
        f"{users.scored:,} of {counted(users.read, 'user')} and {reviews.scored:,} of "
        f"{counted(reviews.read, 'review')} are compared"
    )
    for what, counts in (("Dropped by rules", reviews.dropped), ("Never scored", reviews.unscored)):
        reasons = [f"{name} ({count:,})" for name, count in counts.items() if count]
        if reasons:
            yield f"{what}: {', '.join(reasons)}"
    for each in coverage.left_out:
        count = f"{counted(each.users, 'user')} with {counted(each.reviews, 'review')}"
        yield f"{_STATUSES[each.status]}: {count}: {each.reason}".rstrip(".: ")


def terminal(standings: Standings) -> str:
    """Return the answer for a terminal of 80 columns, where needed with names shortened."""
    lines = [line for part in headline(standings) for line in textwrap.wrap(one_line(part), WIDTH)]
    lines += ["", table(standings).write(), ""] if standings.has_answer else [""]
    for note in notes(standings):
        lines += textwrap.wrap(one_line(note), WIDTH, subsequent_indent="  ")
    return "\n".join(lines)


def words(metric: str) -> str:
    """Return the name of a metric in words."""
    return metric.replace("_", " ")


def _points(mean: float, lo: float, hi: float) -> str:
    """Return a bias in percentage points, with a star where it is clearly not 0."""
    return "" if math.isnan(mean) else f"{100 * mean:+z.1f}{'*' if lo > 0 or hi < 0 else ' '}"

"""The page of a comparison: the answer and two pictures first, details folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from srs_eval.comparison import answer
from srs_eval.comparison.coverage import sentences
from srs_eval.comparison.page import render
from srs_eval.comparison.pictures import calibration, differences
from srs_eval.comparison.remarks import remarks
from srs_eval.comparison.standings import BESIDE, Standings
from srs_eval.comparison.strata import FACTS, Strata
from srs_eval.comparison.table import Table
from srs_eval.comparison.words import counted, interval, percent, signed

_MOST_USERS = 200
_USERS = "Users for whom a model is better and worse than the leader; p: sign test, adjusted."
_METHOD = (
    "Models are compared on identical reviews. A difference is the mean over {unit}; its interval "
    "allows for skewness, and for how many models were compared: it excludes 0 exactly where the "
    "difference is significant at 1 %. The leader was chosen on the same scores, so those next to "
    "it are held to a stricter level."
)


class Part(NamedTuple):
    """A part of the page that is folded."""

    title: str
    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()


def page(standings: Standings, *, command: str = "") -> str:
    """Format the page; `command` is the command line that made it."""
    said, doubt = answer.headline(standings)
    table, notes = answer.table(standings), answer.footnotes(standings)
    cautions = [*answer.cautions(standings)] if table.rows else []
    return render(
        "comparison/report.html",
        title=said,
        doubt=doubt,
        facts=answer.facts(standings),
        cautions=cautions,
        notes=[note for note in notes if note not in cautions],
        pictures=[*_pictures(standings)] if table.rows else [],
        table=table,
        parts=[*(_tables(standings) if table.rows else ()), *_about(standings)],
        command=command,
    )


def _pictures(standings: Standings) -> Iterator[tuple[str, str, Markup]]:
    leaders = [run.name for run in standings.leaders.values()]
    if len(standings.runs) > 1:
        whom = leaders[0] if len(leaders) == 1 else "the leader of its time"
        about = "across the line: can be noise; 99 % intervals"
        yield f"How far from {whom}?", about, differences(standings)
    if picture := calibration(standings):
        yield "Can it be trusted?", "on the dashed line: yes; 95 % bands", picture


def _tables(standings: Standings) -> Iterator[Part]:
    """Go through what is not in the table at the top."""
    rows, base = standings.rows, standings.runs[standings.baseline]
    several, many = len(standings.runs) > 1, len(standings.users) > 1
    beside = [name for name in BESIDE if name in rows and name != standings.metric]
    own = f"99 % of {answer.words(standings.metric)}"
    other = pd.DataFrame({"model": rows.run, own: _intervals(rows.lo, rows.hi)}).join(rows[beside])
    yield Part("Other metrics", tables=[_table(other)])
    if not several:
        return
    if [*standings.leaders.values()] != [base]:
        ends = _intervals(rows.to_baseline_lo, rows.to_baseline_hi, sign=True)
        against = {"difference": rows.to_baseline.map(signed), "99 % interval": ends}
        against |= {"verdict": rows.to_baseline_verdict}
        table = _table(pd.DataFrame({"model": rows.run, "mean": rows["mean"], **against}))
        yield Part(f"Against {base.name}", tables=[table])
    yield _every_pair(standings)
    if many:
        counts = {f"{n} for": rows[f"to_best_users_{n}"] for n in ("better", "worse")}
        users = pd.DataFrame({"model": rows.run, **counts, "p": rows.to_best_users_p})
        yield Part("How many users", [_USERS], [_table(users)])
    if standings.strata is not None:
        yield from _strata(standings, standings.strata)
    if many:
        yield _users(standings)


def _table(frame: pd.DataFrame, title: str = "") -> Table:
    columns = [frame[name].tolist() for name in frame]
    return Table([*map(str, frame)], [*zip(*columns, strict=True)], title=title)


def _intervals(lo: pd.Series, hi: pd.Series, *, sign: bool = False) -> list[str]:
    return [interval(low, high, sign=sign) for low, high in zip(lo, hi, strict=True)]


def _every_pair(standings: Standings) -> Part:
    """Tabulate the difference of every pair, and for what share of users each is better."""
    pairs = standings.pairs[standings.pairs.weighting == "users"]
    turned = pairs.rename(columns={"run": "other", "other": "run"})
    both = pd.concat([pairs, turned.assign(difference=-turned.difference)])
    order = standings.rows.run.tolist()
    gaps = both.pivot(index="run", columns="other", values="difference").map(signed)
    shares = standings.superiority.map(percent)
    tables = []
    for square, title in (
        (gaps, "Row less column"),
        (shares, "Users for whom the row's model is better than the column's; ties count half"),
    )[: 1 + (len(standings.users) > 1)]:
        cells = square.loc[order, order].mask(np.eye(len(order), dtype=bool), "")
        tables.append(_table(cells.reset_index(names=""), title))
    return Part("Every pair", tables=tables)


def _strata(standings: Standings, strata: Strata) -> Iterator[Part]:
    """Tabulate differences to the baseline by stratum, and UM+."""
    base = standings.runs[standings.baseline].name
    sample = f" From a sample of {strata.sample}." if strata.sample else ""
    line = (
        f"Mean difference in {strata.score} to {base} per review, each user's reviews together "
        f"counting once; 99 % intervals over {strata.over}, each of one stratum alone.{sample}"
    )
    tables = []
    for fact, rows in strata.frame[strata.frame.run != base].groupby("fact", sort=False):
        labels = rows.drop_duplicates("label")
        cells = [["share of reviews", *labels.share.map(percent)]]
        for name, of_run in rows.groupby("run", sort=False):
            bounds = of_run[["difference", "lo", "hi"]].to_numpy()
            cells.append([name, *(f"{signed(m)} {interval(lo, hi, 3)}" for m, lo, hi in bounds)])
        tables.append(Table(["model", *labels.label], cells, title=FACTS[str(fact)][0]))
    yield Part("Where they differ", [line], tables)
    wide = strata.um_plus.pivot_table("mean", "run", "other", sort=False)
    line = (
        "UM+: mean prediction less share of recalls of the row's model, among reviews sorted by "
        "how much it differs from the column's: root of the mean square, mean over users; lower is "
        f"better.{sample}"
    )
    square = wide.reindex(columns=wide.index).rename_axis(columns=None).reset_index(names="model")
    yield Part("Bias where two models disagree", [line], [_table(square)])


def _users(standings: Standings) -> Part:
    """Tabulate users, those for whom the leader differs most from the baseline at the ends."""
    names = [run.name for run in standings.runs]
    scores = pd.DataFrame(standings.scores, columns=names)[standings.rows.run]
    leader, base = scores.columns[0], names[standings.baseline]
    other = base if leader != base else scores.columns[-1]
    place = np.argsort(scores[leader] - scores[other], kind="stable").tolist()
    half = _MOST_USERS // 2
    shown = place if len(place) <= _MOST_USERS else [*place[:half], *place[-half:]]
    rows = [
        [standings.users[n], int(standings.reviews[n]), *scores.iloc[n].tolist()] for n in shown
    ]
    line = f"{len(shown):,} of {counted(len(place), 'user')}, sorted by {leader} less {other}."
    return Part("Each user", [line], [Table(["user", "reviews", *scores], rows)])


def _about(standings: Standings) -> Iterator[Part]:
    coverage = sentences(standings.coverage) if standings.coverage else []
    lines = [f"{line}." for line in dict.fromkeys([*coverage, *remarks(standings)])]
    if lines:
        yield Part("What was left out, and what else to know", lines)
    unit = "users, who count once each"
    if len(standings.users) == 1:
        unit = "reviews, clustered by card and day"
    yield Part("How this is computed", [_METHOD.format(unit=unit)])

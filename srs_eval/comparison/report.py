"""The page of a comparison: the answer and two pictures first, details folded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from srs_eval.comparison import answer
from srs_eval.comparison.coverage import sentences
from srs_eval.comparison.page import render
from srs_eval.comparison.pictures import calibration, differences
from srs_eval.comparison.remarks import remarks
from srs_eval.comparison.standings import Standings
from srs_eval.comparison.strata import FACTS, Strata
from srs_eval.comparison.table import Table
from srs_eval.comparison.words import counted, interval, number, percent, signed
from srs_eval.metrics.panel import HEADLINE

_MOST_USERS = 200
_Cell = Callable[[Any], Any]  # What a table says of a row of the frame
_WEIGHTED = {"reviews": "By review", "log_reviews": "By logarithm of reviews"}
_USERS = "Users for whom a model is better and worse than the leader; p: sign test, adjusted."
_COUNTS = {
    "better for": lambda row: row.to_best_users_better,
    "worse for": lambda row: row.to_best_users_worse,
    "p": lambda row: row.to_best_users_p,
}
_METHOD = (
    "Models are compared on identical reviews. A difference is the mean over {unit}; its interval "
    "allows for skewness, and for how many models were compared: it excludes 0 exactly where the "
    "difference is significant at 1 %. The leader was chosen on the same scores, so those next to "
    "it are held to a stricter level."
)


@dataclass(frozen=True)
class Part:
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
    frame, every = answer.users_frame(standings), standings.frame
    several, many = len(standings.runs) > 1, len(standings.users) > 1
    beside = [name for name in (*HEADLINE, "ici") if name in frame and name != standings.metric]
    cells = {name: lambda row, name=name: float(row[name]) for name in beside}
    own = {f"99 % of {answer.words(standings.metric)}": lambda row: interval(row.lo, row.hi)}
    yield Part("Other metrics", tables=[_table(frame, own | cells)])
    if not several:
        return
    base = standings.runs[standings.baseline]
    if [*standings.leaders.values()] != [base]:
        yield Part(f"Against {base.name}", tables=[_against(frame, "baseline")])
    yield _every_pair(standings)
    if many:
        yield Part("How many users", [_USERS], [_table(frame, _COUNTS)])
        weighted = [
            _against(every[every.weighting == weighting], "best", title)
            for weighting, title in _WEIGHTED.items()
        ]
        yield Part("Users weighted by their reviews", tables=weighted)
    if standings.strata is not None:
        yield from _strata(standings, standings.strata)
    if many:
        yield _users(standings)


def _table(
    frame: pd.DataFrame, cells: Mapping[str, Callable[[Any], Any]], title: str = ""
) -> Table:
    """Tabulate rows of the frame: a heading has the function that gives the cell of a row."""
    rows = [[row.run, *(cell(row) for cell in cells.values())] for _, row in frame.iterrows()]
    return Table(["model", *cells], rows, title=title)


def _against(frame: pd.DataFrame, to: str, title: str = "") -> Table:
    """Tabulate the differences to the leader, or to the baseline."""
    cells = {
        "mean": lambda row: float(row["mean"]),
        "difference": lambda row: signed(row[f"to_{to}"]),
        "99 % interval": lambda row: interval(row[f"to_{to}_lo"], row[f"to_{to}_hi"], sign=True),
        "verdict": lambda row: row[f"to_{to}_verdict"],
    }
    return _table(frame, cells, title)


def _every_pair(standings: Standings) -> Part:
    """Tabulate the difference of every pair, and for what share of users each is better."""
    board, order = standings.board, standings.board.order
    names = [standings.runs[n].name for n in order]

    def square(cell: Callable[[int, int], str], title: str) -> Table:
        rows = [
            [names[k], *("" if a == b else cell(a, b) for b in order)] for k, a in enumerate(order)
        ]
        return Table(["", *names], rows, title=title)

    gaps = square(lambda a, b: signed(board.difference(a, b).mean), "Row less column")
    shares = square(
        lambda a, b: percent(float(standings.superiority[a, b])),
        "Users for whom the row's model is better than the column's; ties count half",
    )
    return Part("Every pair", tables=[gaps, shares][: 1 + (len(standings.users) > 1)])


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
    names = list(wide.index)
    cells = [[run, *wide.loc[run].reindex(names).map(number)] for run in names]
    line = (
        "UM+: mean prediction less share of recalls of the row's model, among reviews sorted by "
        "how much it differs from the column's: root of the mean square, mean over users; lower is "
        f"better.{sample}"
    )
    yield Part("Bias where two models disagree", [line], [Table(["model", *names], cells)])


def _users(standings: Standings) -> Part:
    """Tabulate users, those for whom the leader differs most from the baseline at the ends."""
    order, scores = standings.board.order, standings.scores
    other = standings.baseline if order[0] != standings.baseline else order[-1]
    place = np.argsort(scores[:, order[0]] - scores[:, other], kind="stable")
    half = _MOST_USERS // 2
    shown = place if len(place) <= _MOST_USERS else np.concatenate([place[:half], place[-half:]])
    names = [standings.runs[n].name for n in order]
    rows = [
        [standings.users[n], int(standings.reviews[n]), *scores[n, list(order)].tolist()]
        for n in shown
    ]
    line = (
        f"{len(shown):,} of {counted(len(place), 'user')}, sorted by {names[0]} less "
        f"{standings.runs[other].name}."
    )
    return Part("Each user", [line], [Table(["user", "reviews", *names], rows)])


def _about(standings: Standings) -> Iterator[Part]:
    coverage = sentences(standings.coverage) if standings.coverage else []
    lines = [f"{line}." for line in dict.fromkeys([*coverage, *remarks(standings)])]
    if lines:
        yield Part("What was left out, and what else to know", lines)
    unit = "users, who count once each"
    if len(standings.users) == 1:
        unit = "reviews, clustered by card and day"
    yield Part("How this is computed", [_METHOD.format(unit=unit)])

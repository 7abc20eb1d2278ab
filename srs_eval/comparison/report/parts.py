"""Tables of who differs, and where: user by user, and by parts of the reviews."""

from __future__ import annotations

import math
from collections.abc import Sequence

from srs_eval.comparison.report.grid import Grid
from srs_eval.comparison.report.words import percent, signed
from srs_eval.comparison.strata import Fact, Stratum, Where
from srs_eval.comparison.verdict import Verdict
from srs_eval.text.console import interval, number


def shares(verdict: Verdict) -> Grid:
    """Tabulate for what share of users each run is better than each other."""
    order = verdict.order
    rows = [
        (
            verdict.runs[a].marked,
            *("" if a == b else percent(float(verdict.superiority[a, b])) for b in order),
        )
        for a in order
    ]
    shade = [
        [0.0, *(0.0 if a == b else _zero(1 - 2 * verdict.superiority[a, b]) for b in order)]
        for a in order
    ]
    return Grid(
        key="superiority",
        title="For how many users",
        caption="Share of users for whom the run of the row is better than that of the column; "
        "ties count half",
        headers=("better than", *(verdict.runs[b].name for b in order)),
        rows=tuple(rows),
        shade=shade,
    )


def rank_grid(verdict: Verdict) -> Grid:
    """Tabulate mean ranks."""
    found = verdict.mean_ranks
    order = sorted(range(len(verdict.runs)), key=lambda n: (math.isnan(found[n]), found[n]))
    return Grid(
        key="ranks",
        title="Mean ranks",
        caption="Over users, 1 is best, ties share theirs; by how much is disregarded",
        headers=("run", "mean rank"),
        rows=tuple((verdict.runs[m].marked, number(float(found[m]), 3)) for m in order),
    )


def strata_grid(verdict: Verdict, found: Where, fact: Fact, strata: Sequence[Stratum]) -> Grid:
    """Differences to the baseline in parts of the reviews."""
    column = {run: position for position, run in enumerate(found.runs)}
    models = [n for n in verdict.order if n in column and n != verdict.baseline]
    rows, below, shade = [], [], []
    largest = max((abs(float(s.gap[column[m]])) for s in strata for m in models), default=0.0)
    for model in models:
        at = column[model]
        rows.append((verdict.runs[model].marked, *(signed(s.gap[at]) for s in strata)))
        below.append(["", *(_small(s, at) for s in strata)])
        shade.append([0.0, *(_clear(s, at, largest) for s in strata)])
    counts = ("share of reviews", *(percent(s.share) for s in strata))
    base = verdict.runs[verdict.baseline].name
    return Grid(
        key=f"where_{fact.name}",
        title=fact.title,
        caption=f"Mean difference in {found.score} to {base} per review, each user's reviews "
        f"together counting once; 99 % intervals over {found.over}, each of one "
        "part alone; coloured where the interval is clear of 0",
        headers=("run", *(s.label for s in strata)),
        rows=(counts, *rows),
        shade=[[0.0] * (len(strata) + 1), *shade],
        below=[["", *(_over(s, found.over) for s in strata)], *below],
    )


def extremes(verdict: Verdict) -> Grid:
    """List the users for whom each run differs most from the baseline, both ways."""
    rows = []
    for model in verdict.order:
        if model == verdict.baseline:
            continue
        found = verdict.extremes[model]
        best, worst = (
            ", ".join(f"{user}\N{NO-BREAK SPACE}({signed(gap)})" for user, gap in users) or "none"
            for users in (found.gains, found.losses)
        )
        rows.append((verdict.runs[model].marked, best, worst))
    base = verdict.runs[verdict.baseline].name
    return Grid(
        key="users",
        title="Users who differ most",
        caption=f"Largest differences to {base} in each direction: user (difference)",
        headers=("run", "better for", "worse for"),
        rows=tuple(rows),
        text=3,
    )


def _zero(value: float) -> float:
    return 0.0 if math.isnan(value) else float(value)


def _small(stratum: Stratum, at: int) -> str:
    """Print the interval of a stratum, if it has one."""
    lo, hi = float(stratum.lo[at]), float(stratum.hi[at])
    return "" if math.isnan(lo) else interval(lo, hi, 3)


def _over(stratum: Stratum, noun: str) -> str:
    """Count the users, or cards, of a stratum."""
    return f"{stratum.n_clusters:,} {noun if stratum.n_clusters > 1 else noun.removesuffix('s')}"


def _clear(stratum: Stratum, at: int, largest: float) -> float:
    """Shade by the size of a difference whose interval is clear of 0."""
    lo, hi = float(stratum.lo[at]), float(stratum.hi[at])
    if not largest or not (lo > 0 or hi < 0):
        return 0.0
    return float(stratum.gap[at]) / largest

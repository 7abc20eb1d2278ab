"""The tables of a comparison, the same for every output format."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.leaderboard import Leaderboard
from srs_eval.comparison.report.words import level_text, p_text, share_interval, signed
from srs_eval.comparison.standing import Answer, Standing
from srs_eval.comparison.strata import Fact, Strata, Stratum
from srs_eval.comparison.table import Cell, Table
from srs_eval.comparison.verdict import Verdict
from srs_eval.comparison.words import counted, interval, number, percent

_WEIGHTED = {
    "users": ("Each user counts once: the typical user", ""),
    "reviews": ("Each review counts once: the typical review", ""),
    "log_reviews": (
        "Users weighted by the logarithm of their reviews",
        "only for comparison with published tables that weight so; ",
    ),
}
_UNTESTED = {"interval": "", "level": "", "p": ""}
_NOTICEABLE = 0.05  # users by which an effective number of users is smaller
# The leader, and models not significantly different from it, are highlighted.
_ALIKE = ("best", "leads", "identical", "not significantly different")


def tables(verdict: Verdict) -> Iterator[Table]:
    """Yield every table of a comparison, in the order of a report."""
    several = len(verdict.runs) > 1
    board = verdict.leaderboard
    users = board.n_users > 1
    for each in verdict.leaderboards:
        yield leaderboard(verdict, each)
        if several and users and each is board:
            yield from _majorities(verdict)
    if verdict.beside or verdict.at_retention:
        yield beside(verdict)
    if several:
        yield against(verdict)
        if users:
            yield majority(
                *(verdict, board.to_baseline, verdict.baseline, board.order),
                "against_baseline_majority",
            )
            yield shares(verdict)
            yield ranks(verdict)
        if verdict.strata is not None:
            for fact, strata in verdict.strata.facts:
                yield _strata_table(verdict, verdict.strata, fact, strata)
            yield _um_plus_table(verdict, verdict.strata)
        if users:
            yield extremes(verdict)
    yield sources(verdict)


def leaderboard(verdict: Verdict, board: Leaderboard) -> Table:
    """Tabulate the leaderboard of one weighting of users."""
    title, meaning = _WEIGHTED[board.weighting]
    rows: list[dict[str, Any]] = []
    bold = set()
    for model in board.order:
        standing, run = board.to_best[model], verdict.runs[model]
        bold |= {len(rows)} if standing.average.verdict in _ALIKE else set()
        mean, lo, hi = (float(of[model]) for of in (board.mean, board.lo, board.hi))
        score = {verdict.metric: mean, "99 % interval": interval(lo, hi)}
        rows.append({**_named(run), **score, **_difference(standing, "to best")})
        rows += [
            {**_named(other), **score, "to best": "", **_UNTESTED, "on average": alike}
            for alike in [f"identical to {run.name}"]
            for other in verdict.paired.duplicates_of(run)
        ]
    rests = counted(board.n_users, "user")
    if verdict.coverage is not None:
        rests = verdict.coverage.shortly
    if board.n_users - board.effective >= _NOTICEABLE:
        rests += f", as precise as {board.effective:,.1f} users of equal weight"
    return Table.of_records(
        rows,
        key=f"leaderboard_{board.weighting}",
        title=title if board.n_users > 1 else "Leaderboard",
        caption=f"{rests}; {meaning}to best: mean paired difference to the leader among the runs "
        "that predict at the same time, with its p and its interval, both adjusted for the "
        "selection of the leader on the same scores: the level is higher the more models ahead "
        "are not worse. The verdict is p at 1 %",
        align="ll",
        bold=bold,
    )


def _difference(standing: Standing, to: str) -> dict[str, str]:
    """Format a mean difference: its size, interval, level, p, and verdict."""
    answer, mean = standing.average, standing.difference.mean
    tested = {to: "", **_UNTESTED}
    if not math.isnan(mean):
        tested = {to: signed(mean), **_tested(answer, interval(answer.lo, answer.hi))}
    return {**tested, "on average": answer.verdict}


def _tested(answer: Answer, bounds: str) -> dict[str, str]:
    return {"interval": bounds, "level": level_text(answer), "p": p_text(answer.p_value)}


def _majorities(verdict: Verdict) -> Iterator[Table]:
    """Tabulate for how many users each run is better than its leader."""
    board = verdict.leaderboard
    for leader, group in board.groups.items():
        if leader >= 0 and len(group) > 1:
            key = f"leaderboard_majority_{verdict.runs[leader].when}"
            yield majority(verdict, board.to_best, leader, group, key)


def majority(
    verdict: Verdict, standings: Sequence[Standing], other: int, models: Sequence[int], key: str
) -> Table:
    """Tabulate for how many users each run is better than the leader, or the baseline."""
    rows = []
    for model in models:
        counts, answer = standings[model].counts, standings[model].users
        if model == other or not sum(counts):
            continue
        tested = _tested(answer, share_interval(answer.lo, answer.hi))
        shown = (*counts, percent(counts.share), *tested.values(), answer.verdict)
        rows.append((verdict.runs[model].marked, *shown))
    name = verdict.runs[other].name
    return Table(
        key=key,
        title=f"For most users, against {name}",
        caption=f"Users for whom the run is better than {name}, worse, and alike; share: better "
        "among those who differ, with the interval of Clopper and Pearson; p: exact sign test. "
        "Level and p are adjusted as in the table of means",
        headers=("run", "better", "worse", "alike", "share", *_UNTESTED, "for most users"),
        rows=rows,
    )


def beside(verdict: Verdict) -> Table:
    """Tabulate the means of other metrics."""
    users = verdict.leaderboard.n_users
    columns: dict[str, list[Any]] = {
        name if count == users else f"{name} ({counted(count, 'user')})": means.tolist()
        for name, (means, count) in verdict.beside.items()
    }
    several = users > 1
    caption = "Means over users" if several else "Of the same reviews"
    if verdict.at_retention is not None:
        metric, biases = verdict.at_retention
        columns[metric] = [
            signed(bias.mean_users) + (f" ({bias.n_users:,})" if several else "") for bias in biases
        ]
        caption += f"; {metric}: mean prediction less share of recalls, where a run predicts so"
        caption += ", and the number of users for whom it does" if several else ""
    rows = [
        {**_named(verdict.runs[n]), **{name: of[n] for name, of in columns.items()}}
        for n in verdict.order
    ]
    return Table.of_records(rows, key="beside", title="Other metrics", caption=caption, align="ll")


def against(verdict: Verdict) -> Table:
    """Tabulate paired differences to the baseline."""
    base = verdict.baseline
    lower = "above" if verdict.better == "higher" else "below"
    over = "user by user"
    if verdict.leaderboard.n_users == 1:
        over = "review by review, with standard errors clustered by card and by day"
    standings = verdict.leaderboard.to_baseline
    rows = [
        {**_named(verdict.runs[n]), **_difference(standings[n], "difference")}
        for n in verdict.order
        if n != base
    ]
    return Table.of_records(
        rows,
        key="against_baseline",
        title=f"Against {verdict.runs[base].name}",
        caption=f"Mean paired difference, {over}; {lower} 0 is better than the baseline. Interval "
        "and p are both adjusted for the number of comparisons by Holm's method, and those of the "
        "leader for its selection, as in the leaderboard",
        align="ll",
    )


def sources(verdict: Verdict) -> Table:
    """Tabulate data, protocol, fits, settings and folder of each run."""
    rows = [
        {
            **_named(run),
            "data": run.facts.data,
            "protocol": run.protocol,
            "users scored": len(run.rows),
            "exceptional fits": run.facts.exceptions or "as planned",
            "settings": run.facts.tags.get("config_hash", "-"),
            "folder": run.place,
        }
        for run in verdict.paired.every_run
    ]
    caption = "In the order they were given; settings: digest of the configuration"
    return Table.of_records(
        rows, key="runs", title="Where they come from", caption=caption, align="l" * 8
    )


def _named(run: Entry) -> dict[str, str]:
    """Format the name of a run, and when its predictions are made."""
    return {"run": run.marked, "when": run.when.replace("_", " ")}


def shares(verdict: Verdict) -> Table:
    """Tabulate for what share of users each run is better than each other."""
    order = verdict.order
    rows = [
        (verdict.runs[a].marked, *("" if a == b else _share(verdict, a, b) for b in order))
        for a in order
    ]
    return Table(
        key="superiority",
        title="For how many users",
        caption="Share of users for whom the run of the row is better than that of the column; "
        "ties count half",
        headers=("better than", *(verdict.runs[b].name for b in order)),
        rows=rows,
    )


def _share(verdict: Verdict, run: int, other: int) -> Cell:
    share = float(verdict.superiority[run, other])
    return Cell(percent(share), shade=0.0 if math.isnan(share) else 1 - 2 * share)


def ranks(verdict: Verdict) -> Table:
    """Tabulate mean ranks."""
    found = verdict.mean_ranks
    order = [
        model
        for group in verdict.leaderboard.groups.values()
        for model in sorted(group, key=lambda n: (math.isnan(found[n]), found[n]))
    ]
    rows = [{**_named(verdict.runs[n]), "mean rank": number(float(found[n]), 3)} for n in order]
    return Table.of_records(
        rows,
        key="ranks",
        title="Mean ranks",
        caption="Over users, among the runs with the same leader: 1 is best, ties share a rank; "
        "the sizes of differences are ignored",
        align="ll",
    )


def _strata_table(verdict: Verdict, found: Strata, fact: Fact, strata: Sequence[Stratum]) -> Table:
    """Tabulate differences to the baseline by strata of one fact."""
    models = [n for n in verdict.order if n in found.runs and n != verdict.baseline]
    places = {model: found.runs.index(model) for model in models}
    largest = max((abs(float(s.gap[at])) for s in strata for at in places.values()), default=0.0)
    noun = found.over.removesuffix("s")
    sizes = (Cell(percent(s.share), counted(s.n_clusters, noun)) for s in strata)
    rows = [("share of reviews", *sizes)]
    for model, at in places.items():
        cells = (_in_stratum(stratum, at, largest) for stratum in strata)
        rows.append((verdict.runs[model].marked, *cells))
    base = verdict.runs[verdict.baseline].name
    lone = any(math.isnan(float(s.lo[at])) for s in strata for at in places.values())
    return Table(
        key=f"where_{fact.name}",
        title=fact.title,
        caption=f"Mean difference in {found.score} to {base} per review, each user's reviews "
        f"together counting once; 99 % intervals over {found.over}, each of one "
        "stratum alone; coloured where the interval excludes 0"
        + (f"; no interval where one {noun} outweighs all others" if lone else "")
        + (f"; from a sample of {found.sample}" if found.sample else ""),
        headers=("run", *(s.label for s in strata)),
        rows=rows,
    )


def _um_plus_table(verdict: Verdict, found: Strata) -> Table:
    """Tabulate UM+ of each run against each other."""
    models = [(n, found.runs.index(n)) for n in verdict.order if n in found.runs]
    rows = []
    for model, row in models:
        cells: list[Cell | str] = [verdict.runs[model].marked]
        for _, column in models:
            mean, lo, hi = found.um_plus_of(row, column)
            below = "" if math.isnan(found.um_plus[row][column].se) else interval(lo, hi)
            cells.append("" if row == column else Cell(number(mean), below))
        rows.append(tuple(cells))
    return Table(
        key="um_plus",
        title="Bias where two models disagree: UM+",
        caption="Mean prediction less share of recalls of the run of the row, among reviews "
        "sorted by how much it differs from the run of the column: root of the mean square, as "
        "the mean over users with its 99 % interval; lower is better, and few reviews raise it"
        + (f"; from a sample of {found.sample}" if found.sample else ""),
        headers=("run", *(verdict.runs[model].name for model, _ in models)),
        rows=rows,
    )


def extremes(verdict: Verdict) -> Table:
    """Tabulate the users for whom each run differs most from the baseline."""
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
    return Table(
        key="users",
        title="Users who differ most",
        caption=f"Largest differences to {base} in each direction: user (difference)",
        headers=("run", "better for", "worse for"),
        rows=rows,
        align="lll",
    )


def _in_stratum(stratum: Stratum, run: int, largest: float) -> Cell:
    """Format the difference of a run, shaded by its size where the interval excludes 0."""
    gap, lo, hi = (float(of[run]) for of in (stratum.gap, stratum.lo, stratum.hi))
    below = "" if math.isnan(lo) else interval(lo, hi, 3)
    return Cell(signed(gap), below, gap / largest if largest and (lo > 0 or hi < 0) else 0.0)

"""Standings as files: Markdown, LaTeX, CSV, JSON, and a page with its details folded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.comparison import answer
from srs_eval.comparison.page import Part, Table, for_csv, for_latex, for_markdown, render
from srs_eval.comparison.standings import BESIDE, Standings
from srs_eval.comparison.strata import FACTS, Strata
from srs_eval.comparison.words import counted, interval, intervals, number, one_line, percent
from srs_eval.metrics.significance import LEVEL
from srs_eval.runs.folder import whole, write_json

JSON, HTML = "comparison.json", "report.html"
_MOST_USERS = 200
_LATEX = r"""% needs \usepackage{{booktabs,graphicx}}
\begin{{table}}
\centering
\caption{{{caption}}}
\label{{tab:comparison}}
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{{table}}}
\end{{table}}
"""
_USERS = "Users for whom a model is better and worse than the leader; p: sign test, adjusted."
_SHARES = "Users for whom the row's model is better than the column's; ties count half"
_METHOD = (
    "Models are compared on identical reviews. A difference is the mean over {unit}; its interval "
    "allows for skewness, and for how many models were compared: it excludes 0 exactly where the "
    "difference is significant at 1 %. The leader was chosen on the same scores, so those next to "
    "it are held to a stricter level."
)


def write_files(standings: Standings, folder: Path, *, command: str = "") -> list[Path]:
    """Write every file into a folder; `command` is the command line, for the page, the last."""
    texts = {
        "comparison.md": markdown(standings),
        "comparison.csv": csv_text(standings),
        "comparison.tex": latex(standings),
        HTML: page(standings, command=command),
    }
    write_json(folder / JSON, as_json(standings))
    for name, text in texts.items():
        with whole(folder / name) as partial:
            partial.write_text(text, encoding="utf-8")
    return [folder / name for name in (JSON, *texts)]


def markdown(standings: Standings) -> str:
    """Format the answer and its table in GitHub's Markdown."""
    said, *notes = map(for_markdown, _sentences(standings))
    table = [answer.table(standings).write("pipe"), ""] if standings.has_answer else []
    return "\n".join([f"**{said}**", "", *table, *(f"- {note}" for note in notes), ""])


def latex(standings: Standings) -> str:
    """Format the table in the style of booktabs, no wider than the text, with the answer."""
    caption = " ".join(f"{text.rstrip('.')}." for text in _sentences(standings))
    if not standings.has_answer:
        return f"% {one_line(caption)}\n"
    table = answer.table(standings).write("latex_booktabs")
    return _LATEX.format(caption=for_latex(caption), table=table)


def csv_text(standings: Standings) -> str:
    """Format the frame as CSV, with numbers in full precision."""
    return standings.frame.map(for_csv).to_csv(index=False, lineterminator="\n")


def as_json(standings: Standings) -> dict[str, Any]:
    """Return all numbers of a comparison, in full precision."""
    coverage, strata = standings.coverage, standings.strata
    return {
        "verdict": _sentences(standings)[0],
        "metric": standings.metric,
        "better": standings.better,
        "baseline": standings.baseline,
        "leaders": {when: run.name for when, run in standings.leaders.items()},
        "users": len(standings.users),
        "reviews": int(standings.reviews.sum()),
        "coverage": coverage and {**asdict(coverage), "caution": coverage.caution},
        "interval_level": LEVEL,
        "notes": [*answer.remarks(standings)],
        "runs": [
            {"name": name, "folder": str(run.place), "traits": run.traits}
            | {key: getattr(run.facts, key) for key in ("when", "data", "protocol", "tags")}
            for name, run in standings.runs.items()
        ],
        "leaderboard": _records(standings.frame),
        "superiority": standings.superiority.T.to_dict("list"),
        "pairs": _records(standings.pairs),
        "where": strata
        and {
            "score": strata.score,
            "intervals_over": strata.over,
            "sample": strata.sample,
            "strata": _records(strata.frame),
            "um_plus": _records(strata.um_plus),
        },
    }


def page(standings: Standings, *, command: str = "") -> str:
    """Format the page; `command` is the command line that made it."""
    said, doubt = answer.headline(standings)
    is_shown = standings.has_answer
    return render(
        "comparison/report.html",
        title=said,
        doubt=doubt,
        facts=answer.facts(standings),
        cautions=[*answer.cautions(standings)] if is_shown else [],
        legend=answer.legend(standings) if is_shown else "",
        pictures=[*_pictures(standings)] if is_shown else [],
        table=answer.table(standings),
        parts=[*(_tables(standings) if is_shown else ()), *_about(standings)],
        command=command,
    )


def _sentences(standings: Standings) -> list[str]:
    return [" ".join(filter(None, answer.headline(standings))), *answer.notes(standings)]


def _records(frame: pd.DataFrame) -> Any:
    """Return the rows of a frame, with None for what is missing."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def _pictures(standings: Standings) -> Iterator[tuple[str, str, str]]:
    from srs_eval.comparison.pictures import calibration, differences  # matplotlib: only to draw

    leaders = [run.name for run in standings.leaders.values()]
    if len(standings.runs) > 1:
        whom = leaders[0] if len(leaders) == 1 else "the leader of its time"
        about = "across the line: can be noise; 99 % intervals"
        yield f"How far from {whom}?", about, differences(standings)
    if picture := calibration(standings):
        yield "Can it be trusted?", "on the dashed line: yes; 95 % bands", picture


def _tables(standings: Standings) -> Iterator[Part]:
    """Go through what is not in the table at the top."""
    rows, base = standings.rows, standings.baseline
    beside = [name for name in BESIDE if name in rows and name != standings.metric]
    own = {f"99 % of {answer.words(standings.metric)}": intervals(rows)}
    metrics = pd.DataFrame(own, rows.index).join(rows[beside])
    yield Part("Other metrics", tables=[Table.of(metrics, "model")])
    if len(standings.runs) == 1:
        return
    if [run.name for run in standings.leaders.values()] != [base]:
        against = {
            "mean": rows["mean"],
            "difference": [number(gap, "+") for gap in rows.to_baseline],
            "99 % interval": intervals(rows, "to_baseline", "+"),
            "verdict": rows.to_baseline_verdict,
        }
        yield Part(f"Against {base}", tables=[Table.of(pd.DataFrame(against), "model")])
    texts = {pair: number(gap.mean, "+") for pair, gap in standings.gaps["users"].items()}
    pairs = [_square(standings, pd.Series(texts).unstack(), "Row less column")]
    if len(standings.users) > 1:
        pairs.append(_square(standings, standings.superiority.map(percent), _SHARES))
    yield Part("Every pair", tables=pairs)
    if len(standings.users) > 1:
        users = {"better for": rows.to_best_users_better, "worse for": rows.to_best_users_worse}
        frame = pd.DataFrame({**users, "p": rows.to_best_users_p})
        yield Part("How many users", [_USERS], [Table.of(frame, "model")])
    if standings.strata is not None:
        yield from _strata(standings, standings.strata)
    if len(standings.users) > 1:
        yield _users(standings)


def _square(standings: Standings, cells: pd.DataFrame, title: str = "") -> Table:
    """Tabulate what is of every pair of runs, in the order of the table."""
    order = standings.rows.run.tolist()
    cells = cells.loc[order, order].mask(np.eye(len(order), dtype=bool), "")
    return Table.of(cells, "", title=title)


def _strata(standings: Standings, strata: Strata) -> Iterator[Part]:
    """Tabulate differences to the baseline by stratum, and UM+."""
    base = standings.baseline
    sample = f" From a sample of {strata.sample}." if strata.sample else ""
    line = (
        f"Mean difference in {answer.words(strata.score)} to {base} per review, each user's "
        f"reviews together counting once; 99 % intervals over {strata.over}, each of one stratum "
        f"alone.{sample}"
    )
    tables = []
    for fact, rows in strata.frame[strata.frame.run != base].groupby("fact", sort=False):
        labels = rows.drop_duplicates("label")
        cells = [["share of reviews", *labels.share.map(percent)]]
        for name, of_run in rows.groupby("run", sort=False):
            bounds = of_run[["difference", "lo", "hi"]].to_numpy()
            cells.append([name, *(f"{number(m, '+')} {interval(lo, hi)}" for m, lo, hi in bounds)])
        tables.append(Table(["model", *labels.label], cells, title=FACTS[str(fact)][0]))
    yield Part("Where they differ", [line], tables)
    line = (
        "UM+: mean prediction less share of recalls of the row's model, among reviews sorted by "
        "how much it differs from the column's: root of the mean square, mean over users; lower is "
        f"better.{sample}"
    )
    wide = strata.um_plus.pivot_table("mean", "run", "other", sort=False)
    square = wide.reindex(columns=wide.index)
    yield Part("Bias where two models disagree", [line], [Table.of(square, "model")])


def _users(standings: Standings) -> Part:
    """Tabulate users, those for whom the leader differs most from the baseline at the ends."""
    scores, base = standings.scores[standings.rows.run], standings.baseline
    leader, *_, last = scores
    other = base if leader != base else last
    places = np.argsort(scores[leader] - scores[other], kind="stable").tolist()
    half = _MOST_USERS // 2
    shown = scores.iloc[[*places[:half], *places[half:][-half:]]]
    line = f"{len(shown):,} of {counted(len(places), 'user')}, sorted by {leader} less {other}."
    shown.insert(0, "reviews", standings.reviews, allow_duplicates=True)
    return Part("Each user", [line], [Table.of(shown, "user")])


def _about(standings: Standings) -> Iterator[Part]:
    coverage = answer.left_out(standings.coverage) if standings.coverage else ()
    lines = [f"{line}." for line in dict.fromkeys([*coverage, *answer.remarks(standings)])]
    if lines:
        yield Part("What was left out, and what else to know", lines)
    unit = "users, who count once each"
    if len(standings.users) == 1:
        unit = "reviews, clustered by card and day"
    yield Part("How this is computed", [_METHOD.format(unit=unit)])

"""A comparison on the terminal and as files: Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import textwrap
from pathlib import Path
from typing import Any

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.escapes import for_csv, for_latex, for_markdown, for_markdown_line
from srs_eval.comparison.report.tables import leaderboard, tables
from srs_eval.comparison.report.words import (
    facts_of,
    few_users,
    headline,
    leaders,
    mark_notes,
    remarks,
    terms,
)
from srs_eval.comparison.standing import Answer, Standing
from srs_eval.comparison.strata import Strata
from srs_eval.comparison.table import Table
from srs_eval.comparison.verdict import Verdict
from srs_eval.comparison.words import one_line
from srs_eval.metrics.means import Estimate
from srs_eval.metrics.significance import LEVEL
from srs_eval.runs.folder import whole, write_json
from srs_eval.runs.summary import EXCEPTIONS

MARKDOWN, CSV, LATEX, JSON = "comparison.md", "comparison.csv", "comparison.tex", "comparison.json"
_WIDTH = 80
_SHORT = {"not significantly different": "not significant"}  # The terminal is narrow
_NO_WIDER = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"


def terminal_text(verdict: Verdict) -> str:
    """Format the leaders, one table, and what a reader must know beside it.

    Predictions are not read for it, unless of a single user.
    """
    several = len(verdict.runs) > 1
    names = ["run", *["when"] * (len(verdict.times) > 1), verdict.metric]
    names += ["to best", "interval", "on average"] if several else ["99 % interval"]
    board = leaderboard(verdict, verdict.leaderboard)
    rows = [{name: _SHORT.get(row[name], row[name]) for name in names} for row in board.records()]
    table = Table.of_records(rows, align="l" * names.index(verdict.metric)).write()
    marks = mark_notes(verdict.paired.every_run)
    caution = verdict.coverage.caution if verdict.coverage else ""
    doubts = [*verdict.warnings, *few_users(verdict), caution]
    notes = [terms(verdict), *verdict.notes, *marks, *doubts]
    below = [_wrapped(note) for note in notes if note]
    return "\n".join([textwrap.fill(leaders(verdict), _WIDTH), "", table, "", *below])


def _wrapped(note: str) -> str:
    return textwrap.fill(one_line(note), _WIDTH, subsequent_indent="  ")


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_files(verdict: Verdict, folder: Path) -> list[Path]:
    """Write a comparison into a folder in every format but HTML."""
    texts = {MARKDOWN: markdown(verdict), CSV: csv_text(verdict), LATEX: latex(verdict)}
    for name, text in texts.items():
        write_text(folder / name, text)
    write_json(folder / JSON, as_json(verdict))
    return [folder / name for name in (*texts, JSON)]


def markdown(verdict: Verdict) -> str:
    """Format every table in GitHub's Markdown."""
    said = headline(verdict), *facts_of(verdict)
    lines = ["# Comparison", "", *(line for text in said for line in _paragraph(text))]
    lines += [f"- {for_markdown_line(remark)}" for remark in remarks(verdict)]
    for table in tables(verdict):
        lines += ["", f"## {for_markdown(table.title)}", "", *_paragraph(table.caption)]
        lines.append(table.write("markdown"))
    return "\n".join([*lines, ""])


def _paragraph(text: str) -> tuple[str, str]:
    return for_markdown_line(text), ""


def latex(verdict: Verdict) -> str:
    """Format every table as a LaTeX table in the style of booktabs, no wider than the text."""
    said = [headline(verdict), *facts_of(verdict), *remarks(verdict)]
    lines = ["% needs \\usepackage{booktabs,graphicx}", *(f"% {one_line(text)}" for text in said)]
    for table in tables(verdict):
        lines += [
            "",
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{for_latex(_caption(verdict, table))}}}",
            f"\\label{{tab:{table.key}}}",
            f"{_NO_WIDER}{{\\begin{{tabular}}{{{table.alignment}}}",
            table.write("latex"),
            "\\end{tabular}}",
            "\\end{table}",
        ]
    return "\n".join([*lines, ""])


def _caption(verdict: Verdict, table: Table) -> str:
    """Return title and caption of a table, with the marks of its rows explained."""
    first = "".join(row[0] for row in table.texts())
    marks = [note for note in mark_notes(verdict.paired.every_run) if note[0] in first]
    return "".join(f"{part}. " for part in (table.title, table.caption, *marks)).rstrip()


def csv_text(verdict: Verdict) -> str:
    """Format the tidy table as CSV, with numbers in full precision."""
    out, rows = io.StringIO(), tidy(verdict)
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        known = {name: value for name, value in row.items() if value == value}  # no NaN
        writer.writerow({name: for_csv(value) for name, value in known.items()})
    return out.getvalue()


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return all numbers of a comparison, in full precision."""
    names = [run.name for run in verdict.runs]
    twins = {one.run.name: one.twin.name for one in verdict.paired.duplicates}
    return {
        "verdict": headline(verdict),
        "metric": verdict.metric,
        "better": verdict.better,
        "baseline": names[verdict.baseline],
        "leaders": {when: run.name for when, run in verdict.leaders.items()},
        "users": verdict.leaderboard.n_users,
        "reviews": int(verdict.reviews.sum()),
        "coverage": None if verdict.coverage is None else verdict.coverage.as_json(),
        "interval_level": LEVEL,
        "notes": remarks(verdict),
        "runs": [_run(run, twins.get(run.name)) for run in verdict.paired.every_run],
        "leaderboard": tidy(verdict),
        "against_baseline": [
            {"run": name, "gains": found.gains, "losses": found.losses}
            for name, found in zip(names, verdict.extremes, strict=True)
        ],
        "superiority": {
            name: row.tolist() for name, row in zip(names, verdict.superiority, strict=True)
        },
        "mean_ranks": dict(zip(names, verdict.mean_ranks.tolist(), strict=True)),
        "pairs": [
            {
                "weighting": board.weighting,
                "run": names[a],
                "other": names[b],
                **_pair(board.pairs[a][b]),
            }
            for board in verdict.leaderboards
            for a in range(len(names))
            for b in range(a)
        ],
        "where": None if verdict.strata is None else _strata(verdict, verdict.strata),
    }


def _run(run: Entry, identical_to: str | None) -> dict[str, Any]:
    return {
        "name": run.name,
        "folder": str(run.place),
        "when": run.when,
        "traits": list(run.traits),
        "data": run.facts.data,
        "protocol": run.protocol,
        "tags": dict(run.facts.tags),
        "fits": _fit_counts(run),
        "identical_to": identical_to,
    }


def tidy(verdict: Verdict) -> list[dict[str, Any]]:
    """Return the leaderboards as one table: a row for each run and weighting of users."""
    rows = []
    rests = verdict.coverage
    notes = [*([*rests.sentences, rests.caution] if rests else []), *verdict.notes]
    for board in verdict.leaderboards:
        for model in board.order:
            run = verdict.runs[model]
            place = 1 + board.groups[board.leaders[model]].index(model)
            row = {
                "weighting": board.weighting,
                "place": place,
                "metric": verdict.metric,
                "mean": float(board.mean[model]),
                "lo": float(board.lo[model]),
                "hi": float(board.hi[model]),
                "n_users": board.n_users,
                "n_effective": board.effective,
                **_standing(board.to_best[model], "best"),
                **_standing(board.to_baseline[model], "baseline"),
                "mean_rank": float(verdict.mean_ranks[model]),
                "notes": "; ".join(filter(None, notes)),
                **{name: float(means[model]) for name, (means, _) in verdict.beside.items()},
                **_at_retention(verdict, model),
            }
            rows.append({**_about(run), **row})
            for other in verdict.paired.duplicates_of(run):
                rows.append({**_about(other, identical_to=run.name), **row})
    return rows


def _at_retention(verdict: Verdict, model: int) -> dict[str, Any]:
    """Return the bias of a run at the default retention, and over how many users it is."""
    if verdict.at_retention is None:
        return {}
    metric, biases = verdict.at_retention
    return {metric: biases[model].mean_users, f"{metric}_users": biases[model].n_users}


def _about(run: Entry, *, identical_to: str = "") -> dict[str, Any]:
    return {
        "run": run.name,
        "when": run.when,
        "traits": " ".join(run.traits),
        **_fit_counts(run),
        "identical_to": identical_to,
    }


def _fit_counts(run: Entry) -> dict[str, int | None]:
    """Return the counts of fits; None where they are not known, which is not 0."""
    names = ("fits", *EXCEPTIONS)
    return {name: getattr(run.facts, name) if run.facts.fits else None for name in names}


def _standing(standing: Standing, to: str) -> dict[str, Any]:
    """Return the difference to another run, on average and for most users."""
    counts = zip(("better", "worse", "alike"), standing.counts, strict=True)
    return {
        f"to_{to}": standing.difference.mean,
        **_answer(standing.average, f"to_{to}"),
        **{f"to_{to}_users_{name}": count for name, count in counts},
        **_answer(standing.users, f"to_{to}_users"),
    }


def _answer(answer: Answer, name: str) -> dict[str, Any]:
    found = {"lo": answer.lo, "hi": answer.hi, "level": answer.level, "p": answer.p_value}
    return {f"{name}_{key}": value for key, value in {**found, "verdict": answer.verdict}.items()}


def _pair(difference: Estimate) -> dict[str, float]:
    """Return the difference between two runs, not adjusted for other pairs."""
    lo, hi = difference.interval()
    return {"difference": difference.mean, "lo": lo, "hi": hi, "p": difference.p_value}


def _strata(verdict: Verdict, found: Strata) -> dict[str, Any]:
    names = [verdict.runs[run].name for run in found.runs]
    return {
        "score": found.score,
        "intervals_over": found.over,
        **({"sample": found.sample} if found.sample else {}),
        "um_plus": [
            {
                **{"run": names[a], "other": names[b]},
                **dict(zip(("mean", "lo", "hi"), found.um_plus_of(a, b), strict=True)),
            }
            for a in range(len(names))
            for b in range(len(names))
            if a != b
        ],
        "facts": {
            fact.name: [
                {
                    "label": stratum.label,
                    "share": stratum.share,
                    "reviews": stratum.n_reviews,
                    found.over: stratum.n_clusters,
                    "difference": dict(zip(names, stratum.gap.tolist(), strict=True)),
                    "lo": dict(zip(names, stratum.lo.tolist(), strict=True)),
                    "hi": dict(zip(names, stratum.hi.tolist(), strict=True)),
                }
                for stratum in strata
            ]
            for fact, strata in found.facts
        },
    }

"""Standings as files: Markdown, LaTeX, CSV, JSON, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from srs_eval.comparison import answer
from srs_eval.comparison.coverage import as_json as coverage_as_json
from srs_eval.comparison.entry import Entry
from srs_eval.comparison.escapes import for_csv, for_latex, for_markdown, for_markdown_line
from srs_eval.comparison.remarks import remarks
from srs_eval.comparison.standings import Standings
from srs_eval.comparison.strata import FACTS, Strata
from srs_eval.comparison.words import one_line
from srs_eval.metrics.significance import LEVEL
from srs_eval.runs.folder import whole, write_json

MARKDOWN, CSV, LATEX = "comparison.md", "comparison.csv", "comparison.tex"
JSON, HTML = "comparison.json", "report.html"
_NO_WIDER = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}"


def write_files(standings: Standings, folder: Path, *, command: str = "") -> list[Path]:
    """Write every file into a folder; `command` is the command line, for the page, the last."""
    from srs_eval.comparison.report import page  # matplotlib: only to draw

    texts = {
        MARKDOWN: markdown(standings),
        CSV: csv_text(standings),
        LATEX: latex(standings),
        HTML: page(standings, command=command),
    }
    write_json(folder / JSON, as_json(standings))
    for name, text in texts.items():
        with whole(folder / name) as partial:
            partial.write_text(text, encoding="utf-8")
    return [folder / name for name in (JSON, *texts)]


def markdown(standings: Standings) -> str:
    """Format the answer and its table in GitHub's Markdown."""
    notes = [answer.facts(standings), *answer.footnotes(standings)]
    table = answer.table(standings)
    lines = [f"**{for_markdown(answer.sentence(standings))}**", ""]
    lines += [table.write("markdown"), ""] if table.rows else []
    return "\n".join([*lines, *(f"- {for_markdown_line(note)}" for note in notes), ""])


def latex(standings: Standings) -> str:
    """Format the table in the style of booktabs, no wider than the text, with the answer."""
    table = answer.table(standings)
    notes = [answer.sentence(standings), answer.facts(standings), *answer.footnotes(standings)]
    caption = " ".join(f"{note.rstrip('.')}." for note in notes)
    if not table.rows:
        return f"% {one_line(caption)}\n"
    return "\n".join(
        [
            "% needs \\usepackage{booktabs,graphicx}",
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{for_latex(caption)}}}",
            "\\label{tab:comparison}",
            f"{_NO_WIDER}{{\\begin{{tabular}}{{{table.alignment}}}",
            table.write("latex"),
            "\\end{tabular}}",
            "\\end{table}",
            "",
        ]
    )


def csv_text(standings: Standings) -> str:
    """Format the frame as CSV, with numbers in full precision."""
    return standings.frame.map(for_csv).to_csv(index=False, lineterminator="\n")


def as_json(standings: Standings) -> dict[str, Any]:
    """Return all numbers of a comparison, in full precision."""
    names = [run.name for run in standings.runs]
    twins = {each.run.name: each.twin.name for each in standings.paired.duplicates}
    shares = standings.superiority.tolist()
    return {
        "verdict": answer.sentence(standings),
        "metric": standings.metric,
        "better": standings.better,
        "baseline": names[standings.baseline],
        "leaders": {when: run.name for when, run in standings.leaders.items()},
        "users": len(standings.users),
        "reviews": int(standings.reviews.sum()),
        "coverage": standings.coverage and coverage_as_json(standings.coverage),
        "interval_level": LEVEL,
        "notes": remarks(standings),
        "runs": [_run(run, twins.get(run.name)) for run in standings.paired.every_run],
        "leaderboard": standings.rows,
        "superiority": dict(zip(names, shares, strict=True)),
        "pairs": [
            {
                "weighting": board.weighting,
                "run": names[a],
                "other": names[b],
                "difference": estimate.mean,
                **dict(zip(("lo", "hi"), estimate.interval(), strict=True)),
                "p": estimate.p_value,
            }
            for board in standings.boards
            for (a, b), estimate in board.below.items()
        ],
        "where": standings.strata and _strata(standings.strata),
    }


def _run(run: Entry, identical_to: str | None) -> dict[str, Any]:
    return {
        "name": run.name,
        "folder": str(run.place),
        "when": run.when,
        "traits": list(run.traits),
        "data": run.facts.data,
        "protocol": run.facts.protocol,
        "tags": dict(run.facts.tags),
        "identical_to": identical_to,
    }


def _strata(strata: Strata) -> dict[str, Any]:
    return {
        "score": strata.score,
        "intervals_over": strata.over,
        **({"sample": strata.sample} if strata.sample else {}),
        "facts": {name: title for name, (title, _) in FACTS.items()},
        "strata": strata.frame.to_dict("records"),
        "um_plus": strata.um_plus.to_dict("records"),
    }

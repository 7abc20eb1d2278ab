"""Standings as files: Markdown, LaTeX, CSV, JSON, and the page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from srs_eval.comparison import answer
from srs_eval.comparison.escapes import for_csv, for_latex, for_markdown, for_markdown_line
from srs_eval.comparison.remarks import remarks
from srs_eval.comparison.standings import Standings
from srs_eval.comparison.strata import FACTS
from srs_eval.comparison.words import one_line
from srs_eval.metrics.significance import LEVEL
from srs_eval.runs.folder import whole, write_json

JSON, HTML = "comparison.json", "report.html"
_LATEX = r"""% needs \usepackage{{booktabs,graphicx}}
\begin{{table}}
\centering
\caption{{{caption}}}
\label{{tab:comparison}}
\resizebox{{\ifdim\width>\linewidth\linewidth\else\width\fi}}{{!}}{{\begin{{tabular}}{{{sides}}}
{rows}
\end{{tabular}}}}
\end{{table}}
"""


def write_files(standings: Standings, folder: Path, *, command: str = "") -> list[Path]:
    """Write every file into a folder; `command` is the command line, for the page, the last."""
    from srs_eval.comparison.report import page  # matplotlib: only to draw

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
    rows = table.write("latex")
    return _LATEX.format(caption=for_latex(caption), sides=table.alignment, rows=rows)


def csv_text(standings: Standings) -> str:
    """Format the frame as CSV, with numbers in full precision."""
    return standings.frame.map(for_csv).to_csv(index=False, lineterminator="\n")


def as_json(standings: Standings) -> dict[str, Any]:
    """Return all numbers of a comparison, in full precision."""
    runs, coverage, strata = standings.runs, standings.coverage, standings.strata
    superiority = standings.superiority
    return {
        "verdict": answer.sentence(standings),
        "metric": standings.metric,
        "better": standings.better,
        "baseline": runs[standings.baseline].name,
        "leaders": {when: run.name for when, run in standings.leaders.items()},
        "users": len(standings.users),
        "reviews": int(standings.reviews.sum()),
        "coverage": coverage and {**asdict(coverage), "caution": coverage.caution},
        "interval_level": LEVEL,
        "notes": remarks(standings),
        "runs": [
            {
                "name": run.name,
                "folder": str(run.place),
                "when": run.when,
                "traits": list(run.traits),
                "data": run.facts.data,
                "protocol": run.facts.protocol,
                "tags": dict(run.facts.tags),
            }
            for run in standings.runs
        ],
        "leaderboard": _records(standings.frame),
        "superiority": dict(zip(superiority, superiority.to_numpy().tolist(), strict=True)),
        "pairs": _records(standings.pairs),
        "where": strata
        and {
            "score": strata.score,
            "intervals_over": strata.over,
            **({"sample": strata.sample} if strata.sample else {}),
            "facts": {name: title for name, (title, _) in FACTS.items()},
            "strata": _records(strata.frame),
            "um_plus": _records(strata.um_plus),
        },
    }


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame, with None for what is missing."""
    records: Any = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return list(records)

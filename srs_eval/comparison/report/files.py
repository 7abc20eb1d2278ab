"""A comparison as files: Markdown, LaTeX, CSV and JSON, all of the same numbers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from srs_eval.comparison.report.grid import Grid
from srs_eval.comparison.report.grids import grids
from srs_eval.comparison.report.words import facts_of, headline, mark_notes, remarks
from srs_eval.comparison.selection import ON_TEST_ROWS, TAG, chosen_on_test_rows
from srs_eval.comparison.standing import Standing
from srs_eval.comparison.strata import Where
from srs_eval.comparison.verdict import Verdict
from srs_eval.results.files import whole_file, write_json
from srs_eval.results.run import Run
from srs_eval.stats.estimate import Estimate
from srs_eval.text.console import table
from srs_eval.text.escapes import (
    for_csv,
    for_latex,
    for_latex_comment,
    for_markdown,
    for_markdown_line,
    latex_row,
)

MARKDOWN, CSV, LATEX, JSON = "comparison.md", "comparison.csv", "comparison.tex", "comparison.json"
# In the terminal, the rest is in the files.
_SAID = ("leaderboard_", "beside", "against_baseline")


def terminal_text(verdict: Verdict) -> str:
    """Say the verdict, the leaderboards and the differences to the baseline."""
    parts = [facts_of(verdict), "", headline(verdict)]
    for grid in grids(verdict):
        if grid.key.startswith(_SAID):
            parts += ["", grid.title, table(grid.rows, grid.headers, text=grid.text)]
    return "\n".join([*parts, *(["", *remarks(verdict)] if remarks(verdict) else [])])


def write_files(verdict: Verdict, folder: Path) -> list[Path]:
    """Write a comparison into a folder in every format but HTML."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {MARKDOWN: markdown(verdict), CSV: csv_text(verdict), LATEX: latex(verdict)}
    for name, text in texts.items():
        with whole_file(folder / name) as partial:
            partial.write_text(text, encoding="utf-8", newline="")
    write_json(folder / JSON, as_json(verdict))
    return [folder / name for name in (*texts, JSON)]


def markdown(verdict: Verdict) -> str:
    """Write every table in GitHub's Markdown."""
    lines = ["# Comparison", "", *_paragraph(headline(verdict)), *_paragraph(facts_of(verdict))]
    lines += [f"- {for_markdown_line(remark)}" for remark in remarks(verdict)]
    for grid in grids(verdict):
        lines += ["", f"## {for_markdown(grid.title)}", "", *_paragraph(grid.caption)]
        lines += ["| " + " | ".join(map(for_markdown, grid.headers)) + " |"]
        rule = ["---"] * grid.text + ["---:"] * (len(grid.headers) - grid.text)
        lines += ["|" + "|".join(rule) + "|"]
        for row, cells in enumerate(_with_below(grid)):
            marked = [
                f"**{for_markdown(cell)}**" if n == 0 and row in grid.bold else for_markdown(cell)
                for n, cell in enumerate(cells)
            ]
            lines.append("| " + " | ".join(marked) + " |")
    return "\n".join([*lines, ""])


def _paragraph(text: str) -> tuple[str, str]:
    return for_markdown_line(text), ""


def latex(verdict: Verdict) -> str:
    """Write every table as a LaTeX table in the style of booktabs."""
    said = [headline(verdict), facts_of(verdict), *remarks(verdict)]
    lines = ["% needs \\usepackage{booktabs}"]
    lines += map(for_latex_comment, said)
    for grid in grids(verdict):
        columns = "l" * grid.text + "r" * (len(grid.headers) - grid.text)
        lines += [
            "",
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{for_latex(_caption(verdict, grid))}}}",
            f"\\label{{tab:{grid.key}}}",
        ]
        lines += [f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
        lines += [latex_row(list(map(for_latex, grid.headers))), "\\midrule"]
        for row, cells in enumerate(_with_below(grid)):
            marked = [
                f"\\textbf{{{for_latex(cell)}}}" if n == 0 and row in grid.bold else for_latex(cell)
                for n, cell in enumerate(cells)
            ]
            lines.append(latex_row(marked))
        lines += ["\\bottomrule", "\\end{tabular}", "\\end{table}"]
    return "\n".join([*lines, ""])


def _caption(verdict: Verdict, grid: Grid) -> str:
    """Title and caption of a table, with the marks of its rows explained."""
    first = "".join(row[0] for row in grid.rows)
    marks = [note for note in mark_notes(verdict.paired.every_run) if note[0] in first]
    return "".join(f"{part}. " for part in (grid.title, grid.caption, *marks)).rstrip()


def csv_text(verdict: Verdict) -> str:
    """Write one row for each run and weighting, numbers in full."""
    rows = list(_flat(verdict))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _full(value) for name, value in row.items()})
    return out.getvalue()


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Everything that was found, numbers in full."""
    names = [run.name for run in verdict.runs]
    twins = {one.run.name: one.twin.name for one in verdict.paired.duplicates}
    return {
        "verdict": headline(verdict),
        "metric": verdict.metric,
        "better": verdict.better,
        "baseline": names[verdict.baseline],
        "users": verdict.board.n_users,
        "reviews": int(verdict.paired.reviews.sum()),
        "interval_level": 0.99,
        "notes": remarks(verdict),
        "runs": [
            {
                "name": run.name,
                "folder": str(run.place),
                "traits": list(run.traits),
                "data": run.data,
                "protocol": run.protocol,
                "tags": dict(run.summary.get("tags", {})),
                "fits": _fits_said(run),
                "identical_to": twins.get(run.name),
            }
            for run in verdict.paired.every_run
        ],
        **({TAG: ON_TEST_ROWS} if chosen_on_test_rows(verdict.runs) else {}),
        "leaderboard": list(_flat(verdict)),
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
            for board in verdict.boards
            for a in range(len(names))
            for b in range(a)
        ],
        "where": None if verdict.where is None else _where(verdict, verdict.where),
    }


def _flat(verdict: Verdict) -> Iterator[dict[str, Any]]:
    for board in verdict.boards:
        for place, model in enumerate(board.order, start=1):
            run = verdict.runs[model]
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
                "notes": "; ".join(verdict.notes),
                **{name: float(of[model]) for name, of in verdict.beside.items()},
            }
            yield {**_about(run), **row}
            for other in verdict.paired.duplicates_of(run):
                yield {**_about(other, identical_to=run.name), **row}


def _about(run: Run, *, identical_to: str = "") -> dict[str, Any]:
    return {
        "run": run.name,
        "traits": " ".join(run.traits),
        **_fits_said(run),
        "identical_to": identical_to,
    }


def _fits_said(run: Run) -> dict[str, int | None]:
    """Return the counts of fits; None where the run does not say, which is not 0."""
    return {count: run.summary.get(count) for count in asdict(run.fits)}


def _standing(standing: Standing, to: str) -> dict[str, Any]:
    """Difference to another run on average, then the users for whom it is better and worse."""
    average, users, counts = standing.average, standing.users, standing.counts
    return {
        f"to_{to}": standing.difference.mean,
        f"to_{to}_lo": average.lo,
        f"to_{to}_hi": average.hi,
        f"to_{to}_level": average.level,
        f"to_{to}_p": average.p_value,
        f"to_{to}_verdict": average.verdict,
        f"to_{to}_users_better": counts.better,
        f"to_{to}_users_worse": counts.worse,
        f"to_{to}_users_alike": counts.tied,
        f"to_{to}_users_lo": users.lo,
        f"to_{to}_users_hi": users.hi,
        f"to_{to}_users_level": users.level,
        f"to_{to}_users_p": users.p_value,
        f"to_{to}_users_verdict": users.verdict,
    }


def _pair(difference: Estimate) -> dict[str, float]:
    """Difference between two runs without allowance for other pairs."""
    lo, hi = difference.interval()
    return {"difference": difference.mean, "lo": lo, "hi": hi, "p": difference.p_value}


def _where(verdict: Verdict, found: Where) -> dict[str, Any]:
    names = [verdict.runs[run].name for run in found.runs]
    return {
        "score": found.score,
        "intervals_over": found.over,
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


def _with_below(grid: Grid) -> Iterable[list[str]]:
    """Cells with their second line beside the first."""
    for number, row in enumerate(grid.rows):
        below = grid.below[number] if grid.below else [""] * len(row)
        yield [f"{cell} {small}".strip() for cell, small in zip(row, below, strict=True)]


def _full(value: Any) -> Any:
    return "" if isinstance(value, float) and not math.isfinite(value) else for_csv(value)

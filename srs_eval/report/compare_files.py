"""A comparison as files: Markdown, LaTeX, CSV and JSON, all of the same numbers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from srs_eval.comparison.standing import Standing
from srs_eval.comparison.verdict import Verdict
from srs_eval.comparison.where import Where
from srs_eval.metrics.estimate import Estimate
from srs_eval.report.compare_grid import Grid
from srs_eval.report.compare_grids import grids
from srs_eval.report.compare_words import facts_of, headline, remarks
from srs_eval.report.console import table
from srs_eval.report.files import whole_file, write_json

MARKDOWN, CSV, LATEX, JSON = "comparison.md", "comparison.csv", "comparison.tex", "comparison.json"
# In the terminal, the rest is in the files.
_SAID = ("leaderboard_", "beside", "against_baseline")
_TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "≥": r"$\geq$",
    "\N{NO-BREAK SPACE}": "~",
    "°": r"\textdegree{}",
    "†": r"\dag{}",
}


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
    lines = ["# Comparison", "", _md(headline(verdict)), "", _md(facts_of(verdict)), ""]
    lines += [f"- {_md(remark)}" for remark in remarks(verdict)]
    for grid in grids(verdict):
        lines += ["", f"## {_md(grid.title)}", "", _md(grid.caption), ""]
        lines += ["| " + " | ".join(map(_md, grid.headers)) + " |"]
        rule = ["---"] * grid.text + ["---:"] * (len(grid.headers) - grid.text)
        lines += ["|" + "|".join(rule) + "|"]
        for row, cells in enumerate(_with_below(grid)):
            marked = [
                f"**{_md(cell)}**" if n == 0 and row in grid.bold else _md(cell)
                for n, cell in enumerate(cells)
            ]
            lines.append("| " + " | ".join(marked) + " |")
    return "\n".join([*lines, ""])


def latex(verdict: Verdict) -> str:
    """Write every table as a LaTeX table in the style of booktabs."""
    said = [headline(verdict), facts_of(verdict), *remarks(verdict)]
    lines = ["% needs \\usepackage{booktabs}"]
    lines += ["% " + text.replace("\n", " ") for text in said]
    for grid in grids(verdict):
        columns = "l" * grid.text + "r" * (len(grid.headers) - grid.text)
        lines += [
            "",
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{_tex(grid.title)}. {_tex(grid.caption)}.}}",
            f"\\label{{tab:{grid.key}}}",
        ]
        lines += [f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
        lines += [" & ".join(map(_tex, grid.headers)) + r" \\", "\\midrule"]
        for row, cells in enumerate(_with_below(grid)):
            marked = [
                f"\\textbf{{{_tex(cell)}}}" if n == 0 and row in grid.bold else _tex(cell)
                for n, cell in enumerate(cells)
            ]
            lines.append(" & ".join(marked) + r" \\")
        lines += ["\\bottomrule", "\\end{tabular}", "\\end{table}"]
    return "\n".join([*lines, ""])


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
            }
            for run in verdict.runs
        ],
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
            yield {
                "weighting": board.weighting,
                "place": place,
                "run": run.name,
                "traits": " ".join(run.traits),
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


def _md(text: str) -> str:
    """Escape what Markdown, and HTML in it, would take for markup."""
    for sign in "\\`*_|":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("](", "]\\(").replace("<", "&lt;").replace("\n", " ")


def _tex(text: str) -> str:
    return "".join(_TEX.get(sign, sign) for sign in text.replace("\n", " "))


def _full(value: Any) -> Any:
    return "" if isinstance(value, float) and not math.isfinite(value) else value

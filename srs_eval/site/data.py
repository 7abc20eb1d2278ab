"""The data of a board: scripts that its pages load, and the scores as CSV and parquet.

Scripts are loaded from a folder as well as from a server; browsers refuse to fetch other files
where the page comes from a folder.
"""

from __future__ import annotations

import base64
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from srs_eval.comparison.verdict import BESIDE
from srs_eval.nouns.when import IN_WORDS
from srs_eval.results.files import write_table
from srs_eval.results.run import Run
from srs_eval.site.standings import boards_of, of_model, standings
from srs_eval.site.view import MEANINGS, Model, View
from srs_eval.submit.submission import ABOUT, RESULTS
from srs_eval.text.escapes import for_csv
from srs_eval.text.plain import one_line


def write_scripts(shown: View, folder: Path) -> None:
    """Write a board, and for each metric its tables, and the scores of users."""
    _write(folder, "board", _board(shown))
    for metric, verdict in shown.verdicts.items():
        _write(folder, f"standings/{metric}", standings(verdict))
        # for scatter plots; exact
        values = np.ascontiguousarray(verdict.every_score.T, "<f8")
        _write(folder, f"scores/{metric}", base64.b64encode(values.tobytes()).decode())


def write_pairs(model: Model, shown: View, folder: Path) -> None:
    """Write the differences of a model to all others, for each metric."""
    for metric, verdict in shown.verdicts.items() if not model.twin else ():
        _write(folder, f"pairs/{metric}/{model.column}", of_model(verdict, model.column))


def _write(folder: Path, key: str, content: Any) -> None:
    """Write one script; "<" is escaped, so that no text can end a script or begin a tag."""
    text = json.dumps(_plain(content), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c")
    file = folder / f"{key}.js"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'data.receive("{key}",{text});\n', encoding="ascii")


def _plain(content: Any) -> Any:
    """Return what JSON can hold: numbers as far as pages round them, and no control characters."""
    if isinstance(content, Mapping):
        return {one_line(str(key)): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, float):
        return float(f"{content:.10g}") if math.isfinite(content) else None
    return one_line(content) if isinstance(content, str) else content


def _board(shown: View) -> dict[str, Any]:
    return {
        "n_users": shown.users,
        "times": [[when, IN_WORDS[when]] for when in shown.times],
        "meanings": MEANINGS,
        "metrics": [
            {
                "name": name,
                "better": verdict.better,
                "default": name in BESIDE,
                "means": {name: each.mean.tolist() for name, each in boards_of(verdict).items()},
            }
            for name, verdict in shown.verdicts.items()
        ],
        "models": [_facts(model, shown) for model in shown.models],
    }


def _facts(model: Model, shown: View) -> dict[str, Any]:
    """Return what tables show of a model beside its scores."""
    one, run = model.submission, model.run
    twin = shown.named(model.twin)
    return {
        "id": one.name,
        "title": model.title,
        "mark": one.mark,
        "when": run.when,
        "column": model.column,
        "twin": twin.title if twin else "",
        "eligible": run.is_eligible,
        "pretrained": "pretrained" in run.traits,
        "family": model.family,
        "authors": [str(author) for author in one.about.get("authors") or ()],
        "parameters": model.number("parameters"),
        "seconds": model.number("seconds_per_user"),
        "badges": model.badges,
    }


def write_submission(model: Model, folder: Path) -> None:
    """Write the scores of each user as CSV, beside copies of the files of the submission."""
    name = model.submission.name
    csv.write_csv(_scores(model.run), folder / f"{name}.csv")
    for file in (RESULTS, ABOUT):
        source = model.submission.folder / file
        shutil.copyfile(source, folder / f"{name}{source.suffix}")


def _scores(run: Run) -> pa.Table:
    """Tabulate scores, with text that a spreadsheet does not evaluate."""
    return pa.table(
        {
            "user": [for_csv(str(user)) for user in run.rows],
            "reviews": pa.array(run.reviews.values(), pa.int64()),
            "rows": [*run.rows.values()],
            **{name: pa.array(values, pa.float64()) for name, values in run.scores.items()},
        }
    )


def write_means(shown: View, folder: Path) -> None:
    """Write a row for each model, metric and weighting of users."""
    rows = [
        {
            "model": model.submission.name,
            "title": for_csv(model.title),
            "mark": model.submission.mark,
            "when": model.run.when,
            "identical_to": model.twin,
            "metric": metric,
            "weighting": weighting,
            "mean": float(board.mean[model.column]),
            "lo": float(board.lo[model.column]),
            "hi": float(board.hi[model.column]),
            "users": len(verdict.users),
            "parameters": model.number("parameters"),
            "seconds_per_user": model.number("seconds_per_user"),
        }
        for model in shown.models
        for metric, verdict in shown.verdicts.items()
        for weighting, board in boards_of(verdict).items()
    ]
    table = pa.Table.from_pylist(rows)
    csv.write_csv(table, folder / "board.csv")
    write_table(folder / "board.parquet", table)

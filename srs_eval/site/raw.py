"""The scores of submissions and the means of a board, as CSV and parquet."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from srs_eval.results.files import write_table
from srs_eval.results.run import Run
from srs_eval.site.standings import boards_of
from srs_eval.site.view import Model, View
from srs_eval.submit.submission import ABOUT, RESULTS
from srs_eval.text.escapes import for_csv


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

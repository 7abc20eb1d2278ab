"""Submissions that tests change."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from srs_eval.submit.reading import opened
from srs_eval.submit.record import read_record

# What a run does not know.
WRITTEN = {
    "authors": ["A. Author"],
    "licence": "MIT",
    "tuned_on": "none",
    "description": "The mean outcome.",
}


ABOUT, RESULTS, PREDICTIONS = "submission.yaml", "results.parquet", "predictions.parquet"
Change = Callable[[Path], object]  # of the folder of a submission


def about(**values):
    """Set values of ``submission.yaml``; ``data__users`` is one inside another."""

    def change(folder):
        content = yaml.safe_load((folder / ABOUT).read_text("utf-8"))
        for key, value in values.items():
            *outer, last = key.split("__")
            inside = content
            for name in outer:
                inside = inside[name]
            inside[last] = value
        written = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        (folder / ABOUT).write_text(written, "utf-8")

    return change


def text(file, content):
    """Write a file."""
    return lambda folder: (folder / file).write_text(content, "utf-8")


def table(change):
    """Change the columns of ``results.parquet``, which are lists of values."""

    def changed(folder):
        saved = pq.read_table(folder / RESULTS)
        columns = {name: saved.column(name).to_pylist() for name in saved.column_names}
        change(columns)
        pq.write_table(pa.table(columns), folder / RESULTS)

    return changed


def column(*names, of):
    """Set columns, of which all three users have the same value."""
    return table(lambda columns: columns.update({name: [of] * 3 for name in names}))


def cell(name, value):
    """Set the value of the first user; a callable computes it from that of the run."""

    def change(columns):
        old = columns[name][0]
        columns[name][0] = value(old) if callable(value) else value

    return table(change)


def without_a_user(folder):
    """Leave the first user out everywhere."""
    reviews = pq.read_table(folder / RESULTS).column("reviews").to_pylist()[1:]
    table(lambda columns: columns.update({k: v[1:] for k, v in columns.items()}))(folder)
    about(data__users=len(reviews), data__reviews=sum(reviews))(folder)


REGISTERED = {
    **{"hypothesis": "The mean beats a constant.", "model": "avg", "baseline": "constant"},
    **{"metric": "log_loss", "smallest_difference": 0.00001, "users": 3},
    **{"data": "synthetic", "protocol": "srs_benchmark"},
    **{"stopping_rule": "three users", "direction": "not_worse"},
    "options": {"data.seed": 5, "seed": 1},
}


def registered(name, **changed):
    """Write a pre-registration into a leaderboard."""

    def write(board):
        (board / "prereg").mkdir(exist_ok=True)
        content = yaml.safe_dump({**REGISTERED, **changed})
        (board / "prereg" / f"{name}.yaml").write_text(content, encoding="utf-8")

    return write


def read_submission(folder):
    """Read a submission of a leaderboard."""
    return opened(folder, read_record(folder.parent)).submission

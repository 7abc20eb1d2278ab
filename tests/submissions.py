"""Submissions that tests change."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from cases import values_in

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


def predictions(change):
    """Change the table of predictions."""

    def changed(folder):
        pq.write_table(change(pq.read_table(folder / PREDICTIONS)), folder / PREDICTIONS)

    return changed


def added(*words):
    """Add a line to ``submission.yaml``."""
    return lambda folder: text(ABOUT, (folder / ABOUT).read_text("utf-8") + " ".join(words))(folder)


def copied(to, title):
    """Copy a submission into another folder, under another title."""
    return lambda folder: about(model=title)(Path(shutil.copytree(folder, folder.parent / to)))


def constant(found):
    """Predict the same of every review."""
    return found.drop_columns("p").append_column("p", pa.array([0.5] * len(found)))


def beyond_squares(columns):
    """Have losses that no predictions with these squared errors have."""
    columns["log_loss"] = [2.4 * each for each in columns["brier"]]


# Changes of a folder, by what they are called in the texts.
CHANGES = {
    "about": lambda *words: about(**values_in(words)),
    "added": added,
    "another_model": lambda: predictions(constant),
    "beyond_squares": lambda: table(beyond_squares),
    "cell": lambda name, value: cell(name, json.loads(value)),
    "column": lambda value, *names: column(*names, of=json.loads(value)),
    "columns": lambda *words: table(lambda columns: columns.update(values_in(words))),
    "copied": copied,
    "lacking": lambda name: table(lambda columns: columns.pop(name)),
    "link": lambda name, to: lambda board: (board / name).symlink_to(board / to),
    "many_columns": lambda: column(*(f"m{n}" for n in range(600)), of=0.5),
    "more": lambda name, by: cell(name, lambda value: value + json.loads(by)),
    "moved": lambda name, to: lambda folder: (folder / name).rename(folder / to),
    "p_twice": lambda: predictions(lambda found: found.append_column("p", found.column("p"))),
    "registered": lambda name, *words: registered(name, **values_in(words)),
    "removed": lambda: shutil.rmtree,
    "reviews_twice": lambda: predictions(lambda found: pa.concat_tables([found, found])),
    "text": lambda file, *words: text(file, " ".join(words) + "\n"),
    "times": lambda name, by: cell(name, lambda value: value * json.loads(by)),
    "truncated": lambda name, size: lambda folder: os.truncate(folder / name, int(size)),
    "unlinked": lambda name: lambda folder: (folder / name).unlink(),
    "without_a_user": lambda: without_a_user,
    "without_p": lambda: predictions(lambda found: found.drop_columns("p")),
}

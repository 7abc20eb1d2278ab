"""Submissions that are refused, each for its reason, and nothing of them is run."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from submissions import (
    ABOUT,
    PREDICTIONS,
    RESULTS,
    Change,
    about,
    cell,
    column,
    resum,
    table,
    without_a_user,
)

from srs_eval.algorithms.recurrent.weights import digests_of
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.submit.checking import Asked, check
from srs_eval.submit.problems import Problem, SubmissionError
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.writing import fingerprint_of


def added(content: str) -> Change:
    """Add lines to ``submission.yaml``."""
    return lambda folder: text(ABOUT, (folder / ABOUT).read_text("utf-8") + content)(folder)


def text(file: str, content: str) -> Change:
    return lambda folder: (folder / file).write_text(content, "utf-8")


def sums(begin: str, change: Callable[[Any], object]) -> Change:
    """Change sums [users, numbers] of which the name begins so."""
    return table(lambda columns: resum(columns, begin, change))


def predictions(change: Callable[[pa.Table], pa.Table]) -> Change:
    def changed(folder: Path) -> None:
        pq.write_table(change(pq.read_table(folder / PREDICTIONS)), folder / PREDICTIONS)

    return changed


def with_link(folder: Path) -> None:
    file = folder / RESULTS
    file.rename(folder.parent / "elsewhere")
    file.symlink_to(folder.parent / "elsewhere")


def without(kept: Callable[[str], bool]) -> Change:
    """Leave columns out."""

    def change(columns: dict[str, Any]) -> None:
        for name in [name for name in columns if not kept(name)]:
            del columns[name]

    return table(change)


def learned_from_them(folder: Path) -> None:
    source = SyntheticUsers(users=3, seed=5, size_scale=0.02, max_reviews=900)
    seen = [fingerprint_of(digests_of(source.read(user))) for user in (1, 2, 3)]
    about(pretrained_on={"description": "a set", "users": [each for each in seen if each]})(folder)


def too_low(columns: dict[str, Any]) -> None:
    """Log loss of 1.02 of the squared error, in all its places."""
    resum(columns, "ScoreSums", lambda sums: sums.__setitem__((..., 2), 1.02 * sums[:, 3]))
    columns["log_loss"] = [1.02 * brier for brier in columns["brier"]]


def all_lower(columns: dict[str, Any]) -> None:
    """Log loss and squared errors of nearly certain predictions, beside bins of others."""
    reviews = np.array(columns["reviews"])

    def change(sums: Any) -> None:
        sums[:, 3] = sums[:, 4] ** 2 / reviews
        sums[:, 2] = 3 * sums[:, 3] + 1e-3

    resum(columns, "ScoreSums", change)
    sums = columns["sums.ScoreSums()"].flatten().to_numpy().reshape(len(reviews), -1)
    columns["log_loss"] = (sums[:, 2] / reviews).tolist()
    columns["brier"] = (sums[:, 3] / reviews).tolist()


def ordered(columns: dict[str, Any]) -> None:
    """All reviews that were forgotten are above the threshold, and no others."""

    def change(sums: Any) -> None:
        sums[:, 0], sums[:, 1] = sums[:, 3] - sums[:, 2], 0

    resum(columns, "ThresholdSums", change)
    columns["auc"] = [0.99] * len(columns["auc"])


def missing_sum(columns: dict[str, Any]) -> None:
    sums = columns["sums.ScoreSums()"]
    values = pa.array([None, *sums.flatten().to_pylist()[1:]])
    columns["sums.ScoreSums()"] = pa.FixedSizeListArray.from_arrays(values, sums.type.list_size)


FACTS = {"user", "reviews", "rows", "auc"}
BAD: dict[str, tuple[str, Change]] = {
    # name: kind of a problem, change of the submission `avg`
    "a link": ("link", with_link),
    "a program": ("name", text("run.sh", "exit")),
    "a missing file": ("missing", lambda folder: (folder / RESULTS).unlink()),
    "a file of 2 GB": ("size", lambda folder: os.truncate(folder / RESULTS, 2_000_000_000)),
    "a large description": ("size", added("# " + "x" * 2_000_000)),
    "no keys": ("type", text(ABOUT, "- 1\n")),
    "a misspelt key": ("unknown", added("licenc: MIT\n")),
    "a key twice": ("repeated", added("licence: MIT\n")),
    "an alias": ("unreadable", added("x: &a [1]\ny: [*a, *a]\n")),
    "deep brackets": ("unreadable", added(f"x: {'[' * 500}{']' * 500}\n")),
    "very many values": ("unreadable", added(f"x: [{'1,' * 40_000}]\n")),
    "a tag of Python": ("unreadable", added("x: !!python/object/apply:os.abort []\n")),
    "a tag in options": ("unreadable", added("x: !!omap [{a: <b>}]\n")),
    "a number of 5,000 digits": ("unreadable", added(f"x: 0x{'F' * 5_000}\n")),
    "a number to the base of 60": ("unreadable", added("x: 1:30\n")),
    "a number without end": ("range", about(seed=10**400)),
    "NaN in the description": ("range", about(seconds_per_user=math.nan)),
    "no authors": ("gap", about(authors=[], description=None)),
    "a script in the title": ("text", about(model="<script>alert(1)</script>")),
    "a title that turns its direction": ("text", about(model="fsrs\u202e6")),
    "markup in an option": ("text", about(data__options__x=[["<script>"]])),
    "another version": ("version", about(protocol__version="2")),
    "another version of the data": ("version", about(data__version="3")),
    "another name of the data": ("version", about(data__name="revlogs")),
    "a protocol of others": ("version", about(protocol__options={"_target_": "evil.SrsBenchmark"})),
    "a protocol that cannot be built": ("code", about(protocol__options__x=1)),
    "a billion fits": ("code", about(protocol__options__base={"refits": 10**9})),
    "a billion users": ("users", about(data__options__users=10**9)),
    "options of no class": ("missing", about(data__options={"users": 3})),
    "no options": ("missing", about(protocol__options={})),
    "a name too long for a folder": (
        "name",
        about(
            protocol={"name": "p" * 120, "version": "v" * 120, "options": {"_target_": "x.Y"}},
            data__name="d" * 120,
            data__options={"_target_": "x.Y"},
        ),
    ),
    "fewer users than there are": ("users", about(data__users=2)),
    "fewer users read than scored": ("users", about(data__read={"users": 2, "reviews": 10**6})),
    "fewer reviews read than scored": ("reviews", about(data__read={"users": 3, "reviews": 5})),
    "a truth of reviews read": ("type", about(data__read={"users": 3, "reviews": True})),
    "users read without reviews": ("missing", about(data__read={"users": 3})),
    "other logs": ("rows", about(data__fingerprint="0" * 16)),
    "users who were learned from": ("overlap", learned_from_them),
    "no parquet": ("unreadable", text(RESULTS, "PAR1")),
    "too many columns": ("size", column(*(f"m{n}" for n in range(600)), of=0.5)),
    "a column that is no metric": ("unknown", column("../x", "log_loss_true", "sums.x", of=0.5)),
    "text for numbers": ("type", column("auc", of="high")),
    "names of a megabyte": ("text", column("user", of="x" * 1_000_000)),
    "markup in a user": ("text", table(lambda columns: columns.update(user=["<img>", "2", "3"]))),
    "texts for users that are numbers": (
        "users",
        table(lambda columns: columns.update(user=["1", "2", "3"])),
    ),
    "a user twice": ("repeated", cell("user", 2)),
    "a user left out": ("users", without_a_user),
    "a digest that is none": ("type", cell("rows", "../../etc/passwd")),
    "a digest of two megabytes": ("size", column("rows", of="0" * 2_000_000)),
    "no digest of rows": ("reviews", cell("rows", "")),
    "rows of other reviews": ("rows", cell("rows", "0" * 16)),
    "no reviews of a user": ("reviews", cell("reviews", 0)),
    "a billion reviews of a user": ("reviews", cell("reviews", 10**9)),
    "more reviews": ("reviews", cell("reviews", lambda n: n + 1)),
    "more fits that failed than fits": ("range", cell("fit.failed", 99)),
    "seconds below 0": ("range", cell("fit.seconds", -1.0)),
    "endless seconds": ("range", cell("fit.seconds", math.inf)),
    "Inf": ("range", cell("auc", math.inf)),
    "out of bounds": ("range", cell("auc", 1 + 1e-6)),
    "NaN in place of a bad score": ("range", cell("log_loss", math.nan)),
    "NaN of a metric with bounds": ("range", cell("rmse_bins", math.nan)),
    "a missing value": ("missing", cell("brier", None)),
    "a missing sum": ("missing", table(missing_sum)),
    "no log loss": ("missing", without(FACTS.__contains__)),
    "no sums": ("missing", without(lambda name: not name.startswith("sums."))),
    "a better loss": ("sums", cell("log_loss", lambda loss: loss * 0.99)),
    "impossible bins": ("sums", cell("rmse_bins", 0.99)),
    "sums that contradict each other": (
        "sums",
        sums("EqualBinSums", lambda wide: np.add(wide[0, 1:40:2], 1, out=wide[0, 1:40:2])),
    ),
    "sums that are infinite": ("range", sums("ScoreSums", lambda wide: wide[0].fill(np.inf))),
    "counts that are NaN": ("range", sums("Threshold", lambda wide: wide.fill(np.nan))),
    "fewer recalled reviews than the logs have": (
        "sums",
        sums("ScoreSums", lambda wide: np.subtract(wide[:, 1], 1, out=wide[:, 1])),
    ),
    "a log loss that no squared error has": ("sums", table(too_low)),
    "scores that no bins have": ("sums", table(all_lower)),
    "an area that no counts have": ("sums", table(ordered)),
    "counts of another model": (
        "sums",
        sums("Threshold", lambda wide: wide.__setitem__((0, 2), 1)),
    ),
    "scores that are not of the predictions": (
        "predictions",
        cell("rmse_bins", lambda score: score * 0.99),
    ),
    "predictions of another model": (
        "predictions",
        predictions(
            lambda t: t.set_column(t.schema.names.index("p"), "p", pa.array([0.5] * len(t)))
        ),
    ),
    "a column of predictions less": ("missing", predictions(lambda t: t.drop_columns("p"))),
    "markup in a user of predictions": (
        "text",
        predictions(lambda t: t.set_column(0, "user", pa.array(["<b>"] * len(t)))),
    ),
    "a column of predictions twice": (
        "repeated",
        predictions(lambda found: found.append_column("p", found.column("p"))),
    ),
    "predictions without scores": (
        "reviews",
        predictions(
            lambda t: pa.concat_tables([t, t.set_column(0, "user", pa.array([99] * len(t)))])
        ),
    ),
}


def in_words(folder: Path, problems: Iterable[Problem]) -> str:
    lines = [f"{each.kind}: {each}" for each in problems]
    text = "".join(f"{line}\n" for line in lines).replace(str(folder), "board").replace("\\", "/")
    text = re.sub(r"(\.\d{9})\d+", r"\1", text)  # as far as processors agree
    text = re.sub(r"\b2,000,\d{3} bytes", "2 MB", text)
    return re.sub(r"\((Arrow\w+): .*\)", r"(\1)", text)


def test_each_is_refused_for_its_reason_in_the_words_of_the_file(
    good: Path, tmp_path: Path, golden_text: Callable[[str, str], None]
) -> None:
    told, asked = [], Asked()
    for number, (name, (kind, change)) in enumerate(BAD.items()):
        board = Path(shutil.copytree(good, tmp_path / str(number)))
        change(board / "avg")
        found = check([board], asked).problems
        assert kind in [problem.kind for problem in found], (name, found)
        assert all(problem.file.parent.name != "constant" for problem in found), name
        told.append(f"{name}\n{in_words(board, found)}")
    golden_text("bad_submissions", "\n".join(told))


def test_every_problem_is_reported_at_once(board: Path) -> None:
    for name in ("a script in the title", "Inf", "no authors", "out of bounds"):
        BAD[name][1](board / "avg")
    about(licence=3)(board / "constant")
    with pytest.raises(SubmissionError) as error:
        read_leaderboard(board)
    assert sorted(each.kind for each in error.value.found) == ["range", "text", "type"]

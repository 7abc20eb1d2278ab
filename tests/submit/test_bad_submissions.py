"""Submissions that are refused, each for its reason, and nothing of them is run."""

import math
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize_scalar
from submissions import (
    ABOUT,
    PREDICTIONS,
    RESULTS,
    about,
    cell,
    column,
    table,
    text,
    without_a_user,
)

from srs_eval.algorithms.recurrent.weights import digests_of
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.evaluation.scoring import Scores
from srs_eval.metrics.bins import RmseBinsByP
from srs_eval.metrics.calibration import Ece, MeanBias
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.sketch import bare_predictions
from srs_eval.submit.checking import Asked, check
from srs_eval.submit.problems import SubmissionError
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.results_table import LOG_LOSS_PER_SQUARE, bound_problems
from srs_eval.submit.writing import fingerprint_of


def added(content):
    """Add lines to ``submission.yaml``."""
    return lambda folder: text(ABOUT, (folder / ABOUT).read_text("utf-8") + content)(folder)


def predictions(change):
    def changed(folder):
        pq.write_table(change(pq.read_table(folder / PREDICTIONS)), folder / PREDICTIONS)

    return changed


def learned_from_them(folder):
    source = SyntheticUsers(users=3, seed=5, size_scale=0.02, max_reviews=900)
    seen = [fingerprint_of(digests_of(source.read(user))) for user in (1, 2, 3)]
    about(pretrained_on={"description": "a set", "users": [each for each in seen if each]})(folder)


# Changes of the submission `avg`, by what is wrong then.
BAD = {
    "a link": lambda avg: (avg / RESULTS).symlink_to((avg / RESULTS).rename(avg.parent / "x")),
    "a program": text("run.sh", "exit"),
    "a missing file": lambda folder: (folder / RESULTS).unlink(),
    "a file of 2 GB": lambda folder: os.truncate(folder / RESULTS, 2_000_000_000),
    "a large description": added("# " + "x" * 2_000_000),
    "no keys": text(ABOUT, "- 1\n"),
    "a misspelt key": added("licenc: MIT\n"),
    "a key twice": added("licence: MIT\n"),
    "a tag of Python": added("x: !!python/object/apply:os.abort []\n"),
    "a number without end": about(seed=10**400),
    "NaN in the description": about(seconds_per_user=math.nan),
    "no authors": about(authors=[], description=None),
    "a script in the title": about(model="<script>alert(1)</script>"),
    "a title that turns its direction": about(model="fsrs\u202e6"),
    "markup in an option": about(data__options__x=[["<script>"]]),
    "another version": about(protocol__version="2"),
    "another name of the data": about(data__name="revlogs"),
    "a protocol of others": about(protocol__options={"_target_": "evil.SrsBenchmark"}),
    "a protocol that cannot be built": about(protocol__options__x=1),
    "a billion fits": about(protocol__options__base={"refits": 10**9}),
    "a billion users": about(data__options__users=10**9),
    "options of no class": about(data__options={"users": 3}),
    "no options": about(protocol__options={}),
    "a name too long for a folder": about(
        protocol={"name": "p" * 120, "version": "v" * 120, "options": {"_target_": "x.Y"}},
        data__name="d" * 120,
        data__options={"_target_": "x.Y"},
    ),
    "fewer users than there are": about(data__users=2),
    "fewer users read than scored": about(data__read={"users": 2, "reviews": 10**6}),
    "fewer reviews read than scored": about(data__read={"users": 3, "reviews": 5}),
    "users read without reviews": about(data__read={"users": 3}),
    "other logs": about(data__fingerprint="0" * 16),
    "users who were learned from": learned_from_them,
    "no parquet": text(RESULTS, "PAR1"),
    "too many columns": column(*(f"m{n}" for n in range(600)), of=0.5),
    "a column that is no metric": column("../x", "log_loss_true", of=0.5),
    "text for numbers": column("auc", of="high"),
    "names of a megabyte": column("user", of="x" * 1_000_000),
    "markup in a user": table(lambda columns: columns.update(user=["<img>", "2", "3"])),
    "texts for users that are numbers": table(lambda of: of.update(user=["1", "2", "3"])),
    "a user twice": cell("user", 2),
    "a user left out": without_a_user,
    "a digest that is none": cell("rows", "../../etc/passwd"),
    "no digest of rows": cell("rows", ""),
    "rows of other reviews": cell("rows", "0" * 16),
    "no reviews of a user": cell("reviews", 0),
    "more reviews": cell("reviews", lambda n: n + 1),
    "more fits that failed than fits": cell("fit.failed", 99),
    "seconds below 0": cell("fit.seconds", -1.0),
    "endless seconds": cell("fit.seconds", math.inf),
    "Inf": cell("auc", math.inf),
    "out of bounds": cell("auc", 1 + 1e-6),
    "NaN in place of a bad score": cell("log_loss", math.nan),
    "NaN of a metric with bounds": cell("rmse_bins", math.nan),
    "a missing value": cell("brier", None),
    "no log loss": table(lambda of: of.pop("log_loss")),
    "a better loss": cell("log_loss", lambda loss: loss * 0.99),
    "a loss of no squared errors": table(
        lambda of: of.update(log_loss=[2.4 * each for each in of["brier"]])
    ),
    "squared errors of no bias": cell("mbe", 0.4),
    "impossible bins": cell("rmse_bins", 0.99),
    "too well calibrated": cell("ece", 0.02),
    "scores of no predictions": cell("rmse_bins", lambda score: score * 0.99),
    "predictions of another model": predictions(
        lambda t: t.drop_columns("p").append_column("p", pa.array([0.5] * len(t)))
    ),
    "a column of predictions less": predictions(lambda t: t.drop_columns("p")),
    "a column of predictions twice": predictions(
        lambda found: found.append_column("p", found.column("p"))
    ),
    "predictions without scores": predictions(lambda t: pa.concat_tables([t, t])),
}


def in_words(folder, problems):
    lines = [f"{each.kind}: {each}" for each in problems]
    text = "".join(f"{line}\n" for line in lines).replace(str(folder), "board").replace("\\", "/")
    text = re.sub(r"(\.\d{9})\d+", r"\1", text)  # as far as processors agree
    text = re.sub(r"\b2,000,\d{3} bytes", "2 MB", text)
    return re.sub(r"\((Arrow\w+): .*\)", r"(\1)", text)


def test_each_is_refused_for_its_reason_in_the_words_of_the_file(good, tmp_path, golden_text):
    told, asked = [], Asked()
    for number, (name, change) in enumerate(BAD.items()):
        board = Path(shutil.copytree(good, tmp_path / str(number)))
        change(board / "avg")
        found = check([board], asked).problems
        assert found, name
        assert all(problem.file.parent.name != "constant" for problem in found), name
        told.append(f"{name}\n{in_words(board, found)}")
    golden_text("bad_submissions", "\n".join(told))


def test_every_problem_is_reported_at_once(board):
    for name in ("a script in the title", "Inf", "no authors", "out of bounds"):
        BAD[name](board / "avg")
    about(licence=3)(board / "constant")
    with pytest.raises(SubmissionError) as error:
        read_leaderboard(board)
    assert sorted(each.kind for each in error.value.found) == ["form", "form", "range"]


METRICS = (LogLoss(), Brier(), MeanBias(), Ece(), RmseBinsByP())


def problems_of(names, rows):
    """Check the scores of users, a row of each, by what they say of each other."""
    who, digests = tuple(range(len(rows))), ("0" * 16,) * len(rows)
    scores = Scores(who, np.ones(len(rows), np.int64), digests, tuple(names), np.array(rows))
    return [*bound_problems(Path("x"), scores)]


def test_no_predictions_pass_the_bounds_of_scores():
    rng, panel, users = np.random.default_rng(7), Panel(METRICS, pooled=False), []
    for n in (1, 2, 7, 50, 3_000) * 3:
        far = 10.0 ** rng.uniform(-18, 0, n)  # nearly 0 or 1
        alike = np.full(n, rng.choice([0.0, 0.3, 0.715332, 0.9, 1.0]))
        for p in (rng.random(n), 1 - far, far, rng.beta(8, 2, n).astype(np.float32), alike):
            for recalled in (
                rng.random(n) < p,
                rng.random(n) < rng.random(),
                np.zeros(n, np.bool_),
            ):
                users.append(panel.score(bare_predictions(p, recalled)))
    assert problems_of([*users[0]], [[*each.values()] for each in users]) == []


def test_bounds_of_scores_are_reached():
    at = minimize_scalar(lambda x: -math.log1p(-x) / x**2, bounds=(0.1, 0.99), method="bounded")
    assert pytest.approx(at.fun, abs=1e-8) == LOG_LOSS_PER_SQUARE
    bias, loss = 0.3, -math.log(0.7)
    names, least = ("log_loss", "brier", "mbe", "ece", "rmse_bins"), [loss, 0.09, -bias, bias, bias]
    for number, name in enumerate(names):
        for step, refused in ((-1e-5, {name} - {"mbe"}), (1e-8, set()), (-1e-8, set())):
            row = [value + step * (number == at) for at, value in enumerate(least)]
            found = problems_of(names, [row])
            assert refused <= {each.where.split()[1].strip(",") for each in found}
            assert refused or name == "mbe" or not found

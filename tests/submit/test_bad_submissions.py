"""Submissions that are refused, each for its reason, and nothing of them is run."""

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from submissions import CHANGES, about, cell

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


def learned_from_them(folder):
    source = SyntheticUsers(users=3, seed=5, size_scale=0.02, max_reviews=900)
    seen = [fingerprint_of(digests_of(source.read(user))) for user in (1, 2, 3)]
    about(pretrained_on={"description": "a set", "users": [each for each in seen if each]})(folder)


def in_words(folder, problems):
    lines = [f"{each.kind}: {each}" for each in problems]
    text = "".join(f"{line}\n" for line in lines).replace(str(folder), "board").replace("\\", "/")
    text = re.sub(r"(\.\d{9})\d+", r"\1", text)  # as far as processors agree
    text = re.sub(r"\b2,000,\d{3} bytes", "2 MB", text)
    return re.sub(r"\((Arrow\w+): .*\)", r"(\1)", text)


def test_each_is_refused_for_its_reason_in_the_words_of_the_file(good, tmp_path, transcript):
    asked, changes = Asked(), {**CHANGES, "learned_from_them": lambda: learned_from_them}

    def told_by(*words):
        board = Path(shutil.copytree(good, tmp_path / str(len(list(tmp_path.iterdir())))))
        for change, *given in (part.split() for part in " ".join(words).split(" | ")):
            changes[change](*given)(board / "avg")
        found = check([board], asked).problems
        assert found
        assert all(problem.file.parent.name != "constant" for problem in found)
        return in_words(board, found)

    transcript("bad_submissions", told_by)


def test_every_problem_is_reported_at_once(board):
    about(model="<script>alert(1)</script>", authors=[], description=None)(board / "avg")
    cell("auc", 1 + 1e-6)(board / "avg")
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

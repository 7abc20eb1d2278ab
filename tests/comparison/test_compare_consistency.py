"""What is printed of hundreds of random comparisons: no cell or sentence contradicts another."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from tables_back import tables_of_latex

from srs_eval.comparison.compare import compare
from srs_eval.comparison.report.files import latex
from srs_eval.comparison.report.words import headline
from srs_eval.results.run import TIMES, Run

NAMES = ("ann", "bob", "cleo", "dan", "eve", "fay", "gus")
SAID = {
    "worse": "Worse on average: ",
    "not significantly different": "Not significantly different on average: ",
    "identical": "The same scores: ",
    "better": "Better on average, but not eligible for best: ",
    "unknown": "Without a test: ",
}


def random_comparison(seed):
    """Compare up to seven random models: some are twins, fail for some, or see the truth."""
    rng = np.random.default_rng(seed)
    users, models = int(rng.integers(2, 45)), int(rng.integers(2, len(NAMES) + 1))
    scores = rng.uniform(0.2, 0.6, (users, 1)) + rng.normal(0, 0.02, models)
    scores = scores + rng.normal(0, rng.uniform(0, 0.03, models), (users, models))
    scores += rng.gamma(0.05, 0.5, (users, models)) * rng.integers(0, 2, models)
    if rng.random() < 0.3:
        scores[:, rng.integers(models)] = scores[:, rng.integers(models)]
    if rng.random() < 0.3:
        scores = np.round(scores, 1)
    if rng.random() < 0.2:
        scores[:, rng.integers(models)] += 1e-6
    if rng.random() < 0.2:
        scores[rng.integers(users), rng.integers(models)] = math.nan
    sizes = rng.integers(10, 9_000, users)
    runs = tuple(
        Run(
            name=name,
            place=Path("nowhere") / name,
            rows=dict.fromkeys(range(users), "digest"),
            reviews=dict(enumerate(sizes.tolist())),
            scores={"log_loss": column},
            summary={
                "data": "made up",
                "sees_truth": bool(rng.random() < 0.15),
                "when": str(rng.choice(TIMES[: 1 + seed % 4])),
            },
        )
        for name, column in zip(NAMES, scores.T, strict=False)
    )
    return compare(runs, baseline=NAMES[int(rng.integers(models))])


def printed_bounds(cell):
    return [float(bound) for bound in re.findall(r"-?\d+\.\d+(?:e-\d+)?", cell)]


def check_row(cells, null):
    """Check the last four cells of a row: interval, level, p, and verdict."""
    shown, _, p, verdict = cells[-4:]
    if verdict in ("best", "leads", "unknown"):
        assert p in ("", "-")
        return
    differs = verdict in ("better", "worse")
    assert (p.startswith("<") or float(p) < 0.01) == differs
    if shown == "-":
        return
    lo, hi = printed_bounds(shown)
    if differs:
        assert lo > null or hi < null
    else:
        assert lo <= null <= hi


def sentences_by_leader(verdict, said):
    """What the headline says of each leader and the runs compared with it."""
    leaders = [leader for leader in verdict.leaderboard.groups if leader >= 0]
    parts = re.split(r"Predicted [a-z' ]+: ", said)
    return dict(zip(leaders, parts[-len(leaders) :], strict=True))


BLOCKS = [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 5))]


@pytest.mark.parametrize("block", BLOCKS)
def test_no_cell_or_sentence_contradicts_another(block):
    for seed in range(30 * block, 30 * block + 30):
        verdict = random_comparison(seed)
        text = latex(verdict)
        assert not re.search(r"\b(nan|inf)\b", text, re.IGNORECASE)
        tables = tables_of_latex(text)
        for key, (_, *rows) in tables.items():
            if key.startswith(("leaderboard_", "against_")):
                for row in rows:
                    check_row(row, 50.0 if "majority" in key else 0.0)
        bold = re.findall(r"\\textbf\{(\w+)", text.partition("\\label{tab:leaderboard_reviews")[0])
        said = headline(verdict)
        groups = sentences_by_leader(verdict, said)
        numbers = {run.name: number for number, run in enumerate(verdict.runs)}
        for name, *cells in tables["leaderboard_users"][1:]:
            plain, answer = name.split()[0], cells[-1]
            assert (plain in bold) == (
                answer in ("best", "leads", "identical", "not significantly different")
            )
            if plain not in numbers:
                continue  # a duplicate
            sentence = groups.get(verdict.leaderboard.leaders[numbers[plain]], SAID["unknown"])
            if answer in SAID:
                group = sentence.partition(SAID[answer])[2].partition(". ")[0]
                assert re.search(rf"\b{plain}\b", group) or sentence == SAID[answer]
            else:
                word = "predicts best" if answer == "best" else "leads|alone"
                assert re.match(f"{plain} ({word})", sentence)
        for sentence in groups.values():
            if "predicts best" in sentence and all(run.is_eligible for run in verdict.runs):
                assert not any(words in sentence for words in list(SAID.values())[1:])

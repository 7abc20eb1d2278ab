"""Whole runs against stored numbers, and against a few lines of arithmetic of our own."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import QUIET, columns_of, run_here, summary_of

sys.path.append(str(Path(__file__).parent / "golden"))
import make_quick_run as quick

# Trained by an optimiser, whose last digits depend on the processor.
TRAINED = {"hlr"}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden") / "sweep"
    assert run_here([*quick.WORDS, f"hydra.sweep.dir={folder}"]) == 0
    return folder


def test_no_number_of_the_quick_run_has_moved(sweep):
    every, found = json.loads(quick.FILE.read_text(encoding="utf-8")), quick.numbers(sweep)
    assert [*every] == [*found] == [*quick.ALGORITHMS]
    for algo in every:
        near = 1e-6 if algo in TRAINED else 1e-9
        expected, numbers = (
            {name: np.nan if number is None else number for name, number in of[algo].items()}
            for of in (every, found)
        )
        assert numbers == pytest.approx(expected, abs=near, rel=0, nan_ok=True), algo


@pytest.mark.parametrize("job", ["0_avg", "4_hlr", "6_fsrs6"])
def test_summaries_follow_from_the_saved_predictions_and_scores(sweep, job):
    rows = columns_of(sweep / job / "predictions.parquet")
    assert len(set(zip(rows["user"], rows["row"], strict=True))) == len(rows["row"])
    folders = [path.parent for path in sweep.glob("*/summary.json")]
    assert len({summary_of(folder)["rows_fingerprint"] for folder in folders}) == 1
    user, p, recalled = (np.array(rows[name]) for name in ("user", "p", "recalled"))
    loss = -np.log(np.where(recalled, p, 1 - p))
    scores, metrics = columns_of(sweep / job / "scores.parquet"), summary_of(sweep / job)["metrics"]
    of_users = [loss[user == name].mean() for name in scores["user"]]
    assert scores["log_loss"] == pytest.approx(of_users, abs=1e-12)
    assert loss.mean() == pytest.approx(metrics["log_loss"]["pooled"], abs=1e-12)
    assert set(scores) - {"user", "rows", "reviews"} == set(metrics)
    reviews = np.array(scores["reviews"])
    for name, metric in metrics.items():
        score = np.array(scores[name], dtype=float)
        defined = ~np.isnan(score)
        assert metric["n_users"] == defined.sum()
        if defined.any():
            assert metric["mean_users"] == pytest.approx(score[defined].mean(), abs=1e-12)
            weighted = np.average(score[defined], weights=reviews[defined])
            assert metric["mean_reviews"] == pytest.approx(weighted, abs=1e-12)


def test_a_real_log_gives_the_published_numbers(real_logs, here, tmp_path):
    file = real_logs / "py-fsrs-josh" / "review_logs_josh.csv"
    words = ["data=py_fsrs", f"data.path={file}", "data.day_start_hour=10"]
    done = here("-m", "algo=avg,sm2,fsrs45_default,oracle", *words, *QUIET, "hydra.sweep.dir=out")
    assert done.status == 0, done.text
    published = {"0_avg": 0.505026, "1_sm2": 0.510758, "2_fsrs45_default": 0.463150}
    for job, log_loss in published.items():
        summary = summary_of(tmp_path / "out" / job)
        assert (summary["users"], summary["reviews"]) == (1, 5020)
        assert summary["interval_over"] == "cards and days"
        assert round(summary["metrics"]["log_loss"]["mean_users"], 6) == log_loss
    average = summary_of(tmp_path / "out" / "0_avg")["metrics"]
    assert round(average["rmse_bins"]["mean_users"], 6) == 0.117240
    assert "has no true probabilities" in done.out

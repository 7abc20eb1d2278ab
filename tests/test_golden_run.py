"""Whole runs against stored numbers, and against a few lines of arithmetic of our own."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import QUIET, run_here, summary_of

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

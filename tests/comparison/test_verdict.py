"""The numbers of a comparison, and that nothing is made of what says nothing."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from saved import load_predictions

from srs_eval.comparison.compare import compare
from srs_eval.metrics.proper import LogLoss
from srs_eval.results.files import SUMMARY, read_json, write_json
from srs_eval.results.run import load_run
from srs_eval.stats.estimate import clustered_mean, mean_of_users
from srs_eval.stats.paired import effective_users, paired_mean, paired_signs, user_weights


def judged(*folders, **options):
    return compare([load_run(folder) for folder in folders], **options)


@pytest.fixture
def three(make_run):
    return make_run("sharp"), make_run("blurred", blur=1.0), make_run("shifted", shift=-1.5)


def test_estimates_are_those_of_the_saved_scores_and_of_pairs_by_themselves(three):
    verdict = judged(*three)
    saved = [pd.read_parquet(folder / "scores.parquet") for folder in three]
    reviews, losses = saved[0].reviews.to_numpy(), [each.log_loss.to_numpy() for each in saved]
    for board in verdict.leaderboards:
        weights = user_weights(reviews, board.weighting)
        assert board.effective == pytest.approx(effective_users(weights))
        for number, own in enumerate(losses):
            found = board.mean[number], board.lo[number], board.hi[number]
            estimate = mean_of_users(own, weights)
            expected = estimate.mean, max(estimate.interval()[0], 0), estimate.interval()[1]
            assert found == pytest.approx(expected)
        expected = paired_mean(losses[1], losses[0], weights)
        assert (board.pairs[1][0], board.pairs[0][1]) == (expected, expected.mirrored())
        assert board.to_baseline[1].counts == paired_signs(losses[1], losses[0])
        for one in board.to_best[1:]:
            for answer, estimate in ((one.average, one.difference), (one.users, one.counts)):
                assert 0.99 <= answer.level < 1
                assert (answer.lo, answer.hi) == estimate.interval(answer.level)


def test_runs_of_earlier_releases_predict_when_that_can_be_derived(make_run):
    folder = make_run("a", [1])
    summary = read_json(folder / SUMMARY)
    del summary["when"]
    for written, when in (
        ({"when": "day_before"}, "day_before"),
        ({"when": "imm"}, "at_review"),
        ({"when": "at some time"}, "unknown"),
        ({"online": False}, "previous_review"),
        ({"online": True}, "unknown"),
        ({"online": None}, "unknown"),
        ({"online": False, "sees_truth": True}, "at_review"),
    ):
        write_json(folder / SUMMARY, summary | written)
        assert load_run(folder).when == when, written


def test_one_user_is_compared_review_by_review(make_run):
    folders = [make_run("a", [7]), make_run("b", [7], shift=-4.0)]
    verdict = judged(*folders)
    (board,) = verdict.leaderboards
    mine, other = map(load_predictions, folders)
    gaps = LogLoss().per_review(other) - LogLoss().per_review(mine)
    expected = clustered_mean(gaps, mine.card, mine.day)
    assert board.pairs[1][0].interval() == pytest.approx(expected.interval())
    assert board.pairs[1][0].p_value == pytest.approx(expected.p_value)
    assert [standing.average.verdict for standing in board.to_best] == ["best", "worse"]
    assert verdict.strata is not None
    assert verdict.strata.over == "cards"


def test_a_baseline_is_found_by_its_label_or_any_path_to_its_folder(
    three, make_run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    relative = [folder.relative_to(tmp_path) for folder in three]
    asked = f"{three[1]}", f"{relative[1]}/", f"./{relative[1]}", f"{three[1]}/../1_blurred"
    for folders in (three, relative):
        assert {judged(*folders, baseline=name).baseline for name in asked} == {1}
    monkeypatch.chdir(three[2])
    assert judged(*three[:2], Path(), baseline="2_shifted").baseline == 2
    refitted = make_run("refitted", shift=0.1, protocol="srs_benchmark_refit", algo="x")
    for name in ("refitted", "x", "refitted (srs_benchmark_refit)"):
        assert judged(*three, refitted, baseline=name).baseline == 3


def test_what_depends_on_the_training_rows_is_compared_under_one_protocol_only(make_run):
    folders = [make_run("a"), make_run("b", protocol="srs_benchmark_refit"), make_run("c", blur=1)]
    for number, folder in enumerate(folders):
        file = folder / "scores.parquet"
        scored = pd.read_parquet(file).assign(normalized_entropy_train=0.9 + 0.01 * number)
        scored.to_parquet(file)
    assert "normalized_entropy_train" not in judged(*folders).beside
    alike = judged(folders[0], folders[2], metric="normalized_entropy_train")
    assert alike.leaderboard.mean.tolist() == pytest.approx([0.9, 0.92])

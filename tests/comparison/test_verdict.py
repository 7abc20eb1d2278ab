"""The numbers of a comparison, and that nothing is made of what says nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from saved import load_predictions
from scipy.stats import rankdata

from srs_eval.comparison.compare import compare
from srs_eval.comparison.report.tables import leaderboard, tables
from srs_eval.comparison.report.words import headline
from srs_eval.errors import ConfigError
from srs_eval.metrics.proper import LogLoss
from srs_eval.results.files import SUMMARY, read_json, write_json
from srs_eval.results.run import load_run
from srs_eval.stats.estimate import clustered_mean, mean_of_users
from srs_eval.stats.paired import effective_users, paired_mean, paired_signs, user_weights


def judged(*folders, **options):
    return compare([load_run(folder) for folder in folders], **options)


def on_average(board):
    return [standing.average.verdict for standing in board.to_best]


@pytest.fixture
def three(make_run):
    return make_run("sharp"), make_run("blurred", blur=1.0), make_run("shifted", shift=-1.5)


def test_means_and_intervals_are_those_of_the_saved_scores(three):
    verdict = judged(*three)
    for number, folder in enumerate(three):
        scores = pq.read_table(folder / "scores.parquet")
        losses = scores["log_loss"].to_numpy()
        assert verdict.leaderboard.mean[number] == pytest.approx(losses.mean())
        found = verdict.leaderboard.lo[number], verdict.leaderboard.hi[number]
        assert found == pytest.approx(mean_of_users(losses).interval())
        reviews = scores["reviews"].to_numpy()
        assert verdict.leaderboards[1].mean[number] == pytest.approx(
            np.average(losses, weights=reviews)
        )
        by_log = np.average(losses, weights=np.log(reviews))
        assert verdict.leaderboards[2].mean[number] == pytest.approx(by_log)


@pytest.mark.parametrize("weighting", ["users", "reviews", "log_reviews"])
def test_differences_are_those_of_comparing_two_by_themselves(three, weighting):
    verdict = judged(*three)
    (board,) = [board for board in verdict.leaderboards if board.weighting == weighting]
    reviews = verdict.paired.reviews
    weights = user_weights(reviews, weighting)
    second, first = verdict.scores[:, 1], verdict.scores[:, 0]
    expected = paired_mean(second, first, weights)
    assert board.pairs[1][0] == expected
    assert board.pairs[0][1] == expected.mirrored()
    assert board.effective == pytest.approx(effective_users(weights))
    assert board.to_baseline[1].counts == paired_signs(second, first)
    caption = leaderboard(verdict, board).caption
    assert ("users of equal weight" in caption) == (weighting != "users")
    assert weighting == "users" or f"as precise as {board.effective:,.1f} users" in caption


def test_intervals_are_of_the_level_that_is_stated(three):
    _, *others = judged(*three).leaderboard.to_best
    for standing in others:
        pairs = ((standing.average, standing.difference), (standing.users, standing.counts))
        for answer, estimate in pairs:
            assert 0.99 <= answer.level < 1
            assert (answer.lo, answer.hi) == estimate.interval(answer.level)


def test_majorities_are_tabulated_once_and_of_several_users_alone(three, make_run):
    def majorities(verdict):
        return [each.key for each in tables(verdict) if "board_majority" in each.key]

    assert len(majorities(judged(*three))) == 1
    assert majorities(judged(three[0])) == []
    assert majorities(judged(make_run("a", [7]), make_run("b", [7], shift=-4.0))) == []


def test_users_who_differ_most_are_listed(three):
    verdict = judged(*three, baseline="blurred")
    gaps = verdict.scores[:, 0] - verdict.scores[:, 1]
    gains = [verdict.paired.users[n] for n in np.argsort(gaps)[:5] if gaps[n] < 0]
    assert [user for user, _ in verdict.extremes[0].gains] == gains


def test_ranks_are_those_of_scipy_and_shares_add_up(three):
    verdict = judged(*three)
    expected = rankdata(verdict.scores, axis=1).mean(axis=0)
    np.testing.assert_allclose(verdict.mean_ranks, expected)
    np.testing.assert_allclose(verdict.superiority + verdict.superiority.T, 1)


def test_users_without_a_number_are_left_out_of_all_and_counted(make_run):
    folders = [make_run(name, blur=blur, only_recalled=[3]) for name, blur in (("a", 0), ("b", 1))]
    verdict = judged(*folders, metric="auc")
    assert verdict.leaderboard.n_users == 11
    assert "auc is not defined for 1 of 12 users" in verdict.notes[0]
    assert verdict.leaderboard.leaders == (0, 0)  # higher is better
    assert verdict.leaderboard.sign == -1
    assert judged(*folders).leaderboard.n_users == 12


def test_a_run_without_the_metric_does_not_spoil_the_others(make_run):
    with_it, other, without = (make_run(name, blur=0.8 * n) for n, name in enumerate("abc"))
    table = pq.read_table(without / "scores.parquet").drop_columns(["log_loss"])
    pq.write_table(table, without / "scores.parquet")
    verdict = judged(with_it, other, without)
    assert verdict.leaderboard.n_users == 12
    assert on_average(verdict.leaderboard)[1:] == ["worse", "unknown"]
    assert verdict.order[-1] == 2


def test_what_sees_the_truth_is_shown_but_never_called_the_best(make_run):
    oracle = make_run("oracle", sees_truth=True, when="at_review")
    close = make_run("close", blur=1.0, when="at_review")
    plain = make_run("plain", blur=1.0)
    verdict = judged(oracle, close, plain)
    assert [verdict.runs[n].name for n in verdict.order] == ["plain", "oracle", "close"]
    assert verdict.leaderboard.leaders == (1, 1, 2)
    assert on_average(verdict.leaderboard) == ["better", "leads", "leads"]
    assert [run.marked for run in verdict.runs] == ["oracle †", "close", "plain"]
    assert judged(oracle).leaderboard.leaders == (0,)  # nothing else to compare


def test_what_may_know_its_test_rows_is_marked_and_never_called_the_best(make_run):
    close, current, plain = (
        make_run("close", blur=1.0),
        make_run("current", in_sample=True),
        make_run("plain", blur=1.5),
    )
    verdict = judged(close, current, plain)
    place = [run.name for run in verdict.runs].index("current")
    assert verdict.runs[place].marked == "current ‡"
    assert not verdict.runs[place].is_eligible
    assert {run.name for run in verdict.leaders.values()} == {"close"}
    assert on_average(verdict.leaderboard)[place] == "better"


def test_where_no_model_is_eligible_none_is_called_the_best(make_run):
    current, other = make_run("current", in_sample=True), make_run("other", in_sample=True, blur=3)
    verdict = judged(current, other)
    assert on_average(verdict.leaderboard) == ["leads", "worse"]
    assert "best of" not in headline(verdict)
    assert "the eligible models" not in headline(verdict)
    assert headline(verdict).startswith("current leads")


def test_a_leader_is_named_for_each_time_and_none_across(make_run):
    runs = [
        make_run("curve", blur=0.6, when="previous_review"),
        make_run("other", blur=1.0, when="previous_review"),
        make_run("evening", blur=0.4, when="day_before"),
        make_run("session", when="at_review"),
        make_run("old", when="unknown"),
    ]
    verdict = judged(*runs)
    assert {when: run.name for when, run in verdict.leaders.items()} == {
        "previous_review": "curve",
        "day_before": "evening",
        "at_review": "session",
        "unknown": "old",
    }
    assert verdict.times == tuple(verdict.leaders)
    assert [verdict.runs[n].name for n in verdict.order] == [
        *("curve", "other", "evening", "session", "old"),
    ]
    alone = judged(*runs[:2])
    assert verdict.leaderboard.to_best[:2] == alone.leaderboard.to_best
    assert verdict.mean_ranks.tolist() == [*alone.mean_ranks.tolist(), 1, 1, 1]


@pytest.mark.parametrize(
    ("written", "when"),
    [
        ({"when": "day_before"}, "day_before"),
        ({"when": "imm"}, "at_review"),
        ({"when": "at some time"}, "unknown"),
        ({"online": False}, "previous_review"),
        ({"online": True}, "unknown"),
        ({"online": None}, "unknown"),
        ({"online": False, "sees_truth": True}, "at_review"),
    ],
)
def test_runs_of_earlier_releases_predict_when_that_can_be_derived(make_run, written, when):
    folder = make_run("a")
    summary = read_json(folder / SUMMARY)
    del summary["when"]
    write_json(folder / SUMMARY, summary | written)
    assert load_run(folder).when == when


def test_one_user_is_compared_review_by_review(make_run):
    folders = [make_run("a", [7]), make_run("b", [7], shift=-4.0)]
    verdict = judged(*folders)
    (board,) = verdict.leaderboards
    assert (board.lo[0], board.hi[0]) == (0.1, 0.9)  # of the summary
    mine, other = (load_predictions(folder) for folder in folders[:2])
    gaps = LogLoss().per_review(other) - LogLoss().per_review(mine)
    expected = clustered_mean(gaps, mine.card, mine.day)
    assert board.pairs[1][0].interval() == pytest.approx(expected.interval())
    assert board.pairs[1][0].p_value == pytest.approx(expected.p_value)
    assert on_average(board) == ["best", "worse"]
    assert verdict.strata is not None
    assert verdict.strata.over == "cards"
    of_auc = judged(*folders, metric="auc")
    assert np.isnan(of_auc.leaderboard.pairs[1][0].p_value)
    assert on_average(of_auc.leaderboard)[1] == "unknown"


def test_a_baseline_may_be_given_by_any_path_to_its_folder(three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = [folder.relative_to(tmp_path) for folder in three]
    for folders in (three, relative):
        for asked in (
            f"{three[1]}",
            f"{relative[1]}/",
            f"./{relative[1]}",
            f"{three[1]}/../1_blurred",
        ):
            assert judged(*folders, baseline=asked).baseline == 1
    monkeypatch.chdir(three[2])
    assert judged(*three[:2], Path(), baseline="2_shifted").baseline == 2


def test_a_run_named_with_its_protocol_is_found_without_it(make_run):
    one, other = make_run("a"), make_run("b", blur=1.0, protocol="srs_benchmark_refit", algo="x")
    verdict = judged(one, other, baseline="b")
    assert verdict.runs[verdict.baseline].name == "b (srs_benchmark_refit)"


def test_what_depends_on_the_training_rows_is_not_compared_under_several_protocols(make_run):
    folders = [make_run("a"), make_run("b", protocol="srs_benchmark_refit"), make_run("c", blur=1)]
    for number, folder in enumerate(folders):
        scored = pq.read_table(folder / "scores.parquet")
        rates = pa.array(np.full(len(scored), 0.9 + 0.01 * number))
        table = scored.append_column("normalized_entropy_train", rates)
        pq.write_table(table, folder / "scores.parquet")
    with pytest.raises(ConfigError, match="under each of srs_benchmark, srs_benchmark_refit; "):
        judged(*folders, metric="normalized_entropy_train")
    assert "normalized_entropy_train" not in judged(*folders).beside
    alike = judged(folders[0], folders[2], metric="normalized_entropy_train")
    assert alike.leaderboard.mean.tolist() == pytest.approx([0.9, 0.92])

"""The leaderboards at the end of a sweep are views of the comparison of its runs."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from srs_eval.comparison.compare import compare
from srs_eval.comparison.report.files import terminal_text
from srs_eval.comparison.report.sweep import compare_groups, sweep_texts
from srs_eval.results.run import load_run


def groups(*folders):
    return compare_groups([load_run(folder) for folder in folders])


def names(verdict):
    return [verdict.runs[number].name for number in verdict.order]


def drop(folder, *metrics):
    table = pq.read_table(folder / "scores.parquet").drop_columns(list(metrics))
    pq.write_table(table, folder / "scores.parquet")


def test_a_leaderboard_is_that_of_the_comparison(make_run):
    folders = [make_run(name, blur=blur) for name, blur in (("b", 1), ("a", 0), ("c", 0.5))]
    verdict = compare([load_run(folder) for folder in folders])
    (text,) = sweep_texts(folders)
    assert text == terminal_text(verdict, of_sweep=True)
    rows = text.partition("\n---")[2].splitlines()[1:4]
    assert [row.split()[0] for row in rows] == names(verdict) == ["a", "c", "b"]
    for row, model in zip(rows, verdict.order, strict=True):
        assert f"{verdict.leaderboard.mean[model]:.4f}" in row
    assert max(map(len, text.partition("\n---")[2].splitlines())) <= 100


def test_predictions_are_not_read_for_several_users(make_run):
    folders = [make_run(name, blur=blur) for name, blur in (("a", 0), ("b", 1))]
    for folder in folders:
        (folder / "predictions.parquet").write_bytes(b"damaged")
    assert len(sweep_texts(folders)) == 1


@pytest.mark.parametrize("users", [(1,), (1, 2, 3)])
def test_a_run_and_itself_are_identical(make_run, users):
    (verdict,) = groups(make_run("a", users, folder="0_a"), make_run("a", users, folder="1_a"))
    assert names(verdict) == ["a (0_a)"]
    assert [one.run.name for one in verdict.paired.duplicates] == ["a (1_a)"]


def test_runs_on_different_reviews_or_data_do_not_share_a_leaderboard(make_run):
    users = [1, 2]
    folders = (
        make_run("a", users),
        make_run("b", users, other_reviews=users),
        make_run("c", users, blur=1),
        make_run("d", users, blur=1, data="anki"),
    )
    assert [names(verdict) for verdict in groups(*folders)] == [["a", "c"], ["b"], ["d"]]


def test_runs_are_compared_on_the_users_that_all_of_them_have(make_run):
    folders = make_run("a", [1, 2, 3]), make_run("b", [1, 2, 3], blur=1, failed=[2])
    (verdict,) = groups(*folders)
    assert verdict.users == (1, 3)
    scores = load_run(folders[0]).values("log_loss", [1, 3])
    assert verdict.leaderboard.mean[0] == scores.mean()
    assert "2 users of 3" in verdict.notes[0]


def test_runs_that_share_users_in_pairs_only_are_all_shown(make_run):
    folders = [
        make_run(name, users, blur=users[0] + 0.3 * users[1])
        for name, users in (("a", (1, 2)), ("b", (2, 3)), ("c", (1, 3)))
    ]
    assert sorted(name for verdict in groups(*folders) for name in names(verdict)) == list("abc")


def test_a_run_that_scored_few_users_is_named_but_not_ranked(make_run):
    (verdict,) = groups(make_run("most", [1, 2, 3]), make_run("few", [1]))
    assert names(verdict) == ["most"]
    assert any("few scored only 1 user" in note for note in verdict.notes)


def test_a_run_that_scored_no_user_is_left_out(make_run):
    assert sweep_texts([make_run("a", [1], failed=[1])]) == []


def test_runs_without_log_loss_are_ranked_by_another_metric(make_run):
    without, other = make_run("a"), make_run("b", blur=1)
    drop(without, "log_loss")
    (verdict,) = groups(without, other)
    assert names(verdict) == ["b", "a"]
    assert np.isnan(verdict.leaderboard.mean[0])
    drop(other, "log_loss")
    (verdict,) = groups(without, other)
    assert verdict.metric == "brier"
    drop(without, "brier", "auc")
    assert groups(without) == []


def test_other_metrics_are_shown_also_if_a_run_has_none(make_run):
    folders = make_run("a"), make_run("b", blur=1)
    drop(folders[1], "auc")
    (verdict,) = groups(*folders)
    assert np.isnan(verdict.beside["auc"]).tolist() == [False, True]

"""Runs are compared on identical reviews only, and say so when they are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.pairing import pair
from srs_eval.results.run import load_run, with_own_names


@pytest.mark.parametrize(
    "other",
    [{}, {"users": [2, 1, *range(3, 13)]}, {"other_reviews": [4]}, {"failed": [2]}],
    ids=["same", "other order", "other reviews", "a missing fold"],
)
def test_only_runs_of_the_same_reviews_in_the_same_order_share_them_in_memory(make_run, other):
    first, second = make_run("a"), make_run("b", **other)
    alone = load_run(second)
    [one, shared], _ = read_runs([first, second])
    assert (shared.rows is one.rows) == (not other)
    assert [*shared.rows.items()] == [*alone.rows.items()]
    assert shared.reviews == alone.reviews


@pytest.mark.parametrize("failed", [[2], [2, 5]])
def test_users_that_failed_alike_in_every_run_are_left_out_and_counted(make_run, failed):
    runs = [
        load_run(make_run(name, blur=blur, failed=failed))
        for name, blur in zip("ab", (0, 1), strict=True)
    ]
    paired = pair(runs)
    assert set(paired.users) == set(range(1, 13)) - {*failed}
    (note,) = paired.notes
    assert f"{len(failed)} user" in note
    assert " of 12 " in note


def test_what_runs_have_in_common_is_compared_only_when_asked_and_then_said(make_run):
    runs = [load_run(make_run("a")), load_run(make_run("b", range(1, 12), failed=[7]))]
    paired = pair(runs, intersect=True)
    assert set(paired.users) == set(range(1, 13)) - {7, 12}
    every = sum(runs[0].reviews.values())
    left = every - runs[0].reviews[7] - runs[0].reviews[12]
    assert paired.notes == (
        f"Restricted to 10 users of 12 that runs scored, with {left:,} of {every:,} reviews: "
        "those for whom all runs scored the same reviews",
        "b makes the same predictions as a; both count as one",
    )


def test_runs_of_several_protocols_carry_them_whatever_they_are_called(make_run):
    runs = [load_run(make_run("a")), load_run(make_run("b", protocol="srs_benchmark_refit50"))]
    told = [run.name for run in with_own_names(runs)]
    assert told == ["a", "b (srs_benchmark_refit50)"]
    published = replace(runs[0], name="c", summary={})
    assert [run.name for run in with_own_names([runs[0], published])] == ["a", "c"]
    assert with_own_names([*runs, published])[2].name == "c"


def test_runs_of_one_name_are_told_apart_by_their_folders(make_run):
    runs = with_own_names(load_run(make_run("a", folder=name)) for name in ("first", "second"))
    assert [run.name for run in runs] == ["a (first)", "a (second)"]


def test_a_folder_stands_for_all_runs_below_in_the_order_of_their_jobs(make_run, tmp_path):
    for number in (0, 1, 2, 10):
        make_run(f"run{number}", folder=f"sweep/{number}_run")
    runs, _ = read_runs([tmp_path])
    assert [run.name for run in runs] == ["run0", "run1", "run2", "run10"]


def test_a_run_that_scored_no_user_is_left_out_and_named(make_run, tmp_path):
    make_run("whole")
    make_run("nothing", failed=range(1, 13))
    runs, notes = read_runs([tmp_path])
    assert [run.name for run in runs] == ["whole"]
    assert "nothing scored no user" in notes[0]

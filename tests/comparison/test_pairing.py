"""Runs are compared on identical reviews only, and say so when they are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.pairing import pair
from srs_eval.errors import ConfigError
from srs_eval.results.run import load_run, with_own_names


def test_a_user_scored_on_other_reviews_is_refused_by_name(make_run):
    runs = [load_run(make_run("a")), load_run(make_run("b", other_reviews=[4]))]
    with pytest.raises(ConfigError) as refused:
        pair(runs)
    assert "b scored other reviews than a of user 4" in str(refused.value)
    others = sum(runs[0].reviews[user] for user in runs[0].rows if user != 4)
    fewest = min(run.reviews[4] for run in runs)
    assert (
        f"intersect=true compares them on {others:,} reviews of 11 users and on at most {fewest} "
        "reviews of 1 user more" in str(refused.value)
    )


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


def test_the_run_that_differs_from_most_is_the_one_that_is_named(make_run):
    runs = [load_run(make_run(name, other_reviews=[4] * (name == "a"))) for name in "abc"]
    with pytest.raises(ConfigError, match="a scored other reviews than b of user 4") as refused:
        pair(runs)
    assert "c scored" not in str(refused.value)


def test_users_that_are_absent_or_lost_a_fold_are_told_apart(make_run):
    runs = [
        load_run(make_run("whole")),
        load_run(make_run("short", users=range(1, 11))),
        load_run(make_run("broken", failed=[2])),
    ]
    with pytest.raises(ConfigError) as refused:
        pair(runs)
    assert "short did not score users 11, 12" in str(refused.value)
    assert "broken has no scores of user 2: a fit failed or was skipped" in str(refused.value)


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


def test_a_user_that_failed_in_one_run_alone_is_the_only_reason_to_refuse(make_run):
    runs = [
        load_run(make_run(name, failed=failed))
        for name, failed in zip("ab", ([2, 5], [2]), strict=True)
    ]
    with pytest.raises(ConfigError) as refused:
        pair(runs)
    _, *differences, _ = str(refused.value).splitlines()
    assert differences == ["  - a has no scores of user 5: a fit failed or was skipped"]
    assert set(pair(runs, intersect=True).users) == set(range(1, 13)) - {2, 5}


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


def test_nothing_in_common_is_an_error_even_when_asked(make_run):
    runs = [load_run(make_run("a", users=[1])), load_run(make_run("b", users=[2]))]
    with pytest.raises(ConfigError, match="there is no user for whom all runs"):
        pair(runs, intersect=True)


def test_users_may_be_in_any_order(make_run):
    one, other = load_run(make_run("a")), load_run(make_run("a", users=range(12, 0, -1)))
    paired = pair(with_own_names([one, other]))
    (duplicate,) = paired.duplicates
    np.testing.assert_array_equal(
        paired.scores("log_loss")[:, 0], duplicate.run.values("log_loss", paired.users)
    )


def test_other_protocols_that_score_the_same_reviews_are_compared_and_named(make_run):
    folders = [make_run("a"), make_run("a", protocol="srs_benchmark_refit50")]
    runs = with_own_names(load_run(folder) for folder in folders)
    assert [run.name for run in runs] == ["a", "a (srs_benchmark_refit50)"]
    assert "several protocols" in pair(runs).notes[0]


def test_runs_of_several_protocols_carry_them_whatever_they_are_called(make_run):
    runs = [load_run(make_run("a")), load_run(make_run("b", protocol="srs_benchmark_refit50"))]
    told = [run.name for run in with_own_names(runs)]
    assert told == ["a", "b (srs_benchmark_refit50)"]
    published = replace(runs[0], name="c", summary={})
    assert [run.name for run in with_own_names([runs[0], published])] == ["a", "c"]
    assert with_own_names([*runs, published])[2].name == "c"


def test_published_runs_that_differ_are_named_also_where_they_are_more(make_run):
    own = [load_run(make_run(name)) for name in "ab"]
    published = [
        replace(
            own[0],
            name=name,
            rows=dict.fromkeys(own[0].rows, ""),
            reviews={**own[0].reviews, 3: 17},
        )
        for name in ("x", "y", "z")
    ]
    with pytest.raises(ConfigError) as refused:
        pair(own, published)
    _, *differences, _ = str(refused.value).splitlines()
    assert differences == [
        f"  - {name} scored other reviews than a of user 3: 17 and {own[0].reviews[3]} of user 3, "
        "by number"
        for name in ("x", "y", "z")
    ]
    # Among equals it is those that are fewer.
    with pytest.raises(ConfigError, match="a scored other reviews than x of user 3: ") as refused:
        pair([own[0], *published])
    assert "y scored" not in str(refused.value)
    # What none of one's own has scored is left out, whatever the others have.
    failed = load_run(make_run("c", failed=[3]))
    assert 3 not in pair([failed], published).users


def test_runs_of_one_name_are_told_apart_by_their_folders(make_run):
    runs = with_own_names(load_run(make_run("a", folder=name)) for name in ("first", "second"))
    assert [run.name for run in runs] == ["a (first)", "a (second)"]


def test_the_same_run_twice_is_refused(make_run):
    run = load_run(make_run("a"))
    with pytest.raises(ConfigError, match="more than once"):
        with_own_names([run, run])


def test_a_folder_stands_for_all_runs_below_in_the_order_of_their_jobs(make_run, tmp_path):
    for number in (0, 1, 2, 10):
        make_run(f"run{number}", folder=f"sweep/{number}_run")
    runs, _ = read_runs([tmp_path])
    assert [run.name for run in runs] == ["run0", "run1", "run2", "run10"]


def test_every_path_without_runs_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("nothing")
    with pytest.raises(ConfigError) as refused:
        read_runs([tmp_path / "empty", tmp_path / "absent", tmp_path / "text.txt"])
    assert [path in str(refused.value) for path in ("empty", "absent", "text.txt")] == [True] * 3


def test_a_run_that_scored_no_user_is_left_out_and_named(make_run, tmp_path):
    make_run("whole")
    make_run("nothing", failed=range(1, 13))
    runs, notes = read_runs([tmp_path])
    assert [run.name for run in runs] == ["whole"]
    assert "nothing scored no user" in notes[0]

"""Runs are named and paired, and judged: no verdict, interval or p-value contradicts another."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from saved import load_predictions

from srs_eval.comparison.compare import compare
from srs_eval.comparison.entry import Entry, entry_of, read_entry, with_own_names
from srs_eval.comparison.identical import find_duplicates
from srs_eval.comparison.inputs import read_runs
from srs_eval.comparison.leaderboard import NOISE, Rules
from srs_eval.comparison.standings import board_of, usual_baseline
from srs_eval.metrics.means import (
    clustered_mean,
    effective_users,
    mean_of_users,
    paired_mean,
    paired_signs,
    user_weights,
)
from srs_eval.metrics.tally import log_losses
from srs_eval.runs.folder import Run
from srs_eval.runs.summary import Summary

U = np.arange(12)
BASE = 0.3 + 0.02 * np.sin(U)
TABLE = {
    "A": BASE,
    "B": BASE + 0.010 + 0.004 * np.cos(U),
    "C": BASE + 0.012 + 0.030 * np.cos(2 * U),
    "D": BASE + 0.2 + 0.1 * np.cos(3 * U) ** 2,
}
# Factor, p, adjusted p, adjusted interval, verdict: computed by another program.
ORACLES = {
    "B": (1, 1.6767501e-7, 1.6767501e-7, (0.0072171367, 0.012599116), "worse"),
    "C": (1, 0.099019861, 0.099019861, (-0.0086797152, 0.032700756), NOISE),
    "D": (3, 1.8747088e-10, 1.1248253e-9, (0.20898127, 0.29160658), "worse"),
}


def leaderboard_of(table, **rules):
    scores = np.column_stack(list(table.values())) if isinstance(table, dict) else table
    bounds = rules.pop("bounds", (-np.inf, np.inf))
    models = scores.shape[1]
    rules = Rules(**{"ranks": (0,) * models, "times": (0,) * models, **rules})
    return board_of(scores, np.full(len(scores), 100), "users", rules, bounds)


def by_name(table):
    return {[*table][n]: each for n, each in leaderboard_of(table).to_best.items()}


def test_verdicts_are_those_computed_elsewhere():
    board = leaderboard_of(TABLE)
    assert board.to_best[0].verdict == "leads"
    for name, (factor, p, p_adjusted, interval, verdict) in ORACLES.items():
        place = list(TABLE).index(name)
        found = board.to_best[place]
        assert (1 - found.level, found.verdict) == (pytest.approx(0.01 / factor), verdict)
        numbers = board.difference(place, 0).p_value, found.p, found.lo, found.hi
        assert numbers == pytest.approx([p, p_adjusted, *interval], rel=1e-7)


def test_twins_and_the_order_of_columns_change_nothing():
    whole = by_name(TABLE)
    names = ("A", "B", "C", "A again", "C again")
    twice = leaderboard_of({name: TABLE[name[0]] for name in names}).to_best
    assert repr((twice[1], twice[2], twice[4])) == repr((whole["B"], whole["C"], whole["C"]))
    assert twice[3].verdict == "identical"
    turned = dict(reversed(TABLE.items()))
    assert {name: repr(each) for name, each in by_name(turned).items()} == {
        name: repr(each) for name, each in whole.items()
    }


def test_worse_for_every_user_is_said_though_the_mean_says_nothing():
    rng = np.random.default_rng(1)
    good = rng.uniform(0.2, 0.5, 29)
    disaster = good + np.append(rng.uniform(0.01, 0.02, 28), 12.0)
    found = leaderboard_of(np.column_stack([good, disaster])).to_best[1]
    assert found.verdict == NOISE
    assert (found.users_better, found.users_worse, found.users_alike) == (0, 29, 0)
    assert found.users_p < 0.01


def test_the_leader_and_the_baseline_are_compared_once():
    leader = leaderboard_of(TABLE, baseline=0)
    assert repr([leader.to_baseline[n] for n in (1, 2, 3)]) == repr(
        [leader.to_best[n] for n in (1, 2, 3)]
    )
    rng = np.random.default_rng(2)
    for _ in range(30):
        scores = rng.uniform(0.2, 0.5, (15, 1)) + rng.normal([0, 0.01, 0.01, 0.02], 0.012, (15, 4))
        board = leaderboard_of(scores, baseline=3)
        leader = board.leaders[3]
        if leader != 3:
            one, other = board.to_baseline[leader], board.to_best[3]
            assert (one.difference, one.lo, one.hi) == (-other.difference, -other.hi, -other.lo)
            assert (one.p, one.users_better) == (other.p, other.users_worse)


def test_a_bound_that_is_alone_at_its_time_is_compared_with_the_time_before():
    board = leaderboard_of(TABLE, times=(2, 0, 0, 1), ranks=(2, 0, 0, 2))
    assert {*board.leaders.values()} == {1}
    assert board.to_best[0].verdict == "better"
    early = leaderboard_of(TABLE, times=(0, 1, 1, 1), ranks=(2, 0, 0, 0))
    assert early.leaders[0] == -1
    assert early.to_best[0].verdict == "unknown"


def test_a_model_with_failed_fits_leads_only_where_there_is_no_other():
    for ranks, leader, verdict in (
        ((1, 0, 0, 0), 1, "leads"),
        ((1, 2, 1, 2), 0, "leads"),
        ((2, 2, 2, 2), 0, "leads"),
        ((2, 2, 2, 0), 3, "leads"),
    ):
        board = leaderboard_of(TABLE, ranks=ranks)
        assert ({*board.leaders.values()}, board.to_best[leader].verdict) == ({leader}, verdict)


def test_means_are_cut_off_at_the_bounds_and_differences_are_not():
    scores = np.array([[0.01, 0.9], [0.02, 0.1], [0.3, 0.8]])
    board = leaderboard_of(scores, bounds=(0.0, 1.0))
    assert (board.lo[0], board.hi[1]) == (0, 1)
    assert board.to_best[1].lo < 0
    assert board.to_best[1].hi > 1


def test_runs_carry_their_protocol_or_folder_where_their_names_do_not_tell(make_run):
    plain = read_entry(make_run("a", folder="first"))
    refit = read_entry(make_run("b", protocol="srs_benchmark_refit50"))
    again = read_entry(make_run("a", folder="second"))
    published = replace(plain, name="c", facts=Summary("c"))
    for runs, names in (
        ([plain, refit, published], ["a", "b (srs_benchmark_refit50)", "c"]),
        ([plain, published], ["a", "c"]),
        ([plain, again], ["a (first)", "a (second)"]),
    ):
        assert [run.name for run in with_own_names(runs)] == names


def test_a_folder_stands_for_all_runs_below_that_scored_users_in_the_order_of_jobs(
    make_run, tmp_path
):
    for number in (0, 1, 2, 10):
        make_run(f"run{number}", folder=f"sweep/{number}_run")
    make_run("nothing", failed=range(1, 13))
    runs, (note,) = read_runs([tmp_path])
    assert [run.name for run in runs] == ["run0", "run1", "run2", "run10"]
    assert "nothing scored no user" in note


def test_equal_scores_of_other_predictions_are_not_identical(make_run):
    first, second, moved = (
        read_entry(make_run(name, shift=shift))
        for name, shift in (("aa", 0), ("bb", 0), ("cc", 1e-9))
    )
    users = list(first.rows)
    assert [one.twin.name for one in find_duplicates([first, second], users)] == ["aa"]
    forged = replace(moved, scores={name: first.scores[name] for name in moved.scores})
    assert find_duplicates([first, forged], users) == []
    later = replace(second, facts=replace(second.facts, when="at_review"))
    assert find_duplicates([first, later], users) == []


def test_published_scores_are_identical_only_in_several_metrics(tmp_path):
    losses, nowhere = [0.1, 0.2, 0.3], [np.nan] * 3
    several = {"log_loss": losses, "auc": [0.7, np.nan, 0.6]}
    for scores, other, is_twin in (
        (several, {}, True),
        ({**several, "mbe": nowhere}, {}, True),
        ({"log_loss": losses}, {}, False),
        ({"log_loss": losses, "mbe": nowhere}, {}, False),
        (several, {"auc": [0.7, np.nan, 0.61]}, False),
        (several, {"auc": [0.71, np.nan, 0.6]}, False),
    ):
        runs = [
            Entry(
                *(name, tmp_path, dict.fromkeys(range(3), ""), dict.fromkeys(range(3), 9)),
                {metric: np.array(values) for metric, values in columns.items()},
                Summary(name),
            )
            for name, columns in (("a", scores), ("b", {**scores, **other}))
        ]
        found = find_duplicates(runs, range(3))
        assert [one.run.name for one in found] == ["b"] * is_twin


def judged(*folders, **options):
    return compare([read_entry(folder) for folder in folders], **options)


@pytest.fixture
def three(make_run):
    return make_run("sharp"), make_run("blurred", blur=1.0), make_run("shifted", shift=-1.5)


def test_estimates_are_those_of_the_saved_scores_and_of_pairs_by_themselves(three):
    verdict = judged(*three)
    saved = [pd.read_parquet(folder / "scores.parquet") for folder in three]
    reviews, losses = saved[0].reviews.to_numpy(), [each.log_loss.to_numpy() for each in saved]
    for board in verdict.boards:
        weights = user_weights(reviews, board.weighting)
        assert board.effective == pytest.approx(effective_users(weights))
        for number, own in enumerate(losses):
            found = board.mean[number], board.lo[number], board.hi[number]
            estimate = mean_of_users(own, weights)
            expected = estimate.mean, max(estimate.interval()[0], 0), estimate.interval()[1]
            assert found == pytest.approx(expected)
        expected = paired_mean(losses[1], losses[0], weights)
        assert board.difference(1, 0) == expected
        assert board.difference(0, 1) == expected.mirrored()
        signs = paired_signs(losses[1], losses[0])
        assert board.to_baseline[1][6:9] == (signs.better, signs.worse, signs.tied)
        for place in (1, 2):
            one, estimate = board.to_best[place], board.difference(place, 0)
            assert 0.99 <= one.level < 1
            assert (one.lo, one.hi) == estimate.interval(one.level)


def test_one_user_is_compared_review_by_review(make_run):
    folders = [make_run("a", [7]), make_run("b", [7], shift=-4.0)]
    verdict = judged(*folders)
    (board,) = verdict.boards
    mine, other = map(load_predictions, folders)
    gaps = log_losses(other.p, other.recalled) - log_losses(mine.p, mine.recalled)
    expected = clustered_mean(gaps, mine.card, mine.day)
    assert board.difference(1, 0).interval() == pytest.approx(expected.interval())
    assert board.difference(1, 0).p_value == pytest.approx(expected.p_value)
    assert [board.to_best[n].verdict for n in (0, 1)] == ["best", "worse"]
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


def without(run, metric, user):
    """Return a run in which a metric is not defined for a user."""
    values = run.by_user.values.copy()
    values[run.by_user.users.index(user), run.by_user.names.index(metric)] = np.nan
    return replace(run, by_user=replace(run.by_user, values=values))


def test_percentages_are_those_of_the_means_over_users_that_both_have(make_run):
    avg, mine = (
        entry_of(without(Run.read(make_run(name, blur=blur)), "brier", user))
        for name, blur, user in (("avg", 1, 3), ("mine", 0, 5))
    )
    percent = compare([avg, mine]).percents(mine)
    assert [*percent] == ["log_loss", "brier"]
    for metric, unknown in (("log_loss", set()), ("brier", {3, 5})):
        users = [user for user in range(1, 13) if user not in unknown]
        ours, theirs = (one.values(metric, users) for one in (mine, avg))
        assert percent[metric] == pytest.approx(100 * (ours.mean() / theirs.mean() - 1))
    zero = replace(avg, scores={name: 0 * column for name, column in avg.scores.items()})
    assert compare([mine, zero]).percents(mine) == {}


def test_the_usual_baseline_is_avg_and_no_model_that_knows_the_truth(make_run):
    runs = (
        make_run(name, shift=0.1 * n, sees_truth=name == "oracle")
        for n, name in enumerate(("oracle", "hlr", "avg"))
    )
    oracle, hlr, avg = map(read_entry, runs)
    for runs, expected in (([oracle, hlr, avg], 2), ([oracle, hlr], 1), ([oracle], 0), ([hlr], 0)):
        assert usual_baseline(runs) == expected
    assert compare([oracle, hlr, avg]).baseline == 2
    assert compare([oracle, hlr, avg], baseline="oracle").baseline == 0

"""Leaderboards of random tables: no verdict, interval, p-value or word contradicts another."""

import numpy as np
import pytest

from srs_eval.comparison.leaderboard import leaderboards
from srs_eval.comparison.standing import Rules
from srs_eval.stats.significance import SignTest

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
    "C": (1, 0.099019861, 0.099019861, (-0.0086797152, 0.032700756), "not significantly different"),
    "D": (3, 1.8747088e-10, 1.1248253e-9, (0.20898127, 0.29160658), "worse"),
}


def leaderboard_of(table, **rules):
    scores = np.column_stack(list(table.values())) if isinstance(table, dict) else table
    given_rules = Rules(**{"eligible": (True,) * scores.shape[1], **rules})
    return leaderboards(scores, np.full(len(scores), 100), given_rules)[0]


def test_verdicts_are_those_computed_elsewhere():
    board = leaderboard_of(TABLE)
    assert board.to_best[0].average.verdict == "leads"
    for name, (factor, p, p_adjusted, interval, verdict) in ORACLES.items():
        found = board.to_best[list(TABLE).index(name)]
        answer = found.average
        assert (answer.factor, answer.verdict) == (factor, verdict)
        numbers = found.difference.p_value, answer.p_value, answer.lo, answer.hi
        assert numbers == pytest.approx([p, p_adjusted, *interval], rel=1e-7)


def test_twins_and_the_order_of_columns_change_nothing():
    whole = dict(zip(TABLE, leaderboard_of(TABLE).to_best, strict=True))
    names = ("A", "B", "C", "A again", "C again")
    twice = leaderboard_of({name: TABLE[name[0]] for name in names}).to_best
    assert (twice[1], twice[2], twice[4]) == (whole["B"], whole["C"], whole["C"])
    assert twice[3].average.verdict == "identical"
    turned = dict(reversed(TABLE.items()))
    assert dict(zip(turned, leaderboard_of(turned).to_best, strict=True)) == whole


def test_worse_for_every_user_is_said_though_the_mean_says_nothing():
    rng = np.random.default_rng(1)
    good = rng.uniform(0.2, 0.5, 29)
    disaster = good + np.append(rng.uniform(0.01, 0.02, 28), 12.0)
    found = leaderboard_of(np.column_stack([good, disaster])).to_best[1]
    assert found.average.verdict == "not significantly different"
    assert found.users.verdict == "worse"
    assert found.counts == SignTest(0, 29, 0)


def test_the_leader_and_the_baseline_are_compared_once():
    leader = leaderboard_of(TABLE, baseline=0)
    assert leader.to_baseline == leader.to_best
    rng = np.random.default_rng(2)
    for _ in range(30):
        scores = rng.uniform(0.2, 0.5, (15, 1)) + rng.normal([0, 0.01, 0.01, 0.02], 0.012, (15, 4))
        board = leaderboard_of(scores, baseline=3)
        leader = board.leaders[3]
        if leader != 3:
            assert board.to_baseline[leader] == board.to_best[3].mirrored()
            assert board.to_baseline[leader].counts.better == board.to_best[3].counts.worse


def test_models_by_other_rules_may_be_better_but_do_not_count():
    scores = np.column_stack([TABLE["A"], TABLE["B"], TABLE["A"] - 0.05, TABLE["A"] - 0.1])
    board = leaderboard_of(scores, eligible=(True, True, False, False))
    assert set(board.leaders) == {0}
    verdicts = [standing.average.verdict for standing in board.to_best]
    assert verdicts == ["best", "worse", "better", "better"]
    assert board.to_best[1] == leaderboard_of(scores[:, :2]).to_best[1]


def test_each_time_of_prediction_has_a_leader_of_its_own():
    times = (0, 1, 0, 1)
    board = leaderboard_of(TABLE, times=times, baseline=3)
    assert board.order == (0, 2, 1, 3)
    assert board.leaders == (0, 1, 0, 1)
    assert board.groups == {0: [0, 2], 1: [1, 3]}
    for models in ((0, 2), (1, 3)):
        alone = leaderboard_of(np.column_stack([[*TABLE.values()][model] for model in models]))
        assert [board.to_best[model] for model in models] == list(alone.to_best)
    assert board.to_baseline[1] == board.to_best[3].mirrored()
    # across times, differences are the same and adjusted for all comparisons with the baseline
    whole = leaderboard_of(TABLE, baseline=3)
    assert board.to_baseline[0].difference == whole.to_baseline[0].difference
    assert board.to_baseline[2] == whole.to_baseline[2]


def test_a_bound_that_is_alone_at_its_time_is_compared_with_the_time_before():
    board = leaderboard_of(TABLE, times=(2, 0, 0, 1), eligible=(False, True, True, False))
    assert board.leaders == (1, 1, 1, 1)
    assert board.to_best[0].average.verdict == "better"
    early = leaderboard_of(TABLE, times=(0, 1, 1, 1), eligible=(False, True, True, True))
    assert early.leaders[0] == -1
    assert early.to_best[0].average.verdict == "unknown"


def test_means_are_cut_off_at_the_bounds_and_differences_are_not():
    scores = np.array([[0.01, 0.9], [0.02, 0.1], [0.3, 0.8]])
    board = leaderboard_of(scores, bounds=(0.0, 1.0))
    assert (board.lo[0], board.hi[1]) == (0, 1)
    assert board.to_best[1].average.lo < 0
    assert board.to_best[1].average.hi > 1


@pytest.mark.slow
def test_equal_models_are_seldom_called_worse():
    rng = np.random.default_rng(2)
    wrong = 0
    for _ in range(2_000):
        found = leaderboard_of(rng.normal(size=(60, 6)))
        wrong += any(standing.average.verdict == "worse" for standing in found.to_best)
    assert 0.004 < wrong / 2_000 < 0.014  # 1 % is meant; 2.4 % with a factor of 5 throughout

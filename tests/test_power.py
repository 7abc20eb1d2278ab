"""How many users a comparison needs: the calculator agrees with simulated comparisons."""

import math

import numpy as np
import pytest

import srs_eval as se
from srs_eval.commands.power import command
from srs_eval.comparison.prereg import REGIONS
from srs_eval.stats.estimate import mean_of_users
from srs_eval.stats.power import Study, power_of, upper_deviation, users_needed


@pytest.mark.parametrize(
    ("direction", "advantage", "users", "shape"),
    [
        ("better", 0.5, 120, 1),
        ("better", 0.25, 60, -1),
        ("not_worse", 0.0, 150, 0),
        ("not_worse", 0.0, 500, 1),
        ("equivalent", 0.0, 200, -1),
    ],
)
def test_the_power_of_a_verdict_is_the_share_of_studies_that_reach_it(
    direction, advantage, users, shape
):
    """Of users that are normal, or skewed to either side."""
    rng = np.random.default_rng(3)
    pilot = shape * rng.exponential(1, 400) if shape else None
    least, most = (0.25 * bound for bound in REGIONS[direction])
    study = Study(least - advantage, most - advantage, 1.0, pilot)
    drawn = rng.standard_normal((800, users))
    if pilot is not None:
        drawn = rng.choice((pilot - pilot.mean()) / pilot.std(), drawn.shape)
    found = [mean_of_users(row).interval() for row in drawn]
    share = np.mean([study.least <= low and high <= study.most for low, high in found])
    assert study.power(users) == pytest.approx(share, abs=4 * math.sqrt(0.25 / 800))


@pytest.mark.parametrize("users", [40, 299, 300, 2_999, 3_000])
def test_studies_of_all_sizes_are_simulated_alike(users):
    for pilot in (None, np.random.default_rng(1).normal(0, 1, 60)):
        study = Study(-2.6 / math.sqrt(users), math.inf, 1.0, pilot)
        expected = power_of(2.6 / math.sqrt(users), 1.0, users)
        assert study.power(users) == pytest.approx(expected, abs=0.05)


def test_studies_of_skewed_users_are_simulated_alike():
    skewed = Study(-0.035, math.inf, 1.0, np.random.default_rng(2).exponential(1, 400))
    assert skewed.power(3_000) == pytest.approx(skewed.power(2_999), abs=0.02)


def test_one_user_fewer_is_too_few_from_two_users_to_any_number():
    for difference in (2.0, 0.1, 0.001):
        users = users_needed(difference, 1.0, power=0.9)
        assert power_of(difference, 1.0, users) >= 0.9 > power_of(difference, 1.0, users - 1)
    study = Study(-0.2, math.inf, 1.0)
    users = study.users_for(0.8)
    assert study.power(users) >= 0.8 > study.power(int(users / 1.03))
    assert Study(-0.2, 0.2, 1.0).users_for(0.8) > 1.2 * users  # both sides have to hold
    for sd in (1e-5, 1e-3, 1e-320):  # two are enough for a difference far above the deviation
        assert [power_of(1e3, sd, users) for users in (1, 2, 10**6)] == [0, 1, 1]
        assert users_needed(1e3, sd, power=0.99) == 2
    assert 700_000_000 < users_needed(0.0001, 0.8) < 800_000_000
    assert users_needed(0.0001, 1.0) is None
    assert Study(0.0, math.inf, 1.0).users_for(0.8) is None
    assert Study(0.0, math.inf, 1.0).power(500) < 0.02
    assert Study(-9.0, math.inf, 1.0).power(1) == 0


def test_an_uncertain_deviation_has_a_higher_upper_end():
    rng = np.random.default_rng(4)
    ends = [upper_deviation(rng.normal(0, 1, 50)) for _ in range(500)]
    assert 0.85 < np.mean([end > 1 for end in ends]) < 0.97
    few, even, many = (np.tile([-1.0, 1.0], n) for n in (6, 50, 500))
    assert upper_deviation(few) > 1.2 > 1.05 > upper_deviation(many)
    heavy = np.append(even, 30.0)
    assert upper_deviation(heavy) / heavy.std() > 1.5 > upper_deviation(even) / even.std()
    assert upper_deviation(heavy + 9) == pytest.approx(upper_deviation(heavy))


def test_the_command_answers_without_runs(capsys):
    assert command(["difference=0.001", "sd=0.01", "users=500"]) == 0
    shown = capsys.readouterr().out.splitlines()[-1].split()
    assert shown[:3] == ["0.001", "0.01", "1,200"]
    assert float(shown[3]) == pytest.approx(power_of(0.001, 0.01, 500), abs=0.03)
    assert command(["difference=0.005", "direction=better", "advantage=0.005", "sd=0.02"]) == 0
    assert "no number" in capsys.readouterr().out


def test_the_command_takes_the_differences_of_two_runs(tmp_path, capsys, transcript):
    log = {"users": 4, "size_scale": 0.02, "max_reviews": 800, "panel": "quick"}
    both = [f"{tmp_path}/0.8", f"{tmp_path}/0.9"]
    runs = [se.evaluate("constant", "synthetic", p=float(f[-3:]), folder=f, **log) for f in both]
    differences = (runs[0].scores["log_loss"] - runs[1].scores["log_loss"]).to_numpy()
    sd, mean = differences.std(ddof=1), differences.mean()
    # the side on which the difference was found is that of the advantage
    found = Study(-abs(mean), math.inf, sd, differences if mean > 0 else -differences)
    # lower log loss is better: the advantage of the first is what its log loss is lower by
    asked = Study(-0.015, math.inf, sd, -differences)
    words = ["difference=0.01", "direction=not_worse", "advantage=0.005"]
    for given, study, column in (([], found, 3), (words, asked, 4)):
        assert command([*both, *given, "users=10"]) == 0
        printed = capsys.readouterr().out
        assert "fewer than 50 users" in printed
        lines = printed.splitlines()
        (begin,) = (number for number, line in enumerate(lines) if line.startswith("---"))
        own, upper = (line.split() for line in lines[begin + 1 : begin + 3])
        assert own[column] == f"{study.power(10):.2f}"
        assert (own[column - 2], upper[column - 2]) == tuple(
            f"{deviation:.3g}" for deviation in (sd, upper_deviation(differences))
        )

    def told_by(_, *words):
        assert command([*both[::-1], *words]) == 0
        return capsys.readouterr().out

    transcript("power", told_by)

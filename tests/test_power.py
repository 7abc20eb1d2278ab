"""How many users a comparison needs: the calculator agrees with simulated comparisons."""

from __future__ import annotations

import math

import numpy as np
import pytest

from srs_eval.commands.power import command
from srs_eval.comparison.prereg import REGIONS
from srs_eval.stats.estimate import mean_of_users
from srs_eval.stats.power import Study, _moments, power_of, upper_deviation, users_needed


def test_the_power_is_the_share_of_simulated_comparisons_that_find_the_difference() -> None:
    rng = np.random.default_rng(1)
    found = [mean_of_users(rng.normal(0.3, 1.0, 60)) for _ in range(1000)]
    share = np.mean([each.p_value < 0.01 and each.mean > 0 for each in found])
    # Hall's interval, which is the wider at times, costs a little power.
    assert share == pytest.approx(power_of(0.3, 1.0, 60), abs=4 * math.sqrt(0.25 / 1000))


@pytest.mark.parametrize("difference", [2.0, 0.1, 0.001])
def test_one_user_fewer_is_too_few(difference: float) -> None:
    users = users_needed(difference, 1.0, power=0.9)
    assert users is not None
    assert power_of(difference, 1.0, users) >= 0.9 > power_of(difference, 1.0, users - 1)


def test_the_command_answers_without_runs_and_refuses_what_it_cannot_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(["difference=0.001", "sd=0.01", "users=500"]) == 0
    shown = capsys.readouterr().out.splitlines()[-1].split()
    assert shown[:3] == ["0.001", "0.01", "1,200"]
    assert float(shown[3]) == pytest.approx(power_of(0.001, 0.01, 500), abs=0.03)
    for words in (
        *([], ["difference=x"], ["power=2", "difference=1"], ["outputs"], ["sigma=1"]),
        *(["difference=1", "direction=up"], ["difference=1", "direction=better"]),
        *(["difference=1", "advantage=2"], ["a", "b", "direction=better", "advantage=1"]),
        ["difference=1", "level=0.8"],
    ):
        assert command(words) == 2


def test_the_command_takes_the_differences_of_two_runs(
    tmp_path: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    import srs_eval as se

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
        own, upper = (line.split() for line in _rows(printed))
        assert own[column] == f"{study.power(10):.2f}"
        assert (own[column - 2], upper[column - 2]) == tuple(
            f"{deviation:.3g}" for deviation in (sd, upper_deviation(differences))
        )
    for given, warns in ((), True), (("advantage=0.5",), False):
        assert command([*both[::-1], "difference=0.0001", "direction=better", *given]) == 0
        assert ("advantage=" in capsys.readouterr().out) is warns


def _rows(printed: str) -> list[str]:
    """Return the rows of the only table."""
    lines = printed.splitlines()
    (begin,) = (number for number, line in enumerate(lines) if line.startswith("---"))
    return lines[begin + 1 : begin + 3]


def _decided(region: tuple[float, float], drawn: np.ndarray) -> float:
    """Count the studies that find the mean in a region, by the product's interval."""
    found = [mean_of_users(row).interval() for row in drawn]
    return float(np.mean([region[0] <= low and high <= region[1] for low, high in found]))


@pytest.mark.parametrize(
    ("direction", "advantage", "users", "shape"),
    [
        ("better", 0.5, 120, "skewed"),
        ("better", 0.25, 60, "skewed to the other side"),
        ("not_worse", 0.0, 150, "normal"),
        ("not_worse", 0.0, 150, "skewed"),
        ("equivalent", 0.0, 200, "skewed to the other side"),
    ],
)
def test_the_promised_power_of_a_verdict_is_the_share_of_studies_that_reach_it(
    direction: str, advantage: float, users: int, shape: str
) -> None:
    rng = np.random.default_rng(3)
    pilot = (
        None if shape == "normal" else rng.exponential(1, 400) * (1 if shape == "skewed" else -1)
    )
    least, most = (0.25 * bound for bound in REGIONS[direction])
    study = Study(least - advantage, most - advantage, 1.0, pilot)
    if pilot is None:
        drawn = rng.standard_normal((800, users))
    else:
        drawn = rng.choice((pilot - pilot.mean()) / pilot.std(), (800, users))
    share = _decided((study.least, study.most), drawn)
    assert study.power(users) == pytest.approx(share, abs=4 * math.sqrt(0.25 / 800))


@pytest.mark.parametrize("users", [40, 299, 300, 2_999, 3_000])
def test_studies_of_all_sizes_are_simulated_alike(users: int) -> None:
    for pilot in (None, np.random.default_rng(1).normal(0, 1, 60)):
        study = Study(-2.6 / math.sqrt(users), math.inf, 1.0, pilot)
        expected = power_of(2.6 / math.sqrt(users), 1.0, users)
        assert study.power(users) == pytest.approx(expected, abs=0.05)


def test_a_simulated_interval_is_that_of_the_product() -> None:
    rng = np.random.default_rng(0)
    for values in (rng.normal(1, 2, 30), rng.exponential(1, 300), -rng.exponential(1, 7)):
        moments = _moments(*((values[None] ** power).mean(axis=1) for power in (1, 2, 3)))
        low, high = Study(-1, 1, 1.0)._interval((len(values), *moments))
        assert (low[0], high[0]) == pytest.approx(mean_of_users(values).interval(), rel=1e-9)


def test_fewer_users_than_are_needed_do_not_have_the_power() -> None:
    study = Study(-0.2, math.inf, 1.0)
    users = study.users_for(0.8)
    assert users is not None
    assert study.power(users) >= 0.8 > study.power(int(users / 1.03))
    equivalent = Study(-0.2, 0.2, 1.0).users_for(0.8)
    assert equivalent is not None
    assert equivalent > 1.2 * users  # both sides have to hold


def test_no_number_of_users_finds_an_advantage_exactly_at_the_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert Study(0.0, math.inf, 1.0).users_for(0.8) is None
    assert Study(0.0, math.inf, 1.0).power(500) < 0.02
    words = ["difference=0.005", "direction=better", "advantage=0.005", "sd=0.02"]
    assert command(words) == 0
    assert "no number" in capsys.readouterr().out


def test_an_uncertain_deviation_has_a_higher_upper_end() -> None:
    rng = np.random.default_rng(4)
    ends = [upper_deviation(rng.normal(0, 1, 50)) for _ in range(500)]
    assert 0.85 < np.mean([end > 1 for end in ends]) < 0.97
    few, many = (np.tile([-1.0, 1.0], n) for n in (6, 500))
    assert upper_deviation(few) > 1.2 > 1.05 > upper_deviation(many)
    heavy = np.append(np.tile([-1.0, 1.0], 50), 30.0)
    even = np.tile([-1.0, 1.0], 50)
    assert upper_deviation(heavy) / heavy.std() > 1.5 > upper_deviation(even) / even.std()


@pytest.mark.parametrize("sd", [1e-5, 1e-3, 1e-320])
def test_a_difference_far_above_the_deviation_is_found_by_two_users(sd: float) -> None:
    assert [power_of(1e3, sd, users) for users in (2, 10**6)] == [1, 1]
    assert users_needed(1e3, sd, power=0.99) == 2


def test_more_than_half_a_billion_users_are_a_number_too() -> None:
    assert 700_000_000 < (users_needed(0.0001, 0.8) or 0) < 800_000_000
    assert users_needed(0.0001, 1.0) is None

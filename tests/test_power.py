"""How many users a comparison needs: the calculator agrees with simulated comparisons."""

from __future__ import annotations

import math

import numpy as np
import pytest

from srs_eval.commands.power import _caution, command
from srs_eval.stats.estimate import Estimate, mean_of_users
from srs_eval.stats.power import power_of, users_needed


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
    assert "1,172" in capsys.readouterr().out
    for words in ([], ["difference=x"], ["power=2", "difference=1"], ["outputs"], ["sigma=1"]):
        assert command(words) == 2


def test_the_command_takes_the_differences_of_two_runs(
    tmp_path: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    import srs_eval as se

    log = {"users": 4, "size_scale": 0.02, "max_reviews": 800, "panel": "quick"}
    runs = [
        se.evaluate("constant", "synthetic", p=p, folder=f"{tmp_path}/{p}", **log)
        for p in (0.8, 0.9)
    ]
    assert command([f"{tmp_path}/0.8", f"{tmp_path}/0.9", "users=10"]) == 0
    differences = runs[0].scores["log_loss"] - runs[1].scores["log_loss"]
    sd = differences.std(ddof=1)
    printed = capsys.readouterr().out
    assert f"{sd:.3g}" in printed
    assert f"{users_needed(differences.mean(), sd):,}" in printed
    ends = [abs(end) for end in mean_of_users(differences.to_numpy()).interval()]
    found = f"{users_needed(max(ends), sd):,} users"
    assert found in printed  # at the far end of the interval of the difference
    assert command([f"{tmp_path}/0.8", f"{tmp_path}/0.9", "difference=0.1"]) == 0
    assert found not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("difference", "expected"),
    [(0.5, ["24 users", "221 at the other"]), (0.1, ["includes 0", "90 users"])],
)
def test_a_pilot_has_the_users_needed_at_both_ends_of_its_interval(
    difference: float, expected: list[str]
) -> None:
    pilot = Estimate(difference, 0.1, 0.0, 49)
    text = _caution(pilot, 1.0, 0.8)
    assert [part for part in expected if part not in text] == []


@pytest.mark.parametrize("sd", [1e-5, 1e-3, 1e-320])
def test_a_difference_far_above_the_deviation_is_found_by_two_users(sd: float) -> None:
    assert [power_of(1e3, sd, users) for users in (2, 10**6)] == [1, 1]
    assert users_needed(1e3, sd, power=0.99) == 2


def test_more_than_half_a_billion_users_are_a_number_too() -> None:
    assert 700_000_000 < (users_needed(0.0001, 0.8) or 0) < 800_000_000
    assert users_needed(0.0001, 1.0) is None

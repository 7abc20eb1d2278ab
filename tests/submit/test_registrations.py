"""Pre-registrations of a leaderboard, judged by its scores and by nothing that authors state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from submissions import about, registered

from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.registrations import Registration, registrations

Register = Callable[..., Registration]


@pytest.fixture
def register(board: Path) -> Register:
    """Register a hypothesis in the leaderboard, and judge it."""

    def found(**changed: object) -> Registration:
        registered("one", **changed)(board)
        (one,) = registrations(board, read_leaderboard(board))
        return one

    return found


@pytest.mark.parametrize(
    ("changed", "decision"),
    [
        ({}, "undecided"),
        ({"users": 4}, "no verdict"),
        ({"options": {"data.seed": 6}}, "no verdict"),
        ({"options": {"protocol.folds": 2}}, "no verdict"),
        ({"fingerprint": "0000"}, "no verdict"),
    ],
)
def test_a_registration_is_judged_by_the_board_it_is_about(register, changed, decision) -> None:
    found = register(**changed)
    assert (found.file, found.model, found.reason) == ("one.yaml", "avg", "")
    assert found.judgement is not None
    assert (found.judgement.decision, found.judgement.users) == (decision, 3)
    # without a statement, and shows that
    assert [line for line in found.judgement.deviations if "without" in line]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"model": "mine"}, "mine: no run has this label"),
        ({"data": "anki"}, "no board of anki"),
        ({"level": 0.5}, "one.yaml: level"),
    ],
)
def test_registrations_without_a_submission_are_listed(register, changed, reason: str) -> None:
    found = register(**changed)
    assert (found.judgement, reason in found.reason) == (None, True), found.reason


def test_several_hypotheses_about_a_model_are_judged(board: Path, register: Register) -> None:
    first = register().judgement
    assert first is not None
    registered("other", metric="brier")(board)
    stated = {"digest": first.prereg.digest, "decision": None, "content": {}, "verdict": []}
    about(prereg=stated)(board / "avg")
    found = [each.judgement for each in registrations(board, read_leaderboard(board))]
    assert [len(each.deviations) for each in found if each] == [0, 1]
    assert not [each for each in found if each and each.decision == "no verdict"]

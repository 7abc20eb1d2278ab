"""Pre-registrations of a leaderboard, judged by its scores and by nothing that authors state."""

from __future__ import annotations

from pathlib import Path

from submissions import about, registered

from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.registrations import Registration, registrations


def registered_in(board: Path, **changed: object) -> Registration:
    """Register a hypothesis in the leaderboard, and judge it."""
    registered("one", **changed)(board)
    (one,) = registrations(board, read_leaderboard(board))
    return one


def test_a_registration_is_judged_by_the_board_it_is_about(board: Path) -> None:
    for changed in (
        {},
        {"users": 4},
        {"options": {"data.seed": 6}},
        {"options": {"protocol.folds": 2}},
        {"fingerprint": "0000"},
    ):
        found = registered_in(board, **changed)
        assert (found.file, found.model, found.reason) == ("one.yaml", "avg", "")
        assert found.judgement is not None
        decision = "no verdict" if changed else "undecided"
        assert (found.judgement.decision, found.judgement.users) == (decision, 3)
        # without a statement, and shows that
        assert [line for line in found.judgement.deviations if "without" in line]


def test_registrations_without_a_submission_are_listed(board: Path) -> None:
    for changed, reason in (
        ({"model": "mine"}, "mine: no run has this label"),
        ({"data": "anki"}, "no board of anki"),
        ({"level": 0.5}, "one.yaml: level"),
    ):
        found = registered_in(board, **changed)
        assert (found.judgement, reason in found.reason) == (None, True), found.reason


def test_several_hypotheses_about_a_model_are_judged(board: Path) -> None:
    first = registered_in(board).judgement
    assert first is not None
    registered("other", metric="brier")(board)
    stated = {"digest": first.prereg.digest, "decision": None, "content": {}, "verdict": []}
    about(prereg=stated)(board / "avg")
    found = [each.judgement for each in registrations(board, read_leaderboard(board))]
    assert [len(each.deviations) for each in found if each] == [0, 1]
    assert not [each for each in found if each and each.decision == "no verdict"]

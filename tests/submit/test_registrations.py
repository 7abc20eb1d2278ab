"""Pre-registrations of a leaderboard, judged by its scores and by nothing that authors state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from submissions import about

from srs_eval.comparison.prereg import read_prereg
from srs_eval.submit.checking import Asked, check
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.registrations import Registration, registrations

REGISTERED = {
    "hypothesis": "The mean beats a constant.",
    "model": "avg",
    "baseline": "constant",
    "metric": "log_loss",
    "smallest_difference": 0.00001,
    "users": 3,
    "data": "synthetic",
    "protocol": "srs_benchmark",
    "stopping_rule": "three users",
    "direction": "not_worse",
    "options": {"data.seed": 5, "seed": 1},
}
Register = Callable[..., Registration]


@pytest.fixture
def register(board: Path) -> Register:
    """Register a hypothesis in the leaderboard, and judge it."""

    def found(**changed: object) -> Registration:
        file = board / "prereg" / "one.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump({**REGISTERED, **changed}), encoding="utf-8")
        (one,) = registrations(board, read_leaderboard(board))
        return one

    return found


def state(board: Path, **stated: Any) -> None:
    """Write what the submission of the model states."""
    about(prereg={"verdict": [], "content": {}, **stated})(board / "avg")


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


def test_what_a_submission_states_has_to_agree_with_the_file(
    board: Path, register: Register
) -> None:
    judged = register().judgement
    assert judged is not None
    digest = judged.prereg.digest
    lie = "refuted" if judged.decision != "refuted" else "kept"
    for decision, wrong in ((judged.decision, 0), (None, 0), (lie, 1), (f"{lie}, 1 deviation", 1)):
        state(board, digest=digest, decision=decision)
        for folder in (board, board / "avg"):
            problems = [each.kind for each in check([folder], Asked(logs=False)).problems]
            assert problems == ["prereg"] * wrong, (decision, folder)
    state(board, digest=digest, decision=None)
    register(model="mine", baseline="avg")  # the digest is no longer that of a file
    assert not check([board], Asked(logs=False)).problems
    state(board, digest=read_prereg(board / "prereg/one.yaml").digest, decision=None)
    (problem,) = check([board], Asked(logs=False)).problems
    assert (problem.kind, problem.where) == ("prereg", "model")


def test_a_stated_digest_without_a_file_has_no_verdict(board: Path, register: Register) -> None:
    state(board, digest="0" * 64, decision="kept")
    assert registrations(board, read_leaderboard(board)) == []
    found = register().judgement
    assert found is not None
    assert found.decision == "no verdict"
    (problem,) = check([board], Asked(logs=False)).problems
    assert (problem.kind, problem.where) == ("prereg", "prereg.digest")


def test_several_hypotheses_about_a_model_are_judged(board: Path, register: Register) -> None:
    first = register().judgement
    assert first is not None
    other = board / "prereg" / "other.yaml"
    other.write_text(yaml.safe_dump({**REGISTERED, "metric": "brier"}), "utf-8")
    state(board, digest=first.prereg.digest, decision=None)
    found = [each.judgement for each in registrations(board, read_leaderboard(board))]
    assert [len(each.deviations) for each in found if each] == [0, 1]
    assert not [each for each in found if each and each.decision == "no verdict"]

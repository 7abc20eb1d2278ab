"""The command that pretrains, and a run with the weights it made."""

from pathlib import Path

import pytest

from srs_eval import settings
from srs_eval.evaluate import EvaluateUser
from srs_eval.pretrain import command

LOGS = ["data=synthetic", "data.users=3", "data.size_scale=0.05"]


def test_weights_are_written_and_nobody_they_have_seen_is_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gru.safetensors"
    assert command(["algo=gru", *LOGS, f"weights={path}"]) == 0
    said = capsys.readouterr().out
    assert "39 parameters" in said
    assert "3 users, which will not be scored" in said
    cfg = settings.composed(
        ["algo=gru", *LOGS, "data.users=4", f"algo.weights={path}", "tracking=none"]
    )
    built = settings.build(cfg, dict.fromkeys(settings.BUILT_GROUPS, ""))
    evaluate = EvaluateUser(built["data"], built["algo"], built["protocol"], seed=0, curves=0)
    statuses = [
        {fit.status: fit.reason for fit in evaluate(user).fits} for user in built["data"].users()
    ]
    assert [set(status) for status in statuses] == [{"skipped"}] * 3 + [{"ok"}]
    assert all("was seen in pretraining" in status["skipped"] for status in statuses[:3])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["algo=gru"], "write weights=FILE.safetensors"),
        (["algo=gru", "weights=gru.pt"], "write weights=FILE.safetensors"),
        (["algo=grru", "weights=x.safetensors"], "did you mean"),
        (["algo=avg", *LOGS, "weights=x.safetensors"], "learns nothing from other users"),
    ],
)
def test_a_command_that_cannot_be_followed_says_why(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(words) == 2
    assert reason in capsys.readouterr().err


def test_help_tells_how_to_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["--help"]) == 0
    assert "weights=gru.safetensors" in capsys.readouterr().out

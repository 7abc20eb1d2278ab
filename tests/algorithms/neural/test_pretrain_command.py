"""The command that pretrains, and a run with the weights it made."""

import numpy as np

from srs_eval.algorithms import baselines
from srs_eval.commands.pretrain import command
from srs_eval.config import settings
from srs_eval.config.building import build
from srs_eval.evaluation.evaluate import EvaluateUser

LOGS = ["data=synthetic", "data.users=3", "data.size_scale=0.02"]


def test_weights_are_written_and_nobody_they_have_seen_is_scored(tmp_path, capsys):
    path = tmp_path / "gru.safetensors"
    assert command(["algo=gru", *LOGS, f"weights={path}"]) == 0
    said = capsys.readouterr().out
    assert "39 parameters" in said
    assert "3 users, which will not be scored" in said
    cfg = settings.composed(
        ["algo=gru", *LOGS, "data.users=4", f"algo.weights={path}", "tracking=none"]
    )
    built = build(cfg, dict.fromkeys(settings.BUILT_GROUPS, ""))
    evaluate = EvaluateUser(built["data"], built["algo"], built["protocol"], seed=0, curves=0)
    statuses = [
        {fit.status: fit.reason for fit in evaluate(user).fits} for user in built["data"].users()
    ]
    assert [set(status) for status in statuses] == [{"skipped"}] * 3 + [{"ok"}]
    assert all("was seen in pretraining" in status["skipped"] for status in statuses[:3])


class Shy:
    """Can be pretrained, and does not say where what it has learned is."""

    same_day = sees_truth = False
    when = "previous_review"
    lessons = 0

    def __init__(self, prior=0.0):
        """Accept what the option file gives."""

    def fit(self, reviews, rows, rng):
        """Never called."""

    def pretrain(self, users, rng):
        type(self).lessons += 1
        return self


class Forgetful(Shy):
    """Has a place for what it learns, and leaves it empty."""

    weights = None


class Level:
    """Everything the protocol asks for, of nothing of srs_eval."""

    def __init__(self, level, reviews):
        self.parameters = (level,)
        self.seen = [type("Seen", (), {"reviews": reviews})()]

    def save(self, path):
        path.write_text(str(self.parameters[0]), encoding="utf-8")


class Levelled(Forgetful):
    """Learns how much others recall."""

    def pretrain(self, users, rng):
        recalled = np.concatenate([reviews.recalled[rows] for reviews, rows in users])
        self.weights = Level(float(recalled.mean()), len(recalled))
        return self


def test_an_algorithm_of_a_stranger_is_pretrained_if_it_has_what_the_command_needs(
    tmp_path, monkeypatch, capsys
):
    path = tmp_path / "level.safetensors"
    command_line = ["algo=avg", *LOGS, f"weights={path}"]
    assert command(command_line) == 2
    assert "cannot be pretrained" in capsys.readouterr().err
    for kind, told, lessons in (
        (Shy, "no weights for the result", 0),
        (Forgetful, "weights are None", 1),
    ):
        kind.lessons = 0
        monkeypatch.setattr(baselines, "Average", kind)
        assert command(command_line) == 2
        assert told in capsys.readouterr().err
        assert kind.lessons == lessons
    monkeypatch.setattr(baselines, "Average", Levelled)
    assert command(command_line) == 0
    assert "1 parameters" in capsys.readouterr().out
    assert 0.3 < float(path.read_text(encoding="utf-8")) < 1

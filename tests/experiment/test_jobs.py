"""How jobs end, and what ends an evaluation early."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

from srs_eval.algorithms.baselines import Average
from srs_eval.errors import (
    ConfigError,
    FailedAlikeError,
    Pruned,
    ShardsMissingError,
    SrsEvalError,
)
from srs_eval.experiment.attempt import Work, attempt
from srs_eval.experiment.failures import FailingAlike
from srs_eval.experiment.watching import RunningMeans, step_callback
from srs_eval.metrics.panel import default_panel
from srs_eval.nouns import Fit, Predictions

RAISED: dict[str, BaseException] = {
    "pruned": Pruned("others were better"),
    "option": ConfigError("algo=x: no such option"),
    "error": SrsEvalError("no log could be read"),
    "shards": ShardsMissingError("shard=1/2 is missing"),
    "full disk": OSError(28, "No space left on device", "scores.parquet"),
    "nameless": OSError(28, "No space left on device"),
    "defect": RuntimeError("postgresql://me:secret-word@host/runs"),
    "stopped": KeyboardInterrupt(),
    "alone": SrsEvalError("no log could be read"),
    "alone, with a finished user": SrsEvalError("no log could be read"),
}


def test_how_a_job_ended_is_kept_and_how_to_go_on_is_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden_text: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STORE", str(RAISED["defect"]))
    text = ""
    for name, error in RAISED.items():
        folder, is_alone = tmp_path / name, name.startswith("alone")
        (folder / "parts" / "users").mkdir(parents=True)
        if name != "alone":
            (folder / "parts" / "users" / "part-1.parquet").touch()
        if not is_alone:
            (folder / "summary.json").touch()

        def run(error: BaseException = error) -> NoReturn:
            raise error

        sweep = None if is_alone else tmp_path
        try:
            ended: object = attempt(
                lambda run=run: Work("avg", run), label="?", folder=folder, sweep_folder=sweep
            )
        except KeyboardInterrupt:
            ended = "KeyboardInterrupt"
        kept = json.loads((folder / "job.json").read_text())
        assert kept.pop("seconds") > 0
        said = [line for line in capsys.readouterr().err.splitlines() if line[:2] != "  "]
        text += "\n".join([f"== {name}: {ended}", json.dumps(kept), *said, ""])
    golden_text("jobs_ended", text)


def failed(user: int, reason: str = "fold 0: row 7 is empty") -> list[Fit]:
    return [Fit(user, 0, "failed", f"user {user}, {reason}"), Fit(user, -1, "failed", "a log")]


def test_an_evaluation_stops_where_the_first_three_users_fail_alike_and_others_are_left() -> None:
    def is_stopped(users: int, *fits: list[Fit], end: bool = False) -> bool:
        failing = FailingAlike(users)
        for each in fits:
            try:
                failing.add(each)
            except FailedAlikeError:
                return True
            if end:
                failing.end()
        return False

    three = [failed(user) for user in (1, 2, 3)]
    assert is_stopped(4, *three)
    assert not is_stopped(3, *three)
    assert not is_stopped(4, *three[:2])
    assert not is_stopped(4, *three[:2], three[0])
    assert not is_stopped(4, *three[:2], failed(3, "fold 0: it diverged"), failed(4))
    assert not is_stopped(4, *three, end=True)


def test_means_of_the_first_users_are_reported_in_order_however_they_end() -> None:
    told: list[tuple[int, float]] = []
    watch: Any = SimpleNamespace(
        metric="log_loss", report=lambda step, value: told.append((step, value))
    )
    chunks: Any = [SimpleNamespace(users=users) for users in (("a", "b"), ("c",), ("d", "e"))]
    means = RunningMeans.of(watch, chunks)
    assert means is not None
    assert means.metric == "log_loss"
    means.add(("c",), (6.0,))
    means.add(("d", "e"), (math.nan, 1.0))
    assert told == []
    means.add(("a", "b"), (math.nan, 2.0))
    assert told == [(2, 2.0), (3, 4.0), (4, 4.0), (5, 3.0)]
    assert RunningMeans.of(None, chunks) is None
    watch.report = None
    assert RunningMeans.of(watch, chunks) is None


@pytest.mark.parametrize(
    ("has_steps", "users", "folds", "reports"),
    [(True, 1, 1, True), (False, 1, 1, False), (True, 2, 1, False), (True, 1, 2, False)],
)
def test_steps_are_reported_of_the_only_fit_there_is(
    *, has_steps: bool, users: int, folds: int, reports: bool
) -> None:
    kind = type("InSteps", (Average,), {"fit_in_steps": Average.fit}) if has_steps else Average
    protocol = SimpleNamespace(folds=folds)
    experiment: Any = SimpleNamespace(algorithm=kind(), panel=default_panel(), protocol=protocol)
    told: list[tuple[int, float]] = []
    watch: Any = SimpleNamespace(metric="auc", report=lambda *step: told.append(step))
    on_step = step_callback(watch, experiment, users)
    assert (on_step is not None) == reports
    if on_step is not None:
        rows = np.arange(4)
        p, recalled = np.array([0.9, 0.4, 0.6, 0.5]), rows != 3
        on_step(7, Predictions(("ann",), rows * 0, rows * 0, rows, rows, p=p, recalled=recalled))
        assert told == [(7, 2 / 3)]
    watch.report = None
    assert step_callback(watch, experiment, users) is None
    assert step_callback(None, experiment, users) is None

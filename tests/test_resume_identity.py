"""A run that is continued takes over nothing that is not its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import QUIET, SMALL
from commands import run_here as command
from invented import Logs, invented_log

from srs_eval.algorithms.baselines import Average
from srs_eval.errors import ConfigError
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.evaluation.scoring import ScoredUser, score_user
from srs_eval.experiment.evaluate import done_before
from srs_eval.experiment.experiment import Experiment
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import User
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.partial import FinishedUsers

LOGS = {2: invented_log(user=2, seed=2), 3: invented_log(user=3, seed=3)}


def evaluated(user: User) -> ScoredUser:
    work = EvaluateUser(Logs(LOGS), Average(), SrsBenchmark(), seed=1, curves=0)
    return score_user(work(user), Panel([LogLoss()]))


@pytest.fixture
def kept(tmp_path: Path) -> FinishedUsers:
    finished = FinishedUsers(tmp_path / "users", stamp="settings code")
    finished.open(resume=False)
    for number, user in enumerate(LOGS):
        finished.save(number, evaluated(user))
    return finished


def done(kept: FinishedUsers, logs: Logs) -> list[User]:
    experiment = Experiment(Average(), logs, SrsBenchmark(), Panel([LogLoss()]))
    return list(done_before(experiment, list(logs.users()), kept))


def test_finished_users_whose_log_is_the_same_are_taken_over(kept: FinishedUsers) -> None:
    assert done(kept, Logs(LOGS)) == [2, 3]


def test_a_user_in_the_place_of_another_does_not_get_the_others_results(
    kept: FinishedUsers,
) -> None:
    newcomer = {1: invented_log(user=1, seed=1), **LOGS}
    assert done(kept, Logs(newcomer)) == []
    assert kept.load(0, 1) is None


def test_a_user_whose_log_has_changed_is_done_again(kept: FinishedUsers) -> None:
    log = LOGS[2]
    other = replace(log, rating=np.where(np.arange(len(log)) == 7, 1, log.rating))
    assert (other.rating != log.rating).any()
    assert done(kept, Logs({2: other, 3: LOGS[3]})) == [3]


def test_other_settings_or_code_are_refused(kept: FinishedUsers) -> None:
    with pytest.raises(ConfigError, match="other settings or other code"):
        replace(kept, stamp="settings changed").open(resume=True)


def test_a_folder_of_somebody_elses_is_neither_used_nor_deleted(tmp_path: Path) -> None:
    theirs = tmp_path / "users" / "precious.txt"
    theirs.parent.mkdir()
    theirs.write_text("mine", encoding="utf-8")
    finished = FinishedUsers(theirs.parent, stamp="settings code")
    for resume in (False, True):
        with pytest.raises(ConfigError, match="not of a run"):
            finished.open(resume=resume)
    finished.remove()
    assert theirs.read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_a_run_into_a_folder_with_figures_of_somebodys_leaves_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "out" / "figures" / "precious.png"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"mine")
    stale = theirs.with_name("roc.png")
    stale.write_bytes(b"of an earlier run")
    monkeypatch.chdir(tmp_path)
    assert command(["algo=avg", *SMALL, *QUIET, "hydra.run.dir=out"]) == 0
    assert theirs.read_bytes() == b"mine"
    assert not stale.exists()

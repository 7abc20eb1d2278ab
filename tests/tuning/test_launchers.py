"""Sweeps whose jobs run in other processes, compared with those that run in this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import optuna
import pytest
from cases import rest_nightly
from commands import QUIET, SMALL, Done, Here, apart, outcome_of, summary_of
from mlflow import MlflowClient
from omegaconf import OmegaConf

for name in ("joblib", "submitit"):
    reason = f"hydra-{name}-launcher is needed"
    pytest.importorskip(f"hydra_plugins.hydra_{name}_launcher", reason=reason)

BRIEF = (*SMALL, "figures=false", "panel=quick", "curves_per_user=0")
HLR = ("-m", "algo=hlr", "sweep=optuna_fsrs", *BRIEF, "tracking=none", "hydra.sweeper.n_trials=2")
LAUNCHERS = ("joblib", "submitit_local")
AUC = ("hydra.sweeper.metric=auc", "hydra.sweeper.direction=maximize")
PAIRS = ("hydra.sweeper.workers=2", "hydra.sweeper.n_trials=3")
# An algorithm whose process may end in the middle of a fit, as one that runs out of memory does.
MORTAL = """
    import os
    from srs_eval.algorithms.half_life.hlr import Hlr

    class Mortal(Hlr):
        def __init__(self, *, dies=False, **options):
            super().__init__(**options)
            self.dies = dies
            if dies:  # in the job itself: a fit would end its worker alone
                os._exit(3)
"""


def in_folder(here: Here) -> str:
    """Return the absolute folder: a reused worker has the one of another test."""
    return f"hydra.sweep.dir={here.folder / 'out'}"


def study_in(folder: Path) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.load_study(study_name="search", storage=f"sqlite:///{folder / 'optuna.db'}")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("objective", "launchers"),
    [((*AUC, *PAIRS), LAUNCHERS), ((), LAUNCHERS[:1])],
    ids=["auc in pairs", "log_loss"],
)
def test_a_search_finds_the_same_with_every_launcher(
    here: Here, objective: tuple[str, ...], launchers: tuple[str, ...]
) -> None:
    metric, n_trials = ("auc", 3) if objective else ("log_loss", 2)
    found = {}
    for name in ("basic", *launchers):
        out = here.folder / name
        done = here(*HLR, *objective, f"hydra/launcher={name}", f"hydra.sweep.dir={out}")
        assert done.status == 0, done.err
        trials = study_in(out).trials
        summaries = [summary_of(out / f"{number}_hlr") for number in range(n_trials)]
        reported = [summary["metrics"][metric]["mean_users"] for summary in summaries]
        assert [trial.value for trial in trials] == reported
        best = max(reported) if metric == "auc" else min(reported)
        assert study_in(out).best_value == best
        assert f"best {best:.4f}, trial {reported.index(best)}" in done.out
        protocols = {summary["protocol"] for summary in summaries}
        assert protocols == {"validation80_of_srs_benchmark"}
        tags = [summary["tags"]["trial"] for summary in summaries]
        assert tags == [str(number) for number in range(n_trials)]
        overlay = OmegaConf.load(out / "experiment" / "best.yaml")
        rows = [summary["rows_fingerprint"] for summary in summaries]
        found[name] = ([t.params for t in trials], reported, rows, overlay)
    assert all(found[name] == found["basic"] for name in launchers)


@pytest.mark.nightly
def test_a_search_by_test_rows_is_refused_with_every_launcher(here: Here) -> None:
    words = ["protocol=srs_benchmark", "hydra/launcher=joblib", in_folder(here)]
    done = here(*HLR, *words, "hydra.sweeper.max_failures=1")
    assert done.status == 2
    assert outcome_of(here.folder / "out" / "0_hlr")["exit_status"] == 2
    assert not (here.folder / "out" / "0_hlr" / "summary.json").exists()


@pytest.mark.slow
def test_a_search_killed_within_a_batch_ends_as_with_the_basic_launcher(tmp_path: Path) -> None:
    app = Path(__file__).parents[2] / "examples" / "other_app" / "train.py"
    words = ["-m", *PAIRS, "hydra.sweeper.n_trials=6", "hydra.sweeper.pruner=none"]

    def start(folder: str, launcher: str) -> subprocess.Popen[bytes]:
        place = [f"hydra.sweep.dir={tmp_path / folder}", f"hydra/launcher={launcher}"]
        command = [sys.executable, str(app), *words, *place]
        return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)

    whole, killed = start("whole", "basic"), start("killed", "joblib")
    while not (tmp_path / "killed" / "2").exists():
        assert killed.poll() is None
        time.sleep(0.005)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert [whole.wait(300), start("killed", "joblib").wait(300)] == [0, 0]
    one, other = (
        [(trial.params, trial.value) for trial in study_in(tmp_path / folder).trials]
        for folder in ("whole", "killed")
    )
    assert len(one) == 6
    assert one == other


@pytest.mark.slow
@pytest.mark.parametrize("launcher", rest_nightly(LAUNCHERS))
def test_a_grid_of_another_launcher_has_the_runs_of_one_sweep(here: Here, launcher: str) -> None:
    own = here.folder / "own" / "algo"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text(
        "_target_: srs_eval.algorithms.half_life.hlr.Hlr\nprior_weight: 2.0\n"
    )
    before, store = here.folder / "before", f"sqlite:///{here.folder / 'runs.db'}"
    baseline = here("algo=avg", *BRIEF, "tracking=none", f"hydra.run.dir={before}")
    assert baseline.status == 0, baseline.err
    words = ["-m", "--config-dir", "own", "algo=mine,avg", *BRIEF, f"baseline={before}"]
    words += [f"hydra/launcher={launcher}", f"tracking.uri={store}"]
    done = here(*words, in_folder(here))
    assert done.status == 0, done.err
    mine, avg = (here.folder / "out" / job for job in ("0_mine", "1_avg"))
    # the arguments of an option of one's own are known, and so not part of its label
    assert [outcome_of(folder)["label"] for folder in (mine, avg)] == ["mine", "avg"]
    assert summary_of(avg)["metrics"] == summary_of(before)["metrics"]
    client = MlflowClient(store)
    runs = client.search_runs([e.experiment_id for e in client.search_experiments()])
    assert len({run.data.tags["sweep_id"] for run in runs}) == 1
    assert [run.info.status for run in runs] == ["FINISHED"] * 2
    assert {run.data.tags["baseline"] for run in runs} == {"avg"}
    assert {"mine", "avg"} <= {line.partition(" ")[0] for line in done.out.splitlines()}


@pytest.mark.nightly
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_job_whose_process_ends_is_reported_and_the_others_are_kept(
    tmp_path: Path, launcher: str
) -> None:
    (tmp_path / "mortal.py").write_text(textwrap.dedent(MORTAL))
    (tmp_path / "own" / "algo").mkdir(parents=True)
    option = "_target_: mortal.Mortal\nprior_weight: 1.0\ndies: false\n"
    (tmp_path / "own" / "algo" / "mortal.yaml").write_text(option)

    def run(*words: str) -> Done:
        return apart(
            tmp_path,
            *("-m", "--config-dir", "own", "algo=mortal", f"hydra/launcher={launcher}"),
            *(*BRIEF, *QUIET, *words),
            env={"PYTHONPATH": ":".join([str(tmp_path), *sys.path])},
            timeout=300,
        )

    grid = run("algo.dies=false,true", "hydra.sweep.dir=grid")
    assert grid.status == 1
    assert "Traceback" not in grid.text
    assert outcome_of(tmp_path / "grid" / "1_mortal")["status"] == "interrupted"
    words = ["hydra/sweeper=srs_eval_optuna", "protocol=validation", *PAIRS]
    space = ["algo.dies=false,true", "hydra.sweeper.start_from_config=true"]
    search = run(*words, *space, "hydra.sweep.dir=search")
    assert search.status == 1
    assert "Traceback" not in search.text
    states = [trial.state.name for trial in study_in(tmp_path / "search").trials]
    assert states == ["COMPLETE", "FAIL"]
    assert (tmp_path / "search" / "experiment" / "best.yaml").is_file()

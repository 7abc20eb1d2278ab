"""Sweeps whose jobs run in other processes, compared with those that run in this one."""

import sys
import textwrap

import optuna
import pytest
from cases import rest_nightly
from commands import QUIET, SMALL, apart, outcome_of, summary_of
from mlflow import MlflowClient

for name in ("joblib", "submitit"):
    reason = f"hydra-{name}-launcher is needed"
    pytest.importorskip(f"hydra_plugins.hydra_{name}_launcher", reason=reason)

BRIEF = (*SMALL, "figures=false", "panel=quick", "curves_per_user=0")
LAUNCHERS = ("joblib", "submitit_local")
# An algorithm whose process may end, as one that runs out of memory does.
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


@pytest.mark.slow
@pytest.mark.parametrize("launcher", rest_nightly(LAUNCHERS))
def test_a_grid_of_another_launcher_has_the_runs_of_one_sweep(here, launcher):
    own = here.folder / "own" / "algo"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text(
        "_target_: srs_eval.algorithms.combined.blend.Blend\nbase: half_life\n"
    )
    (own / "half_life.yaml").write_text(
        "_target_: srs_eval.algorithms.half_life.hlr.Hlr\nprior_weight: 2.0\n"
    )
    before, store = here.folder / "before", f"sqlite:///{here.folder / 'runs.db'}"
    baseline = here("algo=avg", *BRIEF, "tracking=none", f"hydra.run.dir={before}")
    assert baseline.status == 0, baseline.err
    words = ["-m", "--config-dir", "own", "algo=mine,avg", *BRIEF, f"baseline={before}"]
    # an absolute folder: a reused worker has the one of another test
    words += [f"hydra/launcher={launcher}", f"hydra.sweep.dir={here.folder / 'out'}"]
    done = here(*words, f"tracking.uri={store}")
    assert done.status == 0, done.err
    mine, avg = (here.folder / "out" / job for job in ("0_mine", "1_avg"))
    # the arguments of an option of one's own are known, and so not part of its label
    labels = [outcome_of(folder)["label"] for folder in (mine, avg)]
    assert labels == ["mine[Hlr(prior_weight=2.0)]", "avg"]
    assert summary_of(avg)["metrics"] == summary_of(before)["metrics"]
    client = MlflowClient(store)
    runs = client.search_runs([e.experiment_id for e in client.search_experiments()])
    assert len({run.data.tags["sweep_id"] for run in runs}) == 1
    assert [run.info.status for run in runs] == ["FINISHED"] * 2
    assert {run.data.tags["baseline"] for run in runs} == {"avg"}


@pytest.mark.nightly
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_job_whose_process_ends_is_reported_and_the_others_are_kept(tmp_path, launcher):
    (tmp_path / "mortal.py").write_text(textwrap.dedent(MORTAL))
    (tmp_path / "own" / "algo").mkdir(parents=True)
    option = "_target_: mortal.Mortal\nprior_weight: 1.0\ndies: false\n"
    (tmp_path / "own" / "algo" / "mortal.yaml").write_text(option)

    def run(*words):
        command = ["-m", "--config-dir", "own", "algo=mortal", "algo.dies=false,true"]
        command += [f"hydra/launcher={launcher}", *BRIEF, *QUIET, *words]
        path = ":".join([str(tmp_path), *sys.path])
        done = apart(tmp_path, *command, env={"PYTHONPATH": path}, timeout=300)
        assert (done.status, "Traceback" in done.text) == (1, False)

    run("hydra.sweep.dir=grid")
    assert outcome_of(tmp_path / "grid" / "1_mortal")["status"] == "interrupted"
    words = ["hydra/sweeper=srs_eval_optuna", "protocol=validation", "hydra.sweeper.workers=2"]
    words += ["hydra.sweeper.n_trials=3", "hydra.sweeper.start_from_config=true"]
    run(*words, "hydra.sweep.dir=search")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{tmp_path / 'search' / 'optuna.db'}"
    kept, lost = optuna.load_study(study_name="search", storage=storage).trials
    assert (kept.state.name, lost.state.name) == ("COMPLETE", "FAIL")
    summary = summary_of(tmp_path / "search" / "0_mortal")
    assert kept.value == summary["metrics"]["log_loss"]["mean_users"]
    assert summary["protocol"] == "validation80_of_srs_benchmark"
    assert (tmp_path / "search" / "experiment" / "best.yaml").is_file()

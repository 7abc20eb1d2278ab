"""A run as it is found again in MLflow: the same numbers, and all else a person looks for."""

import contextlib
import io
from pathlib import Path

import pytest
from commands import Done, run_here, summary_of

from srs_eval.tracking import view

pytestmark = pytest.mark.slow
SMALL = ("data.users=2", "data.size_scale=0.02", "data.max_reviews=600")
JOBS = {"avg": "out/0_avg", "moving_avg": "out/1_moving_avg"}


class Study:
    """The runs of a command, in a store of their own."""

    def __init__(self, folder, done):
        from mlflow import MlflowClient

        self.folder = folder
        self.done = done
        self.client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
        experiment = self.client.get_experiment_by_name("srs_eval")
        self.runs = self.client.search_runs([experiment.experiment_id])

    def run(self, label):
        (found,) = [run for run in self.runs if run.data.tags["label"] == label]
        return found


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracked")
    words = ["-m", "algo=avg,moving_avg", *SMALL, "figures=false", "hydra.sweep.dir=out"]
    out, err = io.StringIO(), io.StringIO()  # capsys belongs to single tests
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run_here([*words, "notes=what I tried", "+tags.who=me"])
    assert status == 0, err.getvalue()
    return Study(folder, Done(status, out.getvalue(), err.getvalue()))


def test_every_job_is_a_finished_run_that_the_view_shows_and_the_later_is_compared(study):
    assert {run.info.status for run in study.runs} == {"FINISHED"}
    assert not any("mlflow.parentRunId" in run.data.tags for run in study.runs)
    names = sorted(str(run.info.run_name) for run in study.runs)
    assert names == ["avg on synthetic", "moving_avg on synthetic"]
    means = []
    for label, place in JOBS.items():
        kept, summary = study.run(label).data, summary_of(study.folder / place)
        counts = (summary["users"], summary["reviews"])
        assert (kept.metrics["users/n"], kept.metrics["users/reviews"]) == counts
        means.append(summary["metrics"]["log_loss"]["mean_users"])
        assert kept.metrics["test/log_loss"] == pytest.approx(means[-1], abs=6e-5)
        assert kept.tags["rows_fingerprint"] == summary["rows_fingerprint"]
        assert {"protocol": "srs_benchmark", "who": "me"}.items() <= kept.tags.items()
        assert "what I tried" in kept.tags["mlflow.note.content"]
    first, later = (study.run(label).data for label in JOBS)
    percent = 100 * (means[1] / means[0] - 1)
    assert later.metrics["vs_avg/log_loss_percent"] == pytest.approx(percent, rel=1e-3)
    assert later.tags["baseline"] == "avg"
    assert later.tags["baseline_config_hash"] == first.tags["config_hash"]
    assert not [name for name in first.metrics if name.startswith("vs_")]
    logged = {"params": later.params, "tags": later.tags, "metrics": later.metrics}
    for column in view.COLUMNS:
        kind, _, name = column.partition(".")
        assert kind == "attributes" or name.strip("`") in logged[kind], column
    assert set(view.BARS) <= set(later.metrics)
    end = study.done.out[study.done.out.index("to best") :]
    command = f"ui --workers 1 --backend-store-uri sqlite:///{study.folder / 'mlflow.db'}"
    assert (study.done.out.count(command), command in end) == (1, True)
    assert "compareRunsMode=CHART" in end


def test_the_store_has_the_figures_and_the_files_of_the_output_folder(here, tmp_path):
    store = f"tracking.uri=sqlite:///{here.folder / 'mlflow.db'}"
    found = Study(here.folder, here("algo=hlr", *SMALL, store, "hydra.run.dir=out"))
    (run,) = found.runs
    assert run.info.run_id in found.done.out
    figures = {"calibration", "roc", "users", "forgetting", *view.FIGURES}
    kept = {file.path for file in found.client.list_artifacts(run.info.run_id)}
    assert {f"{name}.svg" for name in figures} <= kept
    for name in ("summary.json", "scores.parquet", "predictions.parquet", "fits.parquet"):
        file = found.client.download_artifacts(run.info.run_id, f"results/{name}", str(tmp_path))
        assert Path(file).read_bytes() == (here.folder / "out" / name).read_bytes()


def test_a_failed_job_is_a_failed_run_that_can_be_found(here):
    (here.folder / "log.csv").write_text("card,rating,time\n1,9,1614600000\n", encoding="utf-8")
    store = f"tracking.uri=sqlite:///{here.folder / 'mlflow.db'}"
    done = here("algo=avg", "data=csv", "data.path=log.csv", store, "hydra.run.dir=out")
    assert done.status == 1
    (run,) = Study(here.folder, done).runs
    assert (run.data.metrics["users/failed"], run.info.status) == (1, "FAILED")

"""A run as it is found again in MLflow: the same numbers, and all else a person looks for."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from commands import Done, Here, run_here, summary_of

from srs_eval.tracking import view

if TYPE_CHECKING:
    from mlflow.entities import Run

pytestmark = pytest.mark.slow
SMALL = ("data.users=2", "data.size_scale=0.02", "data.max_reviews=600", "data.version=1")
SECTIONS = {"log_loss": "test", "rmse_bins": "calib", "auc": "discrimination"}
JOBS = {"avg": "out/0_avg", "moving_avg": "out/1_moving_avg"}


class Study:
    """The runs of a command, in a store of their own."""

    def __init__(self, folder: Path, done: Done) -> None:
        from mlflow import MlflowClient

        self.folder = folder
        self.done = done
        self.client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
        experiment = self.client.get_experiment_by_name("srs_eval")
        assert experiment is not None
        self.runs = self.client.search_runs([experiment.experiment_id])

    def run(self, label: str) -> Run:
        (found,) = [run for run in self.runs if run.data.tags["label"] == label]
        return found

    def artifacts(self, run: Run, folder: str | None = None) -> set[str]:
        return {file.path for file in self.client.list_artifacts(run.info.run_id, folder)}


def shown(value: float | None) -> Any:
    """Return what the UI shows of a metric: four digits or decimals."""
    return None if value is None else pytest.approx(value, abs=6e-5, rel=6e-4)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("tracked")
    words = ["-m", "algo=avg,moving_avg", *SMALL, "figures=false", "hydra.sweep.dir=out"]
    out, err = io.StringIO(), io.StringIO()  # capsys belongs to single tests
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
            patch.delenv(name)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run_here([*words, "notes=what I tried", "+tags.who=me"])
    assert status == 0, err.getvalue()
    return Study(folder, Done(status, out.getvalue(), err.getvalue()))


def test_every_job_is_one_flat_finished_run_with_the_metrics_of_its_summary(study: Study) -> None:
    assert {run.info.status for run in study.runs} == {"FINISHED"}
    assert not any("mlflow.parentRunId" in run.data.tags for run in study.runs)
    names = sorted(str(run.info.run_name) for run in study.runs)
    assert names == ["avg on synthetic", "moving_avg on synthetic"]
    for label, place in JOBS.items():
        kept, summary = study.run(label).data.metrics, summary_of(study.folder / place)
        by_name = {
            name.partition("/")[2]: value
            for name, value in kept.items()
            if name.partition("/")[0] not in ("users", "pooled", "cost", "vs_avg")
        }
        for name, metric in summary["metrics"].items():
            assert by_name.pop(name, None) == shown(metric["mean_users"])
        assert by_name == {}
        assert {f"{section}/{name}" for name, section in SECTIONS.items()} <= set(kept)
        counts = (summary["users"], summary["reviews"])
        assert (kept["users/n"], kept["users/reviews"]) == counts
        log_loss = summary["metrics"]["log_loss"]
        # no interval where users are too few for one
        assert kept.get("users/log_loss_low") == shown(log_loss["lo"])
        assert kept.get("users/log_loss_high") == shown(log_loss["hi"])
        assert kept["pooled/log_loss"] == shown(log_loss["pooled"])


def test_a_later_job_is_compared_with_the_first_in_percent(study: Study) -> None:
    first, later = (summary_of(study.folder / JOBS[name]) for name in ("avg", "moving_avg"))
    found = study.run("moving_avg").data
    means = [run["metrics"]["log_loss"]["mean_users"] for run in (first, later)]
    percent = 100 * (means[1] / means[0] - 1)
    assert found.metrics["vs_avg/log_loss_percent"] == pytest.approx(percent, rel=1e-3)
    assert found.metrics["vs_avg/users"] == first["users"]
    assert found.tags["baseline"] == "avg"
    assert found.tags["baseline_config_hash"] == study.run("avg").data.tags["config_hash"]
    assert not [name for name in study.run("avg").data.metrics if name.startswith("vs_")]


def test_the_tags_the_data_set_and_the_description_find_the_run_again(study: Study) -> None:
    run = study.run("avg")
    tags, summary = run.data.tags, summary_of(study.folder / JOBS["avg"])
    expected = {"protocol": "srs_benchmark", "who": "me"}
    expected["rows_fingerprint"] = summary["rows_fingerprint"]
    assert expected.items() <= tags.items()
    assert {"data_fingerprint", "config_hash"} <= tags.keys()
    assert len({run.data.tags["rows_fingerprint"] for run in study.runs}) == 1
    (given,) = run.inputs.dataset_inputs
    assert given.dataset.name == "synthetic"
    assert summary["rows_fingerprint"].startswith(given.dataset.digest[:8])
    assert json.loads(given.dataset.profile) == {"num_rows": summary["reviews"], "num_users": 2}
    text, mean = tags["mlflow.note.content"], summary["metrics"]["log_loss"]["mean_users"]
    assert text.startswith(f"log_loss **{mean:.4f}**")
    assert "**avg** on 2 simulated users" in text
    assert f"| log_loss | {mean:.4f} |" in text
    assert "what I tried" in text
    end = study.done.out[study.done.out.index("to best") :]
    command = f"ui --workers 1 --backend-store-uri sqlite:///{study.folder / 'mlflow.db'}"
    assert (study.done.out.count(command), command in end) == (1, True)
    assert "compareRunsMode=CHART" in end


def test_the_store_has_the_figures_and_the_files_of_the_output_folder(
    here: Here, tmp_path: Path
) -> None:
    store = f"tracking.uri=sqlite:///{here.folder / 'mlflow.db'}"
    found = Study(here.folder, here("algo=hlr", *SMALL, store, "hydra.run.dir=out"))
    (run,) = found.runs
    assert run.info.run_id in found.done.out
    figures = {"calibration", "roc", "users", "forgetting", *view.FIGURES}
    assert {f"{name}.svg" for name in figures} <= found.artifacts(run)
    for name in ("summary.json", "scores.parquet", "predictions.parquet", "fits.parquet"):
        kept = found.client.download_artifacts(run.info.run_id, f"results/{name}", str(tmp_path))
        assert Path(kept).read_bytes() == (here.folder / "out" / name).read_bytes()


def test_a_failed_job_is_a_failed_run_that_can_be_found(here: Here) -> None:
    (here.folder / "log.csv").write_text("card,rating,time\n1,9,1614600000\n", encoding="utf-8")
    store = f"tracking.uri=sqlite:///{here.folder / 'mlflow.db'}"
    done = here("algo=avg", "data=csv", "data.path=log.csv", store, "hydra.run.dir=out")
    assert done.status == 1
    (run,) = Study(here.folder, done).runs
    assert (run.data.metrics["users/failed"], run.info.status) == (1, "FAILED")


def test_the_columns_and_bars_of_the_view_are_all_logged(study: Study) -> None:
    data = study.run("moving_avg").data
    logged = {"params": data.params, "tags": data.tags, "metrics": data.metrics}
    for column in view.COLUMNS:
        kind, _, name = column.partition(".")
        assert kind == "attributes" or name.strip("`") in logged[kind], column
    assert set(view.BARS) <= set(data.metrics)

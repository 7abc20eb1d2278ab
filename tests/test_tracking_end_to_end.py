"""A run as it is found again in MLflow: the same numbers, and all else a person looks for."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from commands import SMALL, Done, Here, run_here, summary_of

from srs_eval.tracking import view

if TYPE_CHECKING:
    from mlflow.entities import Run

SECTIONS = {"log_loss": "test", "smece": "calib", "rmse_bins": "calib", "auc": "discrimination"}
JOBS = {"fsrs6": "one", "avg": "many/0_avg", "hlr": "many/1_hlr"}


class Study:
    """One run and one sweep of two jobs, in a store of their own."""

    def __init__(self, folder: Path, single: Done, sweep: Done) -> None:
        from mlflow import MlflowClient

        self.folder = folder
        self.single = single
        self.sweep = sweep
        self.client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
        experiment = self.client.get_experiment_by_name("srs_eval")
        assert experiment is not None
        self.runs = self.client.search_runs([experiment.experiment_id])

    def run(self, label: str) -> Run:
        (found,) = [run for run in self.runs if run.data.tags["label"] == label]
        return found

    def artifacts(self, run: Run, folder: str | None = None) -> set[str]:
        return {file.path for file in self.client.list_artifacts(run.info.run_id, folder)}


def shown(value):
    """Return what the UI shows of a metric: four digits or decimals."""
    return None if value is None else pytest.approx(value, abs=6e-5, rel=6e-4)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("tracked")
    done: list[Done] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
            patch.delenv(name)
        for words in (
            ["algo=fsrs6", *SMALL, "notes=what I tried", "+tags.who=me", "hydra.run.dir=one"],
            ["-m", "algo=avg,hlr", *SMALL, "figures=false", "hydra.sweep.dir=many"],
        ):
            out, err = io.StringIO(), io.StringIO()  # capsys belongs to single tests
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = run_here(words)
            done.append(Done(status, out.getvalue(), err.getvalue()))
    return Study(folder, *done)


@pytest.mark.slow
def test_every_job_is_one_flat_finished_run(study: Study) -> None:
    assert (study.single.status, study.sweep.status) == (0, 0), study.single.err + study.sweep.err
    assert len(study.runs) == 3
    assert {run.info.status for run in study.runs} == {"FINISHED"}
    assert not any("mlflow.parentRunId" in run.data.tags for run in study.runs)
    names = {run.info.run_name for run in study.runs}
    assert names == {"fsrs6 on synthetic", "avg on synthetic", "hlr on synthetic"}


@pytest.mark.parametrize("label", JOBS)
@pytest.mark.slow
def test_the_metrics_are_those_of_the_summary(study: Study, label: str) -> None:
    kept = study.run(label).data.metrics
    summary = summary_of(study.folder / JOBS[label])
    by_name = {}
    for name, value in kept.items():
        section, _, metric = name.partition("/")
        assert metric, name
        if section not in ("users", "pooled", "cost", "vs_avg"):
            by_name[metric] = value
    for name, metric in summary["metrics"].items():
        if metric["mean_users"] is None:
            assert name not in by_name
        else:
            assert by_name.pop(name) == shown(metric["mean_users"])
    assert by_name == {}
    for name, section in SECTIONS.items():
        assert f"{section}/{name}" in kept
    assert kept["users/n"] == summary["users"]
    assert kept["users/reviews"] == summary["reviews"]
    log_loss = summary["metrics"]["log_loss"]
    # no interval where users are too few for one
    assert kept.get("users/log_loss_low") == shown(log_loss["lo"])
    assert kept.get("users/log_loss_high") == shown(log_loss["hi"])
    assert kept["pooled/log_loss"] == shown(log_loss["pooled"])


@pytest.mark.slow
def test_a_later_job_is_compared_with_the_first_in_percent(study: Study) -> None:
    avg, hlr = (
        json.loads((study.folder / JOBS[name] / "summary.json").read_text())
        for name in ("avg", "hlr")
    )
    found = study.run("hlr").data
    means = [run["metrics"]["log_loss"]["mean_users"] for run in (avg, hlr)]
    percent = 100 * (means[1] / means[0] - 1)
    assert found.metrics["vs_avg/log_loss_percent"] == pytest.approx(percent, rel=1e-3)
    assert found.metrics["vs_avg/users"] == avg["users"]
    assert found.tags["baseline"] == "avg"
    assert found.tags["baseline_config_hash"] == study.run("avg").data.tags["config_hash"]
    for label in ("avg", "fsrs6"):
        assert not [name for name in study.run(label).data.metrics if name.startswith("vs_")]


@pytest.mark.slow
def test_the_tags_the_data_set_and_the_description_find_the_run_again(study: Study) -> None:
    run = study.run("fsrs6")
    tags, summary = run.data.tags, summary_of(study.folder / "one")
    expected = {"protocol": "srs_benchmark", "who": "me"}
    expected["rows_fingerprint"] = summary["rows_fingerprint"]
    assert expected.items() <= tags.items()
    assert tags["data_fingerprint"]
    assert tags["config_hash"]
    assert len({run.data.tags["rows_fingerprint"] for run in study.runs}) == 1
    (given,) = run.inputs.dataset_inputs
    assert given.dataset.name == "synthetic"
    assert summary["rows_fingerprint"].startswith(given.dataset.digest[:8])
    assert json.loads(given.dataset.profile) == {"num_rows": summary["reviews"], "num_users": 2}
    text, mean = tags["mlflow.note.content"], summary["metrics"]["log_loss"]["mean_users"]
    assert text.startswith(f"log_loss **{mean:.4f}**")
    assert "**fsrs6** on 2 simulated users" in text
    assert f"Rests on 2 of 2 users and {summary['reviews']:,} of " in text
    assert f"| log_loss | {mean:.4f} |" in text
    assert "what I tried" in text


@pytest.mark.slow
def test_the_store_has_the_figures_and_the_files_of_the_output_folder(
    study: Study, tmp_path: Path
) -> None:
    run = study.run("fsrs6")
    figures = {"calibration", "roc", "users", "forgetting", *view.FIGURES}
    assert {f"{name}.svg" for name in figures} <= study.artifacts(run)
    for name in ("summary.json", "scores.parquet", "predictions.parquet", "fits.parquet"):
        kept = study.client.download_artifacts(run.info.run_id, f"results/{name}", str(tmp_path))
        assert Path(kept).read_bytes() == (study.folder / "one" / name).read_bytes()


@pytest.mark.slow
def test_it_is_said_once_how_to_open_the_ui_and_where_the_run_is(study: Study) -> None:
    command = f"ui --workers 1 --backend-store-uri sqlite:///{study.folder / 'mlflow.db'}"
    assert study.single.out.count(command) == study.sweep.out.count(command) == 1
    assert study.run("fsrs6").info.run_id in study.single.out
    end = study.sweep.out[study.sweep.out.index("to best") :]
    assert command in end
    assert "compareRunsMode=CHART" in end


@pytest.mark.slow
def test_a_failed_job_is_a_failed_run_that_can_be_found(here: Here) -> None:
    (here.folder / "log.csv").write_text("card,rating,time\n1,9,1614600000\n", encoding="utf-8")
    store = f"tracking.uri=sqlite:///{here.folder / 'mlflow.db'}"
    done = here("algo=avg", "data=csv", "data.path=log.csv", store, "hydra.run.dir=out")
    assert done.status == 1
    (run,) = Study(here.folder, done, done).runs
    assert (run.data.metrics["users/failed"], run.info.status) == (1, "FAILED")


@pytest.mark.slow
def test_the_columns_and_bars_of_the_view_are_all_logged(study: Study) -> None:
    data = study.run("hlr").data
    for column in view.COLUMNS:
        kind, _, name = column.partition(".")
        kept = {
            "params": data.params,
            "tags": data.tags,
            "metrics": data.metrics,
            "attributes": {"Dataset": 1},
        }[kind]
        assert name.strip("`") in kept
    assert set(view.BARS) <= set(data.metrics)

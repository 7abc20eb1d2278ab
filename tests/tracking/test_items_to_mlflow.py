"""What is logged comes back through MLflow's own client, or as lines of a file."""

import json
import math
from contextlib import nullcontext
from pathlib import Path
from time import time_ns
from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest
from commands import SMALL, summary_of
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow_store import keep

from srs_eval.errors import TrackingError
from srs_eval.tracking import mlflow_run
from srs_eval.tracking.items import (
    ArtifactFile,
    DatasetInfo,
    Description,
    FigureFiles,
    Param,
    TableRows,
    Tag,
    Value,
)
from srs_eval.tracking.json_lines import JsonLines
from srs_eval.tracking.mlflow_run import DATASET_ATTEMPTS
from srs_eval.tracking.tracker import NoTracker, RunInfo, RunLinks


@pytest.fixture
def client(uri):
    return MlflowClient(tracking_uri=uri)


def test_params_metrics_and_tags_come_back(uri, client):
    params = {"algo": "lstm", "data.path": None}
    values = {
        "test/log_loss": 0.2780328512,
        "users/reviews": 123456.0,
        "calib/rmse(bins)": 1.0,
        "calib/rmse[bins]": 2.0,
        "discrimination/auc": math.nan,
    }
    items = [*(Param(*param) for param in params.items()), Description("**lstm**")]
    items += [*(Value(*value) for value in values.items()), Tag("protocol", "p")]
    items.append(Value("test/brier", math.inf))
    lstm = RunInfo("lstm", tags={"sweep_id": "s1"})
    run = client.get_run(keep(uri, *items, run=lstm).run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params == {"algo": "lstm", "data.path": "None"}
    # four digits, and names that MLflow takes
    assert run.data.metrics == {
        "test/log_loss": 0.278,
        "users/reviews": 123456.0,
        "calib/rmse_bins_": 1.0,
        "calib/rmse_bins__": 2.0,
    }
    expected = {"protocol": "p", "sweep_id": "s1", "mlflow.note.content": "**lstm**"}
    expected["undefined_metrics"] = "discrimination/auc, test/brier"
    assert expected.items() <= run.data.tags.items()
    assert {"host", "pid", "mlflow.runColor", "mlflow.source.name"} <= run.data.tags.keys()
    whole = client.get_run(keep(uri, *items, digits=None).run_id)
    assert whole.data.metrics["test/log_loss"] == values["test/log_loss"]


@pytest.mark.slow
def test_many_params_and_metrics_and_long_texts_are_kept(uri, client):
    links = keep(
        uri,
        *(Param(f"algo.p{n}", n) for n in range(230)),
        Param("long", "x" * 9000),
        *(Value(f"test/m{n}", n) for n in range(1100)),
        *(Tag(f"tag{n}", "y" * 9000) for n in range(120)),
    )
    run = client.get_run(links.run_id)
    assert (len(run.data.params), len(run.data.metrics)) == (231, 1100)
    assert run.data.params["long"] == "x" * 5999 + "…"
    assert len(run.data.tags["tag119"]) == 8000


def test_text_that_databases_refuse_is_written_as_escape_sequences(uri, client):
    names = ["x\x00y", "x\ud800y", "x\r\n\x1b[31my", "x\u202ey", "x\u2028y", "=1+1", "<b>`|"]
    links = keep(
        uri,
        *(Param(f"param {name}", name) for name in names),
        *(Value(f"value {name}", 1.0) for name in names),
        *(Tag(f"tag {name}", name) for name in names),
        DatasetInfo(name=names[0], digest="1", location=names[1], users=1, reviews=1),
    )
    run = client.get_run(links.run_id)
    assert len(run.data.params) == len(run.data.metrics) == len(names)
    texts = {*run.data.params.values(), *run.data.tags.values()}
    assert {"x\\x00y", "x\\ud800y", "x\n\\x1b[31my", "x\\u202ey", "=1+1", "<b>`|"} <= texts
    assert run.inputs.dataset_inputs[0].dataset.name == "x\\x00y"


def test_figures_tables_and_files_come_back(uri, client, tmp_path):
    png, svg, config = (tmp_path / name for name in ("roc.png", "roc.svg", "config.yaml"))
    PIL.Image.new("RGBA", (40, 30), "white").save(png)
    svg.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    config.write_text("seed: 1\n")
    run_id = keep(
        uri,
        FigureFiles("roc", png, svg),
        ArtifactFile(config, "config"),
        TableRows("users", {"user": ["a", "b"], "auc": np.array([0.7, np.nan])}),
    ).run_id
    assert {file.path for file in client.list_artifacts(run_id)} == {
        *("roc.svg", "config", "environment.json", "images", "tables")
    }
    images = [file.path for file in client.list_artifacts(run_id, "images")]
    assert sorted(Path(image).suffix for image in images) == [".png", ".webp"]
    assert all(image.startswith("images/figures~roc+step+0+") for image in images)
    table = json.loads(Path(client.download_artifacts(run_id, "tables/users.json")).read_text())
    assert table == {"columns": ["user", "auc"], "data": [["a", 0.7], ["b", None]]}
    logged = client.get_run(run_id).data.tags["mlflow.loggedArtifacts"]
    assert json.loads(logged) == [{"path": "tables/users.json", "type": "table"}]


def test_runs_of_one_name_share_a_colour_that_no_other_has(uri, client):
    names = ("red", "blue", "red", "red")
    links = [keep(uri, run=RunInfo(name), experiment="colours") for name in names]
    runs = [client.get_run(each.run_id) for each in links]
    colours = [run.data.tags["mlflow.runColor"] for run in runs]
    assert colours[0] == colours[2] == colours[3] != colours[1]
    assert [run.info.run_name for run in runs] == ["red", "blue", "red (2)", "red (3)"]


@pytest.mark.parametrize(
    ("error", "times", "attempts"),
    [
        ("(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.name", 2, 3),
        ("the disk is full", 9, 1),
        ("not UNIQUE", 99, DATASET_ATTEMPTS),
    ],
)
def test_a_data_set_that_runs_make_known_at_once_is_kept_by_each_unless_it_cannot_be(
    uri, client, monkeypatch, error, times, attempts
):
    log_inputs, tries, waits = MlflowClient.log_inputs, [], []

    def late(self, *arguments, **named):
        tries.append(named)
        if len(tries) <= times:
            raise MlflowException(error)
        log_inputs(self, *arguments, **named)

    monkeypatch.setattr(MlflowClient, "log_inputs", late)
    monkeypatch.setattr(mlflow_run, "time", SimpleNamespace(sleep=waits.append, time_ns=time_ns))
    dataset = DatasetInfo("josh", "0123abcd", "logs/josh.csv", 1, 5020)
    with pytest.raises(TrackingError, match=error) if times > 2 else nullcontext():
        (logged,) = client.get_run(keep(uri, dataset).run_id).inputs.dataset_inputs
        assert (logged.dataset.name, logged.dataset.digest) == ("josh", "0123abcd")
        assert json.loads(logged.dataset.source) == {"uri": "logs/josh.csv", "options": {}}
        assert json.loads(logged.dataset.profile) == {"num_rows": 5020, "num_users": 1}
    assert len(tries) == attempts
    assert waits == [0.1 * 2**n for n in range(attempts - 1)]


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_item_is_a_line_that_is_in_the_file_before_the_next_is_made(tmp_path, golden_text):
    tracker, file = JsonLines(), tmp_path / "new" / "items.jsonl"
    tracker.start(RunInfo("run", tags={"label": "avg"}, folder=file.parent))
    given = [
        Param("algo", "avg"),
        Value("test/log_loss", np.float64(0.5)),
        Value("test/auc", float("nan")),
        TableRows("users", {"user": ["a"], "auc": np.array([np.inf])}),
        ArtifactFile(tmp_path / "x.txt", "results"),
    ]

    def made():
        for number, item in enumerate(given):
            assert len(lines(file)) == 1 + number
            yield item

    tracker.log(made())
    assert tracker.finish("finished").run_id == str(file)
    first, *items, last = lines(file)
    assert (first["item"], first["name"], first["tags"]) == ("RunInfo", "run", {"label": "avg"})
    golden_text("json_lines", "".join(f"{json.dumps(item)}\n" for item in items))
    assert (last["item"], last["status"]) == ("RunEnd", "finished")
    for resumes, expected in ((True, 9), (False, 2), (True, 4)):
        tracker.start(RunInfo("run", folder=file.parent, resumes=resumes))
        tracker.finish("failed")
        assert len(lines(file)) == expected


def test_the_command_keeps_its_run_in_a_file_without_mlflow(here):
    done = here("algo=avg", *SMALL, "tracking=jsonl", "figures=false", "hydra.run.dir=out")
    assert done.status == 0, done.err
    kept = lines(here.folder / "out" / "items.jsonl")
    values = {line["name"]: line["value"] for line in kept if line["item"] == "Value"}
    log_loss = summary_of(here.folder / "out")["metrics"]["log_loss"]["mean_users"]
    assert values["test/log_loss"] == log_loss
    assert not (here.folder / "mlflow.db").exists()


def test_no_tracking_draws_the_items_and_keeps_none():
    drawn = []
    tracker = NoTracker()
    tracker.start(RunInfo("run"))
    tracker.log(drawn.append(n) or Value(f"test/m{n}", n) for n in range(3))
    assert tracker.finish("finished") == RunLinks()
    assert drawn == [0, 1, 2]

"""What is logged comes back through MLflow's own client."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.tracking.items import (
    ArtifactFile,
    DatasetInfo,
    Description,
    FigureFiles,
    Item,
    Param,
    TableRows,
    Tag,
    Value,
)
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo


@pytest.fixture
def client(uri: str) -> MlflowClient:
    return MlflowClient(tracking_uri=uri)


def keep(uri: str, *items: Item, **tags: str) -> str:
    tracker = MlflowTracker(uri=uri)
    tracker.start(RunInfo("lstm on synthetic", tags=tags))
    tracker.log(items)
    return tracker.finish("finished").run_id


def test_params_metrics_and_tags_come_back(uri: str, client: MlflowClient) -> None:
    run_id = keep(
        uri,
        Param("algo", "lstm"),
        Param("data.path", None),
        Value("test/log_loss", 0.25),
        Tag("protocol", "srs_benchmark"),
        Description("**lstm**"),
        sweep_id="s1",
    )
    run = client.get_run(run_id)
    assert run.info.run_name == "lstm on synthetic"
    assert run.info.status == "FINISHED"
    assert run.data.params == {"algo": "lstm", "data.path": "None"}
    assert run.data.metrics == {"test/log_loss": 0.25}
    tags = run.data.tags
    assert (tags["protocol"], tags["sweep_id"]) == ("srs_benchmark", "s1")
    assert tags["mlflow.note.content"] == "**lstm**"
    assert {"host", "pid", "mlflow.runColor", "mlflow.source.name"} <= tags.keys()


def test_undefined_metrics_are_named_and_not_logged(uri: str, client: MlflowClient) -> None:
    tracker = MlflowTracker(uri=uri)
    tracker.start(RunInfo("undefined"))
    tracker.log([Value("discrimination/auc", math.nan), Value("test/log_loss", 0.5)])
    tracker.log([Value("test/brier", math.inf)])
    run = client.get_run(tracker.finish("finished").run_id)
    assert run.data.metrics == {"test/log_loss": 0.5}
    assert run.data.tags["undefined_metrics"] == "discrimination/auc, test/brier"


def test_metrics_are_rounded_to_digits_that_can_be_read(uri: str, client: MlflowClient) -> None:
    tracker = MlflowTracker(uri=uri, digits=4)
    tracker.start(RunInfo("rounded"))
    tracker.log([Value("test/log_loss", 0.2780328512), Value("users/reviews", 123456.0)])
    run = client.get_run(tracker.finish("finished").run_id)
    assert run.data.metrics == {"test/log_loss": 0.278, "users/reviews": 123456.0}


@pytest.mark.slow
def test_many_params_and_metrics_and_long_texts_are_kept(uri: str, client: MlflowClient) -> None:
    run_id = keep(
        uri,
        *(Param(f"algo.p{n}", n) for n in range(230)),
        Param("long", "x" * 9000),
        *(Value(f"test/m{n}", n) for n in range(1100)),
        *(Tag(f"tag{n}", "y" * 9000) for n in range(120)),
    )
    run = client.get_run(run_id)
    assert len(run.data.params) == 231
    assert len(run.data.params["long"]) == 6000
    assert run.data.params["long"].endswith("…")
    assert len(run.data.metrics) == 1100
    assert len(run.data.tags["tag119"]) == 8000


def test_names_that_mlflow_refuses_are_made_safe(uri: str, client: MlflowClient) -> None:
    run_id = keep(uri, Value("calib/rmse(bins)", 1.0), Value("calib/rmse[bins]", 2.0))
    metrics = client.get_run(run_id).data.metrics
    assert metrics == {"calib/rmse_bins_": 1.0, "calib/rmse_bins__": 2.0}


def test_text_that_databases_refuse_is_written_as_escape_sequences(
    uri: str, client: MlflowClient
) -> None:
    names = ["x\x00y", "x\ud800y", "x\r\n\x1b[31my", "x\u202ey", "x\u2028y", "=1+1", "<b>`|"]
    run_id = keep(
        uri,
        *(Param(f"param {name}", name) for name in names),
        *(Value(f"value {name}", 1.0) for name in names),
        *(Tag(f"tag {name}", name) for name in names),
        DatasetInfo(name=names[0], digest="1", location=names[1], users=1, reviews=1),
    )
    run = client.get_run(run_id)
    assert len(run.data.params) == len(run.data.metrics) == len(names)
    texts = {*run.data.params.values(), *run.data.tags.values()}
    assert {"x\\x00y", "x\\ud800y", "x\n\\x1b[31my", "x\\u202ey", "=1+1", "<b>`|"} <= texts
    assert run.inputs.dataset_inputs[0].dataset.name == "x\\x00y"


def test_figures_tables_and_files_come_back(uri: str, client: MlflowClient, tmp_path: Path) -> None:
    png, svg, config = (tmp_path / name for name in ("roc.png", "roc.svg", "config.yaml"))
    PIL.Image.new("RGBA", (40, 30), "white").save(png)
    svg.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    config.write_text("seed: 1\n")
    run_id = keep(
        uri,
        FigureFiles("roc", png, svg),
        ArtifactFile(config, "config"),
        TableRows("users", {"user": ["a", "b"], "auc": np.array([0.7, np.nan])}),
    )
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


def test_the_dataset_is_an_input_with_its_digest(uri: str, client: MlflowClient) -> None:
    run_id = keep(uri, DatasetInfo("josh", "0123abcd", "logs/josh.csv", 1, 5020))
    (logged,) = client.get_run(run_id).inputs.dataset_inputs
    assert (logged.dataset.name, logged.dataset.digest) == ("josh", "0123abcd")
    assert json.loads(logged.dataset.source) == {"uri": "logs/josh.csv", "options": {}}
    assert json.loads(logged.dataset.profile) == {"num_rows": 5020, "num_users": 1}


def test_runs_of_one_name_share_a_colour_that_no_other_has(uri: str, client: MlflowClient) -> None:
    colours, names = [], []
    for name in ("red", "blue", "red", "red"):
        tracker = MlflowTracker(uri=uri)
        tracker.start(RunInfo(name, experiment="colours"))
        run = client.get_run(tracker.finish("finished").run_id)
        colours.append(run.data.tags["mlflow.runColor"])
        names.append(run.info.run_name)
    assert colours[0] == colours[2] == colours[3] != colours[1]
    assert names == ["red", "blue", "red (2)", "red (3)"]


def test_a_data_set_that_two_runs_make_known_at_once_is_kept_by_both(
    uri: str, client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = DatasetInfo("josh", "at once", "logs/josh.csv", 1, 5020)
    log_inputs, refused = MlflowClient.log_inputs, []

    def late(self: MlflowClient, *arguments: object, **named: object) -> None:
        if len(refused) < 2:
            refused.append(arguments)
            raise MlflowException(
                "(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.name"
            )
        log_inputs(self, *arguments, **named)

    monkeypatch.setattr(MlflowClient, "log_inputs", late)
    run_id = keep(uri, dataset)
    assert len(refused) == 2
    (kept,) = client.get_run(run_id).inputs.dataset_inputs
    assert kept.dataset.digest == "at once"


def test_another_refusal_of_a_data_set_is_told_at_once(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(self: MlflowClient, *arguments: object, **named: object) -> None:
        raise MlflowException("the disk is full")

    monkeypatch.setattr(MlflowClient, "log_inputs", no)
    with pytest.raises(TrackingError, match="the disk is full"):
        keep(uri, DatasetInfo("josh", "full", "logs/josh.csv", 1, 5020))


def test_metrics_keep_at_least_one_digit() -> None:
    with pytest.raises(ConfigError, match="digits"):
        MlflowTracker(digits=0)

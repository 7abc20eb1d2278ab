"""The data set of a run leads back to the reader that read it."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from mlflow import MlflowClient

from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError
from srs_eval.rebuilt import rebuilt_source
from srs_eval.tracking.items import DatasetInfo
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo

OPTIONS = {
    "_target_": "srs_eval.data.synthetic.SyntheticUsers",
    "users": 2,
    "seed": 1,
    "size_scale": 0.02,
}


def test_the_reader_of_a_run_can_be_had_again(uri: str) -> None:
    source = SyntheticUsers(users=2, seed=1, size_scale=0.02)
    tracker = MlflowTracker(uri=uri)
    tracker.start(RunInfo("read"))
    tracker.log([DatasetInfo("synthetic", "0123abcd", source.location, 2, 50, OPTIONS)])
    run_id = tracker.finish("finished").run_id
    (logged,) = MlflowClient(uri).get_run(run_id).inputs.dataset_inputs
    assert (logged.dataset.digest, logged.dataset.source_type) == ("0123abcd", "srs_eval")
    assert json.loads(logged.dataset.source)["uri"] == source.location
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of MLflow's own
        import mlflow.data

        again = mlflow.data.get_source(logged).load()
    assert again.users() == source.users()
    assert np.array_equal(again.read(1).rating, source.read(1).rating)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"_target_": "os.system", "command": "true"}, "not a class"),
        ({"_target_": "subprocess.Popen", "args": "true"}, "not a class with users, read"),
        ({"_target_": "no.such.thing"}, "cannot be imported"),
        ({"_target_": "srs_eval.data.synthetic.SyntheticUsers", "people": 1}, "people"),
        ({}, "cannot be imported"),
    ],
)
def test_what_a_stranger_wrote_builds_readers_only(options: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        rebuilt_source(options)

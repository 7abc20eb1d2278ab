"""The data set of a run leads back to the reader that read it."""

import json
import sqlite3
import warnings
from contextlib import closing
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow_store import keep

from srs_eval.commands.prepare import command as prepare
from srs_eval.config import settings
from srs_eval.config.building import build, resolved
from srs_eval.config.rebuild import rebuilt_source
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError
from srs_eval.mlflow_plugins.dataset_source import ReviewLogSource
from srs_eval.run.log_items import _reader
from srs_eval.tracking.items import DatasetInfo

OPTIONS = {
    "_target_": "srs_eval.data.synthetic.SyntheticUsers",
    "users": 2,
    "seed": 1,
    "size_scale": 0.02,
}


def test_the_reader_of_a_run_can_be_had_again(uri):
    source = SyntheticUsers(users=2, seed=1, size_scale=0.02)
    logs = DatasetInfo("synthetic", "0123abcd", source.location, 2, 50, OPTIONS)
    run_id = keep(uri, logs).run_id
    (logged,) = MlflowClient(uri).get_run(run_id).inputs.dataset_inputs
    assert (logged.dataset.digest, logged.dataset.source_type) == ("0123abcd", "srs_eval")
    assert json.loads(logged.dataset.source)["uri"] == source.location
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of MLflow's own
        import mlflow.data

        again = mlflow.data.get_source(logged).load()
    assert again.users() == source.users()
    assert np.array_equal(again.read(1).rating, source.read(1).rating)


TABLE = {"_target_": "srs_eval.data.table.ReviewTable", "path": "x"}
STRANGE = (
    {"_target_": "os.system", "command": "true"},
    {"_target_": "subprocess.Popen", "args": "true"},
    {"_target_": "no.such.thing"},
    {**OPTIONS, "people": 1},
    {},
    {**TABLE, "columns": {"_target_": "subprocess.Popen", "args": "true"}},
    {**TABLE, "columns": {"card": {"_target_": "builtins.print"}}},
    {**TABLE, "users": [OPTIONS]},
)


def test_what_a_stranger_wrote_builds_readers_only(golden_text):
    text = ""
    for options in STRANGE:
        with pytest.raises(ConfigError) as refused:
            rebuilt_source(options)
        text += f"{json.dumps(options)}\n  {refused.value}\n\n"
    golden_text("strange_sources", text)


def write_logs(folder):
    """Write logs, and return the words to read them with, whose paths are of several kinds."""
    moments = [1_614_600_000 + 86_400 * n for n in range(4)]
    log = pd.DataFrame({"card": [5, 6, 5, 6], "rating": [3, 3, 1, 4], "time": moments})
    (folder / "logs").mkdir()
    log.to_csv(folder / "logs" / "ann.csv", index=False)
    named = {"card": "card_id", "rating": "review_rating", "time": "review_time"}
    log.rename(columns=named).assign(review_duration=9).to_csv(folder / "py.csv", index=False)
    (folder / "sorted").mkdir()
    log.assign(user="ann").to_parquet(folder / "sorted" / "part.parquet")
    into = f"{folder}/sorted"
    words = ["data=csv", f"data.path={into}", "data.columns.user=user", f"out={into}"]
    assert prepare(words) == 0
    with closing(sqlite3.connect(folder / "reviews.sqlite")) as database, database:
        log.to_sql("reviews", database, index=False)
    return {
        "csv": ["data.path='logs/*.csv'", "data.time_zone=Europe/Vienna", "data.users=[ann]"],
        "partitioned": ["data.path=sorted", "data.users=[ann]"],
        "py_fsrs": ["data.path=py.csv", "data.day_start_hour=2"],
        "sql": ["data.path=reviews.sqlite", "data.query='SELECT * FROM reviews'"],
        "synthetic": ["data.users=2", "data.size_scale=0.02"],
    }


def test_each_kind_of_reader_can_be_had_again_from_another_folder(tmp_path, monkeypatch):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
    for option, words in write_logs(here).items():
        monkeypatch.chdir(here)
        choices = dict.fromkeys(settings.BUILT_GROUPS, option)
        cfg = settings.composed(["tracking=none", f"data={option}", *words])
        everything = resolved(cfg, choices)
        source, content = build(everything, choices)["data"], everything["data"]
        users = source.users()
        read = [source.read(user) for user in users]
        kept = json.dumps(ReviewLogSource(source.location, _reader(content)).to_dict())
        monkeypatch.chdir(elsewhere)
        again = ReviewLogSource.from_dict(json.loads(kept)).load()
        assert again.users() == users
        assert users
        for user, reviews in zip(users, read, strict=True):
            for field in fields(reviews):
                one, other = (getattr(each, field.name) for each in (reviews, again.read(user)))
                assert np.array_equal(one, other) or one == other, (option, field.name)

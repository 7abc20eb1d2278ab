"""The data set of a run leads back to the reader that read it."""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import rest_nightly
from mlflow import MlflowClient

from srs_eval.commands.prepare import command as prepare
from srs_eval.config import settings
from srs_eval.config.building import build, resolved
from srs_eval.config.option_files import options as options_of
from srs_eval.config.rebuild import rebuilt_source
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError
from srs_eval.experiment.log_items import _reader
from srs_eval.mlflow_plugins.dataset_source import ReviewLogSource
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


TABLE = {"_target_": "srs_eval.data.table.ReviewTable", "path": "x"}
STRANGE: tuple[dict[str, object], ...] = (
    {"_target_": "os.system", "command": "true"},
    {"_target_": "subprocess.Popen", "args": "true"},
    {"_target_": "no.such.thing"},
    {**OPTIONS, "people": 1},
    {},
    {**TABLE, "columns": {"_target_": "subprocess.Popen", "args": "true"}},
    {**TABLE, "columns": {"card": {"_target_": "builtins.print"}}},
    {**TABLE, "users": [OPTIONS]},
)


def test_what_a_stranger_wrote_builds_readers_only(
    golden_text: Callable[[str, str], None],
) -> None:
    text = ""
    for options in STRANGE:
        with pytest.raises(ConfigError) as refused:
            rebuilt_source(options)
        text += f"{json.dumps(options)}\n  {refused.value}\n\n"
    golden_text("strange_sources", text)


def write_logs(folder: Path) -> dict[str, list[str]]:
    """Write a log that each option of the group data can read; give the words to read it with."""
    day, cards = 86_400, [5, 6, 5, 6]
    moments = [1_614_600_000 + day * n for n in range(4)]
    log = {"card": cards, "rating": [3, 3, 1, 4], "time": moments}
    theirs = {"card_id": cards, "review_rating": 3, "review_time": moments, "review_duration": 9}
    pd.DataFrame(theirs).to_csv(folder / "py.csv", index=False)
    (folder / "logs").mkdir()
    pd.DataFrame(log).to_csv(folder / "logs" / "ann.csv", index=False)
    (folder / "sorted").mkdir()
    pd.DataFrame({**log, "user": "ann"}).to_parquet(folder / "sorted" / "part.parquet")
    into = f"{folder}/sorted"
    words = ["data=csv", f"data.path={into}", "data.columns.user=user", f"out={into}"]
    assert prepare(words) == 0
    table = {"card_id": cards, "day_offset": range(4), "rating": [3, 3, 1, 4], "state": 2}
    table |= {"duration": 900, "elapsed_days": [-1, -1, 2, 2], "elapsed_seconds": [-1, -1, 9, 9]}
    parquet = folder / "anki" / "revlogs" / "user_id=8" / "data.parquet"
    parquet.parent.mkdir(parents=True)
    pd.DataFrame(table).to_parquet(parquet)
    with closing(sqlite3.connect(folder / "me.anki2")) as database, database:
        database.execute("create table col (id, crt, conf)")
        database.execute("insert into col values (1, ?, '{}')", (moments[0],))
        database.execute("create table notes (id)")
        columns = "id integer primary key, cid, usn, ease, ivl, lastIvl, factor, time, type"
        database.execute(f"create table revlog ({columns})")
        kinds = [0, 0, 1, 1]  # learnt, and reviewed
        rows = [
            (1000 * when, card, 3, 2500, 900, kind)
            for when, card, kind in zip(moments, cards, kinds, strict=True)
        ]
        insert = "insert into revlog (id, cid, ease, factor, time, type) values (?, ?, ?, ?, ?, ?)"
        database.executemany(insert, rows)
    with closing(sqlite3.connect(folder / "reviews.sqlite")) as database, database:
        pd.DataFrame(log).to_sql("reviews", database, index=False)
    return {
        "anki": ["data.path=me.anki2", "data.user=me"],
        "csv": ["data.path='logs/*.csv'", "data.time_zone=Europe/Vienna", "data.users=[ann]"],
        "partitioned": ["data.path=sorted", "data.users=[ann]"],
        "py_fsrs": ["data.path=py.csv", "data.day_start_hour=2"],
        "revlogs_10k": ["data.path=anki", "data.users=[8]"],
        "sql": ["data.path=reviews.sqlite", "data.query='SELECT * FROM reviews'"],
        "synthetic": ["data.users=2", "data.size_scale=0.02"],
    }


@pytest.mark.parametrize("option", rest_nightly(options_of("data")))
def test_each_reader_there_is_can_be_had_again_from_another_folder(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
    monkeypatch.chdir(here)
    words = [f"data={option}", *write_logs(here)[option]]
    choices = dict.fromkeys(settings.BUILT_GROUPS, option)
    cfg = settings.composed(["tracking=none", *words])
    source = build(cfg, choices)["data"]
    content = resolved(cfg, choices)["data"]
    users = source.users()
    read = [source.read(user) for user in users]
    kept = json.dumps(ReviewLogSource(source.location, _reader(content)).to_dict())
    monkeypatch.chdir(elsewhere)
    again = ReviewLogSource.from_dict(json.loads(kept)).load()
    assert again.users() == users
    assert users
    for user, reviews in zip(users, read, strict=True):
        other = again.read(user)
        for field in fields(reviews):
            assert np.array_equal(getattr(other, field.name), getattr(reviews, field.name)) or (
                getattr(other, field.name) == getattr(reviews, field.name)
            ), field.name

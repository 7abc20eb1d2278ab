"""Published scores of each user, which are compared with runs by the number of reviews."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from srs_eval.comparison.compare import compare, read_runs
from srs_eval.comparison.entry import read_entry
from srs_eval.exports.srs_benchmark import is_published, read_published
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.folder import SCORES
from srs_eval.runs.words import status


def write_lines(path, users, losses, **further):
    """Write a line of JSON for each user, by number of reviews."""
    lines = [
        {"metrics": {"LogLoss": loss, "AUC": None}, "user": user, "size": size, **further}
        for (user, size), loss in zip(users.items(), losses, strict=True)
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def test_a_file_is_recognised_by_what_is_in_it(tmp_path, make_run):
    lines = write_lines(tmp_path / "Model.jsonl", {1: 10, 2: 20}, [0.3, 0.4])
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    columns = {"model": ["x", "y", "x"], "user": [1, 1, 2], "size": [5, 6, 7]}
    table = tmp_path / "table.parquet"
    pd.DataFrame(columns | {"log_loss": [0.3, 0.4, 0.5]}).to_parquet(table)
    write_lines(tmp_path / "Model.txt", {1: 10}, [0.3])
    (tmp_path / "folder.jsonl").mkdir()
    assert {*filter(is_published, tmp_path.iterdir())} == {lines, table}
    assert not is_published(make_run("a") / SCORES)
    (run,), _ = read_runs([lines])
    assert (run.name, run.scores.reviews.to_dict()) == ("Model", {1: 10, 2: 20})
    assert run.values("log_loss", [2, 1, 3]).tolist()[:2] == [0.4, 0.3]
    assert np.isnan(run.values("auc", [1, 2])).all()
    first, second = read_published(table)
    assert (first.name, first.scores.reviews.tolist(), second.name) == ("x", [5, 7], "y")
    assert first.values("log_loss", [1, 2]).tolist() == [0.3, 0.5]


def test_of_a_folder_tables_are_read_first_and_can_say_when_models_predict(tmp_path):
    write_lines(tmp_path / "a.jsonl", {1: 10}, [0.3])
    columns = {"model": ["a", "a", "b"], "user": [1, 2, 1], "size": 5, "log_loss": 0.2}
    table = pd.DataFrame(columns | {"when": ["ahead", "ahead", "day_before"]})
    table.to_parquet(tmp_path / "z.parquet")
    (tmp_path / "about.txt").touch()
    (a, b), _ = read_runs([tmp_path])
    assert a.values("log_loss", [1]).tolist() == [0.2]
    assert (a.facts.when, b.facts.when) == ("previous_review", "day_before")


def test_a_yardstick_counts_only_for_the_users_of_the_runs(tmp_path, make_run):
    run = read_entry(make_run("mine"))
    sizes = run.scores.reviews.to_dict()
    theirs = write_lines(tmp_path / "Theirs.jsonl", {**sizes, 99: 5}, [0.5] * 13)
    yardstick = read_published(theirs)
    assert compare(yardstick).users == [*sizes, 99]
    standings = compare([run, *yardstick])
    assert standings.users == [*sizes]
    assert standings.notes[0].startswith("Published: Theirs.")


@pytest.mark.parametrize(
    ("model", "stated", "when"),
    [
        ("RWKV", None, "previous_review"),
        ("MOVING-AVG", None, "at_review"),
        ("my-model", "imm", "at_review"),
        ("AVG", "at_review", "at_review"),
    ],
)
def test_published_models_predict_when_that_is_known_or_stated(tmp_path, model, stated, when):
    lines = write_lines(tmp_path / f"{model}.jsonl", {1: 10, 2: 10}, [0.3, 0.4], when=stated)
    assert [run.facts.when for run in read_published(lines)] == [when]


def test_published_models_are_chosen_by_name_or_glob(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for model in ("FSRS-6", "FSRS-6-short", "LSTM", "DASH", "DASH[MCM]"):
        write_lines(tmp_path / f"{model}.jsonl", {1: 100}, [0.3])
    names = {"lstm, fsrs-6": ["LSTM", "FSRS-6"], "FSRS-6*": ["FSRS-6-short", "FSRS-6"]}
    for models, chosen in {**names, "dash[mcm]": ["DASH[MCM]"], "fsrs8": []}.items():
        words = [f"published={tmp_path}", f"published.models={models}", f"out={models[:4]}"]
        assert status(*COMMANDS["compare"], [*words, "tracking=none"]) == (not chosen)
        if chosen:
            runs = json.loads(Path(models[:4], "comparison.json").read_text("utf-8"))["runs"]
            assert [run["name"] for run in runs] == chosen

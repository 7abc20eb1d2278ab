"""What docs/mlflow.md shows, runs."""

import csv
import re
import shlex
from pathlib import Path

import pytest
from mlflow_store import started

from srs_eval.tracking import items

TEXT = (Path(__file__).parents[2] / "docs" / "mlflow.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.S)
SMALL = ("figures=false", "data.size_scale=0.02", "data.users=2", "hydra.run.dir=out")
COMPARED = """
import srs_eval

p = classifier.predict_proba(test[known])[:, 1]
scores = srs_eval.score(p, test["recalled"], **{name: test[name] for name in known})
found = {name.partition("/")[2]: value for name, value in result.metrics.items()}
defined = {name: value for name, value in scores.items() if value == value}
defined["reviews"] = defined.pop("n")
assert not defined.pop("n_dropped")
assert {name: found[name] for name in defined} == defined
"""


def block(containing):
    (text,) = [text for _, text in BLOCKS if containing in text]
    return text


def test_every_kind_of_item_is_named():
    for kind in items.Item.__args__:
        assert f"`{kind.__name__}`" in TEXT


@pytest.mark.nightly
def test_the_tracker_the_evaluators_and_the_model_of_the_page_do_what_it_says(tmp_path):
    (tmp_path / "spreadsheet.py").write_text(block("class Spreadsheet"), encoding="utf-8")
    (tmp_path / "conf" / "tracking").mkdir(parents=True)
    option = tmp_path / "conf" / "tracking" / "spreadsheet.yaml"
    option.write_text(block("_target_: spreadsheet"), encoding="utf-8")
    started(tmp_path, *shlex.split(block("tracking=spreadsheet"))[1:], *SMALL)
    ((status, name, *values),) = csv.reader((tmp_path / "runs.csv").read_text().splitlines())
    assert (status, name) == ("finished", "avg on synthetic")
    assert [value for value in values if value.startswith("test/log_loss=0.")]

    assert started(tmp_path, "-c", block('predictions="p"')) == "0.3240\n"
    assert re.fullmatch(r"0\.\d{4}\n", started(tmp_path, "-c", block("log_model") + COMPARED))

    store = f"tracking.uri=sqlite:///{tmp_path / 'mlflow.db'}"
    words = ("algo=fsrs6", "algo.fit=default", "panel=quick", "tracking.model=true", store)
    started(tmp_path, "-m", "srs_eval", *words, *SMALL)
    printed = started(tmp_path, "-c", block("register_model(newest"))
    recall = [float(line.split()[-1]) for line in printed.splitlines()[-6:]]
    assert len(recall) == 6
    assert recall[:3] == sorted(recall[:3], reverse=True)

"""The campaign finds defects that are planted; the nightly part runs it."""

import importlib
import re
import sqlite3
import sys
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaign import Case, report
from judging import BAD, OUTCOMES, judged_within_limits
from processes import broken_store, different

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and /proc of Linux")

PLANTED = """
import os

def raises(random, folder): raise RuntimeError("planted")
def ends(random, folder): os._exit(7)
def goes_on(random, folder):
    while True: pass
"""


def test_an_error_that_reaches_the_person_an_end_and_a_hang_are_counted(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text(PLANTED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    planted = importlib.import_module("planted")
    found = []
    for function in (planted.raises, planted.ends, planted.goes_on):
        outcome, shown = judged_within_limits(function, None, tmp_path / function.__name__, 1)
        found.append((outcome, shown.partition(" (")[0]))
    raised = ("traceback", "RuntimeError: planted")
    died = ("traceback", "the interpreter died with 7")
    assert found == [raised, died, ("hang", "no end after 1 CPU seconds or 600 s")]


def test_bad_cases_are_listed_with_the_command_that_repeats_them():
    case = Case("some kind", 7, 3)
    told = report([(case, outcome, "why") for outcome in OUTCOMES])
    assert told.count('campaign.py --case "some kind 7 3"') == told.count(": why") == len(BAD)
    assert re.search(r"\| some kind +\| +7 \|( +1 \|){7}\n", told)
    assert case.random.random() == case.random.random() != Case("some kind", 7, 4).random.random()


def test_results_that_differ_or_are_left_over_are_found(tmp_path):
    keys = '"users": 1, "failed": 0, "metrics": {}, "rows_fingerprint": "", "data_fingerprint": ""'
    for name, rows in (("a", 3), ("b", 3), ("c", 2)):
        (tmp_path / name).mkdir()
        for file in ("scores.parquet", "predictions.parquet"):
            pq.write_table(pa.table({"p": [0.5] * rows}), tmp_path / name / file)
        (tmp_path / name / "summary.json").write_text(f'{{"reviews": 3, {keys}}}', "utf-8")
    assert different(tmp_path / "b", tmp_path / "a") == []
    lacking = different(tmp_path / "c", tmp_path / "a")
    assert "predictions.parquet differs or is in one of them" in lacking
    assert "2 predictions of 3 scored reviews" in lacking
    (tmp_path / "b" / "checkpoint").mkdir()
    (tmp_path / "b" / "curves.parquet").touch()
    left = ["curves.parquet differs or is in one of them", "checkpoint/ is left over"]
    assert different(tmp_path / "b", tmp_path / "a") == left


def test_a_store_that_is_not_whole_is_found(tmp_path):
    file = tmp_path / "mlflow.db"
    assert broken_store(file, finished=1) == ["there is no store"]
    with closing(sqlite3.connect(file)) as database, database:
        database.executescript(
            "create table runs (run_uuid, status); create table latest_metrics (run_uuid);"
            "create table experiments (name);"
            "insert into runs values (1, 'FINISHED'), (2, 'RUNNING')"
        )
    assert len(broken_store(file, finished=2)) == 3

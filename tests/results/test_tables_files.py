"""Results as files: what is written comes back, and half a file is never one."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
from same import assert_same
from saved import load_predictions, write_predictions

from srs_eval.algorithms.baselines import Average
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.nouns import Fit
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import files, tables


def test_anybody_can_read_predictions_and_what_is_missing_comes_back(logs_of, tmp_path):
    work = EvaluateUser(logs_of("ann"), Average(), SrsBenchmark(), seed=0, curves=0)
    predictions = work("ann").predictions
    single = replace(predictions, p=predictions.p.astype(np.float32))
    write_predictions(tmp_path, single)
    columns = pq.read_table(tmp_path / files.PREDICTIONS)
    assert columns.column_names == [
        *("user", "fold", "row", "card", "p", "recalled"),
        *("day", "elapsed_days", "nth_review", "lapses", "last_rating", "train_rate"),
    ]
    assert set(columns["user"].to_pylist()) == {"ann"}
    bare = replace(single, curves=None, elapsed_days=None, nth_review=None, lapses=None)
    write_predictions(tmp_path, bare)
    assert not (tmp_path / files.CURVES).exists()
    assert_same(load_predictions(tmp_path), bare)


def test_fits_come_back_with_and_without_parameters():
    ok = Fit(3, 0, "ok", seconds=0.25, n_train=7, n_test=5, parameters=(0.5, -2.0))
    fits = (
        replace(ok, standard_errors=(0.1, 0.2)),
        Fit(3, 1, "failed", "ValueError: no", n_train=7, n_test=5, traceback="Traceback …\n  x"),
        Fit(3, 2, "fallback", "too few second reviews", parameters=(1.0,)),
        Fit(4, -1, "skipped", "user 4: too few"),
    )
    for some in (fits, fits[1::2]):
        assert tables.read_fits(tables.fits_table(some)) == some


def test_json_has_null_for_what_is_no_number(tmp_path):
    content = {"a": math.nan, "b": [math.inf, 1.5, {"c": -math.inf}], 3: (1, "ä"), "d": None}
    files.write_json(tmp_path / "it.json", content)
    text = (tmp_path / "it.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    assert json.loads(text) == {"a": None, "b": [None, 1.5, {"c": None}], "3": [1, "ä"], "d": None}
    assert files.read_json(tmp_path / "it.json") == json.loads(text)

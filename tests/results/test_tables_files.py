"""Results as files: what is written comes back, and half a file is never one."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from same import assert_same
from saved import load_predictions, write_predictions

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.evaluation.scoring import Scores
from srs_eval.nouns import Fit
from srs_eval.nouns.predictions import concatenate
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import files, tables

FITS = (
    Fit(
        3,
        0,
        "ok",
        seconds=0.25,
        n_train=7,
        n_test=5,
        parameters=(0.5, -2.0),
        standard_errors=(0.1, 0.2),
    ),
    Fit(3, 1, "failed", "ValueError: no", n_train=7, n_test=5, traceback="Traceback …\n  x"),
    Fit(3, 2, "fallback", "too few second reviews: the parameters were kept", parameters=(1.0,)),
    Fit(4, -1, "skipped", "user 4: too few"),
)


@pytest.fixture
def evaluated(logs_of):
    def run(*users, algorithm=None):
        source = logs_of(*users)
        work = EvaluateUser(source, algorithm or Fsrs6(), SrsBenchmark(), seed=0, curves=12)
        return [work(user) for user in source.users()]

    return run


@pytest.fixture
def predicted(evaluated):
    def run(*users, algorithm=None):
        results = evaluated(*users, algorithm=algorithm)
        return concatenate([result.predictions for result in results])

    return run


@pytest.mark.parametrize("users", [(1,), (7, 3), ("ann", "ben"), ("10", "9")])
def test_predictions_come_back_as_they_were(predicted, tmp_path, users):
    predictions = predicted(*users)
    write_predictions(tmp_path, predictions)
    assert_same(load_predictions(tmp_path), predictions)


def test_users_of_both_kinds_come_back_as_text(predicted, tmp_path):
    predictions = predicted(1, "ann")
    write_predictions(tmp_path, predictions)
    assert_same(load_predictions(tmp_path), replace(predictions, users=("1", "ann")))


def test_single_precision_comes_back_as_single_precision(predicted, tmp_path):
    predictions = predicted(1)
    predictions = replace(predictions, p=predictions.p.astype(np.float32))
    write_predictions(tmp_path, predictions)
    assert_same(load_predictions(tmp_path), predictions)


def test_without_curves_and_facts_there_are_none(predicted, tmp_path):
    predictions = predicted(1, algorithm=MovingAverage())
    bare = replace(predictions, elapsed_days=None, nth_review=None, lapses=None)
    write_predictions(tmp_path, bare)
    assert not (tmp_path / files.CURVES).exists()
    assert_same(load_predictions(tmp_path), bare)


def test_curves_of_some_users_only_stay_with_their_users(predicted, tmp_path):
    with_curves = predicted(1, 2)
    without = predicted(5, algorithm=MovingAverage())
    predictions = concatenate([without, with_curves])
    write_predictions(tmp_path, predictions)
    assert_same(load_predictions(tmp_path), predictions)


def test_anybody_can_read_the_predictions(predicted, tmp_path):
    write_predictions(tmp_path, predicted("ann"))
    table = pq.read_table(tmp_path / files.PREDICTIONS)
    assert table.column_names == [
        *("user", "fold", "row", "card", "p", "recalled"),
        *("day", "elapsed_days", "nth_review", "lapses", "last_rating", "train_rate"),
    ]
    assert set(table["user"].to_pylist()) == {"ann"}


def test_fits_come_back_with_parameters_and_traceback():
    assert tables.read_fits(tables.fits_table(FITS)) == FITS


def test_fits_none_of_which_has_parameters_come_back():
    assert tables.read_fits(tables.fits_table(FITS[1:])) == FITS[1:]


def test_scores_have_a_row_for_each_user_and_a_column_for_each_metric():
    values = np.array([[1.0, 2.0], [np.nan] * 2])
    scores = Scores((2, 5), np.array([10, 0]), ("digest", ""), ("a", "b"), values)
    table = tables.scores_table(scores)
    assert table.column_names == ["user", "reviews", "rows", "a", "b"]
    assert table["user"].to_pylist() == [2, 5]
    assert table["a"].to_pylist()[0] == 1.0
    assert math.isnan(table["b"].to_pylist()[1])


def test_scores_of_nobody_are_an_empty_table():
    table = tables.scores_table(Scores((), np.zeros(0, np.int64), (), ("a",), np.zeros((0, 1))))
    assert table.num_rows == 0
    assert table.column_names == ["user", "reviews", "rows", "a"]


def test_json_has_null_for_what_is_no_number(tmp_path):
    content = {"a": math.nan, "b": [math.inf, 1.5, {"c": -math.inf}], 3: (1, "ä"), "d": None}
    files.write_json(tmp_path / "it.json", content)
    text = (tmp_path / "it.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    assert json.loads(text) == {"a": None, "b": [None, 1.5, {"c": None}], "3": [1, "ä"], "d": None}
    assert files.read_json(tmp_path / "it.json") == json.loads(text)


def write_half(path):
    with files.whole_file(path) as partial:
        partial.write_text("half of")
        raise OSError("disk full")


@pytest.mark.parametrize("before", [None, "what was there"])
def test_a_file_that_could_not_be_finished_is_not_there(tmp_path, before):
    path = tmp_path / "table.parquet"
    if before is not None:
        path.write_text(before)
    with pytest.raises(OSError, match="disk full"):
        write_half(path)
    assert [p.name for p in tmp_path.iterdir()] == ([] if before is None else [path.name])
    assert before is None or path.read_text() == before


def test_json_that_cannot_be_written_leaves_no_file(tmp_path):
    with pytest.raises(TypeError):
        files.write_json(tmp_path / "it.json", {"a": object()})
    assert list(tmp_path.iterdir()) == []

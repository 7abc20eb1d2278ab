"""`mlflow.models.evaluate` with our panel, for predictions and models that are not ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient

from srs_eval.errors import ScoreError
from srs_eval.metrics.score import score

EXAMPLE = Path(__file__).parents[2] / "examples" / "mlflow_evaluator" / "evaluate.py"
pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's own


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.6, 1.0, 400)
    return pd.DataFrame(
        {
            "p": p,
            "recalled": rng.random(400) < p,
            "elapsed_days": rng.integers(1, 50, 400).astype(float),
            "nth_review": rng.integers(2, 9, 400),
            "lapses": rng.integers(0, 3, 400),
            "card": rng.integers(0, 40, 400),
        }
    )


def evaluated(data: pd.DataFrame, **arguments: Any) -> tuple[Any, Any]:
    """What MLflow returns, and the run as it was kept."""
    import mlflow

    arguments = {"targets": "recalled", "model_type": "srs_eval", **arguments}
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(data=data, **arguments)
    return result, MlflowClient().get_run(run.info.run_id)


def assert_is_the_panel(metrics: dict[str, float], expected: dict[str, float]) -> None:
    by_name = {name.partition("/")[2]: value for name, value in metrics.items()}
    defined = {name for name, value in expected.items() if np.isfinite(value)} - {"n", "n_dropped"}
    assert defined <= set(by_name)
    for name in defined:
        assert by_name[name] == expected[name], name
    assert metrics["users/reviews"] == expected["n"]


@pytest.mark.slow
def test_predictions_get_the_panel_its_figures_and_its_tables(
    global_uri: str, frame: pd.DataFrame
) -> None:
    result, run = evaluated(frame, predictions="p", evaluators="srs_eval")
    facts = {name: frame[name] for name in ("elapsed_days", "nth_review", "lapses", "card")}
    expected = score(frame["p"], frame["recalled"], **facts)
    assert_is_the_panel(run.data.metrics, expected)
    assert "calib/rmse_bins" in run.data.metrics
    assert result.metrics == run.data.metrics
    low, high = expected.intervals["log_loss"]
    assert run.data.metrics["pooled/log_loss_low"] == low
    assert run.data.metrics["pooled/log_loss_high"] == high
    client = MlflowClient()
    root = {file.path for file in client.list_artifacts(run.info.run_id)}
    tables = {file.path for file in client.list_artifacts(run.info.run_id, "tables")}
    assert {"calibration.png", "corp.png", "roc.png", "roc.svg", "images"} <= root
    assert tables == {"tables/metrics.json", "tables/thresholds.json"}
    assert set(result.artifacts) == {"calibration", "corp", "roc"}
    assert result.artifacts["roc"].content.size[0] > 300


@pytest.mark.slow
def test_a_model_of_scikit_learn_is_asked_for_probabilities(
    global_uri: str, frame: pd.DataFrame
) -> None:
    import mlflow
    from sklearn.linear_model import LogisticRegression

    features = frame[["elapsed_days", "nth_review"]].astype(float)
    model = LogisticRegression().fit(features, frame["recalled"])
    logged = mlflow.sklearn.log_model(
        model, name="model", serialization_format="skops", pip_requirements=[]
    )
    data = features.assign(recalled=frame["recalled"])
    _, run = evaluated(data, model=logged.model_uri)
    expected = score(
        model.predict_proba(features)[:, 1],
        frame["recalled"],
        elapsed_days=features["elapsed_days"],
        nth_review=features["nth_review"],
    )
    assert_is_the_panel(run.data.metrics, expected)


@pytest.mark.slow
def test_a_function_may_be_the_model_and_its_column_be_named(
    global_uri: str, frame: pd.DataFrame
) -> None:
    def model(data: Any) -> pd.DataFrame:
        return pd.DataFrame({"forgotten": 1 - data["p"], "recalled": data["p"]})

    expected = score(frame["p"], frame["recalled"])
    given = frame[["p", "recalled"]]
    _, run = evaluated(given, model=model, evaluator_config={"column": "recalled"})
    assert_is_the_panel(run.data.metrics, expected)
    _, run = evaluated(given, model=model, predictions="recalled")
    assert_is_the_panel(run.data.metrics, expected)
    with pytest.raises(ScoreError, match="forgotten, recalled; say which"):
        evaluated(given, model=model)


def test_what_cannot_be_scored_is_told(global_uri: str, frame: pd.DataFrame) -> None:
    with pytest.raises(ScoreError, match="classes, not probabilities"):
        evaluated(frame[["p", "recalled"]], model=lambda data: (data["p"] > 0.9).to_numpy())
    with pytest.raises(ScoreError, match="no such column"):
        evaluated(frame, predictions="p", evaluator_config={"card": "crad"})
    with pytest.raises(ScoreError, match="evaluator_config has crad; there are elapsed_days"):
        evaluated(frame, predictions="p", evaluator_config={"crad": "card"})


def test_other_kinds_of_models_are_left_to_others() -> None:
    from srs_eval.mlflow_plugins.evaluator import SrsEvaluator

    assert SrsEvaluator.can_evaluate(model_type="srs_eval", evaluator_config={})
    for kind in ("classifier", "regressor", None):
        assert not SrsEvaluator.can_evaluate(model_type=kind, evaluator_config={})


@pytest.mark.slow
def test_the_example_runs(tmp_path: Path) -> None:
    words = [sys.executable, str(EXAMPLE)]
    done = subprocess.run(words, cwd=tmp_path, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "log loss 0." in done.stdout
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("evaluator")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.run_name for run in runs} == {"logistic regression", "always 90 %"}


class Raw:
    """What scikit-learn's classifiers have, for features named `x`."""

    feature_names_in_ = np.array(["x"], dtype=object)

    def __init__(self, *classes: Any) -> None:
        self.classes_ = np.array(classes)

    def predict_proba(self, features: pd.DataFrame) -> Any:
        assert list(features.columns) == ["x"]
        columns = np.stack([1 - features["x"], features["x"]], axis=1)
        return (
            columns[:, : len(self.classes_)] if len(self.classes_) > 1 else columns[:, :1] * 0 + 1
        )


def asked(*classes: Any) -> list[float]:
    from srs_eval.mlflow_plugins.evaluation import _probabilities

    model = type("Model", (), {"get_raw_model": lambda _: Raw(*classes)})()
    return list(_probabilities(model, pd.DataFrame({"x": [0.9, 0.6], "card": [1, 2]})))


def test_only_features_reach_a_classifier_and_only_0_and_1_are_understood() -> None:
    assert asked(0, 1) == asked(*np.array([0, 1], bool)) == [0.9, 0.6]
    assert asked(1) == [1, 1]
    assert asked(0) == [0, 0]
    for classes in ((-1, 1), ("forgot", "recalled"), (1, 3)):
        with pytest.raises(ScoreError, match="which of them is recall"):
            asked(*classes)


def test_columns_that_a_classifier_cannot_tell_from_its_features_are_refused() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multioutput import MultiOutputClassifier

    from srs_eval.mlflow_plugins.evaluation import _probabilities

    def asked_of(classifier: Any, data: pd.DataFrame) -> Any:
        return _probabilities(type("Model", (), {"get_raw_model": lambda _: classifier})(), data)

    rng = np.random.default_rng(1)
    features, recalled = rng.random((50, 2)), rng.random(50) < 0.5
    data = pd.DataFrame(features, columns=["days", "nth"])
    on_arrays = LogisticRegression().fit(features, recalled)
    assert np.array_equal(asked_of(on_arrays, data), on_arrays.predict_proba(features)[:, 1])
    told = r"fitted on 2 columns without names, and the data has 3 \(days, nth, card\).*'card'"
    with pytest.raises(ScoreError, match=told):
        asked_of(on_arrays, data.assign(card=1))
    several = MultiOutputClassifier(LogisticRegression()).fit(data, recalled[:, None])
    with pytest.raises(ScoreError, match="MultiOutputClassifier has several outputs"):
        asked_of(several, data)

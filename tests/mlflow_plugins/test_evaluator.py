"""`mlflow.models.evaluate` with our panel, for predictions and models that are not ours."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow_store import started
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from srs_eval.errors import ScoreError
from srs_eval.metrics.score import score
from srs_eval.mlflow_plugins.evaluation import predicted
from srs_eval.mlflow_plugins.evaluator import SrsEvaluator

EXAMPLE = Path(__file__).parents[2] / "examples" / "mlflow_evaluator" / "evaluate.py"
pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's own


@pytest.fixture(scope="module")
def frame():
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


def evaluated(data, **arguments):
    """What MLflow returns, and the run as it was kept."""
    import mlflow

    arguments = {"targets": "recalled", "model_type": "srs_eval", **arguments}
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(data=data, **arguments)
    return result, MlflowClient().get_run(run.info.run_id)


def assert_is_the_panel(metrics, expected):
    by_name = {name.partition("/")[2]: value for name, value in metrics.items()}
    defined = {name for name, value in expected.items() if np.isfinite(value)} - {"n", "n_dropped"}
    assert defined <= set(by_name)
    for name in defined:
        assert by_name[name] == expected[name], name
    assert metrics["users/reviews"] == expected["n"]


def test_predictions_get_the_panel_its_figures_and_its_tables(global_uri, frame):
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
def test_models_of_scikit_learn_and_functions_are_asked_for_probabilities(global_uri, frame):
    import mlflow

    features = frame[["elapsed_days", "nth_review"]].astype(float)
    classifier = LogisticRegression().fit(features, frame["recalled"])
    logged = mlflow.sklearn.log_model(
        classifier, name="model", serialization_format="skops", pip_requirements=[]
    )
    data = features.assign(recalled=frame["recalled"])
    _, run = evaluated(data, model=logged.model_uri)
    p = classifier.predict_proba(features)[:, 1]
    assert_is_the_panel(run.data.metrics, score(p, frame["recalled"], **features))

    def model(data):
        return pd.DataFrame({"forgotten": 1 - data["p"], "recalled": data["p"]})

    expected = score(frame["p"], frame["recalled"])
    for named in ({"evaluator_config": {"column": "recalled"}}, {"predictions": "recalled"}):
        _, run = evaluated(frame[["p", "recalled"]], model=model, **named)
        assert_is_the_panel(run.data.metrics, expected)


def test_other_kinds_of_models_are_left_to_others():
    for kind in ("srs_eval", "classifier", "regressor", None):
        is_ours = SrsEvaluator.can_evaluate(model_type=kind, evaluator_config={})
        assert is_ours == (kind == "srs_eval")


@pytest.mark.nightly
def test_the_example_runs(tmp_path):
    assert "log loss 0." in started(tmp_path, str(EXAMPLE))
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("evaluator")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.run_name for run in runs} == {"logistic regression", "always 90 %"}


class Raw:
    """What scikit-learn's classifiers have, for features named `x`."""

    feature_names_in_ = np.array(["x"], dtype=object)

    def __init__(self, *classes):
        self.classes_ = np.array(classes)

    def predict_proba(self, features):
        assert list(features.columns) == ["x"]
        columns = np.stack([1 - features["x"], features["x"]], axis=1)
        return (
            columns[:, : len(self.classes_)] if len(self.classes_) > 1 else columns[:, :1] * 0 + 1
        )


def asked(classifier, data):
    model = type("Model", (), {"get_raw_model": lambda _: classifier})()
    return predicted(model, data, None).tolist()


def test_only_features_reach_a_classifier_and_only_0_and_1_are_understood():
    data = pd.DataFrame({"x": [0.9, 0.6], "card": [1, 2]})
    assert asked(Raw(0, 1), data) == asked(Raw(*np.array([0, 1], bool)), data) == [0.9, 0.6]
    assert (asked(Raw(1), data), asked(Raw(0), data)) == ([1, 1], [0, 0])
    rng = np.random.default_rng(1)
    features, recalled = rng.random((50, 2)), rng.random(50) < 0.5
    on_arrays = LogisticRegression().fit(features, recalled)
    expected = on_arrays.predict_proba(features)[:, 1].tolist()
    assert asked(on_arrays, pd.DataFrame(features, columns=["days", "nth"])) == expected


def test_what_cannot_be_scored_is_refused(global_uri, frame, golden_text):
    both = frame[["p", "recalled"]]
    features = frame[["elapsed_days", "nth_review"]]
    on_arrays = LogisticRegression().fit(features.to_numpy(), frame["recalled"])
    several = MultiOutputClassifier(LogisticRegression()).fit(features, frame[["recalled"]])
    columns = [[0.2, 0.5, 0.3]] * 2

    def returned(answer):
        return type("Model", (), {"predict": lambda _, data: answer})()

    cases = {
        "classes": lambda: evaluated(both, model=lambda data: (data["p"] > 0.9).to_numpy()),
        "two columns": lambda: evaluated(
            both, model=lambda data: pd.DataFrame({"forgotten": 1 - data["p"], "r": data["p"]})
        ),
        "another column": lambda: predicted(returned(both), both, "forgotten"),
        "three columns": lambda: predicted(returned(np.array(columns)), both, None),
        "no model": lambda: evaluated(both),
        "no such column": lambda: evaluated(
            frame, predictions="p", evaluator_config={"card": "crad"}
        ),
        "no such option": lambda: evaluated(
            frame, predictions="p", evaluator_config={"crad": "card"}
        ),
        **{
            f"classes {classes}": lambda classes=classes: asked(Raw(*classes), both.assign(x=0.5))
            for classes in ((-1, 1), ("forgot", "recalled"), (1, 3))
        },
        "columns": lambda: asked(on_arrays, features.assign(card=1)),
        "outputs": lambda: asked(several, features),
    }
    text = ""
    for name, call in cases.items():
        with pytest.raises(ScoreError) as refused:
            call()
        text += f"{name}\n  {refused.value}\n\n"
    golden_text("evaluator", text)

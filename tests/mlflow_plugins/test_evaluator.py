"""`mlflow.models.evaluate` with our panel, and data sets of runs that lead back to readers."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cases import refusal
from mlflow import MlflowClient
from mlflow_store import runs_in, started
from saved import assert_same
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from srs_eval.commands.prepare import command as prepare
from srs_eval.config import settings
from srs_eval.config.building import build, resolved
from srs_eval.config.rebuild import rebuilt_source
from srs_eval.metrics.score import score
from srs_eval.mlflow_plugins.dataset_source import ReviewLogSource
from srs_eval.mlflow_plugins.evaluation import predicted
from srs_eval.mlflow_plugins.evaluator import SrsEvaluator
from srs_eval.run.log_items import _reader

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
    assert {"calibration.png", "roc.png", "roc.svg", "images"} <= root
    assert tables == {"tables/metrics.json", "tables/thresholds.json"}
    assert set(result.artifacts) == {"calibration", "roc"}
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
    names = {run.info.run_name for run in runs_in(tmp_path, "evaluator")[1]}
    assert names == {"logistic regression", "always 90 %"}


def told(*answers):
    """A classifier that was told these answers about a feature x."""
    return DummyClassifier().fit(pd.DataFrame({"x": [0.5] * len(answers)}), answers)


def asked(classifier, data):
    return predicted(SimpleNamespace(get_raw_model=lambda: classifier), data, None).tolist()


def test_only_features_reach_a_classifier_and_only_0_and_1_are_understood():
    data = pd.DataFrame({"x": [0.9, 0.6], "card": [1, 2]})
    x = data[["x"]]
    for answers, features, given in (([0, 1], x, data), ([False, True], x.to_numpy(), x)):
        fitted = LogisticRegression().fit(features, answers)
        assert asked(fitted, given) == fitted.predict_proba(features)[:, 1].tolist()
    assert (asked(told(1), data), asked(told(0), data)) == ([1, 1], [0, 0])


def test_what_cannot_be_scored_is_refused(global_uri, frame, refusals):
    both = frame[["p", "recalled"]]
    features = frame[["elapsed_days", "nth_review"]]
    on_arrays = LogisticRegression().fit(features.to_numpy(), frame["recalled"])
    several = MultiOutputClassifier(LogisticRegression()).fit(features, frame[["recalled"]])
    columns = [[0.2, 0.5, 0.3]] * 2

    def returned(answer):
        return SimpleNamespace(predict=lambda data: answer)

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
            f"classes {classes}": lambda classes=classes: asked(told(*classes), both.assign(x=0.5))
            for classes in ((-1, 1), ("forgot", "recalled"), (1, 3))
        },
        "columns": lambda: asked(on_arrays, features.assign(card=1)),
        "outputs": lambda: asked(several, features),
    }
    refusals("evaluator", cases)


def test_what_a_stranger_wrote_builds_readers_only(transcript):
    def told_by(content):
        return refusal(lambda: rebuilt_source(json.loads(content)))

    transcript("strange_sources", told_by)


def write_logs(folder):
    """Write logs, and return the words to read them with, whose paths are of several kinds."""
    moments = [1_614_600_000 + 86_400 * n for n in range(4)]
    log = pd.DataFrame({"card": [5, 6, 5, 6], "rating": [3, 3, 1, 4], "time": moments})
    (folder / "logs").mkdir()
    log.to_csv(folder / "logs" / "ann.csv", index=False)
    log.assign(who="ann").to_csv(folder / "log.csv", index=False)
    words = [f"data.path={folder}/log.csv", "data.columns.user=who", f"out={folder}/sorted"]
    assert prepare(["data=csv", *words]) == 0
    with closing(sqlite3.connect(folder / "reviews.sqlite")) as database, database:
        log.to_sql("reviews", database, index=False)
    return {
        "csv": ["data.path='logs/*.csv'", "data.time_zone=Europe/Vienna", "data.users=[ann]"],
        "partitioned": ["data.path=sorted", "data.users=[ann]"],
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
        read = {user: source.read(user) for user in source.users()}
        kept = json.dumps(ReviewLogSource(source.location, _reader(content)).to_dict())
        monkeypatch.chdir(elsewhere)
        again = ReviewLogSource.from_dict(json.loads(kept)).load()
        assert [*again.users()] == [*read] != []
        for user, reviews in read.items():
            assert_same(again.read(user), reviews)

"""`mlflow.models.evaluate` with our panel, data sets that lead back to readers, served models."""

import json
from dataclasses import asdict
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cases import refusal
from saved import assert_same
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from tqdm import tqdm

from srs_eval.errors import ConfigError, ReviewLogError, ScoreError
from srs_eval.metrics.score import score
from srs_eval.runs import config, evaluation
from srs_eval.runs.compute import Serial
from srs_eval.runs.folder import save
from srs_eval.runs.mlflow_evaluator import SrsEvaluator, probabilities
from srs_eval.runs.mlflow_model import CurvesOfCards
from srs_eval.runs.mlflow_source import ReviewLogSource, whole_paths
from srs_eval.runs.tracking import Mlflow

pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's own


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    """MLflow's own functions, with a store of their own."""
    folder = tmp_path_factory.mktemp("store")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    Mlflow(uri="sqlite:///mlflow.db").has("0" * 32)
    import mlflow.models

    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    yield mlflow
    mlflow.set_tracking_uri(None)
    patch.undo()


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


@pytest.mark.slow
def test_predictions_get_the_panel_its_figures_and_its_tables(mlflow, frame):
    with mlflow.start_run() as run:
        # as MLflow calls what it finds by the entry point
        dataset = SimpleNamespace(
            labels_data=frame["recalled"].to_numpy(),
            predictions_data=frame["p"].to_numpy(),
            features_data=frame.drop(columns=["p", "recalled"]),
        )
        result = SrsEvaluator().evaluate(
            model_type="srs_eval", dataset=dataset, run_id=run.info.run_id, evaluator_config={}
        )
    columns = {name: frame[name] for name in ("elapsed_days", "nth_review", "lapses", "card")}
    expected = score(frame["p"], frame["recalled"], **columns)
    for name, value in expected.items():
        if np.isfinite(value):
            assert result.metrics[f"test/{name}"] == value
    client = mlflow.MlflowClient()
    metrics = client.get_run(run.info.run_id).data.metrics
    assert metrics.items() <= result.metrics.items()
    low, high = expected.intervals["log_loss"]
    assert metrics["test/log_loss_low"] == low < metrics["test/log_loss"]
    assert metrics["test/log_loss_high"] == high
    assert metrics["test/n"] == 400
    assert len(metrics) < 30
    files = {
        file.path
        for folder in ("tables", "figures")
        for file in client.list_artifacts(run.info.run_id, folder)
    }
    assert {"tables/metrics.json", "tables/thresholds.json", "figures/roc.svg"} <= files
    assert set(result.artifacts) == {"calibration", "roc"}
    assert result.artifacts["roc"].content.size[0] > 300


def test_other_kinds_of_models_are_left_to_others():
    for kind in ("srs_eval", "classifier", "regressor", None):
        is_ours = SrsEvaluator.can_evaluate(model_type=kind, evaluator_config={})
        assert is_ours == (kind == "srs_eval")


def classifier_of(*answers):
    """A classifier that was told these answers about a feature x."""
    return DummyClassifier().fit(pd.DataFrame({"x": [0.5] * len(answers)}), answers)


def asked(classifier, data):
    return probabilities(SimpleNamespace(get_raw_model=lambda: classifier), data, None).tolist()


def test_only_features_reach_a_classifier_and_only_0_and_1_are_understood():
    data = pd.DataFrame({"x": [0.9, 0.6], "card": [1, 2]})
    x = data[["x"]]
    for answers, features, table in (([0, 1], x, data), ([False, True], x.to_numpy(), x)):
        fitted = LogisticRegression().fit(features, answers)
        assert asked(fitted, table) == fitted.predict_proba(features)[:, 1].tolist()
    assert (asked(classifier_of(1), data), asked(classifier_of(0), data)) == ([1, 1], [0, 0])


def test_what_cannot_be_scored_is_refused(frame):
    features = frame[["elapsed_days", "nth_review"]]
    several = MultiOutputClassifier(LogisticRegression()).fit(features, frame[["recalled"]])

    def returned(answer, column=None):
        model = SimpleNamespace(predict=lambda data: answer)
        return lambda: probabilities(model, features, column)

    def told(**options):
        values = {"labels_data": [1], "predictions_data": None, "features_data": features}
        config = options.pop("evaluator_config", {})
        return lambda: SrsEvaluator().evaluate(
            model_type="srs_eval",
            dataset=SimpleNamespace(**{**values, **options}),
            run_id="",
            evaluator_config=config,
        )

    two = pd.DataFrame({"forgotten": [0.1], "r": [0.9]})
    cases = {
        "classes": returned(np.array([1, 0])),
        "say which is the probability": returned(two),
        "forgotten, r; say which": returned(two, "other"),
        "0, 1, 2; say which": returned(np.array([[0.2, 0.5, 0.3]])),
        "give predictions=": told(),
        "give targets=": told(labels_data=None),
        "crad: the data has no such column": told(
            predictions_data=[0.5], evaluator_config={"card": "crad"}
        ),
        "evaluator_config has crad": told(evaluator_config={"crad": "card"}),
        "the classes -1, 1": lambda: asked(classifier_of(-1, 1), features.assign(x=0.5)),
        "which of them is recall": lambda: asked(several, features),
    }
    for words, call in cases.items():
        assert words in refusal(call, ScoreError)


def test_a_data_set_leads_back_to_its_reader_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "here" / "logs").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    moments = [1_614_600_000 + 86_400 * n for n in range(4)]
    log = pd.DataFrame({"card": [5, 6, 5, 6], "rating": [3, 3, 1, 4], "time": moments})
    log.to_csv("logs/ann.csv", index=False)
    for option, values in (
        ("csv", {"data.path": "logs/ann.csv", "data.time_zone": "Europe/Vienna"}),
        ("synthetic", {"data.users": 2, "data.size_scale": 0.02}),
    ):
        monkeypatch.chdir(tmp_path / "here")
        cfg, _ = config.composed({"algo": "avg", "data": option}, values)
        content = config.resolved(cfg)["data"]
        source = config.option("data", content)
        read = {user: source.read(user) for user in source.users()}
        kept = json.dumps(ReviewLogSource(source.location, whole_paths(content)).to_dict())
        monkeypatch.chdir(tmp_path / "elsewhere")
        again = ReviewLogSource.from_dict(json.loads(kept)).load()
        assert [*again.users()] == [*read] != []
        for user, reviews in read.items():
            assert_same(again.read(user), reviews)


def test_what_a_stranger_wrote_builds_readers_only():
    for target in ("os.system", "subprocess.Popen", "srs_eval.data.table.Nothing", "pathlib.Path"):
        with pytest.raises(ConfigError):
            ReviewLogSource.from_dict({"options": {"_target_": target}}).load()


@pytest.mark.slow
def test_a_model_that_predicts_as_its_run_did_is_logged_and_served(mlflow, tmp_path):
    for algo, said in (("hlr", "kept: user 1"), ("avg", "not kept: ")):
        values = {"data.users": 1, "data.max_reviews": 600}
        cfg, choices = config.composed({"algo": algo, "data": "synthetic"}, values)
        setup = config.build(cfg, choices, objects={"compute": Serial(), "tracking": None})
        folder = tmp_path / algo
        run = save(evaluation.evaluate(setup, folder, bar=partial(tqdm, disable=True)), folder)
        tracker = Mlflow(uri=mlflow.get_tracking_uri(), model=True)
        with tracker.run(setup, folder, None) as tracked:
            tracked.log(run, "text", {}, {})
        tags = mlflow.get_run(tracked.run_id).data.tags
        assert tags["model"].startswith(said)
        if algo == "avg":
            continue
        (model,) = mlflow.search_logged_models(
            experiment_ids=[mlflow.get_experiment_by_name("srs_eval").experiment_id],
            output_format="list",
        )
        served = mlflow.pyfunc.load_model(model.model_uri)
        history = pd.DataFrame({"card": [1, 1, 2], "elapsed_days": [0.0, 3.0, 0.0], "rating": 3})
        curves = served.predict(history, params={"days": [1.0, 9.0]})
        (*_, fit) = run.fits()
        content = {"options": setup.content["algo"], "parameters": fit.parameters}
        built = CurvesOfCards({**content, "parts": [*map(asdict, fit.parts)], "whole_days": True})
        pd.testing.assert_frame_equal(curves, built(history, [1.0, 9.0]))
        assert curves["card"].tolist() == [1, 1, 2, 2]
        assert (np.diff(curves["recall"])[::2] < 0).all()
        with pytest.raises(mlflow.MlflowException, match="rating"):
            served.predict(history.drop(columns="rating"))
        for wrong, words in (
            (history.assign(rating=7), "a rating that is not"),
            (history.assign(elapsed_days=0.5), "a fraction"),
            (history[:0], "no reviews"),
        ):
            assert words in refusal(partial(built, wrong, [1.0]), ReviewLogError)

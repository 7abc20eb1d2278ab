"""`mlflow.models.evaluate` with our panel, and served models."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from tqdm import tqdm

from srs_eval.errors import ReviewLogError
from srs_eval.metrics.panel import HEADLINE
from srs_eval.metrics.predictions import select
from srs_eval.metrics.score import score
from srs_eval.runs import config, evaluation
from srs_eval.runs.compute import Serial
from srs_eval.runs.folder import save
from srs_eval.runs.mlflow_metric import panel_metric
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
    patch.setattr("mlflow.tracking.fluent._active_experiment_id", None)  # of another test
    yield mlflow
    mlflow.set_tracking_uri(None)
    patch.undo()


@pytest.mark.slow
def test_predictions_get_the_panel_as_a_metric_of_mlflow(mlflow):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.6, 1.0, 400)
    columns = {
        "elapsed_days": rng.integers(1, 50, 400).astype(float),
        "nth_review": rng.integers(2, 9, 400),
        "lapses": rng.integers(0, 3, 400),
        "card": rng.integers(0, 40, 400),
    }
    frame = pd.DataFrame({"p": p, "recalled": rng.random(400) < p, **columns})
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            data=frame, predictions="p", targets="recalled", extra_metrics=[panel_metric()]
        )
    expected = score(frame["p"], frame["recalled"], **columns)
    logged = mlflow.get_run(run.info.run_id).data.metrics
    for name in HEADLINE:
        assert logged[f"test/{name}"] == result.metrics[f"test/{name}"] == expected[name]
    bounds = logged["test/log_loss_low"], logged["test/log_loss_high"]
    assert bounds == expected.intervals["log_loss"]


@pytest.mark.slow
def test_a_model_that_predicts_as_its_run_did_is_logged_and_served(mlflow, tmp_path):
    def evaluated(algo):
        values = {"data.users": 1, "data.max_reviews": 600}
        cfg, choices = config.composed({"algo": algo, "data": "synthetic"}, values)
        setup = config.build(cfg, choices, objects={"compute": Serial(), "tracking": None})
        folder = tmp_path / algo
        run = save(evaluation.evaluate(setup, folder, bar=partial(tqdm, disable=True)), folder)
        with Mlflow(uri=mlflow.get_tracking_uri(), model=True).run(setup, folder, None) as tracked:
            tracked.log(run, "text", [])
        return setup, run, mlflow.get_run(tracked.run_id).data.tags["model"]

    assert evaluated("avg")[-1].startswith("not kept: ")
    setup, run, said = evaluated("hlr")
    assert said.startswith("kept: user 1")
    (model,) = mlflow.search_logged_models(
        experiment_ids=[mlflow.get_experiment_by_name("srs_eval").experiment_id],
        output_format="list",
    )
    served = mlflow.pyfunc.load_model(model.model_uri)
    history = pd.DataFrame({"card": [1, 1, 2], "elapsed_days": [0.0, 3.0, 0.0], "rating": 3})
    with pytest.raises(mlflow.MlflowException, match="rating"):
        served.predict(history.drop(columns="rating"))
    for wrong, row in ((history.assign(rating=7), 1), (history.assign(elapsed_days=0.5), 2)):
        with pytest.raises(ReviewLogError, match=f"row {row}: expected a rating"):
            served.predict(wrong)
    # of each review as the run predicted it, and so its scores
    log, (*_, fit) = setup.source.read(1), run.fits()
    reviews = pd.DataFrame({"card": log.card, "elapsed_days": log.elapsed, "rating": log.rating})
    predicted = served.predict(reviews)
    last = run.predictions(1)
    last = select(last, last.fold == fit.fold)
    np.testing.assert_allclose(predicted["recall"].iloc[last.row], last.p, atol=1e-6)
    known = predicted["recall"].notna()
    assert (known == (reviews["elapsed_days"] >= 1)).all()
    result = mlflow.models.evaluate(
        model.model_uri,
        reviews.assign(recalled=log.recalled),
        predictions="recall",
        targets="recalled",
        extra_metrics=[panel_metric()],
    )
    expected = score(predicted["recall"][known], log.recalled[known], resamples=0)
    assert result.metrics["test/log_loss"] == pytest.approx(expected["log_loss"])

"""Score any model of recall in MLflow with srs_eval's panel: here, one of scikit-learn.

    python examples/mlflow_evaluate/evaluate.py

keeps the runs in mlflow.db in the working directory.
"""

from __future__ import annotations

import mlflow
import pandas as pd
from sklearn.linear_model import LogisticRegression

from srs_eval.data.cards import rows_by_card
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.runs.mlflow_metric import panel_metric


def reviews_of_one_user() -> pd.DataFrame:
    """Return features known before each review of a simulated user, and its outcome."""
    source = SyntheticUsers(users=1, size_scale=0.05, seed=3)
    log = source.read(source.users()[0])
    facts = pd.DataFrame(
        {
            "elapsed_days": log.elapsed_days.astype(float),
            "nth_review": (rows_by_card(log.card).nth + 1).astype(float),
            "card": log.card,
            "recalled": log.recalled,
        }
    )
    return facts[facts.elapsed_days > 0].reset_index(drop=True)


def main() -> None:
    """Train on the first half of the reviews, evaluate on the second."""
    frame = reviews_of_one_user()
    train, test = frame[: len(frame) // 2], frame[len(frame) // 2 :].reset_index(drop=True)
    features = ["elapsed_days", "nth_review"]
    classifier = LogisticRegression().fit(train[features], train["recalled"])

    mlflow.set_experiment("evaluated")
    with mlflow.start_run(run_name="logistic regression"):
        logged = mlflow.sklearn.log_model(
            classifier,
            name="model",
            serialization_format="skops",
            input_example=train[features][:3],
            pip_requirements=["scikit-learn", "skops"],
        )
        result = mlflow.models.evaluate(
            lambda reviews: classifier.predict_proba(reviews[features])[:, 1],
            test[[*features, "recalled", "card"]],
            targets="recalled",
            model_id=logged.model_id,
            extra_metrics=[panel_metric()],
        )
    with mlflow.start_run(run_name="always 90 %"):
        mlflow.models.evaluate(
            data=test[["recalled"]].assign(p=0.9),
            predictions="p",
            targets="recalled",
            extra_metrics=[panel_metric()],
        )
    print(f"log loss {result.metrics['test/log_loss']:.4f}: now type mlflow ui")  # noqa: T201


if __name__ == "__main__":
    main()

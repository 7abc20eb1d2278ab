"""Score any model of recall in MLflow with srs_eval's panel: here, one of scikit-learn.

    python examples/mlflow_evaluator/evaluate.py

keeps the run, with its figures and tables, in mlflow.db in the working directory.
"""

from __future__ import annotations

import mlflow
import pandas as pd
from sklearn.linear_model import LogisticRegression

from srs_eval.cards import rows_by_card
from srs_eval.data.synthetic import SyntheticUsers


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

    mlflow.set_experiment("evaluator")
    with mlflow.start_run(run_name="logistic regression"):
        logged = mlflow.sklearn.log_model(
            classifier,
            name="model",
            serialization_format="skops",
            input_example=train[features][:3],
            pip_requirements=["scikit-learn", "skops"],
        )
        result = mlflow.models.evaluate(
            logged.model_uri,
            test[[*features, "recalled"]],
            targets="recalled",
            model_type="srs_eval",
            evaluator_config={"card": test["card"], "title": "logistic regression"},
        )
    with mlflow.start_run(run_name="always 90 %"):
        mlflow.models.evaluate(
            data=test[["recalled"]].assign(p=0.9),
            predictions="p",
            targets="recalled",
            model_type="srs_eval",
        )
    print(f"log loss {result.metrics['test/log_loss']:.4f}: now type mlflow ui")  # noqa: T201


if __name__ == "__main__":
    main()

"""Entry point ``mlflow.model_evaluator``: the panel for any predictions."""

from __future__ import annotations

from typing import Any

from mlflow.models.evaluation.base import ModelEvaluator

MODEL_TYPE = "srs_eval"


class SrsEvaluator(ModelEvaluator):
    """Scores predicted probabilities of recall: ``mlflow.models.evaluate(…)``.

    For ``model_type="srs_eval"`` only. Options of `evaluator_config`: see
    `srs_eval.mlflow_plugins.evaluation`.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Any, **kwargs: Any) -> bool:
        """Return whether the model type is that of srs_eval."""
        return model_type == MODEL_TYPE

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any] | None,
        model: Any = None,
        predictions: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Score the predictions and log the result to the run."""
        from srs_eval.mlflow_plugins.evaluation import evaluate  # see the package

        return evaluate(dataset, run_id, dict(evaluator_config or {}), model, predictions)

"""The panel as a metric of `mlflow.models.evaluate`, for any predictions and any logged model."""

from __future__ import annotations

from typing import Any

import numpy as np
from mlflow.metrics import MetricValue, make_metric

from srs_eval.metrics.panel import HEADLINE, WITH_BOUNDS
from srs_eval.metrics.score import score


def panel_metric(**options: Any) -> Any:
    """Return the metric to be one of ``extra_metrics``.

    Rows where the model has no prediction are left out. Columns of the data called `elapsed_days`,
    `nth_review` and `lapses` give RMSE(bins), and `card` or `user` the intervals; MLflow's
    ``evaluator_config={"col_mapping": {"card": "card_id"}}`` names others.

    Parameters
    ----------
    **options
        Of `srs_eval.score`, such as ``panel`` or ``resamples``.

    Examples
    --------
    >>> import mlflow, pandas as pd
    >>> frame = pd.DataFrame({"p": [0.9, 0.8, 0.6, 0.95], "recalled": [1, 1, 0, 1]})
    >>> mlflow.models.evaluate(
    ...     data=frame, predictions="p", targets="recalled", extra_metrics=[panel_metric()]
    ... )  # doctest: +SKIP
    """

    def scores(
        predictions: Any,
        targets: Any,
        elapsed_days: Any = None,
        nth_review: Any = None,
        lapses: Any = None,
        card: Any = None,
        user: Any = None,
    ) -> MetricValue:
        columns = {"elapsed_days": elapsed_days, "nth_review": nth_review, "lapses": lapses}
        columns |= {"card": card, "user": user}
        is_predicted = predictions.notna().to_numpy()
        if not is_predicted.any():  # MLflow tries the first rows alone
            return MetricValue(aggregate_results={})
        present = {n: np.asarray(c)[is_predicted] for n, c in columns.items() if c is not None}
        result = score(predictions[is_predicted], targets[is_predicted], **present, **options)
        values = {name: result[name] for name in HEADLINE if name in result}
        for name in WITH_BOUNDS:
            bounds = result.intervals.get(name, ())
            values |= dict(zip((f"{name}_low", f"{name}_high"), bounds, strict=False))
        return MetricValue(aggregate_results=values)

    return make_metric(eval_fn=scores, greater_is_better=False, name="test")

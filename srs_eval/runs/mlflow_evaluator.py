"""Entry point ``mlflow.model_evaluator``: the panel for any predictions.

``mlflow.models.evaluate(data, targets="recalled", predictions="p", model_type="srs_eval")``, or
with a model in place of predictions. Options of ``evaluator_config``:

- ``elapsed_days``, ``nth_review``, ``lapses``, ``card``, ``user``: the column of the data that
  holds these values, or the values themselves. A column of that name is used by default.
- ``column``: which column of what the model returns is the probability of recall.
- ``thresholds``, ``resamples``, ``seed``, ``level``, ``nan_policy``: as in `srs_eval.score`.
- ``title``: what the figures are about.

MLflow loads this module while it is itself being imported, so that all else is imported later.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mlflow.models.evaluation.base import ModelEvaluator

from srs_eval.errors import ScoreError

_COLUMNS = ("elapsed_days", "nth_review", "lapses", "card", "user")
_SETTINGS = ("thresholds", "resamples", "seed", "level", "nan_policy")
_OPTIONS = (*_COLUMNS, *_SETTINGS, "column", "title")


class SrsEvaluator(ModelEvaluator):
    """Scores predicted probabilities of recall, for ``model_type="srs_eval"``."""

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Any, **_: Any) -> bool:
        """Return whether the model type is that of srs_eval."""
        return model_type == "srs_eval"

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None,
        model: Any = None,
        predictions: str | None = None,
        **_: Any,
    ) -> Any:
        """Score the predictions, and log all that comes of it to the run."""
        import mlflow
        from mlflow.models.evaluation.artifacts import ImageEvaluationArtifact
        from mlflow.models.evaluation.base import EvaluationResult

        from srs_eval.metrics.score import score
        from srs_eval.metrics.tally import tally
        from srs_eval.plots import calibration_figure, roc_figure, save_figure
        from srs_eval.runs.tracking import SHOWN, WITH_BOUNDS

        config = {k: v for k, v in (evaluator_config or {}).items() if k != "col_mapping"}
        if unknown := sorted(set(config) - set(_OPTIONS)):
            raise ScoreError(
                f"evaluator_config has {', '.join(unknown)}; there are {', '.join(_OPTIONS)}"
            )
        if dataset.labels_data is None:
            raise ScoreError("give targets=, the column that says whether a review was recalled")
        recalled, features, p = dataset.labels_data, dataset.features_data, dataset.predictions_data
        if model is not None:
            p = probabilities(model, features, config.get("column", predictions))
        if p is None:
            raise ScoreError("give predictions=, the column of probabilities, or a model")
        p, recalled = np.asarray(p), np.asarray(recalled)
        columns = {name: _column(features, name, config.get(name)) for name in _COLUMNS}
        settings: dict[str, Any] = {n: v for n, v in columns.items() if v is not None}
        scores = score(p, recalled, **settings, **{n: config[n] for n in _SETTINGS if n in config})
        values = dict(scores)
        for name in WITH_BOUNDS:
            for end, value in zip(("low", "high"), scores.intervals.get(name, ()), strict=False):
                values[f"{name}_{end}"] = value
        metrics = {f"test/{name}": v for name, v in values.items() if math.isfinite(v)}
        shown = {f"test/{name}" for name in (*SHOWN, "n")}
        mlflow.log_metrics(
            {k: v for k, v in metrics.items() if k in shown or k.endswith(("_low", "_high"))}
        )
        mlflow.log_table(scores.to_frame().reset_index(), "tables/metrics.json")
        if scores.thresholds:
            mlflow.log_table(pd.DataFrame(scores.thresholds), "tables/thresholds.json")
        figures = {"calibration": calibration_figure, "roc": roc_figure}
        whole = ~(np.isnan(p) | np.isnan(recalled.astype(np.float64)))
        seen = tally(p[whole], recalled[whole].astype(np.bool_))
        title = str(config.get("title", ""))
        with tempfile.TemporaryDirectory() as folder:
            for name, draw in figures.items():
                save_figure(draw(seen, title=title), Path(folder), name)
            mlflow.log_artifacts(folder, "figures")
        place = mlflow.get_run(run_id).info.artifact_uri
        image: Any = ImageEvaluationArtifact
        result: Any = EvaluationResult
        images = {name: image(f"{place}/figures/{name}.png") for name in figures}
        return result(metrics=metrics, artifacts=images)


def probabilities(model: Any, features: Any, column: str | int | None) -> Any:
    """Predict probabilities of recall by a model as MLflow loads it.

    A scikit-learn classifier's `predict_proba` is used. Of several columns `column` counts; of two
    without names, the last.
    """
    raw: Any = None
    with suppress(NotImplementedError, AttributeError):  # A function has no model inside
        raw = model.get_raw_model()
    if hasattr(raw, "predict_proba"):
        return _of_classifier(raw, features)
    answer = pd.DataFrame(model.predict(features))
    names: list[Any] = list(answer.columns)
    if len(names) == 1 or (column is None and names == [0, 1]):
        column = names[-1]
    if column not in names:
        raise ScoreError(
            f"the model returns {', '.join(map(str, names))}; say which is the probability of "
            "recall with predictions= or evaluator_config={'column': …}"
        )
    values = answer[column].to_numpy()
    if values.dtype.kind != "f":
        raise ScoreError(
            "the model returns classes, not probabilities; log it with "
            "pyfunc_predict_fn='predict_proba'"
        )
    return values


def _of_classifier(classifier: Any, features: Any) -> Any:
    classes = getattr(classifier, "classes_", None)
    # One that predicts several columns has a list
    known = classes.tolist() if isinstance(classes, np.ndarray) else [None]
    if not set(known) <= {0, 1}:
        raise ScoreError(
            f"the model has the classes {', '.join(map(repr, known))}, and which of them is recall "
            "is unknown; train it on 0 and 1, or give its probabilities as predictions="
        )
    names = getattr(classifier, "feature_names_in_", None)
    if names is not None and isinstance(features, pd.DataFrame):
        features = features[names]  # Columns such as `card` and `user` are none of the model's
    p = np.asarray(classifier.predict_proba(features))
    return p[:, known.index(1)] if 1 in known else np.zeros(len(p))


def _column(features: Any, name: str, values: Any) -> Any:
    """Return a column of the data, or the values themselves; None if there are none."""
    if values is not None and not isinstance(values, str):
        return np.asarray(values)
    if isinstance(features, pd.DataFrame) and (values or name) in features.columns:
        return np.asarray(features[values or name])
    if values is not None:
        raise ScoreError(f"{name}={values}: the data has no such column")
    return None

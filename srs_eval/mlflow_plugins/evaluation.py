"""Evaluation of predictions by MLflow: scores, figures and logs as in a run of srs_eval.

Options of ``evaluator_config``:

- ``elapsed_days``, ``nth_review``, ``lapses``, ``card``, ``user``: the column of the data that
  holds these values, or the values themselves. A column of that name is used by default.
- ``column``: which column of what the model returns is the probability of recall.
- ``thresholds``, ``resamples``, ``seed``, ``level``, ``nan_policy``: as in `srs_eval.score`.
- ``title``: what the figures are about.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mlflow import MlflowClient
from mlflow.models.evaluation.artifacts import ImageEvaluationArtifact
from mlflow.models.evaluation.base import EvaluationResult
from numpy.typing import NDArray

from srs_eval.errors import ScoreError
from srs_eval.metrics.headline import HEADLINE
from srs_eval.metrics.panel import Panel, default_panel
from srs_eval.metrics.result import PanelResult
from srs_eval.metrics.score import score
from srs_eval.metrics.tally import tally
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS
from srs_eval.plots import calibration_figure, roc_figure, save_figure
from srs_eval.tracking.items import ArtifactFile, FigureFiles, Item, TableRows, Value, section
from srs_eval.tracking.mlflow_run import log_items

FACTS = ("elapsed_days", "nth_review", "lapses", "card", "user")
SETTINGS = ("resamples", "seed", "level", "nan_policy")
_OTHERS = ("column", "thresholds", "title", "col_mapping")
Array = NDArray[Any]


def evaluate(
    dataset: Any, run_id: str, config: Mapping[str, Any], model: Any, column: str | None
) -> EvaluationResult:
    """Score predictions and log the panel, its tables and its figures to a run.

    `dataset` is the data as MLflow passes it: features, labels, and predictions if there is no
    model. `config` has the options, see the module; `column` is the column of what the model
    returns.
    """
    unknown = sorted(set(config) - {*FACTS, *SETTINGS, *_OTHERS})
    if unknown:
        known = ", ".join((*FACTS, *SETTINGS, *_OTHERS[:-1]))
        raise ScoreError(f"evaluator_config has {', '.join(unknown)}; there are {known}")
    if dataset.labels_data is None:
        raise ScoreError("give targets=, the column that says whether a review was recalled")
    recalled = np.asarray(dataset.labels_data)
    if model is not None:
        p = predicted(model, dataset.features_data, config.get("column", column))
    elif dataset.predictions_data is not None:
        p = np.asarray(dataset.predictions_data)
    else:
        raise ScoreError("give predictions=, the column of predicted probabilities, or a model")
    panel = default_panel(thresholds=config.get("thresholds", DEFAULT_THRESHOLDS))
    facts: dict[str, Any] = {
        name: values
        for name in FACTS
        if (values := _fact(dataset.features_data, name, config.get(name))) is not None
    }
    settings = {name: config[name] for name in SETTINGS if name in config}
    scores = score(p, recalled, panel=panel, **facts, **settings)
    client = MlflowClient()
    log_items(client, run_id, _numbers(scores, panel))
    with tempfile.TemporaryDirectory() as folder:
        figures = list(_figures(p, recalled, Path(folder), str(config.get("title", ""))))
        log_items(client, run_id, figures)
    place = client.get_run(run_id).info.artifact_uri
    return EvaluationResult(  # type: ignore[no-untyped-call]
        metrics={
            item.name: item.value
            for item in _numbers(scores, panel)
            if isinstance(item, Value) and math.isfinite(item.value)
        },
        artifacts={
            figure.name: ImageEvaluationArtifact(  # type: ignore[no-untyped-call]
                f"{place}/{figure.name}.png"
            )
            for figure in figures
            if isinstance(figure, FigureFiles)
        },
    )


def predicted(model: Any, features: Any, column: str | int | None) -> Array:
    """Predict probabilities of recall by a model as MLflow loads it.

    A scikit-learn classifier's `predict_proba` is used. Of several columns `column` counts; of two
    without names, the last.
    """
    answer = _probabilities(model, features)
    if isinstance(answer, pd.DataFrame):
        names: list[Any] = list(answer.columns)
        if column is None and len(names) > 1 and names != [0, 1]:
            raise ScoreError(
                f"the model returns {', '.join(map(str, names))}; say which is the probability "
                "of recall with predictions= or evaluator_config={'column': …}"
            )
        if column is not None and column not in names:
            raise ScoreError(f"the model returns {', '.join(map(str, names))}, not {column!r}")
        return np.array(answer[names[-1] if column is None else column])
    values = np.array(answer)
    if values.ndim == 2:
        if column is None and values.shape[1] > 2:
            raise ScoreError(f"the model returns {values.shape[1]} columns; say which is meant")
        values = values[:, -1 if column is None else int(column)]
    if values.dtype.kind not in "f":
        raise ScoreError(
            "the model returns classes, not probabilities; log it with "
            "pyfunc_predict_fn='predict_proba'"
        )
    return values


def _probabilities(model: Any, features: Any) -> Any:
    raw: Any = None
    if hasattr(model, "get_raw_model"):  # which a function does not have
        with suppress(NotImplementedError):
            raw = model.get_raw_model()
    probabilities = getattr(raw, "predict_proba", None)
    if probabilities is None:
        return model.predict(features)
    if not isinstance(getattr(raw, "classes_", None), np.ndarray):
        raise ScoreError(
            f"a {type(raw).__name__} has several outputs, and which of them is recall is "
            "unknown; give its probabilities as predictions="
        )
    classes = raw.classes_.tolist()
    if not set(classes) <= {0, 1}:
        raise ScoreError(
            f"the model has the classes {', '.join(map(repr, classes))}, and which of them "
            "is recall is unknown; train it on 0 and 1, or give its probabilities as predictions="
        )
    # Columns such as `card` and `user` are not features of the model.
    names = getattr(raw, "feature_names_in_", None)
    known = features if names is None or not isinstance(features, pd.DataFrame) else features[names]
    _require_width(raw, known)
    found = np.asarray(probabilities(known))
    return found[:, classes.index(1)] if 1 in classes else np.zeros(len(found))


def _require_width(classifier: Any, features: Any) -> None:
    """Check the number of columns for a classifier without feature names."""
    width, given = getattr(classifier, "n_features_in_", None), np.shape(features)
    if width is None or len(given) != 2 or given[1] == width:
        return
    named = isinstance(features, pd.DataFrame)
    columns = f" ({', '.join(map(str, features.columns))})" if named else ""
    raise ScoreError(
        f"the classifier was fitted on {width} columns without names, and the data has {given[1]}"
        f"{columns}; fit it on a table with the names of its columns, or leave the others out of "
        "the data and give their values: evaluator_config={'card': values}"
    )


def _fact(features: Any, name: str, given: Any) -> Array | None:
    """Return a column of the data or given values; None if there are none."""
    if given is not None and not isinstance(given, str):
        return np.asarray(given)
    has_columns = isinstance(features, pd.DataFrame)
    if has_columns and (given or name) in features.columns:
        return np.asarray(features[given or name])
    if given is not None:
        raise ScoreError(f"{name}={given}: the data has no such column")
    return None


def _numbers(scores: PanelResult, panel: Panel) -> Iterator[Item]:
    """Yield the scores under the names that they have in runs of srs_eval."""
    for metric in panel:
        yield Value(f"{section(metric)}/{metric.name}", scores[metric.name])
        if metric.name in scores.intervals and metric.name in HEADLINE:
            low, high = scores.intervals[metric.name]
            yield Value(f"pooled/{metric.name}_low", low)
            yield Value(f"pooled/{metric.name}_high", high)
    yield Value("users/reviews", scores["n"])
    table = scores.to_frame().reset_index()
    yield TableRows("metrics", {str(name): table[name].tolist() for name in table})
    if scores.thresholds:
        names = scores.thresholds[0]
        at = {name: [row[name] for row in scores.thresholds] for name in names}
        yield TableRows("thresholds", at)


def _figures(
    p: Array, recalled: Array, folder: Path, title: str
) -> Iterator[FigureFiles | ArtifactFile]:
    """Yield the figures; PNG files are at the root, because MLflow opens results from there."""
    whole = ~(np.isnan(p) | np.isnan(recalled.astype(np.float64)))
    seen = tally(p[whole], recalled[whole].astype(np.bool_))
    for name, draw in (("calibration", calibration_figure), ("roc", roc_figure)):
        png, svg = save_figure(draw(seen, title=title), folder, name)
        yield FigureFiles(name, png)
        yield ArtifactFile(svg)

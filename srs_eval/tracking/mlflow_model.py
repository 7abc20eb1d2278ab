"""A fitted memory model as a model of MLflow: JSON, and code that builds it again."""

from __future__ import annotations

import json
import math
import re
import tempfile
import time
from dataclasses import asdict
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import mlflow.pyfunc
import numpy as np
import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import LoggedModel, LoggedModelOutput, Metric
from mlflow.models import Model, ModelSignature
from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

from srs_eval.nouns import GROUPS
from srs_eval.tracking.items import LearnedModel, ScoredModel
from srs_eval.tracking.mlflow_store import DIGEST_LENGTH, NOTE_TAG

MODEL = "model"
_DAYS = (1.0, 2.0, 4.0, 7.0, 14.0, 30.0, 60.0, 120.0, 240.0, 365.0)
SIGNATURE = ModelSignature(
    inputs=Schema(
        [
            ColSpec("long", "card"),
            ColSpec("double", "elapsed_days"),
            ColSpec("long", "rating"),
            *(ColSpec("long", group, required=False) for group in GROUPS),
        ]
    ),
    outputs=Schema(
        [ColSpec("long", "card"), ColSpec("double", "days"), ColSpec("double", "recall")]
    ),
    params=ParamSchema([ParamSpec("days", "double", np.array(_DAYS), shape=(-1,))]),
)
EXAMPLE = pd.DataFrame(
    {"card": [1, 1, 1, 2], "elapsed_days": [0.0, 1.0, 3.0, 0.0], "rating": [3, 3, 1, 4]}
)


def log_model(client: MlflowClient, run_id: str, model: ScoredModel) -> None:
    """Log a model to a run, with its scores on its page and in a section of the run.

    A fitted model is ready to be registered and served; one with scores alone has no files, and is
    for `search_logged_models`.
    """
    logged = _created(client, run_id, model)
    if isinstance(model, LearnedModel):
        _log_files(client, run_id, logged, model)
    client.finalize_logged_model(logged.model_id, "READY")
    client.log_outputs(run_id, models=[LoggedModelOutput(logged.model_id, step=0)])
    name, digest = model.dataset
    about = (time.time_ns() // 1_000_000, 0, logged.model_id, name, digest[:DIGEST_LENGTH])
    scores = [
        Metric(f"{MODEL}/{metric}", score, *about)
        for metric, score in model.scores.items()
        if math.isfinite(score)
    ]
    if scores:
        client.log_batch(run_id, metrics=scores, synchronous=True)


def _log_files(client: MlflowClient, run_id: str, logged: LoggedModel, model: LearnedModel) -> None:
    """Log what builds a fitted model again."""
    with tempfile.TemporaryDirectory() as folder:
        content = Path(folder) / "memory_model.json"
        content.write_text(json.dumps(as_json(model), indent=2) + "\n", encoding="utf-8")
        place = Path(folder) / "saved"
        mlflow.pyfunc.save_model(
            place,
            python_model=str(files("srs_eval.mlflow_plugins") / "memory_model_code.py"),
            artifacts={MODEL: str(content)},
            signature=SIGNATURE,
            input_example=EXAMPLE,
            pip_requirements=[f"srs-eval=={version('srs-eval')}", "mlflow"],
            mlflow_model=Model(
                artifact_path=logged.artifact_location,
                run_id=run_id,
                model_uuid=logged.model_id,
                model_id=logged.model_id,
            ),
        )
        client.log_model_artifacts(logged.model_id, str(place))


def _created(client: MlflowClient, run_id: str, model: ScoredModel) -> LoggedModel:
    """Begin a model of a run."""
    experiment_id = client.get_run(run_id).info.experiment_id
    return client.create_logged_model(
        experiment_id,
        name=re.sub(r"[^\w-]+", "_", model.name).strip("_"),
        source_run_id=run_id,
        model_type="memory model",
        params={str(n): str(v) for n, v in model.options.items() if v is not None},
        tags={
            "algorithm": model.name,
            "learned_from": model.learned_from,
            NOTE_TAG: model.description,
        },
    )


def as_json(model: LearnedModel) -> dict[str, object]:
    """Write down what it takes to build a model again."""
    return {
        "algorithm": model.name,
        "options": dict(model.options),
        "parameters": list(model.parameters),
        "parts": [asdict(part) for part in model.parts],
        "whole_days": model.whole_days,
        "learned_from": model.learned_from,
    }

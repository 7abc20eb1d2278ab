"""A fitted memory model as a model of MLflow: JSON, and code that builds it again.

Input, one row per review, the reviews of a card in their order:

- ``card``: number of the card; several cards may be asked about at once;
- ``elapsed_days``: days since the card's previous review (at its first, whatever it says);
- ``rating``: 1 Again, 2 Hard, 3 Good, 4 Easy;
- ``deck``, ``preset``, ``note_type``, ``template`` or ``note``, if the model has parameters for
  groups: the number of the card's group. Where it is -1 or left out, the fit to all reviews
  predicts.

Output, one row per card and day asked for: ``card``, ``days`` since its last review, and
``recall``, the probability of it. The parameter ``days`` says which days. Cards are taken to have
begun on one day.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import reduce
from importlib.metadata import version
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hydra.utils import get_object
from mlflow.models import ModelSignature, set_model
from mlflow.pyfunc import log_model as log_pyfunc
from mlflow.pyfunc.model import PythonModel
from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema
from numpy.typing import ArrayLike

from srs_eval.algorithms.history import no_reviews
from srs_eval.cards import with_next_reviews
from srs_eval.errors import ConfigError, ReviewLogError, SrsEvalError
from srs_eval.metrics.headline import HEADLINE
from srs_eval.nouns import GROUPS, Fit, Part, Reviews, has_curve
from srs_eval.nouns.predictions import select
from srs_eval.runs.config import Setup, option
from srs_eval.runs.folder import Run
from srs_eval.runs.mlflow_store import Store

_INPUT = {"card": "long", "elapsed_days": "double", "rating": "long"}
_OUTPUT = {"card": "long", "days": "double", "recall": "double"}
_DAYS = (1.0, 2.0, 4.0, 7.0, 14.0, 30.0, 60.0, 120.0, 240.0, 365.0)
_CLOSE = 1e-6  # Predictions of a model that is built again
_EXAMPLE = {"card": [1, 1, 1, 2], "elapsed_days": [0.0, 1.0, 3.0, 0.0], "rating": [3, 3, 1, 4]}


def log_model(store: Store, setup: Setup, run: Run) -> str:
    """Log the model of the first user's last fold; return whether it was, or why not.

    The model is built from its parameters, and must predict what the run has predicted.
    """
    fits = [fit for fit in run.fits() if fit.predicts and fit.fold >= 0]
    last = max((f for f in fits if f.user == fits[0].user), key=lambda f: f.fold, default=None)
    try:
        if last is None:
            raise ConfigError("no fit worked")
        whole_days, scores = _checked(setup, run, last)
    except SrsEvalError as error:
        return f"not kept: {error}"
    content = {
        "algorithm": setup.label,
        "options": setup.content["algo"],
        "parameters": list(last.parameters),
        "parts": [asdict(part) for part in last.parts],
        "whole_days": whole_days,
        "learned_from": f"{setup.source.name}, user {last.user}, fold {last.fold}",
    }
    groups = [ColSpec("long", group, required=False) for group in GROUPS]
    signature = ModelSignature(
        Schema([*(ColSpec(kind, name) for name, kind in _INPUT.items()), *groups]),
        Schema([ColSpec(kind, name) for name, kind in _OUTPUT.items()]),
        ParamSchema([ParamSpec("days", "double", np.array(_DAYS), shape=(-1,))]),
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "memory_model.json")
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        model = store.waiting(log_pyfunc)(
            name=re.sub(r"[^\w-]+", "_", setup.label).strip("_"),
            python_model=__file__,
            artifacts={"model": str(file)},
            signature=signature,
            input_example=pd.DataFrame(_EXAMPLE),
            pip_requirements=[f"srs-eval=={version('srs-eval')}", "mlflow"],
            model_type="memory model",
            tags={"algorithm": setup.label, "learned_from": content["learned_from"]},
        )
    metrics = {f"model/{n}": v for n, v in scores.items() if n in HEADLINE and math.isfinite(v)}
    store.log_metrics(metrics, model_id=model.model_id)
    return f"kept: user {last.user}, fold {last.fold}"


def _checked(setup: Setup, run: Run, fit: Fit) -> tuple[bool, Mapping[str, float]]:
    """Compare a model that is built again with the one that has predicted.

    Return whether its clock counts whole days, and its scores on the reviews of its fold.
    """
    log = setup.source.read(fit.user)
    task = setup.protocol(log, same_day=setup.algorithm.same_day)
    whole_days = task.reviews.whole_days
    model = rebuilt_model(setup.content["algo"], fit.parameters, fit.parts, whole_days=whole_days)
    if not has_curve(model):
        raise ConfigError(f"{setup.label} has no forgetting curve")
    (fold,) = [fold for fold in task.folds if fold.number == fit.fold]
    saved = run.predictions(fit.user, curves=False)
    before = None if saved is None else select(saved, saved.fold == fit.fold)
    again = model.predict(task.reviews, fold.test)
    if (
        before is None
        or before.p.shape != again.shape
        or np.abs(before.p - again).max(initial=0.0) > _CLOSE
    ):
        raise ConfigError(f"{setup.label} predicts otherwise when built from its parameters")
    return whole_days, setup.panel.score(before)


def rebuilt_model(
    options: Mapping[str, Any],
    parameters: Sequence[float],
    parts: Sequence[Part] = (),
    *,
    whole_days: bool,
) -> Any:
    """Build a model from its parameters, without fitting.

    A combined model is assembled from the models of its `parts`. `options` are the algorithm's
    resolved option; `whole_days` is whether the model was fitted on whole days.
    """
    target = str(options.get("_target_"))
    kind = get_object(target)
    if hasattr(kind, "assembled"):
        return _assembled(options, parameters, parts, whole_days=whole_days)
    if not parameters or not {"fit", "parameters"} <= {*inspect.signature(kind).parameters}:
        raise ConfigError(f"{target} has no fit and parameters to be built from")
    whole = {**options, "fit": "default", "parameters": list(parameters)}
    reviews = no_reviews(whole_days=whole_days)
    return option("algo", whole).fit(reviews, np.empty(0, np.int64), np.random.default_rng(0))


def _assembled(
    options: Mapping[str, Any],
    parameters: Sequence[float],
    parts: Sequence[Part],
    *,
    whole_days: bool,
) -> Any:
    """Build the models of the parts, then the combined model."""
    models: dict[str, Any] = {}
    try:
        for part in parts:
            if any(part.name.startswith(f"{other.name}/") for other in parts):
                continue  # It is a part of that part
            inner = [
                replace(
                    other,
                    name=other.name.removeprefix(f"{part.name}/"),
                    option=other.option.removeprefix(f"{part.option}."),
                )
                for other in parts
                if other.name.startswith(f"{part.name}/")
            ]
            own = reduce(getitem, part.option.split("."), options)
            models[part.name] = rebuilt_model(own, part.parameters, inner, whole_days=whole_days)
        return option("algo", options).assembled(parameters, models)
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"{options['_target_']}: a part is missing: {error}") from error


class CurvesOfCards:
    """A model that predicts forgetting curves of cards, built from its JSON."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._whole_days = bool(content["whole_days"])
        options = content["options"]
        self._keeps_same_day = option("algo", options).same_day or not self._whole_days
        self._model = rebuilt_model(
            options,
            content["parameters"],
            [Part(**part) for part in content.get("parts", ())],
            whole_days=self._whole_days,
        )

    def __call__(self, histories: pd.DataFrame, days: ArrayLike) -> pd.DataFrame:
        """Predict each card's recall so many days after its last review."""
        asked = np.asarray(days, np.float64)
        if problems := _problems(histories, asked, whole_days=self._whole_days):
            raise ReviewLogError("histories", problems)
        names = list(dict.fromkeys(histories["card"].tolist()))
        reviews, rows = self._reviews(histories)
        p = self._model.predict_at(reviews, rows, np.tile(asked, (len(names), 1)))
        return pd.DataFrame(
            {
                "card": np.repeat(names, len(asked)),
                "days": np.tile(asked, len(names)),
                "recall": np.array(p, np.float64).ravel(),
            }
        )

    def _reviews(self, histories: pd.DataFrame) -> tuple[Reviews, Any]:
        """Build one log of all cards, each with one more review: the queried one."""
        frame = histories.reset_index(drop=True)
        frame = frame.reindex(columns=[*_INPUT, *(g for g in GROUPS if g in histories)])
        first = ~frame["card"].duplicated()
        frame.loc[first, "elapsed_days"] = 0.0
        if not self._keeps_same_day:
            frame = frame[first | (frame["elapsed_days"] >= 1)]
        frame = frame.assign(
            time=frame.groupby("card")["elapsed_days"].cumsum(),
            number=pd.factorize(frame["card"])[0],
        ).sort_values("time", kind="stable")
        elapsed = frame["elapsed_days"].to_numpy(np.float64)
        again = frame["card"].duplicated()
        groups: dict[str, Any] = {
            # The group of a card is that of its first review
            group: frame.groupby("card")[group].transform("first").fillna(-1).to_numpy(np.int64)
            for group in GROUPS
            if group in frame
        }
        reviews = Reviews(
            user="",
            card=frame["number"].to_numpy(np.int64),
            day=np.floor(frame["time"].to_numpy()).astype(np.int64),
            rating=frame["rating"].to_numpy(np.int64),
            elapsed_days=np.where(again, np.floor(elapsed), -1).astype(np.int64),
            elapsed=elapsed,
            row=np.arange(len(frame)),
            whole_days=self._whole_days,
            **groups,
        )
        reviews, rows = with_next_reviews(reviews)
        return reviews, rows[np.argsort(reviews.card[rows])]


def _problems(histories: pd.DataFrame, days: Any, *, whole_days: bool) -> list[str]:
    """Return what is wrong with the values; of columns the signature says what is missing."""
    elapsed = histories["elapsed_days"][histories["card"].duplicated()].to_numpy(np.float64)
    wrong = {
        "no reviews": histories.empty,
        "a rating that is not 1, 2, 3 or 4": not histories["rating"].isin((1, 2, 3, 4)).all(),
        "elapsed_days that are no number of days, 0 or more": not _are_days(elapsed),
        "elapsed_days with a fraction: this model counts whole days": (
            whole_days and (elapsed != np.floor(elapsed)).any()
        ),
        "days that are no numbers of days, 0 or more": not len(days) or not _are_days(days),
    }
    return [problem for problem, is_so in wrong.items() if is_so]


def _are_days(values: Any) -> bool:
    return bool((np.isfinite(values) & (values >= 0)).all())


class ServedMemoryModel(PythonModel):
    """Forgetting curves of cards, given their histories; MLflow keeps a copy of this file."""

    def load_context(self, context: Any) -> None:
        """Build the model from its JSON."""
        text = Path(context.artifacts["model"]).read_text(encoding="utf-8")
        self.curves = CurvesOfCards(json.loads(text))

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Predict the curves: see `CurvesOfCards`."""
        return self.curves(model_input, (params or {})["days"])


set_model(ServedMemoryModel())

"""A fitted memory model as a model of MLflow: JSON, and code that builds it again.

Input, one row per review, the reviews of a card in their order: ``card``, its number, of several
cards if wanted; ``elapsed_days`` since the card's previous review (at its first, whatever it
says); ``rating``: 1 Again, 2 Hard, 3 Good, 4 Easy.

Output: ``card``, ``days`` since its previous review, and ``recall``, the probability of it. It has
a row per review, predicted from what came before it, NaN at the first of a card. With the parameter
``days`` it has a row per card and day instead, the forgetting curve after the card's last review.
Cards are taken to have begun on one day.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from hydra.utils import get_object
from mlflow.models import ModelSignature, set_model
from mlflow.pyfunc import log_model as log_pyfunc
from mlflow.pyfunc.model import PythonModel
from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

from srs_eval.algorithms.algorithm import has_curve
from srs_eval.algorithms.history import no_reviews
from srs_eval.data.cards import rows_by_card, with_next_reviews
from srs_eval.data.reviews import Reviews
from srs_eval.errors import ConfigError, ReviewLogError, SrsEvalError
from srs_eval.evaluation.fits import Fit
from srs_eval.metrics.panel import HEADLINE
from srs_eval.metrics.predictions import select
from srs_eval.runs.config import Setup, option
from srs_eval.runs.folder import Run
from srs_eval.runs.mlflow_store import Store

_INPUT = {"card": "long", "elapsed_days": "double", "rating": "long"}
_OUTPUT = {"card": "long", "days": "double", "recall": "double"}
_CLOSE = 1e-6  # Predictions of a model that is built again
_EXAMPLE = {"card": [1, 1, 1, 2], "elapsed_days": [0.0, 1.0, 3.0, 0.0], "rating": [3, 3, 1, 4]}


def log_model(store: Store, run_id: str, setup: Setup, run: Run) -> str:
    """Log the model of the first user's last fold; return whether it was, or why not.

    The model is built from its parameters, and must predict what the run has predicted.
    """
    fits = [fit for fit in run.fits() if fit.predicts]
    last = max((f for f in fits if f.user == fits[0].user), key=lambda f: f.fold, default=None)
    if last is None:
        return "not kept: no fit worked"
    try:
        whole_days, scores = _checked(setup, run, last)
    except SrsEvalError as error:
        return f"not kept: {error}"
    about = {"algorithm": setup.label, "learned_from": f"{setup.source.name}, user {last.user}"}
    fitted = {"parameters": list(last.parameters), "whole_days": whole_days}
    content = {**about, "options": setup.content["algo"], **fitted}
    with tempfile.TemporaryDirectory() as folder, mlflow.start_run(run_id):
        file = Path(folder, "memory_model.json")
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        model = store.waiting(log_pyfunc)(
            name=re.sub(r"[^\w-]+", "_", setup.label).strip("_"),
            python_model=__file__,
            artifacts={"model": str(file)},
            signature=ModelSignature(
                Schema([ColSpec(kind, name) for name, kind in _INPUT.items()]),
                Schema([ColSpec(kind, name) for name, kind in _OUTPUT.items()]),
                ParamSchema([ParamSpec("days", "double", np.empty(0), shape=(-1,))]),
            ),
            input_example=pd.DataFrame(_EXAMPLE),
            pip_requirements=[f"srs-eval=={version('srs-eval')}", "mlflow"],
            model_type="memory model",
            tags=about,
        )
        values = {f"model/{name}": value for name, value in scores.items()}
        store.waiting(mlflow.log_metrics)(values, model_id=model.model_id)
    return f"kept: user {last.user}, fold {last.fold}"


def _checked(setup: Setup, run: Run, fit: Fit) -> tuple[bool, Mapping[str, float]]:
    """Compare a model that is built again with the one that has predicted.

    Return whether its clock counts whole days, and its scores on the reviews of its fold.
    """
    task = setup.protocol(setup.source.read(fit.user), same_day=setup.algorithm.same_day)
    whole_days = task.reviews.whole_days
    model = rebuilt_model(setup.content["algo"], fit.parameters, whole_days=whole_days)
    if not has_curve(model):
        raise ConfigError(f"{setup.label} has no forgetting curve")
    (fold,) = [fold for fold in task.folds if fold.number == fit.fold]
    saved = run.predictions(fit.user, curves=False)
    assert saved is not None  # of a fit that predicts
    before = select(saved, saved.fold == fit.fold)
    if not np.allclose(before.p, model.predict(task.reviews, fold.test), rtol=0, atol=_CLOSE):
        raise ConfigError(f"{setup.label} predicts otherwise when built from its parameters")
    scores = setup.panel.score(before)
    return whole_days, {n: v for n, v in scores.items() if n in HEADLINE and math.isfinite(v)}


def rebuilt_model(
    options: Mapping[str, Any], parameters: Sequence[float], *, whole_days: bool
) -> Any:
    """Build a model from its parameters, without fitting.

    `options` are the algorithm's resolved option; `whole_days` is whether the model was fitted on
    whole days.
    """
    target = str(options.get("_target_"))
    arguments = inspect.signature(get_object(target)).parameters
    if not parameters or not {"fit", "parameters"} <= {*arguments}:
        raise ConfigError(f"{target} has no fit and parameters to be built from")
    whole = {**options, "fit": "default", "parameters": list(parameters)}
    reviews = no_reviews(whole_days=whole_days)
    return option("algo", whole).fit(reviews, np.empty(0, np.int64), np.random.default_rng(0))


class ServedMemoryModel(PythonModel):
    """Recall of cards, given their histories; MLflow keeps a copy of this file."""

    def load_context(self, context: Any) -> None:
        """Build the model from its JSON."""
        content = json.loads(Path(context.artifacts["model"]).read_text(encoding="utf-8"))
        options, self._whole_days = content["options"], bool(content["whole_days"])
        self._same_day = option("algo", options).same_day or not self._whole_days
        self._model = rebuilt_model(options, content["parameters"], whole_days=self._whole_days)

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Predict each review, or each card's recall so many ``days`` after its last review."""
        days = np.asarray((params or {}).get("days", ()), np.float64)
        cards, elapsed = model_input["card"], model_input["elapsed_days"]
        reviews = self._reviews(model_input)
        if not len(days):
            rows = np.flatnonzero(rows_by_card(reviews.card).nth > 0)
            recall = np.full(len(cards), np.nan)
            recall[reviews.row[rows]] = self._model.predict(reviews, rows)
            return pd.DataFrame({"card": cards, "days": elapsed, "recall": recall})
        reviews, rows = with_next_reviews(reviews)
        rows = rows[np.argsort(reviews.card[rows])]
        p = self._model.predict_at(reviews, rows, np.tile(days, (len(rows), 1)))
        at = pd.MultiIndex.from_product([cards.unique(), days], names=["card", "days"])
        return at.to_frame(index=False).assign(recall=np.asarray(p, np.float64).ravel())

    def _reviews(self, histories: pd.DataFrame) -> Reviews:
        """Build one log of all cards; `row` says which row of the histories each review is.

        Raise `ReviewLogError` for values that cannot be.
        """
        frame = histories.reset_index(drop=True)
        first = ~frame["card"].duplicated()
        elapsed = frame["elapsed_days"].astype(np.float64).where(~first, 0.0)
        wrong = {
            "a rating that is not 1, 2, 3 or 4": ~frame["rating"].isin((1, 2, 3, 4)),
            "elapsed_days that are no number of days, 0 or more": ~elapsed.between(
                0, np.inf, inclusive="left"
            ),
            "elapsed_days with a fraction: this model counts whole days": (
                self._whole_days & (elapsed % 1 > 0)
            ),
        }
        if problems := [problem for problem, rows in wrong.items() if rows.any()]:
            raise ReviewLogError("histories", problems)
        time = elapsed.groupby(frame["card"]).cumsum()
        row = np.argsort(time.to_numpy(), kind="stable")
        if not self._same_day:
            row = row[(first | (elapsed >= 1)).to_numpy()[row]]
        whole = np.where(first, -1, np.floor(elapsed)).astype(np.int64)
        return Reviews(
            user="",
            card=pd.factorize(frame["card"])[0][row].astype(np.int64),
            day=np.floor(time.to_numpy()).astype(np.int64)[row],
            rating=frame["rating"].to_numpy(np.int64)[row],
            elapsed_days=whole[row],
            elapsed=elapsed.to_numpy()[row],
            row=row,
            whole_days=self._whole_days,
        )


set_model(ServedMemoryModel())

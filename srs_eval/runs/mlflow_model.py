"""A fitted memory model as a model of MLflow: JSON, and code that builds it again.

Input, one row per review, the reviews of a card in their order: ``card``, its number, of several
cards if wanted; ``elapsed_days`` since the card's previous review (at its first, whatever it
says); ``rating``: 1 Again, 2 Hard, 3 Good, 4 Easy.

Output: ``card``, ``elapsed_days`` and ``recall``, the probability of it, predicted from what came
before the review: NaN at the first of a card. A last row with any rating asks for the recall of
that day. Cards are taken to have begun on one day.
"""

from __future__ import annotations

import inspect
import json
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
from mlflow.types import ColSpec, Schema

from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import Reviews
from srs_eval.errors import ConfigError, ReviewLogError, SrsEvalError
from srs_eval.evaluation.fits import Fit
from srs_eval.metrics.predictions import select
from srs_eval.runs.config import Setup, option
from srs_eval.runs.folder import Run
from srs_eval.runs.mlflow_store import Store

_ROW = [ColSpec("long", "card"), ColSpec("double", "elapsed_days")]
_INPUT, _OUTPUT = (
    Schema([*_ROW, ColSpec("long", "rating")]),
    Schema([*_ROW, ColSpec("double", "recall")]),
)
_CLOSE = 1e-6  # Predictions of a model that is built again
_EXAMPLE = {"card": [1, 1], "elapsed_days": [0.0, 3.0], "rating": [3, 3]}


def log_model(store: Store, run_id: str, setup: Setup, run: Run) -> str:
    """Log the model of the first user's last fold; return whether it was, or why not.

    The model is built from its parameters, and must predict what the run has predicted.
    """
    fits = [fit for fit in run.fits() if fit.predicts]
    last = max((f for f in fits if f.user == fits[0].user), key=lambda f: f.fold, default=None)
    if last is None:
        return "not kept: no fit worked"
    try:
        whole_days = _checked(setup, run, last)
    except SrsEvalError as error:
        return f"not kept: {error}"
    content = {"algorithm": setup.label, "options": setup.content["algo"]}
    content |= {"parameters": list(last.parameters), "whole_days": whole_days}
    with tempfile.TemporaryDirectory() as folder, mlflow.start_run(run_id):
        file = Path(folder, "memory_model.json")
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        store.waiting(log_pyfunc)(
            name=re.sub(r"[^\w-]+", "_", setup.label).strip("_"),
            python_model=__file__,
            artifacts={"model": str(file)},
            signature=ModelSignature(_INPUT, _OUTPUT),
            input_example=pd.DataFrame(_EXAMPLE),
            pip_requirements=[f"srs-eval=={version('srs-eval')}", "mlflow"],
            model_type="memory model",
            tags={"learned_from": f"{setup.source.name}, user {last.user}"},
        )
    return f"kept: user {last.user}, fold {last.fold}"


def _checked(setup: Setup, run: Run, fit: Fit) -> bool:
    """Return whether the clock of a model counts whole days.

    Raise `ConfigError` if the model that is built again predicts otherwise than the run.
    """
    task = setup.protocol(setup.source.read(fit.user), same_day=setup.algorithm.same_day)
    whole_days = task.reviews.whole_days
    model = rebuilt_model(setup.content["algo"], fit.parameters, whole_days=whole_days)
    (fold,) = [fold for fold in task.folds if fold.number == fit.fold]
    saved = run.predictions(fit.user, curves=False)
    assert saved is not None  # of a fit that predicts
    before = select(saved, saved.fold == fit.fold)
    if not np.allclose(before.p, model.predict(task.reviews, fold.test), rtol=0, atol=_CLOSE):
        raise ConfigError(f"{setup.label} predicts otherwise when built from its parameters")
    return whole_days


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
    none, elapsed = np.empty(0, np.int64), np.empty(0)
    reviews = Reviews("", none, none, none, none, elapsed, none, whole_days=whole_days)
    return option("algo", whole).fit(reviews, none, np.random.default_rng(0))


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
        """Predict each review."""
        reviews = self._reviews(model_input)
        rows = np.flatnonzero(rows_by_card(reviews.card).nth > 0)
        recall = np.full(len(model_input), np.nan)
        recall[reviews.row[rows]] = self._model.predict(reviews, rows)
        return model_input[["card", "elapsed_days"]].assign(recall=recall)

    def _reviews(self, histories: pd.DataFrame) -> Reviews:
        """Build one log of all cards; `row` says which row of the histories each review is.

        Raise `ReviewLogError` for values that cannot be.
        """
        frame = histories.reset_index(drop=True)
        first = ~frame["card"].duplicated()
        elapsed = frame["elapsed_days"].astype(np.float64).where(~first, 0.0)
        wrong = ~frame["rating"].isin((1, 2, 3, 4)) | ~elapsed.between(0, 1e6)
        wrong |= self._whole_days & (elapsed % 1 > 0)
        if wrong.any():
            days = "whole days" if self._whole_days else "days"
            problem = f"expected a rating from 1 to 4, and elapsed_days of 0 or more {days}"
            raise ReviewLogError("histories", [f"row {np.argmax(wrong) + 1}: {problem}"])
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

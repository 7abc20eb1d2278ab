"""The fitted model of a run as data, if it can be built again from it: that is tried out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.nouns import Fit, FloatArray
from srs_eval.plan import Plan
from srs_eval.rebuilt import rebuilt_model
from srs_eval.report.files import PREDICTIONS
from srs_eval.scoring import Evaluation
from srs_eval.tracking.items import Item, LearnedModel, Tag

_CLOSE = 1e-6


def learned_model(plan: Plan, evaluation: Evaluation) -> Iterator[Item]:
    """Yield the model of the first user's last fold, or a tag that says why there is none.

    The model is built from its parameters and must predict what the run has predicted.
    """
    fits = [fit for fit in evaluation.fits if fit.predicts and fit.fold >= 0]
    last = max((f for f in fits if f.user == fits[0].user), key=lambda f: f.fold, default=None)
    try:
        if last is None:
            raise ConfigError("no fit worked")
        whole_days = _check(plan, last)
    except SrsEvalError as error:
        yield Tag("model", f"not kept: {error}")
        return
    yield LearnedModel(
        name=plan.label,
        options=plan.options["algo"],
        parameters=last.parameters,
        whole_days=whole_days,
        learned_from=f"{plan.source.name}, user {last.user}, fold {last.fold}",
    )
    yield Tag("model", f"kept: user {last.user}, fold {last.fold}")


def _check(plan: Plan, fit: Fit) -> bool:
    """Compare the model built again with the one that predicted; tell of the clock."""
    task = plan.protocol(plan.source.read(fit.user), same_day=plan.algorithm.same_day)
    options, whole_days = plan.options["algo"], task.reviews.whole_days
    model = rebuilt_model(options, fit.parameters, whole_days=whole_days)
    if not hasattr(model, "predict_at"):
        raise ConfigError(f"{plan.label} has no forgetting curve")
    (fold,) = [fold for fold in task.folds if fold.number == fit.fold]
    before = _predicted(plan, fit)
    again = model.predict(task.reviews, fold.test)
    if before.shape != again.shape or np.abs(before - again).max() > _CLOSE:
        raise ConfigError(f"{plan.label} predicts otherwise when built from its parameters")
    return whole_days


def _predicted(plan: Plan, fit: Fit) -> FloatArray:
    """Read what the model predicted."""
    path = plan.folder / PREDICTIONS
    is_number = pa.types.is_integer(pq.read_schema(path).field("user").type)
    user = fit.user if is_number else str(fit.user)
    wanted = [("user", "==", user), ("fold", "==", fit.fold)]
    p: FloatArray = pq.read_table(path, columns=["p"], filters=wanted)["p"].to_numpy()
    return p

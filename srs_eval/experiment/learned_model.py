"""The fitted model of a run as data, if it can be built again from it: that is tried out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from srs_eval.config.rebuild import rebuilt_model
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.scoring import Evaluation
from srs_eval.experiment.plan import Plan
from srs_eval.nouns import Fit, Predictions
from srs_eval.nouns.predictions import select
from srs_eval.results.saved_predictions import SavedPredictions
from srs_eval.tracking.items import Item, LearnedModel, Tag
from srs_eval.tracking.sections import HEADLINE

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
        whole_days, predictions = _check(plan, last)
    except SrsEvalError as error:
        yield Tag("model", f"not kept: {error}")
        return
    scores = plan.panel.score(predictions)
    yield LearnedModel(
        name=plan.label,
        options=plan.options["algo"],
        parameters=last.parameters,
        parts=last.parts,
        whole_days=whole_days,
        learned_from=f"{plan.source.name}, user {last.user}, fold {last.fold}",
        scores={name: scores[name] for name in HEADLINE if name in scores},
        dataset=(plan.source.name, evaluation.scores.fingerprint),
        description=(
            f"**{plan.label}**, learned from the first {last.n_train:,} scored reviews of user "
            f"{last.user}. Its scores are those of the {last.n_test:,} reviews after them. "
            f"Source: {plan.source.location}."
        ),
    )
    yield Tag("model", f"kept: user {last.user}, fold {last.fold}")


def _check(plan: Plan, fit: Fit) -> tuple[bool, Predictions]:
    """Compare the model built again with the one that predicted.

    Returns
    -------
    whole_days : bool
        The clock it was learned on.
    predictions : Predictions
        What it has predicted of the reviews after those it has learned from.
    """
    task = plan.protocol(plan.source.read(fit.user), same_day=plan.algorithm.same_day)
    options, whole_days = plan.options["algo"], task.reviews.whole_days
    model = rebuilt_model(options, fit.parameters, fit.parts, whole_days=whole_days)
    if not hasattr(model, "predict_at"):
        raise ConfigError(f"{plan.label} has no forgetting curve")
    (fold,) = [fold for fold in task.folds if fold.number == fit.fold]
    kept = SavedPredictions(plan.folder)
    saved = kept.read(fit.user) or kept.read(str(fit.user))  # one kind of name to a file
    before = None if saved is None else select(saved, saved.fold == fit.fold)
    again = model.predict(task.reviews, fold.test)
    if (
        before is None
        or before.p.shape != again.shape
        or np.abs(before.p - again).max(initial=0.0) > _CLOSE
    ):
        raise ConfigError(f"{plan.label} predicts otherwise when built from its parameters")
    return whole_days, before

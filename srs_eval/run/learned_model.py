"""The fitted model of a run as data, if it can be built again from it: that is tried out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from srs_eval.config.rebuild import rebuilt_model
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.metrics.headline import HEADLINE
from srs_eval.nouns import Fit, Predictions, has_curve
from srs_eval.nouns.predictions import select
from srs_eval.results.result import Result
from srs_eval.run.plan import Plan
from srs_eval.tracking.items import Item, LearnedModel, Tag

_CLOSE = 1e-6


def learned_model(plan: Plan, result: Result) -> Iterator[Item]:
    """Yield the model of the first user's last fold, or a tag that says why there is none.

    The model is built from its parameters and must predict what the run has predicted.
    """
    fits = [fit for fit in result.fitted if fit.predicts and fit.fold >= 0]
    last = max((f for f in fits if f.user == fits[0].user), key=lambda f: f.fold, default=None)
    try:
        if last is None:
            raise ConfigError("no fit worked")
        whole_days, predictions = _check(plan, result, last)
    except SrsEvalError as error:
        yield Tag("model", f"not kept: {error}")
        return
    about, source = plan.about, plan.experiment.source
    scores = plan.experiment.panel.score(predictions)
    yield LearnedModel(
        name=about.label,
        options=about.options["algo"],
        parameters=last.parameters,
        parts=last.parts,
        whole_days=whole_days,
        learned_from=f"{source.name}, user {last.user}, fold {last.fold}",
        scores={name: scores[name] for name in HEADLINE if name in scores},
        dataset=(source.name, result.facts.rows_fingerprint),
        description=(
            f"**{about.label}**, learned from the first {last.n_train:,} scored reviews of user "
            f"{last.user}. Its scores are those of the {last.n_test:,} reviews after them. "
            f"Source: {source.location}."
        ),
    )
    yield Tag("model", f"kept: user {last.user}, fold {last.fold}")


def _check(plan: Plan, result: Result, fit: Fit) -> tuple[bool, Predictions]:
    """Compare the model built again with the one that predicted.

    Return whether its clock counts whole days, and what it has predicted of the reviews after those
    it has learned from.
    """
    experiment, label = plan.experiment, plan.about.label
    log = experiment.source.read(fit.user)
    task = experiment.protocol(log, same_day=experiment.algorithm.same_day)
    options, whole_days = plan.about.options["algo"], task.reviews.whole_days
    model = rebuilt_model(options, fit.parameters, fit.parts, whole_days=whole_days)
    if not has_curve(model):
        raise ConfigError(f"{label} has no forgetting curve")
    (fold,) = [fold for fold in task.folds if fold.number == fit.fold]
    saved = result.predicted.read(fit.user, curves=False)
    before = None if saved is None else select(saved, saved.fold == fit.fold)
    again = model.predict(task.reviews, fold.test)
    if (
        before is None
        or before.p.shape != again.shape
        or np.abs(before.p - again).max(initial=0.0) > _CLOSE
    ):
        raise ConfigError(f"{label} predicts otherwise when built from its parameters")
    return whole_days, before

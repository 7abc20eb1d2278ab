"""Algorithms that look back at whole histories, plus a way to fit their parameters."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from srs_eval.algorithms.features.log_odds import LogLoss, LogOdds, LogOddsModel, log_loss_of
from srs_eval.algorithms.fit_options import NOT_CONVERGED, FitOptions
from srs_eval.algorithms.history import History, history_of
from srs_eval.engine.lbfgs import lbfgs
from srs_eval.engine.newton import newton
from srs_eval.engine.objective import penalty_matrix, standard_errors
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.reference import descend
from srs_eval.errors import FitError, FitSkipped
from srs_eval.nouns import IntArray, Learned, MemoryModel, Reviews, Vector

# In double precision a fit can end nearer to the minimum than in single precision; where
# parameters stand in for each other, steps with little gain can still add up.
_TOLERANCE = 1e-7


class FittedLogOdds(FitOptions):
    """Base of algorithms whose log-odds of recall look back at whole histories."""

    mathematics: ClassVar[type[Any]]

    def log_odds(self, *, whole_days: bool) -> LogOdds:
        """Return the model as mathematics, for a log in whole or in fractional days."""
        log_odds: LogOdds = self.mathematics()
        return log_odds

    def widest_space(self) -> ParameterSpace:
        return self.log_odds(whole_days=False).parameters

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> MemoryModel:
        return self._learn(reviews, rows, None)

    def refit(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator, previous: MemoryModel
    ) -> MemoryModel:
        return self._learn(reviews, rows, np.asarray(previous.parameters))

    def _learn(self, reviews: Reviews, rows: IntArray, previous: Vector | None) -> LogOddsModel:
        log_odds = self.log_odds(whole_days=reviews.whole_days)
        centre = np.asarray(self.parameters or log_odds.parameters.defaults)
        if self.method == "default":
            return LogOddsModel(log_odds, tuple(centre.tolist()))
        if len(rows) == 0:
            raise FitSkipped(f"{self.name}: there are no training reviews to learn from")
        history, rows = history_of(reviews), np.sort(rows)
        try:
            if self.method == "reference":
                return self._trained(log_odds, history, rows, centre)
            begin = centre if previous is None else previous
            return self._minimised(log_odds, history, rows, centre, begin)
        except FitError as error:
            raise FitError(f"{self.name}: user {reviews.user}: {error}") from error

    def loss(self, log_odds: LogOdds, history: History, rows: IntArray, centre: Vector) -> LogLoss:
        """Return what ``newton`` and ``lbfgs`` minimise."""
        weight = self.weights(len(rows))
        pull = penalty_matrix(log_odds.parameters, self.prior_weight)
        return log_loss_of(log_odds, history, rows, weight / weight.mean(), centre, pull)

    def _minimised(
        self, log_odds: LogOdds, history: History, rows: IntArray, centre: Vector, begin: Vector
    ) -> LogOddsModel:
        space = log_odds.parameters
        loss = self.loss(log_odds, history, rows, centre)
        found = (
            newton(loss, begin, space, tolerance=_TOLERANCE)
            if self.method == "newton"
            else lbfgs(loss, begin, space)
        )
        errors = standard_errors(found.information, found.parameters, space)
        note = "" if found.converged else NOT_CONVERGED
        learned = Learned(tuple(errors.tolist()), note=note, converged=found.converged)
        return LogOddsModel(log_odds, tuple(found.parameters.tolist()), learned)

    def _trained(
        self, log_odds: LogOdds, history: History, rows: IntArray, start: Vector
    ) -> LogOddsModel:
        kept = self.recipe.trains_on(history.reviews, rows, history.cards)
        if not kept.any():
            note = f"the public trainer leaves out all of the {len(rows)} training reviews"
            learned = Learned(note=f"{note}: the parameters were kept", fallback=True)
            return LogOddsModel(log_odds, tuple(start.tolist()), learned)
        weight = self.weights(len(rows))
        w = self.trained(log_odds, history, rows[kept], weight[kept], start)
        return LogOddsModel(log_odds, tuple(w.tolist()))

    def trained(
        self, log_odds: LogOdds, history: History, rows: IntArray, weight: Vector, start: Vector
    ) -> Vector:
        recipe, space = self.recipe, log_odds.parameters
        free = np.zeros((len(space), len(space)))

        def loss(some: IntArray) -> LogLoss:
            return log_loss_of(log_odds, history, rows[some], weight[some], start, free)

        order = recipe.order(history.nth[rows])
        batches = [loss(order[cut]) for cut in recipe.cuts(len(rows))]
        return descend(batches, loss(np.arange(len(rows))), start, recipe, space)

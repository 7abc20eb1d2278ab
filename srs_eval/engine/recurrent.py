"""Memory models written as equations, run over all cards of a log at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_eval.engine.cards import Lanes, lanes
from srs_eval.engine.equations import Equations, NumpyMaths, State
from srs_eval.engine.probability import uncertain
from srs_eval.nouns import FloatArray, IntArray, Reviews

_MATHS = NumpyMaths()


@dataclass(frozen=True, slots=True)
class RecurrentModel:
    """Equations with numbers in them: a memory model with a forgetting curve.

    Attributes
    ----------
    equations : Equations
        The model as mathematics.
    parameters : tuple of float
        Its numbers, as many as the equations ask for.
    """

    equations: Equations
    parameters: tuple[float, ...]

    def predict(self, reviews: Reviews, rows: IntArray) -> NDArray[np.float64]:
        """Predict recall at each of `rows` from the card's reviews before it.

        Returns
        -------
        p : float64 [len(rows)], in (0, 1)
            NaN at a card's first review, where there is nothing to forget yet.
        """
        arranged = lanes(reviews.card, until=rows)
        p = np.full(len(reviews), np.nan)
        for walked in _walk(self.equations, self.parameters, reviews, arranged):
            p[walked.rows] = walked.p
        return uncertain(p[rows])

    def predict_at(
        self, reviews: Reviews, rows: IntArray, elapsed: FloatArray
    ) -> NDArray[np.float64]:
        """Predict recall at other elapsed times, the history staying as it is.

        Parameters
        ----------
        elapsed : float [len(rows), k]
            Days since the card's previous review.

        Returns
        -------
        p : float64 [len(rows), k], in (0, 1)
            NaN at a card's first review.
        """
        before = states_before(self.equations, self.parameters, reviews, rows)
        state = tuple(column[:, None] for column in before)
        w = np.asarray(self.parameters)
        # An overflow is the limit 0 or 1 of the curve, or NaN, which is refused later.
        with np.errstate(over="ignore"):
            p = self.equations.curve(_MATHS, w, state, np.asarray(elapsed, np.float64))
        return uncertain(p)

    def states(self, reviews: Reviews) -> dict[str, NDArray[np.float64]]:
        """Trace the state after every review, by name; each float64 [len(reviews)]."""
        arranged = lanes(reviews.card)
        columns = np.empty((len(self.equations.state_names), len(reviews)))
        for walked in _walk(self.equations, self.parameters, reviews, arranged):
            columns[:, walked.rows] = walked.after
        return dict(zip(self.equations.state_names, columns, strict=True))


def states_before(
    equations: Equations, parameters: tuple[float, ...], reviews: Reviews, rows: IntArray
) -> NDArray[np.float64]:
    """State of each row's card just before that review.

    Returns
    -------
    float64 [len(state_names), len(rows)]
        NaN at a card's first review.
    """
    arranged = lanes(reviews.card, until=rows)
    columns = np.full((len(equations.state_names), len(reviews)), np.nan)
    for walked in _walk(equations, parameters, reviews, arranged):
        columns[:, walked.rows] = walked.before
    return columns[:, rows]


@dataclass(frozen=True, slots=True)
class _Walked:
    """The k-th reviews of all cards: row numbers, state before and after, prediction."""

    rows: IntArray
    before: State
    p: NDArray[np.float64]
    after: State


def _walk(
    equations: Equations, parameters: tuple[float, ...], reviews: Reviews, arranged: Lanes
) -> Iterator[_Walked]:
    """Run the equations along all cards, one review of each at a time.

    At first reviews the state before and the prediction are NaN.
    """
    w = np.asarray(parameters)
    elapsed = reviews.elapsed[arranged.rows].astype(np.float64)
    rating = reviews.rating[arranged.rows].astype(np.float64)
    after: State = ()
    for places in arranged:
        rows = arranged.rows[places]
        with np.errstate(over="ignore"):
            if places.start == 0:
                p = np.full(len(rows), np.nan)
                before: State = tuple(p for _ in equations.state_names)
                after = equations.init(_MATHS, w, rating[places])
            else:
                before = tuple(column[: len(rows)] for column in after)
                p = equations.curve(_MATHS, w, before, elapsed[places])
                after = equations.step(_MATHS, w, before, elapsed[places], rating[places], p)
        # An author may return plain numbers where the state is the same for every card.
        after = tuple(np.broadcast_to(value, rows.shape) for value in after)
        yield _Walked(rows, before, p, after)

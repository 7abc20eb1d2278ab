"""Memory models written as equations, run over all cards of a log at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from srs_eval.engine.compiled import compiled
from srs_eval.engine.equations import NUMPY_MATHS, Equations, uncertain
from srs_eval.engine.packing import LANES, pack
from srs_eval.errors import FitError
from srs_eval.nouns import FloatArray, IntArray, Learned, Reviews

# Of binary ratings.
_AGAIN, _GOOD = 1, 3


@dataclass(frozen=True, slots=True)
class RecurrentModel:
    """Equations with numbers in them: a memory model with a forgetting curve.

    Raise `FitError` if there are not as many parameters as the equations have.
    """

    equations: Equations  # The model as mathematics
    parameters: tuple[float, ...]  # Its numbers, as many as the equations ask for
    learned: Learned = field(default_factory=Learned)  # How they were found
    binary: bool = False  # Whether Hard and Easy are taken for Good

    def __post_init__(self) -> None:
        """Refuse the parameters of other equations, such as those of another version."""
        expected, found = len(self.equations.parameters), len(self.parameters)
        if found != expected:
            name = type(self.equations).__name__
            raise FitError(f"{name} has {expected} parameters, and {found} were given")

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`; NaN at a card's first review."""
        packed = pack(self._seen(reviews), until=rows)
        p, _ = compiled(self.equations).walk(np.asarray(self.parameters), packed)
        place, lane = np.divmod(packed.where[rows], LANES)
        return uncertain(p[place, lane])

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [len(rows), k]; NaN at a card's first review."""
        before = _states_before(self.equations, self.parameters, self._seen(reviews), rows)
        state = tuple(column[:, None] for column in before)
        w = np.asarray(self.parameters)
        # An overflow is the limit 0 or 1 of the curve, or NaN, which is refused later.
        with np.errstate(over="ignore"):
            p = self.equations.curve(NUMPY_MATHS, w, state, np.asarray(elapsed, np.float64))
        # A curve may leave out what it does not depend on.
        curves = np.array(np.broadcast_to(p, elapsed.shape), np.float64)
        curves[np.isnan(before).all(axis=0)] = np.nan
        return uncertain(curves)

    def states(self, reviews: Reviews) -> dict[str, FloatArray]:
        """Trace the state after every review, by name; each float64 [len(reviews)]."""
        packed = pack(self._seen(reviews))
        _, states = compiled(self.equations).walk(np.asarray(self.parameters), packed)
        columns = _at(states, packed.where)
        return dict(zip(self.equations.state_names, columns, strict=True))

    def _seen(self, reviews: Reviews) -> Reviews:
        return with_binary_ratings(reviews) if self.binary else reviews


def _states_before(
    equations: Equations, parameters: tuple[float, ...], reviews: Reviews, rows: IntArray
) -> FloatArray:
    """State [names, rows] of each row's card before that review; NaN at a first review."""
    packed = pack(reviews, until=rows)
    _, states = compiled(equations).walk(np.asarray(parameters), packed)
    places = packed.where[rows]
    first = np.isin(places // LANES, packed.starts)
    columns = _at(states, np.where(first, places, places - LANES))
    columns[:, first] = np.nan
    return columns


def _at(states: FloatArray, places: IntArray) -> FloatArray:
    """Pick the states at some places."""
    return np.ascontiguousarray(states[places // LANES, :, places % LANES].T)


def with_binary_ratings(reviews: Reviews) -> Reviews:
    """Replace Hard and Easy by Good in a log."""
    return replace(reviews, rating=np.where(reviews.recalled, _GOOD, _AGAIN))

"""Memory models written as equations, run over all cards of a log at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from srs_eval.algorithms.algorithm import Learned
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.compiled import compiled
from srs_eval.engine.equations import NUMPY_MATHS, Equations, uncertain
from srs_eval.engine.packing import LANES, Packed, pack
from srs_eval.errors import FitError

# Of binary ratings.
_AGAIN, _GOOD = 1, 3


@dataclass(frozen=True, slots=True)
class RecurrentModel:
    """Equations with numbers in them: a memory model with a forgetting curve."""

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
        packed, p, _ = self._walk(reviews, rows)
        place, lane = np.divmod(packed.where[rows], LANES)
        return uncertain(p[place, lane])

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [len(rows), k]; NaN at a card's first review."""
        packed, _, states = self._walk(reviews, rows)
        places = packed.where[rows]
        first = np.isin(places // LANES, packed.starts)
        before = _at(states, np.where(first, places, places - LANES))
        state = tuple(column[:, None] for column in before)
        w = np.asarray(self.parameters)
        # An overflow is the limit 0 or 1 of the curve, or NaN, which is refused later.
        with np.errstate(over="ignore"):
            p = self.equations.curve(NUMPY_MATHS, w, state, np.asarray(elapsed, np.float64))
        # A curve may leave out what it does not depend on.
        curves = np.array(np.broadcast_to(p, elapsed.shape), np.float64)
        curves[first] = np.nan
        return uncertain(curves)

    def states(self, reviews: Reviews) -> dict[str, FloatArray]:
        """Trace the state after every review, by name; each float64 [len(reviews)]."""
        packed, _, states = self._walk(reviews)
        columns = _at(states, packed.where)
        return dict(zip(self.equations.state_names, columns, strict=True))

    def _walk(
        self, reviews: Reviews, rows: IntArray | None = None
    ) -> tuple[Packed, FloatArray, FloatArray]:
        """Pack what comes up to rows; return it with p and states after each review."""
        packed = pack(with_binary_ratings(reviews) if self.binary else reviews, until=rows)
        return packed, *compiled(self.equations).walk(np.asarray(self.parameters), packed)


def _at(states: FloatArray, places: IntArray) -> FloatArray:
    """Pick the states at some places."""
    return np.ascontiguousarray(states[places // LANES, :, places % LANES].T)


def with_binary_ratings(reviews: Reviews) -> Reviews:
    """Replace Hard and Easy by Good in a log."""
    return replace(reviews, rating=np.where(reviews.recalled, _GOOD, _AGAIN))

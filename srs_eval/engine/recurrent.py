"""Memory models written as equations, run over all cards of a log at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from srs_eval.engine.compiled import compiled
from srs_eval.engine.equations import NUMPY_MATHS, Equations, Maths, State, Value
from srs_eval.engine.layout import LANES
from srs_eval.engine.packing import pack
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.probability import uncertain
from srs_eval.errors import FitError
from srs_eval.nouns import FloatArray, IntArray, Learned, Reviews

# Of binary ratings.
_AGAIN, _GOOD = 1.0, 3.0


@dataclass(frozen=True, slots=True)
class RecurrentModel:
    """Equations with numbers in them: a memory model with a forgetting curve.

    Raise `FitError` if there are not as many parameters as the equations have.
    """

    equations: Equations  # The model as mathematics
    parameters: tuple[float, ...]  # Its numbers, as many as the equations ask for
    learned: Learned = field(default_factory=Learned)  # How they were found

    def __post_init__(self) -> None:
        """Refuse the parameters of other equations, such as those of another version."""
        expected, found = len(self.equations.parameters), len(self.parameters)
        if found != expected:
            name = type(self.equations).__name__
            raise FitError(f"{name} has {expected} parameters, and {found} were given")

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`; NaN at a card's first review."""
        packed = pack(reviews, until=rows)
        p, _ = compiled(self.equations).walk(np.asarray(self.parameters), packed)
        place, lane = np.divmod(packed.where[rows], LANES)
        return uncertain(p[place, lane])

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [len(rows), k]; NaN at a card's first review."""
        before = _states_before(self.equations, self.parameters, reviews, rows)
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
        packed = pack(reviews)
        _, states = compiled(self.equations).walk(np.asarray(self.parameters), packed)
        columns = _at(states, packed.where)
        return dict(zip(self.equations.state_names, columns, strict=True))


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


@dataclass(frozen=True, slots=True)
class BinaryRatings:
    """Equations that read only whether an answer was a pass."""

    model: Equations  # What they are made of; it sees ratings 1 (Again) and 3 (Good)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Those of the model."""
        return self.model.state_names

    @property
    def parameters(self) -> ParameterSpace:
        """Those of the model."""
        return self.model.parameters

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        return self.model.init(m, w, _binary(m, rating))

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Forgetting curve of the model."""
        return self.model.curve(m, w, state, elapsed)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        return self.model.step(m, w, state, elapsed, _binary(m, rating), p)


def with_binary_ratings(reviews: Reviews) -> Reviews:
    """Replace Hard and Easy by Good in a log, for methods that learn without equations."""
    return replace(reviews, rating=np.where(reviews.recalled, int(_GOOD), int(_AGAIN)))


def _binary(m: Maths, rating: Value) -> Value:
    return m.where(rating > _AGAIN, _GOOD, _AGAIN)

"""The LSTM as equations that the engine compiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from pydantic import Strict

from srs_eval.data.reviews import FloatArray
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.parameters import ParameterSpace

# Time, and the rating as four 0/1 numbers.
_FEATURES = 5
_LOG_DAYS = 0.3
_DECAY = 0.3
_LARGEST_LOG_STABILITY = 12.0
_LARGEST_LOG_DECAY = 2.5
# Keeps stabilities between a microsecond and 200 million years: only non-numbers are excluded.
_LARGEST_PUBLISHED = 25.0
# Compile time grows with the square of the hidden units: about 5 s for 8, 20 s for 16.
Hidden = Annotated[int, Strict(), Ge(1), Le(16)]


@dataclass(frozen=True, slots=True)
class LstmEquations:
    """One LSTM layer over a card's reviews, whose state gives a power law or an exponential curve.

    Parameters are in PyTorch's order: input weights, recurrent weights and two bias vectors,
    each by gate (input, forget, cell, output) and unit, then the linear outputs.
    """

    hidden: int
    # Whether it reads raw days, and gives an exponential curve with a log stability alone, rather
    # than log days, and a power law with a log stability and a log exponent
    published: bool = False

    @property
    def first_output(self) -> int:
        """Place of the first linear output's weights among the parameters."""
        return 4 * self.hidden * (_FEATURES + self.hidden + 2)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Outputs and cells of the hidden units."""
        return tuple(f"{kind} {k}" for kind in ("output", "cell") for k in range(self.hidden))

    @property
    def parameters(self) -> ParameterSpace:
        """All weights, without bounds."""
        n = self.first_output + (2 - self.published) * (self.hidden + 1)
        return ParameterSpace((0.0,) * n, (-math.inf,) * n, (math.inf,) * n, (1.0,) * n)

    def init(self, m: Maths, w: Value, rating: Value) -> State:
        """Return the state after a first review, which is read at time 0."""
        return self._read(m, w, None, 0.0, rating)

    def step(
        self, m: Maths, w: Value, state: State, elapsed: Value, rating: Value, p: Value
    ) -> State:
        """Return the state after one more review."""
        time = elapsed if self.published else _LOG_DAYS * m.log(1 + elapsed)
        return self._read(m, w, state, time, rating)

    def output(self, w: Value, state: State, number: int) -> Value:
        """Return one linear output of a state."""
        first = self.first_output + number * (self.hidden + 1)
        value = w[first + self.hidden]
        for k in range(self.hidden):
            value = value + w[first + k] * state[k]
        return value

    def _read(self, m: Maths, w: Value, state: State | None, time: Value, rating: Value) -> State:
        gates = 4 * self.hidden
        recurrent = gates * _FEATURES
        biases = recurrent + gates * self.hidden
        sums = []
        for gate in range(gates):
            first = _FEATURES * gate
            again, hard, good, easy = (w[first + 1 + k] for k in range(4))
            rated = m.where(
                rating == 1, again, m.where(rating == 2, hard, m.where(rating == 3, good, easy))
            )
            total = w[biases + gate] + w[biases + gates + gate] + w[first] * time + rated
            if state is not None:
                for k in range(self.hidden):
                    total = total + w[recurrent + self.hidden * gate + k] * state[k]
            sums.append(total)
        outputs, cells = [], []
        for k in range(self.hidden):
            into, forget, new, out = sums[k :: self.hidden]
            cell = _sigmoid(m, into) * _tanh(m, new)
            if state is not None:
                cell = cell + _sigmoid(m, forget) * state[self.hidden + k]
            cells.append(cell)
            outputs.append(_sigmoid(m, out) * _tanh(m, cell))
        return (*outputs, *cells)

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        """Return recall, 0.9 after one stability."""
        if self.published:
            log_stability = m.clip(
                self.output(w, state, 0), -_LARGEST_PUBLISHED, _LARGEST_PUBLISHED
            )
            return m.exp(math.log(0.9) * elapsed * m.exp(-log_stability))
        limit = _LARGEST_LOG_STABILITY
        stability = m.exp(m.clip(self.output(w, state, 0), -limit, limit))
        limit = _LARGEST_LOG_DECAY
        decay = _DECAY * m.exp(m.clip(self.output(w, state, 1), -limit, limit))
        factor = m.exp(-math.log(0.9) / decay) - 1
        return m.exp(-decay * m.log(1 + factor * elapsed / stability))

    def drawn_weights(self, rng: np.random.Generator) -> FloatArray:
        """Draw weights from U(-1/√hidden, 1/√hidden), with open forget gates and a common curve.

        Forget gates have a bias of 1, stability a bias of e days, and weights of the exponent are
        a tenth of the others.
        """
        w: FloatArray = rng.uniform(-1, 1, len(self.parameters)) / math.sqrt(self.hidden)
        forget = 4 * self.hidden * (_FEATURES + self.hidden) + self.hidden
        stability = self.first_output + self.hidden
        w[forget : forget + self.hidden] = 1.0
        w[stability] = 1.0
        w[stability + 1 :] *= 0.1
        return w


# Beyond these arguments both are constant in double precision; exp would overflow further out.
def _sigmoid(m: Maths, x: Value) -> Value:
    return 1 / (1 + m.exp(-m.clip(x, -30.0, 30.0)))


def _tanh(m: Maths, x: Value) -> Value:
    return 2 / (1 + m.exp(-2 * m.clip(x, -15.0, 15.0))) - 1

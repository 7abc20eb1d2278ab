"""What a failed check raises, and the test of differences that may be rounding."""

from __future__ import annotations

import math

import numpy as np

from srs_eval.errors import SrsEvalError
from srs_eval.nouns import Algorithm, FloatArray

_SIGNIFICANCE = 1e-4


class CheckFailed(SrsEvalError):
    """An algorithm failed a check; the message says what it did and where to look."""


class SignTest:
    """A sign test of differences between predictions that may be rounding.

    Rounding moves a prediction towards the outcome as often as away from it. A model that knows
    the outcome moves towards it nearly always, and ranks reviews by it however small the move.
    """

    def __init__(self) -> None:
        self._towards: list[float] = []

    def add(self, towards: FloatArray | float) -> None:
        """Add by how much predictions are higher where the outcome is the better one."""
        self._towards += np.ravel(towards).tolist()

    def expect_none(self, algorithm: Algorithm, advice: str) -> None:
        """Raise if the differences have one sign too often; `advice` ends the message.

        With few rows, if all of them do.
        """
        towards = np.array(self._towards)
        up, down = int((towards > 0).sum()), int((towards < 0).sum())
        n = up + down
        chance = 2 * sum(math.comb(n, k) for k in range(min(up, down) + 1)) / 2**n
        if n and chance <= max(_SIGNIFICANCE, 2.0 ** (1 - len(towards))):
            raise CheckFailed(
                f"{type(algorithm).__name__}: predictions {advice}. They move by no more than "
                f"{np.abs(towards).max():.2g}, but of {n} that move, {max(up, down)} move to the "
                "same side, which rounding would not do: it ranks reviews, however little it is"
            )

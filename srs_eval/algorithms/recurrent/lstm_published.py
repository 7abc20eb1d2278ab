"""The 489-parameter LSTM of the first edition of the public benchmark."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.algorithms.options import require_above_zero, require_whole
from srs_eval.algorithms.recurrent.lstm_equations import MOST_HIDDEN, LstmLayer
from srs_eval.cards import rows_by_card
from srs_eval.engine.compiled import compiled
from srs_eval.engine.equations import Maths, State, Value
from srs_eval.engine.layout import Packed
from srs_eval.engine.packing import pack
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.engine.reference import Adam, Recipe
from srs_eval.errors import FitError, FitSkipped
from srs_eval.nouns import Algorithm, IntArray, Reviews

_LONGEST_HISTORY = 64
# Keeps stabilities between a microsecond and 200 million years: only non-numbers are excluded.
_LARGEST_LOG_STABILITY = 25.0


@dataclass(frozen=True, slots=True)
class PublishedLstmEquations(LstmLayer):
    """The layer on raw days, with an exponential curve that is at 0.9 after one stability."""

    def curve(self, m: Maths, w: Value, state: State, elapsed: Value) -> Value:
        limit = _LARGEST_LOG_STABILITY
        log_stability = m.clip(self.output(w, state, 0), -limit, limit)
        return m.exp(math.log(0.9) * elapsed * m.exp(-log_stability))


@dataclass(frozen=True)
class LstmPublished(Algorithm):
    r"""A long short-term memory that reads a card's history and gives its stability.

    For each earlier review of the card the network reads the days since the review before it
    (0 at the first, not scaled) and the rating as four 0/1 numbers. From its state after the
    last of them, :math:`h`, it predicts recall after :math:`t` days as

    .. math:: p = 0.9^{t / S}, \qquad S = \exp(w \cdot h + b).

    With 8 hidden units it has 489 parameters: 4·8·(5 + 8) weights and two bias vectors of 4·8
    in the LSTM, 8 weights and a bias in the last layer. They are drawn from
    U(-1/√8, 1/√8) and trained on the user's own reviews alone.

    Training follows the published recipe (Adam, learning rate falling along a cosine, summed
    log loss, last epoch kept; targets with more than 64 earlier reviews are left out) except
    for what is in a batch. There, a batch is 512 reviews with histories of like length, each
    with its own copy of its card's history. Here, a card is read once and predicts all its
    reviews on the way, so a batch is as many whole cards as have about 512 reviews to predict:
    the same gradients, grouped by card. As there, batches are made once, and used in an order
    drawn anew for each epoch. Cards are dealt to them at random: batches of cards of like
    length would need less padding, but such cards have like outcomes too, and batches of them
    train worse.

    A user with 500 training reviews gets 5 steps in all, which is hardly a training: it is here
    to compare with the public number. Use ``algo=lstm`` otherwise. No published row is a mean
    over users: in 2024, over 19,854 users weighted by their reviews, it had 0.3881 nats and
    RMSE 0.3119, and 0.5543 nats when users weigh by the logarithm of their reviews; seed and
    initialisation of that run are not known.

    Parameters
    ----------
    hidden : int
        Number of hidden units, up to 16. Compiling takes some seconds once per process, and
        grows with their square.
    epochs : int
        How often each training review is used.
    batch_size : int
        About how many training reviews make a step.
    learning_rate : float
        The largest there is.

    References
    ----------
    Hochreiter, S., & Schmidhuber, J. (1997). Long short-term memory. Neural Computation, 9(8),
    1735-1780. https://doi.org/10.1162/neco.1997.9.8.1735
    """

    hidden: int = 8
    epochs: int = 5
    batch_size: int = 512
    learning_rate: float = 0.04
    name: ClassVar[str] = "lstm_published"

    def __post_init__(self) -> None:
        require_whole(self.name, "hidden", self.hidden, least=1, most=MOST_HIDDEN)
        require_whole(self.name, "epochs", self.epochs, least=1)
        require_whole(self.name, "batch_size", self.batch_size, least=1)
        require_above_zero(self.name, "learning_rate", self.learning_rate)

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecurrentModel:
        return deque(self.fit_in_steps(reviews, rows, rng), maxlen=1).pop()

    def fit_in_steps(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> Iterator[RecurrentModel]:
        """Train as `fit` does, yielding the model as it stands after each epoch."""
        nth = rows_by_card(reviews.card).nth[rows]
        learned = rows[(nth > 0) & (nth <= _LONGEST_HISTORY)]
        if not len(learned):
            raise FitSkipped(
                f"user {reviews.user}: {self.name} needs at least 1 training review with 1 to "
                f"{_LONGEST_HISTORY} earlier reviews of its card, none of the {len(rows)} has"
            )
        equations = PublishedLstmEquations(self.hidden)
        size = len(equations.parameters)
        w = rng.uniform(-1, 1, size) / math.sqrt(self.hidden)
        batches = self._batches(reviews, learned, rng)
        recipe = Recipe(learning_rate=self.learning_rate)
        adam = Adam(recipe, size, self.epochs * len(batches))
        for _ in range(self.epochs):
            for number in rng.permutation(len(batches)):
                w = w - adam.step(compiled(equations).gradient(w, batches[number]).gradient)
            if not np.isfinite(w).all():
                raise FitError(
                    f"user {reviews.user}: {self.name} diverged on {len(learned)} training "
                    f"reviews: try a learning_rate below {self.learning_rate}"
                )
            yield RecurrentModel(equations, tuple(w.tolist()))

    def _batches(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> list[Packed]:
        """Deal cards at random to batches of about equally many reviews."""
        number = rows_by_card(reviews.card).number[rows]
        _, card, count = np.unique(number, return_inverse=True, return_counts=True)
        order = rng.permutation(len(count))
        batch = np.empty(len(count), np.int64)
        wanted = -(-len(rows) // self.batch_size)
        batch[order] = (np.cumsum(count[order]) - count[order]) * wanted // len(rows)
        dealt = (rows[batch[card] == each] for each in np.unique(batch))
        return [pack(reviews, some, weight=np.ones(len(some)), dtype=np.float32) for some in dealt]

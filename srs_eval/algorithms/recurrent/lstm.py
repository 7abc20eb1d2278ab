"""A small LSTM around weights learned from simulated users, and that of the public benchmark."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from srs_eval.algorithms.algorithm import FittingInSteps, Learned, MemoryModel
from srs_eval.algorithms.combined import Combination, Query
from srs_eval.algorithms.options import Count, NotNegative, Positive
from srs_eval.algorithms.recurrent.lstm_equations import Hidden, LstmEquations
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.algorithms.recurrent.sequences import MOST_EARLIER, histories_before
from srs_eval.algorithms.recurrent.weights import TrainingLog, Weights, finite, pooled, seen_in
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.engine.compiled import compiled
from srs_eval.engine.packing import Packed, pack
from srs_eval.engine.reference import Adam, Recipe
from srs_eval.errors import FitSkipped

# Learned from simulated users by the command that the class names.
_SHIPPED = Path(__file__).with_name("lstm_start.safetensors")
_SHIPPED_HIDDEN = 8
# Pull towards the start, and most steps.
_LEARNED, _DRAWN = (5.0, 40), (1.0, 30)
# Share of the pull of drawn weights on the biases of log stability and log exponent.
_PULL_OF_BIASES = 0.05
_USERS_PER_BATCH = 10
_PRETRAINING = Recipe(learning_rate=0.02, betas=(0.9, 0.99), epochs=30)


@dataclass(frozen=True)
class Lstm(FittingInSteps):
    r"""A long short-term memory that reads a card's history and gives its forgetting curve.

    Hochreiter & Schmidhuber (1997), *Long short-term memory*, Neural Computation 9,
    https://doi.org/10.1162/neco.1997.9.8.1735. For each earlier review of the card, same-day ones
    included, the network reads :math:`0.3 \ln(1 + \text{days})` since the review before it (0 at
    the first) and the rating as four 0/1 numbers. Its state after the last of them, :math:`h`,
    gives stability and decay of a power law,

    .. math::
        p = \bigl(1 + (0.9^{-1/d} - 1)\, t / S\bigr)^{-d}, \qquad
        S = e^{w_1 \cdot h + b_1}, \qquad d = 0.3\, e^{w_2 \cdot h + b_2},

    so that recall is 0.9 after :math:`S` days; :math:`\ln S` is kept within ±12 and
    :math:`\ln(d / 0.3)` within ±2.5. With 8 hidden units it has 498 parameters.

    A fit minimises the summed log loss of all training reviews plus `pull` times the squared
    distance to its start, by L-BFGS from that start. The sum grows with the log, the pull does
    not. Nothing is random, and there are no batches and no learning rate. In fractional days,
    reviews on the day of the one before are predicted by a second network.

    The start was learned in release 0.2.0 from 400 simulated users, of a population that later
    releases do not have, and it refuses to be scored on them. From users of today::

        python experiments/lstm_start/pretrain.py weights=lstm_start.safetensors data.users=400 \
            data.seed=777 data.size_scale=0.2 data.max_reviews=5000

    No real user's data are in it. Runs with it are marked as pretrained.
    No published row: the network of the first public benchmark, with its recipe, is
    ``algo=lstm_published``. On the public log of a real user it has a log loss of 0.4324 in whole
    days, where FSRS-6 has 0.4335 and FSRS-5 0.4373; with ``protocol=srs_benchmark_equalised``, in
    fractional days, 0.4331, where FSRS-7 has 0.4270. In a checkout::

        python -m srs_eval -m algo=lstm,fsrs5,fsrs6,fsrs7 data=py_fsrs data.day_start_hour=10 \
            data.path=tests/logs/py-fsrs-josh/reviews.parquet

    Parameters
    ----------
    hidden : int
        Number of hidden units, up to 16. Compiling takes some seconds once per process, and
        grows with their square.
    weights : "auto", str, Path, Weights or None
        The start: a safetensors file of learned weights, or None for weights drawn for each fit.
        "auto" is the one that comes with srs_eval, for 8 hidden units, and drawn weights for other
        numbers of them.
    pull : float, optional
        Weight of the squared distance to the start; None: 5 for learned weights, 1 for drawn. From
        drawn weights, the level of stability and of decay is pulled with a twentieth of it, because
        it is that of no user.
    steps : int, optional
        Most steps of L-BFGS; None: 40 from learned weights, 30 from drawn.
    """

    hidden: Hidden = _SHIPPED_HIDDEN
    weights: str | Path | Weights | None = "auto"
    pull: NotNegative | None = None
    steps: Count | None = None
    name: ClassVar[str] = "lstm"
    same_day: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _ = self.start  # which is refused here, where it cannot be used

    @cached_property
    def start(self) -> Weights | None:
        """The weights that are learned from others; None: drawn ones."""
        weights = self.weights
        if weights == "auto":
            weights = _SHIPPED if self.hidden == _SHIPPED_HIDDEN else None
        return Weights.of(self.name, [(self.hidden,)], weights)

    @property
    def pretrained(self) -> bool:
        """Whether it starts from weights that were learned from other users."""
        return self.start is not None

    def fit_in_steps(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> Iterator[MemoryModel]:
        """Learn from the outcomes of `rows`; same-day reviews, if any, by a network of their own.

        Yield the model as it stood after each step of L-BFGS. Raise `FitSkipped` if there are no
        training reviews, or the start was learned from this user; raise `FitError` if a weight is
        not finite.
        """
        if not len(rows):
            raise FitSkipped(f"{self.name}: there are no training reviews to learn from")
        if self.start is not None:
            self.start.refuse(reviews)
        of_all = self._descent(reviews, rows, rng)
        later = rows[reviews.elapsed_days[rows] > 0]
        if len(later) in (0, len(rows)):
            yield from of_all
            return
        of_later = self._descent(reviews, later, rng)
        for step in range(max(len(of_later), len(of_all))):  # the shorter descent has ended
            yield TwoNetworks(of_later[: step + 1][-1], of_all[: step + 1][-1])

    def _descent(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> list[RecurrentModel]:
        """Minimise summed log loss plus pull times squared distance to the start, in steps."""
        pull, steps = _DRAWN if self.start is None else _LEARNED
        pull = pull if self.pull is None else self.pull
        equations = LstmEquations(self.hidden)
        scale = np.ones(len(equations.parameters))
        if self.start is None:
            start = equations.drawn_weights(rng)
            # Of log stability, and of log exponent
            biases = [-self.hidden - 2, -1]
            scale[biases] = _PULL_OF_BIASES**0.5
        else:
            start = np.array(self.start.parameters)
        model, packed = compiled(equations), pack(reviews, rows, dtype=np.float32)
        who, advice = f"user {reviews.user}: {self.name}", f"a larger pull than {pull}"
        path: list[tuple[float, ...]] = []
        losses: list[float] = []

        def objective(w: FloatArray) -> tuple[float, FloatArray]:
            loss, gradient = model.gradient(w, packed)
            distance = (w - start) * scale
            return loss + pull * float(distance @ distance), gradient + 2 * pull * distance * scale

        def note(intermediate_result: OptimizeResult) -> None:
            path.append(finite(intermediate_result.x, who, advice))
            losses.append(float(intermediate_result.fun) / len(rows))

        end = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.steps or steps, "maxcor": 20, "ftol": 1e-7, "gtol": 1e-6},
            callback=note,
        )
        path[-1:] = [finite(end.x, who, advice)]
        learned = Learned(training_loss=tuple(losses))
        return [RecurrentModel(equations, w, learned) for w in path]

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Learn a start from the outcomes of the given rows of many users.

        Adam over batches of 10 users, 30 passes, the rate falling from 0.02 along a cosine.
        """
        logs = [(reviews, np.sort(rows)) for reviews, rows in users if len(rows)]
        firsts = range(0, max(len(logs), 1), _USERS_PER_BATCH)
        batches = [
            pack(*pooled(logs[first : first + _USERS_PER_BATCH]), dtype=np.float32)
            for first in firsts
        ]
        equations = LstmEquations(self.hidden)
        start = equations.drawn_weights(rng)
        epochs = _epochs(equations, start, batches, _PRETRAINING, rng, self.name)
        _, w = deque(epochs, maxlen=1).pop()
        how = {"epochs": _PRETRAINING.epochs, "users_per_batch": _USERS_PER_BATCH}
        return replace(self, weights=Weights(self.name, (self.hidden,), w, (), seen_in(logs), how))


def _epochs(
    equations: LstmEquations,
    w: FloatArray,
    batches: Sequence[Packed],
    recipe: Recipe,
    rng: np.random.Generator,
    who: str,
) -> Iterator[tuple[float, tuple[float, ...]]]:
    """Train by Adam, in an order drawn anew for each epoch; yield its loss and the weights then."""
    model, adam = compiled(equations), Adam(recipe, len(w), recipe.epochs * len(batches))
    for _ in range(recipe.epochs):
        total = 0.0
        for number in rng.permutation(len(batches)):
            loss, gradient = model.gradient(w, batches[number])
            total += float(loss)
            w = w - adam.step(gradient)
        yield total, finite(w, who, f"a learning_rate below {recipe.learning_rate}")


@dataclass(frozen=True, slots=True)
class TwoNetworks(Combination):
    """Two networks, because one would give up accuracy on later days, which are fewer."""

    later: RecurrentModel  # Of later-day reviews, fitted to these
    same: RecurrentModel  # Of reviews on the day of the one before, fitted to all

    @property
    def learned(self) -> Learned:
        """How the network of all reviews was learned."""
        return self.same.learned

    @property
    def parameters(self) -> tuple[float, ...]:
        """Weights of both."""
        return self.later.parameters + self.same.parameters

    def made_of(self) -> tuple[MemoryModel, ...]:
        return self.later, self.same

    def answer(self, query: Query) -> FloatArray:
        """Predict each row by the network of its kind, at whatever time."""
        is_same = query.reviews.elapsed_days[query.rows] == 0
        return query.by_rows([(self.later, ~is_same), (self.same, is_same)])


@dataclass(frozen=True)
class LstmPublished(FittingInSteps):
    r"""A long short-term memory that reads a card's history and gives its stability.

    Hochreiter & Schmidhuber (1997), *Long short-term memory*, Neural Computation 9,
    https://doi.org/10.1162/neco.1997.9.8.1735. For each earlier review of the card the network
    reads the days since the review before it (0 at the first, not scaled) and the rating as four
    0/1 numbers. From its state after the last of them, :math:`h`, it predicts recall after
    :math:`t` days as

    .. math:: p = 0.9^{t / S}, \qquad S = \exp(w \cdot h + b).

    With 8 hidden units it has 489 parameters: 4·8·(5 + 8) weights and two bias vectors of 4·8
    in the LSTM, 8 weights and a bias in the last layer. They are drawn from
    U(-1/√8, 1/√8) and trained on the user's own reviews alone.

    Training follows the published recipe (Adam, learning rate falling along a cosine, summed
    log loss, last epoch kept; targets with more than 64 earlier reviews are left out) except
    for what is in a batch. There, a batch is 512 reviews with histories of like length, each
    with its own copy of its card's history. Here, a card is read once and predicts all its
    reviews on the way, so a batch is as many whole cards, dealt at random, as have about 512
    reviews to predict. As there, batches are used in an order drawn anew for each epoch.

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
    """

    hidden: Hidden = 8
    epochs: Count = 5
    batch_size: Count = 512
    learning_rate: Positive = 0.04
    name: ClassVar[str] = "lstm_published"

    def fit_in_steps(
        self, reviews: Reviews, rows: IntArray, rng: np.random.Generator
    ) -> Iterator[RecurrentModel]:
        """Train as `fit` does, yielding the model as it stands after each epoch."""
        who = f"user {reviews.user}: {self.name}"
        histories = histories_before(reviews, rows, longest=MOST_EARLIER)
        if not len(histories.target):
            raise FitSkipped(
                f"{who} needs at least 1 training review with 1 to "
                f"{MOST_EARLIER} earlier reviews of its card"
            )
        equations = LstmEquations(self.hidden, published=True)
        w = rng.uniform(-1, 1, len(equations.parameters)) / math.sqrt(self.hidden)
        dealt = histories.dealt(self.batch_size, rng)
        batches = [pack(reviews, rows[batch.target], dtype=np.float32) for batch in dealt]
        recipe = Recipe(learning_rate=self.learning_rate, epochs=self.epochs)
        losses: tuple[float, ...] = ()
        for loss, weights in _epochs(equations, w, batches, recipe, rng, who):
            losses += (loss / len(histories.target),)
            yield RecurrentModel(equations, weights, Learned(training_loss=losses))

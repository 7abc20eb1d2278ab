"""A small LSTM, fitted to each user by L-BFGS around weights learned from simulated users."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import minimize

from srs_eval.algorithms.combined.wrapping import Asked, Combination
from srs_eval.algorithms.options import require_above_zero, require_whole
from srs_eval.algorithms.recurrent.lstm_equations import MOST_HIDDEN, LstmEquations, drawn_weights
from srs_eval.algorithms.recurrent.weights import TrainingLog, Weights, pooled, weights_for
from srs_eval.engine.compiled import CompiledModel, compiled
from srs_eval.engine.layout import Packed
from srs_eval.engine.packing import pack
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.engine.reference import Adam, Recipe
from srs_eval.errors import ConfigError, FitError, FitSkipped
from srs_eval.nouns import Algorithm, FloatArray, IntArray, MemoryModel, Reviews

# Learned from simulated users by the command that the class names.
_SHIPPED = Path(__file__).with_name("lstm_start.safetensors")
_SHIPPED_HIDDEN = 8
_USERS_PER_BATCH = 10
_PRETRAINING = Recipe(learning_rate=0.02, betas=(0.9, 0.99), epochs=30)


@dataclass(frozen=True)
class Lstm(Algorithm):
    r"""A long short-term memory that reads a card's history and gives its forgetting curve.

    For each earlier review of the card, same-day ones included, the network reads
    :math:`0.3 \ln(1 + \text{days})` since the review before it (0 at the first) and the rating
    as four 0/1 numbers. Its state after the last of them, :math:`h`, gives stability and decay
    of a power law,

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
    releases do not have, and it refuses to be scored on them::

        python -m srs_eval.pretrain algo=lstm data=synthetic data.version=1 data.users=400 \
            data.seed=777 data.size_scale=0.2 data.max_reviews=5000 seed=0 \
            weights=lstm_start.safetensors

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
        The start: a safetensors file that ``srs_eval.pretrain`` made, or None for weights drawn
        for each fit. "auto" is the one that comes with srs_eval, for 8 hidden units, and drawn
        weights for other numbers of them.
    pull : float, optional
        Weight of the squared distance to the start; None: 5 for learned weights, 1 for drawn.
    steps : int, optional
        Most steps of L-BFGS; None: 40 from learned weights, 60 from drawn.

    Raises
    ------
    ConfigError
        If a parameter is out of range, or the weights are those of another network.

    References
    ----------
    Hochreiter, S., & Schmidhuber, J. (1997). Long short-term memory. Neural Computation, 9(8),
    1735-1780. https://doi.org/10.1162/neco.1997.9.8.1735
    """

    hidden: int = _SHIPPED_HIDDEN
    weights: str | Path | Weights | None = "auto"
    pull: float | None = None
    steps: int | None = None
    start: Weights | None = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "lstm"
    same_day: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Read the weights, and refuse options out of range."""
        require_whole(self.name, "hidden", self.hidden, least=1, most=MOST_HIDDEN)
        if self.pull is not None:
            require_above_zero(self.name, "pull", self.pull, or_zero=True)
        if self.steps is not None:
            require_whole(self.name, "steps", self.steps, least=1)
        weights = self.weights
        if weights == "auto":
            weights = _SHIPPED if self.hidden == _SHIPPED_HIDDEN else None
        start = weights_for(self.name, [(self.hidden,)], weights)
        object.__setattr__(self, "start", start)

    @property
    def equations(self) -> LstmEquations:
        """The network as mathematics."""
        return LstmEquations(self.hidden)

    @property
    def pretrained(self) -> bool:
        """Whether it starts from weights that were learned from other users."""
        return self.start is not None

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> MemoryModel:
        """Learn from the outcomes of `rows`; same-day reviews, if any, by a network of their own.

        Raise `FitSkipped` if there are no training reviews, or the start was learned from this
        user; raise `FitError` if the loss or a weight is not finite.
        """
        if not len(rows):
            raise FitSkipped(f"{self.name}: there are no training reviews to learn from")
        if self.start is not None:
            self.start.refuse(self.name, reviews)
        later = rows[reviews.elapsed_days[rows] > 0]
        everything = self._fitted(reviews, rows, rng)
        if len(later) in (0, len(rows)):
            return everything
        return TwoNetworks(self._fitted(reviews, later, rng), everything)

    def _fitted(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecurrentModel:
        """Fit one network."""
        learned = self.start is not None
        start = (
            np.array(self.start.parameters) if self.start else drawn_weights(self.equations, rng)
        )
        pull = self.pull if self.pull is not None else (5.0 if learned else 1.0)
        steps = self.steps if self.steps is not None else (40 if learned else 60)
        packed = pack(reviews, rows, weight=np.ones(len(rows)), dtype=np.float32)
        w = _minimised(compiled(self.equations), packed, start, pull, steps)
        if not np.isfinite(w).all():
            raise FitError(
                f"{self.name}: user {reviews.user}: {(~np.isfinite(w)).sum()} of {len(w)} weights "
                f"are not finite after a fit to {len(rows)} reviews: try a larger pull than {pull}"
            )
        return RecurrentModel(self.equations, tuple(w.tolist()))

    def pretrain(self, users: Iterable[TrainingLog], rng: np.random.Generator) -> Self:
        """Learn a start from the outcomes of the given rows of many users.

        Adam over batches of 10 users, 30 passes, the rate falling from 0.02 along a cosine.
        """
        logs = [(reviews, np.sort(rows)) for reviews, rows in users if len(rows)]
        if not logs:
            raise ConfigError(f"{self.name}: the given users have no reviews to learn from")
        batches = []
        for first in range(0, len(logs), _USERS_PER_BATCH):
            reviews, rows = pooled(logs[first : first + _USERS_PER_BATCH])
            batches.append(pack(reviews, rows, weight=np.ones(len(rows)), dtype=np.float32))
        model, w = compiled(self.equations), drawn_weights(self.equations, rng)
        adam = Adam(_PRETRAINING, len(w), _PRETRAINING.epochs * len(batches))
        for _ in range(_PRETRAINING.epochs):
            for number in rng.permutation(len(batches)):
                w = w - adam.step(model.gradient(w, batches[number]).gradient)
        weights = Weights.learned(
            self.name,
            (self.hidden,),
            w,
            logs,
            epochs=_PRETRAINING.epochs,
            learning_rate=_PRETRAINING.learning_rate,
            users_per_batch=_USERS_PER_BATCH,
        )
        return replace(self, weights=weights)


@dataclass(frozen=True, slots=True)
class TwoNetworks(Combination):
    """A network for later-day reviews, and one for reviews on the day of the one before.

    One network would give up accuracy on the former, which are fewer, for the latter.
    """

    later: RecurrentModel  # Fitted to later-day reviews
    same: RecurrentModel  # Fitted to all

    @property
    def parameters(self) -> tuple[float, ...]:
        """Weights of both."""
        return self.later.parameters + self.same.parameters

    def made_of(self) -> tuple[MemoryModel, ...]:
        return self.later, self.same

    def answer(self, asked: Asked) -> FloatArray:
        """Predict each row by the network of its kind, at whatever time."""
        found = asked.unanswered()
        is_same = asked.reviews.elapsed_days[asked.rows] == 0
        for some, model in ((~is_same, self.later), (is_same, self.same)):
            if some.any():
                found[some] = asked.of(some).by(model)
        return found


def _minimised(
    model: CompiledModel, packed: Packed, start: FloatArray, pull: float, steps: int
) -> FloatArray:
    """Minimise the summed log loss plus pull times the squared distance to the start."""

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        loss, gradient = model.gradient(w, packed)
        apart = w - start
        return loss + pull * float(apart @ apart), gradient + 2 * pull * apart

    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxcor": 20, "ftol": 1e-7, "gtol": 1e-6},
    )
    return np.asarray(found.x, np.float64)

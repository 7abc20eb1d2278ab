"""The 489-parameter LSTM of the first edition of the public benchmark."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from srs_eval.algorithms.neural.lstm_network import (
    FORGETTING_RATE,
    Device,
    LstmNetwork,
    features_of,
    training_batches,
)
from srs_eval.algorithms.neural.sequences import (
    batch_of,
    groups_of_entries,
    groups_of_targets,
    histories_before,
)
from srs_eval.algorithms.neural.training import generator_from, minimise, one_thread
from srs_eval.errors import ConfigError, FitError, FitSkipped
from srs_eval.nouns import FloatArray, IntArray, Reviews

_LONGEST_TRAINED_HISTORY = 64
_ENTRIES_AT_A_TIME = 2**17
_SMALLEST_P = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Lstm:
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
    length would need less padding, but such cards have like outcomes too, and on a real log
    of 5,020 scored reviews the pooled log loss rose from 0.503 to 0.525 (12 seeds each;
    standard deviation 0.009; the published batches gave 0.512).

    A user with 500 training reviews gets 5 steps in all, which is hardly a training: more
    `epochs` or a smaller `batch_size` help there. The published row (2024, 19,854 users, mean
    weighted by reviews) is log loss 0.3881 and RMSE 0.3119, and 0.5543 when users weigh by the
    logarithm of their reviews; seed and initialisation of that run are not known.

    Parameters
    ----------
    hidden : int
        Number of hidden units.
    epochs : int
        How often each training review is used.
    batch_size : int
        About how many training reviews make a step.
    learning_rate : float
        Of the first step.
    device : {"cpu", "cuda"}
        Where to compute; one user is far too little to fill a GPU.

    Raises
    ------
    ConfigError
        If a parameter is out of range, or there is no GPU to use.

    References
    ----------
    Hochreiter, S., & Schmidhuber, J. (1997). Long short-term memory. Neural Computation, 9(8),
    1735-1780. https://doi.org/10.1162/neco.1997.9.8.1735
    """

    hidden: int = 8
    epochs: int = 5
    batch_size: int = 512
    learning_rate: float = 0.04
    device: Device = "cpu"
    same_day: ClassVar[bool] = False
    online: ClassVar[bool] = False
    sees_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse values that cannot be trained with, all at once."""
        wrong = [
            f"{name}={value} (expected a whole number of at least 1)"
            for name in ("hidden", "epochs", "batch_size")
            if not isinstance(value := getattr(self, name), int) or value < 1
        ]
        rate: object = self.learning_rate
        if not (isinstance(rate, int | float) and 0 < rate < math.inf):
            wrong.append(f"learning_rate={rate} (expected a number above 0)")
        if self.device not in ("cpu", "cuda"):
            wrong.append(f"device={self.device} (expected cpu or cuda)")
        elif self.device == "cuda" and not torch.cuda.is_available():
            wrong.append("device=cuda (PyTorch finds no usable GPU here: use device=cpu)")
        if wrong:
            raise ConfigError("lstm: " + "; ".join(wrong))

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> LstmModel:
        """Train a network on the outcomes of `rows`.

        Parameters
        ----------
        reviews : Reviews
            One user's log; only the reviews before each of `rows` on its card are read.
        rows : int [n]
            Row numbers of the reviews to learn from.
        rng : numpy.random.Generator
            Source of the first weights and of the order of the batches.

        Raises
        ------
        FitSkipped
            If none of `rows` has an earlier review of its card (and at most 64 of them).
        FitError
            If the loss or a parameter stopped being a number.
        """
        histories = histories_before(reviews, rows, longest=_LONGEST_TRAINED_HISTORY)
        if not len(histories.target):
            raise FitSkipped(
                f"user {reviews.user}: lstm needs at least 1 training review with 1 to "
                f"{_LONGEST_TRAINED_HISTORY} earlier reviews of its card, none of the "
                f"{len(rows)} has"
            )
        network = LstmNetwork(self.hidden)
        generator = generator_from(int(rng.integers(2**63)))
        network.draw(generator)
        network.to(self.device)
        order = rng.permutation(len(histories.length))
        groups = groups_of_targets(histories, order, per_group=self.batch_size)
        batches = training_batches(reviews, rows, histories, groups, self.device)
        with one_thread():
            loss = minimise(
                list(network.parameters()),
                batches,
                network.summed_loss,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                generator=generator,
            )
        parameters = network.vector()
        if not (math.isfinite(loss) and np.isfinite(parameters).all()):
            raise FitError(
                f"user {reviews.user}: lstm diverged on {len(histories.target)} training reviews "
                f"(summed log loss {loss}, {(~np.isfinite(parameters)).sum()} of "
                f"{len(parameters)} parameters not finite): try a learning_rate below "
                f"{self.learning_rate}"
            )
        return LstmModel(tuple(parameters.tolist()), self.hidden, self.device)


@dataclass(frozen=True, slots=True)
class LstmModel:
    """A trained network: a memory model with a forgetting curve.

    Parameters
    ----------
    parameters : tuple of float
        Input weights, recurrent weights, the two bias vectors (gates in the order input,
        forget, cell, output), then weights and bias of the last layer; matrices row by row.
    hidden : int
        Number of hidden units.
    device : {"cpu", "cuda"}
        Where to compute.
    """

    parameters: tuple[float, ...]
    hidden: int = 8
    device: Device = "cpu"

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows` from the reviews before it and its elapsed time.

        Returns
        -------
        p : float64 [len(rows)], in (0, 1)
            From a stability in single precision; the curve is in double precision because
            single precision cannot tell 0.99999997 from 1.
        """
        return _recall(self.stability(reviews, rows), reviews.elapsed[rows])

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, the history staying as it is.

        Parameters
        ----------
        elapsed : float [len(rows), k]
            Days since the card's previous review.

        Returns
        -------
        p : float64 [len(rows), k], in (0, 1)
        """
        return _recall(self.stability(reviews, rows)[:, None], elapsed)

    def stability(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Days until recall falls to 0.9, as they stand just before each of `rows`.

        Returns
        -------
        float64 [len(rows)]
            Where a card has no earlier review, the stability of a network that has read
            nothing.
        """
        network = LstmNetwork(self.hidden)
        network.load(np.array(self.parameters))
        network.to(self.device)
        features = features_of(reviews, self.device)
        histories = histories_before(reviews, rows)
        with torch.no_grad(), one_thread():
            log_stability = network.unread().expand(len(rows)).clone()
            for cards in groups_of_entries(histories, per_group=_ENTRIES_AT_A_TIME):
                batch = batch_of(histories, cards)
                output = network(features[torch.from_numpy(batch.review)]).reshape(-1)
                read = output[torch.from_numpy(batch.entry)]
                log_stability[torch.from_numpy(batch.target)] = read
        return np.exp(log_stability.cpu().numpy().astype(np.float64))


def _recall(stability: FloatArray, elapsed: FloatArray) -> FloatArray:
    """Recall `elapsed` days after a review, kept off 0 and 1."""
    p: FloatArray = np.exp(-FORGETTING_RATE * np.asarray(elapsed, np.float64) / stability)
    return np.clip(p, _SMALLEST_P, 1 - _SMALLEST_P)

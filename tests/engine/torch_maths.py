"""The oracle for kernels: equations walked on PyTorch tensors, and their derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from srs_eval.cards import earlier_on_card
from srs_eval.engine.equations import Equations, Maths, Value
from srs_eval.engine.tracing import LARGEST_P, SMALLEST_P
from srs_eval.nouns import FloatArray, IntArray, Reviews


class Moment(NamedTuple):
    """The nth reviews of all cards that have so many; `p` is None for first reviews."""

    rows: IntArray
    p: Value
    state: tuple[Value, ...]


def plain_walk(
    equations: Equations,
    m: Maths,
    w: Value,
    reviews: Reviews,
    column: Callable[[Any], Value] = np.asarray,
) -> list[Moment]:
    """Ask the author's equations about all first reviews, then all second ones, and so on.

    `column` makes an array of the kind that `m` works on of numpy's.
    """
    nth = earlier_on_card(reviews.card, np.ones(len(reviews), bool))
    card = np.unique(reviews.card, return_inverse=True)[1]
    # Longest cards first: those that go on are the first so many of those before.
    place = np.empty(card.max() + 1, np.int64)
    place[np.argsort(-np.bincount(card), kind="stable")] = np.arange(len(place))
    moments: list[Moment] = []
    for number in range(nth.max() + 1):
        rows = np.flatnonzero(nth == number)
        rows = rows[np.argsort(place[card[rows]])]
        elapsed = column(reviews.elapsed[rows])
        rating = column(reviews.rating[rows].astype(float))
        if moments:
            before = tuple(values[: len(rows)] for values in moments[-1].state)
            p = equations.curve(m, w, before, elapsed) + 0 * elapsed
            after = equations.step(m, w, before, elapsed, rating, p)
        else:
            p, after = None, equations.init(m, w, rating)
        # Plain numbers become columns like the others.
        moments.append(Moment(rows, p, tuple(value + 0 * rating for value in after)))
    return moments


torch = pytest.importorskip("torch", reason="PyTorch is the oracle of the derivatives")


@dataclass
class TorchMaths:
    """`Maths` on float64 tensors.

    Slopes at a kink are those of the engine: what is chosen has all the influence. As close
    to one, rounding chooses: `nearest_kink` is the smallest relative distance that was met,
    exact ties apart.
    """

    nearest_kink: float = field(default=np.inf)

    def exp(self, value: Value) -> Value:
        return torch.exp(torch.as_tensor(value, dtype=torch.float64))

    def log(self, value: Value) -> Value:
        return torch.log(torch.as_tensor(value, dtype=torch.float64))

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        yes, no = (torch.as_tensor(value, dtype=torch.float64) for value in (yes, no))
        return torch.where(torch.as_tensor(condition), yes, no)

    def minimum(self, left: Value, right: Value) -> Value:
        self.notice(left, right)
        return self.where(right < left, right, left)

    def maximum(self, left: Value, right: Value) -> Value:
        self.notice(left, right)
        return self.where(left < right, right, left)

    def clip(self, value: Value, low: Value, high: Value) -> Value:
        return self.minimum(self.maximum(value, low), high)

    def rint(self, value: Value) -> Value:
        return torch.round(value)

    def notice(self, left: Value, right: Value) -> None:
        """Remember how near two numbers came to each other that are compared."""
        a, b = (np.asarray(_plain(value), dtype=float) for value in (left, right))
        size = np.maximum(np.maximum(np.abs(a), np.abs(b)), 1e-30)
        distance = np.abs(a - b) / size
        self.nearest_kink = min(self.nearest_kink, distance[distance > 0].min(initial=np.inf))


class Oracle(NamedTuple):
    """What must come out."""

    weight: NDArray[np.float64]  # [rows]: As given, and 0 where p is too near to 0 or 1
    loss: float
    gradient: NDArray[np.float64]  # By reverse mode
    information: NDArray[np.float64]  # Of Fisher
    # [parameters]: Sum of the absolute values of the reviews' parts of the gradient, which
    # rounding errors are proportional to
    shares: NDArray[np.float64]
    nearest_kink: float  # See `TorchMaths`


def predictions(m: TorchMaths, equations: Equations, w: Value, reviews: Reviews) -> Value:
    """Tensor of predictions of all reviews; 0.5 at first ones, which nothing depends on."""
    moments = plain_walk(equations, m, w, reviews, column=torch.as_tensor)
    first = torch.full((len(moments[0].rows),), 0.5, dtype=torch.float64)
    p = torch.cat([first, *(moment.p for moment in moments[1:])])
    rows = np.concatenate([moment.rows for moment in moments])
    return p[torch.as_tensor(np.argsort(rows))]


def oracle(
    equations: Equations,
    w: FloatArray,
    reviews: Reviews,
    rows: IntArray,
    weight: FloatArray,
    least: float,
) -> Oracle:
    """Compute by PyTorch what the kernels are to compute, of p from `least` to 1 - `least`."""
    m, index = TorchMaths(), torch.as_tensor(rows)
    leaf = torch.tensor(np.asarray(w, float), requires_grad=True)
    predicted = predictions(m, equations, leaf, reviews)[index]
    p = _plain(predicted)
    weight = np.where((p > least) & (p < 1 - least), weight, 0.0)
    recalled = torch.as_tensor(reviews.recalled)[index]
    likely = torch.clamp(torch.where(recalled, predicted, 1 - predicted), SMALLEST_P, LARGEST_P)
    # A model may leave out all its parameters.
    loss = -(torch.as_tensor(weight) * torch.log(likely)).sum() + 0 * leaf.sum()
    (gradient,) = torch.autograd.grad(loss, leaf)
    with warnings.catch_warnings():
        # PyTorch's own, the first time that forward mode is asked for.
        warnings.simplefilter("ignore", DeprecationWarning)
        differentiated = torch.func.jacfwd(
            lambda v: predictions(_Unwatched(), equations, v, reviews)
        )
        slopes = _plain(differentiated(leaf.detach())[index])
    # Where nothing counts, p may be 0 or 1.
    precision = weight / np.where(weight > 0, p * (1 - p), 1.0)
    residual = p - reviews.recalled[rows]
    return Oracle(
        weight,
        float(loss.detach()),
        _plain(gradient),
        (slopes * precision[:, None]).T @ slopes,
        np.abs(slopes * (precision * residual)[:, None]).sum(axis=0),
        m.nearest_kink,
    )


class _Unwatched(TorchMaths):
    """Without a look at the numbers, which a transformed tensor does not give."""

    def notice(self, left: Value, right: Value) -> None:
        pass


def _plain(value: Value) -> NDArray[np.float64]:
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value

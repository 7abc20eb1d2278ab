"""The oracle for kernels: equations walked on PyTorch tensors, and their derivatives."""

import warnings
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

from srs_eval.cards import earlier_on_card
from srs_eval.engine.tracing import LARGEST_P, SMALLEST_P

# The nth reviews of all cards that have so many; `p` is None for first reviews.
Moment = namedtuple("Moment", "rows p state")


def plain_walk(equations, m, w, reviews, column=np.asarray):
    """Ask the author's equations about all first reviews, then all second ones, and so on.

    `column` makes an array of the kind that `m` works on of numpy's.
    """
    nth = earlier_on_card(reviews.card, np.ones(len(reviews), bool))
    card = np.unique(reviews.card, return_inverse=True)[1]
    # Longest cards first: those that go on are the first so many of those before.
    place = np.empty(card.max() + 1, np.int64)
    place[np.argsort(-np.bincount(card), kind="stable")] = np.arange(len(place))
    moments = []
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

    nearest_kink: float = np.inf
    watches: bool = True  # A transformed tensor does not let its numbers be seen

    def exp(self, value):
        return torch.exp(torch.as_tensor(value, dtype=torch.float64))

    def log(self, value):
        return torch.log(torch.as_tensor(value, dtype=torch.float64))

    def where(self, condition, yes, no):
        yes, no = (torch.as_tensor(value, dtype=torch.float64) for value in (yes, no))
        return torch.where(torch.as_tensor(condition), yes, no)

    def minimum(self, left, right):
        self.notice(left, right)
        return self.where(right < left, right, left)

    def maximum(self, left, right):
        self.notice(left, right)
        return self.where(left < right, right, left)

    def clip(self, value, low, high):
        return self.minimum(self.maximum(value, low), high)

    def rint(self, value):
        return torch.round(value)

    def notice(self, left, right):
        """Remember how near two numbers came to each other that are compared."""
        if not self.watches:
            return
        a, b = (np.asarray(_plain(value), dtype=float) for value in (left, right))
        size = np.maximum(np.maximum(np.abs(a), np.abs(b)), 1e-30)
        distance = np.abs(a - b) / size
        self.nearest_kink = min(self.nearest_kink, distance[distance > 0].min(initial=np.inf))


# What must come out. `weight` [rows] is 0 where p is too near to 0 or 1; `shares` [parameters]
# are sums of the absolute parts of the gradient, which rounding errors are proportional to.
Oracle = namedtuple("Oracle", "weight loss gradient information shares nearest_kink")


def predictions(m, equations, w, reviews):
    """Tensor of predictions of all reviews; 0.5 at first ones, which nothing depends on."""
    moments = plain_walk(equations, m, w, reviews, column=torch.as_tensor)
    first = torch.full((len(moments[0].rows),), 0.5, dtype=torch.float64)
    p = torch.cat([first, *(moment.p for moment in moments[1:])])
    rows = np.concatenate([moment.rows for moment in moments])
    return p[torch.as_tensor(np.argsort(rows))]


def oracle(equations, w, reviews, rows, weight, least):
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
            lambda v: predictions(TorchMaths(watches=False), equations, v, reviews)
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


def _plain(value):
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value

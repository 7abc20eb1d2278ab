"""Published results and what srs_eval finds on the same logs, user by user."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from srs_eval.evaluation.scoring import EvaluateAndScore
from srs_eval.nouns import BoolArray, FloatArray, User
from srs_eval.results.published import METRICS
from srs_eval.results.run import Run
from srs_eval.stats.estimate import mean_of_users
from srs_eval.text.console import interval
from srs_eval.text.table import Table

# A mean log loss that differs by less is the same: what rounding in single precision and the order
# of batches move.
MARGIN = 0.0005
# Published scores have six decimals, and here predictions are counted in cells of 2**-20.
_SAME = 2e-6
COLUMNS = ("size", *METRICS)  # of the values that are compared
_NOTHING = math.nan


@dataclass(frozen=True, slots=True)
class UserScore:
    """What was found for a user."""

    size: int  # Scored reviews; 0 where there is no score
    scores: Mapping[str, float]  # By metric
    seconds: float  # Of all fits
    reason: str = ""  # Why there is no score


@dataclass(frozen=True, slots=True)
class EvaluateAgain:
    """Evaluate a user by each configuration that has a published score of them."""

    evaluations: Mapping[str, EvaluateAndScore]  # By the name of the result
    users: Mapping[str, frozenset[User]]  # Users with a published score

    def __call__(
        self, user: User, tick: Callable[..., None] = lambda *_: None
    ) -> tuple[User, dict[str, UserScore]]:
        """Return the user, and what was found by the name of the result."""
        found = {}
        for name, evaluate in self.evaluations.items():
            if user in self.users[name]:
                scored = evaluate(user, lambda *_: None)
                unfit = [fit for fit in scored.fits if not fit.predicts]
                found[name] = UserScore(
                    scored.reviews,
                    dict(zip(evaluate.panel.names, scored.values, strict=True)),
                    math.fsum(fit.seconds for fit in scored.fits),
                    f"{unfit[0].status}: {unfit[0].reason}" if unfit else "",
                )
        tick()
        return user, found


class Unequal(NamedTuple):
    """A published value that is another here."""

    user: User
    metric: str  # Name in the published file, or ``size``
    here: float
    published: float


@dataclass(frozen=True)
class Reproduction:
    """A published result beside what was found here, of the users that both have."""

    published: Run
    found: Mapping[User, UserScore]

    @property
    def name(self) -> str:
        """Name of the result."""
        return self.published.name

    @cached_property
    def users(self) -> tuple[User, ...]:
        """Users with a score here, in the order of the published rows."""
        return tuple(u for u in self.published.rows if u in self.found and self.found[u].size)

    @property
    def without(self) -> Counter[str]:
        """Users with a published score and none here, by reason."""
        return Counter(each.reason for each in self.found.values() if not each.size)

    @cached_property
    def here(self) -> FloatArray:
        """Values [users, `COLUMNS`] that were found; NaN for metrics that are not published."""
        known = {name: ours for name, ours in METRICS.items() if ours in self.published.scores}
        found = [self.found[user] for user in self.users]
        values = [
            [each.size, *(_score(each.scores, known.get(name)) for name in METRICS)]
            for each in found
        ]
        return np.array(values, np.float64).reshape(-1, len(COLUMNS))

    @cached_property
    def theirs(self) -> FloatArray:
        """Published values [users, `COLUMNS`]; NaN where there is none."""
        sizes = np.array([self.published.reviews[user] for user in self.users], np.float64)
        scores = (self.published.values(ours, self.users) for ours in METRICS.values())
        return np.column_stack([sizes, *scores])

    @cached_property
    def differs(self) -> BoolArray:
        """Whether values [users, `COLUMNS`] differ by more than rounding; of other sizes, these."""
        found = ~np.isclose(self.here, self.theirs, rtol=0, atol=_SAME, equal_nan=True)
        found[:, 1:] &= ~found[:, :1]
        return found

    @property
    def unequal(self) -> tuple[Unequal, ...]:
        """Every value that differs, by user."""
        here, theirs = self.here[self.differs].tolist(), self.theirs[self.differs].tolist()
        users, columns = np.nonzero(self.differs)
        names = ((self.users[u], COLUMNS[c]) for u, c in zip(users, columns, strict=True))
        return tuple(Unequal(*of, *both) for of, *both in zip(names, here, theirs, strict=True))

    @property
    def differences(self) -> FloatArray:
        """Log loss here less the published one, [n_users]; NaN where other reviews were scored."""
        log_loss = COLUMNS.index("LogLoss")
        gap: FloatArray = self.here[:, log_loss] - self.theirs[:, log_loss]
        return np.where(self.differs[:, 0], _NOTHING, gap)

    @property
    def seconds(self) -> float:
        """Processor time of all fits."""
        return math.fsum(each.seconds for each in self.found.values())

    @property
    def interval(self) -> tuple[float, float]:
        """99 % interval of the mean difference; NaN where there is none."""
        known = self.differences[~np.isnan(self.differences)]
        return mean_of_users(known).interval() if len(known) > 1 else (_NOTHING, _NOTHING)

    @property
    def verdict(self) -> str:
        """What the differences say."""
        low, high = self.interval
        if not self.users:
            return "no users"
        if not self.differs.any():
            return "equal"
        if self.differs[:, 0].any():
            return "other reviews"
        if low > -MARGIN and high < MARGIN:
            return f"within {MARGIN}"
        return "differs" if low > MARGIN or high < -MARGIN else "undecided"


def _score(scores: Mapping[str, float], name: str | None) -> float:
    """Return a score as it would be published: see `srs_eval.exporting.srs_benchmark`."""
    if name is None:
        return _NOTHING
    if name == "rmse":
        return math.sqrt(scores["brier"])
    found = scores[name]
    return 0.0 if math.isnan(found) and name.startswith("confusion") else found


def summary_table(reproductions: Sequence[Reproduction]) -> Table:
    """Tabulate one row for each result."""
    rows = []
    for each in reproductions:
        known = ~np.isnan(each.differences)
        far = int(np.nanargmax(np.abs(each.differences))) if known.any() else -1
        low, high = each.interval
        rows.append(
            {
                "result": each.name,
                "verdict": each.verdict,
                "users": len(each.users),
                "other sizes": int(each.differs[:, 0].sum()),
                "all equal": int((~each.differs.any(axis=1)).sum()),
                "mean difference": _signed(_mean(each.differences[known])),
                "99 % interval": interval(low, high, 6),
                "largest": _signed(float(each.differences[far]) if far >= 0 else _NOTHING),
                "of user": str(each.users[far]) if far >= 0 else "-",
                "seconds": f"{each.seconds:.1f}",
            }
        )
    return Table.of_records(rows, align="ll")


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else _NOTHING


def _signed(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+z.6f}"


def users_table(reproductions: Sequence[Reproduction]) -> Table:
    """Tabulate every user of every result: each value here and published."""
    headers = [name for metric in COLUMNS for name in (metric, f"{metric} published")]
    rows = [
        [each.name, user, *chain.from_iterable(zip(here, theirs, strict=True))]
        for each in reproductions
        for user, here, theirs in zip(
            each.users, each.here.tolist(), each.theirs.tolist(), strict=True
        )
    ]
    return Table(["result", "user", *headers], rows)

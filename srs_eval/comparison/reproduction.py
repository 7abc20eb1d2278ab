"""Published results and what srs_eval finds on the same logs, user by user."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from srs_eval.evaluation.scoring import EvaluateAndScore
from srs_eval.nouns import FloatArray, User
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
_SIZE = "size"
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


@dataclass(frozen=True, slots=True)
class Unequal:
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

    @property
    def other_users(self) -> int:
        """Number of published rows of users whose logs were not read."""
        return len(self.published.rows.keys() - self.found.keys())

    @property
    def metrics(self) -> dict[str, str]:
        """Names of the published metrics, and here."""
        return {name: ours for name, ours in METRICS.items() if ours in self.published.scores}

    @cached_property
    def columns(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Values of the users here and published, by published name; `size` among them."""
        sizes = [self.found[user].size for user in self.users]
        theirs = [self.published.reviews[user] for user in self.users]
        columns: dict[str, tuple[FloatArray, FloatArray]] = {
            _SIZE: (np.array(sizes, np.float64), np.array(theirs, np.float64))
        }
        for name, ours in self.metrics.items():
            here = [_score(self.found[user].scores, ours) for user in self.users]
            columns[name] = (np.array(here), self.published.values(ours, self.users))
        return columns

    @cached_property
    def unequal(self) -> tuple[Unequal, ...]:
        """Every value that differs by more than rounding, by user; only the size where it does."""
        found = []
        sizes, theirs = self.columns[_SIZE]
        for name, (here, published) in self.columns.items():
            both = np.isnan(here) & np.isnan(published)
            same = both | (np.abs(here - published) <= _SAME)
            same |= (sizes != theirs) & (name != _SIZE)
            found += [
                Unequal(self.users[n], name, float(here[n]), float(published[n]))
                for n in np.flatnonzero(~same).tolist()
            ]
        place = {user: number for number, user in enumerate(self.users)}
        return tuple(sorted(found, key=lambda each: place[each.user]))

    @property
    def equal_users(self) -> int:
        """Number of users of whom everything is equal."""
        return len(self.users) - len({each.user for each in self.unequal})

    @property
    def other_sizes(self) -> int:
        """Number of users with another number of scored reviews."""
        return sum(each.metric == _SIZE for each in self.unequal)

    @cached_property
    def differences(self) -> FloatArray:
        """Log loss here less the published one, [n_users]; NaN where other reviews were scored."""
        here, published = self.columns.get("LogLoss", (np.empty(0), np.empty(0)))
        if not len(here):
            return np.full(len(self.users), _NOTHING)
        sizes, theirs = self.columns[_SIZE]
        return np.where(sizes == theirs, here - published, _NOTHING)

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
        if not self.unequal:
            return "equal"
        if self.other_sizes:
            return "other reviews"
        if low > -MARGIN and high < MARGIN:
            return f"within {MARGIN}"
        return "differs" if low > MARGIN or high < -MARGIN else "undecided"


def _score(scores: Mapping[str, float], name: str) -> float:
    """Return a score as it would be published: see `srs_eval.exporting.srs_benchmark`."""
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
                "other sizes": each.other_sizes,
                "all equal": each.equal_users,
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
    headers = [name for metric in (_SIZE, *METRICS) for name in (metric, f"{metric} published")]
    rows = []
    for each in reproductions:
        nothing = (np.full(len(each.users), _NOTHING),) * 2
        columns = [part for m in (_SIZE, *METRICS) for part in each.columns.get(m, nothing)]
        for number, user in enumerate(each.users):
            rows.append([each.name, user, *(float(column[number]) for column in columns)])
    return Table(["result", "user", *headers], rows)

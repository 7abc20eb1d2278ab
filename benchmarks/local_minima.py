"""Where two ways to minimise one objective end: they have kinks and several local minima.

    python benchmarks/local_minima.py

Fits 20 simulated users under the public protocol by ``newton`` and by ``lbfgs``, and prints how
often either ends above the other, and what that means for the log loss of test reviews.
"""

from __future__ import annotations

import numpy as np
from benchmark import benchmark

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.early import Fsrs2, Fsrs3
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5, Fsrs6
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs4, Fsrs45
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.engine.objective import LogCoordinates
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Fold, Reviews
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.text.table import Table

_APART = 1e-3
_ALGORITHMS: tuple[type[Fitted], ...] = (Fsrs2, Fsrs3, Fsrs4, Fsrs45, Fsrs5, Fsrs6)


def _ends(algorithm: type[Fitted], log: Reviews) -> list[tuple[float, float]]:
    """Compare the objectives and the test log losses at both ends, fold by fold."""
    task = SrsBenchmark()(log, same_day=algorithm.same_day)
    return [_compared(algorithm, task.reviews, fold) for fold in task.folds]


def _compared(algorithm: type[Fitted], reviews: Reviews, fold: Fold) -> tuple[float, float]:
    judge = algorithm(fit="lbfgs")  # in double precision
    problem = judge.problem(reviews)
    objective = judge.objective(problem, fold.train, np.asarray(problem.space.defaults))
    assert isinstance(objective.loss, LogCoordinates)
    encode = objective.loss.encode
    values, losses = [], []
    for method in ("newton", "lbfgs"):
        model = algorithm(fit=method).fit(reviews, fold.train, np.random.default_rng(0))
        values.append(objective.gradient(encode(np.asarray(model.parameters))).loss)
        losses.append(
            LogLoss().of_outcomes(model.predict(reviews, fold.test), reviews.recalled[fold.test])
        )
    return values[0] / values[1] - 1, losses[0] - losses[1]


@benchmark("local minima")
def main() -> Table:
    """Return how often either method ends above the other."""
    source = SyntheticUsers(users=20)
    logs = [source.read(user) for user in source.users()]
    rows = []
    for algorithm in _ALGORITHMS:
        apart, losses = np.array([end for log in logs for end in _ends(algorithm, log)]).T
        above, below = np.mean(apart > _APART), np.mean(apart < -_APART)
        shares = f"{100 * above:.0f} %", f"{100 * below:.0f} %"
        rows.append((algorithm.name, len(apart), *shares, f"{losses.mean():+.4f}"))
    headers = ["model", "fits", "newton above lbfgs by 0.1 %", "below", "test log loss, difference"]
    return Table(headers, rows)

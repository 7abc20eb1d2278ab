"""Where two ways to minimise one objective end: they have kinks and several local minima.

    python benchmarks/local_minima.py

Fits 20 simulated users under the public protocol by ``newton`` and by ``lbfgs``, and prints how
often either ends above the other, and what that means for the log loss of test reviews.
"""

from __future__ import annotations

import numpy as np
from tabulate import tabulate

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.early import Fsrs2, Fsrs3
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5, Fsrs6
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs4, Fsrs45
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.engine.objective import LogCoordinates
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Fold, Reviews
from srs_eval.protocol.srs_benchmark import SrsBenchmark

_APART = 1e-3
_ALGORITHMS: tuple[type[Fitted], ...] = (Fsrs2, Fsrs3, Fsrs4, Fsrs45, Fsrs5, Fsrs6)


def main() -> None:
    """Print the table."""
    source = SyntheticUsers(users=20)
    logs = [source.read(user) for user in source.users()]
    rows = []
    for algorithm in _ALGORITHMS:
        ends = np.array([end for log in logs for end in _ends(algorithm, log)])
        apart, losses = ends.T
        shares = (
            f"{100 * share:.0f} %" for share in (np.mean(apart > _APART), np.mean(apart < -_APART))
        )
        rows.append((algorithm.name, len(ends), *shares, f"{losses.mean():+.4f}"))
    headers = ("model", "fits", "newton above lbfgs by 0.1 %", "below", "test log loss, difference")
    print(tabulate(rows, headers, tablefmt="github", disable_numparse=True))


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


if __name__ == "__main__":
    main()

"""What models that learn from answer to answer cost, beside FSRS-7 alone.

    python benchmarks/sessions.py publish

One thread; the least CPU time of several repeats, after a first one that compiles.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
from benchmark import benchmark, table
from measure import clocked
from workloads import Workload, standard_workloads

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.sessions.forecast import Forecast
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.algorithms.sessions.walk import learn_weights, walk

SMALL = {"features": "small", "width": 0.03, "level_width": 0.03}
MODELS: dict[str, Algorithm] = {
    "FSRS-7": Fsrs7(),
    "session filter, 12 features": SessionFilter(**SMALL),
    "session filter, 32 features": SessionFilter(),
    "forecast on FSRS-7": Forecast(Fsrs7()),
    "forecast": Forecast(),
}
REPEATS = 7


def rows(workload: Workload) -> Iterator[list[str]]:
    """Yield a row for each model: a fit, all predictions, and the filter's kernel by itself."""
    reviews = workload.reviews
    thousands = len(reviews) / 1000
    for name, algorithm in MODELS.items():

        def fit(algorithm: Algorithm = algorithm) -> object:
            return algorithm.fit(reviews, workload.train, np.random.default_rng(0))

        model = algorithm.fit(reviews, workload.train, np.random.default_rng(0))
        model.predict(reviews, workload.test)
        predicting = clocked(lambda model=model: model.predict(reviews, workload.test), REPEATS)
        cells = [workload.name, f"{len(reviews):,}", name, f"{1e3 * clocked(fit, REPEATS).cpu:.0f}"]
        cells += [f"{1e3 * predicting.cpu / thousands:.2f}", ""]
        if hasattr(model, "prior"):
            cells[-1] = f"{1e3 * kernel(model, workload) / thousands:.2f}"
        yield cells


def kernel(model: object, workload: Workload) -> float:
    """Return the seconds that the filter takes once it has the features."""
    prior = model.prior  # type: ignore[attr-defined]
    walked = walk(model.stages, prior, workload.reviews)  # type: ignore[attr-defined]
    recalled = workload.reviews.recalled[walked.rows].astype(float)
    known = walked.features, walked.z, recalled, prior.width, prior.drift
    return clocked(lambda: learn_weights(*known), REPEATS).cpu


@benchmark("sessions")
def main() -> str:
    """Return the costs of every model on every log."""
    headers = ["data", "reviews", "model", "a fit, ms", "predictions, ms per 1,000", "filter alone"]
    return table(headers, [cells for each in standard_workloads() for cells in rows(each)])

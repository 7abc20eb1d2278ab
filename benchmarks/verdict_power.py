"""Compare the power that `srs_eval.power` promises with the power of the studies that follow it.

    python benchmarks/verdict_power.py                      simulated differences, printed
    python benchmarks/verdict_power.py RESULTS.parquet      differences of published models as well

With the word `publish`, it writes the table into docs/arena/preregistration.md.

RESULTS.parquet has a row for each model and user, with the columns model, user and log_loss. A
pilot is a random sample of the population. The study has as many users as the pilot says are needed
for a power of 0.8, and its power is that of samples of the population.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from benchmark import benchmark

from srs_eval.stats.power import Study, upper_deviation, users_needed
from srs_eval.text.table import Table

PILOTS = (12, 50, 200)
WANTED = 0.8
# True mean, in standard deviations, of simulated differences.
_SIMULATED = 0.3
_MOST_USERS = 100_000


def populations(results: Path | None) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the differences of all users of a population, with their name."""
    rng = np.random.default_rng(0)
    yield "normal", rng.normal(_SIMULATED, 1, 10_000)
    skewed = rng.exponential(1, 10_000) - 1
    yield "exponential, few users gain much", skewed + _SIMULATED
    yield "exponential, few users lose much", -skewed + _SIMULATED
    if results is None:
        return
    of_models = pd.read_parquet(results).pivot(index="user", columns="model", values="log_loss")
    for model in ("FSRS-4.5", "GRU-P", "DASH", "SM2"):
        found = (of_models["FSRS-5"] - of_models[model]).dropna().to_numpy(np.float64)
        yield f"log loss of FSRS-5 less {model}", found


def achieved(population: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of users, and the power of studies that have so many."""
    side = 1 if population.mean() > 0 else -1
    mean, sd = abs(population.mean()), population.std()
    users = np.unique(
        np.geomspace(3, 1.5 * (users_needed(mean, sd, power=0.99) or 3), 40).astype(int)
    )
    study = Study(-mean, math.inf, sd, side * population)
    return users, np.array([study.power(int(each)) for each in users])


def needed(pilot: np.ndarray, mean: float) -> tuple[int, int, int]:
    """Return the users by Student's formula, by the pilot's deviation, and by its upper end."""
    sds = float(pilot.std(ddof=1)), upper_deviation(pilot)
    by_formula = users_needed(mean, sds[0], power=WANTED)
    simulated = [Study(-mean, math.inf, sd, pilot).users_for(WANTED) for sd in sds]
    formula, own, upper = (each or _MOST_USERS for each in (by_formula, *simulated))
    return formula, own, upper


def rows(results: Path | None, pilots: int) -> Iterator[list[str]]:
    """Yield a row of the table for each population and size of the pilot."""
    for name, population in populations(results):
        users, power = achieved(population)
        side = 1 if population.mean() > 0 else -1
        for size in PILOTS:
            rng = np.random.default_rng(size)
            drawn = [side * rng.choice(population, size) for _ in range(pilots)]
            found = np.array([needed(pilot, abs(population.mean())) for pilot in drawn])
            reached = np.interp(found, users, power)
            shown = [f"{share:.2f}" for share in reached.mean(axis=0)]
            enough = f"{100 * np.mean(reached[:, 2] >= WANTED):.0f} %"
            yield [name, str(size), *shown, enough]


@benchmark("power", "docs/arena/preregistration.md")
def main(results: Path | None = None, pilots: int = 100) -> Table:
    """Return the power of studies that were planned by pilots."""
    headers = [
        *("differences", "users of the pilot", "Student's formula", "simulated, sd of the pilot"),
        *("simulated, upper end of the sd", "pilots whose upper end is enough"),
    ]
    return Table(headers, list(rows(results, pilots)))

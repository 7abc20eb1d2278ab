"""How fits of FSRS do on the beginnings of logs.

    python benchmarks/small_logs.py [LOG ...] [--users 400] [--save FILE] [--before FILE]

Every log is cut to its first 25 to 1,000 scored reviews. Each algorithm is fitted to these and
predicts as many that follow (100 at least). LOG is a file of the columns of anki-revlogs-10k or a
folder in its layout; without one, only simulated users are fitted. The table has, by number of
training reviews, the mean log loss of the published parameters, and what `reference` and `newton`
lose less than they do. `--save` keeps the losses of each log; `--before` adds a column of those
that another version of srs_eval saved, and the difference to it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
from tabulate import tabulate

from srs_eval.algorithms.fitted import Fitted
from srs_eval.algorithms.fsrs.fsrs4 import Fsrs4
from srs_eval.algorithms.fsrs.fsrs5 import Fsrs5
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Reviews
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.srs_benchmark import SrsBenchmark

SIZES = (25, 50, 100, 200, 500, 1000)
LEAST, MOST = 100, 1000
VERSIONS: tuple[type[Fitted], ...] = (Fsrs4, Fsrs45, Fsrs5, Fsrs6, Fsrs7)
CLOCKS = {"days": SrsBenchmark(), "seconds": SrsBenchmarkEqualised()}
FITS = ("default", "reference", "newton")


def logs(paths: list[Path], users: int) -> Iterator[tuple[str, Reviews]]:
    """Yield the logs of files, of folders, and of simulated users, each with a name."""
    for path in paths:
        if path.is_dir():
            folder = RevlogsFolder(path)
            yield from ((f"{path.name}/{user}", folder.read(user)) for user in folder.users())
            continue
        table = pd.read_csv(path)
        yield (
            path.stem,
            reviews_from_columns(
                user=path.stem,
                source=path.name,
                card=table["card_id"],
                rating=table["rating"],
                day=table["day_offset"],
                elapsed_days=table["elapsed_days"],
                elapsed_seconds=table["elapsed_seconds"],
                duration_ms=table["duration"],
            ),
        )
    if users:
        simulated = SyntheticUsers(users=users, max_reviews=4000, version=1)
        yield from ((f"simulated/{user}", simulated.read(user)) for user in simulated.users())


def measured(named: tuple[str, Reviews]) -> list[tuple[str, str, int, str, str, float, float]]:
    """Fit every version to every beginning of a log, and measure loss and time."""
    name, log = named
    found = []
    for clock, protocol in CLOCKS.items():
        for version in VERSIONS:
            task = protocol(log, same_day=version.same_day)
            last = task.folds[-1]
            scored = np.sort(np.concatenate([last.train, last.test]))
            later = scored[task.reviews.elapsed_days[scored] > 0]
            for size in SIZES:
                test = later[size : size + min(max(size, LEAST), MOST)]
                if len(test) < LEAST:
                    break
                train = scored[scored < test[0]]
                for fit in FITS:
                    began = time.process_time()
                    model = version(fit=fit).fit(task.reviews, train, np.random.default_rng(0))
                    took = time.process_time() - began
                    loss = LogLoss().of_outcomes(
                        model.predict(task.reviews, test), task.reviews.recalled[test]
                    )
                    key = (version.name, clock, size, fit, name)
                    found.append((*key, loss, 1000 * took))
    return found


def table_of(losses: pd.DataFrame) -> str:
    """Show means over logs, as differences to the published parameters."""
    wide = losses.pivot_table(
        index=["version", "clock", "size", "log"], columns="fit", values="loss", sort=False
    )
    rows = []
    for (version, clock, size), some in wide.groupby(level=[0, 1, 2], sort=False):
        row = [version, clock, size, len(some), f"{some['default'].mean():.4f}"]
        others = [name for name in some if name != "default"]
        row += [f"{(some[name] - some['default']).mean():+.4f}" for name in others]
        against = some["newton"] - some["reference"]
        row.append(f"{against.mean():+.4f} ± {against.std() / len(some) ** 0.5:.4f}")
        rows.append(row)
    headers = ["version", "clock", "reviews", "logs", "published", *others, "newton - reference"]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--users", type=int, default=400)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--before", type=Path)
    chosen = parser.parse_args()
    columns = ["version", "clock", "size", "fit", "log", "loss", "ms"]
    rows = []
    with ProcessPoolExecutor() as pool:
        for found in pool.map(measured, logs(chosen.paths, chosen.users)):
            rows += found
    losses = pd.DataFrame(rows, columns=columns)
    if chosen.save:
        losses.to_csv(chosen.save, index=False)
    if chosen.before:
        before = pd.read_csv(chosen.before)
        before = before[before["fit"] == "newton"].assign(fit="newton before")
        losses = pd.concat([losses, before.astype({"log": str})])
    print(table_of(losses))
    times = losses.pivot_table(
        index=["version", "clock"], columns=["fit", "size"], values="ms", aggfunc="median"
    )
    for fit in ("newton before", "newton"):
        if fit in times:
            print(f"\nMedian milliseconds of processor time per fit, {fit}")
            print(tabulate(times[fit].round(1).reset_index(), "keys", "github", showindex=False))


if __name__ == "__main__":
    main()

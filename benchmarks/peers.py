"""FSRS-6 trained by our own engine and by other people's programs, on the same data.

    pip install -e '.[peers]' -c constraints.txt
    python benchmarks/peers.py

Prints what one fit costs with each of them, and how many times that of our own. Every peer has
a process of its own with one thread. CPU and wall time are those of training: turning reviews
into what a package takes has a column of its own (ours takes the columns of the log as they
are; arranging them counts as training), and compiling and loading libraries count nowhere but
in the memory. What takes milliseconds is repeated, and the least is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np
import pandas as pd
from benchmark import Words, benchmark, table
from measure import Cost, clocked, in_process

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs_rs import training_items
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.data.reviews import IntArray, Reviews
from srs_eval.data.schema import reviews_from_columns
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.metrics.tally import log_losses
from srs_eval.protocol.srs_benchmark import SrsBenchmark

JOSH = Path(__file__).parents[2] / "shared/data/py-fsrs-josh/revlogs_benchmark_schema.csv"
OURS = "srs_eval, fit=newton"


@dataclass(frozen=True, slots=True)
class Workload:
    """The last fold of one user under the public protocol, same-day reviews included."""

    name: str
    reviews: Reviews
    train: IntArray  # Row numbers into `reviews`
    test: IntArray
    nth_review: IntArray  # 1 + reviews of the card on later days, up to and including each

    @classmethod
    def of(cls, name: str, reviews: Reviews) -> Workload:
        """Split a log, and take its last fold."""
        task = SrsBenchmark()(reviews, same_day=True)
        fold = task.folds[-1]
        return cls(name, task.reviews, fold.train, fold.test, task.nth_review)


def standard_workloads(log: Path = JOSH) -> Iterator[Workload]:
    """Yield the workload of a real log, if it is there, and of simulated ones."""
    if log.exists():
        columns = pd.read_csv(log).rename(columns={"card_id": "card", "day_offset": "day"})
        known = columns[["card", "rating", "day", "elapsed_days"]].to_dict("series")
        reviews = reviews_from_columns(user=log.stem, source=log.name, **known)
        yield Workload.of("josh" if log == JOSH else log.stem, reviews)
    for size in (10_000, 30_000, 100_000):
        yield synthetic_workload(size)


def synthetic_workload(size: int) -> Workload:
    """Make the workload of the first simulated user who fills a log of so many reviews."""
    source = SyntheticUsers(users=1000, seed=2026, size_scale=1.0, max_reviews=size)
    logs = map(source.read, source.users())
    full = next(reviews for reviews in logs if len(reviews) == size)
    return Workload.of(f"synthetic {size // 1000}k", full)


def fitted(fit: Cost, preparing: float = 0.0) -> Cost:
    """Cost of training; its result is parameters, rounded as users do, and seconds of preparing."""
    parameters: Sequence[float] = getattr(fit.result, "parameters", fit.result)
    return replace(fit, result=(np.round(np.asarray(parameters, float), 4), preparing))


def ours(workload: Workload, fit: str = "newton", repeats: int = 10) -> Cost:
    """Train with our own engine, weighing recent reviews as fsrs-rs does."""
    algorithm = Fsrs6(fit=fit, recency="mild")
    reviews, rows = workload.reviews.take(np.arange(workload.train[-1] + 1)), workload.train
    rng = np.random.default_rng(0)
    algorithm.fit(reviews, rows, rng)  # compiles
    return fitted(clocked(lambda: algorithm.fit(reviews, rows, rng), repeats))


def fsrs_rs(workload: Workload, *, by_card: bool = False) -> Cost:
    """Train with fsrs-rs-python, which may be told which reviews are of one card."""
    import fsrs_rs_python

    reviews, rows = workload.reviews, workload.train
    prepared = clocked(lambda: training_items(fsrs_rs_python, reviews, rows), 5)
    cards = pd.factorize(reviews.card[rows])[0].tolist() if by_card else None
    optimiser = fsrs_rs_python.FSRS(parameters=[])
    fit = clocked(lambda: optimiser.benchmark(prepared.result, card_ids=cards), 5)
    return fitted(fit, prepared.cpu)


def fsrs_optimizer(workload: Workload) -> Cost:
    """Train with fsrs-optimizer, in the steps and with the options of its own command."""
    import torch
    from fsrs_optimizer import Optimizer

    torch.set_num_threads(1)
    prepared = clocked(lambda: optimizer_frame(workload))

    def train() -> list[float]:
        optimizer = Optimizer()
        optimizer.define_model()
        optimizer.initialize_parameters(prepared.result, verbose=False)
        optimizer.train(verbose=False, recency_weight=True)
        return list(optimizer.w)

    return fitted(clocked(train), prepared.cpu)


PEERS: dict[str, Callable[[Workload], Cost]] = {
    OURS: ours,
    "srs_eval, fit=reference": partial(ours, fit="reference", repeats=3),
    "fsrs-rs": fsrs_rs,
    "fsrs-rs, card_ids": partial(fsrs_rs, by_card=True),
    "fsrs-optimizer": fsrs_optimizer,
}


def optimizer_frame(workload: Workload) -> pd.DataFrame:
    """Write the training reviews as fsrs-optimizer reads them: histories as texts."""
    reviews, rows = workload.reviews, workload.train
    log = pd.DataFrame({"card_id": reviews.card, "delta_t": np.maximum(reviews.elapsed_days, 0)})
    log = log.assign(rating=reviews.rating, y=reviews.recalled * 1, i=workload.nth_review)
    log["review_time"] = np.arange(len(log))
    for name, of in (("t_history", "delta_t"), ("r_history", "rating")):
        texts = log[of].astype(str).groupby(log["card_id"])
        log[name] = texts.transform(lambda each: [*accumulate(each, "{},{}".format)])
        log[name] = log.groupby("card_id")[name].shift()
    return log.iloc[rows].reset_index(drop=True)


def log_loss(workload: Workload, parameters: np.ndarray) -> float:
    """Log loss of the fold's test reviews: whether anything was learned at all."""
    model = RecurrentModel(Fsrs6Equations(), tuple(parameters.tolist()))
    p = model.predict(workload.reviews, workload.test)
    return float(log_losses(p, workload.reviews.recalled[workload.test]).mean())


@benchmark("peers")
def main(log: Path = JOSH, peers: Words = tuple(PEERS)) -> str:
    """Measure some peers on a user's log, a CSV, and on simulated ones."""
    rows: list[tuple[object, ...]] = []
    for workload in standard_workloads(log):
        about, own = (workload.name, len(workload.train)), 0.0
        for name in peers:
            fit = in_process(PEERS[name], workload)
            parameters, preparing = fit.result
            own = fit.cpu if name == OURS else own
            seconds = (fit.cpu, fit.wall, preparing)
            times = [f"{cpu / own:,.1f}" if own else "" for cpu in (fit.cpu, fit.cpu + preparing)]
            loss = f"{log_loss(workload, parameters):.4f}"
            cells = [f"{1000 * each:,.1f}" for each in seconds]
            rows.append((*about, name, *cells, *times, fit.peak_bytes >> 20, loss))
            print(*rows[-1], flush=True)
    headers = ["data", "training reviews", "trained by", "CPU ms", "wall ms", "preparing ms"]
    return table([*headers, "times ours", "with preparing", "peak MiB", "test log loss"], rows)

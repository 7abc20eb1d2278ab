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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from benchmark import Words, benchmark, table
from measure import Measured, clocked, in_process
from workloads import JOSH, Workload, standard_workloads

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs_rs import training_items
from srs_eval.algorithms.recurrent.model import RecurrentModel

OURS = "srs_eval, fit=newton"
_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class PeerFit:
    """One fit of FSRS-6.

    Attributes
    ----------
    parameters : tuple of 21 floats
    cpu_seconds, wall_seconds : float
        Of training.
    preparing_seconds : float
        CPU time of turning reviews into what the package takes, not part of the others.
    """

    parameters: tuple[float, ...]
    cpu_seconds: float
    wall_seconds: float
    preparing_seconds: float


def ours(workload: Workload, *, fit: str = "newton", repeats: int = 10) -> PeerFit:
    """Train with our own engine, weighing recent reviews as fsrs-rs does."""
    algorithm = Fsrs6(fit=fit, recency="mild")
    reviews, rows = workload.reviews.take(np.arange(workload.train[-1] + 1)), workload.train
    rng = np.random.default_rng(0)
    algorithm.fit(reviews, rows, rng)  # compiles
    done = clocked(lambda: algorithm.fit(reviews, rows, rng), repeats)
    return PeerFit(rounded(done.result.parameters), done.cpu, done.wall, 0.0)


def ours_as_published(workload: Workload) -> PeerFit:
    """Train with our own engine as the public benchmark does, batch for batch."""
    return ours(workload, fit="reference", repeats=3)


def fsrs_rs(workload: Workload, *, card_ids: bool = False, repeats: int = 5) -> PeerFit:
    """Train with fsrs-rs-python; the least of so many times, as a fit takes milliseconds."""
    import fsrs_rs_python

    reviews, rows = workload.reviews, workload.train
    prepared = clocked(lambda: training_items(fsrs_rs_python, reviews, rows), repeats)
    cards = pd.factorize(reviews.card[rows])[0].tolist() if card_ids else None
    optimiser = fsrs_rs_python.FSRS(parameters=[])
    fit = clocked(lambda: optimiser.benchmark(prepared.result, card_ids=cards), repeats)
    return PeerFit(rounded(fit.result), fit.cpu, fit.wall, prepared.cpu)


def fsrs_rs_by_card(workload: Workload) -> PeerFit:
    """Train with fsrs-rs-python, which is told which reviews are of one card."""
    return fsrs_rs(workload, card_ids=True)


def fsrs_optimizer(workload: Workload) -> PeerFit:
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

    fit = clocked(train)
    return PeerFit(rounded(fit.result), fit.cpu, fit.wall, prepared.cpu)


def torch_loop(workload: Workload) -> PeerFit:
    """Train with a plain PyTorch loop: batches of 512 reviews, each a padded sequence."""
    import torch
    from padded_loop import batches, train

    torch.set_num_threads(1)
    prepared = clocked(lambda: batches(workload))
    fit = clocked(lambda: train(prepared.result))
    return PeerFit(rounded(fit.result), fit.cpu, fit.wall, prepared.cpu)


PEERS: dict[str, Callable[[Workload], PeerFit]] = {
    OURS: ours,
    "srs_eval, fit=reference": ours_as_published,
    "fsrs-rs": fsrs_rs,
    "fsrs-rs, card_ids": fsrs_rs_by_card,
    "fsrs-optimizer": fsrs_optimizer,
    "PyTorch loop": torch_loop,
}


def rounded(parameters: Iterable[float]) -> tuple[float, ...]:
    """Round as the packages' users do."""
    return tuple(np.round(np.asarray(parameters, np.float64), _DECIMALS).tolist())


def optimizer_frame(workload: Workload) -> pd.DataFrame:
    """Write the training reviews as fsrs-optimizer reads them: histories as texts."""
    reviews, rows = workload.reviews, workload.train
    wanted = np.zeros(len(reviews), np.bool_)
    wanted[rows] = True
    seen = int(rows[-1]) + 1
    days = np.maximum(reviews.elapsed_days, 0)
    columns = (reviews.card, days, reviews.rating, wanted)
    before: dict[int, tuple[str, str]] = {}
    histories = []
    for card, elapsed, rating, trained in zip(
        *(column[:seen].tolist() for column in columns), strict=True
    ):
        if trained:
            histories.append(before[card])
        times, ratings = before.get(card, ("", ""))
        comma = "," if ratings else ""
        before[card] = (f"{times}{comma}{elapsed}", f"{ratings}{comma}{rating}")
    frame = pd.DataFrame(histories, columns=["t_history", "r_history"])
    return frame.assign(
        card_id=reviews.card[rows],
        review_time=rows,
        i=workload.nth_review[rows],
        delta_t=days[rows],
        y=reviews.recalled[rows].astype(np.int64),
    )


def log_loss(workload: Workload, parameters: tuple[float, ...]) -> float:
    """Log loss of the fold's test reviews: whether anything was learned at all."""
    model = RecurrentModel(Fsrs6Equations(), parameters)
    p = model.predict(workload.reviews, workload.test)
    recalled = workload.reviews.recalled[workload.test]
    return float(-np.mean(np.log(np.where(recalled, p, 1 - p))))


def loaded(workload: Workload) -> int:
    """Do nothing but hold the data, to tell how much memory that takes."""
    return len(workload.train)


def line(
    workload: Workload, name: str, done: Measured[PeerFit], against: PeerFit | None
) -> tuple[object, ...]:
    """Format the measurements of one peer and workload as a row of the table."""
    fit = done.result
    times = times_all = ""
    if against is not None:
        times = f"{fit.cpu_seconds / against.cpu_seconds:,.1f}"
        preparing = fit.cpu_seconds + fit.preparing_seconds
        times_all = f"{preparing / (against.cpu_seconds + against.preparing_seconds):,.1f}"
    return (
        workload.name,
        len(workload.train),
        name,
        f"{1000 * fit.cpu_seconds:,.1f}",
        f"{1000 * fit.wall_seconds:,.1f}",
        f"{1000 * fit.preparing_seconds:,.1f}",
        times,
        times_all,
        round(done.peak_bytes / 2**20),
        f"{log_loss(workload, fit.parameters):.4f}",
    )


COLUMNS = (
    *("data", "training reviews", "trained by"),
    *("CPU ms", "wall ms", "preparing ms", "times ours", "with preparing"),
    *("peak MiB", "test log loss"),
)


@benchmark("peers")
def main(log: Path = JOSH, peers: Words = tuple(PEERS), only: Words = ()) -> str:
    """Measure some peers on a user's log, a CSV, and on simulated ones, or `only` some of these."""
    if not log.exists():
        print(f"left out, as it is not here: {log.name}\n")
    lines: list[tuple[object, ...]] = []
    for workload in standard_workloads(log):
        if only and workload.name not in only:
            continue
        held = in_process(loaded, workload).peak_bytes / 2**20
        nothing = (workload.name, len(workload.train), "(nothing)", *("",) * 5, round(held), "")
        lines.append(nothing)
        own: PeerFit | None = None
        for name in peers:
            done = in_process(PEERS[name], workload)
            own = done.result if name == OURS else own
            lines.append(line(workload, name, done, own))
            print(*lines[-1], flush=True)
    return table(COLUMNS, lines)

"""A PyTorch module with the interface of the models of srs-benchmark, trained as there.

    cd examples/bench_module
    python -m srs_eval --config-dir conf -m algo=bench_module,hlr

`docs/guides/torch.md` describes the interface. It is trained as in srs-benchmark (2026,
https://github.com/open-spaced-repetition/srs-benchmark): by the module's own `fit(table)` if it has
one; otherwise by Adam or the module's `get_optimizer` on batches sorted by the length of histories,
with a rate that falls along a cosine; the parameters of the epoch with the lowest training loss are
kept. Learned parameters are not rounded.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from srs_eval.algorithms.algorithm import Algorithm, Learned
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import FloatArray, IntArray, Reviews
from srs_eval.errors import FitError

LONGEST = 64  # histories that are trained on
SHUFFLE_SEED = 2023
INADEQUATE = "inadequate."  # how errors of modules end that have too little to learn from
SMALLEST = float(np.finfo(np.float32).eps)
RECENCY = {
    "mild": lambda n: 0.25 + 0.75 * np.linspace(0, 1, n) ** 3,
    "steep": lambda n: 0.0667 + 0.9333 * (np.arange(n) / n) ** 11.25,
}


class Batch(NamedTuple):
    """Reviews side by side, each with a copy of its history."""

    sequences: Tensor  # [T, n, 2]: days and rating of each earlier review of the card, then zeros
    delta_ts: Tensor  # [n]: days since the last of them
    seq_lens: Tensor  # [n]: how many they are
    labels: Tensor  # [n]: 1.0 where recalled
    weights: Tensor  # [n]


def histories(reviews: Reviews, rows: IntArray) -> list[Tensor]:
    """Return days and ratings of the earlier reviews of the card of each row, [T, 2]."""
    order = np.argsort(reviews.card, kind="stable")
    nth = rows_by_card(reviews.card).nth
    entries = np.column_stack([np.maximum(reviews.elapsed, 0.0), reviews.rating])[order]
    known = torch.from_numpy(entries.astype(np.float32))
    place = np.argsort(order)[rows]
    return [known[end - n : end] for end, n in zip(place, nth[rows], strict=True)]


def training_table(reviews: Reviews, rows: IntArray, weights: FloatArray | None) -> pd.DataFrame:
    """Tabulate training reviews as srs-benchmark does."""
    later_day = reviews.elapsed_days > 0
    first = pd.Series(reviews.rating).groupby(reviews.card).transform("first").to_numpy()
    table = pd.DataFrame(
        {
            "card_id": reviews.card[rows],
            "review_th": rows + 1,
            "rating": reviews.rating[rows],
            "elapsed_days": reviews.elapsed_days[rows],
            "delta_t": reviews.elapsed[rows],
            "y": reviews.recalled[rows].astype(np.int64),
            "i": 1 + (rows_by_card(reviews.card).earlier(later_day) + later_day)[rows],
            "first_rating": first[rows].astype(str),
            "tensor": pd.Series(histories(reviews, rows), dtype=object),
        }
    )
    return table if weights is None else table.assign(weights=weights)


def batches_of(table: pd.DataFrame, batch_size: int, longest: int = LONGEST) -> list[Batch]:
    """Cut a training table, sorted by the lengths of histories, into batches."""
    lengths = table["tensor"].map(len)
    table = table[(lengths > 0) & (lengths <= longest)]
    table = table.iloc[np.argsort(table["tensor"].map(len), kind="stable")]
    batches = []
    for begin in range(0, len(table), batch_size):
        some = table.iloc[begin : begin + batch_size]
        weights = some["weights"] if "weights" in some else pd.Series(np.ones(len(some)))
        elapsed, recalled, weight = (
            torch.from_numpy(column.to_numpy(np.float32))
            for column in (some["delta_t"], some["y"], weights)
        )
        lens = torch.tensor([len(history) for history in some["tensor"]])
        batches.append(Batch(pad_sequence(list(some["tensor"])), elapsed, lens, recalled, weight))
    return batches


@dataclass(frozen=True, eq=False)
class ModuleModel:
    """A trained module."""

    module: nn.Module
    learned: Learned = field(default_factory=Learned)

    @property
    def parameters(self) -> Sequence[float]:
        """All parameters of the module, in the order of their definition."""
        return tuple(x for value in self.module.parameters() for x in value.flatten().tolist())

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict recall at each of `rows`."""
        return self.predict_at(reviews, rows, reviews.elapsed[rows, None])[:, 0]

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, [rows, k]; NaN at a card's first review."""
        days = torch.from_numpy(np.asarray(elapsed, np.float32))
        p = np.full(days.shape, np.nan, np.float32)
        known = histories(reviews, rows)
        order = [row for row in np.argsort([len(each) for each in known]) if len(known[row])]
        with torch.no_grad(), one_thread():
            for begin in range(0, len(order), 512):
                some = order[begin : begin + 512]
                sequences = pad_sequence([known[row] for row in some])
                lens = torch.tensor([len(known[row]) for row in some])
                for column, times in enumerate(days[some].T):
                    p[some, column] = predicted(self.module, sequences, times, lens)["retentions"]
        return np.clip(p, SMALLEST, 1 - SMALLEST)


@dataclass(frozen=True)
class BenchModule(Algorithm):
    """A module, and how it is trained.

    Parameters
    ----------
    module : str
        Dotted name of the class, in the current folder or an installed package.
    short : bool
        Whether histories keep same-day reviews, as with ``--short`` in srs-benchmark.
    recency : {"mild", "steep"}, optional
        How much more recent reviews count; None: all alike.
    epochs, batch_size, learning_rate : optional
        None: ``n_epoch``, ``batch_size`` and ``lr`` of the module, or else 5, 512 and 0.04.
    config : mapping
        Further attributes of the object that the module is constructed with, by name.
    """

    module: str = "half_life.HalfLife"
    short: bool = True
    recency: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def same_day(self) -> bool:
        """Whether its histories keep same-day reviews."""
        return self.short

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> ModuleModel:
        """Train the module on the outcomes of `rows`; `rng` seeds what PyTorch draws."""
        weights = None if self.recency is None else RECENCY[self.recency](len(rows))
        with one_thread(), torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**63)))
            module, learned = self.constructed(whole_days=reviews.whole_days), Learned()
            try:
                self.train(module, training_table(reviews, rows, weights))
            except (FitError, ValueError) as error:
                if not str(error).endswith(INADEQUATE):
                    raise
                module = self.constructed(whole_days=reviews.whole_days)
                learned = Learned(fallback=True, note=str(error))
        return ModuleModel(module.eval(), learned)

    def constructed(self, *, whole_days: bool) -> nn.Module:
        """Return the module before any training."""
        place, _, name = self.module.rpartition(".")
        kind = getattr(import_module(place), name)
        settings = {
            "model_name": name,
            "device": torch.device("cpu"),
            "s_min": 0.01 if whole_days else 0.0001,
            "init_s_max": 100.0,
            "s_max": 36500.0,
            "use_secs_intervals": not whole_days,
            "include_short_term": self.short,
            "use_recency_weighting": self.recency is not None,
            "two_buttons": False,
            "default_params": False,
            "sched_penalties": False,
            "partitions": "none",
            "n_splits": 5,
            "batch_size": self.batch_size or 512,
            "max_seq_len": LONGEST,
            "seed": 42,
            **self.config,
        }
        takes = inspect.signature(kind).parameters
        return kind(config=SimpleNamespace(**settings)) if "config" in takes else kind()

    def train(self, module: nn.Module, table: pd.DataFrame) -> None:
        """Train a module in place."""
        if len(table) and callable(getattr(module, "fit", None)):
            module.train()
            module.fit(table)
            return
        if len(table):
            call(module, "initialize_parameters", table)
            filtered = call(module, "filter_training_data", table)
            table = table if filtered is None else filtered
        batches = batches_of(table, self.batch_size or getattr(module, "batch_size", 512))
        if not batches:
            raise FitError(f"{len(table)} training reviews: training data is {INADEQUATE}")
        rate = self.learning_rate or getattr(module, "lr", 0.04)
        loss = descend(module, batches, rate, self.epochs or getattr(module, "n_epoch", 5))
        if not math.isfinite(loss):
            raise FitError(f"{self.module} diverged: try an algo.learning_rate below {rate}")


def descend(module: nn.Module, batches: Sequence[Batch], rate: float, epochs: int) -> float:
    """Train in place as srs-benchmark does; return the lowest training loss of an epoch."""
    optimizer = optimizer_of(module, rate)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(batches))
    generator = torch.Generator().manual_seed(SHUFFLE_SEED)
    reviews = sum(len(batch.labels) for batch in batches)
    lowest, best = math.inf, {}
    for epoch in range(epochs + 1):
        module.eval()
        with torch.no_grad():
            total = sum(float(loss_of(module, batch, reviews)) for batch in batches)
        if total < lowest or not best:
            # Of the base class: models of srs-benchmark return a list of rounded numbers.
            lowest, best = total, deepcopy(nn.Module.state_dict(module))
        if epoch == epochs:
            break
        module.train()
        for number in torch.randperm(len(batches), generator=generator).tolist():
            optimizer.zero_grad()
            loss_of(module, batches[number], reviews).backward()
            call(module, "apply_gradient_constraints")
            optimizer.step()
            scheduler.step()
            call(module, "apply_parameter_clipper")
    nn.Module.load_state_dict(module, best)
    return lowest / reviews


def optimizer_of(module: nn.Module, rate: float) -> torch.optim.Optimizer:
    """Return the module's own optimiser, or Adam."""
    if not hasattr(module, "get_optimizer"):
        return torch.optim.Adam(module.parameters(), lr=rate)
    takes = inspect.signature(module.get_optimizer).parameters
    betas = {"betas": module.betas} if "betas" in takes and hasattr(module, "betas") else {}
    return module.get_optimizer(lr=rate, wd=float(getattr(module, "wd", 0.0)), **betas)


def loss_of(module: nn.Module, batch: Batch, reviews: int) -> Tensor:
    """Sum the weighted log losses of a batch, and the penalty, which counts each of its reviews."""
    made = predicted(module, batch.sequences, batch.delta_ts, batch.seq_lens)
    each = nn.functional.binary_cross_entropy(made["retentions"], batch.labels, reduction="none")
    loss = (each * batch.weights).sum()
    return loss + made["penalty"] / reviews if "penalty" in made else loss


def predicted(
    module: nn.Module, sequences: Tensor, delta_ts: Tensor, seq_lens: Tensor
) -> Mapping[str, Tensor]:
    """Ask a module, and check the shape and the numbers of its answer."""
    made = module.batch_process(sequences, delta_ts, seq_lens, len(seq_lens))
    retentions = made["retentions"]
    if retentions.shape != seq_lens.shape or not torch.isfinite(retentions).all():
        raise FitError(
            f"{type(module).__name__}.batch_process returns retentions of shape "
            f"{tuple(retentions.shape)}, of which {int(torch.isfinite(retentions).sum())} are "
            f"numbers; {len(seq_lens)} are needed: clip what is divided by or raised to a power"
        )
    return made


def call(module: nn.Module, method: str, *arguments: Any) -> Any:
    """Call an optional method."""
    return getattr(module, method)(*arguments) if hasattr(module, method) else None


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: small modules gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)

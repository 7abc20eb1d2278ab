"""Any PyTorch module with the interface of the models of srs-benchmark, trained as there."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from srs_eval.algorithms.curve_only import CurveOnly
from srs_eval.algorithms.neural.bench_batches import Batch, asked_of, batches_of, training_table
from srs_eval.algorithms.neural.fitting import LONGEST_TRAINED_HISTORY
from srs_eval.algorithms.neural.training import generator_from, one_thread
from srs_eval.algorithms.options import (
    ClassName,
    require_above_zero,
    require_bool,
    require_choice,
    require_whole,
)
from srs_eval.engine.recency import RECENCIES, Recency, recency_weights
from srs_eval.errors import ConfigError, FitError
from srs_eval.nouns import FloatArray, IntArray, Learned, Reviews, When

_EXAMPLE = ClassName("srs_eval.algorithms.neural.example_module.HalfLife")
_KEPT = ("best", "last")
# With which srs-benchmark shuffles its batches.
_SHUFFLE_SEED = 2023
_INADEQUATE = "inadequate."
# Predictions stay in the precision in which they are computed.
_SMALLEST_P = np.finfo(np.float32).eps


@dataclass(frozen=True, eq=False)
class ModuleModel(CurveOnly):
    """A trained module, and what is told of its training."""

    module: nn.Module
    learned: Learned = field(default_factory=Learned)

    @property
    def parameters(self) -> Sequence[float]:
        """All parameters of the module, in the order of their definition."""
        values = [value.detach().flatten() for value in self.module.parameters()]
        flat: list[float] = torch.cat(values).double().tolist() if values else []
        return tuple(flat)

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times; NaN at a card's first review."""
        days = torch.from_numpy(np.asarray(elapsed, np.float32))
        p = np.full(days.shape, np.nan, np.float32)
        with torch.no_grad(), one_thread():
            for asked in asked_of(reviews, rows):
                for column, times in enumerate(days[asked.place].T):
                    found = _retentions(self.module, asked.sequences, times, asked.seq_lens)
                    p[asked.place, column] = found["retentions"].numpy()
        return np.clip(p, _SMALLEST_P, 1 - _SMALLEST_P)


@dataclass(frozen=True)
class BenchModule:
    """A PyTorch module of yours, in the interface of srs-benchmark's ``models/*.py``.

    The class named by `module` is imported from the current folder or an installed package, and
    run as it is: in a checkout of srs-benchmark, ``algo.module=models.sbd.SBD``. It has
    ``batch_process(sequences, delta_ts, seq_lens, real_batch_size)``, which returns a mapping
    with ``retentions`` [n], and a ``penalty`` if there is one. Reads days and rating of each
    review of the card before, as sequences [T, n, 2] padded with zeros: what srs-benchmark gives
    to FSRS, SBD, SM2-trainable and its RNN. A model that reads other numbers there (HLR, DASH,
    LogisticRegression, LSTM) would be given the wrong ones. How many parameters it has varies.

    It is trained as there (2026, https://github.com/open-spaced-repetition/srs-benchmark): by its
    own ``fit(table)`` if it has one; otherwise with ``initialize_parameters`` and
    ``filter_training_data``, then Adam or the module's ``get_optimizer`` on batches sorted by the
    length of histories (those above 64 left out), a rate that falls along a cosine,
    ``apply_gradient_constraints`` and ``apply_parameter_clipper`` at each step, and the
    parameters of the epoch with the lowest training loss. Learned parameters are not rounded.
    Where there is too little to learn from, the module as constructed takes the place of the fit.
    No published row: it is as good as the module.

    Parameters
    ----------
    module : str
        Dotted name of the class; by default an example of a half-life.
    short : bool
        Whether histories keep same-day reviews, as with ``--short`` in srs-benchmark.
    recency : str, optional
        How much more recent reviews count, as in `srs_eval.algorithms.fitted.Fitted`; None: all
        alike. ``--recency`` is ``steep`` for FSRS-7 and SBD there, ``mild`` for the others.
    epochs, batch_size, learning_rate : optional
        None: ``n_epoch``, ``batch_size`` and ``lr`` of the module, or else 5, 512 and 0.04.
    keep : {"best", "last"}
        Which of the epochs is kept.
    config : mapping
        Further attributes of the object that the module is constructed with, by name, such as
        sizes of a network; those of srs-benchmark are `device`, `s_min`, `init_s_max`, `s_max`,
        `use_secs_intervals`, `include_short_term`, `two_buttons`, `max_seq_len` and the like.
    """

    module: ClassName = _EXAMPLE
    short: bool = True
    recency: Recency | None = None
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    keep: str = "best"
    config: Mapping[str, Any] = field(default_factory=dict)
    when: ClassVar[When] = "previous_review"
    sees_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        require_bool("bench_module", "short", self.short)
        if not isinstance(self.config, Mapping):
            raise ConfigError(f"bench_module: config={self.config!r}: expected NAME: VALUE")
        for option in ("epochs", "batch_size"):
            if (count := getattr(self, option)) is not None:
                require_whole("bench_module", option, count, least=1)
        if self.learning_rate is not None:
            require_above_zero("bench_module", "learning_rate", self.learning_rate)
        if self.recency is not None:
            require_choice("bench_module", "recency", self.recency, RECENCIES)
        require_choice("bench_module", "keep", self.keep, _KEPT)
        given = {name: getattr(self, name) for name in ("epochs", "batch_size", "learning_rate")}
        idle = [f"algo.{name}={value}" for name, value in given.items() if value is not None]
        if hasattr(module_class(self.module), "fit") and idle:
            raise ConfigError(
                f"bench_module: {', '.join(idle)} has no effect, because {self.module} has a fit "
                "of its own: leave it out"
            )

    @property
    def same_day(self) -> bool:
        """Whether its histories keep same-day reviews."""
        return self.short

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> ModuleModel:
        """Train the module on the outcomes of `rows`; `rng` seeds what PyTorch draws."""
        weights = None if self.recency is None else recency_weights(len(rows), self.recency, 0.5)
        with one_thread(), torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**63)))
            module, learned = self.constructed(whole_days=reviews.whole_days), Learned()
            try:
                self._train(module, training_table(reviews, rows, weights), reviews)
            except Exception as error:
                if not str(error).endswith(_INADEQUATE):
                    raise
                module = self.constructed(whole_days=reviews.whole_days)
                note = f"{len(rows)} training reviews are too few: {error}"
                learned = Learned(fallback=True, note=note)
        return ModuleModel(module.eval(), learned)

    def constructed(self, *, whole_days: bool) -> nn.Module:
        """Return the module before any training."""
        kind = module_class(self.module)
        settings = {
            "model_name": kind.__name__,
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
            "max_seq_len": LONGEST_TRAINED_HISTORY,
            "seed": 42,
            **self.config,
        }
        takes = inspect.signature(kind).parameters
        made: nn.Module = kind(config=SimpleNamespace(**settings)) if "config" in takes else kind()
        return made

    def _train(self, module: Any, table: Any, reviews: Reviews) -> None:
        """Train a module in place."""
        if not len(table):
            raise FitError(f"training data is {_INADEQUATE}")
        if callable(getattr(module, "fit", None)):
            module.train()
            module.fit(table)
            return
        _called(module, "initialize_parameters", table)
        kept = _called(module, "filter_training_data", table)
        size = _given(self.batch_size, module, "batch_size", 512)
        table = table if kept is None else kept
        batches = batches_of(table, size, LONGEST_TRAINED_HISTORY)
        if not batches:
            raise FitError(f"training data is {_INADEQUATE}")
        rate = _given(self.learning_rate, module, "lr", 0.04)
        epochs = _given(self.epochs, module, "n_epoch", 5)
        loss = train(module, batches, rate, epochs, keep=self.keep)
        if not math.isfinite(loss):
            raise FitError(
                f"user {reviews.user}: {self.module} diverged (training loss {loss}): try an "
                f"algo.learning_rate below {rate}"
            )


def module_class(name: str) -> Any:
    """Import the class of a module, which must have `batch_process`."""
    place, _, kind = name.rpartition(".")
    try:
        found = getattr(import_module(place), kind)
    except (Exception, SystemExit) as error:  # modules run when imported
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ConfigError(
            f"algo.module={name} cannot be imported ({reason}): write FILE.CLASS, such as "
            "models.sbd.SBD, in the folder that has it"
        ) from error
    is_module = isinstance(found, type) and issubclass(found, nn.Module)
    if not is_module or not callable(getattr(found, "batch_process", None)):
        raise ConfigError(
            f"algo.module={name} is not a torch.nn.Module with batch_process(sequences, delta_ts, "
            "seq_lens, real_batch_size), as the models of srs-benchmark are"
        )
    return found


def train(module: Any, batches: list[Batch], rate: float, epochs: int, *, keep: str) -> float:
    """Train in place as srs-benchmark does, and return the training loss of what is kept."""
    optimizer = _optimizer(module, rate)
    steps = epochs * len(batches)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    generator, reviews = generator_from(_SHUFFLE_SEED), sum(len(b.labels) for b in batches)
    lowest, kept = math.inf, _state_of(module)
    for epoch in range(epochs + 1):
        module.eval()
        with torch.no_grad():
            total = sum(float(_loss(module, batch, reviews)) for batch in batches)
        if total < lowest or keep == "last":
            lowest, kept = total, _state_of(module)
        if epoch == epochs:
            break
        module.train()
        for number in torch.randperm(len(batches), generator=generator).tolist():
            optimizer.zero_grad()
            torch.autograd.backward(_loss(module, batches[number], reviews))
            _called(module, "apply_gradient_constraints")
            optimizer.step()
            scheduler.step()
            _called(module, "apply_parameter_clipper")
    nn.Module.load_state_dict(module, kept)
    return lowest / reviews


def _state_of(module: nn.Module) -> dict[str, Any]:
    # Of the base class: models of srs-benchmark return a list of rounded numbers.
    return deepcopy(nn.Module.state_dict(module))


def _optimizer(module: Any, rate: float) -> torch.optim.Optimizer:
    decay = float(getattr(module, "wd", 0.0))
    if not hasattr(module, "get_optimizer"):
        return torch.optim.Adam(module.parameters(), lr=rate)
    takes = inspect.signature(module.get_optimizer).parameters
    betas = {"betas": module.betas} if "betas" in takes and hasattr(module, "betas") else {}
    made: torch.optim.Optimizer = module.get_optimizer(lr=rate, wd=decay, **betas)
    return made


def _loss(module: Any, batch: Batch, reviews: int) -> Tensor:
    """Sum the weighted log losses of a batch, and the penalty, which counts each of its reviews."""
    found = _retentions(module, batch.sequences, batch.delta_ts, batch.seq_lens)
    each = nn.functional.binary_cross_entropy(found["retentions"], batch.labels, reduction="none")
    loss = (each * batch.weights).sum()
    return loss + found["penalty"] / reviews if "penalty" in found else loss


def _retentions(
    module: Any, sequences: Tensor, delta_ts: Tensor, seq_lens: Tensor
) -> Mapping[str, Tensor]:
    count = len(seq_lens)
    found: Mapping[str, Tensor] = module.batch_process(sequences, delta_ts, seq_lens, count)
    shape = getattr(found.get("retentions"), "shape", None)
    if shape != (count,):
        raise FitError(
            f"{type(module).__name__}.batch_process returns retentions of shape {shape}, not "
            f"({count},)"
        )
    if not torch.isfinite(found["retentions"]).all():
        raise FitError(
            f"{type(module).__name__}.batch_process returns retentions that are not numbers: "
            "clip what is divided by or raised to a power, or try a smaller algo.learning_rate"
        )
    return found


def _given(option: float | None, module: Any, attribute: str, usual: float) -> Any:
    """Return an option that was given, or what the module has, or what is usual."""
    return getattr(module, attribute, usual) if option is None else option


def _called(module: Any, method: str, *arguments: Any) -> Any:
    """Call an optional method."""
    return getattr(module, method)(*arguments) if hasattr(module, method) else None

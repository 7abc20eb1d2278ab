"""FSRS-6 trained by the optimiser that Anki ships, which is written in Rust."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.algorithms.recurrent.model import RecurrentModel
from srs_eval.data.reviews import IntArray, Reviews
from srs_eval.errors import ConfigError, FitError, FitSkipped

_PACKAGE = "fsrs_rs_python"


@dataclass(frozen=True, slots=True)
class FsrsRs(Algorithm):
    """FSRS-6 as the package fsrs-rs-python trains it (FSRS-rs).

    The optimiser is https://github.com/open-spaced-repetition/fsrs-rs. It is handed one history per
    training review and used as it comes: initial stabilities from the first later-day review of
    each card, then 5 epochs of Adam in batches of 512, drawn towards where it began, later reviews
    counting up to four times as much as the first (``0.25 + 0.75 x**3``), histories of more than
    256 reviews left out, and a seed of its own. It knows whole days only and learns from reviews on
    later days, whichever the protocol's clock. Predictions are those of
    `srs_eval.algorithms.fsrs.fsrs6`. Reads whole days and ratings, those of same-day reviews
    included; 21 parameters, to 4 decimals. Published row, without same-day reviews: log loss
    0.3443, RMSE(bins) 0.0635, AUC 0.7074.
    """

    same_day: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            import_module(_PACKAGE)
        except ImportError as error:
            raise ConfigError(
                f"algo=fsrs_rs needs fsrs-rs-python, which cannot be imported ({error}): "
                "install it with pip install 'srs-eval[rs]', or choose another algo"
            ) from error

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecurrentModel:
        """Learn the parameters from the outcomes of `rows`."""
        package, user = import_module(_PACKAGE), reviews.user
        # Of same-day reviews the package's curve would say that they cannot fail.
        later = rows[reviews.elapsed_days[rows] > 0]
        items = training_items(package, reviews, later) if len(later) > 0 else []
        if not any(item.long_term_review_cnt() == 1 for item in items):
            raise FitSkipped(
                f"fsrs_rs: none of the {len(rows)} training reviews of user {user} is the first "
                "on a later day of its card, and the package needs one to start from"
            )
        try:
            parameters = package.FSRS(parameters=[]).benchmark(items)
        except BaseException as error:
            # A panic in Rust is no `Exception`; let through, it would end the whole run.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise FitError(f"fsrs_rs: user {user}: the Rust optimiser failed: {error}") from error
        w = np.round(np.asarray(parameters, np.float64), 4)
        if not np.isfinite(w).all():
            raise FitError(f"fsrs_rs: user {user}: the fit ended at {w.tolist()}")
        return RecurrentModel(Fsrs6Equations(), tuple(w.tolist()))


def training_items(package: Any, reviews: Reviews, rows: IntArray) -> list[Any]:
    """Turn training reviews into the package's items, each with the card's reviews before it."""
    cards, ratings, trained = reviews.card.tolist(), reviews.rating.tolist(), set(rows.tolist())
    days = np.maximum(reviews.elapsed_days, 0).tolist()
    items = []
    histories = defaultdict[int, list[Any]](list)
    for row in range(int(rows[-1]) + 1):
        history = histories[cards[row]]
        history.append(package.FSRSReview(ratings[row], days[row]))
        if row in trained:
            items.append(package.FSRSItem(history))  # a copy of the history, which goes on growing
    return items

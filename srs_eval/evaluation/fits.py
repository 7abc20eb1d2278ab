"""How each fit of a user went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from srs_eval.algorithms.algorithm import Contribution, Part
from srs_eval.data.reviews import User

FitStatus = Literal["ok", "fallback", "skipped", "failed"]


@dataclass(frozen=True)
class Fit:
    """How one fit went; `fold` is -1 where the whole user was skipped.

    `parameters` are the learned numbers of the model, empty where it has none; `parts` are the
    fits of a model that is made of several; `seconds` is CPU time; `traceback` is kept for
    failures that no algorithm announced; `converged` is False where an optimiser stopped early;
    `contributions` are what groups of features are worth; `training_loss` and `test_log_loss` are
    those after each step of the fit, which nothing chooses by.
    """

    user: User
    fold: int
    status: FitStatus
    reason: str = ""
    seconds: float = 0.0
    n_train: int = 0
    n_test: int = 0
    parameters: tuple[float, ...] = ()
    standard_errors: tuple[float, ...] = ()
    traceback: str = ""
    parts: tuple[Part, ...] = ()
    converged: bool = True
    contributions: tuple[Contribution, ...] = ()
    training_loss: tuple[float, ...] = ()
    test_log_loss: tuple[float, ...] = ()

    @property
    def predicts(self) -> bool:
        """Whether predictions came of it."""
        return self.status in ("ok", "fallback")

"""An experiment: exactly what can change a number, what is checked, and what is learned before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from srs_eval.config.building import Inputs
from srs_eval.errors import FitSkipped, ReviewLogError
from srs_eval.evaluation.limits import FitLimits, FitTimeoutError
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import (
    Algorithm,
    EvaluationProtocol,
    IntArray,
    Pretrainable,
    Reviews,
    Source,
    User,
)
from srs_eval.protocol.user_folds import UserFolds
from srs_eval.run.description import targets

SEED = 2026
CURVES_PER_USER = 200


@dataclass(frozen=True, slots=True)
class Experiment:
    """Everything that can change a number of a result, and nothing else.

    The digest of its configuration is the ``config_hash`` of a run.
    """

    algorithm: Algorithm  # What is evaluated
    source: Source  # Review logs
    # Which reviews are scored, and what may be learned before each of them
    protocol: EvaluationProtocol
    panel: Panel  # Metrics
    seed: int = SEED  # Seeds every fit, together with the user and the fold
    # Forgetting curves that are sampled per user, for the metrics and plots of curves
    curves_per_user: int = CURVES_PER_USER

    @classmethod
    def of(cls, inputs: Inputs) -> Experiment:
        """Return the experiment of what a run is made of."""
        algorithm, source, protocol = (inputs[group] for group in ("algo", "data", "protocol"))
        seed, curves = inputs.settings["seed"], inputs.settings["curves_per_user"]
        return cls(algorithm, source, protocol, inputs["panel"], seed, curves)


def checked_users(source: Source) -> list[User]:
    """Return the users of a source, as Python's own numbers or texts.

    Raise `ReviewLogError` if there are none, with every name that is of another type or occurs
    twice.
    """
    users: list[User] = []
    known: set[User] = set()
    problems = []
    for user in source.users():
        name = user.item() if isinstance(user, np.generic) else user
        if not isinstance(name, int | str) or isinstance(name, bool):
            problems.append(f"user {user!r} is {type(user).__name__}, expected a number or a text")
        elif name in known:
            problems.append(f"user {user!r} is named more than once")
        else:
            users.append(name)
            known.add(name)
    if not users and not problems:
        problems.append("no users")
    if problems:
        raise ReviewLogError(source.location, problems)
    return users


def learns_from_other_users(experiment: Experiment) -> bool:
    """Whether the algorithm is pretrained for each fold of users."""
    has_folds = isinstance(experiment.protocol, UserFolds)
    return has_folds and isinstance(experiment.algorithm, Pretrainable)


def with_user_folds(experiment: Experiment) -> Experiment:
    """Return an experiment whose algorithm has learned from the users of the other folds.

    That of another protocol, or of an algorithm that cannot be pretrained, is returned as it is.
    """
    algorithm, protocol, source = experiment.algorithm, experiment.protocol, experiment.source
    if not isinstance(protocol, UserFolds) or not isinstance(algorithm, Pretrainable):
        return experiment
    from srs_eval.algorithms.combined.cross_fitted import cross_fitted  # not for every run

    def read(users: Sequence[User]) -> Iterator[tuple[Reviews, IntArray]]:
        return _lessons(algorithm, source, protocol, users)

    fold_of = protocol.fold_of(checked_users(source))
    learned = cross_fitted(algorithm, fold_of, read, experiment.seed)
    return replace(experiment, algorithm=cast(Algorithm, learned))


def _lessons(
    algorithm: Algorithm, source: Source, protocol: EvaluationProtocol, users: Sequence[User]
) -> Iterator[tuple[Reviews, IntArray]]:
    """Read each log that can be scored, and return the rows to learn from: all candidates."""
    for user in users:
        try:
            task = protocol(source.read(user), same_day=algorithm.same_day)
        except (FitSkipped, ReviewLogError):
            continue
        last = task.folds[-1]
        yield task.reviews, np.concatenate([last.train, last.test])


def refuse_lookahead(algorithm: Algorithm, options: Any, timeout: float | None = None) -> None:
    """Raise `CheckFailed` if a class that is not of srs_eval plainly looks ahead.

    `options` are those the algorithm was built from, with the class of everything it is made of.
    An algorithm of srs_eval is not looked at, and the checks are not loaded for it.
    """
    if all(target.partition(".")[0] == "srs_eval" for target in targets(options)):
        return
    from srs_eval.checks.quick import check_quickly
    from srs_eval.checks.trial import CheckFailed

    try:
        with FitLimits(timeout).applied("trial", 0):
            check_quickly(algorithm)
    except FitTimeoutError:  # the run will say so of its own fits
        return
    except CheckFailed as failed:
        raise CheckFailed(
            f"{failed}\nA quick check with a small simulated log found this, and nothing was "
            "evaluated. srs_eval.check_algorithm has all checks; check_lookahead=false evaluates "
            "the algorithm all the same"
        ) from None

"""An experiment: exactly what can change a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srs_eval.errors import ReviewLogError
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Algorithm, EvaluationProtocol, Source, User

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

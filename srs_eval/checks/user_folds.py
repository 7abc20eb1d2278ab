"""A check that what is learned from some users does not depend on those it is scored on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from srs_eval.algorithms.combined.cross_fitted import cross_fitted
from srs_eval.checks.perturb import answered
from srs_eval.checks.toy_log import trial_task
from srs_eval.checks.trial import SEED, CheckFailed, Trial, raised
from srs_eval.errors import FitSkipped
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Pretrainable, Reviews, User

_USERS = 4


def check_user_folds(algorithm: Pretrainable, users: int = _USERS) -> None:
    """Check that an algorithm that learns from other users learns nothing of those it is scored on.

    It is pretrained for two folds of invented users, as with ``protocol.user_folds=2``. Then all
    answers of the users of one fold are replaced by their opposites and it is pretrained again:
    the predictions of these users, from their unchanged logs, may not move. They would if anything
    learned in the other fold were kept outside of what `pretrain` returns. Pretraining is done six
    times, so this check is no part of `check_algorithm`.

    Parameters
    ----------
    users : int
        How many users are invented; 4 at least.

    Raises
    ------
    CheckFailed
        If a prediction moves, or a user is refused as known.
    """
    fold_of: dict[User, int] = {user: user % 2 for user in range(users)}
    tasks = [trial_task(same_day=algorithm.same_day, seed=SEED + user) for user in range(users)]
    trials: dict[User, Trial] = {
        user: Trial(algorithm, task.folds[-1], replace(task.reviews, user=user))
        for user, task in enumerate(tasks)
    }
    logs = {user: trial.reviews for user, trial in trials.items()}
    for fold in (0, 1):
        scored = [user for user in trials if fold_of[user] == fold]
        opposite = {}
        for user in scored:
            log = logs[user]
            rows, rng = np.arange(len(log)), np.random.default_rng(len(log))
            opposite[user] = replace(answered(log, rows, ~log.recalled, rng), user=user)
        # Each is asked before the next is pretrained: what is kept elsewhere is overwritten.
        expected, found = (
            _predictions(_pretrained(algorithm, trials, taught, fold_of), trials)
            for taught in (logs, logs | opposite)
        )
        for user in scored:
            trials[user].expect_same(expected[user], found[user], _LEAKS)


def _pretrained(
    algorithm: Pretrainable,
    trials: Mapping[User, Trial],
    logs: Mapping[User, Reviews],
    fold_of: Mapping[User, int],
) -> Algorithm:
    """Pretrain for each fold on the logs of the users of the other."""

    def lessons(users: Sequence[User]) -> list[tuple[Reviews, IntArray]]:
        folds = {user: trials[user].fold for user in users}
        return [(logs[user], np.r_[folds[user].train, folds[user].test]) for user in users]

    return cast(Algorithm, cross_fitted(algorithm, fold_of, lessons, SEED))


def _predictions(pretrained: Algorithm, trials: Mapping[User, Trial]) -> dict[User, FloatArray]:
    """Fit and predict every user."""
    found = {}
    for user, trial in trials.items():
        try:
            found[user] = trial.predicted(replace(trial, algorithm=pretrained).fit())
        except FitSkipped as skipped:
            raise trial.failure(
                f"refuses a user of the fold that it is to score ({skipped}). "
                "What is learned for one fold is known in another"
            ) from skipped
        except CheckFailed:
            raise
        except Exception as error:  # a plug-in can raise anything
            raise trial.failure(f"raises {raised(error)}") from error
    return found


_LEAKS = (
    "moved when the answers of this user, and of others of the fold, were changed before "
    "pretraining on the users of the other fold. Keep what was learned in the algorithm that "
    "`pretrain` returns, not in the module, the class or a file"
)

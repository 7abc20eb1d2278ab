"""Power of the paired comparison of two models over users: how many users settle a difference."""

from __future__ import annotations

import math

from scipy.special import nctdtr, stdtrit

from srs_eval.stats.significance import ALPHA

_MOST = 10**9
_FAR = 1e6


def power_of(difference: float, sd: float, users: int, *, alpha: float = ALPHA) -> float:
    """Return the chance that a paired test finds a true difference, in its right direction.

    Parameters
    ----------
    difference : float
        True mean difference between two models' scores of a user.
    sd : float
        Standard deviation of that difference among users, above 0.
    users : int
        Users of the comparison.
    alpha : float
        Level of the two-sided test.

    Examples
    --------
    >>> round(power_of(0.001, 0.01, 1172), 2)
    0.8
    """
    if users < 2:
        return 0.0
    t = -float(stdtrit(users - 1, alpha / 2))
    shift = abs(difference) / sd * math.sqrt(users)
    # SciPy has no distribution that is shifted as far as that.
    return 1 - float(nctdtr(users - 1, shift, t)) if shift < _FAR else 1.0


def users_needed(difference: float, sd: float, *, power: float = 0.8) -> int | None:
    """Return the fewest users with the wanted power; None if a billion do not suffice.

    Examples
    --------
    >>> users_needed(0.001, 0.01)
    1172
    """
    few, many = 1, 2
    while power_of(difference, sd, many) < power:
        if many == _MOST:
            return None
        few, many = many, min(2 * many, _MOST)
    while many - few > 1:
        middle = (few + many) // 2
        is_enough = power_of(difference, sd, middle) >= power
        few, many = (few, middle) if is_enough else (middle, many)
    return many

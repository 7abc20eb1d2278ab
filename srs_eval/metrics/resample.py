"""Bootstrap over clusters: how often each is drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from heapq import nsmallest

import numpy as np

from srs_eval.nouns import FloatArray, User

RESAMPLES = 200
# More users than this are resampled in as many groups.
GROUPS = 10_000
FEWEST_CLUSTERS = 5
# Draws held at once: 10,000 users are resampled 100 times in a block.
BLOCK = 1_000_000


def group_of(user: User) -> int:
    """Return the group of a user, from 0 to `GROUPS` - 1, which depends on the name alone."""
    return int.from_bytes(_digest(user)[:8], "big") % GROUPS


def sample_of(users: Sequence[User], size: int) -> Sequence[User]:
    """Return the users with the smallest digests of their names, in their order."""
    if len(users) <= size:
        return users
    chosen = set(nsmallest(size, users, key=_digest))
    return [user for user in users if user in chosen]


def _digest(user: User) -> bytes:
    return hashlib.sha256(str(user).encode()).digest()


def cluster_counts(clusters: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """Yield blocks [b, clusters] of how often each cluster is drawn, always the same."""
    rng = np.random.default_rng(seed)
    size = max(1, BLOCK // clusters)
    for begin in range(0, resamples, size):
        rows = min(size, resamples - begin)
        draws = rng.integers(0, clusters, (rows, clusters))
        draws += np.arange(rows)[:, None] * clusters
        counts = np.bincount(draws.ravel(), minlength=rows * clusters)
        yield counts.reshape(rows, clusters).astype(np.float64)

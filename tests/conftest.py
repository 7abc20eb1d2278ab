"""What many tests are given."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from invented import Logs, invented_log

from srs_eval.nouns import Reviews, User

SHARED = Path(__file__).parents[1] / "../shared/data"


def _seed(user):
    return zlib.crc32(str(user).encode())


@pytest.fixture(scope="session")
def make_log() -> Callable[..., Reviews]:
    return invented_log


@pytest.fixture(scope="session")
def logs_of() -> Callable[..., Logs]:
    """Make a source of the given logs, or of an invented log for each given user."""

    def build(*users: User | Reviews) -> Logs:
        made = [
            user if isinstance(user, Reviews) else invented_log(seed=_seed(user), user=user)
            for user in users
        ]
        return Logs({log.user: log for log in made})

    return build


@pytest.fixture(scope="session")
def real_logs() -> Path:
    """Folder of real review logs beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("the real review logs are not beside this checkout")
    return SHARED.resolve()

"""Work that worker processes can import quickly."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Doubles:
    """Say each user's name twice."""

    def __call__(self, user, tick=lambda: None):
        tick()
        return (user, str(user) * 2, os.getpid())


@dataclass(frozen=True)
class Raises:
    """Fail for one user as only a fault of the program can."""

    user: object

    def __call__(self, user, tick=lambda: None):
        if user == self.user:
            raise LookupError(f"fault at {user}")
        return user


@dataclass(frozen=True)
class KillsItsWorker:
    """End the process that works on certain users, the way an out-of-memory killer does.

    `pardons` is a folder in which a user's death is noted: with it each dies once only.
    """

    users: tuple
    pardons: str = ""

    def __call__(self, user, tick=lambda: None):
        if user in self.users and not self._pardoned(user):
            os.kill(os.getpid(), signal.SIGKILL)
        return user

    def _pardoned(self, user):
        note = Path(self.pardons, str(user))
        if not self.pardons or note.exists():
            return bool(self.pardons)
        note.touch()
        return False

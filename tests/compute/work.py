"""Work that worker processes can import quickly."""

import errno
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Doubles:
    """Return each user's name twice."""

    def __call__(self, user, tick=lambda: None):
        tick()
        return (user, str(user) * 2, os.getpid())


@dataclass(frozen=True)
class ReadsEnvironment:
    """Return a variable of the environment it finds."""

    name: str

    def __call__(self, user, tick=lambda: None):
        return os.environ.get(self.name)


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


@dataclass(frozen=True)
class FullDisk(KillsItsWorker):
    """Fail for certain users as a disk that is full does."""

    def __call__(self, user, tick=lambda: None):
        if user in self.users and not self._pardoned(user):
            raise OSError(errno.ENOSPC, "No space left on device", "part")
        return user


@dataclass(frozen=True)
class DiesWhileSending:
    """Return far more than a pipe holds, and be killed a moment later."""

    user: object

    def __call__(self, user, tick=lambda: None):
        if user != self.user:
            return b""
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return bytes(10_000_000)


class Demanding(Exception):
    def __init__(self, code, why):
        super().__init__(f"{code}: {why}")


@dataclass(frozen=True)
class RaisesDemanding:
    """Fail by an exception that cannot be sent to another process."""

    def __call__(self, user, tick=lambda: None):
        raise Demanding(7, "seven")


def _unreadable():
    raise RuntimeError("cannot be read here")


class CannotBeRead:
    """Work that no worker process can read, as if a package were missing there."""

    def __reduce__(self):
        return _unreadable, ()

    def __call__(self, user, tick=lambda: None):
        return user


@dataclass(frozen=True)
class ReturnsUnsendable:
    """Return what cannot be sent to another process."""

    def __call__(self, user, tick=lambda: None):
        return lambda: user


@dataclass(frozen=True)
class HangsAt:
    """Run on for ever at one user."""

    user: object
    patience: float

    def __call__(self, user, tick=lambda: None):
        if user == self.user:
            time.sleep(600)
        return user

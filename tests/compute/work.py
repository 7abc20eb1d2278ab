"""Work that worker processes can import quickly: functions of an item and a tick."""

import errno
import os
import signal
import time
from functools import partial
from pathlib import Path


def doubles(user, tick=lambda: None):
    """Return each user's name twice."""
    tick()
    return user, str(user) * 2, os.getpid()


def raises_at(bad, user, tick=None):
    """Fail for one user as only a fault of the program can."""
    if user == bad:
        raise LookupError(f"fault at {user}")
    return user


def kills_its_worker(users, user, tick=None, pardons=""):
    """End the process that works on certain users, the way an out-of-memory killer does.

    Each ends it once only where there is a folder of notes.
    """
    note = Path(pardons, str(user))
    if user in users and not (pardons and note.exists()):
        if pardons:
            note.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return user


def full_disk(user, tick=None):
    """Fail as a disk that is full does."""
    raise OSError(errno.ENOSPC, "No space left on device", "part")


def shows_steps(user, tick):
    """Show steps to the parent, which may end the work."""
    for step in ((), *((n, (user, os.getpid())) for n in (1, 2, 3)), ()):
        tick(*step)
    return user, os.getpid()


class Demanding(Exception):
    def __init__(self, code, why):
        super().__init__(f"{code}: {why}")


def raises_demanding(user, tick=None):
    """Fail by an exception that cannot be sent to another process."""
    raise Demanding(7, "seven")


def returns_unsendable(user, tick=None):
    """Return what cannot be sent to another process."""
    return lambda: user


def _unreadable():
    raise RuntimeError("cannot be read here")


class CannotBeRead:
    """Work that no worker process can read, as if a package were missing there."""

    def __reduce__(self):
        return _unreadable, ()


def _hangs(bad, user, tick=None):
    if user == bad:
        time.sleep(600)
    return user


def hangs_at(user, patience):
    """Run on for ever at one user."""
    work = partial(_hangs, user)
    work.patience = patience
    return work

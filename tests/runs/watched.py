"""An algorithm that notes each fit, and fails for chosen users in chosen ways.

The environment says where fits are noted, how long they take, and who fails: settings and code
are the same whatever happens.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srs_eval import Algorithm

_A_LONG_TIME = 120
_remembered = []


def fail(error=ValueError):
    raise error("no fit for this user")


def wait():
    """Wait for a file."""
    while not Path("go").exists():
        time.sleep(0.02)


def devour():
    """Take memory until there is no more of a limit of 300 MB."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + 300_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        taken = [bytearray(10_000_000) for _ in range(1000)]
        assert not taken
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def hold():
    """Wait in compiled code that does not release the interpreter, nor returns for a signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    ctypes.PyDLL(None).sleep(_A_LONG_TIME)


WAYS = {
    **{"fail": fail, "wait": wait, "devour": devour, "hold": hold},
    "interrupt": lambda: fail(KeyboardInterrupt),
    "leave": lambda: sys.exit(3),
    "hang": lambda: time.sleep(_A_LONG_TIME),
    "end": lambda: os._exit(7),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


@dataclass(frozen=True)
class Share:
    """Predicts a share of recalls."""

    parameters: tuple

    def predict(self, reviews, rows):
        return np.full(len(rows), self.parameters[0])


@dataclass(frozen=True)
class Watched(Algorithm):
    """The share of recalls, and less by some factor."""

    factor: float = 1.0

    def fit(self, reviews, rows, rng):
        user = str(reviews.user)
        with Path(os.environ["FITS"]).open("a") as file:
            file.write(f"{self.factor} {user} {os.getpid()} {time.time()}\n")
        time.sleep(float(os.environ["SECONDS"]))
        ways = json.loads(os.environ["WAYS"])
        way = ways.get(user, ways.get("all", ""))
        WAYS.get(way, int)()
        _remembered.append(user)
        before = len(rows) + (len(_remembered) if way == "remember" else 0)
        recalled = np.asarray(reviews.rating)[rows] > 1
        return Share(((recalled.sum() + 1) * self.factor / (before + 2),))

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
from collections import Counter
from dataclasses import dataclass

import numpy as np

from srs_eval import Algorithm

A_LONG_TIME = 120
_fits, _remembered = Counter(), []


def fail(error=ValueError):
    raise error("no fit for this user")


def fail_once():
    if _fits.total() == 2:
        fail()


def wait():
    """Wait for a file."""
    while not os.path.exists("go"):  # noqa: PTH110
        time.sleep(0.02)


def devour():
    """Take memory until there is no more of a limit of 300 MB."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(open("/proc/self/statm").read().split()[0])  # noqa: PTH123, SIM115
    most = pages * resource.getpagesize() + 300_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        taken = [bytearray(10_000_000) for _ in range(1000)]
        assert not taken
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


WAYS = {
    **{"fail": fail, "fail_once": fail_once, "wait": wait, "devour": devour},
    "interrupt": lambda: fail(KeyboardInterrupt),
    "leave": lambda: sys.exit(3),
    "close": lambda: fail(GeneratorExit),
    "hang": lambda: time.sleep(A_LONG_TIME),
    # in compiled code that does not release the interpreter
    "hold": lambda: ctypes.PyDLL(None).sleep(A_LONG_TIME),
    "end": lambda: os._exit(7),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


class Share:
    """Predicts a share of recalls, or something that is no prediction."""

    def __init__(self, share, shape):
        self.parameters = (share,)
        self.shape = shape

    def predict(self, reviews, rows):
        if self.shape == "short":
            return np.full(len(rows) - 1, 0.5)
        return np.full(len(rows), np.nan if self.shape == "nan" else self.parameters[0])


@dataclass(frozen=True)
class Watched(Algorithm):
    """The share of recalls, and less by some factor."""

    factor: float = 1.0

    def fit(self, reviews, rows, rng):
        user = str(reviews.user)
        _fits.update({user: 1})
        _fits.update({other: -_fits[other] for other in [*_fits] if other != user})
        with open(os.environ["FITS"], "a") as file:  # noqa: PTH123
            file.write(f"{self.factor} {user} {os.getpid()} {time.time()}\n")
        time.sleep(float(os.environ.get("SECONDS", "0")))
        ways = json.loads(os.environ.get("WAYS", "{}"))
        way = ways.get(user, ways.get("all", ""))
        WAYS.get(way, int)()
        _remembered.append(user)
        recalled = np.asarray(reviews.rating)[rows] > 1
        rows_before = len(rows) + (len(_remembered) if way == "remember" else 0)
        return Share((recalled.sum() + 1) * self.factor / (rows_before + 2), way)

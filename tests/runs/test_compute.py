"""Users in worker processes: none is lost with another's, and none is left behind."""

import ctypes
import math
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from srs_eval.runs.compute import Lost, Processes, Serial

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")


def results(compute, work, items, tick=lambda *_: None, patience=math.inf):
    return list(compute.map(work, items, tick, patience))


def doubled(item, tick, seconds=0.0):
    time.sleep(seconds)
    tick()
    return 2 * item


def kills(dying, item, tick, seconds=0.0):
    time.sleep(seconds)
    if item in dying:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def hangs(item, tick):
    if item == 2:
        ctypes.PyDLL(None).sleep(600)  # holds the interpreter
    return item


def fails(item, tick):
    raise LookupError(f"fault at {item}")


class Unreadable:
    """Work that no worker can read, as if a package were missing there."""

    def __reduce__(self):
        return _unreadable, ()


def _unreadable():
    raise RuntimeError("cannot be read here")


@pytest.mark.parametrize("compute", [Serial(), Processes(1), Processes(2)])
def test_results_are_those_of_one_process_and_ticks_arrive(compute):
    ticks = []
    items = range(25)
    assert sorted(results(compute, doubled, items, lambda *_: ticks.append(1))) == [
        2 * item for item in items
    ]
    assert len(ticks) <= 25
    assert len(ticks) >= 20
    assert results(compute, doubled, []) == []


@pytest.mark.parametrize("dying", [(3,), (0, 1), (7,)])
def test_a_killed_worker_costs_its_user_and_little_time(dying):
    began = time.monotonic()
    done = results(Processes(2), partial(kills, dying, seconds=0.05), range(80))
    dead = [each for each in done if isinstance(each, Lost)]
    assert sorted(item for item, _ in dead) == sorted(dying)
    assert sorted(each for each in done if each not in dead) == sorted({*range(80)} - {*dying})
    assert time.monotonic() - began < 40


def test_a_hang_that_holds_the_interpreter_is_ended():
    results(Processes(1), doubled, [1])  # afterwards workers begin soon
    done = results(Processes(2), hangs, range(5), patience=6.0)
    (dead,) = [each for each in done if isinstance(each, Lost)]
    assert (dead[0], "compiled code" in dead.reason) == (2, True)
    assert sorted(each for each in done if each != dead) == [0, 1, 3, 4]


def test_faults_of_the_program_are_raised():
    for compute in (Serial(), Processes(1)):
        with pytest.raises(LookupError, match="fault at 1"):
            results(compute, fails, [1])


def test_workers_that_do_not_start_end_the_run():
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="cannot be read here"):
        results(Processes(1), Unreadable(), range(50))
    assert time.monotonic() - began < 60


PARENT = """
import os, sys, time
from srs_eval.runs.compute import Processes

class Mine:
    def __call__(self, item, tick):
        print(os.getpid(), flush=True)
        time.sleep(600)

if __name__ == "__main__":
    list(Processes(2).map(Mine(), range(4), print, float("inf")))
"""


@LINUX
@pytest.mark.parametrize("of_group", [False, True])
def test_no_worker_outlives_its_parent(tmp_path, of_group):
    script = tmp_path / "parent.py"
    script.write_text(PARENT, encoding="utf-8")
    begun = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, script], stderr=subprocess.DEVNULL, **begun) as parent:
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        if of_group:
            os.killpg(parent.pid, signal.SIGINT)
        else:
            parent.kill()
        began = time.monotonic()
        while any(Path(f"/proc/{worker}").exists() for worker in workers):
            assert time.monotonic() - began < 5
            time.sleep(0.05)

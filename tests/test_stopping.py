"""Ctrl-C and SIGTERM: heard wherever they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

BEGIN = """
import os, signal, sys, time, weakref
from srs_eval.compute import stopping
def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    for _ in range(10): pass
def go_on():
    for _ in range(1000):
        time.sleep(0.02)
    return 0
"""
FINALISER = """
class Dropping:
    def __del__(self):
        interrupt()
def command():
    Dropping()
    return go_on()
"""
WEAK_REFERENCE = """
class Thing: pass
def command():
    thing = Thing()
    seen = weakref.ref(thing, lambda _: interrupt(signal.SIGTERM))
    del thing
    return go_on()
"""
TWICE = """
class Dropping:
    def __del__(self):
        interrupt()
def command():
    Dropping()
    try:
        go_on()
    except KeyboardInterrupt:
        Dropping()  # at the same time: the same request
        print("cleaned up")
        raise
"""
BARE = """
def command():
    try:
        interrupt()
        time.sleep(1)
    except:
        pass
    stopping.check()
    return 0
"""
STUBBORN = """
def command():
    try:
        print("ready", flush=True)
        go_on()
    finally:
        print("cleaning", flush=True)
        go_on()
"""
LATE = """
import atexit
atexit.register(interrupt, signal.SIGTERM)
def command():
    return 7
"""
END = "\nstopping.run(command)\n"


def run(program: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", BEGIN + program + END]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("program", "status", "told"),
    [
        (FINALISER, 130, "srs_eval: interrupted\n"),
        (WEAK_REFERENCE, 143, "srs_eval: interrupted\n"),
        (TWICE, 130, "srs_eval: interrupted\n"),
        (BARE, 130, "srs_eval: interrupted\n"),
        (LATE, 7, ""),
    ],
    ids=["in a finaliser", "in a weak reference", "twice at once", "caught", "at exit"],
)
def test_a_signal_is_heard(program: str, status: int, told: str) -> None:
    done = run(program)
    assert (done.returncode, done.stderr) == (status, told)
    assert ("cleaned up" in done.stdout) == (program == TWICE)


@pytest.mark.slow
def test_a_second_signal_ends_at_once() -> None:
    words = [sys.executable, "-c", BEGIN + STUBBORN + END]
    with subprocess.Popen(words, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "cleaning\n"
        time.sleep(0.6)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert "stopped at once" in process.stderr.read()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_signal_during_the_imports_is_heard(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    stub = f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(60)\n"
    (tmp_path / "hydra.py").write_text(stub, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "srs_eval", "algo=avg"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, "srs_eval: interrupted\n")

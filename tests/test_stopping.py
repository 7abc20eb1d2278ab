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
import atexit, os, signal, time, weakref
from srs_eval.compute import stopping
def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    for _ in range(10): pass
def go_on():
    for _ in range(1000):
        time.sleep(0.02)
    return 0
class Dropping:
    def __del__(self):
        interrupt()
def command():
"""
END = "\nstopping.run(command)\n"
# What a command does, its exit status, and whether it is said to be interrupted.
PROGRAMS = {
    "in a library that is then astray": (
        "try: interrupt()\n    except BaseException: pass\n    return None.missing",
        130,
    ),
    "in a finaliser": ("Dropping(); return go_on()", 130),
    "in a weak reference": (
        "thing = type('Thing', (), {})()\n"
        "    seen = weakref.ref(thing, lambda _: interrupt(signal.SIGTERM))\n"
        "    del thing; return go_on()",
        143,
    ),
    "twice at once": (
        "Dropping()\n    try: go_on()\n    except KeyboardInterrupt:\n"
        "        Dropping(); raise",  # at the same time: the same request
        130,
    ),
    "caught": (
        "try: interrupt(); time.sleep(1)\n    except: pass\n    stopping.check(); return 0",
        130,
    ),
    "at exit": ("atexit.register(interrupt, signal.SIGTERM); return 7", 7),
}
STUBBORN = """
    try:
        print("ready", flush=True)
        go_on()
    finally:
        print("cleaning", flush=True)
        go_on()
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_signal_is_heard(program: str) -> None:
    body, status = PROGRAMS[program]
    told = "" if status == 7 else "srs_eval: interrupted\n"
    assert ended(["-c", f"{BEGIN}    {body}{END}"]) == (status, told)


def ended(words: list[str], folder: Path | None = None) -> tuple[int, str]:
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stderr


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
    assert ended(["-m", "srs_eval", "algo=avg"], tmp_path) == (status, "srs_eval: interrupted\n")

"""Users in worker processes, or on Ray: none is lost with another's, and none is left behind."""

import ctypes
import math
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import QUIET, SMALL, summary_of

from srs_eval.errors import SrsEvalError
from srs_eval.runs.compute import Lost, Processes, Ray, Serial, _result
from srs_eval.runs.config import code_hash


def on_ray(*cases):
    """Mark cases that start a cluster."""
    marks = pytest.mark.nightly, pytest.mark.filterwarnings("ignore")
    return [pytest.param(*case, marks=marks) for case in cases]


@pytest.fixture
def results(monkeypatch):
    def compute(compute, work, items, tick=lambda *_: None, patience=math.inf):
        if isinstance(compute, Ray):
            monkeypatch.setenv("RAY_AUTH_MODE", "token")
            ray = pytest.importorskip("ray")
            ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        return list(compute.map(work, items, tick, patience))

    return compute


def doubled(item, tick):
    tick()
    return 2 * item


def kills(dying, item, tick):
    time.sleep(0.05)
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
def test_results_are_those_of_one_process_and_ticks_arrive(results, compute):
    ticks = []
    done = results(compute, doubled, range(25), lambda *_: ticks.append(1))
    assert sorted(done) == [2 * item for item in range(25)]
    assert 20 <= len(ticks) <= 25
    assert results(compute, doubled, []) == []


@pytest.mark.parametrize(
    ("compute", "dying"),
    [(Processes(2), (3,)), (Processes(2), (0, 1, 7)), *on_ray((Ray(retries=0), (3,)))],
)
def test_a_killed_worker_costs_its_user_and_little_time(results, compute, dying):
    began = time.monotonic()
    done = results(compute, partial(kills, dying), range(40))
    dead = [each for each in done if isinstance(each, Lost)]
    assert sorted(item for item, _ in dead) == sorted(dying)
    assert sorted(each for each in done if each not in dead) == sorted({*range(40)} - {*dying})
    assert time.monotonic() - began < 40 or isinstance(compute, Ray)


@pytest.mark.parametrize(
    ("compute", "reason"),
    [(Processes(2), "compiled code"), *on_ray((Ray(retries=0), "its worker process died"))],
)
def test_a_hang_that_holds_the_interpreter_is_ended(results, compute, reason):
    results(Processes(1), doubled, [1])  # afterwards workers begin soon
    done = results(compute, hangs, range(5), patience=6.0)
    (dead,) = [each for each in done if isinstance(each, Lost)]
    assert (dead[0], reason in dead.reason) == (2, True)
    assert sorted(each for each in done if each != dead) == [0, 1, 3, 4]


@pytest.mark.parametrize("compute", [Serial(), Processes(1), *on_ray((Ray(),))])
def test_faults_of_the_program_are_raised(results, compute):
    with pytest.raises(LookupError, match="fault at 1"):
        results(compute, fails, [1])


def test_workers_that_do_not_start_end_the_run(results):
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="cannot be read here"):
        results(Processes(1), Unreadable(), range(50))
    assert time.monotonic() - began < 60


PARENT = """
import os, time
from srs_eval.runs.compute import Processes

class Mine:
    def __call__(self, item, tick):
        print(os.getpid(), flush=True)
        time.sleep(600)

if __name__ == "__main__":
    list(Processes(2).map(Mine(), range(4), print, float("inf")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
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


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_run_on_a_cluster_has_the_files_of_one_process(here, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    pytest.importorskip("ray")
    words = ("algo=fsrs6", *SMALL, *QUIET, "panel=quick", "data.max_reviews=600", "data.users=5")
    for folder, compute in (("one", ()), ("out", ("compute=ray",))):
        done = here(*words, *compute, f"hydra.run.dir={folder}")
        assert done.status == 0, done.err
    for name in ("scores.parquet", "predictions.parquet"):
        one, other = (here.folder / folder / name for folder in ("one", "out"))
        assert one.read_bytes() == other.read_bytes(), name
    one, other = (summary_of(here.folder / folder)["metrics"] for folder in ("one", "out"))
    assert one == other


def test_a_machine_with_other_code_is_refused():
    assert _result(1, doubled, "nowhere", code_hash(), math.inf) == 2
    with pytest.raises(SrsEvalError, match="other code"):
        _result(1, doubled, "nowhere", "other", math.inf)


def test_a_cluster_of_this_machine_asks_for_a_token(monkeypatch):
    begun = []

    def init(address, **options):
        begun.append((address, os.environ["RAY_AUTH_MODE"], options["_node_ip_address"]))
        raise RuntimeError("The node timed out\nduring startup")

    ray = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(SrsEvalError, match=r"The node timed out$"):
        next(Ray().map(doubled, [1], print, math.inf))
    assert begun == [("local", "token", "127.0.0.1")]

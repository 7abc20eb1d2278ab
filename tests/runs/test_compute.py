"""Users in worker processes, or on Ray: none is lost with another's, and none is left behind."""

import ctypes
import math
import multiprocessing
import os
import signal
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest
from commands import QUIET, SMALL, process, summary_of

from srs_eval.errors import SrsEvalError
from srs_eval.runs.compute import Lost, Processes, Ray, Serial, _result, end_with_launcher
from srs_eval.runs.config import code_hash


@pytest.fixture
def ray(monkeypatch):
    """Let a cluster of this machine read the functions of this file."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    ray = pytest.importorskip("ray")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def results(compute, work, items, patience=math.inf):
    return list(compute.map(work, items, print, patience))


def doubled(item, tick):
    return 2 * item


def dies(dying, hanging, item, tick):
    time.sleep(0.02)
    if item in dying:
        os.kill(os.getpid(), signal.SIGKILL)
    if item in hanging:
        ctypes.PyDLL(None).sleep(600)  # holds the interpreter
    return item


def fails(item, tick):
    raise LookupError(f"fault at {item}")


class Unreadable:
    """Work that no worker can read, as if a package were missing there."""

    def __reduce__(self):
        return fails, (1, None)


def test_killed_workers_cost_their_users_and_little_time():
    began = time.monotonic()
    done = results(Processes(2), partial(dies, (0, 1, 7), ()), range(40))
    dead = [each.item for each in done if isinstance(each, Lost)]
    assert sorted(dead) == [0, 1, 7]
    assert sorted(each for each in done if not isinstance(each, Lost)) == [
        *range(2, 7),
        *range(8, 40),
    ]
    assert time.monotonic() - began < 40


def test_what_workers_need_is_loaded_also_where_the_command_is_interrupted(tmp_path):
    program = """if True:
        import os, signal
        from srs_eval.runs.compute import begin_loading
        signal.signal(signal.SIGINT, lambda *_: None)
        context = begin_loading()
        os.killpg(0, signal.SIGINT)
        context.Process().start()
    """
    done = process([sys.executable, "-c", program], start_new_session=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("ray")
def test_killed_and_stuck_workers_of_a_cluster_cost_their_users():
    done = results(Ray(retries=0), partial(dies, (3,), (2,)), range(10), patience=6.0)
    dead = [each for each in done if isinstance(each, Lost)]
    assert sorted(each.item for each in dead) == [2, 3]
    assert all("its worker process died" in each.reason for each in dead)
    assert sorted(each for each in done if not isinstance(each, Lost)) == [0, 1, *range(4, 10)]
    with pytest.raises(LookupError, match="fault at 1"):
        results(Ray(), fails, [1])


@pytest.mark.parametrize(
    ("compute", "work"),
    [(Serial(), fails), (Processes(1), fails), (Processes(1), Unreadable())],
)
def test_faults_of_the_program_are_raised(compute, work):
    with pytest.raises(LookupError, match="fault at 1"):
        results(compute, work, [1])


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("ray")
def test_a_run_on_a_cluster_has_the_files_of_one_process(here):
    words = ("algo=fsrs6", *SMALL, *QUIET, "panel=quick", "data.max_reviews=600", "data.users=5")
    for folder, compute in (("one", ()), ("out", ("compute=ray",))):
        done = here(*words, *compute, f"hydra.run.dir={folder}")
        assert done.status == 0, done.err
    one, other = (here.folder / folder for folder in ("one", "out"))
    for name in ("scores.parquet", "predictions.parquet"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert summary_of(one)["metrics"] == summary_of(other)["metrics"]


def begin_as_worker_of_joblib(launcher):
    multiprocessing.process._parent_process = SimpleNamespace(pid=launcher)
    end_with_launcher()
    time.sleep(100)


@pytest.mark.skipif(sys.platform == "win32", reason="limits and /proc of Linux")
def test_a_worker_that_begins_when_its_launcher_is_gone_ends():
    begun = multiprocessing.get_context("forkserver").Process
    launcher = begun()
    launcher.start()
    launcher.join()
    worker = begun(target=begin_as_worker_of_joblib, args=(launcher.pid,))
    worker.start()
    worker.join(40)
    assert worker.exitcode == 1


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

"""One process, several, or a cluster: the same numbers, and no user lost with another's worker."""

from __future__ import annotations

import errno
import os
import pickle
import platform
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import work
from cases import making
from commands import Here
from object_store import object_store

from srs_eval.compute import processes
from srs_eval.compute.processes import Processes
from srs_eval.compute.ray import Ray, _code, _evaluate, _require_token
from srs_eval.compute.serial import Serial
from srs_eval.errors import Pruned, SrsEvalError
from srs_eval.place import Place
from srs_eval.results.files import CURVES, PREDICTIONS, SCORES

DESCRIPTORS = Path("/proc/self/fd")


def noted(user, reason):
    return user, reason


def results(compute, work, users, tick=lambda: None):
    """Results as they arrive, and a note for each user whose worker died."""
    return list(compute.map(work, users, on_crash=noted, tick=tick))


@pytest.mark.parametrize("compute", [Serial(), Processes(workers=1)])
def test_one_process_works_in_order_and_ticks(compute):
    ticks = []
    done = results(compute, work.doubles, ["b", 1, "a"], lambda: ticks.append(1))
    assert [each[:2] for each in done] == [("b", "bb"), (1, "11"), ("a", "aa")]
    assert {each[2] == os.getpid() for each in done} == {compute == Serial()}
    assert len(ticks) == 3
    assert results(compute, work.doubles, []) == []
    arriving = compute.map(work.doubles, [1, 2, 3], on_crash=noted, tick=list)
    assert next(arriving)[0] == 1
    arriving.close()  # results need not be fetched to the end
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])  # blocked to start


def test_a_killed_worker_costs_its_own_user_only_and_none_if_it_died_by_chance(tmp_path):
    users = [*range(6), "ann"]
    found = results(Processes(workers=2), partial(work.kills_its_worker, (3, "ann")), users)
    dead = [result for result in found if isinstance(result, tuple)]
    assert dict(dead) == dict.fromkeys((3, "ann"), processes._DIED)
    assert sorted(set(found) - set(dead)) == [0, 1, 2, 4, 5]
    by_chance = partial(work.kills_its_worker, (4, 5), pardons=str(tmp_path))
    assert sorted(results(Processes(workers=1), by_chance, users[:-1])) == users[:-1]


@pytest.mark.slow
@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="limits and /proc of Linux")
def test_workers_that_died_or_were_ended_leave_no_descriptors():
    def descriptors():
        return len(list(DESCRIPTORS.iterdir()))

    list(
        results(Processes(workers=1), work.doubles, [0])
    )  # what starts with the first worker stays
    open_before, seen = descriptors(), []
    killing, users = partial(work.kills_its_worker, range(12)), list(range(13))
    for _ in Processes(workers=1).map(killing, users, on_crash=noted, tick=list):
        seen.append(descriptors())
    assert max(seen) - open_before <= 6
    assert descriptors() <= open_before


def test_a_run_whose_workers_do_not_start_ends_early():
    began = time.monotonic()
    with pytest.raises(SrsEvalError, match="first 3 worker processes died"):
        results(Processes(workers=1), work.CannotBeRead(), list(range(50)))
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("failing", "error", "said"),
    [
        (partial(work.raises_at, 2), LookupError, "fault at 2"),
        (work.raises_demanding, RuntimeError, "Demanding: 7: seven"),
        (work.returns_unsendable, (AttributeError, TypeError, pickle.PicklingError), "pickle"),
    ],
)
def test_a_fault_of_the_program_is_not_hidden(failing, error, said):
    with pytest.raises(error, match=said) as raised:
        results(Processes(workers=1), failing, [1, 2, 3])
    if error is LookupError:
        assert "work.py" in raised.value.__notes__[-1]
        with pytest.raises(error, match=said):
            results(Serial(), failing, [1, 2, 3])


@pytest.mark.slow
def test_a_worker_without_progress_is_ended_and_its_item_reported_once():
    found = results(Processes(workers=2), work.hangs_at("b", patience=15), ["a", "b", "c"])
    assert {"a", "c"} < set(found)
    (crash,) = [each for each in found if isinstance(each, tuple)]
    assert crash[0] == "b"


@pytest.mark.slow
@pytest.mark.parametrize("most", [3, 1])
def test_steps_in_a_worker_are_shown_where_the_search_is_which_may_end_it(most):
    seen = []

    def tick(*step):
        seen.append(step)
        if step and step[0] > most:
            raise Pruned("not worth going on with")

    users = ["a", "b", "c"][:most]
    if most == 1:
        with pytest.raises(Pruned):
            results(Processes(workers=most), work.shows_steps, users, tick)
        assert [step for step, _ in filter(None, seen)] == [1, 2]
        return
    process = dict(results(Processes(workers=most), work.shows_steps, users, tick))
    assert sorted(process) == users
    assert os.getpid() not in process.values()
    for user, pid in process.items():
        assert [step for step, *what in filter(None, seen) if what == [(user, pid)]] == [1, 2, 3]
    assert seen.count(()) == 6


USERS = 20
RUN = (
    *("algo=fsrs6", f"data.users={USERS}", "data.size_scale=0.02", "panel=quick"),
    *("data.max_reviews=600", "figures=false", "tracking=none"),
)


@contextmanager
def machines():
    """Start a head and a machine, which inherit the environment."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    for module in (work, sys.modules[__name__]):
        ray.cloudpickle.register_pickle_by_value(module)
    small = {"object_store_memory": 100_000_000, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    made.small = small
    made.add_node(num_cpus=1, **small)
    yield made
    made.shutdown()


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_driver_and_a_machine_are_lost_another_joins_and_the_files_are_those_of_one_process(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert Here(tmp_path, capsys)(*RUN, "hydra.run.dir=one").status == 0
    with object_store(monkeypatch, "bucket") as store, machines() as cluster:
        store.failing = lambda number: "" if number % 10 else "503 Slow Down"
        _lose_a_driver_and_a_machine(cluster)
    for name in (PREDICTIONS, CURVES, SCORES):
        one, other = (tmp_path / folder / name for folder in ("one", "out"))
        assert one.read_bytes() == other.read_bytes(), name


def _lose_a_driver_and_a_machine(cluster):
    """Run into `out`, in the working directory, by two drivers and on three machines."""
    lost, _ = (cluster.add_node(num_cpus=1, **cluster.small) for _ in range(2))
    words = [*RUN, "hydra.run.dir=out", "parts=s3://bucket/run", "compute=ray", "compute.chunk=1"]
    words.append(f"compute.address={cluster.address}")
    parts = Place.of("s3://bucket/run/users")

    def start(*more):
        command = [sys.executable, "-m", "srs_eval", *words, *more]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def wait_for_parts(driver, users):
        while (there := len(parts.files())) < users:
            assert driver.poll() is None
            time.sleep(0.1)
        return there

    with start() as killed:
        before = wait_for_parts(killed, 2)
        killed.kill()
    with start("resume=true") as driver:
        there = wait_for_parts(driver, before + 2)
        cluster.remove_node(lost, allow_graceful=False)
        cluster.add_node(num_cpus=1, **cluster.small)
        out, _ = driver.communicate()
    assert driver.returncode == 0
    assert there < USERS  # in mid-run
    (done_before,) = re.findall(f"(\\d+) of {USERS} users were done before", out)
    assert before <= int(done_before) < there
    assert Place.of("s3://bucket/run").names() == []


def test_work_is_done_in_the_folder_by_the_same_code_and_errors_name_the_machine(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert _evaluate(work.doubles, 1, str(tmp_path / "there"), _code())[:2] == (1, "11")
    assert Path.cwd() == tmp_path / "there"
    with pytest.raises(OSError, match=platform.node()) as full:
        _evaluate(work.full_disk, 2, "nowhere", _code())
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, "part")
    with pytest.raises(SrsEvalError, match=platform.node()):
        _evaluate(work.doubles, 1, str(tmp_path), "other code")


def test_options_that_cannot_be_are_refused(transcript):
    kinds = {each.__name__: each for each in (Processes, Ray, Serial)}
    transcript("compute_options", making(kinds))


@pytest.mark.parametrize(
    ("address", "asked", "named"),
    [
        (None, ("local", "token"), "on this machine: The node timed out"),
        ("auto", ("auto", "disabled"), "compute.address=auto: The node timed out"),
    ],
)
def test_a_cluster_that_does_not_start_is_told_in_a_line(address, asked, named, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    required = []
    begun = []
    failure = Exception("The node timed out\nduring startup")  # as Ray raises it

    def init(address, **options):
        begun.append((address, os.environ.get("RAY_AUTH_MODE", "")))
        raise failure

    ray = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr("srs_eval.compute.ray._require_token", lambda: required.append("token"))
    with pytest.raises(SrsEvalError, match=named) as raised:
        list(Ray(address).map(work.doubles, [1], on_crash=noted, tick=time.time))
    assert "during" not in str(raised.value)
    assert begun == [asked]
    assert required == ([] if address else ["token"])


@pytest.mark.parametrize(("mode", "is_refused"), [("token", False), ("disabled", True)])
def test_a_cluster_of_this_process_asks_for_a_token_or_is_not_started(
    monkeypatch, mode, *, is_refused
):
    """Ray listens on every interface; what it asks for is settled once it is loaded."""
    initialized = []
    raylet = SimpleNamespace(
        AuthenticationMode=SimpleNamespace(TOKEN="token"),
        get_authentication_mode=lambda: mode if initialized or mode == "token" else "none",
        Config=SimpleNamespace(initialize=initialized.append),
    )
    monkeypatch.setitem(sys.modules, "ray._raylet", raylet)
    with pytest.raises(SrsEvalError) if is_refused else nullcontext():
        _require_token()
    assert initialized == ([""] if is_refused else [])

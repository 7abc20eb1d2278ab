"""A simulated Ray cluster: machines are lost and join, and each item comes back once."""

from __future__ import annotations

import errno
import os
import platform
import re
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import work
from commands import Here
from object_store import object_store

from srs_eval.algorithms.baselines import Constant
from srs_eval.compute.processes import Processes
from srs_eval.compute.ray import Ray, _code, _evaluate, _require_token
from srs_eval.compute.serial import Serial
from srs_eval.cpu import VARIABLE
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.evaluation.limits import FitLimits
from srs_eval.metrics.panel import full_panel
from srs_eval.place import Place
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.files import CURVES, PREDICTIONS, SCORES
from srs_eval.run.evaluate import evaluate
from srs_eval.run.experiment import Experiment

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


@dataclass(frozen=True)
class SleepsAt(Constant):
    """Takes a minute to fit some users."""

    users: tuple[int, ...] = ()

    def fit(self, reviews, rows, rng):
        if reviews.user in self.users:
            time.sleep(60)
        return super().fit(reviews, rows, rng)


def of(user, reason):
    return user, reason


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_items_that_end_their_process_hang_or_find_a_full_disk_cost_no_other(tmp_path, monkeypatch):
    import ray

    with machines() as cluster:

        def found(work, items, retries=1):
            compute = Ray(cluster.address, retries=retries)
            return list(compute.map(work, items, on_crash=of, tick=time.time))

        dying = found(partial(work.kills_its_worker, (3,)), range(6))
        assert [each[0] for each in dying if isinstance(each, tuple)] == [3]
        assert sorted(each for each in dying if isinstance(each, int)) == [0, 1, 2, 4, 5]
        hung = found(work.hangs_at("b", patience=5), ["a", "b"], retries=0)
        assert sorted(each[0] for each in hung) == ["a", "b"]
        monkeypatch.setattr("srs_eval.compute.ray.common_level", lambda: "x86-64-v3")
        assert found(work.reads_environment, [VARIABLE] * 2) == ["x86-64-v3"] * 2
        full_once = partial(work.full_disk, (2,), pardons=str(tmp_path))
        assert sorted(found(full_once, range(4))) == [0, 1, 2, 3]
        with pytest.raises(OSError, match=platform.node()) as full:
            found(partial(work.full_disk, (2,)), range(4))
        assert (full.value.errno, full.value.filename) == (errno.ENOSPC, "part")
        source = SyntheticUsers(users=3, size_scale=0.02, max_reviews=600)
        slow = Experiment(SleepsAt(users=(2,)), source, SrsBenchmark(), full_panel())
        result = evaluate(slow, compute=Ray(cluster.address), limits=FitLimits(timeout=3))
        failed = [fit for fit in result.fitted if fit.status == "failed"]
        assert {fit.user for fit in failed} == {2}
        assert "fit_timeout=3" in failed[0].reason
        monkeypatch.setattr("srs_eval.compute.ray._check_machines", lambda ray: "other code")
        with pytest.raises(SrsEvalError, match=platform.node()):
            found(work.doubles, [1])
        ray.shutdown()


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
        _evaluate(partial(work.full_disk, (2,)), 2, "nowhere", _code())
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, "part")
    with pytest.raises(SrsEvalError, match=platform.node()):
        _evaluate(work.doubles, 1, str(tmp_path), "other code")


def test_options_that_cannot_be_are_refused():
    for kind, options in (
        *((Processes, {"workers": 0}), (Processes, {"workers": -1}), (Processes, {"chunk": 0})),
        *((Ray, {"retries": -1}), (Ray, {"cpus": -1}), (Ray, {"chunk": 0}), (Serial, {"chunk": 0})),
    ):
        with pytest.raises(ConfigError):
            kind(**options)


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
        list(Ray(address).map(work.doubles, [1], on_crash=of, tick=time.time))
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

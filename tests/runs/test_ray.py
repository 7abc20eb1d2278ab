"""Users on a Ray cluster: the same files as in one process."""

import math
import os
import signal
import sys
import threading
from types import SimpleNamespace

import pytest
from commands import QUIET, SMALL, summary_of

from srs_eval.errors import SrsEvalError
from srs_eval.runs.compute import Lost, Ray, _result
from srs_eval.runs.config import code_hash

RUN = ("algo=fsrs6", *SMALL, *QUIET, "panel=quick", "data.max_reviews=600", "data.users=5")


def results(compute, work, items, patience=math.inf):
    return list(compute.map(work, items, print, patience))


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_run_on_a_cluster_has_the_files_of_one_process(here, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    pytest.importorskip("ray")
    assert here(*RUN, "hydra.run.dir=one").status == 0
    done = here(*RUN, "hydra.run.dir=out", "compute=ray")
    assert done.status == 0, done.err
    for name in ("scores.parquet", "predictions.parquet"):
        one, other = (here.folder / folder / name for folder in ("one", "out"))
        assert one.read_bytes() == other.read_bytes(), name
    numbers = [summary_of(here.folder / folder)["metrics"] for folder in ("one", "out")]
    assert numbers[0] == numbers[1]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_lost_worker_costs_its_user_only_and_faults_are_raised(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    ray = pytest.importorskip("ray")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setenv("RAY_AUTH_MODE", "token")

    def killing(item, tick):
        tick()
        if item == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    def hanging(item, tick):
        threading.Event().wait(600 if item == 3 else 0)
        return item

    def failing(item, tick):
        raise LookupError(f"fault at {item}")

    compute = Ray(retries=0)
    for work, patience in ((killing, math.inf), (hanging, 5)):
        done = results(compute, work, range(6), patience=patience)
        (dead,) = [each for each in done if isinstance(each, Lost)]
        assert dead[0] == 3
        assert sorted(each for each in done if each != dead) == [0, 1, 2, 4, 5]
    with pytest.raises(LookupError, match="fault at"):
        results(compute, failing, [1])
    ray.shutdown()


def test_a_machine_with_other_code_is_refused():
    def doubled(item, _):
        return 2 * item

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
        Ray()._connected()
    assert begun == [("local", "token", "127.0.0.1")]

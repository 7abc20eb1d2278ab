"""A simulated Ray cluster: machines are lost and join, and each item comes back once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import work
from commands import Here

from srs_eval.compute.ray import Ray
from srs_eval.cpu import VARIABLE
from srs_eval.errors import ConfigError
from srs_eval.results.files import CURVES, PREDICTIONS, SCORES

RUN = (
    *("algo=fsrs6", "algo.fit=default", "data.users=4", "data.size_scale=0.02", "panel=quick"),
    *("data.max_reviews=600", "figures=false", "tracking=none"),
)


@pytest.fixture
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    ray.cloudpickle.register_pickle_by_value(work)
    small = {"object_store_memory": 100_000_000, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    made.small = small
    made.add_node(num_cpus=1, **small)
    yield made
    ray.shutdown()
    made.shutdown()


def of(user: int, reason: str) -> tuple[int, str]:
    return user, reason


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_machines_are_lost_and_join_and_no_item_is(cluster: Any) -> None:
    lost = cluster.add_node(num_cpus=1, **cluster.small)
    compute = Ray(address=cluster.address, retries=3)
    items = list(range(16))
    arriving = compute.map(work.Sleeps(0.5), items, on_crash=of, tick=lambda: None)
    found = [next(arriving) for _ in range(3)]
    cluster.remove_node(lost, allow_graceful=False)
    cluster.add_node(num_cpus=1, **cluster.small)
    found += arriving
    assert sorted(found) == items
    # an item that ends its process each time is reported, and costs no other
    dying = work.KillsItsWorker((3,))
    found = list(Ray(cluster.address, retries=1).map(dying, items[:6], on_crash=of, tick=time.time))
    assert [each[0] for each in found if isinstance(each, tuple)] == [3]
    assert sorted(each for each in found if isinstance(each, int)) == [0, 1, 2, 4, 5]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_files_are_those_of_one_process(
    cluster: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    here = Here(tmp_path, capsys)
    assert here(*RUN, "hydra.run.dir=one").status == 0
    address = f"compute.address={cluster.address}"
    done = here(*RUN, "hydra.run.dir=out", "compute=ray", "compute.chunk=3", address)
    assert done.status == 0, done.err
    for name in (PREDICTIONS, CURVES, SCORES):
        one, out = (tmp_path / folder / name for folder in ("one", "out"))
        assert one.read_bytes() == out.read_bytes(), name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_machine_compiles_for_the_level_of_the_run(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srs_eval.compute.ray.common_level", lambda: "x86-64-v3")
    found = Ray(cluster.address).map(
        work.ReadsEnvironment(VARIABLE), [1, 2], on_crash=of, tick=time.time
    )
    assert list(found) == ["x86-64-v3"] * 2


@pytest.mark.parametrize("wrong", [{"retries": -1}, {"cpus": -1}, {"chunk": 0}])
def test_options_that_cannot_be_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        Ray(**wrong)

"""One process or several: the same numbers, and no user lost with another's worker."""

import multiprocessing
import os
import pickle
import time
from functools import partial
from pathlib import Path

import pytest
import work

from srs_eval.compute import processes
from srs_eval.compute.processes import Processes
from srs_eval.compute.serial import Serial
from srs_eval.errors import Pruned, SrsEvalError

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


def test_what_died_is_tried_again_with_nobody_beside_it_and_then_given_up(monkeypatch):
    tries = []

    def share(work, items, workers, died, stuck, tick):
        tries.append((list(items), workers))
        died += [item for item in items if item > len(tries)]
        stuck += [9] * (len(tries) == 1)
        yield from (item for item in items if item <= len(tries))

    monkeypatch.setattr(processes, "_share", share)
    found = results(Processes(workers=4), work.doubles, [1, 2, 3, 4])
    assert tries == [([1, 2, 3, 4], 4), ([2, 3, 4], 1)]
    assert found[:2] == [1, 2]
    assert [user for user, _ in found[2:]] == [3, 4, 9]


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
def test_a_worker_whose_death_is_not_known_yet_can_still_be_ended():
    started = processes._Workers(work.doubles)
    (dead, one), (gone, other) = started.one_more(), started.one_more()
    for process in (dead, gone):
        process.kill()
        process.join()
    started.one_more([dead])[0].terminate()
    dead.terminate()
    with pytest.raises(ValueError, match="closed"):
        gone.terminate()
    one.close()
    other.close()
    started.join()


@pytest.mark.slow
def test_a_worker_that_dies_while_it_sends_blocks_nobody():
    arriving = Processes(workers=2).map(
        partial(work.dies_while_sending, 2),
        [1, 2, 3],
        on_crash=lambda user, reason: reason.encode(),
        tick=list,
    )
    found = [next(arriving)]
    time.sleep(1.2)  # the other worker is not read until it is dead
    # Tried again, and read at once, it arrives unless the worker dies first once more.
    first, second, retried = sorted([*found, *arriving], key=len)
    assert (first, second) == (b"", b"")
    assert retried == bytes(10_000_000) or b"its worker process died" in retried


def test_workers_start_in_a_worker_of_joblib():
    # Its workers have a start method that a process without joblib cannot look up.
    pytest.importorskip("joblib.externals.loky.backend.context")
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("loky", force=True)
    try:
        found = results(Processes(workers=1), work.doubles, [1, 2])
        assert multiprocessing.get_start_method() == "loky"
    finally:
        multiprocessing.set_start_method(before, force=True)
    assert [each[:2] for each in found] == [(1, "11"), (2, "22")]


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

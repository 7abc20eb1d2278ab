"""Algorithms that fail, hang, die or take too much cost their own user, and are on record."""

import sys

import pyarrow.parquet as pq
import pytest
from sessions import (
    FOLDS,
    NO_STORE,
    RUN,
    USERS,
    Command,
    fits,
    jobs,
    run,
    scored_users,
    undisturbed,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
WORDS = (*RUN, NO_STORE, "hydra.run.dir=out")
PROCESSES = ("compute=processes", "compute.workers=2")
# How fits fail, what is said of them, and where; what is empty says enough by its kind.
RAISED = {
    "fail": ("ValueError: no fit for this user", "fail"),
    "devour": ("MemoryError", "devour"),
    "nan": ("nan", ""),
    "short": ("", ""),
}
ENDED = {"interrupt": "KeyboardInterrupt", "leave": "SystemExit", "close": "GeneratorExit"}
DIED = ("end", "kill")


def failures(folder):
    """Return the fits that failed, by user as text."""
    rows = pq.read_table(folder / "fits.parquet").to_pylist()
    failed = {}
    for row in rows:
        if row["status"] != "ok":
            failed.setdefault(str(row["user"]), []).append(row)
    return failed


def predictions_of(folder, users):
    table = pq.read_table(folder / "predictions.parquet").to_pandas()
    return table[table["user"].astype(str).isin(users)].reset_index(drop=True)


def assert_others_are_whole(folder, failed):
    """Hold a run against one in which nobody failed: all others have the same predictions."""
    everybody = {str(user) for user in range(1, USERS + 1)}
    others = everybody - set(failed)
    assert scored_users(folder) == others
    expected = predictions_of(undisturbed(*RUN), others)
    assert predictions_of(folder, others).equals(expected)


@pytest.mark.parametrize("compute", [(), pytest.param(PROCESSES, marks=pytest.mark.slow)])
def test_a_failed_fit_is_recorded_with_its_traceback_and_costs_its_user(tmp_path, compute):
    ways = dict(zip("2345", RAISED, strict=True))
    run(tmp_path, *WORDS, *compute, ways=ways, status=1)
    failed = failures(tmp_path / "out")
    assert_others_are_whole(tmp_path / "out", ways)
    assert failed.keys() == ways.keys()
    for user, way in ways.items():
        reason, where = RAISED[way]
        assert len(failed[user]) == FOLDS
        for fit in failed[user]:
            assert fit["reason"]
            assert reason.lower() in f"{fit['reason']} {fit['traceback']}".lower()
            assert where in (fit["traceback"] or "")
            assert not where or "watched.py" in fit["traceback"]


@pytest.mark.slow
def test_one_failed_fit_leaves_the_others_of_its_user_on_record(tmp_path):
    run(tmp_path, *WORDS, ways={"3": "fail_once"}, status=1)
    failed = failures(tmp_path / "out")
    assert {user: len(rows) for user, rows in failed.items()} == {"3": 1}
    assert_others_are_whole(tmp_path / "out", failed)


def test_a_worker_that_dies_costs_its_user(tmp_path):
    ways = dict(zip("25", DIED, strict=True))
    run(tmp_path, *WORDS, *PROCESSES, ways=ways, status=1)
    failed = failures(tmp_path / "out")
    assert failed.keys() == ways.keys()
    assert all("died" in fit["reason"] for rows in failed.values() for fit in rows)
    assert_others_are_whole(tmp_path / "out", ways)


@pytest.mark.slow
@pytest.mark.parametrize("compute", [(), PROCESSES], ids=str)
def test_a_fit_that_ends_its_process_or_says_it_is_interrupted_is_a_failed_fit(tmp_path, compute):
    ways = dict(zip("234", ENDED, strict=True))
    if not compute:  # there it cannot be told from Ctrl-C
        del ways["2"]
    run(tmp_path, *WORDS, *compute, ways=ways, status=1)
    failed = failures(tmp_path / "out")
    for user, way in ways.items():
        assert all(ENDED[way] in f"{fit['reason']} {fit['traceback']}" for fit in failed[user])
    assert_others_are_whole(tmp_path / "out", ways)


@pytest.mark.parametrize(
    ("compute", "way"),
    [
        ((), "hang"),
        (PROCESSES, "hold"),
        pytest.param((), "hold", marks=pytest.mark.slow),
        pytest.param(PROCESSES, "hang", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_fit_timeout_ends_what_hangs_also_in_compiled_code(tmp_path, compute, way):
    run(tmp_path, *WORDS, *compute, "fit_timeout=2", ways={"3": way}, status=1)
    failed = failures(tmp_path / "out")
    assert failed.keys() == {"3"}
    assert all(fit["reason"] for fit in failed["3"])
    assert_others_are_whole(tmp_path / "out", failed)


def test_a_run_whose_first_users_fail_alike_stops(tmp_path):
    command = Command(tmp_path, *WORDS, ways={"all": "fail"})
    command.wait()
    assert command.returncode == 1
    assert "no fit for this user" in command.text
    assert len(fits(tmp_path)) == 3
    assert not (tmp_path / "out" / "summary.json").exists()
    run(tmp_path, *WORDS)  # it is mended
    assert_others_are_whole(tmp_path / "out", ())


@pytest.mark.slow
@pytest.mark.parametrize("way", ["end", "hold", "leave"])
def test_jobs_beside_one_that_fails_are_whole(tmp_path, way):
    words = (*RUN, *PROCESSES, "fit_timeout=3", NO_STORE, "-m", "algo=avg,watched,constant")
    run(tmp_path, *words, "hydra.sweep.dir=out", ways={"3": way}, status=1)
    whole = {name.partition("_")[2]: folder for name, folder in jobs(tmp_path / "out").items()}
    assert scored_users(whole["avg"]) == scored_users(whole["constant"])
    assert len(scored_users(whole["avg"])) == USERS
    assert_others_are_whole(whole["watched"], "3")

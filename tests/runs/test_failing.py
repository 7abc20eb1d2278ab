"""Algorithms that fail, hang, die or take too much cost their own user, and are on record."""

import json
import sys

import pyarrow.parquet as pq
import pytest
from sessions import FOLDS, NO_STORE, PROCESSES, RUN, USERS, Command, fits, jobs, run, undisturbed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
WORDS = (*RUN, NO_STORE, "hydra.run.dir=out")
# What is said of each way in which fits fail; the kind of the others says enough.
SAID = {
    **{"fail": "ValueError: no fit for this user", "fail_once": "ValueError: no fit for this user"},
    **{"devour": "MemoryError", "nan": "nan", "interrupt": "KeyboardInterrupt"},
    **{"leave": "SystemExit", "close": "GeneratorExit", "end": "died", "kill": "died"},
}
RAISED = ("fail", "fail_once", "devour")


def failures(folder):
    """Return the fits that failed, by user as text."""
    failed = {}
    for row in pq.read_table(folder / "fits.parquet").to_pylist():
        if row["status"] != "ok":
            failed.setdefault(str(row["user"]), []).append(row)
    return failed


def of_users(folder, name, users):
    table = pq.read_table(folder / f"{name}.parquet").to_pandas()
    return table[table["user"].astype(str).isin(users)].reset_index(drop=True)


def assert_others_are_whole(folder, failed):
    """Hold a run against one in which nobody failed: all others have the same predictions."""
    everybody = {str(user) for user in range(1, USERS + 1)}
    others, scores = everybody - {*failed}, of_users(folder, "scores", everybody)
    assert {*scores["user"][scores["log_loss"].notna()].astype(str)} == others
    expected = of_users(undisturbed(*RUN), "predictions", others)
    assert of_users(folder, "predictions", others).equals(expected)


@pytest.mark.parametrize(
    ("compute", "ways"),
    [
        ((), {"2": "fail", "3": "devour", "4": "leave", "5": "close", "6": "fail_once"}),
        # Ctrl-C cannot be told from that of the algorithm in the process of the command
        (PROCESSES, {"2": "end", "3": "nan", "4": "interrupt", "5": "kill", "6": "short"}),
    ],
    ids=["serial", "processes"],
)
def test_a_failed_fit_is_recorded_with_its_traceback_and_costs_its_user(tmp_path, compute, ways):
    run(tmp_path, *WORDS, *compute, ways=ways, status=1)
    failed = failures(tmp_path / "out")
    assert failed.keys() == ways.keys()
    for user, way in ways.items():
        # the whole user goes with the process, or what ends it
        is_whole = way in ("end", "kill", "leave", "close", "interrupt", "fail_once")
        assert len(failed[user]) == (1 if is_whole else FOLDS)
        for fit in failed[user]:
            assert fit["reason"]
            assert SAID.get(way, "").lower() in f"{fit['reason']} {fit['traceback']}".lower()
            assert way not in RAISED or "watched.py" in fit["traceback"]
    assert_others_are_whole(tmp_path / "out", ways)


@pytest.mark.parametrize("compute", [(), PROCESSES], ids=["serial", "processes"])
def test_fit_timeout_ends_what_hangs_also_in_compiled_code(tmp_path, compute):
    ways = {"3": "hang", "5": "hold"}
    run(tmp_path, *WORDS, *compute, "fit_timeout=2", ways=ways, status=1)
    failed = failures(tmp_path / "out")
    assert failed.keys() == ways.keys()
    assert all(fit["reason"] for rows in failed.values() for fit in rows)
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
def test_jobs_beside_one_that_fails_are_whole_and_the_status_is_1(tmp_path):
    words = (*RUN, *PROCESSES, "fit_timeout=3", NO_STORE, "-m", "algo=avg,watched,constant")
    ways = {"2": "fail", "3": "end", "4": "hold", "5": "leave"}
    ended = run(tmp_path, *words, "hydra.sweep.dir=out", ways=ways, status=1)
    assert "no fit for this user" in ended.text
    whole = {name.partition("_")[2]: folder for name, folder in jobs(tmp_path / "out").items()}
    told = {name: json.loads((job / "job.json").read_text()) for name, job in whole.items()}
    status = {name: each["status"] for name, each in told.items()}
    assert status == {"avg": "ok", "watched": "failed", "constant": "ok"}
    for name in ("avg", "constant"):
        assert json.loads((whole[name] / "summary.json").read_text())["users"] == USERS
    assert_others_are_whole(whole["watched"], ways)

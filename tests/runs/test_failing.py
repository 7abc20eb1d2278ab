"""Algorithms that fail, hang, die or take too much cost their own user; jobs beside are whole."""

import json

import pyarrow.parquet as pq
import pytest
from cases import rest_nightly
from sessions import (
    FOLDS,
    JOBS,
    NO_STORE,
    PROCESSES,
    RUN,
    USERS,
    Command,
    fits,
    jobs,
    numbers,
    run,
    runs_in,
    store_of,
    to,
    undisturbed,
)

WORDS = (*RUN, NO_STORE, *to("out"))
# What is on record of each way in which fits fail.
RECORDED = {
    **{"fail": "ValueError: no fit for this user", "devour": "MemoryError"},
    **{"interrupt": "KeyboardInterrupt", "leave": "SystemExit", "end": "died", "kill": "died"},
}
OF_A_FIT = ("fail", "devour")  # the others end the evaluation of the user


def assert_recorded(folder, ways):
    """Hold a run against the ways in which users failed, and one in which nobody did."""

    def of_users(users, name, folder=folder):
        table = pq.read_table(folder / f"{name}.parquet").to_pandas()
        return table[table["user"].isin(users)].reset_index(drop=True)

    for user, way in ways.items():
        failed = of_users([int(user)], "fits").query("status == 'failed'")
        assert len(failed) == (FOLDS if way in (*OF_A_FIT, "hang") else 1), way
        assert failed["reason"].all()
        recorded = failed["reason"] + failed["traceback"].fillna("")
        assert recorded.str.contains(RECORDED.get(way, "")).all(), recorded.tolist()
        assert way not in OF_A_FIT or failed["traceback"].str.contains("watched.py").all()
    others = {*range(1, USERS + 1)} - {*map(int, ways)}
    scores = of_users(range(1, USERS + 1), "scores").dropna(subset="log_loss")
    assert {*scores["user"]} == others
    expected = of_users(others, "predictions", undisturbed(*RUN))
    assert of_users(others, "predictions").equals(expected)


@pytest.mark.parametrize(
    ("compute", "ways"),
    [
        ((), {"2": "fail", "3": "devour", "4": "leave"}),
        # Ctrl-C cannot be told from that of the algorithm in the process of the command
        (PROCESSES, {"2": "end", "3": "fail", "4": "interrupt", "5": "kill"}),
    ],
    ids=["serial", "processes"],
)
def test_a_failed_fit_is_recorded_with_its_traceback_and_costs_its_user(tmp_path, compute, ways):
    run(tmp_path, *WORDS, *compute, ways=ways, status=1)
    assert_recorded(tmp_path / "out", ways)


@pytest.mark.parametrize("compute", rest_nightly([(PROCESSES,), ((),)]))
def test_fit_timeout_ends_what_hangs_also_in_compiled_code(tmp_path, compute):
    ways = {"3": "hang", "5": "hold"}
    run(tmp_path, *WORDS, *compute, "fit_timeout=1", ways=ways, status=1)
    assert_recorded(tmp_path / "out", ways)


def test_a_run_whose_first_users_fail_alike_stops(tmp_path):
    command = Command(tmp_path, *WORDS, ways={"all": "fail"}).ended(1, traceback=True)
    assert "no fit for this user" in command.text
    assert len(fits(tmp_path)) == 3
    assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.nightly
def test_each_job_has_the_tags_of_its_own_run_and_no_state_of_another(tmp_path):
    """What a model learned in one job helps no other."""
    remember = {"ways": {"all": "remember"}}
    run(tmp_path, *RUN, *JOBS, *to("out", JOBS), **remember)
    run(tmp_path, *RUN, "algo.factor=0.9", NO_STORE, *to("alone"), **remember)
    folders = jobs(tmp_path)
    assert numbers(folders["out/1_watched"]) == numbers(folders["alone"])
    tags = {each.data.params["algo.factor"]: each.data.tags for each in runs_in(store_of(tmp_path))}
    assert tags["0.9"]["output"] == str(folders["out/1_watched"])
    assert tags["0.9"]["code_hash"] == tags["1"]["code_hash"]
    assert tags["0.9"]["config_hash"] != tags["1"]["config_hash"]


@pytest.mark.slow
def test_jobs_beside_one_that_fails_are_whole_and_the_status_is_1(tmp_path):
    words = (*RUN, *PROCESSES, "fit_timeout=3", NO_STORE, "-m", "algo=avg,watched,constant")
    ways = {"2": "fail", "3": "end", "4": "hold", "5": "leave"}
    ended = run(tmp_path, *words, "hydra.sweep.dir=out", ways=ways, status=1)
    assert "no fit for this user" in ended.text
    whole = {name.partition("_")[2]: folder for name, folder in jobs(tmp_path / "out").items()}
    ends = {name: json.loads((job / "job.json").read_text()) for name, job in whole.items()}
    status = {name: each["status"] for name, each in ends.items()}
    assert status == {"avg": "ok", "watched": "failed", "constant": "ok"}
    for name in ("avg", "constant"):
        assert json.loads((whole[name] / "summary.json").read_text())["users"] == USERS
    assert_recorded(whole["watched"], ways)

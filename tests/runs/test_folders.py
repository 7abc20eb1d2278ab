"""One folder, one command: second commands, shards, finished runs, changes, and bad places."""

import shutil

import pytest
from cases import rest_nightly
from sessions import (
    JOBS,
    NO_STORE,
    PLUG,
    RUN,
    SMALL,
    USERS,
    Command,
    assert_same,
    fits,
    run,
    to,
    undisturbed,
)

WORDS = (*RUN, NO_STORE, *to("out"))


def assert_refused(command, *parts):
    """Hold a command that does nothing but say why, in a line or a few."""
    command.ended(1)
    assert len(command.text.strip().splitlines()) < 4, command.text
    assert all(part in command.text for part in parts), command.text


@pytest.mark.parametrize("what", rest_nightly([((),), (JOBS,)]))
def test_a_second_command_is_refused_and_one_after_the_end_fits_nothing(tmp_path, what):
    out, words = tmp_path / "out", (*RUN, *what, NO_STORE, *to("out", what))
    first = Command(tmp_path, *words, ways={"3": "wait"}).until_fitted(2)
    assert_refused(Command(tmp_path, *words), "out")
    if what:  # in the folder of one of the jobs
        (job,) = (place.name for place in out.iterdir() if place.name.startswith("0_"))
        assert_refused(Command(tmp_path, *RUN, NO_STORE, *to(f"out/{job}")), job)
    (tmp_path / "go").touch()
    first.ended()
    assert set(fits(tmp_path).values()) == {5}
    assert_same(out, undisturbed(*RUN, *what))
    before = {file: file.read_bytes() for file in out.rglob("summary.json")}
    again = run(tmp_path, *words)
    assert not fits(tmp_path, again.began)
    assert before == {file: file.read_bytes() for file in out.rglob("summary.json")}


@pytest.mark.slow
def test_shards_at_once_and_the_command_that_adds_them_up_are_one_run(tmp_path):
    shards = [Command(tmp_path, *WORDS, f"shard={n}/3", ways={"all": "wait"}) for n in (1, 2)]
    shards[0].until(lambda: len(fits(tmp_path)) == 2)  # a user of each
    for second in ((), ("shard=1/3",)):
        assert_refused(Command(tmp_path, *WORDS, *second))
    assert [shard.status for shard in shards] == [None, None]
    (tmp_path / "go").touch()
    for shard in shards:
        shard.ended()
    assert not (tmp_path / "out" / "summary.json").exists()
    assert_refused(Command(tmp_path, *WORDS, "shard=2/3", "seed=7"), "seed")
    added = run(tmp_path, *WORDS)
    assert {user for _, user in fits(tmp_path, added.began)} == {"3", "6"}
    assert f"2 of {USERS}" in added.text
    assert_same(tmp_path / "out", undisturbed(*RUN))


def write_log(folder, forgetful=None):
    """Write a table of six users, one of whom has forgotten more."""
    lines = ["user,card,rating,time"]
    for user in range(1, USERS + 1):
        for card in range(40):
            for n, day in enumerate((0, 1, 3, 8, 20, 50)):
                forgotten = (7 * user + 3 * card + 5 * n) % 6 == 0 or (user == forgetful and n == 3)
                second = 1_600_000_000 + (card // 2 + day) * 86400
                lines.append(f"{user},{card},{1 if forgotten else 3},{second}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("changed", "killed"),
    rest_nightly(
        [(what, killed) for killed in (False, True) for what in ("code", "log", "setting")], 3
    ),
)
def test_a_setting_code_or_log_that_changed_is_evaluated_again(tmp_path, changed, killed):
    log = ("data=csv", "data.path=log.csv", "data.columns.user=user")
    words = (*PLUG, *SMALL, *log, NO_STORE)
    write_log(tmp_path)
    first = Command(tmp_path, *words, *to("out"), seconds=0.05 * killed)
    if killed:
        first.until_fitted(4).kill()
    first.ended(-9 if killed else 0)
    if changed == "code":
        with (tmp_path / "watched.py").open("a") as file:
            file.write("\n# another\n")
    elif changed == "log":
        write_log(tmp_path, forgetful=2)
    else:
        words = (*words, "seed=7")
    again = run(tmp_path, *words, *to("out"))
    fitted = {int(user) for _, user in fits(tmp_path, again.began)}
    assert fitted == ({2, 5, 6} if (changed, killed) == ("log", True) else {1, 2, 3, 4, 5, 6})
    run(tmp_path, *words, *to("fresh"))
    assert_same(tmp_path / "out", tmp_path / "fresh")


@pytest.mark.nightly
def test_a_folder_that_goes_during_the_run_is_a_failure(tmp_path):
    command = Command(tmp_path, *WORDS, seconds=0.1).until_fitted(3)
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    command.ended(1)
    assert "out" in command.text


def test_files_that_have_no_room_cost_nothing_that_was_done(tmp_path):
    full = run(tmp_path, *WORDS, room=30_000, status=1)
    assert "too large" in full.text
    done = len(fits(tmp_path)) - 1
    again = run(tmp_path, *WORDS)
    assert len(fits(tmp_path, again.began)) == USERS - done
    assert_same(tmp_path / "out", undisturbed(*RUN))

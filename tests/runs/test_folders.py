"""One folder, one command: second commands, shards, finished runs, changes, and bad places."""

import shutil
import subprocess
import sys
import time

import pytest
from sessions import (
    NO_STORE,
    PLUG,
    RUN,
    SMALL,
    USERS,
    Command,
    assert_same,
    finished,
    fits,
    run,
    to,
    undisturbed,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
WORDS = (*RUN, NO_STORE, "hydra.run.dir=out")
SWEEP = (*RUN, NO_STORE, "-m", "algo.factor=1,0.9", "hydra.sweep.dir=out")
FEW = 6  # lines, with those that say what the command is


def assert_refused(command, *parts):
    """Hold a command that does nothing but say why, in a line or a few."""
    command.wait()
    assert command.returncode in (1, 2), command.text
    assert "Traceback" not in command.text
    assert len(command.text.strip().splitlines()) <= FEW, command.text
    assert all(part in command.text for part in parts), command.text


@pytest.mark.parametrize(
    "words", [WORDS, pytest.param(SWEEP, marks=pytest.mark.slow)], ids=["run", "sweep"]
)
def test_a_second_command_is_refused_and_one_after_the_end_fits_nothing(tmp_path, words):
    first = Command(tmp_path, *words, ways={"3": "wait"}).until_fitted(2)
    assert_refused(Command(tmp_path, *words), "out")
    assert_refused(Command(tmp_path, *words, "seed=7"), "out")
    if words is SWEEP:
        (job,) = [place for place in (tmp_path / "out").iterdir() if place.name.startswith("0_")]
        assert_refused(Command(tmp_path, *RUN, NO_STORE, *to(f"out/{job.name}")), job.name)
    (tmp_path / "go").touch()
    first.ended()
    assert set(fits(tmp_path).values()) == {5}
    expected = undisturbed(*(word for word in words if word not in (NO_STORE, words[-1])))
    assert_same(tmp_path / "out", expected)
    before = {file: file.read_bytes() for file in (tmp_path / "out").rglob("summary.json")}
    again = run(tmp_path, *words)
    assert not fits(tmp_path, again.began)
    assert before == {file: file.read_bytes() for file in (tmp_path / "out").rglob("summary.json")}


@pytest.mark.slow
def test_shards_at_once_and_the_command_that_adds_them_up_are_one_run(tmp_path):
    shards = [Command(tmp_path, *WORDS, f"shard={n}/2", ways={"all": "wait"}) for n in (1, 2)]
    shards[0].until(lambda: len(fits(tmp_path)) == 2)  # a user of each
    for second in ((), ("shard=1/2",)):
        assert_refused(Command(tmp_path, *WORDS, *second))
    assert [shard.poll() for shard in shards] == [None, None]
    (tmp_path / "go").touch()
    for shard in shards:
        shard.ended()
    assert not (tmp_path / "out" / "summary.json").exists()
    assert_refused(Command(tmp_path, *WORDS, "shard=2/2", "seed=7"), "seed")
    added = Command(tmp_path, *WORDS).ended()
    assert not fits(tmp_path, added.began)
    assert_same(tmp_path / "out", undisturbed(*RUN))


@pytest.mark.slow
def test_users_of_a_shard_that_was_not_run_are_evaluated_and_counted_first(tmp_path):
    run(tmp_path, *WORDS, "shard=1/3")
    Command(tmp_path, *WORDS, "shard=2/3", seconds=0.3).until_fitted(1).kill()
    added = Command(tmp_path, *WORDS).ended()
    users = len(fits(tmp_path, added.began))
    assert f"{users} of {USERS}" in added.text
    assert 2 <= users <= 4
    assert_same(tmp_path / "out", undisturbed(*RUN))


@pytest.mark.parametrize(
    ("changed", "killed"),
    [
        ((), False),  # the code
        pytest.param((), True, marks=pytest.mark.slow),
        pytest.param(("seed=7",), True, marks=pytest.mark.slow),
        pytest.param(("algo.factor=0.9",), False, marks=pytest.mark.slow),
    ],
)
def test_a_setting_or_code_that_changed_is_evaluated_again(tmp_path, changed, killed):
    first = Command(tmp_path, *WORDS, seconds=0.05 * killed)
    if killed:
        first.until_fitted(3).kill()
    else:
        first.ended()
    if not changed:
        file = tmp_path / "watched.py"
        file.write_text(file.read_text() + "\n# another\n")
    again = run(tmp_path, *WORDS, *changed)
    assert len(fits(tmp_path, again.began)) == USERS
    assert_same(tmp_path / "out", undisturbed(*RUN, *changed))


def write_log(folder, changed=None):
    """Write a table of six users, one of whom has forgotten more."""
    lines = ["user,card,rating,time"]
    for user in range(1, 7):
        for card in range(40):
            for n, day in enumerate((0, 1, 3, 8, 20, 50)):
                answer = (7 * user + 3 * card + 5 * n) % 6 == 0 or (user == changed and n == 3)
                second = 1_600_000_000 + (card // 2 + day) * 86400
                lines.append(f"{user},{card},{1 if answer else 3},{second}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")


def test_a_log_that_changed_is_evaluated_again(tmp_path):
    log = ("data=csv", "data.path=log.csv", "data.columns.user=user")
    words = (*PLUG, *SMALL, *log, NO_STORE, "hydra.run.dir=out")
    write_log(tmp_path)
    first = Command(tmp_path, *words, seconds=0.1).until_fitted(4)
    time.sleep(0.35)
    done = {user for _, user in finished(tmp_path)}
    first.kill()
    write_log(tmp_path, changed=2)
    again = run(tmp_path, *words)
    assert done & {user for _, user in fits(tmp_path, again.began)} == {"2"}
    write_log(tmp_path, changed=3)  # of a finished run
    last = run(tmp_path, *words)
    assert len(fits(tmp_path, last.began)) == USERS


def test_only_the_checkpoint_has_pickles_and_it_is_gone_at_the_end(tmp_path):
    Command(tmp_path, *WORDS, seconds=0.1).until_fitted(4).kill()
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    inside = {file for file in files if "checkpoint" in file.parts}
    assert ".pkl" in {file.suffix for file in inside}
    run(tmp_path, *WORDS)
    left = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    kinds = {file.suffix or file.name for file in {*files, *left} - inside}
    assert kinds <= {".json", ".parquet", ".yaml", ".lock", ".log"}
    assert not inside & {*left}


@pytest.mark.slow
def test_a_folder_that_goes_during_the_run_is_a_failure(tmp_path):
    command = Command(tmp_path, *WORDS, seconds=0.1).until_fitted(3)
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    command.ended(1)
    assert "out" in command.text


def in_memory(options, then="true"):
    """Return the beginning of a command that has a small file system of its own in ``place``.

    The command is run, `then` is done, and the command is run again; what it left is copied.
    """
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no file systems of one's own here")
    once = '"$@"; echo "status $?"'
    script = (
        f"mkdir place && mount -t tmpfs -o {options} none place && {{ {once}; {then}; {once}; }}"
    )
    return ("unshare", "-rm", "sh", "-c", f"{script} && cp -r place kept", "sh")


def statuses(command):
    return [int(line.split()[1]) for line in command.text.splitlines() if line[:7] == "status "]


def test_a_folder_that_cannot_be_written_is_told_in_a_line(tmp_path):
    command = Command(tmp_path, *RUN, NO_STORE, *to("place/out"), wrap=in_memory("ro")).ended()
    assert statuses(command) in ([1, 1], [2, 2])
    assert "place" in command.text
    assert len(command.text.splitlines()) <= 2 * (FEW + 1)
    assert not fits(tmp_path)


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("run", 100),
        pytest.param("sweep", 200, marks=pytest.mark.slow),
        *(pytest.param("run", size, marks=pytest.mark.nightly) for size in (20, 60, 130)),
    ],
)
def test_a_full_disk_costs_nothing_that_was_done(tmp_path, kind, size):
    words = RUN if kind == "run" else (*RUN, "-m", "algo.factor=1,0.9")
    wrap = in_memory(f"size={size}k", "mount -o remount,size=50m place")
    command = Command(tmp_path, *words, NO_STORE, *to("place/out", words), wrap=wrap).ended()
    assert statuses(command) == [1, 0]
    assert_same(tmp_path / "kept" / "out", undisturbed(*words))

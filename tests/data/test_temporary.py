"""Temporary copies are removed, also those of killed processes, and nothing else is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from srs_eval.data import temporary

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows cannot lock folders")
FILES = Path("/proc/self/fd")
NAME = "srs_eval_copy_abcd1234"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def left_behind(folder, name=NAME):
    (folder / name).mkdir()
    (folder / name / "collection.anki2").write_bytes(b"content")
    return folder / name


def test_copies_of_killed_processes_are_removed_and_links_in_them_not_followed(folder, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_bytes(b"content")
    (left_behind(folder) / "link").symlink_to(tmp_path / "precious")
    files = list(FILES.iterdir()) if FILES.exists() else []
    with temporary.temporary_folder() as used:
        assert list(folder.iterdir()) == [used]
        assert used.stat().st_mode & 0o777 == 0o700
        (used / "collection.anki2").write_bytes(b"content")
        temporary.remove_leftovers()
        assert list(used.iterdir())
    assert list(folder.iterdir()) == []
    assert (tmp_path / "precious" / "file").is_file()
    assert not files or len(list(FILES.iterdir())) == len(files), "no lock stays open"


def test_the_copy_of_another_process_stays_until_it_is_killed(folder):
    code = (
        "import sys, time, tempfile; from srs_eval.data.temporary import temporary_folder\n"
        f"tempfile.tempdir = {str(folder)!r}\n"
        "with temporary_folder() as used:\n"
        "    (used / 'collection.anki2').write_bytes(b'content')\n"
        "    print('ready', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        temporary.remove_leftovers()
        assert len(list(folder.iterdir())) == 1
        process.kill()
    assert len(list(folder.iterdir())) == 1
    temporary.remove_leftovers()
    assert list(folder.iterdir()) == []


def test_what_only_looks_alike_or_is_new_or_of_others_stays(folder, tmp_path, monkeypatch):
    (folder / NAME).mkdir()  # not locked yet
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "precious").write_bytes(b"content")
    (folder / "srs_eval_copy_link1234").symlink_to(tmp_path / "victim")
    (folder / "srs_eval_copy_file1234").write_bytes(b"content")
    for name in ("srs_eval_copy_", "srs_eval_copy_ABCD1234", "srs_eval_copy_abcd12345", "other"):
        left_behind(folder, name)
    before = sorted(tmp_path.rglob("*"))
    temporary.remove_leftovers()
    assert sorted(tmp_path.rglob("*")) == before
    left = left_behind(folder, "srs_eval_copy_user1234")
    with monkeypatch.context() as patch:
        patch.setattr("os.geteuid", lambda: left.stat().st_uid + 1)
        temporary.remove_leftovers()
        assert left.is_dir()
    # An empty folder is not new for longer than a minute.
    written = (folder / NAME).stat().st_mtime
    for age, is_kept in ((59, True), (61, False)):
        os.utime(folder / NAME, (written - age, written - age))
        temporary.remove_leftovers()
        assert (folder / NAME).exists() == is_kept
    assert not left.exists()


def test_only_so_many_are_removed_at_once(folder, monkeypatch):
    monkeypatch.setattr(temporary, "_REMOVED_AT_MOST", 2)
    for number in range(5):
        left_behind(folder, f"{NAME[:-1]}{number}")
    temporary.remove_leftovers()
    assert len(list(folder.iterdir())) == 3

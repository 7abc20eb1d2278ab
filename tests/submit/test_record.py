"""The record of a leaderboard: one writer at a time, and no limit that its writer passes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from srs_eval.errors import ConfigError
from srs_eval.submit import record as module
from srs_eval.submit import verifying
from srs_eval.submit.problems import SubmissionError
from srs_eval.submit.record import FrozenBoard, Record, read_record, write_record
from srs_eval.submit.submission import ACCEPTED, Accepted
from srs_eval.submit.verifying import accept

BOARD = FrozenBoard(3, 4, "d" * 64)
ENTRY = Accepted("2026-01-31", "1" * 64, "reported", "", "b" * 64, "board", "c" * 64)


def read_again(folder: Path) -> Record:
    module._last.clear()
    return read_record(folder)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    notes = ["", "yes", "2026-01-31", "a: b # c", "\u00e4" * 200, "word " * 100, "'\"\\", "~"]
    entries = tuple(replace(ENTRY, note=note.strip()) for note in notes)
    for record in (Record(), Record({"1": BOARD, "board": BOARD}, {"on": entries, "7": entries})):
        write_record(tmp_path, record)
        assert read_again(tmp_path) == record
        assert yaml.safe_load((tmp_path / ACCEPTED).read_text("utf-8")).keys() == {
            *("boards", "submissions")
        }


def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, more = (Record({"board": BOARD}, dict.fromkeys("abc"[:n], (ENTRY,))) for n in (2, 3))
    write_record(tmp_path, few)
    monkeypatch.setattr(module, "_LARGEST", (tmp_path / ACCEPTED).stat().st_size)
    with pytest.raises(ConfigError, match="at most"):
        write_record(tmp_path, more)
    assert read_again(tmp_path) == few
    monkeypatch.setattr(module, "_LARGEST", 10)
    with pytest.raises(SubmissionError):
        read_again(tmp_path)


def test_another_record_is_refused(tmp_path: Path) -> None:
    for text in (
        "- 1\n",
        "boards: [\n",
        "boards: {}\nboards: {}\n",
        "x: &a {}\nboards: *a\n",
        f"boards: {'[' * 100_000}{']' * 100_000}\n",
        f"boards:\n{'- ' * 100_000}1\n",
        "boards: {a: !!python/object/apply:os.abort []}\n",
        "submissions: {a: [{mark: best}]}\n",
        "boards: {}\nsubmissions: {\xff: []}\n",
    ):
        (tmp_path / ACCEPTED).write_text(text, "latin-1")
        with pytest.raises(SubmissionError):
            read_again(tmp_path)


def test_two_that_accept_at_once_keep_both_entries(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = verifying.write_record

    def slowly(folder: Path, record: Record) -> None:
        time.sleep(0.2)
        write(folder, record)

    monkeypatch.setattr(verifying, "write_record", slowly)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: accept(board / name, None, ""), ("avg", "constant")))
    assert read_again(board).submissions.keys() == {"avg", "constant"}

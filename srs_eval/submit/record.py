"""``accepted.yaml``: the maintainers' record of boards and of accepted submissions.

Entries are appended and never changed. A board is what its first accepted submission scored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock
from pydantic import Field, TypeAdapter, ValidationError, with_config

from srs_eval.errors import ConfigError
from srs_eval.nouns import User
from srs_eval.results.files import whole_file
from srs_eval.results.run import Run
from srs_eval.submit.problems import Problem, SubmissionError, shown
from srs_eval.submit.submission import (
    ABOUT,
    ACCEPTED,
    PREDICTIONS,
    RESULTS,
    WHOLE,
    Accepted,
    Digest,
)
from srs_eval.text.expected import expected
from srs_eval.text.yaml_files import block_of, parsed

# Fields of the record, and the files whose digests they are.
RECORDED = {"digest": RESULTS, "about": ABOUT, "predictions": PREDICTIONS}
# Bytes of the record: more than 100,000 versions.
_LARGEST, _MOST_VALUES = 50_000_000, 10_000_000


Count = Annotated[int, Field(ge=0, strict=True)]


@with_config(WHOLE)
@dataclass(frozen=True, slots=True)
class FrozenBoard:
    """What the submissions of a board have scored."""

    # Numbers of users, and of scored reviews
    users: Count
    reviews: Count
    digest: Digest  # See `digest_of_rows`


@with_config(WHOLE)
@dataclass(frozen=True, slots=True)
class Record:
    """The content of ``accepted.yaml``."""

    boards: Mapping[str, FrozenBoard] = field(default_factory=dict)  # By the names of the boards
    # Accepted versions by the names of the submissions, the newest last
    submissions: Mapping[str, tuple[Accepted, ...]] = field(default_factory=dict)

    def with_accepted(self, name: str, entry: Accepted, board: str, frozen: FrozenBoard) -> Record:
        """Return the record with one more entry, and its board if that is new."""
        entries = (*self.submissions.get(name, ()), entry)
        return Record(
            {**self.boards, board: self.boards.get(board, frozen)},
            {**self.submissions, name: entries},
        )


_RECORD = TypeAdapter(Record)
# What this process has written last: many versions are accepted one after the other.
_written: dict[bytes, Record] = {}


def read_record(folder: Path) -> Record:
    """Read the record of a leaderboard; an empty one if there is none."""
    file = folder / ACCEPTED
    if file.is_symlink():
        raise SubmissionError([Problem("file", file, "", "a symbolic link", "copy the file")])
    if not file.exists():
        return Record()
    if not file.is_file():
        raise SubmissionError([Problem("form", file, "", "no file", "restore the last version")])
    if (size := file.stat().st_size) > _LARGEST:
        found, advice = f"{size:,} bytes", f"{_LARGEST:,} at most"
        raise SubmissionError([Problem("file", file, "", found, advice)])
    raw = file.read_bytes()
    if raw in _written:
        return _written[raw]
    try:
        return _record_of(parsed(raw, strict=True, values=_MOST_VALUES).content)
    except ValueError as error:
        found = str(error)
        advice = "restore the last version: only submit accept writes this file"
        raise SubmissionError([Problem("file", file, "", found, advice)]) from error


def write_record(folder: Path, record: Record) -> None:
    """Write the record of a leaderboard.

    Raise `ConfigError`, and leave the file as it is, if `read_record` would find it too large.
    """
    in_order = replace(record, submissions=dict(sorted(record.submissions.items())))
    raw = block_of(asdict(in_order)).encode()
    file = folder / ACCEPTED
    if len(raw) > _LARGEST:
        raise ConfigError(f"{file}: {len(raw):,} bytes; {_LARGEST:,} at most can be read again")
    with whole_file(file) as partial:
        partial.write_bytes(raw)
    _written.clear()
    _written[raw] = in_order


def only_one(folder: Path) -> FileLock:
    """Return the lock of the record of a leaderboard, which one command at a time may have."""
    return FileLock(folder / f".{ACCEPTED}.lock")


def _record_of(content: Any) -> Record:
    try:
        record = _RECORD.validate_python(content)
    except ValidationError as errors:
        first = errors.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ValueError(f"{where}: {expected(first)}") from errors
    for entry in (entry for entries in record.submissions.values() for entry in entries):
        if entry.board not in record.boards:
            raise ValueError(f"no board {shown(entry.board)}")
    return record


def frozen_board(run: Run) -> FrozenBoard:
    """Return what a run has scored."""
    digest = digest_of_rows((user, run.reviews[user], rows) for user, rows in run.rows.items())
    return FrozenBoard(len(run.rows), sum(run.reviews.values()), digest)


def digest_of_rows(users: Iterable[tuple[User, int, str]]) -> str:
    """Return the SHA-256 of users with their numbers of reviews and digests of rows, sorted.

    The number 1 and the text "1" are different users.
    """
    lines = sorted(f"{user!r}\t{reviews}\t{rows}" for user, reviews, rows in users)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def digests_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a submission by its field in the record; "" if missing."""
    return {
        key: digest_of_file(folder / name) if (folder / name).exists() else ""
        for key, name in RECORDED.items()
    }


def digest_of_file(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

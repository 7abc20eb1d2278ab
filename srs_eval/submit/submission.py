"""A submission: scores of each user with what is needed to trust them, and a leaderboard of many.

A submission is a folder with ``submission.yaml`` and ``results.parquet``. A leaderboard is a folder
of submissions, with the maintainers' record of those they accepted. A board holds the submissions
that scored the same reviews: one protocol and version, one data set and version. Boards are never
rewritten; another version is another board.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, with_config

from srs_eval.results.run import Run
from srs_eval.text.plain import one_line

ABOUT = "submission.yaml"
RESULTS = "results.parquet"
PREDICTIONS = "predictions.parquet"
ACCEPTED = "accepted.yaml"

# reported: the files are consistent; verified: run again by a maintainer, with equal scores;
# published: rows of another project.
Mark = Literal["reported", "verified", "published"]
# Of what is read from the record: every key is known, and has the value of its type.
WHOLE = ConfigDict(extra="forbid", validate_default=True)
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@with_config(WHOLE)
@dataclass(frozen=True, slots=True)
class Accepted:
    """An entry of the maintainers' record: one version of a submission."""

    # Day of acceptance, as in 2026-01-31
    date: Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    digest: Digest  # SHA-256 of the results
    mark: Mark  # ``reported``, ``verified`` or ``published``
    note: Annotated[str, AfterValidator(one_line)] = ""  # One line by the maintainer, or ""
    about: Digest = ""  # SHA-256 of the description, ``submission.yaml``
    board: str = ""  # Name of the board it is on
    predictions: Digest | Literal[""] = ""  # SHA-256 of its predictions; "" if it has none


@dataclass(frozen=True, slots=True)
class Submission:
    """A model with its scores."""

    name: str  # Name of the folder: letters, digits, ``-``, ``_`` and ``.``
    folder: Path  # The folder
    about: Mapping[str, Any]  # Content of ``submission.yaml``
    run: Run  # Scores of each user, under the name of the model
    history: tuple[Accepted, ...] = ()  # Accepted versions, the newest last; empty if there is none

    @property
    def mark(self) -> Mark:
        """Mark of the newest accepted version; by its rows if none was accepted yet."""
        if self.history:
            return self.history[-1].mark
        return "reported" if self.run.has_digests else "published"


@dataclass(frozen=True, slots=True)
class Board:
    """The submissions that scored the same reviews."""

    name: str  # Stable name for addresses, such as ``srs_benchmark-1_synthetic-2_e256d343``
    # Names of the protocol and of the data set
    protocol: str
    # Versions of protocol and data set
    protocol_version: str
    data: str
    data_version: str
    fingerprint: str  # Digest of the review logs, or "" for rows of other projects
    submissions: tuple[Submission, ...]  # In the order of their names

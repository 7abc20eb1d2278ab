"""Sort a table with the reviews of any number of users by user, for data=partitioned.

  python -m srs_eval.prepare data=csv data.path=reviews.parquet data.columns.user=user out=logs

All other options are those of data=csv or data=py_fsrs: see python -m srs_eval 'data=?'.
Files may be CSV or parquet, sorted or not, in a folder or not. The index is written last: a folder
without one is not complete. Then

  python -m srs_eval data=partitioned data.path=FOLDER
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from srs_eval.commands.cli import Command
from srs_eval.commands.overrides import Configured
from srs_eval.config.building import build_option
from srs_eval.data.selection import name_digest
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ConfigError
from srs_eval.nouns import User
from srs_eval.place import Place
from srs_eval.text.console import say, shell

_SALT = "SRS_EVAL_SALT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare(Configured):
    """Options of the command."""

    out: str
    """the folder to write to: a path or an address (s3://, gs://, abfss://, hf://). Where data.path
    is this folder itself, a warehouse has written it: only its index is made
    """
    names: Literal["digest", "salted"] | None = None
    """digest: replace the names of users by digests (SHA-256); salted: with the salt in the
    environment variable SRS_EVAL_SALT, without which they cannot be guessed
    """
    memory: str = "2GB"
    """what sorting may take; temporary files (TMPDIR) hold the rest"""

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the options together."""
        yield from Configured.problems(self)
        for word in self.overrides:
            if "=" in word and not word.startswith(("data=", "data.")):
                yield f"{word}: only options of data are used here"


def prepare(options: Prepare) -> int:
    """Prepare the logs, and print how many there are."""
    from srs_eval.data.preparing import prepare  # heavy: not for --help and for mistakes

    renamed, out = _renamed(options.names), Place.of(options.out)
    content, choices = options.composed()
    source = build_option("data", choices["data"], content["data"])
    if not isinstance(source, ReviewTable):
        raise ConfigError(f"data={choices['data']}: expected data=csv or data=py_fsrs, a table")
    made = prepare(source, out, renamed=renamed, memory=options.memory)
    say(f"{out}: {made.rows:,} reviews of {made.users:,} users in {made.parts:,} files")
    say(shell(["python", "-m", "srs_eval", "data=partitioned", f"data.path={out}"]))
    return 0


def _renamed(names: str | None) -> Callable[[User], str]:
    """Return what replaces the names of users."""
    if names != "salted":
        return name_digest if names else str
    salt = os.environ.get(_SALT, "")
    if not salt:
        raise ConfigError(f"names=salted needs the environment variable {_SALT}")
    return partial(name_digest, salt=salt.encode())


command = Command("python -m srs_eval.prepare", __doc__, Prepare, prepare)

"""Sort a table with the reviews of any number of users by user, for data=partitioned.

    python -m srs_eval.prepare data=csv data.path=reviews.parquet data.columns.user=user out=logs

    out=FOLDER      where to: a path or an address (s3://, gs://, abfss://, hf://). Where data.path
                    is this folder itself, a warehouse has written it: only its index is made
    names=digest    replace the names of users by digests (SHA-256); names=salted: with the salt in
                    the environment variable SRS_EVAL_SALT, without which they cannot be guessed
    memory=2GB      what sorting may take; temporary files (TMPDIR) hold the rest

All other arguments are those of data=csv or data=py_fsrs: see `python -m srs_eval 'data=?'`.
Files may be CSV or parquet, sorted or not, in a folder or not. The index is written last: a folder
without one is not complete. Then

    python -m srs_eval data=partitioned data.path=FOLDER
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from srs_eval.commands.arguments import carry_out
from srs_eval.config import settings
from srs_eval.config.building import build_option, resolved
from srs_eval.config.option_files import defaults
from srs_eval.data.selection import name_digest
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ConfigError
from srs_eval.nouns import User
from srs_eval.place import Place
from srs_eval.text.console import say

PROGRAM = "python -m srs_eval.prepare"
_SALT = "SRS_EVAL_SALT"
_KEYS = ("out", "names", "memory")


def command(words: list[str]) -> int:
    """Run the command line `words` and return the exit status."""
    return carry_out(
        lambda: _prepare(words),
        words,
        program=PROGRAM,
        help_page=__doc__ or "",
        advice="shows how it is used",
        unwritten="the logs",
    )


def _prepare(words: list[str]) -> int:
    """Prepare the logs, and print how many there are."""
    pairs = [word.partition("=") for word in words]
    own = {key: value for key, _, value in pairs if key in _KEYS}
    overrides = [word for word in words if word.partition("=")[0] not in _KEYS]
    problems = settings.mistakes(overrides)
    if not own.get("out"):
        problems.append("the folder to write to is missing: out=FOLDER")
    problems += [
        f"{word}: only options of data are used here"
        for word in overrides
        if not word.startswith(("data=", "data."))
    ]
    if problems:
        raise ConfigError(*problems)
    renamed, out = _renamed(own.get("names", "")), Place.of(own["out"])
    from srs_eval.data.preparing import prepare  # heavy: not for --help and for mistakes

    source = _source(overrides)
    made = prepare(source, out, renamed=renamed, memory=own.get("memory", "2GB"))
    say(f"{out}: {made.rows:,} reviews of {made.users:,} users in {made.parts:,} files")
    say(f"python -m srs_eval data=partitioned data.path={out}")
    return 0


def _renamed(names: str) -> Callable[[User], str]:
    """Return what replaces the names of users."""
    if names == "salted":
        salt = os.environ.get(_SALT, "")
        if not salt:
            raise ConfigError(f"names=salted needs the environment variable {_SALT}")
        return partial(name_digest, salt=salt.encode())
    if names not in ("", "digest"):
        raise ConfigError(f"names={names}: expected digest or salted; leave it out to keep names")
    return name_digest if names else str


def _source(overrides: list[str]) -> ReviewTable:
    """Build the table that is to be read."""
    choices = {**defaults(), **dict(word.split("=", 1) for word in overrides)}
    cfg = settings.composed([*overrides, "tracking=none"])
    content = resolved(cfg, {**choices, "tracking": "none"})
    source = build_option("data", choices["data"], content["data"])
    if not isinstance(source, ReviewTable):
        raise ConfigError(f"data={choices['data']}: expected data=csv or data=py_fsrs, a table")
    return source

"""Write a table with the reviews of many users into a folder for each user, for data=partitioned.

  python -m srs_eval.prepare data=csv data.path=reviews.parquet data.columns.user=user out=logs

All other options are those of data=csv or data=py_fsrs: see python -m srs_eval 'data=?'.
Files may be CSV or parquet, in a folder or not. Then, with the same names of columns,

  python -m srs_eval data=partitioned data.path=logs
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from srs_eval.commands.cli import Command
from srs_eval.commands.overrides import Configured
from srs_eval.config.building import build_option
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ConfigError
from srs_eval.places import Place
from srs_eval.text.console import say, shell


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare(Configured):
    """Options of the command."""

    out: str
    """the folder to write to: a path or an address (s3://, gs://, abfss://, hf://)"""

    def problems(self) -> Iterable[str]:
        """Return what is wrong with the options together."""
        yield from Configured.problems(self)
        for word in self.overrides:
            if "=" in word and not word.startswith(("data=", "data.")):
                yield f"{word}: only options of data are used here"


def prepare(options: Prepare) -> int:
    """Write the folder, and print the command that reads it."""
    from srs_eval.data.prepare import prepare  # heavy: not for --help and for mistakes

    out = Place.of(options.out)
    content, choices = options.composed()
    source = build_option("data", choices["data"], content["data"])
    if not isinstance(source, ReviewTable):
        raise ConfigError(f"data={choices['data']}: expected data=csv or data=py_fsrs, a table")
    users, rows = prepare(source, out)
    kept = [word for word in options.overrides if not word.startswith(_NOT_OF_ROWS)]
    say(f"{out}: {rows:,} reviews of {users:,} users")
    say(shell(["python", "-m", "srs_eval", "data=partitioned", f"data.path={out}", *kept]))
    return 0


_NOT_OF_ROWS = ("data=", "data.path=", "data.columns.user=")
command = Command("python -m srs_eval.prepare", __doc__, Prepare, prepare)
